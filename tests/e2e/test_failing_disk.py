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
ID = re.compile(r"demo-[a-z0-9]{6}")
WHOLE = """\
created ID
authorized by T (1)
one: enrolled
one: command done
one: checks passed
one: settled
one: committed
two: enrolled
two: command done
two: attempt 1 failed (check_failed)
two: work kept, tried again
two: next attempt started
two: command done
two: checks passed
two: settled
two: committed
three: enrolled
three: command done
three: settled
three: committed
closed: completed
""".splitlines()
"""What is recorded if nothing fails."""


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


def recorded(top: Path) -> list[str]:
    """List the events of the record as git alone reads them, oldest first."""
    names = [name for name in refs(top) if name.startswith("refs/notes/batch/")]
    listed = ["log", "--first-parent", "--reverse", "--format=%s"]
    return [line for name in names for line in git(top, *listed, name).splitlines()]


def on_branch(top: Path) -> list[tuple[str, str]]:
    """List the commits of the batch's branch, oldest first: task and id."""
    if f"refs/heads/{BRANCH}" not in refs(top):
        return []
    form = "--format=%(trailers:key=Batch-Task,valueonly,separator=)%x09%H"
    lines = git(top, "log", "--reverse", form, f"main..{BRANCH}").splitlines()
    return [(name, oid) for name, _, oid in (line.partition("\t") for line in lines)]


def held(found: Faulty, top: Path, order: Order) -> None:
    """See that a run which some calls failed has told the truth, and how to go on."""
    text = said(found.done)
    assert found.done.status in (0, 1, 3), found
    assert not WRONG.search(text), found
    events, commits = recorded(top), on_branch(top)
    for name, told in re.findall(r"(\w+): committed ([0-9a-f]{7,40})", text):
        assert any(n == name and oid.startswith(told) for n, oid in commits), (found, commits)
        assert f"{name}: committed" in events, (found, events)
    where_it_was(found, events, [name for name, _ in commits])
    # Of a run that has come to its end what it has seen may be all that could not be written.
    assert "completed: all" not in text or events[-1] == "closed: completed", (found, events)
    if found.done.status:
        assert re.search(r"^error: |needs a person|needs human", text, re.MULTILINE), found
        # git says it in other words in some places: of an index it does not say why.
        why = f"{os.strerror(order.error)}|diskspace|nable to write new index file"
        assert re.search(why, text), found


def where_it_was(found: Faulty, events: list[str], commits: list[str]) -> None:
    """See that a record holds some of the events there would have been, in their order.

    Nothing else: what could not be done leaves no trace but that it stopped the batch.
    """
    kept = [ID.sub("ID", name) for name in events]
    if kept[-1:] == ["closed: needs_human (commit_failed)"]:
        kept.pop()
    assert kept == WHOLE[: len(kept)], (found, events)
    done = sum(name.endswith(": committed") for name in kept)
    assert commits == TASKS[: len(commits)], (found, commits)
    assert done <= len(commits) <= done + 1, (found, events, commits)
    assert found.done.status or kept == WHOLE, (found, events)


def finished(top: Path, found: Faulty) -> None:
    """See that on a disk that works again the batch comes to the end it would have come to."""
    begun = any(name.startswith("refs/notes/batch/") for name in refs(top))
    again = near(top, "resume" if begun else "start", "--yes", status=None)
    assert again.status == 0, (found, again)
    assert committed(top) == TASKS, (found, again)
    assert git(top, "fsck", "--strict", "--no-dangling") == "", found
    assert git(top, "status", "--porcelain", "-uall") == "?? batch.toml", found
    assert git(top, "show", f"{BRANCH}:src/a") == "a\ntwo", found
    assert recorded(top)[-1] == "closed: completed", found
    near(top, "verify")


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


@pytest.mark.parametrize(("only", "every"), [("/scan.index.lock", 3), ("/tmp_obj_", 2)])
def test_what_went_wrong_a_task_was_parked_because_the_disk_was_full_for_a_moment(
    library: Path, planned: Path, only: str, every: int
) -> None:
    """When its work was looked at: what git could not do then was taken for a file's fault."""

    def not_its_fault(found: Faulty) -> None:
        assert not re.search("needs a human|scope refused", said(found.done)), found

    order = Order(MAKE, errno.ENOSPC, only=only)
    calls = each(library, planned, order, every, once=True, also=not_its_fault)
    assert calls > 3


@pytest.mark.parametrize(
    "only", ["/batch/run.lock", "/batch/boot", "/batch/fence.armed", "/feedback.txt"]
)
def test_a_file_of_ours_that_can_not_be_made_is_told_as_a_full_disk(
    library: Path, planned: Path, only: str
) -> None:
    order = Order(MAKE, errno.ENOSPC, only=only, first=1, last=ALWAYS)
    found = faulty(library, planned, order, "start", "--yes")
    assert only in found.failed
    assert found.done.status, found
    held(found, planned, order)
    finished(planned, found)


def test_what_can_not_be_moved_aside_stays_where_it_is(library: Path, repo: Path) -> None:
    work = "git init -q src/new && echo mine >src/new/file && git -C src/new add file"
    write(repo, task("one", unharmed(work), 'check = "false"'), task("two", "echo 2 >src/two"))
    order = Order(MAKE, errno.ENOSPC, only="/batch/kept", first=1, last=ALWAYS)
    found = faulty(library, repo, order, "start", "--yes")
    assert found.done.status == 1, found
    assert "can't put back" in found.done.err, found
    assert (repo / "src/new/file").read_text() == "mine\n"
    near(repo, "resume", "--yes", status=1)
    kept = [path.read_text() for path in (repo / ".git/batch/kept").rglob("file")]
    assert kept == ["mine\n"] * 2, "once for each attempt"
    assert committed(repo) == ["two"]


def test_what_is_told_is_recorded_wherever_the_record_can_not_be_written(
    library: Path, planned: Path
) -> None:
    order = Order(MAKE, errno.ENOSPC, only="/refs/notes/batch/demo-")
    assert each(library, planned, order, 3, once=False) > 6


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
