"""What the reading commands ask for; nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from git_batch.app.glances import glance, kept_here
from git_batch.app.session import Session, must_choose
from git_batch.core import entries
from git_batch.core.chain import reading_of
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import BatchState, InFlight, Plan, TaskRecord
from git_batch.core.standing import Outcome, TaskStatus
from git_batch.errors import BatchError, GitError, UsageError
from git_batch.repo import attempts, claims, history, recordread
from git_batch.repo.locks import Holder
from git_batch.repo.trees import patch
from git_batch.views.common import Around

Logs = Callable[[TaskId, int], bytes | None]


class Whole(Struct, frozen=True):
    """A batch with every task."""

    state: BatchState
    plan: Plan
    live: Holder | None
    around: Around
    logs: Logs


def whole(session: Session, named: str | None) -> Whole | None:
    """Read a batch with every task; None if there is none here."""
    found = glance(session, named)
    if found is None:
        return None
    batch = found.summary.batch_id
    _, plan, state = recordread.read(session.repo, session.refs, batch)
    places = {task.id: i for i, task in enumerate(plan.tasks)}

    def logs(task: TaskId, n: int) -> bytes | None:
        try:
            return attempts.read_log(session.repo, session.refs, batch, places[task], task, n)
        except GitError as error:  # one that is damaged hides nothing else
            return f"(not to be had: {error.message})".encode()

    kept = found.kept or kept_here(session, batch)
    reviewed = reviews_ended(session, state, found.summary.ref_tip)
    around = found.around._replace(kept=kept, reviewed=reviewed)
    return Whole(state, plan, found.live, around, logs)


def reviews_ended(session: Session, state: BatchState, tip: Oid | None) -> history.Ends:
    """Say how the attempts ended that were left for a review; the record is read if any did.

    Args:
        tip: where the record's ref is.
    """
    waiting = state.agenda.review.bit_count() - state.agenda.accepted.bit_count()
    tried: list[TaskRecord | InFlight] = [*state.tasks.values()]
    tried += [state.in_flight] if state.in_flight else []
    left = sum(a.outcome is Outcome.REVIEW_PENDING for each in tried for a in each.history)
    if tip is None or left == waiting:
        return {}
    try:
        return history.reviews_ended(entry for _, entry in history.history(session.repo, tip))
    except BatchError:  # an old event is damaged: what the attempts themselves say is here
        return {}


def events(session: Session, named: str | None) -> list[tuple[Oid, entries.Entry]]:
    """Read every transition of a batch, oldest first."""
    found = must_choose(session, named)
    assert found.ref_tip is not None
    with reading_of(found.batch_id):
        return history.history(session.repo, found.ref_tip)


def known_in(
    session: Session, named: str | None, found: Sequence[tuple[Oid, entries.Entry]], task: TaskId
) -> TaskId:
    """See that a batch has or had a task: a plan that was in force before may have named it.

    Raises:
        UsageError: it does not; with the nearest id.
    """
    from git_batch.app.deciding import known_task  # that imports what only a decision needs

    if any(getattr(entry.event, "task", None) == task for _, entry in found):
        return task
    return known_task(recordread.read(session.repo, session.refs, _id(session, named))[1], task)


def _id(session: Session, named: str | None) -> BatchId:
    return must_choose(session, named).batch_id


def claimed(session: Session) -> dict[str, claims.Claim | GitError]:
    """Read who claims which slug, or slug and task, in this repository, or why that isn't known."""
    return claims.listed(session.repo, session.refs)


def task_diff(session: Session, state: BatchState, task: TaskId, n: int | None) -> bytes:
    """Give the diff of a task's commit, or of the work that an attempt left; empty if none."""
    item: TaskRecord | InFlight | None = state.tasks.get(task)
    flight = state.in_flight
    if flight is not None and flight.task == task:
        item = flight
    history = item.history if item else ()
    stands = _stands_for(item) if n is None else None
    if stands is not None:
        new: str = stands
    else:
        wanted = [a for a in history if a.ref and n in (None, a.n)]
        if not wanted or wanted[-1].ref is None:
            return b""
        new = wanted[-1].ref
        if session.refs.read(new) is None:
            raise UsageError(
                f"the work of attempt {wanted[-1].n} of '{task}' is not here any more",
                "'git batch prune' dropped it, or it was kept in another clone",
            )
    return patch(session.repo.git, f"{new}^", new)


def _stands_for(item: TaskRecord | InFlight | None) -> Oid | None:
    """Name the commit that is a task's change: its own, or one to replay that nothing came of."""
    if item is None:
        return None
    if isinstance(item, TaskRecord):
        if item.commit is not None:
            return item.commit
        if item.status is TaskStatus.NEEDS_HUMAN and item.history[-1].ref is not None:
            return None
    return item.replays
