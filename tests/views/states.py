"""States made by folding real events, as views get them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha1

from git_batch.core import effects as fx
from git_batch.core import entries, reading, record
from git_batch.core import events as ev
from git_batch.core.attempt import CheckResult, Failure, LogRef, Usage
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.machine import Machine, next_attempt
from git_batch.core.model import Actor, Authorization, BatchState, Budget, Command, Plan, Task
from git_batch.core.standing import BatchStatus, Outcome, StopReason
from git_batch.core.tip import Header
from git_batch.core.values import replace

START = datetime(2030, 1, 31, 20, 0, tzinfo=UTC)
ANN = Actor("Ann", "ann@example.org")
BASE = Oid("b" * 40)
DIGEST = "sha256:" + "d" * 64
CHECK = "pytest -q"
LOG = LogRef(12, "5" * 64)
ESC = "\x1b[31mred"
BIDI = "\u202eevil"


def task(name: str, *after: str, checks: tuple[Command, ...] = (CHECK,), **more: object) -> Task:
    made = Task(
        id=TaskId(name),
        title=f"Do {name}",
        scope=("src/**",),
        run=f"make {name}",
        blocked_by=tuple(map(TaskId, after)),
        checks=checks,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def plan(*tasks: Task, **more: object) -> Plan:
    made = Plan(slug="demo", title="A demo", tasks=tasks)
    return replace(made, **more)  # type: ignore[arg-type]


def oid(n: int) -> Oid:
    return Oid(sha1(str(n).encode()).hexdigest())


class Story:
    """Folds events, a minute apart, and keeps them."""

    def __init__(self, plan: Plan, **authorization: object) -> None:
        self.machine = Machine(plan)
        self.plan = plan
        self.now = START
        self.entries: list[tuple[Oid, entries.Entry]] = []
        self._state: BatchState | None = None
        self.fold(
            ev.Created(
                START, BatchId("demo-abc123"), "demo", plan.title, "batch/demo", BASE, DIGEST
            )
        )
        given = Authorization(1, ANN, START, DIGEST, "batch/demo", BASE, "n", plan.budget)
        self.fold(ev.Authorized(START, replace(given, **authorization)))  # type: ignore[arg-type]

    @property
    def state(self) -> BatchState:
        assert self._state is not None
        return self._state

    @property
    def header(self) -> Header:
        return reading.parse_header(record.header(self.state))

    @property
    def entry(self) -> entries.Entry:
        return self.entries[-1][1]

    def tick(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now

    def fold(self, event: ev.Event) -> BatchState:
        name = oid(len(self.entries) + 1)
        self._state = self.machine.evolve(self._state, event, name)
        step = len(self.entries)
        said = record.render(event, self.state, self.machine.graph, step, "host/1")
        self.entries.append((name, record.parse(said)))
        return self.state

    def enroll(self, name: str) -> int:
        n = next_attempt(self.state.tasks.get(TaskId(name)))
        self.fold(ev.Enrolled(self.tick(), TaskId(name), n, self.state.head, "host/1"))
        return n

    def ran(self, *changed: bytes, usage: Usage = Usage()) -> None:
        f = self.flight
        total = len(changed)
        self.fold(ev.Ran(self.tick(), f[0], f[1], oid(77), changed, total, None, usage, b""))

    @property
    def flight(self) -> tuple[TaskId, int]:
        assert self.state.in_flight is not None
        return self.state.in_flight.task, self.state.in_flight.attempt

    def checked(self, *failing: str) -> None:
        task, n = self.flight
        checks = self.machine.task(task).checks
        done = tuple(CheckResult(str(c), "passed", 0, 1.25) for c in checks if c not in failing)
        if not failing:
            self.fold(ev.ChecksPassed(self.tick(), task, n, done, None))
            return
        done = (*done, CheckResult(failing[0], "failed", 1, 2.5))
        said = Failure(Outcome.CHECK_FAILED, f"check '{failing[0]}' exited with 1", "output")
        self.fold(ev.ChecksFailed(self.tick(), task, n, said, done, LOG))

    def failed(self, outcome: Outcome, reason: str = "why", feedback: str = "") -> None:
        task, n = self.flight
        said = Failure(outcome, reason, feedback)
        self.fold(ev.AttemptFailed(self.tick(), task, n, said, 1, LOG, Usage()))

    def ref(self) -> str:
        task, n = self.flight
        return f"refs/batch/demo-abc123/attempts/{task}/{n}"

    def park(self, *changed: bytes) -> None:
        flight = self.state.in_flight
        assert flight is not None
        assert flight.failure is not None
        self.fold(
            ev.Parked(
                self.tick(),
                flight.task,
                flight.attempt,
                flight.failure,
                f"git batch show {flight.task} --output",
                self.ref() if changed else None,
                changed,
                len(changed),
            )
        )

    def rework(self) -> None:
        task, n = self.flight
        self.fold(ev.Reworked(self.tick(), task, n, self.ref(), (b"src/a",), 1))
        self.fold(ev.AttemptStarted(self.tick(), task, n + 1, self.state.head))

    def interrupt(self) -> None:
        task, n = self.flight
        self.fold(ev.Interrupted(self.tick(), task, n, self.ref(), (b"src/a",), 1, "Ctrl-C"))

    def settle(self, *changed: bytes) -> None:
        task, n = self.flight
        head, total = self.state.head, len(changed)
        self.fold(ev.Settled(self.tick(), task, n, oid(77), head, b"x\n", changed, total))

    def review(self, *changed: bytes) -> None:
        task, n = self.flight
        head, total = self.state.head, len(changed)
        self.fold(
            ev.ReviewRequested(self.tick(), task, n, oid(77), head, self.ref(), changed, total)
        )

    def commit(self) -> None:
        task, _ = self.flight
        self.fold(ev.Committed(self.tick(), task, oid(5000 + len(self.entries))))

    def done(self, name: str, *changed: bytes) -> None:
        """Take a task from its enrollment to its commit."""
        self.enroll(name)
        self.ran(*changed)
        if self.machine.task(TaskId(name)).checks:
            self.checked()
        self.settle(*changed)
        self.commit()

    def fails(self, name: str, outcome: Outcome, reason: str = "why", *changed: bytes) -> None:
        """Take a task from its enrollment to its park."""
        self.enroll(name)
        if outcome is Outcome.CHECK_FAILED:
            self.ran(*changed)
            self.checked(CHECK)
        else:
            self.failed(outcome, reason, f"These paths:\n\nnew: {ESC}{BIDI}")
        self.park(*changed)

    def close(
        self, status: BatchStatus, stop: StopReason, reason: str = "because", action: str = ""
    ) -> None:
        self.fold(ev.Closed(self.tick(), status, stop, reason, action))

    def close_as_decided(self) -> None:
        effect = self.machine.decide(self.state)
        assert isinstance(effect, fx.Close)
        self.close(effect.status, effect.stop, effect.reason, effect.next_action)

    def decide(self, decision: ev.Decision, *tasks: str, why: str = "") -> None:
        ids = tuple(map(TaskId, tasks))
        self.fold(ev.Decided(self.tick(), decision, ANN, ids, why))


def morning() -> Story:
    """Case 20: 3 committed, 2 parked, 1 timed out, 2 skipped, 1 not run (deadline)."""
    story = Story(
        plan(
            task("a"),
            task("b", checks=()),
            task("c"),
            task("park-check"),
            task("park-scope"),
            task("slow"),
            task("behind", "park-check"),
            task("behind-that", "behind"),
            task("last"),
            budget=Budget(max_tasks=8),
        ),
        deadline_at=START + timedelta(hours=8),
    )
    story.done("a", b"src/a", b"src/new")
    story.done("b", b"src/b")
    story.enroll("c")
    story.ran(b"src/c", usage=Usage(usd=1.25, input_tokens=1000))
    story.checked(CHECK)
    story.rework()
    story.ran(b"src/c")
    story.checked()
    story.settle(b"src/c")
    story.commit()
    story.fails("park-check", Outcome.CHECK_FAILED, "", b"src/d")
    story.fails("park-scope", Outcome.SCOPE_REFUSED, "changed 'README': outside", b"README")
    story.fails("slow", Outcome.TIMED_OUT, "the command was ended: timed out")
    story.close(
        BatchStatus.BUDGET_STOPPED,
        StopReason.DEADLINE,
        "the deadline 2030-02-01T04:00:00+00:00 has passed",
        "git batch resume",
    )
    return story


def logs(task: TaskId, n: int) -> bytes | None:
    """Give the log of any attempt: its command's output, then its check's."""
    body = b"".join(b"line %d\n" % i for i in range(30))
    return (
        b"$ make %s\n%s$ pytest -q\n\x1b[31mFAILED\x1b[0m caf\xe9 \x1b]0;owned\x07\n%s[exit 1]\n"
        % (
            task.encode(),
            body,
            b"E assert\n" * 3,
        )
    )
