"""How an attempt, and with it a task's flight, ends: the second half of `evolve`.

An attempt that ended is history, whatever comes next: another one (rework, interruption), or the
task's own record (committed, unchanged, parked, in review).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from git_batch.core import agenda as agendas
from git_batch.core import events as ev
from git_batch.core.attempt import KEEP_PATHS, Attempt, Failure, Usage
from git_batch.core.decisions import spent
from git_batch.core.graph import Graph
from git_batch.core.ids import Oid
from git_batch.core.model import BatchState, InFlight, TaskRecord
from git_batch.core.standing import FREE, Outcome, TaskStatus
from git_batch.core.transitions import IllegalTransition
from git_batch.core.values import replace

_SAID = 200
"""Characters of what a review command said that a reason holds; the log has it all."""


def flight_of(s: BatchState) -> InFlight:
    """Give the task in flight; IllegalTransition if there is none."""
    if s.in_flight is None:
        raise IllegalTransition("nothing is in flight")
    return s.in_flight


def _ended(flight: InFlight, failure: Failure, at: datetime, kept: Any) -> Attempt:
    return Attempt(
        n=flight.attempt,
        outcome=failure.outcome,
        started_at=flight.attempt_at,
        ended_at=at,
        exit_status=flight.exit_status,
        reason=failure.reason,
        checks=flight.checks,
        changed=kept.changed[:KEEP_PATHS],
        changed_total=kept.changed_total,
        ref=getattr(kept, "ref", None),
        log=flight.log,
        usage=flight.usage,
        links=flight.links,
        message=_unused(flight),
    )


def _unused(flight: InFlight) -> bytes:
    """Give what an attempt said for a commit that was not made; a replayed one has its own."""
    said = flight.settled is None and flight.replays is None
    return flight.message or b"" if said else b""


_UNTRIED: dict[str, Any] = {
    "settled": None,
    "tree": None,
    "message": None,
    "exit_status": None,
    "checks": (),
    "changed": (),
    "changed_total": 0,
    "links": (),
    "log": None,
    "usage": Usage(),
    "reviewed": False,
    "failure": None,
}
"""What a flight knows of the attempt that runs, before there is one."""


def _again(s: BatchState, e: ev.Reworked | ev.Interrupted, failure: Failure) -> BatchState:
    flight = flight_of(s)
    done = _ended(flight, failure, e.at, e)
    used = flight.used + (0 if failure.outcome in FREE else 1)
    following = replace(
        flight,
        attempt=flight.attempt + 1,
        history=(*flight.history, done),
        used=used,
        not_now=flight.not_now + 1 if failure.outcome is Outcome.STOPPED else 0,
        feedback=failure.feedback or flight.feedback,
        **_UNTRIED,
    )
    return replace(s, in_flight=following)


def _reworked(g: Graph, s: BatchState, e: ev.Reworked, oid: Oid) -> BatchState:
    failure = flight_of(s).failure
    if failure is None:
        raise IllegalTransition("rework without a failure")
    return _again(s, e, failure)


def _interrupted(g: Graph, s: BatchState, e: ev.Interrupted, oid: Oid) -> BatchState:
    known = flight_of(s).failure
    said_so = known is not None and known.outcome is Outcome.STOPPED
    return _again(s, e, Failure(Outcome.STOPPED if said_so else Outcome.INTERRUPTED, e.reason))


def _leave(g: Graph, s: BatchState, status: TaskStatus, record: TaskRecord) -> BatchState:
    """End the flight: its facts go to the task's record."""
    flight = flight_of(s)
    placed = agendas.place(g, s.agenda, flight.task, status)
    return replace(s, in_flight=None, agenda=placed, tasks={**s.tasks, flight.task: record})


def _review_requested(g: Graph, s: BatchState, e: ev.ReviewRequested, oid: Oid) -> BatchState:
    flight = replace(flight_of(s), log=e.log or flight_of(s).log)
    said = e.summary.split("\n", 1)[0][:_SAID]
    reason = f"waits for a review: {said}" if said else "waits for a review"
    done = _ended(flight, Failure(Outcome.REVIEW_PENDING, reason), e.at, e)
    record = TaskRecord(
        status=TaskStatus.IN_REVIEW,
        outcome=Outcome.REVIEW_PENDING,
        reason=reason,
        next_action=f"git batch show {e.task} --diff",
        tree=e.tree,
        parent=e.parent,
        started_at=flight.started_at,
        ended_at=e.at,
        history=(*flight.history, done),
        usage=spent(flight),
    )
    return _leave(g, s, TaskStatus.IN_REVIEW, record)


def _done(s: BatchState, e: ev.Committed | ev.BecameUnchanged, outcome: Outcome) -> TaskRecord:
    flight = flight_of(s)
    last = _ended(flight, Failure(outcome, ""), e.at, flight)
    return TaskRecord(
        status=TaskStatus(outcome.value),
        outcome=outcome,
        tree=flight.tree,
        parent=flight.parent,
        commit=e.commit if isinstance(e, ev.Committed) else None,
        replays=flight.replays,
        started_at=flight.started_at,
        ended_at=e.at,
        history=(*flight.history, last),
        usage=spent(flight),
    )


def _committed(g: Graph, s: BatchState, e: ev.Committed, oid: Oid) -> BatchState:
    left = _leave(g, s, TaskStatus.COMMITTED, _done(s, e, Outcome.COMMITTED))
    return replace(left, head=e.commit)


def _unchanged(g: Graph, s: BatchState, e: ev.BecameUnchanged, oid: Oid) -> BatchState:
    left = _leave(g, s, TaskStatus.UNCHANGED, _done(s, e, Outcome.UNCHANGED))
    return replace(left, consecutive_failures=0)


def _parked(g: Graph, s: BatchState, e: ev.Parked, oid: Oid) -> BatchState:
    flight = flight_of(s)
    record = TaskRecord(
        status=TaskStatus.NEEDS_HUMAN,
        outcome=e.failure.outcome,
        reason=e.failure.reason,
        next_action=e.next_action,
        started_at=flight.started_at,
        ended_at=e.at,
        history=(*flight.history, _ended(flight, e.failure, e.at, e)),
        feedback=e.failure.feedback,
        replays=flight.replays,
        usage=spent(flight),
    )
    left = _leave(g, s, TaskStatus.NEEDS_HUMAN, record)
    return replace(left, fresh_parks=s.fresh_parks + 1, halted=s.halted or e.failure.halts)


HANDLERS: dict[type, Callable[[Graph, BatchState, Any, Oid], BatchState]] = {
    ev.Reworked: _reworked,
    ev.Interrupted: _interrupted,
    ev.ReviewRequested: _review_requested,
    ev.Committed: _committed,
    ev.BecameUnchanged: _unchanged,
    ev.Parked: _parked,
}
