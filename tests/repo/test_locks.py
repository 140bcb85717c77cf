"""Run locks: whoever does not get one says who has it."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from git_batch.errors import LockedError
from git_batch.repo.locks import HOST, RunLock, run_locks
from git_batch.repo.repository import Repository

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GONE = json.dumps({"pid": 2**22 + 1, "host": HOST, "since": AT.isoformat(), "batch": "demo-aaaaaa"})
"""What is left of a holder that has ended: no process has such a number."""


@pytest.mark.parametrize("left", ["", GONE], ids=["nothing", "who had it before"])
def test_a_winner_who_has_not_written_their_name_yet_is_waited_for(repo: Path, left: str) -> None:
    opened = Repository.open(str(repo))
    (path,) = run_locks(opened, None)
    Path(path).parent.mkdir(exist_ok=True)
    name = json.dumps({"pid": os.getpid(), "host": HOST, "since": "now", "batch": "demo-bbbbbb"})
    with Path(path).open("w") as winner:
        winner.write(left)
        winner.flush()
        fcntl.flock(winner, fcntl.LOCK_EX)
        late = threading.Timer(0.1, lambda: Path(path).write_text(name))
        late.start()
        expected = f"batch 'demo-bbbbbb' is being run by process {os.getpid()} on {HOST} since now"
        with pytest.raises(LockedError, match=expected), RunLock(opened, None, AT):
            pass
        late.join()


NONSENSE = (
    "", "{", "[1]", "9" * 5000, "[" * 4000, '{"pid": 1, "more": 2}', '{"pid": "x"}', '{"pid": 1e9}',
    f'{{"pid": "x", "host": "{HOST}"}}', f'{{"pid": {"9" * 25}, "host": "{HOST}"}}',
)  # fmt: skip


@pytest.mark.parametrize("name", NONSENSE, ids=range(len(NONSENSE)))
def test_what_went_wrong_a_name_that_makes_no_sense_was_a_bug(repo: Path, name: str) -> None:
    opened = Repository.open(str(repo))
    (path,) = run_locks(opened, None)
    Path(path).parent.mkdir(exist_ok=True)
    with Path(path).open("w") as held:
        held.write(name)
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match="is being run by"), RunLock(opened, None, AT):
            pass


def test_who_gets_the_lock_of_one_that_has_ended_writes_their_own_name_only(repo: Path) -> None:
    opened = Repository.open(str(repo))
    (path,) = run_locks(opened, None)
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(GONE + " " * 200)
    with RunLock(opened, None, AT):
        assert json.loads(Path(path).read_text())["pid"] == os.getpid()
