"""The decider: `decide` says what to do next, `evolve` what has become of it.

A batch is serial, so exactly one effect is in flight. `Machine` holds the plan and its graph and
no state: `decide(state)` gives one effect, `evolve(state, event, oid)` the next state, `replay`
folds a whole record. `admit` is the only place where authority, deadline and budget are looked
at, before an enrollment and nowhere else, with the facts that the performer read for it.

The order of decisions is that of semantics.md section 2: what is in flight comes first, "all
done" wins over any bound, bounds stop new enrollments only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import takewhile

from msgspec import Struct

from git_batch.core import agenda as agendas
from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.actions import look_at, next_action, not_replayed, way_on
from git_batch.core.admission import admission_stop
from git_batch.core.attempt import DEATHS, DIED, Failure
from git_batch.core.decisions import replaying
from git_batch.core.evolve import evolve
from git_batch.core.graph import Graph
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, Budget, InFlight, Plan, Task, TaskRecord
from git_batch.core.naming import few
from git_batch.core.standing import (
    RESUMABLE,
    REWORKABLE,
    BatchStatus,
    OnEmpty,
    Outcome,
    Phase,
    StopReason,
)
from git_batch.core.values import replace

FIRST_PAUSE, LONGEST_PAUSE = 60, 1800
"""Seconds to wait after the first "not now" and at most after a further one; doubled each time."""


class Facts(Struct, frozen=True):
    """What the performer reads once before an enrollment.

    Attributes:
        now: the clock; a clock behind the record's newest event counts as that event's time.
        runner: `<host>/<nonce of this run>`.
    """

    now: datetime
    runner: str


class Machine:
    """The rules of one plan; pure, and shared by every state of the batch."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.graph = Graph(plan)

    def task(self, task: TaskId) -> Task:
        """Give the plan's entry for a task."""
        return self.plan.tasks[self.graph.index[task]]

    def evolve(self, state: BatchState | None, event: ev.Event, oid: Oid) -> BatchState:
        """Fold one event into a state (see `evolve.evolve`)."""
        return evolve(self.graph, state, event, oid)

    def replay(self, events: Iterable[tuple[ev.Event, Oid]]) -> BatchState | None:
        """Fold a whole record."""
        state: BatchState | None = None
        for event, oid in events:
            state = self.evolve(state, event, oid)
        return state

    def decide(self, state: BatchState) -> fx.Effect:
        """Give the one next effect of a running batch; `Finish` for any other."""
        if state.status is not BatchStatus.RUNNING:
            return fx.Finish()
        if state.in_flight is not None:
            return self._drive(state, state.in_flight)
        if state.halted:
            return _halted(state)
        index = agendas.following(self.graph, state.agenda)
        if index is None:
            return self._nothing_left(state)
        stop = self._bound(state)
        if stop is not None:
            return stop
        task = self.plan.tasks[index].id
        n = next_attempt(state.tasks.get(task))
        accepted = state.agenda.accepted >> index & 1
        return fx.StartAttempt(task, n) if accepted else fx.Enroll(task, n)

    def _drive(self, state: BatchState, flight: InFlight) -> fx.Effect:
        task = self.task(flight.task)
        if flight.phase is Phase.SETTLED:
            return fx.Commit(flight)
        if flight.phase is Phase.READY:
            return self._again(state, flight)
        if flight.phase is Phase.FAILED:
            return self._failed(state, flight, task)
        if state.stale:
            return fx.KeepWork(flight, _died(flight))
        if flight.phase is Phase.RUNNING:
            return fx.RunTask(flight)
        if flight.phase is Phase.RAN and task.checks:
            return fx.RunChecks(flight)
        if flight.changed_total == 0:
            return fx.AcceptUnchanged(flight)
        if task.review != "none" and not (flight.apply_only or flight.reviewed):
            return fx.Review(flight)
        return fx.Settle(flight)

    def _again(self, state: BatchState, flight: InFlight) -> fx.StartAttempt | fx.Close:
        """Try the task in flight again, after a pause if it said "not now"."""
        start = fx.StartAttempt(flight.task, flight.attempt)
        if not flight.not_now or state.stale or state.stop is StopReason.NOT_NOW:
            return start  # also when a person took it up again: they don't want to wait first
        if state.stop_requested:
            return _stop_requested(state)
        budget = state.authorization.budget if state.authorization else Budget()
        left = budget.max_wait - sum(map(_pause, range(1, flight.not_now)))
        if left > 0:
            return replace(start, pause=min(_pause(flight.not_now), left))
        waited = f" after {budget.max_wait:g} seconds of waiting" if budget.max_wait else ""
        return fx.Close(
            BatchStatus.BUDGET_STOPPED,
            StopReason.NOT_NOW,
            f"'{flight.task}' says 'not now'{waited}",
            "git batch resume",
        )

    def _failed(self, state: BatchState, flight: InFlight, task: Task) -> fx.Effect:
        failure = flight.failure
        assert failure is not None
        if failure.outcome in (Outcome.INTERRUPTED, Outcome.STOPPED):
            return fx.KeepWork(flight, fx.Interrupt(failure.reason))
        limit = self._limit_reached(state)
        left = flight.used + 1 < task.attempts
        if failure.outcome in REWORKABLE and left and not limit and not flight.apply_only:
            return fx.KeepWork(flight, fx.Rework())
        if limit and failure.outcome is Outcome.CHECK_FAILED:
            said = f"{failure.reason} (the limit on failing checks is reached)"
            failure = replace(failure, reason=said)
        action = next_action(flight.task, failure.outcome, output=flight.log is not None)
        if flight.apply_only and failure.outcome is Outcome.RUN_FAILED:
            action = f"git batch retry {flight.task}"  # nothing ran: its work does not apply here
        return fx.KeepWork(flight, fx.Park(failure, action))

    def _limit_reached(self, state: BatchState) -> bool:
        a = state.authorization
        return a is not None and state.consecutive_failures >= a.budget.qa_failure_limit

    def _nothing_left(self, state: BatchState) -> fx.Close:
        a = state.agenda
        everything = (1 << a.size) - 1
        if a.done | a.dropped == everything:
            said = _all_over(a.done.bit_count(), a.size)
            return fx.Close(BatchStatus.COMPLETED, StopReason.COMPLETED, said, "git batch report")
        if a.parked or (a.dropped and a.skipped):
            return self._needs_human(state, StopReason.NEEDS_HUMAN)
        waiting = self._ids(a.review)
        return fx.Close(
            BatchStatus.NEEDS_HUMAN,
            StopReason.REVIEW_PENDING,
            f"{few(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for a review",
            f"git batch show {waiting[0]} --diff",
        )

    def _needs_human(self, state: BatchState, stop: StopReason) -> fx.Close:
        a = state.agenda
        parked = self._ids(a.parked)
        if not parked:
            needed = (i for i in agendas.members(a.dropped) if agendas.holds_up(self.graph, a, i))
            dropped: list[str] = [self.plan.tasks[i].id for i in needed]
            were = "which was" if len(dropped) == 1 else "which were"
            reason = f"what is left needs {few(dropped)}, {were} taken out"
            action = f"git batch skip {dropped[0]} --dependents"
        else:
            reason = f"{few(parked)} {'needs' if len(parked) == 1 else 'need'} a person"
            first = state.tasks[TaskId(parked[0])]
            last = first.history[-1] if first.history else None
            action = look_at(
                TaskId(parked[0]),
                first.outcome,
                output=last is not None and last.log is not None,
                replayed=not_replayed(first.replays, last),
            )
        return fx.Close(BatchStatus.NEEDS_HUMAN, stop, reason, action)

    def _bound(self, state: BatchState) -> fx.Close | None:
        """Give the end that keeps further tasks from starting, if the state alone shows one."""
        if state.stop_requested:
            return _stop_requested(state)
        if self._limit_reached(state):
            many = state.consecutive_failures
            return fx.Close(
                BatchStatus.NEEDS_HUMAN,
                StopReason.FAILURE_LIMIT,
                f"{many} checks failed in a row; the environment looks broken",
                "git batch report",
            )
        a = state.authorization
        if a is not None and a.fail_fast and state.fresh_parks:
            return self._needs_human(state, StopReason.FAIL_FAST)
        return None

    def _ids(self, mask: int) -> list[str]:
        return [self.plan.tasks[i].id for i in agendas.members(mask)]

    def admit(self, state: BatchState, effect: fx.Enroll, facts: Facts) -> ev.Enrolled | ev.Closed:
        """Enroll the task, or say which bound forbids it (semantics.md sections 4 and 5)."""
        now = max(facts.now, state.updated_at)
        stop = admission_stop(state, now, replay=replaying(state, effect.task))
        if stop is None:
            return ev.Enrolled(now, effect.task, effect.attempt, state.head, facts.runner)
        reason, said = stop
        way = way_on(replace(state, updated_at=now), reason)
        return ev.Closed(now, BatchStatus.BUDGET_STOPPED, reason, said, way)


def _halted(state: BatchState) -> fx.Close:
    """Start nothing after a task that changed what can't be put back."""
    task = [t for t, r in state.tasks.items() if r.outcome is Outcome.TAMPERED][-1]
    said = f"'{task}' changed what is not its own, so nothing else was started"
    return fx.Close(BatchStatus.NEEDS_HUMAN, StopReason.TAMPERED, said, f"git batch show {task}")


def _stop_requested(state: BatchState) -> fx.Close:
    stop, said = StopReason.STOP_REQUESTED, "a person asked the run to stop"
    return fx.Close(BatchStatus.BUDGET_STOPPED, stop, said, way_on(state, stop))


def _pause(n: int) -> float:
    """Seconds to wait after the n-th "not now" in a row."""
    return float(min(FIRST_PAUSE * 2 ** min(n - 1, 16), LONGEST_PAUSE))


def next_attempt(record: TaskRecord | None) -> int:
    """Number the next attempt of a task: they count up over its whole life."""
    return record.history[-1].n + 1 if record and record.history else 1


def found(state: BatchState) -> BatchState:
    """Mark a state that was read from the record: whoever worked on it is gone."""
    return replace(state, stale=state.in_flight is not None)


def unheeded(state: BatchState, now: datetime) -> ev.Closed | None:
    """Give the end of a run that was asked to stop and died before it did; None of any other.

    Who asked for a stop asked it of that run: the record says that it is over, and only then what
    the next one does. Where a run has to end at once, too, its own end says it.
    """
    if state.status is not BatchStatus.RUNNING or not state.stop_requested or state.halted:
        return None
    end = _stop_requested(state)
    at = max(now, state.updated_at)
    return ev.Closed(at, end.status, end.stop, end.reason, end.next_action)


def reopen(state: BatchState) -> BatchState:
    """Take up a stopped batch again; nothing is recorded before something happens."""
    if state.status not in RESUMABLE:
        return state
    return replace(state, status=BatchStatus.RUNNING, stop_requested=False)


def _died(flight: InFlight) -> fx.Interrupt | fx.Park:
    """Run an attempt again whose run died, unless it may be what each run of it dies of.

    It can kill us, take all memory, or leave a repository that nobody can read. That is nothing
    to find out anew each time that somebody, or a service that restarts us, resumes.
    """
    before = takewhile(lambda attempt: attempt.reason.startswith(DIED), reversed(flight.history))
    deaths = 1 + sum(1 for _ in before)
    if deaths < DEATHS or flight.apply_only:
        return fx.Interrupt(DIED)
    reason = f"{deaths} runs in a row ended before its attempt did; it may be what ends them"
    return fx.Park(Failure(Outcome.INTERRUPTED, reason), f"git batch show {flight.task}")


def _all_over(done: int, size: int) -> str:
    """Say what became of all tasks: those that a person took out are not done."""
    left_out = size - done
    if not left_out:
        return f"all {size} tasks are done" if size != 1 else "the task is done"
    if not done:
        return f"all {size} tasks were taken out" if size != 1 else "the task was taken out"
    others = "the others were" if left_out != 1 else "the other was"
    return f"{done} of {size} tasks {'are' if done != 1 else 'is'} done, {others} taken out"


def accepts_empty(task: Task) -> bool:
    """Tell whether the plan lets the task change nothing."""
    return task.on_empty is OnEmpty.ACCEPT
