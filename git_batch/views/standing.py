"""What is shown of a task: its state, outcome and reason. The one place that derives them.

The record holds what happened; three things that people ask for follow from it: whom a skipped
task waits for, why a pending one of a stopped batch was not run, and that the attempt of a run
which died was interrupted. `Board` gives them for one task or for all; status, report, list and
JSON ask it. A whole plan costs its edges, not its paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from git_batch.core import agenda as agendas
from git_batch.core.attempt import DIED, Attempt, Usage
from git_batch.core.graph import Graph
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, InFlight, Plan, Task, TaskRecord
from git_batch.core.standing import FREE, BatchStatus, Outcome, Phase, StopReason, TaskStatus
from git_batch.core.values import replace
from git_batch.views.addressing import addressed
from git_batch.views.common import Around, Drift, names, stop_of

Verdict = tuple[Outcome | None, str]

_NOT_RUN = {
    StopReason.BUDGET: Outcome.NOT_RUN_BUDGET,
    StopReason.DEADLINE: Outcome.NOT_RUN_DEADLINE,
    StopReason.EXPIRED: Outcome.NOT_RUN_EXPIRED,
    StopReason.FAILURE_LIMIT: Outcome.NOT_RUN_FAILURE_LIMIT,
}
"""What a stop makes of the tasks it keeps from running; any other makes it `not_run_stopped`."""

_BOUNDS = frozenset(_NOT_RUN)
_ROOTS = 3


class Standing(NamedTuple):
    """Where one task stands, as views show it.

    Attributes:
        place: its index in the plan.
        attempts: how often it was tried, the attempt that goes on included.
        history: the attempts that have ended.
        commit: of a task that is committed and not undone.
        waits: it waits for a person: parked, or in review without a verdict.
        replays: the commit of a former base that it is, or was, to be replayed from.
    """

    place: int
    task: Task
    state: TaskStatus
    outcome: Outcome | None
    reason: str
    attempts: int
    history: tuple[Attempt, ...]
    commit: Oid | None
    started_at: datetime | None
    ended_at: datetime | None
    usage: Usage
    feedback: str
    waits: bool
    replays: Oid | None

    @property
    def last(self) -> Attempt | None:
        """The newest attempt that has ended."""
        return self.history[-1] if self.history else None


class Board:
    """Shows where the tasks of a batch stand.

    Args:
        live: somebody is running the batch now.
        around: what is found around its record; None if nobody looked.
    """

    def __init__(
        self, state: BatchState, plan: Plan, *, live: bool, around: Around | None = None
    ) -> None:
        self.state, self.plan, self.live, self.around = state, plan, live, around

    def keeps(self, attempt: Attempt) -> bool:
        """Tell whether the work of an attempt is kept, and still here."""
        kept = self.around.kept if self.around is not None else None
        return attempt.ref is not None and (kept is None or attempt.ref in kept.refs)

    def has_output(self, attempt: Attempt | None) -> bool:
        """Tell whether an attempt printed something that is still here."""
        kept = self.around.kept if self.around is not None else None
        printed = attempt is not None and attempt.log is not None
        return printed and (kept is None or kept.logs)

    @property
    def drift(self) -> Sequence[Drift]:
        """The ways in which the branch is not what the record says, as far as is known."""
        return self.around.drift if self.around is not None else ()

    def addressed(self, command: str) -> str:
        """Have a command mean this batch, wherever it is pasted now."""
        return addressed(command, self.around.name if self.around is not None else None)

    @cached_property
    def graph(self) -> Graph:
        """The plan's dependencies."""
        return Graph(self.plan)

    def __iter__(self) -> Iterator[Standing]:
        return (self.at(place) for place in range(len(self.plan.tasks)))

    def of(self, task: TaskId) -> Standing:
        """Show one task by its id; KeyError if the plan has no such task."""
        return self.at(self.graph.index[task])

    def at(self, place: int) -> Standing:
        """Show the task at a place of the plan."""
        task, state = self.plan.tasks[place], self._state(place)
        flight = self.state.in_flight
        if flight is not None and flight.task == task.id:
            return self._flying(place, task, state, flight)
        record = self.state.tasks.get(task.id) or TaskRecord(TaskStatus.PENDING, None)
        begun = state not in (TaskStatus.PENDING, TaskStatus.SKIPPED_BLOCKED)
        outcome, reason = self._verdict(place, state, record)
        return Standing(
            place=place,
            task=task,
            state=state,
            outcome=outcome,
            reason=reason,
            attempts=len(record.history),
            history=self._history(task.id, record.history),
            commit=record.commit if state is TaskStatus.COMMITTED else None,
            started_at=record.started_at if begun else None,
            ended_at=record.ended_at if begun else None,
            usage=record.usage,
            feedback=record.feedback,
            waits=bool(self._waiting >> place & 1),
            replays=record.replays,
        )

    def _history(self, task: TaskId, attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
        """Give attempts as they ended: the record's own say of the reviewed that they wait."""
        known = self.around.reviewed if self.around is not None else {}
        if not known:
            return attempts
        ends = [(a, known.get((task, a.n), (a.outcome, a.reason))) for a in attempts]
        return tuple(replace(a, outcome=outcome, reason=why) for a, (outcome, why) in ends)

    def skips(self, place: int) -> bool:
        """Tell whether tasks are skipped that wait for this one directly."""
        return agendas.holds_up(self.graph, self.state.agenda, place)

    @cached_property
    def _waiting(self) -> int:
        return self.state.agenda.parked | self._unreviewed

    @cached_property
    def _unreviewed(self) -> int:
        return self.state.agenda.review & ~self.state.agenda.accepted

    def _flying(self, place: int, task: Task, state: TaskStatus, flight: InFlight) -> Standing:
        outcome, reason = self._flight(flight)
        usage = flight.usage
        for attempt in flight.history:
            usage = usage.plus(attempt.usage)
        return Standing(
            place=place,
            task=task,
            state=state,
            outcome=outcome,
            reason=reason,
            attempts=len(flight.history) + (flight.phase is not Phase.READY),
            history=self._history(task.id, flight.history),
            commit=None,
            started_at=flight.started_at,
            ended_at=None,
            usage=usage,
            feedback=flight.feedback,
            waits=False,
            replays=flight.replays,
        )

    def _state(self, place: int) -> TaskStatus:
        """Give a task's state; it is the one that `machine.counts` counts it under."""
        flight, agenda = self.state.in_flight, self.state.agenda
        if flight is not None and flight.task == self.plan.tasks[place].id:
            settled = flight.phase is Phase.SETTLED
            return TaskStatus.SETTLED if settled else TaskStatus.ENROLLED
        for mask, state in (
            (agenda.unchanged, TaskStatus.UNCHANGED),
            (agenda.done, TaskStatus.COMMITTED),
            (agenda.parked, TaskStatus.NEEDS_HUMAN),
            (agenda.review, TaskStatus.IN_REVIEW),
            (agenda.dropped, TaskStatus.DROPPED),
            (agenda.skipped, TaskStatus.SKIPPED_BLOCKED),
        ):
            if mask >> place & 1:
                return state
        return TaskStatus.PENDING

    def _verdict(self, place: int, state: TaskStatus, record: TaskRecord) -> Verdict:
        if state is TaskStatus.SKIPPED_BLOCKED:
            return Outcome.SKIPPED, self._blocked(place)
        if state is TaskStatus.PENDING:
            return self._pending(place, record)
        if state is TaskStatus.IN_REVIEW and self.state.agenda.accepted >> place & 1:
            return record.outcome, "accepted, not applied yet"
        return record.outcome, record.reason

    def _flight(self, flight: InFlight) -> Verdict:
        """Say how the task in flight stands; while somebody works on it that is open."""
        if self.live:
            return None, ""
        if flight.phase is Phase.SETTLED:
            failed = self.state.stop is StopReason.COMMIT_FAILED
            return (Outcome.COMMIT_FAILED, self.state.reason) if failed else (None, "")
        if flight.phase is Phase.READY:
            last = flight.history[-1] if flight.history else None
            free = last is not None and last.outcome in FREE
            return (Outcome.INTERRUPTED if free else None), last.reason if last else ""
        if flight.phase is Phase.FAILED and flight.failure is not None:
            free = flight.failure.outcome in FREE
            return (Outcome.INTERRUPTED if free else None), flight.failure.reason
        return Outcome.INTERRUPTED, DIED

    def _pending(self, place: int, record: TaskRecord) -> Verdict:
        if self.state.status is BatchStatus.RUNNING:
            return None, record.reason
        stop = stop_of(self.state.status, self.state.stop)
        outcome = Outcome.NOT_RUN_STOPPED if stop is None else _NOT_RUN.get(stop)
        reviews = 0 if stop in _BOUNDS else self._reviews(place)
        if reviews:
            return Outcome.NOT_RUN_STOPPED, f"waits for the review of {self._named(reviews)}"
        if stop is StopReason.ABANDONED:
            return Outcome.NOT_RUN_STOPPED, "the batch was abandoned"
        return outcome or Outcome.NOT_RUN_STOPPED, self.state.reason or "the run ended before it"

    def _blocked(self, place: int) -> str:
        """Name whom a skipped task waits for (semantics.md section 3)."""
        roots = self._roots(place)
        said = []
        for root in islice(agendas.members(roots), _ROOTS):
            dropped = self.state.agenda.dropped >> root & 1
            said.append(
                f"dependency '{self.plan.tasks[root].id}' {'was dropped' if dropped else 'parked'}"
            )
        if roots.bit_count() > _ROOTS:
            said.append(f"{roots.bit_count() - _ROOTS} more")
        return "; ".join(said)

    def _named(self, mask: int) -> str:
        first = islice(agendas.members(mask), _ROOTS)
        return names([self.plan.tasks[i].id for i in first], _ROOTS, mask.bit_count())

    @cached_property
    def _roots(self) -> Callable[[int], int]:
        agenda = self.state.agenda
        return behind(self.graph, agenda.parked | agenda.dropped, agenda.done)

    @cached_property
    def _reviews(self) -> Callable[[int], int]:
        return behind(self.graph, self._unreviewed, self.state.agenda.done)


def behind(graph: Graph, targets: int, done: int) -> Callable[[int], int]:
    """Give a function from a task to those of a set that it waits for, directly or not.

    It remembers what it found on the way: in a chain of ten thousand skipped tasks each would else
    be walked from its end to its root.
    """
    known: dict[int, int] = {}

    def find(place: int) -> int:
        stack = [place]
        while stack:
            top, needs = stack[-1], graph.dependencies[stack[-1]]
            first = [d for d in needs if d not in known and not (targets | done) >> d & 1]
            if top not in known and first:
                stack.extend(first)
                continue
            stack.pop()
            if top not in known:
                mask = 0
                for d in needs:
                    mask |= 1 << d if targets >> d & 1 else 0 if done >> d & 1 else known[d]
                known[top] = mask
        return known[place]

    return find
