"""Control groups, in the one that this test runs in; skipped where none can be made there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from git_batch.run import group
from git_batch.run.descendants import end, living
from git_batch.run.group import FILE, RunGroup, members
from tests.conftest import until

ROOT = Path(__file__).parents[2]

SLEEP = "import time; time.sleep(600)"
ESCAPED = f"""
import os, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 256)
os.execve(sys.executable, [sys.executable, "-c", {SLEEP!r}], {{}})
"""
RUNNER = """
import subprocess, sys, time
from git_batch.run.group import RunGroup
with RunGroup(sys.argv[1]) as run:
    mine = run.inside()
    subprocess.run([sys.executable, "-c", sys.argv[2]], check=True)
    print(mine, flush=True)
    time.sleep(600)
"""


def inside_child(run: RunGroup) -> subprocess.Popen[bytes]:
    run.inside()
    return subprocess.Popen(["sleep", "600"])


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def here() -> str:
    return Path("/proc/self/cgroup").read_text()


@pytest.fixture
def above(tmp_path: Path) -> Path:
    """Name the group of this process; skipped unless another can be made below it."""
    with RunGroup(str(tmp_path)) as run:
        trial = run.inside()
        if trial is None:
            pytest.skip("no control group can be made here")
        return Path(trial).parent


@pytest.fixture
def killed(above: Path, tmp_path: Path) -> Iterator[str]:
    """Kill a runner whose command left a process that closed and cleared all it had."""
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(tmp_path), ESCAPED], cwd=ROOT, stdout=subprocess.PIPE
    ) as runner:
        assert runner.stdout
        path = runner.stdout.readline().decode().strip()
        runner.kill()
    # Not one of those that it forks on its way: what it became last has another command line.
    until(
        lambda: [command(pid) for pid in members(str(tmp_path))] == [f"{sys.executable} -c {SLEEP}"]
    )
    yield path
    for pid in members(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)


def test_a_run_is_in_a_group_of_its_own_and_leaves_nothing(above: Path, tmp_path: Path) -> None:
    before = here()
    with RunGroup(str(tmp_path)) as run:
        mine = run.inside()
        assert mine is not None
        assert Path(mine).parent == above
        assert here() != before
        assert (tmp_path / FILE).read_text() == mine
        assert os.getpid() in members(str(tmp_path))
    assert here() == before
    assert not Path(mine).exists()
    assert not (tmp_path / FILE).exists()
    assert members(str(tmp_path)) == frozenset()


def test_who_leaves_is_out_of_it_and_goes_in_again_for_whatever_comes(
    above: Path, tmp_path: Path
) -> None:
    before = here()
    with RunGroup(str(tmp_path)) as run:
        mine = run.inside()
        assert mine is not None
        run.leave()
        run.leave()
        until(lambda: here() == before)
        assert Path(mine).exists()
        assert run.inside() == mine
        assert os.getpid() in members(str(tmp_path))
        run.leave()
    assert here() == before
    assert not Path(mine).exists()


def test_a_machine_without_another_thread_was_a_bug_of_ours(
    above: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    before = here()
    monkeypatch.setattr(Thread, "start", refuse)
    with RunGroup(str(tmp_path)) as run:
        assert run.inside() is not None
        assert here() != before
        run.leave()
        assert here() == before
    assert not (tmp_path / FILE).exists()


def test_a_group_that_was_never_entered_is_removed(
    above: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(group, "_join", refuse)
    with RunGroup(str(tmp_path)) as run:
        assert run.inside() is None
        made = Path((tmp_path / FILE).read_text())
        assert made.exists()
        run.leave()
    assert not made.exists()
    assert not (tmp_path / FILE).exists()


def test_who_shed_every_other_trace_is_found_after_a_kill(killed: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert living(gone, "") == []
    (left,) = living(gone, "", members(str(tmp_path)))
    assert "time.sleep(600)" in left.command
    assert end([left], grace=0.2) == []
    assert living(gone, "", members(str(tmp_path))) == []
    with RunGroup(str(tmp_path)) as run:
        assert run.inside() is not None
        assert not Path(killed).exists(), "the next run removes what is empty"


def test_what_another_run_is_about_to_enter_is_not_removed(above: Path, tmp_path: Path) -> None:
    young, old, used = (above / f"git-batch-{name}{os.getpid()}" for name in ("y", "o", "u"))
    for made in (young, old, used):
        made.mkdir()
    with subprocess.Popen(["sleep", "600"]) as child:
        (used / "cgroup.procs").write_text(str(child.pid))
        for made in (old, used):  # last: from now on a test beside this one removes what is empty
            os.utime(made, (time.time() - 3600,) * 2)
        with RunGroup(str(tmp_path)):
            there = [made.exists() for made in (young, old, used)]
        child.kill()
    assert there == [True, False, True]
    young.rmdir()
    until(lambda: not used.exists() or not (used / "cgroup.procs").read_text())
    with contextlib.suppress(FileNotFoundError):
        used.rmdir()


def test_a_group_that_is_not_empty_stays_known(above: Path, tmp_path: Path) -> None:
    with RunGroup(str(tmp_path)) as run, inside_child(run) as child:
        child_pid = child.pid
        with RunGroup(str(tmp_path / "..")) as other:  # another run below the same group
            assert other.inside() is not None
            assert child_pid in members(str(tmp_path))
        child.kill()
    (tmp_path / "survivor").mkdir()
    mine = RunGroup(str(tmp_path / "survivor"))
    with inside_child(mine.__enter__()) as child:
        mine.__exit__(None, None, None)
        assert members(str(tmp_path / "survivor")) == {child.pid}
        child.kill()


def test_groups_that_a_command_made_in_it_count(above: Path, tmp_path: Path) -> None:
    with RunGroup(str(tmp_path)) as run:
        mine = run.inside()
        assert mine is not None
        inner = Path(mine, "made by a command")
        inner.mkdir()
        with subprocess.Popen(["sleep", "600"]) as child:
            (inner / "cgroup.procs").write_text(str(child.pid))
            assert {child.pid, os.getpid()} <= members(str(tmp_path))
            child.kill()
    assert not inner.exists()


def test_without_the_right_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "_own", lambda: str(tmp_path / "not" / "there"))
    with RunGroup(str(tmp_path)) as run:
        assert run.inside() is None
    monkeypatch.setattr(group, "_own", lambda: str(tmp_path))  # a folder that is no group
    with RunGroup(str(tmp_path)) as run:
        assert run.inside() is None
    monkeypatch.setattr(group, "_own", lambda: None)
    with RunGroup(str(tmp_path)) as run:
        assert run.inside() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "relative/git-batch-1", "/tmp", "/sys/fs/cgroup", "/proc/self/git-batch-x", "\0"]
)
def test_what_is_no_group_of_a_run_names_nobody(tmp_path: Path, text: str) -> None:
    assert members(str(tmp_path)) == frozenset()
    (tmp_path / FILE).write_text(text)
    assert members(str(tmp_path)) == frozenset()


def test_gits_file_system_monitor_is_nobodys_orphan(above: Path, tmp_path: Path) -> None:
    daemon = tmp_path / "git"
    daemon.write_text("#!/bin/sh\nsleep 600 & wait\n")
    daemon.chmod(0o755)
    with RunGroup(str(tmp_path)) as run:
        run.inside()
        call = [str(daemon), "fsmonitor--daemon", "run"]
        with subprocess.Popen(call, start_new_session=True) as process:
            found = members(str(tmp_path)) - {os.getpid()}
            assert process.pid in found
            named = {left.pid for left in living(tmp_path / "gone", "", found)}
            assert process.pid not in named
            os.killpg(process.pid, signal.SIGKILL)
