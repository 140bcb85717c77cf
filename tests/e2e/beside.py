"""A run beside the test, in a process of its own, which the test waits for or holds up."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tests.e2e.job import LIMIT, argv
from tests.e2e.scene import environment


@contextlib.contextmanager
def beside(top: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process of its own meanwhile; what is left of it at the end is ended."""
    with subprocess.Popen(
        argv(*args),
        cwd=top,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            yield run
        finally:
            if run.poll() is None:
                run.kill()


def until(run: subprocess.Popen[str], text: str) -> None:
    """Read what a run says until it has said a text."""
    assert run.stderr is not None
    while text not in (line := run.stderr.readline()):
        assert line, f"it ended without saying '{text}'"


def ended(run: subprocess.Popen[str], status: int) -> str:
    """Wait for a run and insist on its exit status; give all that it said."""
    out, err = run.communicate(timeout=LIMIT)
    assert run.returncode == status, out + err
    return out + err


def opened(gate: Path, run: subprocess.Popen[str]) -> IO[str]:
    """Open a fifo as soon as a task of a run reads it; it stands still until it gets a line."""
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit and run.poll() is None:
        try:
            fd = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.005)
        else:
            time.sleep(0.3)  # the record is published once a command is slow
            return os.fdopen(fd, "w")
    raise AssertionError(run.communicate())
