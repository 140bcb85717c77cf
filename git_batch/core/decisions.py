"""What a person's decision does to the state (semantics.md sections 3, 4 and 6)."""

from __future__ import annotations

from git_batch.core import agenda as agendas
from git_batch.core.attempt import Usage
from git_batch.core.events import Decided, Decision
from git_batch.core.graph import Graph
from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState, InFlight, Line, TaskRecord
from git_batch.core.standing import Outcome, Phase, TaskStatus
from git_batch.core.transitions import IllegalTransition
from git_batch.core.values import replace

_FROM: dict[Decision, frozenset[TaskStatus]] = {
    Decision.RETRY: frozenset({TaskStatus.NEEDS_HUMAN, TaskStatus.DROPPED}),
    Decision.ADOPT: frozenset({TaskStatus.NEEDS_HUMAN}),
    Decision.SKIP: frozenset({TaskStatus.NEEDS_HUMAN, TaskStatus.IN_REVIEW, TaskStatus.PENDING}),
    Decision.UNDO: frozenset({TaskStatus.COMMITTED}),
    Decision.REDO: frozenset({TaskStatus.COMMITTED, TaskStatus.DROPPED}),
    Decision.REBASE: frozenset({TaskStatus.COMMITTED, TaskStatus.PENDING}),
    Decision.RECOVER: frozenset({TaskStatus.PENDING}),
}
"""The states of a task that each decision about tasks needs."""


def allowed(state: BatchState, task: TaskId, decision: Decision) -> bool:
    """Tell whether a decision fits where a task stands."""
    flight = state.in_flight
    if flight is not None and flight.task == task:
        # Between two attempts nothing of it is half done: it may end there, also one that says
        # "not now" each time it is asked.
        return decision is Decision.SKIP and flight.phase is Phase.READY
    record = state.tasks.get(task)
    status = record.status if record else TaskStatus.PENDING
    if decision is Decision.ADOPT and record is not None and status is TaskStatus.PENDING:
        # It is to run again because a person said so, and nothing has run since: they may give it
        # its work instead, also another than they gave it before, which stays kept under its ref.
        # A commit that waits to be replayed is its work already.
        return record.replays is None
    return status in _FROM[decision]


def decided(graph: Graph, state: BatchState, event: Decided) -> BatchState:
    """Apply a decision.

    Raises:
        IllegalTransition: a named task is not where the decision needs it.
    """
    for task in event.tasks:
        if not allowed(state, task, event.decision):
            raise IllegalTransition(f"{task}: {event.decision} is not possible now")
    if event.decision is Decision.ABANDON:
        return _abandoned(graph, state, event)
    if event.decision is Decision.BLESS:
        foreign = (*state.foreign, *event.commits)
        return replace(state, foreign=foreign, head=event.head or state.head)
    if event.decision is Decision.REBASE:
        return _rebased(graph, state, event)
    if event.decision is Decision.RECOVER:
        return _recovered(graph, state, event)
    flight = state.in_flight
    if flight is not None and flight.task in event.tasks:
        state = _let_go(graph, state, flight, TaskRecord(TaskStatus.PENDING, None))
        flight = None
    tasks = {**state.tasks, **{t: _record(state.tasks.get(t), event) for t in event.tasks}}
    # At once: one task after the other, thousands of them, would take minutes.
    agenda = agendas.build(graph, tasks, flight.task if flight else None)
    reverts = event.decision in (Decision.UNDO, Decision.REDO)
    head = (event.head if reverts else None) or state.head
    return replace(state, tasks=tasks, agenda=agenda, head=head)


def _record(old: TaskRecord | None, event: Decided) -> TaskRecord:
    """Give a task's record after a decision about it."""
    old = old or TaskRecord(TaskStatus.PENDING, None)
    cleared = replace(old, reason=event.why, next_action="", ended_at=event.at)
    if event.decision in (Decision.RETRY, Decision.ADOPT, Decision.REDO):
        return replace(
            cleared,
            status=TaskStatus.PENDING,
            outcome=None,
            commit=None,
            feedback=_feedback(old.feedback, event.why),
            work=event.work,
            work_base=event.work_base,
            work_message=event.work_message,
            replays=None,
            apply_only=event.decision is Decision.ADOPT,
        )
    undone = event.decision is Decision.UNDO
    outcome = Outcome.UNDONE if undone else Outcome.DROPPED
    return replace(cleared, status=TaskStatus.DROPPED, outcome=outcome)


def _feedback(old: str, words: str) -> str:
    """Put a person's words before what the last attempt was told."""
    return f"{words}\n\n{old}".strip() if words else old


def spent(flight: InFlight) -> Usage:
    """Sum what all attempts of the task in flight used."""
    total = flight.usage
    for attempt in flight.history:
        total = total.plus(attempt.usage)
    return total


def _let_go(graph: Graph, state: BatchState, flight: InFlight, record: TaskRecord) -> BatchState:
    """End the flight where it is: what was tried goes to the task's record."""
    kept = replace(
        record,
        started_at=flight.started_at,
        history=flight.history,
        replays=flight.replays,
        usage=spent(flight),
    )
    placed = agendas.place(graph, state.agenda, flight.task, kept.status)
    tasks = {**state.tasks, flight.task: kept}
    return replace(state, in_flight=None, tasks=tasks, agenda=placed)


def _abandoned(graph: Graph, state: BatchState, event: Decided) -> BatchState:
    ended = replace(state, reason=event.why, next_action="")
    if state.in_flight is None:
        return ended
    record = TaskRecord(
        status=TaskStatus.NEEDS_HUMAN,
        outcome=Outcome.STOPPED,
        reason="the batch was abandoned",
        ended_at=event.at,
    )
    return _let_go(graph, ended, state.in_flight, record)


def _rebased(graph: Graph, state: BatchState, event: Decided) -> BatchState:
    """Begin on another base: each commit of a task becomes work that is applied there again.

    What was waiting to be replayed already is named again, so the event alone gives the order.
    """
    if event.head is None or event.former != state.head:
        raise IllegalTransition(f"the branch was at {state.head}, not at {event.former}")
    tasks = dict(state.tasks)
    for turn, (task, commit) in enumerate(zip(event.tasks, event.commits, strict=True)):
        old = tasks.get(task)
        if old is None or commit != (old.commit or old.replays):
            raise IllegalTransition(f"{task}: {commit} is not its commit")
        tasks[task] = replace(
            old,
            status=TaskStatus.PENDING,
            outcome=None,
            reason=f"{commit[:12]} waits to be replayed on {event.head[:12]}",
            next_action="",
            commit=None,
            work=None,
            work_base=None,
            work_message=b"",
            replays=commit,
            turn=turn,
            apply_only=True,
        )
    seq = state.authorization.seq if state.authorization else 0
    return replace(
        state,
        tasks=tasks,
        agenda=agendas.build(graph, tasks, None),
        base=event.head,
        head=event.head,
        foreign=(),
        former=(*state.former, Line(state.base, state.head, seq)),
    )


def replaying(state: BatchState, task: TaskId) -> bool:
    """Tell whether a pending task is only to be replayed, which costs nothing of a budget."""
    record = state.tasks.get(task)
    if record is None or record.status is not TaskStatus.PENDING:
        return False
    return record.replays is not None


def _recovered(graph: Graph, state: BatchState, event: Decided) -> BatchState:
    """Take commits for their tasks' on the word of their trailers: the record was lost."""
    tasks, agenda = dict(state.tasks), state.agenda
    for task, commit in zip(event.tasks, event.commits, strict=True):
        tasks[task] = TaskRecord(
            status=TaskStatus.COMMITTED,
            outcome=Outcome.COMMITTED,
            reason=event.why,
            commit=commit,
            ended_at=event.at,
        )
        agenda = agendas.place(graph, agenda, task, TaskStatus.COMMITTED)
    return replace(state, tasks=tasks, agenda=agenda, head=event.head or state.head)
