"""The branch of a batch as a line of commits: their order is the order in which things came.

Clocks say nothing about that: they are set back, and differ from one machine to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from git_batch.app.session import Session
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, Line
from git_batch.core.standing import TaskStatus
from git_batch.errors import RecordError
from git_batch.repo import commits


def commits_of(session: Session, line: Line) -> Sequence[Oid]:
    """List the commits from a base to a head, oldest first.

    Raises:
        RecordError: the base is not below the head.
    """
    found: list[Oid] = []
    oid = line.head
    while oid != line.base:
        found.append(oid)
        parents = commits.read(session.repo, oid).parents
        if not parents:
            raise RecordError(
                f"the recorded base {line.base} is not below {line.head}", "git batch verify"
            )
        oid = parents[0]
    return found[::-1]


def committed_tasks(session: Session, state: BatchState) -> dict[TaskId, Oid]:
    """Give the tasks that have a commit, with it, in the order of the branch.

    Raises:
        RecordError: one of the commits is not on the branch.
    """
    holders = {r.commit: t for t, r in state.tasks.items() if r.status is TaskStatus.COMMITTED}
    line = commits_of(session, Line(state.base, state.head, 0))
    found = {holders[oid]: oid for oid in line if oid in holders}
    missing = [t for t in holders.values() if t not in found]
    if missing:
        raise RecordError(
            f"the commit of '{missing[0]}' is not on '{state.branch}'", "git batch verify"
        )
    return found
