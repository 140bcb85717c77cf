"""A fake world for the core: what a performer and a recorder do, in memory and without git.

`World` answers every effect with an event, as `run.performer` does, and keeps them as
`repo.journal` does: deferred events are lost in a crash unless a pivotal one followed. What a
command or a check ends with comes from a `Script`; the same script gives the same ends however
often the run is cut, so that a disturbed run can be compared with an undisturbed one. Times grow
by a second with every look at the clock; ids are digests of what they name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha1

from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.attempt import CheckResult, Failure, LogRef, Usage
from git_batch.core.decisions import replaying
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.machine import Facts, Machine, accepts_empty, found, reopen, unheeded
from git_batch.core.model import (
    Actor,
    Authorization,
    BatchState,
    Budget,
    InFlight,
    Plan,
    Task,
    TaskRecord,
)
from git_batch.core.standing import FREE, BatchStatus, Outcome, Phase, StopReason, TaskStatus
from git_batch.core.values import replace

START = datetime(2025, 1, 1, tzinfo=UTC)
PERSON = Actor("A Person", "person@example.org")
MOST_STEPS = 5000
"""More than any run of a test may take; a run that needs more does not end."""


def oid(*facts: object) -> Oid:
    """Name something by what it is."""
    return Oid(sha1(repr(facts).encode()).hexdigest())


BASE = oid("base")


def task(name: str, *needs: str, **more: object) -> Task:
    """Make a task that passes its one check and commits, unless more is said."""
    made = Task(
        id=TaskId(name),
        title=f"Do {name}",
        scope=("**",),
        run="true",
        blocked_by=tuple(TaskId(n) for n in needs),
        checks=("check",),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def plan(*tasks: Task, fail_fast: bool = False) -> Plan:
    """Make a plan of tasks."""
    return Plan(slug="batch", title="A batch", tasks=tasks, fail_fast=fail_fast)


@dataclass(frozen=True)
class Script:
    """How the attempts of tasks end.

    Attributes:
        ends: by task, the ends of its tries in order; tries that count for nothing included.
            `committed` is a change that passes its checks, `unchanged` no change at all, others
            are the failure itself. After the last one, the task only succeeds.
        conflicts: tasks whose commit does not apply to another base; `contained` those whose
            change is there already.
    """

    ends: Mapping[str, tuple[Outcome, ...]] = field(default_factory=dict)
    conflicts: frozenset[str] = frozenset()
    contained: frozenset[str] = frozenset()

    def end(self, name: TaskId, tries: int) -> Outcome:
        """Say how a task's next try ends, when some have come to their own end before."""
        ends = self.ends.get(name, ())
        return ends[tries] if tries < len(ends) else Outcome.COMMITTED


class Crashed(Exception):  # noqa: N818 - what happened, not an error of ours
    """The process is gone; only what was published is left."""


class World:
    """Performs effects and records events.

    Attributes:
        log: what the record holds, `published` of it durably.
        tip: where the batch branch is; `commits` are ours by id, with the settled event's id.
        crash_after: the process dies after so many appended events.
        watch: called with every new state.
        pauses: how long each attempt waited before it began.
        batch: its id.
    """

    batch = BatchId("batch-abc123")

    def __init__(
        self,
        made: Plan,
        script: Script | None = None,
        *,
        budget: Budget | None = None,
        expires_at: datetime | None = None,
        deadline_at: datetime | None = None,
        base: Oid = BASE,
        digest: str = "digest",
        watch: Callable[[BatchState], None] = lambda state: None,
    ) -> None:
        self.machine = Machine(made)
        self.script = script or Script()
        self.log: list[tuple[ev.Event, Oid]] = []
        self.published = 0
        self.state: BatchState | None = None
        self.base, self.digest = base, digest
        self.tip = base
        self.commits: dict[Oid, tuple[TaskId, InFlight]] = {}
        self.runs: list[TaskId] = []
        self.pauses: list[float] = []
        self.crash_after: int | None = None
        self.watch = watch
        self.disturb: Callable[[World, fx.Effect], ev.Event | None] = lambda world, effect: None
        self._now = START
        self._bounds = (budget or made.budget, expires_at, deadline_at)

    # The person.

    def start(self) -> None:
        """Confirm the plan."""
        created = ev.Created(
            self.now(),
            self.batch,
            "batch",
            "A batch",
            "batch/batch",
            self.base,
            self.digest,
        )
        self.append(created)
        self.authorize()

    def authorize(self, **more: object) -> None:
        """Confirm it, or confirm it once more with other bounds."""
        budget, expires_at, deadline_at = self._bounds
        old = self.state.authorization if self.state else None
        now = self.now()
        made = Authorization(
            seq=old.seq + 1 if old else 1,
            actor=PERSON,
            confirmed_at=now,
            plan_digest=self.digest,
            branch="batch/batch",
            base=self.base,
            nonce="n",
            budget=budget,
            expires_at=expires_at,
            deadline_at=deadline_at,
            fail_fast=self.machine.plan.fail_fast,
        )
        self.append(ev.Authorized(now, replace(made, **more)))  # type: ignore[arg-type]

    def decide(self, decision: ev.Decision, *tasks: str, **more: object) -> None:
        """Record a person's decision."""
        made = ev.Decided(self.now(), decision, PERSON, tuple(TaskId(t) for t in tasks), "because")
        self.append(replace(made, **more))  # type: ignore[arg-type]

    def undo(self, decision: ev.Decision, names: Sequence[TaskId]) -> None:
        """Take committed tasks back."""
        self.tip = oid("undo", tuple(names), self.tip)
        self.decide(decision, *names, head=self.tip)

    def rebase(self, base: Oid, **more: object) -> None:
        """Put the batch on another base, with all that has a commit or waits to be replayed."""
        old, tasks = self.tip, self.current.tasks
        made = {r.commit: t for t, r in tasks.items() if r.status is TaskStatus.COMMITTED}
        order = {commit: place for place, commit in enumerate(self.commits)}
        found = {made[c]: c for c in sorted((c for c in made if c), key=lambda c: order.get(c, -1))}
        waits = [t for t in tasks if replaying(self.current, t)]
        for name in sorted(waits, key=lambda t: tasks[t].turn):
            found[name] = tasks[name].replays or oid("none")
        self.base = self.tip = base
        self.decide(
            ev.Decision.REBASE,
            *found,
            **{"commits": tuple(found.values()), "head": base, "former": old, **more},
        )

    def review(self, name: str, verdict: ev.Verdict) -> None:
        """Record a person's verdict on the work that is kept."""
        tree = self.current.tasks[TaskId(name)].tree
        assert tree is not None
        self.append(ev.Reviewed(self.now(), TaskId(name), tree, verdict, PERSON, "looked at it"))

    # The record.

    @property
    def current(self) -> BatchState:
        """The state at the newest event."""
        assert self.state is not None
        return self.state

    @property
    def events(self) -> list[ev.Event]:
        """What was recorded."""
        return [event for event, _ in self.log]

    def now(self) -> datetime:
        """Look at the clock."""
        self._now += timedelta(seconds=1)
        return self._now

    def append(self, event: ev.Event) -> BatchState:
        """Record an event; durable if it is pivotal."""
        self.state, name = self.record(event)
        self.log.append((event, name))
        if type(event) in ev.PIVOTAL:
            self.publish()
        self.watch(self.state)
        if self.crash_after is not None and len(self.log) >= self.crash_after:
            self.crash_after = None
            raise Crashed
        return self.state

    def record(self, event: ev.Event) -> tuple[BatchState, Oid]:
        """Give the state that an event leads to, and the event's id."""
        name = oid(event, self.log[-1][1] if self.log else "")
        return self.machine.evolve(self.state, event, name), name

    def publish(self) -> None:
        """Make everything that was recorded durable."""
        self.published = len(self.log)

    def make_base(self) -> Oid:
        """Give a commit that the batch can be moved to."""
        return oid("base", len(self.log))

    def make_tree(self, name: TaskId, n: int) -> Oid:
        """Give what an attempt leaves."""
        return oid("tree", name, n)

    def make_commit(self, flight: InFlight) -> Oid:
        """Give the commit of a settled task; the same one however often it is made."""
        return oid("commit", flight.parent, flight.tree, flight.settled)

    def crash(self) -> None:
        """Lose what was not published, as a killed process does."""
        del self.log[self.published :]
        self.state = self.machine.replay(self.log)

    def take_up(self) -> None:
        """Resume: nobody works on what is in flight, and a stop is over."""
        end = unheeded(self.current, self.now())
        if end is not None:
            self.append(end)
        self.state = reopen(found(self.current))

    # The loop.

    def drive(self) -> BatchState:
        """Go on until there is nothing to do, as `run.driver` does."""
        for _ in range(MOST_STEPS):
            effect = self.machine.decide(self.current)
            if isinstance(effect, fx.Finish):
                self.publish()
                return self.current
            if isinstance(effect, fx.Close) and (effect.stop, effect.reason) == (
                self.current.stop,
                self.current.reason,
            ):
                self.publish()
                return self.current
            self.append(self.perform(effect))
        raise AssertionError("the run does not end")

    def run(self) -> BatchState:
        """Start, and drive."""
        self.start()
        return self.drive()

    def resume(self) -> BatchState:
        """Take up, and drive."""
        self.take_up()
        return self.drive()

    def perform(self, effect: fx.Effect) -> ev.Event:
        """Do one effect."""
        disturbed = self.disturb(self, effect)
        if disturbed is not None:
            return disturbed
        match effect:
            case fx.Enroll():
                drift = self._drift()
                return drift or self.machine.admit(
                    self.current, effect, Facts(self.now(), "host/run")
                )
            case fx.StartAttempt():
                self.pauses.append(effect.pause)
                self._now += timedelta(seconds=effect.pause)
                return self._drift() or ev.AttemptStarted(
                    self.now(), effect.task, effect.attempt, self.current.head
                )
            case fx.Close():
                return ev.Closed(
                    self.now(), effect.status, effect.stop, effect.reason, effect.next_action
                )
            case fx.Finish():
                raise AssertionError("there is nothing to do")
            case fx.Commit():
                return self._commit(effect.flight)
            case fx.KeepWork():
                return self._keep(effect)
        return self._attempt(effect)

    def _attempt(
        self, effect: fx.RunTask | fx.RunChecks | fx.Review | fx.Settle | fx.AcceptUnchanged
    ) -> ev.Event:
        flight, now = effect.flight, self.now()
        name, n = flight.task, flight.attempt
        match effect:
            case fx.RunTask():
                return self._run(flight, now)
            case fx.RunChecks():
                return self._check(flight, now)
            case fx.Review():
                assert flight.tree is not None
                return ev.ReviewRequested(
                    now, name, n, flight.tree, flight.parent, f"refs/{name}", (b"f",), 1
                )
            case fx.Settle():
                assert flight.tree is not None
                text = f"Do {name}\n\nBatch-Task: {name}\n".encode()
                return ev.Settled(now, name, n, flight.tree, flight.parent, text, (b"f",), 1)
            case fx.AcceptUnchanged():
                return ev.BecameUnchanged(now, name, n)

    def _tries(self, flight: InFlight) -> int:
        return sum(attempt.outcome is not Outcome.INTERRUPTED for attempt in flight.history)

    def _run(self, flight: InFlight, now: datetime) -> ev.Event:
        name, n = flight.task, flight.attempt
        if flight.replays is not None:
            return self._replay(flight, now)
        self.runs.append(name)
        end = self.script.end(name, self._tries(flight))
        empty = end is Outcome.UNCHANGED
        if empty and not accepts_empty(self.machine.task(name)):
            end = Outcome.EMPTY
        if end in (Outcome.COMMITTED, Outcome.UNCHANGED, Outcome.CHECK_FAILED):
            changed = () if empty else (b"f",)
            tree = self.make_tree(name, n)
            used = Usage(usd=0.5, input_tokens=10)
            log = LogRef(3, "0" * 64)
            return ev.Ran(now, name, n, tree, changed, len(changed), log, used, b"said")
        return ev.AttemptFailed(now, name, n, Failure(end, f"{end}"), 1, None, Usage(usd=0.25))

    def _replay(self, flight: InFlight, now: datetime) -> ev.Event:
        name, n = flight.task, flight.attempt
        if name in self.script.conflicts:
            failure = Failure(Outcome.RUN_FAILED, "it does not apply", "conflict")
            return ev.AttemptFailed(now, name, n, failure, None, None, Usage())
        changed = () if name in self.script.contained else (b"f",)
        tree = self.make_tree(name, n)
        return ev.Ran(now, name, n, tree, changed, len(changed), None, Usage(), b"whole message")

    def _check(self, flight: InFlight, now: datetime) -> ev.Event:
        name, n = flight.task, flight.attempt
        log = LogRef(4, "1" * 64)
        if self.script.end(name, self._tries(flight)) is Outcome.CHECK_FAILED:
            failure = Failure(Outcome.CHECK_FAILED, "check exited with 1", "its output")
            return ev.ChecksFailed(
                now, name, n, failure, (CheckResult("check", "failed", 1, 0.5),), log
            )
        return ev.ChecksPassed(now, name, n, (CheckResult("check", "passed", 0, 0.25),), log)

    def _keep(self, effect: fx.KeepWork) -> ev.Event:
        now, name, n = self.now(), effect.flight.task, effect.flight.attempt
        match effect.ending:
            case fx.Rework():
                return ev.Reworked(now, name, n, f"refs/{name}/{n}", (b"f",), 1)
            case fx.Interrupt(reason):
                return ev.Interrupted(now, name, n, None, (), 0, reason)
            case fx.Park(failure, action):
                return ev.Parked(now, name, n, failure, action, f"refs/{name}/{n}", (b"f",), 1)

    def _commit(self, flight: InFlight) -> ev.Event:
        made = self.make_commit(flight)
        if self.tip == flight.parent:
            self.publish()  # what was settled stands in the record before the branch moves
            flight = self.current.in_flight or flight  # others' events may have renamed it
            made = self.make_commit(flight)
            self.commits[made] = (flight.task, flight)
            self.tip = made
        elif self.tip != made:
            return ev.Interrupted(
                self.now(), flight.task, flight.attempt, "refs/kept", (b"f",), 1, "moved"
            )
        return ev.Committed(self.now(), flight.task, made)

    def _drift(self) -> ev.Closed | None:
        if self.tip == self.current.head:
            return None
        broken = self.tip == oid("elsewhere")
        return ev.Closed(
            self.now(),
            BatchStatus.FAILED if broken else BatchStatus.NEEDS_HUMAN,
            StopReason.LINEAGE_BROKEN if broken else StopReason.FOREIGN_COMMITS,
            "the branch was moved",
            "git batch bless",
        )


def essence(state: BatchState) -> object:
    """Say what a run came to, without what differs between two runs (times, ids, interruptions)."""

    def counted(record: TaskRecord) -> list[Outcome]:
        return [a.outcome for a in record.history if a.outcome not in FREE]

    tasks = {
        name: (record.status, record.outcome, record.reason, counted(record))
        for name, record in state.tasks.items()
    }
    settled = state.in_flight.phase is Phase.SETTLED if state.in_flight else None
    return (
        (state.status, state.stop, state.reason, state.next_action, tasks, settled),
        (state.enrolled, state.consecutive_failures, state.agenda),
    )
