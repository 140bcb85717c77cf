"""A person's decisions: one event each, with actor and reason, allowed where the tables say so."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from git_batch.app import aftermath, preconditions
from git_batch.app.beside import append_beside
from git_batch.app.claiming import let_go, let_go_of_task
from git_batch.app.following import must_not_be_behind
from git_batch.app.session import Session, called, must_choose, outside_of_tasks
from git_batch.core import events as ev
from git_batch.core.agenda import is_stuck
from git_batch.core.decisions import allowed
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import BatchState, Plan
from git_batch.core.standing import RESUMABLE, BatchStatus, TaskStatus
from git_batch.core.transitions import BATCH, IllegalTransition
from git_batch.errors import BatchError, PreconditionError, UsageError
from git_batch.repo import attempts, commits
from git_batch.repo.journal import Journal
from git_batch.repo.locks import RunLock
from git_batch.run.context import new_runner
from git_batch.run.lineage import is_made
from git_batch.views.addressing import addressed
from git_batch.views.common import stands_text, state_word


class Named(Struct, frozen=True):
    """A task as a person names it: `TASK` or `BATCH:TASK`."""

    batch: str | None
    task: TaskId

    @classmethod
    def parse(cls, text: str) -> Named:
        """Read what was typed."""
        batch, colon, task = text.rpartition(":")
        return cls(batch if colon else None, TaskId(task))


class Taken(Struct, frozen=True):
    """A decision that was about more tasks than the one that was named, maybe.

    It is `stuck` if nothing can run now but what needs the first of them.
    """

    state: BatchState
    tasks: tuple[TaskId, ...]
    stuck: bool = False


class Again(Struct, frozen=True):
    """A task that is to run again; `skipped` as long as what it needs is not done."""

    state: BatchState
    skipped: bool


def retry(
    session: Session, task: str, *, words: str, from_attempt: int | None, at: datetime
) -> Again:
    """Let a parked or dropped task run again, with a person's words as its feedback."""
    named = Named.parse(task)
    with Deciding(session, named.batch, at) as journal:
        known = known_task(journal.machine.plan, named.task)
        must_be_allowed(session, journal, [known], ev.Decision.RETRY)
        work, base = (None, None)
        if from_attempt is not None:
            work, base = kept_work(session, journal.state.batch_id, known, from_attempt)
        event = ev.Decision.RETRY
        state = decide(session, journal, event, [known], words, at, work=work, work_base=base)
        return Again(state, stands(journal, known) is TaskStatus.SKIPPED_BLOCKED)


def skip(session: Session, task: str, *, words: str, dependents: bool, at: datetime) -> Taken:
    """Take a task out, and with `dependents` everything that needs it."""
    named = Named.parse(task)
    with Deciding(session, named.batch, at) as journal:
        known = known_task(journal.machine.plan, named.task)
        chosen = [known, *_dependents(journal, known)] if dependents else [known]
        record = journal.state.tasks.get(known)
        if dependents and record is not None and record.status is TaskStatus.DROPPED:
            chosen.remove(known)  # taken out before; now what needs it
        if not chosen:
            raise PreconditionError(
                f"'{known}' was taken out before, and nothing is left behind it"
            )
        must_be_allowed(session, journal, chosen, ev.Decision.SKIP)
        flight = journal.state.in_flight
        state = decide(session, journal, ev.Decision.SKIP, chosen, words, at)
        if flight is not None and state.in_flight is None:
            let_go_of_task(session, state, flight.task)
        graph = journal.machine.graph
        return Taken(state, tuple(chosen), is_stuck(graph, state, graph.index[chosen[0]]))


def abandon(session: Session, batch: str | None, *, words: str, at: datetime) -> BatchState:
    """End a batch for good; its commits, its record and all kept work stay."""
    with Deciding(session, batch, at, ends=True) as journal:
        state = journal.state
        if state.status not in (*RESUMABLE, BatchStatus.FAILED):
            raise PreconditionError(f"batch '{state.batch_id}' is {state.status} already")
        _record_made(session, journal, at)
        state = decide(session, journal, ev.Decision.ABANDON, [], words, at)
        return let_go(session, state, session.note)


def _record_made(session: Session, journal: Journal, at: datetime) -> None:
    """Record the commit that a killed run has made of what is in flight; nobody would later."""
    state = journal.state
    tip = session.refs.read(f"refs/heads/{state.branch}")
    if state.status in RESUMABLE and tip and is_made(session.repo, state.in_flight, tip):
        assert state.in_flight is not None
        journal.append(ev.Committed(at, state.in_flight.task, tip))


def stop(session: Session, batch: str | None, *, at: datetime) -> BatchId:
    """Ask a live run to end after the task in flight.

    Raises:
        PreconditionError: nobody runs it.
    """
    outside_of_tasks()
    found = must_choose(session, batch).batch_id
    who = session.idents()
    append_beside(session, found, who, lambda _, now: ev.StopRequested(now, who.author), lambda: at)
    return found


class Deciding:
    """Hold the run lock of a batch while a decision about it is recorded.

    Args:
        ends: the decision ends the batch: that must be possible whatever a killed run has left.
    """

    def __init__(
        self, session: Session, batch: str | None, at: datetime, *, ends: bool = False
    ) -> None:
        outside_of_tasks()
        self._ends = ends
        self._session, self._batch = session, must_choose(session, batch).batch_id
        self._lock = RunLock(session.repo, self._batch, at)

    def __enter__(self) -> Journal:
        who, s = self._session.idents(), self._session
        self._lock.__enter__()
        try:
            if not self._ends:
                aftermath.refuse(s.repo)
            preconditions.objects_cleared_up(s, s.note)
            journal = Journal.load(s.repo, s.refs, self._batch, who=who, runner=new_runner())
            state = journal.state
            preconditions.locks_cleared_up(s, state.slug, state.branch, self._batch, s.note)
            if not self._ends:
                must_not_be_behind(s, state)
            return journal
        except BatchError:
            self._lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: object
    ) -> None:
        self._lock.release()
        if isinstance(error, IllegalTransition):
            raise PreconditionError(
                f"that is not possible now: {error}", f"git batch status {self._batch}"
            ) from None


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


def decide(
    session: Session,
    journal: Journal,
    decision: ev.Decision,
    tasks: Sequence[TaskId],
    words: str,
    at: datetime,
    *,
    work: Oid | None = None,
    work_base: Oid | None = None,
    work_message: bytes = b"",
) -> BatchState:
    """Record a decision about tasks with its actor and reason."""
    event = ev.Decided(
        at,
        decision,
        session.idents().author,
        tuple(tasks),
        words,
        work=work,
        work_base=work_base,
        work_message=work_message,
    )
    return journal.append(event)


def known_task(plan: Plan, task: TaskId) -> TaskId:
    """See that a plan has a task.

    Raises:
        UsageError: it does not; with the nearest id.
    """
    ids = [t.id for t in plan.tasks]
    if task in ids:
        return task
    near = difflib.get_close_matches(task, ids, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "git batch report lists them"
    raise UsageError(f"there is no task '{task}' in batch '{plan.slug}'", hint)


def _dependents(journal: Journal, task: TaskId) -> list[TaskId]:
    """List what needs a task and can still be taken out."""
    graph, state = journal.machine.graph, journal.state
    behind = (graph.ids[i] for i in sorted(graph.closure(graph.index[task])))
    return [t for t in behind if allowed(state, t, ev.Decision.SKIP)]


def must_be_allowed(
    session: Session, journal: Journal, tasks: Sequence[TaskId], decision: ev.Decision
) -> None:
    """Refuse a decision that does not fit where batch and task stand; say what is possible now."""
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
            raise _refused(session, journal, task, decision)


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
    session: Session, journal: Journal, task: TaskId, decision: ev.Decision
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
        *(_told_more(session, state, task) if decision is ev.Decision.RETRY else ()),
    )


def _told_more(session: Session, state: BatchState, task: TaskId) -> tuple[str, ...]:
    """Say how a task that is to run again already is told something before it does."""
    record = state.tasks.get(task)
    if record is None or record.status is not TaskStatus.PENDING or not record.history:
        return ()
    if record.apply_only or record.replays:  # nothing of it runs
        return ()
    again = f"git batch retry {task} -m 'TEXT'"
    if record.work is not None:
        left = (a.n for a in record.history if _left(session, state, task, a.n) == record.work)
        n = next(left, None)
        again += f" --from-attempt {n}" if n is not None else ""
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
