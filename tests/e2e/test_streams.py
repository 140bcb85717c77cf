"""Runs whose standard streams are closed or lead nowhere, as a daemon's or a lost terminal's do."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.e2e.job import LIMIT, argv, committed, task, write
from tests.e2e.scene import environment


@pytest.mark.parametrize(
    "streams", ["2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full", "2>/dev/full </dev/null"]
)
def test_a_run_that_could_tell_nobody_was_a_bug_or_stopped(repo: Path, streams: str) -> None:
    write(repo, task("one", "echo 1 >src/1"), task("two", "echo 2 >src/2", 'check = "true"'))
    line = f"exec {shlex.join(argv('start', '--yes'))} {streams}"
    done = subprocess.run(["sh", "-c", line], cwd=repo, env=environment(), timeout=LIMIT)
    assert done.returncode == 0
    assert committed(repo) == ["one", "two"]


def test_a_run_whose_terminal_is_gone_went_no_further(repo: Path) -> None:
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(repo, task("one", f"read x <{gate}; echo 1 >src/1"), task("two", "echo 2 >src/2"))
    terminal, ours = pty.openpty()
    line = ["sh", "-c", f"trap '' HUP; exec {shlex.join(argv('start', '--yes'))}"]
    with subprocess.Popen(line, cwd=repo, env=environment(), stdin=ours, stdout=ours, stderr=ours,
                          start_new_session=True) as run:  # fmt: skip
        os.close(ours)
        with gate.open("w") as go:  # the first task is at work
            os.close(terminal)
            go.write("x\n")
        assert run.wait(LIMIT) == 0
    assert committed(repo) == ["one", "two"]
