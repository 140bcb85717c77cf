"""What every use case begins with: the repository, its refs, and which batch is meant."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from git_batch.core.ids import BATCH_ID, BatchId, slug_of
from git_batch.core.naming import few
from git_batch.errors import BatchError, PreconditionError, RecordError, UsageError
from git_batch.repo import batches
from git_batch.repo.armed import is_suspect
from git_batch.repo.here import here
from git_batch.repo.locks import LOCK_NAME
from git_batch.repo.repository import Repository, discover

if TYPE_CHECKING:
    # At run time they are imported on first use: they load libgit2, `status` does without.
    from git_batch.repo.commits import Idents
    from git_batch.repo.refs import Refs


def _nowhere(text: str) -> None:
    """Drop a note."""


class Session:
    """An open repository.

    Attributes:
        note: says to a person what is found and put right on the way.
    """

    def __init__(self, repo: Repository, note: Callable[[str], None] = _nowhere) -> None:
        self.repo, self.note = repo, note

    @cached_property
    def refs(self) -> Refs:
        """Its refs, to be read and swapped."""
        from git_batch.repo.refs import Refs

        return Refs(self.repo)

    def idents(self) -> Idents:
        """Say who works here, as git finds it; refused if git does not know."""
        from git_batch.repo import commits

        return commits.idents(self.repo)


def open_session(start: str = ".", note: Callable[[str], None] = _nowhere) -> Session:
    """Open the repository that a directory belongs to."""
    repo = Repository.open(start)
    if is_suspect(repo.layout):
        from git_batch.app import aftermath  # rarely needed; it imports libgit2

        if aftermath.may_be_planted(repo):
            repo.git.stay_here()
    return Session(repo, note)


def now() -> datetime:
    """Read the clock, in the person's own offset, as git does for commits."""
    return datetime.now(UTC).astimezone()


def choose(session: Session, named: str | None) -> batches.Summary | None:
    """Find the batch that is meant (product.md, Commands); None if there is none here.

    Nor is there one where the current branch is of a batch whose record is not here: no other is
    meant then.

    Raises:
        UsageError: a batch is named that is not here.
    """
    if named and BATCH_ID.match(named):
        one = batches.find(session.repo, BatchId(named))
        if one is not None:
            return one
    found = batches.listed(session.repo)
    if named:
        mine = [s for s in found if s.slug == named]
        mine = mine or [s for s in found if named in (s.batch_id, s.branch)]
        if not mine:
            from git_batch.app.unrecorded import only_fetched  # rarely needed; it imports us

            known = few([s.batch_id for s in found], 5) or "none"
            raise UsageError(
                f"there is no batch '{named}' here",
                *only_fetched(session, named),
                f"batches here: {known}",
            )
        return _first_unfinished(mine)
    if not found:
        return None
    on = session.repo.symbolic_head() or ""
    here = [s for s in found if f"refs/heads/{s.branch}" == on]
    if here:
        return _first_unfinished(here)
    if _unrecorded_here(session, on, found):
        return None
    unfinished = [s for s in found if s.unfinished]
    return unfinished[0] if len(unfinished) == 1 else found[0]


def _unrecorded_here(session: Session, on: str, found: list[batches.Summary]) -> bool:
    """Tell whether the current branch is, by its name and trailers, of a batch without a record.

    The name counts as well: a base has the commits of every batch that was merged into it.
    """
    slug = on.removeprefix("refs/heads/batch/")
    if slug == on:
        return False
    from git_batch.app.unrecorded import unrecorded  # rarely needed; it imports us

    left = unrecorded(session)
    known = {summary.batch_id for summary in found}
    return left is not None and slug_of(left.batch) == slug and left.batch not in known


def called(session: Session, batch: BatchId) -> BatchId | None:
    """Say what a command has to call a batch; None where one that names no batch means it."""
    meant = choose(session, None)
    return None if meant is not None and meant.batch_id == batch else batch


def _first_unfinished(found: list[batches.Summary]) -> batches.Summary:
    return next((s for s in found if s.unfinished), found[0])


def must_choose(session: Session, named: str | None) -> batches.Summary:
    """Find the batch that is meant; refused if there is none, or its ref can't be read."""
    found = choose(session, named)
    if found is None:
        raise no_batch(session)
    if found.ref_tip is None:
        found.readable()
    return found


def no_batch(session: Session) -> BatchError:
    """Say that there is no batch here, and how to come by one."""
    from git_batch.app.planning import first_step  # rarely needed, nor is the other
    from git_batch.app.unrecorded import only_fetched, unrecorded

    left = unrecorded(session)
    if left is not None:
        return RecordError(f"the record of batch '{left.batch}' is not here", f"get it: {left.way}")
    return PreconditionError(
        "there is no batch in this repository",
        *(only_fetched(session, None) or [f"begin with: {first_step(session.repo.layout.top)}"]),
    )


def outside_of_tasks() -> None:
    """Refuse to start, renew, decide or force anything from inside a task.

    A task that clears its environment is still a child of the run; where the kernel tells whose
    child we are, that is looked at as well.

    Raises:
        PreconditionError: a task's command runs us.
    """
    # Imported late: `status` comes by here and must start fast.
    from git_batch.run.descendants import MARKER
    from git_batch.run.procfs import ancestor_holding

    task = os.environ.get("BATCH_TASK")
    inside = f"task '{task}'" if task else "a run" if os.environ.get(MARKER) else None
    if inside is None:
        runner = ancestor_holding(LOCK_NAME)
        inside = f"the run of process {runner}" if runner is not None else None
    if inside is not None:
        raise PreconditionError(
            f"this runs inside {inside}; a task can't start, renew or decide anything",
            "a person does that, in a shell of their own",
        )


def top_or_here() -> str:
    """Give the top of the working tree, or this directory where there is no repository."""
    place = here()
    try:
        return discover(place).top
    except PreconditionError:
        return place
