"""What this repository knows of a batch, changed by several at once."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from git_batch.core.ids import BatchId, Oid
from git_batch.core.model import Actor, Authorization
from git_batch.core.values import replace
from git_batch.repo import trust
from git_batch.repo.repository import Repository

BATCH = BatchId("demo-abc123")
GRANT = Authorization(
    seq=1,
    actor=Actor("T", "t@x"),
    confirmed_at=datetime(2026, 1, 1, tzinfo=UTC),
    plan_digest="",
    branch="batch/demo",
    base=Oid("0" * 40),
    nonce="",
)


def test_what_went_wrong_a_run_that_ended_while_somebody_asked_it_to_stop_was_a_bug(
    repo: Path,
) -> None:
    """Both wrote how far they have seen the record go, into one file of one name."""
    here = Repository.open(str(repo))

    def note(first: int) -> None:
        for step in range(first, 1000, 4):
            trust.seen(here, BATCH, step, None)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(note, range(4)))
    assert trust.load(here, BATCH).step == 999


def test_what_went_wrong_of_two_renewals_at_once_one_was_asked_for_again(repo: Path) -> None:
    here = Repository.open(str(repo))
    grants = [replace(GRANT, nonce=str(n)) for n in range(20)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda grant: trust.confirm(here, BATCH, grant, {}), grants))
    known = trust.load(here, BATCH)
    assert all(map(known.confirmed, grants))


def test_a_process_that_stands_still_with_the_lock_holds_nobody_up(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Repository.open(str(repo))
    trust.seen(here, BATCH, 1, None)
    monkeypatch.setattr(trust, "LOCK_WAIT", 0.1)
    with (repo / ".git/batch/authorized.lock").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        trust.seen(here, BATCH, 2, None)
    assert trust.load(here, BATCH).step == 1  # a cache: what it has not got is asked for again
    trust.seen(here, BATCH, 3, None)
    assert trust.load(here, BATCH).step == 3
