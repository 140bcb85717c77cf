"""Whether a decision fits where a batch and its tasks stand; if not, what is possible instead."""

from __future__ import annotations

from collections.abc import Sequence

from git_batch.app.requests import Option, Value, written
from git_batch.app.session import Session, called
from git_batch.core import events as ev
from git_batch.core.decisions import allowed
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import BatchState
from git_batch.core.standing import TaskStatus
from git_batch.core.transitions import BATCH
from git_batch.errors import PreconditionError, UsageError
from git_batch.repo import attempts, commits
from git_batch.repo.journal import Journal
from git_batch.views.addressing import addressed
from git_batch.views.common import stands_text, state_word


def kept_work(session: Session, batch: BatchId, task: TaskId, n: int) -> tuple[Oid, Oid]:
    """Find the kept work of an attempt, or what it was given: its tree, and what that began on.

    Raises:
        UsageError: none is kept here.
    """
    read = session.refs.read
    tip = read(attempts.attempt_ref(batch, task, n)) or read(attempts.adopted_ref(batch, task, n))
    if tip is None:
        raise UsageError(
            f"no work of attempt {n} of '{task}' is kept here",
            addressed(f"git batch show {task}", called(session, batch)),
        )
    facts = commits.read(session.repo, tip)
    return facts.tree, facts.parents[0]


def must_be_allowed(
    session: Session,
    journal: Journal,
    tasks: Sequence[TaskId],
    decision: ev.Decision,
    asked: Sequence[Option] = (),
) -> None:
    """Refuse a decision that does not fit where batch and task stand; say what is possible now.

    Args:
        asked: what was given with a retry.
    """
    state = journal.state
    name = f"decided:{decision}"
    if (state.status, name) not in BATCH:
        said = stands_text(state.status)
        raise PreconditionError(
            f"batch '{state.batch_id}' {said}, so '{decision}' is not possible now",
            *_again(session, state, tasks, decision),
            f"git batch status {state.batch_id}",
        )
    for task in tasks:
        if not allowed(state, task, decision):
            raise _refused(session, journal, task, decision, asked)


def _again(
    session: Session, state: BatchState, tasks: Sequence[TaskId], decision: ev.Decision
) -> tuple[str, ...]:
    """Say how a task of a batch that is over is run again."""
    redo = ev.Decision.REDO
    if decision is not ev.Decision.RETRY or (state.status, f"decided:{redo}") not in BATCH:
        return ()
    ways = (
        _way(session, state, f"git batch undo {t} --redo") for t in tasks if allowed(state, t, redo)
    )
    return tuple(f"to have it run again: {way}" for way in ways)


def _refused(
    session: Session,
    journal: Journal,
    task: TaskId,
    decision: ev.Decision,
    asked: Sequence[Option],
) -> PreconditionError:
    state = journal.state
    if state.in_flight is not None and state.in_flight.task == task:
        skips = allowed(state, task, ev.Decision.SKIP)
        out = _way(session, state, f"git batch skip {task}")
        return PreconditionError(
            f"'{task}' is in flight, so '{decision}' is not possible now",
            f"let it end first: {_way(session, state, 'git batch resume')}",
            *([f"or take it out: {out}"] if skips else []),
        )
    status = stands(journal, task)
    said, command = _possible(state, task, status)
    return PreconditionError(
        f"'{task}' {standing_text(status)}, so '{decision}' is not possible now",
        said + (f": {_way(session, state, command)}" if command else ""),
        *(_told_more(session, state, task, asked) if decision is ev.Decision.RETRY else ()),
    )


def _told_more(
    session: Session, state: BatchState, task: TaskId, asked: Sequence[Option]
) -> tuple[str, ...]:
    """Say how a task that is to run again already is told something before it does."""
    record = state.tasks.get(task)
    if record is None or record.status is not TaskStatus.PENDING or not record.history:
        return ()
    if record.apply_only or record.replays:  # nothing of it runs
        return ()
    given: dict[str, Value] = {option: value for option, value in asked if value}
    if record.work is not None and "--from-attempt" not in given:
        left = (a.n for a in record.history if _left(session, state, task, a.n) == record.work)
        given["--from-attempt"] = next(left, None)
    words = [] if "-m" in given else ["-m 'TEXT'"]
    again = written(("git batch retry", task), given.items(), words)
    ways = (_way(session, state, command) for command in (f"git batch skip {task}", again))
    return (f"to tell it more first: {' && '.join(ways)}",)


def _left(session: Session, state: BatchState, task: TaskId, n: int) -> Oid | None:
    try:
        return kept_work(session, state.batch_id, task, n)[0]
    except UsageError:
        return None


def stands(journal: Journal, task: TaskId) -> TaskStatus:
    """Say where a task stands, what is skipped because of others included."""
    state = journal.state
    record = state.tasks.get(task)
    status = record.status if record else TaskStatus.PENDING
    skipped = state.agenda.skipped >> journal.machine.graph.index[task] & 1
    return TaskStatus.SKIPPED_BLOCKED if skipped else status


def standing_text(status: TaskStatus) -> str:
    """Say where one task stands, as the rest of a sentence about it."""
    needs = status is TaskStatus.NEEDS_HUMAN
    return state_word(status) if needs else f"is {state_word(status)}"


def _way(session: Session, state: BatchState, command: str) -> str:
    """Have a command that is hinted at mean the batch that a decision was about."""
    return addressed(command, called(session, state.batch_id))


def _possible(state: BatchState, task: TaskId, status: TaskStatus) -> tuple[str, str]:
    """Say what is so instead, and which command goes with it."""
    retried = (state.status, f"decided:{ev.Decision.RETRY}") in BATCH
    again = f"git batch retry {task}" if retried else f"git batch undo {task} --redo"
    return {
        TaskStatus.SKIPPED_BLOCKED: ("it runs once what it needs is done", "git batch report"),
        TaskStatus.PENDING: ("it runs by itself when its turn comes", "git batch resume"),
        TaskStatus.COMMITTED: (
            "its commit is part of the branch",
            f"git batch show {task} --diff",
        ),
        TaskStatus.UNCHANGED: ("it had nothing to change and is done", ""),
        TaskStatus.IN_REVIEW: ("it waits for a verdict", f"git batch show {task} --diff"),
        TaskStatus.DROPPED: ("it was taken out; to take it in again", again),
    }.get(status, ("see what can be done", f"git batch show {task}"))
