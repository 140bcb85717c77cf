"""A disk that fails at any one call: nothing is told that is not there, and resume finishes.

Reliability 11 and 13: it is full from the n-th write, or new file, on; or it can't sync.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.faulty import (
    ALWAYS,
    MAKE,
    RENAME,
    SYNC,
    WRITE,
    Faulty,
    Order,
    built,
    faulty,
    unharmed,
)
from tests.e2e.job import BRANCH, committed, refs, task, write
from tests.e2e.near import near, said

TASKS = ["one", "two", "three"]
AGAIN = "test $BATCH_ATTEMPT -ge 2"
WRONG = re.compile("Traceback|a bug in git-batch")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give what makes calls fail."""
    return built(tmp_path_factory.mktemp("faulty"))


@pytest.fixture
def planned(repo: Path) -> Path:
    """Give a repository with a plan: new files, a change, a check, an attempt that fails."""
    write(
        repo,
        task("one", unharmed("echo one >src/one"), f'check = "{unharmed("test -e src/one")}"'),
        task("two", unharmed("echo two >>src/a"), f'check = "{unharmed(AGAIN)}"', "attempts = 2"),
        task("three", unharmed("mkdir src/c; echo three >src/c/three")),
    )
    return repo


def held(found: Faulty, top: Path, order: Order) -> None:
    """See that a run which some calls failed has told the truth, and how to go on."""
    text = said(found.done)
    assert found.done.status in (0, 1, 3), found
    assert not WRONG.search(text), found
    there = git(top, "log", "--format=%H", "--all")
    told = re.findall(r": committed ([0-9a-f]{7,40})", text)
    assert all(f"\n{oid}" in f"\n{there}" for oid in told), found
    if found.done.status:
        assert re.search(r"^error: |needs a person|needs human", text, re.MULTILINE), found
        # git says it in other words in some places: of an index it does not say why.
        why = f"{os.strerror(order.error)}|diskspace|nable to write new index file"
        assert re.search(why, text), found


def finished(top: Path, found: Faulty) -> None:
    """See that on a disk that works again the batch comes to the end it would have come to."""
    begun = any(name.startswith("refs/notes/batch/") for name in refs(top))
    again = near(top, "resume" if begun else "start", "--yes", status=None)
    assert again.status == 0, (found, again)
    assert committed(top) == TASKS, (found, again)
    assert git(top, "fsck", "--strict", "--no-dangling") == "", found
    assert git(top, "status", "--porcelain", "-uall") == "?? batch.toml", found
    assert git(top, "show", f"{BRANCH}:src/a") == "a\ntwo", found


def each(
    library: Path,
    planned: Path,
    order: Order,
    every: int,
    *,
    once: bool,
    also: Callable[[Faulty], None] = lambda found: None,
) -> int:
    """Have calls fail, each in a copy of its own; give how many there are."""
    n, failed = max(1, every // 2), "the first one"
    while failed:
        copy = planned.parent / f"at{n}" / "repo"
        shutil.copytree(planned, copy, symlinks=True)
        order = replace(order, first=n, last=n if once else ALWAYS)
        found = faulty(library, copy, order, "start", "--yes")
        held(found, copy, order)
        also(found)
        finished(copy, found)
        shutil.rmtree(copy.parent)
        failed = found.failed
        n += every
    return n - every


NO_SPACE = Order(WRITE | MAKE | RENAME, errno.ENOSPC)
NO_SYNC = Order(SYNC, errno.EIO)


@pytest.mark.parametrize("once", [True, False], ids=["once", "for ever"])
@pytest.mark.parametrize("every", [150, pytest.param(1, marks=pytest.mark.long)])
def test_a_disk_that_is_full_at_any_write_loses_nothing_that_was_told(
    library: Path, planned: Path, every: int, once: bool
) -> None:
    calls = each(library, planned, NO_SPACE, every, once=once)
    assert calls > 400


def stopped(found: Faulty) -> None:
    """See that a run which can't sync any more has not gone on to its end."""
    assert bool(found.failed) == bool(found.done.status), found


def decided(found: Faulty) -> None:
    """See that a barrier which failed is not passed, and a ref that has moved has moved."""
    if re.match(r"fsync .*/\.git/refs/[^.]*$", found.failed):  # its folder, after the rename
        assert not found.done.status, found
    else:
        stopped(found)


@pytest.mark.parametrize("once", [True, False], ids=["once", "for ever"])
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_a_sync_that_fails_anywhere_takes_nothing_back_that_was_told(
    library: Path, planned: Path, every: int, once: bool
) -> None:
    calls = each(library, planned, NO_SYNC, every, once=once, also=decided if once else stopped)
    assert calls > 30


def test_what_went_wrong_a_task_was_parked_because_the_disk_was_full_for_a_moment(
    library: Path, planned: Path
) -> None:
    """When its work was looked at: what git could not do then was taken for a file's fault."""

    def not_its_fault(found: Faulty) -> None:
        assert "needs a human" not in said(found.done), found

    order = Order(MAKE, errno.ENOSPC, only="/scan.index.lock")
    calls = each(library, planned, order, 2, once=True, also=not_its_fault)
    assert calls > 5


@pytest.mark.parametrize("kind", [WRITE, MAKE], ids=["write", "make"])
def test_what_went_wrong_a_file_that_was_half_put_back_was_taken_for_a_persons(
    library: Path, planned: Path, kind: int
) -> None:
    order = Order(kind, errno.ENOSPC, only="/src/a", first=1, last=ALWAYS)
    found = faulty(library, planned, order, "start", "--yes")
    assert found.failed == f"{'write' if kind == WRITE else 'make'} {planned}/src/a"
    finished(planned, found)


def test_what_a_person_wrote_where_a_file_was_half_put_back_stays_theirs(
    library: Path, planned: Path
) -> None:
    order = Order(WRITE, errno.ENOSPC, only="/src/a", first=1, last=ALWAYS)
    found = faulty(library, planned, order, "start", "--yes")
    (planned / "src/a").write_text("a\nmine\n")
    assert "left as they are:\n\tsrc/a" in near(planned, "resume", "--yes", status=3).err
    assert (planned / "src/a").read_text() == "a\nmine\n"
    git(planned, "stash", "-q")
    finished(planned, found)
    assert git(planned, "show", "stash@{0}:src/a") == "a\nmine"
