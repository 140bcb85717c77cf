"""Processes and signals at the level of a whole run (cases 10 and 11, reliability 15)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from git_batch.run.group import RunGroup
from tests.conftest import git, until
from tests.e2e.job import BRANCH, argv, batch, committed, outcomes, task, tasks, told, write
from tests.e2e.near import near
from tests.e2e.scene import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

Begin = Callable[[Path], subprocess.Popen[str]]

LIMIT = 40.0
HANG = "setsid sleep 600 & echo started; sleep 600"


def pids_in(top: Path) -> list[int]:
    """List the processes whose directory lies in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(top):
                found.append(int(entry.name))
    return found


def at_work_in(top: Path) -> list[str]:
    """Give the command lines of the processes whose directory lies in a folder."""
    found = []
    for pid in pids_in(top):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Start batches in sessions of their own; what a failed test leaves of them is ended."""
    started: list[tuple[subprocess.Popen[str], Path]] = []

    def start(top: Path) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            argv("start", "-y"),
            cwd=top,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append((run, top))
        return run

    yield start
    for run, top in started:
        if run.poll() is None:
            run.kill()
            run.communicate()
        for pid in pids_in(top):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


# --- case 10 --------------------------------------------------------------------------------------


def test_nothing_that_a_command_does_can_hang_the_run(repo: Path) -> None:
    write(
        repo,
        task("stdin", "cat; echo 1 >src/1"),
        task("stays", "sh -c 'setsid sleep 600 & echo started'; echo 2 >src/2"),
        task("daemon", "(setsid sh -c 'sleep 600 & sleep 600' &) & echo 3 >src/3"),
        task("deaf", 'trap "" TERM; sleep 600', 'timeout = "1s"'),
        task("late", "echo 5 >src/5; sleep 600", 'timeout = "1s"'),
        task("silent", "sleep 2; echo 6 >src/6"),
        task("check", "echo 7 >src/7", 'check = "setsid sleep 600 & true"'),
        task("idle", "echo 8; sleep 600", 'idle_timeout = "1s"'),
        task("tty", "cat </dev/tty; echo 9 >src/9"),
    )
    started = time.monotonic()
    done = batch(repo, "start", "-y", status=1)
    assert time.monotonic() - started < LIMIT
    assert outcomes(repo) == {
        "stdin": "committed",
        "stays": "committed",
        "daemon": "committed",
        "deaf": "timed_out",
        "late": "timed_out",
        "silent": "committed",
        "check": "committed",
        "idle": "stalled",
        "tty": "committed",
    }
    assert done.err.count("left running") >= 3
    assert "sleep 600" in done.err
    ref = tasks(repo, "report")["late"]["history"][0]["ref"]
    assert git(repo, "show", f"{ref}:src/5") == "5"
    assert at_work_in(repo) == []
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


# --- case 11 --------------------------------------------------------------------------------------

SIGNALS = [
    ([signal.SIGINT], True, 130),
    ([signal.SIGINT, signal.SIGINT], True, 130),
    ([signal.SIGTERM], False, 143),
    ([signal.SIGHUP], False, 129),
    ([signal.SIGTERM, signal.SIGINT], False, 143),
]


@pytest.mark.parametrize(("signals", "group", "code"), SIGNALS, ids=range(len(SIGNALS)))
def test_a_signal_interrupts_keeps_everything_and_resume_goes_on(
    repo: Path, begin: Begin, signals: list[signal.Signals], group: bool, code: int
) -> None:
    flag = repo.parent / "flag"
    stubborn = 'trap "" TERM; ' if len(signals) > 1 else ""
    write(
        repo,
        task("one", "echo 1 >src/1"),
        task("two", f"test -e {flag} || {{ {stubborn}echo half >src/2; {HANG}; }}; echo 2 >src/2",
             "attempts = 1"),
        task("three", "echo 3 >src/3"),
    )  # fmt: skip
    run = begin(repo)
    until((repo / "src/2").exists)
    first = git(repo, "rev-parse", BRANCH)
    started = time.monotonic()
    for number in signals:
        (os.killpg if group else os.kill)(run.pid, number)
        time.sleep(0.3)
    out, err = run.communicate(timeout=LIMIT)
    assert (run.returncode, "Traceback" in err) == (code, False), err
    assert time.monotonic() - started < 9, "the second signal, or TERM, was to end it at once"
    assert at_work_in(repo) == []
    said = told(repo)
    assert said["state"] == "running"
    assert said["budget"]["consecutive_qa_failures"] == 0
    assert committed(repo) == ["one"]
    assert git(repo, "rev-parse", BRANCH) == first
    assert git(repo, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    assert "git batch resume" in out
    ref = f"refs/batch/{said['batch_id']}/attempts/two/1"
    assert git(repo, "show", f"{ref}:src/2") == "half"
    flag.touch()
    batch(repo, "resume")
    assert committed(repo) == ["one", "two", "three"]
    assert git(repo, "rev-parse", f"{BRANCH}~2") == first
    ends = [attempt["outcome"] for attempt in tasks(repo, "report")["two"]["history"]]
    assert ends == ["interrupted", "committed"]


@pytest.mark.parametrize("where", ["check", "between"])
def test_a_signal_during_a_check_or_a_wait_does_the_same(
    repo: Path, begin: Begin, where: str
) -> None:
    flag = repo.parent / "flag"
    hang = f"test -e {flag} || {{ touch {flag}; sleep 600; }}"
    check = f'check = "{hang}"' if where == "check" else ""
    run = (
        "echo 1 >src/1"
        if where == "check"
        else f"echo 1 >src/1; test -e {flag} || " + (f"{{ touch {flag}; exit 75; }}")
    )
    wait = '\n[budget]\nmax_wait = "1h"\n' if where == "between" else ""
    write(repo, wait, task("one", run, check, "attempts = 1"))
    process = begin(repo)
    until(flag.exists)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 143, err
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    batch(repo, "resume")
    assert committed(repo) == ["one"]


def test_a_signal_that_is_ignored_stays_ignored(repo: Path) -> None:
    # As under nohup.
    write(repo, task("one", "echo 1 >src/1; touch ../go; sleep 1; echo 2 >>src/1"))
    command = ["nohup", *argv("start", "-y")]
    run = subprocess.Popen(
        command,
        cwd=repo,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until((repo.parent / "go").exists)
    run.send_signal(signal.SIGHUP)
    _, err = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, err
    assert committed(repo) == ["one"]


# --- after a kill -9 ------------------------------------------------------------------------------

ESCAPES = """\
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 256)
open(sys.argv[1], "w").write(str(os.getpid()))
if sys.argv[2:]:
    import signal
    def again(*_):
        if not os.fork():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open(sys.argv[1], "w").write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    signal.signal(signal.SIGTERM, again)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Say whether a process is there and no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("again", ["", "again"], ids=["closed-its-files", "forks-when-told-to-end"])
def test_an_orphan_that_closed_the_lock_is_found_by_its_mark(
    repo: Path, begin: Begin, again: str
) -> None:
    script, pidfile, flag = (repo.parent / name for name in ("escape.py", "pid", "flag"))
    script.write_text(ESCAPES)
    run = f"test -e {flag} || {{ {sys.executable} {script} {pidfile} {again}; sleep 600; }}"
    write(repo, task("one", f"{run}; echo 1 >src/1"))
    process = begin(repo)
    until(lambda: pidfile.exists() and pidfile.read_text())
    orphan = int(pidfile.read_text())
    leaders = [
        int(pid)
        for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]
    process.kill()
    process.communicate()
    for pid in leaders:
        if pid not in (orphan, os.getpgid(orphan)):
            os.killpg(pid, signal.SIGKILL)
    until(lambda: len(at_work_in(repo)) == 1)
    assert alive(orphan)
    flag.touch()
    refused = batch(repo, "resume", "--claim", "no where", status=3)
    assert f"\t{orphan}  " in refused.err
    assert any(
        hint.endswith("git batch resume --kill-orphans --claim 'no where'")
        for hint in refused.hints
    )
    assert alive(orphan)
    batch(repo, "resume", "--kill-orphans")
    assert not alive(orphan)
    assert not alive(int(pidfile.read_text()))
    assert at_work_in(repo) == []
    assert committed(repo) == ["one"]


def test_an_orphan_that_shed_every_trace_is_found_by_its_control_group(
    repo: Path, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunGroup(str(tmp_path)) as trial:
        if trial.inside() is None:
            pytest.skip("no control group can be made here")
    script, pidfile, flag = (repo.parent / name for name in ("escape.py", "pid", "flag"))
    last = "time.sleep(600)\n"
    assert ESCAPES.endswith(last)
    sleeps = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    script.write_text(f"{ESCAPES.removesuffix(last)}os.execve(sys.executable, {sleeps}, {{}})\n")
    run = f"test -e {flag} || {{ {sys.executable} {script} {pidfile}; sleep 600; }}"
    write(repo, task("one", f"{run}; echo 1 >src/1"))
    process = begin(repo)
    until(lambda: pidfile.exists() and pidfile.read_text())
    orphan = int(pidfile.read_text())
    process.kill()
    process.communicate()
    for left in pids_in(repo):
        if left != orphan:
            os.kill(left, signal.SIGKILL)
    until(lambda: len(at_work_in(repo)) == 1)
    assert alive(orphan)
    flag.touch()
    monkeypatch.setattr("git_batch.app.aftermath.LOCK_WAIT", 0.2)
    assert f"\t{orphan}  " in near(repo, "resume", status=3).err
    near(repo, "resume", "--kill-orphans")
    assert not alive(orphan)
    assert committed(repo) == ["one"]


def test_another_repositorys_processes_are_left_alone(
    repo: Path, begin: Begin, template: Path
) -> None:
    # Same plan, same slug, another clone: its run goes on while ours is resumed.
    import shutil

    other = repo.parent / "other"
    shutil.copytree(template, other, symlinks=True)
    flag = repo.parent / "flag"
    for top in (repo, other):
        write(top, task("one", f"test -e {flag} || sleep 600; echo 1 >src/1"))
    mine, theirs = begin(repo), begin(other)
    until(lambda: any("sleep 600" in c for c in at_work_in(repo)))
    until(lambda: any("sleep 600" in c for c in at_work_in(other)) or theirs.poll() is not None)
    assert theirs.poll() is None, theirs.communicate()
    mine.kill()
    mine.communicate()
    flag.touch()
    batch(repo, "resume", "--kill-orphans")
    assert committed(repo) == ["one"]
    assert theirs.poll() is None
    assert any("sleep 600" in c for c in at_work_in(other))
    theirs.send_signal(signal.SIGINT)
    theirs.communicate(timeout=LIMIT)
