"""A person's answer, on a real terminal: nothing is written before a yes, and all that is shown."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import LIMIT, argv, batch, committed, everything, refs, task, told, write
from tests.e2e.scene import environment

QUESTION = b"Run this? [y/N]"


def on_terminal(
    top: Path, *args: str, answer: bytes, question: bytes = QUESTION
) -> tuple[int, str]:
    """Run `git batch` on a terminal of its own; answer its question; give status and screen."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(top)
        command = argv(*args)
        os.execve(command[0], command, environment() | {"TERM": "dumb"})
    shown, answered, limit = b"", False, time.monotonic() + LIMIT
    while time.monotonic() < limit:
        if select.select([screen], [], [], 0.2)[0]:
            try:
                piece = os.read(screen, 65536)
            except OSError:  # EIO: the last one on the other side has closed it
                break
            if not piece:
                break
            shown += piece
        if not answered and question in shown:
            os.write(screen, answer)
            answered = True
    else:
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(screen)
    text = shown.decode().replace("\r\n", "\n")
    assert answered, text
    assert "Traceback" not in text
    return status, text


@pytest.fixture
def planned(repo: Path) -> Path:
    """Give a repository with a plan of two tasks."""
    write(repo, task("a", "echo one >src/new", 'check = "grep one src/new"'), task("b", "rm src/b"))
    return repo


@pytest.mark.parametrize("answer", [b"y\n", b"yes\n", b"Y\n"])
def test_a_yes_runs_the_plan(planned: Path, answer: bytes) -> None:
    status, text = on_terminal(planned, "start", answer=answer)
    assert status == 0, text
    assert committed(planned) == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"n\n", 3),
        (b"\n", 3),
        (b"N\n", 3),
        (b"perhaps\nno\n", 3),
        (b"\x04", 3),  # end of file
        (b"\x03", 130),  # Ctrl-C
    ],
)
def test_anything_else_writes_nothing(planned: Path, answer: bytes, status: int) -> None:
    before = everything(planned)
    found, text = on_terminal(planned, "start", answer=answer)
    assert found == status, text
    assert everything(planned) == before


def test_a_person_sees_every_command_and_bound_before_the_question(planned: Path) -> None:
    options = ("--max-tasks", "7", "--deadline", "9h", "--expires", "2099-01-01T00:00:00Z")
    _, text = on_terminal(planned, "start", *options, answer=b"n\n")
    shown = text[: text.index("Run this?")]
    digest = git(planned, "rev-parse", "main")
    for expected in (
        "echo one >src/new",
        "grep one src/new",
        "rm src/b",
        "src/**",
        "batch/demo",
        digest,
        "sha256:",
        "T <t@x>",
        "7 enrollments",
        "2099-01-01",
    ):
        assert expected in shown


def test_without_a_terminal_nobody_can_confirm(planned: Path) -> None:
    before = everything(planned)
    done = batch(planned, "start", status=3, input="y\n")
    assert done.hints == ["confirm beforehand with '--yes'"]
    assert everything(planned) == before


def test_a_renewal_is_asked_for_and_a_no_keeps_the_stop(planned: Path) -> None:
    batch(planned, "start", "--yes", "--max-tasks", "1", status=1)
    before, said = refs(planned), told(planned)
    question = b"Go on with this? [y/N]"
    more = ("resume", "--max-tasks", "+1")
    status, text = on_terminal(planned, *more, answer=b"n\n", question=question)
    assert (status, refs(planned), told(planned)) == (3, before, said), text
    status, text = on_terminal(planned, *more, answer=b"y\n", question=question)
    assert status == 0, text
    assert "will not run (1): a" in text
    assert told(planned)["authorization"]["seq"] == 2


@pytest.mark.parametrize(
    "meanwhile",
    [
        "sed -i s/one/other/ batch.toml",
        "git commit -q --allow-empty -m else",
        "git branch batch/demo && git commit -q --allow-empty -m else",
        "echo x >>src/a",
        "git switch -q -c elsewhere",
    ],
)
def test_what_changes_while_a_person_reads_is_refused(planned: Path, meanwhile: str) -> None:
    """The answer is to what was shown: everything is checked again after it."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(planned)
        command = argv("start")
        os.execve(command[0], command, environment() | {"TERM": "dumb"})
    shown = b""
    while QUESTION not in shown:
        assert select.select([screen], [], [], LIMIT)[0]
        shown += os.read(screen, 65536)
    subprocess.run(meanwhile, cwd=planned, shell=True, check=True)
    before = refs(planned)
    os.write(screen, b"y\n")
    try:
        while select.select([screen], [], [], LIMIT)[0] and (piece := os.read(screen, 65536)):
            shown += piece
    except OSError:
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(screen)
    assert status == 3, shown.decode()
    assert refs(planned) == before
