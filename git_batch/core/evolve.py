"""`evolve`: what a state becomes after an event. One handler per type of event.

Legality is the tables' business (`transitions.step`), asked first; a handler only carries facts
over. `oid` is the record's id of the event: later events and the commit's trailer name it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from git_batch.core import agenda as agendas
from git_batch.core import events as ev
from git_batch.core.attempt import KEEP_PATHS
from git_batch.core.decisions import decided, replaying
from git_batch.core.endings import HANDLERS, flight_of
from git_batch.core.graph import Graph
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, InFlight
from git_batch.core.standing import BatchStatus, Outcome, Phase, TaskStatus
from git_batch.core.transitions import IllegalTransition, step
from git_batch.core.values import replace

_BESIDE = (ev.Authorized, ev.StopRequested, ev.Reviewed)
"""What a person may add at any time; the task in flight is as it was before."""


def evolve(graph: Graph, state: BatchState | None, event: ev.Event, oid: Oid) -> BatchState:
    """Fold one event into the state.

    Args:
        graph: the dependencies of the plan in force.
        state: None before `Created`.
        oid: the id under which the record holds the event.

    Raises:
        IllegalTransition: the event can't follow.
    """
    if state is None:
        if not isinstance(event, ev.Created):
            raise IllegalTransition(f"{type(event).__name__} without a batch")
        step(BatchStatus.PREPARED, None, event)
        return _created(graph, event)
    flight = state.in_flight
    status, phase = step(state.status, flight.phase if flight else None, event)
    task = getattr(event, "task", None)
    if flight and task is not None and task != flight.task and not isinstance(event, ev.Reviewed):
        raise IllegalTransition(f"{task}: '{flight.task}' is in flight")
    changes: dict[str, Any] = {"status": status, "updated_at": max(state.updated_at, event.at)}
    if not isinstance(event, _BESIDE):
        changes["stale"] = False
    if status is BatchStatus.RUNNING and not isinstance(event, ev.Closed):
        changes |= {"stop": None, "reason": "", "next_action": ""}
    if flight is not None and phase is not None and phase is not flight.phase:
        changes["in_flight"] = replace(flight, phase=phase, since=event.at)
    if status is BatchStatus.RUNNING and state.status is not BatchStatus.RUNNING:
        changes["stop_requested"] = False  # it was asked of an earlier run
    moved = replace(state, **changes)
    handler = _HANDLERS.get(type(event))
    return handler(graph, moved, event, oid) if handler else moved


def _created(g: Graph, e: ev.Created) -> BatchState:
    return BatchState(
        batch_id=e.batch_id,
        slug=e.slug,
        title=e.title,
        branch=e.branch,
        base=e.base,
        plan_digest=e.plan_digest,
        head=e.base,
        created_at=e.at,
        updated_at=e.at,
        agenda=agendas.build(g, {}, None),
    )


def _authorized(g: Graph, s: BatchState, e: ev.Authorized, oid: Oid) -> BatchState:
    a = e.authorization
    flight = replace(s.in_flight, not_now=0) if s.in_flight else None
    kept = {task: record for task, record in s.tasks.items() if task in g.index}
    return replace(
        s,
        tasks=kept,
        in_flight=flight,
        authorization=a,
        plan_digest=a.plan_digest,
        consecutive_failures=0,
        fresh_parks=0,
        halted=False,
        agenda=agendas.build(g, kept, flight.task if flight else None),
    )


def _stop_requested(g: Graph, s: BatchState, e: ev.StopRequested, oid: Oid) -> BatchState:
    return replace(s, stop_requested=True)


def _enrolled(g: Graph, s: BatchState, e: ev.Enrolled, oid: Oid) -> BatchState:
    old = s.tasks.get(e.task)
    if old is not None and old.status is not TaskStatus.PENDING:
        raise IllegalTransition(f"{e.task}: it is {old.status} and can't be enrolled")
    begun = _begin(g, s, e.task, e.attempt, e.parent, e.at, oid)
    return begun if replaying(s, e.task) else replace(begun, enrolled=s.enrolled + 1)


def _begin(
    g: Graph, s: BatchState, task: TaskId, attempt: int, parent: Oid, at: datetime, oid: Oid
) -> BatchState:
    old = s.tasks.get(task)
    flight = InFlight(
        task=task,
        attempt=attempt,
        phase=Phase.RUNNING,
        started_at=at,
        attempt_at=at,
        since=at,
        parent=parent,
        enrolled=oid,
    )
    if old is not None:
        flight = replace(
            flight,
            history=old.history,
            feedback=old.feedback,
            work=old.work,
            work_base=old.work_base,
            work_message=old.work_message,
            replays=old.replays,
            apply_only=old.apply_only,
        )
    placed = agendas.place(g, s.agenda, task, TaskStatus.ENROLLED)
    return replace(s, in_flight=flight, agenda=placed)


def _attempt_started(g: Graph, s: BatchState, e: ev.AttemptStarted, oid: Oid) -> BatchState:
    if s.in_flight is None:
        old = s.tasks.get(e.task)
        if old is None or old.status is not TaskStatus.IN_REVIEW or not old.apply_only:
            raise IllegalTransition(f"{e.task}: no accepted work of it is kept")
        return _begin(g, s, e.task, e.attempt, e.parent, e.at, oid)
    fresh = replace(
        s.in_flight,
        attempt=e.attempt,
        attempt_at=e.at,
        parent=e.parent,
    )
    return replace(s, in_flight=fresh)


def _ran(g: Graph, s: BatchState, e: ev.Ran, oid: Oid) -> BatchState:
    flight = replace(
        flight_of(s),
        tree=e.tree,
        changed=e.changed[:KEEP_PATHS],
        changed_total=e.changed_total,
        links=e.links[:KEEP_PATHS],
        log=e.log,
        exit_status=0,
        message=e.message or None,
        usage=flight_of(s).usage.plus(e.usage),
    )
    return replace(s, in_flight=flight, usage=s.usage.plus(e.usage))


def _attempt_failed(g: Graph, s: BatchState, e: ev.AttemptFailed, oid: Oid) -> BatchState:
    flight = replace(
        flight_of(s),
        failure=e.failure,
        exit_status=e.exit_status,
        log=e.log or flight_of(s).log,
        usage=flight_of(s).usage.plus(e.usage),
    )
    return replace(s, in_flight=flight, usage=s.usage.plus(e.usage))


def _checks_passed(g: Graph, s: BatchState, e: ev.ChecksPassed, oid: Oid) -> BatchState:
    return replace(s, in_flight=replace(flight_of(s), checks=e.checks, log=e.log))


def _checks_failed(g: Graph, s: BatchState, e: ev.ChecksFailed, oid: Oid) -> BatchState:
    flight = replace(flight_of(s), checks=e.checks, log=e.log, failure=e.failure)
    counted = 1 if e.failure.outcome is Outcome.CHECK_FAILED else 0
    return replace(s, in_flight=flight, consecutive_failures=s.consecutive_failures + counted)


def _reviewed(g: Graph, s: BatchState, e: ev.Reviewed, oid: Oid) -> BatchState:
    if s.in_flight is not None and s.in_flight.task == e.task:
        good = e.verdict is ev.Verdict.ACCEPT and e.tree == s.in_flight.tree
        log = e.log or s.in_flight.log
        return replace(s, in_flight=replace(s.in_flight, reviewed=good, log=log))
    old = s.tasks.get(e.task)
    if old is None or old.status is not TaskStatus.IN_REVIEW or old.tree != e.tree:
        raise IllegalTransition(f"{e.task}: no review of this change is pending")
    if e.verdict is ev.Verdict.ACCEPT:
        record = replace(
            old,
            apply_only=True,
            work=e.tree,
            work_base=old.parent,
            work_message=old.history[-1].message if old.history else b"",
            reason="accepted",
            next_action="git batch resume",
        )
        placed = agendas.place(g, s.agenda, e.task, TaskStatus.IN_REVIEW, accepted=True)
    else:
        rework = e.verdict is ev.Verdict.REWORK
        record = replace(
            old,
            status=TaskStatus.NEEDS_HUMAN,
            outcome=Outcome.REVIEW_REWORK if rework else Outcome.REVIEW_REJECTED,
            reason=e.summary,
            feedback=e.summary,
            next_action=f"git batch retry {e.task}",
        )
        placed = agendas.place(g, s.agenda, e.task, TaskStatus.NEEDS_HUMAN)
    return replace(s, tasks={**s.tasks, e.task: record}, agenda=placed)


def _settled(g: Graph, s: BatchState, e: ev.Settled, oid: Oid) -> BatchState:
    flight = replace(
        flight_of(s),
        settled=oid,
        tree=e.tree,
        parent=e.parent,
        message=e.message,
        changed=e.changed[:KEEP_PATHS],
        changed_total=e.changed_total,
    )
    return replace(s, in_flight=flight, consecutive_failures=0)


def _decided(g: Graph, s: BatchState, e: ev.Decided, oid: Oid) -> BatchState:
    return replace(decided(g, s, e), fresh_parks=0, halted=False)


def _closed(g: Graph, s: BatchState, e: ev.Closed, oid: Oid) -> BatchState:
    return replace(
        s,
        stop=e.stop,
        reason=e.reason,
        next_action=e.next_action,
        stop_requested=False,
        fresh_parks=0,
        halted=False,
    )


_HANDLERS: dict[type, Callable[[Graph, BatchState, Any, Oid], BatchState]] = {
    ev.Authorized: _authorized,
    ev.StopRequested: _stop_requested,
    ev.Enrolled: _enrolled,
    ev.AttemptStarted: _attempt_started,
    ev.Ran: _ran,
    ev.AttemptFailed: _attempt_failed,
    ev.ChecksPassed: _checks_passed,
    ev.ChecksFailed: _checks_failed,
    ev.Reviewed: _reviewed,
    ev.Settled: _settled,
    ev.Decided: _decided,
    ev.Closed: _closed,
    **HANDLERS,
}
