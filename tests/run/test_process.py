"""One command under watch: every way to end, or not to start, and what it gets."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from git_batch.run.commands import ending
from git_batch.run.descendants import MARKER
from git_batch.run.process import How
from tests.run.supervised import CHILDREN, MIB, PYTHON, Runner, is_alive

if TYPE_CHECKING:
    pass


# How it ends


def test_success(runner: Runner) -> None:
    ended = runner.child("succeed")
    assert (ended.how, ended.status, ended.signal) == (How.EXITED, 0, None)
    assert (ended.leftovers, ended.survivors, ended.reason, ended.log_error) == ((), (), None, None)
    assert 0 < ended.seconds < 5
    assert runner.output() == b"done\n"


@pytest.mark.parametrize("status", [1, 75, 125, 127, 255])
def test_status(runner: Runner, status: int) -> None:
    ended = runner.child("fail", str(status))
    assert (ended.how, ended.status, ended.signal) == (How.EXITED, status, None)
    assert runner.output() == b"failing\n"


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_killed_by_somebody(runner: Runner, signum: signal.Signals) -> None:
    ended = runner.child("die", signum.name[3:])
    assert (ended.how, ended.status, ended.signal) == (How.KILLED, None, signum)


def test_timeout(runner: Runner) -> None:
    ended = runner.child("hang", timeout=0.1)
    assert (ended.how, ended.status, ended.signal) == (How.TIMED_OUT, None, signal.SIGTERM)
    assert 0.1 <= ended.seconds < 1
    assert ended.leftovers == ()


def test_timeout_of_one_that_ignores_term(runner: Runner) -> None:
    ended = runner.child("ignore-term", timeout=0.1, grace=0.2)
    assert (ended.how, ended.signal) == (How.TIMED_OUT, signal.SIGKILL)
    assert 0.3 <= ended.seconds < 2


def test_what_went_wrong_the_grace_was_said_to_be_part_of_the_limit(runner: Runner) -> None:
    late = runner.child("ignore-term", timeout=0.1, grace=0.5)
    assert (late.limit, ending(late)) == (0.1, "timed out after 0.1s")
    silent = runner.child("ignore-term", timeout=60, idle_timeout=0.2, grace=0.5)
    assert (silent.limit, ending(silent)) == (0.2, "no output for 0.2s")
    assert runner.child("fail", "1", timeout=60).limit is None


def test_timeout_decides_even_if_the_command_then_succeeds(runner: Runner) -> None:
    ended = runner.child("polite", timeout=0.1)
    assert (ended.how, ended.status) == (How.TIMED_OUT, 0)
    assert runner.output() == b"ready\nbye\n"


def test_timeout_ends_the_whole_tree(runner: Runner) -> None:
    ended = runner.child("fork-and-hang", timeout=0.1)
    assert ended.how is How.TIMED_OUT
    assert not is_alive(int(runner.output()))


def test_timeout_of_a_stopped_command(runner: Runner) -> None:
    ended = runner.child("stop-itself", timeout=0.1)
    assert (ended.how, ended.signal) == (How.TIMED_OUT, signal.SIGTERM)
    assert ended.seconds < 1


def test_timeout_zero(runner: Runner) -> None:
    assert runner.child("hang", timeout=0).how is How.TIMED_OUT


def test_stalled(runner: Runner) -> None:
    ended = runner.child("ignore-term", idle_timeout=0.1, grace=0.05)
    assert (ended.how, ended.signal) == (How.STALLED, signal.SIGKILL)
    assert runner.output() == b"stubborn\n"


def test_idle_time_counts_from_the_last_output(runner: Runner) -> None:
    ended = runner.child("chatter", "5", idle_timeout=0.35)
    assert (ended.how, ended.status) == (How.EXITED, 0)
    assert ended.seconds > 0.45


def test_output_in_time_beats_a_runner_that_comes_late(runner: Runner) -> None:
    def late() -> None:
        time.sleep(0.5)  # as after Ctrl-Z: the command spoke, nobody listened

    runner.on_slow = late
    assert runner.child("chatter", "8", idle_timeout=0.4).how is How.EXITED


def test_closed_output_is_no_end(runner: Runner) -> None:
    before = time.process_time()
    ended = runner.child("close-output")
    assert (ended.how, ended.status) == (How.EXITED, 0)
    assert ended.seconds >= 0.3
    assert time.process_time() - before < 0.2, "the wait spins"


# What can't be started


def test_missing_command(runner: Runner) -> None:
    ended = runner("no-such-command")
    assert (ended.how, ended.status, ended.seconds) == (How.NOT_FOUND, None, 0)
    assert ended.reason == "no-such-command: No such file or directory"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        ((str(CHILDREN / "not-executable"),), "Permission denied"),
        ((str(CHILDREN),), "Permission denied"),
        ((str(CHILDREN / "succeed" / "below"),), "Not a directory"),
        (("true", "x" * 5 * MIB), "Argument list too long"),
        (("true", "a\0b"), "null byte"),
        ((b"\xff\x1b",), "No such file or directory"),
    ],
)
def test_not_startable(runner: Runner, argv: tuple[str | bytes, ...], reason: str) -> None:
    ended = runner(*argv)
    assert ended.how is How.NOT_FOUND
    assert ended.reason is not None
    assert reason in ended.reason


def test_not_a_program(runner: Runner) -> None:
    script = runner.folder / "script"
    script.write_text("no interpreter is named here\n")
    script.chmod(0o755)
    ended = runner(str(script))
    assert (ended.how, ended.reason) == (How.NOT_FOUND, f"{script}: Exec format error")


def test_folder_is_gone(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> None:
    runner.folder = tmp_path_factory.mktemp("x") / "gone"
    ended = runner("true")
    assert ended.how is How.NOT_FOUND
    assert ended.reason == f"{runner.folder}: No such file or directory"


def test_variable_with_an_illegal_name(runner: Runner) -> None:
    runner.env["A=B"] = "c"
    ended = runner("true")
    assert (ended.how, ended.reason) == (How.NOT_FOUND, "illegal environment variable name")


def test_lack_of_the_machine_is_raised(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(BlockingIOError):
        runner("true")


# What it gets


def test_environment_is_exact(runner: Runner) -> None:
    runner.env = {"PATH": os.defpath, "ODD": "\udcff ü\n", "EMPTY": ""}
    runner.child("show-env")
    entries = runner.output().rstrip(b"\0").split(b"\0")
    # The script's shell adds these three for its own sake.
    entries = [e for e in entries if not e.startswith((b"PWD=", b"OLDPWD=", b"_=", b"SHLVL="))]
    wanted = {**runner.env, MARKER: runner.marker}
    assert sorted(entries) == sorted(os.fsencode(f"{k}={v}") for k, v in wanted.items())


def test_no_marker_no_variable(runner: Runner) -> None:
    runner.marker = ""
    runner.child("show-env")
    assert os.fsencode(MARKER) not in runner.output()


def test_program_is_looked_for_in_its_own_path(runner: Runner) -> None:
    runner.env = {"PATH": str(CHILDREN)}
    assert runner("succeed").status == 0


def test_stdin_is_empty_without_a_file(runner: Runner) -> None:
    assert runner.child("echo-stdin", timeout=5).status == 0
    assert runner.output() == b""


def test_stdin_from_a_file(runner: Runner) -> None:
    runner.stdin = runner.folder / "prompt"
    runner.stdin.write_bytes(os.urandom(3 * MIB))
    assert runner.child("echo-stdin").status == 0
    assert runner.output() == runner.stdin.read_bytes()


def test_unread_stdin_is_no_matter(runner: Runner) -> None:
    runner.stdin = runner.folder / "prompt"
    runner.stdin.write_bytes(b"x" * MIB)
    assert runner.child("succeed").status == 0


def test_missing_stdin_is_raised(runner: Runner) -> None:
    runner.stdin = runner.folder / "gone"
    with pytest.raises(FileNotFoundError):
        runner("true")


def test_session_terminal_folder_and_files(runner: Runner) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    script = (
        "import os; print(os.getsid(0) == os.getpid() == os.getpgid(0), os.getcwd());"
        "print(sorted(map(int, os.listdir('/dev/fd')))[:-1], flush=True);"
        "os.open('/dev/tty', os.O_RDWR)"
    )
    ended = runner(*PYTHON, "-c", script)
    os.close(read)
    os.close(write)
    first, second, *rest = runner.output().decode().splitlines()
    assert first == f"True {runner.folder}"
    assert second == "[0, 1, 2]"
    assert ended.status == 1
    assert "/dev/tty" in rest[-1]


def test_lock_is_inherited(runner: Runner) -> None:
    file = os.open(runner.folder / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_SH)
    runner.lock_fd = file
    runner("sh", "-c", f"test -e /dev/fd/{file}")
    os.close(file)


def test_ignored_sigchld_does_not_lose_the_status(runner: Runner) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert runner.child("fail", "7").status == 7
    finally:
        signal.signal(signal.SIGCHLD, before)
