"""A person's decisions: one event each, with actor and reason, allowed where the tables say so."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from git_batch.app import aftermath, preconditions
from git_batch.app.allowing import kept_work, must_be_allowed, stands
from git_batch.app.beside import append_beside
from git_batch.app.claiming import let_go, let_go_of_task
from git_batch.app.following import must_not_be_behind
from git_batch.app.session import Session, must_choose, outside_of_tasks
from git_batch.core import events as ev
from git_batch.core.agenda import is_stuck
from git_batch.core.decisions import allowed
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import BatchState, Plan
from git_batch.core.standing import RESUMABLE, BatchStatus, TaskStatus
from git_batch.core.transitions import IllegalTransition
from git_batch.errors import BatchError, PreconditionError, UsageError
from git_batch.repo.journal import Journal
from git_batch.repo.locks import RunLock
from git_batch.run.context import new_runner
from git_batch.run.lineage import is_made


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
        asked = (("-m", words), ("--from-attempt", from_attempt))
        must_be_allowed(session, journal, [known], ev.Decision.RETRY, asked)
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
