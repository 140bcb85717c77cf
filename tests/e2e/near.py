"""`git batch` run in this very process: twenty times as fast, for tests that run it many times."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from git_batch.cli import resuming, starting
from git_batch.cli.main import main
from tests.bench.paired import TOOL
from tests.conftest import git
from tests.e2e.job import BRANCH, Done, task, write


def near(top: Path, *args: str, status: int | None = 0) -> Done:
    """Run a command and insist on its exit status; None takes any."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(top), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ended = main(list(args))
    done = Done(int(ended), out.getvalue(), err.getvalue())
    assert status in (None, done.status), done
    return done


def pasted(top: Path, command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that was hinted at, as a person does who pastes it into a shell."""
    env = {**os.environ, "PATH": f"{Path(TOOL[0]).parent}:{os.environ['PATH']}"}
    shell = ["/bin/sh", "-c", command]
    done = subprocess.run(shell, cwd=top, env=env, capture_output=True, text=True)
    if done.returncode != status:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def said(done: Done) -> str:
    """Give all that a command said."""
    return done.out + done.err


def set_clock(monkeypatch: pytest.MonkeyPatch, read: Callable[[], datetime]) -> None:
    """Let runs that are started or resumed in this process read another clock."""
    for command in (starting, resuming):
        monkeypatch.setattr(command, "now", read)


PASSED = "2020-01-01T01:00:00Z"
"""A time that lies ahead for a start `while_it_passes`, and has passed for its first task."""


@contextlib.contextmanager
def while_it_passes(top: Path) -> Iterator[None]:
    """Let a start be confirmed in 2020, and all that comes after its confirmation be now."""
    then = datetime(2020, 1, 1, tzinfo=UTC)
    with pytest.MonkeyPatch.context() as patch:
        set_clock(patch, lambda: datetime.now(UTC) if record(top) else then)
        yield


TASKS = ("one", "two", "three")


def finished(template: Path, place: Path, *parts: str) -> Path:
    """Make a repository with a completed batch of three tasks, `src/<task>` each."""
    shutil.copytree(template, place, symlinks=True)
    wanted = parts or tuple(task(n, f"echo {n} >src/{n}") for n in TASKS)
    write(place, *wanted)
    near(place, "start", "--yes")
    return place


def record(top: Path) -> str:
    """Name the ref of the only record here."""
    return git(top, "for-each-ref", "--format=%(refname)", "refs/notes/batch")


def back_to(head: str, tip: str) -> str:
    """Give what is done where the branch is checked out, to put it back to its recorded head."""
    return f"git reset --keep {head} && git branch {BRANCH}-aside-{tip[:10]} ORIG_HEAD"


def by_hand(top: Path, name: str = "hand") -> str:
    """Commit something as a person does."""
    (top / "src" / name).write_text(f"{name} {git(top, 'rev-parse', 'HEAD')}\n")
    git(top, "add", f"src/{name}")
    git(top, "commit", "-qm", f"{name} by hand")
    return git(top, "rev-parse", "HEAD")
