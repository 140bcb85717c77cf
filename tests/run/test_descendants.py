"""Finding and ending processes: what a killed runner left, and what the kernel says of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from git_batch.run import procfs
from git_batch.run.descendants import MARKER, Kin, Leftover, end, living, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
CHILDREN = ROOT / "fixtures" / "children"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SUPERVISOR = """
import fcntl, os, sys
from pathlib import Path
from git_batch.run.process import Interrupt, Limits, run
folder = Path(sys.argv[1])
lock = os.open(folder / "tree.lock", os.O_CREAT | os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_SH)
run(sys.argv[3:], cwd=folder, env=dict(os.environ), stdin=None, log=folder / "log",
    limits=Limits(), interrupt=Interrupt(), lock_fd=lock, marker=sys.argv[2] + "task/1")
"""

# One of each kind: in the group, in a session of its own, without the lock, without the marker
# (these two without a parent, too, that would give them away), deaf to TERM.
ORPHANS = """
sleep 600 &
setsid sleep 600 &
(setsid "$0" -S -E -c 'import os; os.closerange(0, 99); os.execlp("sleep", "sleep", "600")' &)
(env -i setsid sleep 600 &)
sh -c 'trap "" TERM; touch ready; while :; do sleep 600; done'
"""


def wait_for(condition: Callable[[], object], seconds: float = 5) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.005)


@contextlib.contextmanager
def sleeper(*argv: str | Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that is killed at the end, whatever the test says."""
    with subprocess.Popen(argv or ("sleep", "600"), **options) as process:
        try:
            # Its arguments and environment come a moment after the exec that Popen waits for.
            wait_for(lambda: Path(f"/proc/{process.pid}/environ").read_bytes())
            yield process
        finally:
            process.kill()


def is_alive(pid: int) -> bool:
    stat = procfs.stat_of(pid)
    return stat is not None and not stat.dead


@dataclass(frozen=True)
class Remains:
    """What a killed runner leaves: its lock, and how its markers begin."""

    lock: Path
    prefix: str

    def living(self) -> list[Leftover]:
        return living(self.lock, self.prefix)

    def sleeping(self) -> list[Leftover]:
        return [left for left in self.living() if left.command == "sleep 600"]


@pytest.fixture
def remains(tmp_path: Path) -> Iterator[Remains]:
    """Kill a runner, and leave the descendants of its command."""
    remains = Remains(tmp_path / "tree.lock", f"batch-{os.getpid()}-{tmp_path.name}/")
    call = [sys.executable, "-c", SUPERVISOR, str(tmp_path), remains.prefix]
    with subprocess.Popen([*call, "sh", "-c", ORPHANS, sys.executable], cwd=ROOT) as supervisor:
        try:
            wait_for(lambda: (tmp_path / "ready").exists() and len(remains.sleeping()) == 5)
        finally:
            supervisor.kill()
    yield remains
    end(remains.living(), grace=0)


def is_locked(path: Path) -> bool:
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_orphans_of_a_killed_runner(remains: Remains) -> None:
    assert is_locked(remains.lock)
    left = remains.living()
    assert len(remains.sleeping()) == 5
    assert sum("trap" in process.command for process in left) == 2
    assert [process.birth for process in left] == sorted(process.birth for process in left)
    assert all(process.age is not None and process.age < 10 for process in left)
    start = time.monotonic()
    assert end(left, grace=0.2) == []
    assert time.monotonic() - start < 2
    assert remains.living() == []
    assert not is_locked(remains.lock)


def test_each_trace_alone(remains: Remains) -> None:
    nothing = remains.lock.with_name("gone")
    everything = {process.pid for process in remains.living()}
    by_lock = {process.pid for process in living(remains.lock, "")}
    by_marker = {process.pid for process in living(nothing, f"{remains.prefix}task")}
    assert by_lock < everything
    assert by_marker < everything
    assert by_lock | by_marker == everything
    assert living(nothing, f"{remains.prefix}other") == []


def test_who_only_has_the_file_open_is_no_holder(tmp_path: Path) -> None:
    lock = tmp_path / "tree.lock"
    with lock.open("w") as file, sleeper(stdout=file) as process:
        assert living(lock, "") == []
        fcntl.flock(file, fcntl.LOCK_SH)
        assert [left.pid for left in living(lock, "")] == [process.pid]


def test_end_takes_the_children_too() -> None:
    argv = ["sh", "-c", "setsid sleep 600 & echo $!; wait"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        stat = procfs.stat_of(process.pid)
        assert stat is not None
        assert end([Leftover(process.pid, "sh", stat.birth)], grace=1) == []
    wait_for(lambda: not is_alive(child))


def test_a_later_process_with_the_same_pid_is_spared() -> None:
    with sleeper() as process:
        stat = procfs.stat_of(process.pid)
        assert stat is not None
        assert end([Leftover(process.pid, "sleep", stat.birth - 1)], grace=0) == []
        procfs.send(process.pid, stat.birth - 1, signal.SIGKILL)
        assert process.poll() is None


def test_end_spares_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without teeth: a mistake here would end all that the machine runs.
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(procfs, "send", lambda *call: sent.append(call[:2]))
    table = procfs.table()
    line = procfs.with_ancestors(table, os.getpid())
    assert {1, os.getpid(), os.getppid()} <= line
    assert end([Leftover(pid, "", table[pid].birth) for pid in line], grace=0) == []
    assert sent == []


@pytest.mark.parametrize("pid", [-1, 0, 1, pytest.param(os.getpid(), id="ourselves")])
def test_what_is_never_signalled(monkeypatch: pytest.MonkeyPatch, pid: int) -> None:
    monkeypatch.setattr(os, "kill", None)
    monkeypatch.setattr(procfs, "open_pidfd", None)
    with pytest.raises(ValueError, match="refusing"):
        procfs.send(pid, 0, signal.SIGTERM)


def test_end_of_what_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    assert end([Leftover(process.pid, "true", 1)], grace=1) == []


def test_sweep_reports_survivors_and_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("git_batch.run.descendants.GIVE_UP", 0.05)
    sent: list[int] = []
    monkeypatch.setattr(procfs, "send", lambda _pid, _birth, signum: sent.append(signum))
    immortal = Leftover(1, "immortal", 1)
    swept = sweep(lambda: [immortal], settle=0.02, grace=0.05)
    assert swept == ((immortal,), (immortal,))
    assert sent[0] == signal.SIGTERM
    assert len(sent) > 1
    assert set(sent[1:]) == {signal.SIGKILL}
    sent.clear()
    sweep(lambda: [immortal], settle=0, grace=0.05, asked=[immortal])
    assert set(sent) == {signal.SIGKILL}


def test_sweep_in_a_hurry_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    alive = [Leftover(1, "mortal", 1)]
    monkeypatch.setattr(procfs, "send", lambda *_: alive.clear())
    start = time.monotonic()
    swept = sweep(lambda: list(alive), settle=10, grace=10, hurry=lambda: True)
    assert [left.command for left in swept.named] == ["mortal"]
    assert time.monotonic() - start < 1


def test_kin_tells_its_own_from_older_children() -> None:
    with sleeper() as older, Kin("m") as kin:
        with sleeper(start_new_session=True) as leader:
            kin.leader = leader.pid
            assert [left.pid for left in kin.find()] == [leader.pid]
            assert not kin.gone()
            kin.signal(signal.SIGKILL)
        assert kin.gone()
        assert older.poll() is None


@pytest.mark.parametrize("adopting", [True, False])
def test_the_marker_counts_only_where_nothing_better_is(
    monkeypatch: pytest.MonkeyPatch, adopting: bool
) -> None:
    """Another clone of a batch may run beside us, and its commands say the same of themselves."""
    if not adopting:
        monkeypatch.setattr(procfs, "subreaper", lambda on: None)
    marker = f"test-{os.getpid()}"
    script = f"{MARKER}={marker} setsid sleep 600 >/dev/null & echo $!"
    with Kin(marker) as kin:
        procfs.subreaper(on=False)
        other = int(subprocess.check_output(["sh", "-c", script]))
        with sleeper(start_new_session=True) as leader:
            kin.leader = leader.pid
            wait_for(lambda: procfs.has_variable(other, os.fsencode(MARKER)))
            found = {left.pid for left in kin.find()}
        procfs.send(other, 0, signal.SIGKILL)
    assert found == ({leader.pid} if adopting else {leader.pid, other})


def test_subreaper_of_others_is_kept() -> None:
    assert procfs.subreaper(on=True) is False
    with Kin(""):
        pass
    assert procfs.subreaper(on=False) is True
    with Kin(""):
        assert procfs.subreaper(on=True) is True
    assert procfs.subreaper(on=False) is False


def test_strange_names(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1\n(b"
    shutil.copy("/bin/sleep", program)
    with sleeper(program, "600") as process:
        wait_for(lambda: "600" in procfs.command_of(process.pid, procfs.table()[process.pid]))
        stat = procfs.stat_of(process.pid)
        assert stat is not None
        assert (stat.name, stat.parent, stat.dead) == (b"a) R 1\n(b", os.getpid(), False)
        assert procfs.command_of(process.pid, stat) == f"{program} 600".replace("\n", " ")
        process.kill()
        wait_for(lambda: not is_alive(process.pid))
        assert procfs.command_of(process.pid, stat) == "[a) R 1 (b]"
        assert process.pid in procfs.children()


def test_variables_are_told_exactly() -> None:
    env = {"MARK": "batch-1/a", "XMARK": "batch-2/", "LONG": "x" * 100_000}
    with sleeper(env=env) as process:
        assert procfs.has_variable(process.pid, b"MARK=batch-1/")
        assert procfs.has_variable(process.pid, b"MARK=batch-1/a\0")
        assert not procfs.has_variable(process.pid, b"MARK=batch-1/\0")
        assert not procfs.has_variable(process.pid, b"MARK=batch-2/")
    assert not procfs.has_variable(process.pid, b"MARK=")


def test_children_without_the_kernels_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", _without_tasks(os.listdir))
    with sleeper() as process:
        assert process.pid in procfs.children()


def _without_tasks(listdir: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def replacement(path: str) -> list[str]:
        if path == "/proc/self/task":
            raise FileNotFoundError
        return listdir(path)

    return replacement
