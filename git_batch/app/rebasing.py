"""`git batch rebase`: the tasks' commits on another base, each replayed, checked and certified.

A rebase is a decision, not a second loop. It records where the branch was (which keeps the old line
alive), which commit each task had, and the new base; then branch, index and files go there
(`following`). `resume` does the rest: the change of each old commit is kept work that is applied to
the tip, compared with the scope, checked, and committed by an event of its own, in the order of the
old line. The authorization names the old base, so a person confirms first.

Commits of nobody's task are not replayed: what a person had blessed is told, what was undone and
its revert are not missed.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from git_batch.app import preconditions
from git_batch.app.allowing import must_be_allowed
from git_batch.app.branchline import commits_of, committed_tasks
from git_batch.app.deciding import Deciding
from git_batch.app.following import follow, must_be_ready, nothing_in_the_way
from git_batch.app.session import Session
from git_batch.app.verifying import commit_of
from git_batch.core import events as ev
from git_batch.core.decisions import replaying
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, Line
from git_batch.errors import PreconditionError
from git_batch.repo.objects import is_ancestor


class Rebased(Struct, frozen=True):
    """What was recorded.

    Attributes:
        left: the base and head before.
        tasks: those whose commits are replayed, in this order.
        foreign: blessed commits of the old line, which are not; oldest first.
    """

    state: BatchState
    left: Line
    tasks: tuple[TaskId, ...]
    foreign: tuple[Oid, ...]


def rebase(session: Session, batch: str | None, *, onto: str, words: str, at: datetime) -> Rebased:
    """Record that the batch goes on from another base, and put the branch there.

    Args:
        onto: the new base, as git names commits.

    Raises:
        UsageError: `onto` names no commit.
        PreconditionError: batch, branch or files are not ready for it; nothing was written.
    """
    with Deciding(session, batch, at) as journal:
        before = journal.state
        follow(session, before)
        preconditions.plan_is_known(journal.machine.plan, before)
        must_be_allowed(session, journal, [], ev.Decision.REBASE)
        _nothing_in_flight(before)
        base = commit_of(session, onto)
        _must_be_another(session, before, base, onto)
        must_be_ready(session, before)
        nothing_in_the_way(session, before.head, base)
        tasks, names = _to_replay(session, before)
        who = session.idents().author
        state = journal.append(
            ev.Decided(at, ev.Decision.REBASE, who, tasks, words, names, base, former=before.head)
        )
        follow(session, state)
        return Rebased(state, state.former[-1], tasks, before.foreign)


def _nothing_in_flight(state: BatchState) -> None:
    flight = state.in_flight
    if flight is not None:
        raise PreconditionError(
            f"'{flight.task}' is in flight; it would begin on one base and end on another",
            f"let it end first: git batch resume {state.batch_id}",
            "'git batch stop' ends a run after its task",
        )


def _must_be_another(session: Session, state: BatchState, base: Oid, onto: str) -> None:
    """Refuse the base that the batch has, and one that holds commits of the batch."""
    if base == state.base:
        raise PreconditionError(f"batch '{state.batch_id}' is based on '{onto}' already")
    for line in (*state.former, Line(state.base, state.head, 0)):
        first = next(iter(commits_of(session, line)), None)
        if first is not None and is_ancestor(session.repo.git, first, base):
            raise PreconditionError(
                f"'{onto}' contains commits of batch '{state.batch_id}', from {first[:12]} on; "
                "they would be applied twice",
                "finish the batch where it is, or start what is left as a batch of its own",
            )


def _to_replay(session: Session, state: BatchState) -> tuple[tuple[TaskId, ...], tuple[Oid, ...]]:
    """List the tasks with a commit, in the order of the branch, and those that wait for it."""
    found = committed_tasks(session, state)
    waiting = [t for t in state.tasks if replaying(state, t)]
    for task in sorted(waiting, key=lambda t: state.tasks[t].turn):
        replays = state.tasks[task].replays
        assert replays is not None
        found[task] = replays
    return tuple(found), tuple(found.values())
