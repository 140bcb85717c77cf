"""What a command leaves running: ended and named, whatever it did to stay."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from git_batch.run import procfs, watch
from git_batch.run.descendants import Kin
from git_batch.run.process import Ended, How
from tests.run.supervised import Runner, is_alive, linux

if TYPE_CHECKING:
    pass


# What it leaves


def check_left(runner: Runner, ended: Ended, pid: int, seconds: float, command: str) -> None:
    assert (ended.how, ended.status) == (How.EXITED, 0)
    assert time.monotonic() - seconds < 3
    assert pid in [left.pid for left in ended.leftovers]
    assert any(command in left.command for left in ended.leftovers)
    assert ended.survivors == ()
    assert not is_alive(pid)


@pytest.mark.parametrize("name", ["leave-child", "leave-setsid", "leave-daemon.py"])
@linux
def test_what_stays_is_ended_and_named(runner: Runner, name: str) -> None:
    start = time.monotonic()
    ended = runner.child(name)
    check_left(runner, ended, int(runner.output()), start, "sleep 600")
    assert time.monotonic() - start < 1.5


@pytest.mark.parametrize("name", ["leave-stubborn", "leave-daemon.py"])
@linux
def test_what_stays_and_ignores_term_is_killed(runner: Runner, name: str) -> None:
    start = time.monotonic()
    ended = runner.child(name, "stubborn", grace=0.2)
    check_left(runner, ended, int(runner.output()), start, "sleep 600")


def test_end_within_a_moment_is_no_leftover(runner: Runner) -> None:
    ended = runner.child("leave-for-a-moment")
    assert ended.leftovers == ()
    assert runner.output() == b"early\nlate\n"


@linux
def test_what_went_wrong_the_last_words_of_a_child_that_ended_just_then_were_lost(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended between the last look at what was printed and the one for whoever is left."""
    gone = Kin.gone

    def late(kin: Kin) -> bool:
        time.sleep(0.5)  # as if the machine had stood still
        return gone(kin)

    monkeypatch.setattr(Kin, "gone", late)
    ended = runner.child("leave-for-a-moment")
    assert ended.leftovers == ()
    assert runner.output() == b"early\nlate\n"


@linux
def test_daemon_is_buried_while_the_command_runs(runner: Runner) -> None:
    ended = runner.child("wait-for-daemon.py", timeout=5)
    assert (ended.how, ended.leftovers) == (How.EXITED, ())
    assert runner.output() == b"gone\n"


@linux
def test_one_that_breeds_when_asked_to_stop(runner: Runner) -> None:
    ended = runner.child("breed.py", timeout=0.3, grace=0.2)
    assert (ended.how, ended.signal) == (How.TIMED_OUT, signal.SIGKILL)
    assert ended.survivors == ()


@linux
def test_leftover_that_floods_the_pipe(runner: Runner) -> None:
    start = time.monotonic()
    ended = runner("sh", "-c", "yes & echo started", log_cap=4096)
    assert [left.command for left in ended.leftovers] == ["yes"]
    assert time.monotonic() - start < 2


@linux
def test_children_of_the_runner_are_left_alone(runner: Runner) -> None:
    with subprocess.Popen(["sleep", "600"]) as own:
        try:
            assert runner.child("leave-child").leftovers
            assert runner.child("succeed").leftovers == ()
            assert runner.child("hang", timeout=0.05).how is How.TIMED_OUT
            assert own.poll() is None
        finally:
            own.kill()


@linux
def test_what_cannot_be_ended_is_told(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("git_batch.run.descendants.GIVE_UP", 0.1)
    with monkeypatch.context() as powerless:
        powerless.setattr(procfs, "send", lambda *_: None)
        ended = runner.child("leave-child", grace=0.1)
    pid = int(runner.output())
    assert [left.pid for left in ended.survivors] == [pid]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


# Elsewhere than on a new Linux


def test_without_pidfd(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "open_pidfd", lambda _pid: -1)
    monkeypatch.setattr(procfs, "open_pidfd", lambda _pid: -1)
    assert runner.child("fail", "3").status == 3
    assert runner.child("hang", timeout=0.1).signal == signal.SIGTERM
    assert runner.child("ignore-term", timeout=0.1, grace=0.1).signal == signal.SIGKILL
    assert runner.child("leave-child").leftovers


@linux
def test_without_adoption(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "subreaper", lambda on: None)
    assert runner.child("succeed").leftovers == ()
    for name in ("leave-child", "leave-setsid", "leave-stubborn"):
        start = time.monotonic()
        ended = runner.child(name, grace=0.1)
        check_left(runner, ended, int(runner.output()), start, "sleep 600")
    monkeypatch.undo()


def test_without_proc(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "subreaper", lambda on: None)
    monkeypatch.setattr(procfs, "table", dict)
    assert runner.child("succeed").leftovers == ()
    assert runner.child("fork-and-hang", timeout=0.1).how is How.TIMED_OUT
    # Without adoption it depends on init how long a zombie keeps its group alive.
    (left,) = runner.child("leave-child", grace=0.1).leftovers
    assert left.pid < 0
    assert left.command == f"process group {-left.pid}"
    assert left.age is None
    monkeypatch.undo()
