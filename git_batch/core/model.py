"""The nouns: plan, task, authorization, attempt, state.

Everything here is a frozen value. A `Plan` is what a person confirmed; a `BatchState` is what has
happened since, as far as `decide` needs it. Times are aware datetimes that came in as fields of
events; durations are seconds. Paths are bytes, since git's are.

`BatchState.tasks` holds only tasks that something has happened to and that are not in flight: it
mirrors the notes of the record one to one (storage.md). What is *derived* (who is skipped because
of whom) is never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from git_batch.core.attempt import Attempt, CheckResult, Failure, LogRef, Usage
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.standing import BatchStatus, OnEmpty, Outcome, Phase, StopReason, TaskStatus

Command = str | tuple[str, ...]
"""A string is given to `/bin/sh -c` unedited; a tuple is an argument vector."""


class Task(Struct, frozen=True):
    """One change, resolved: matrix expanded, defaults and agent filled in.

    Attributes:
        stdin: "prompt" feeds the rendered prompt to the command, "null" feeds nothing.
        intent: sha256 (hex) of the intent file whose bytes are in `Plan.intents`.
        timeout: seconds per command.
        idle_timeout: seconds without output, or None.
        attempts: how often the task is tried in all.
        variables: matrix values and the agent's own keys, for `{name}` at run time.
    """

    id: TaskId
    title: str
    scope: tuple[str, ...]
    run: Command
    blocked_by: tuple[TaskId, ...] = ()
    checks: tuple[Command, ...] = ()
    agent: str | None = None
    model: str | None = None
    stdin: str = "null"
    prompt: str | None = None
    intent: str | None = None
    intent_name: str | None = None
    protect: tuple[str, ...] = ()
    review: Command = "none"
    on_empty: OnEmpty = OnEmpty.PARK
    timeout: float = 3600.0
    idle_timeout: float | None = None
    attempts: int = 2
    message: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    not_now: tuple[str, ...] = ()


class Budget(Struct, frozen=True):
    """Bounds of a run; part of the authorization, not of the plan's digest.

    Attributes:
        deadline: seconds from the confirmation, or a point in time.
        max_wait: seconds to wait in all for "not now".
        unknown_stops: no further task starts once an agent did not say what it used although
            there is a bound on it; else what nobody said counts as nothing.
    """

    max_tasks: int | None = None
    deadline: float | datetime | None = None
    qa_failure_limit: int = 6
    max_wait: float = 0.0
    max_usd: float | None = None
    max_tokens: int | None = None
    unknown_stops: bool = False


class Plan(Struct, frozen=True):
    """What a person confirms: ordered tasks and the bounds proposed for them."""

    slug: str
    title: str
    tasks: tuple[Task, ...]
    fail_fast: bool = False
    baseline: bool = False
    budget: Budget = Budget()
    notify: Command | None = None
    intents: Mapping[str, bytes] = field(default_factory=dict)


class Actor(Struct, frozen=True):
    """Who did something, as git names people."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


class Authorization(Struct, frozen=True):
    """One confirmation by a person (semantics.md section 4).

    Attributes:
        seq: 1, 2, …; freshness is the sequence, never the clock.
        deadline_at: the budget's deadline, resolved when it was confirmed.
        untracked: untracked paths that were accepted then; never part of a commit or attempt.
        fingerprint: what else would run then (programs, scripts, git's configuration), each with a
            digest; not part of what is authorized, a difference is only told.
        claim: the remote on which every task is claimed before it runs.
    """

    seq: int
    actor: Actor
    confirmed_at: datetime
    plan_digest: str
    branch: str
    base: Oid
    nonce: str
    budget: Budget = Budget()
    expires_at: datetime | None = None
    deadline_at: datetime | None = None
    fail_fast: bool = False
    signed: bool = False
    untracked: tuple[bytes, ...] = ()
    fingerprint: tuple[tuple[str, str], ...] = ()
    claim: str | None = None


class InFlight(Struct, frozen=True):
    """The one task that is enrolled or settled, as the record's tip repeats it.

    Attributes:
        attempt: number of the attempt that runs or comes next.
        started_at: when it was enrolled; `attempt_at` when this attempt began, `since` the phase.
        parent: the branch tip that the task's commit will have as its parent.
        enrolled: the record's event that enrolled it; `settled` likewise.
        tree: what the command left, then what passed the checks.
        message: the commit's message without its last trailer, from `settled` on.
        history: the attempts of this enrollment and of those before it.
        feedback: what the next attempt is told.
        work: tree of kept work that the attempt starts on; `work_base` the commit it began on,
            `work_message` what was said for the body of its commit.
        replays: the commit of a former base (`Line`) whose change and message are that work.
        apply_only: that work is the whole attempt; the command is not run.
        usage: what this attempt used.
        used: attempts of this enrollment that count against `Task.attempts`.
        not_now: the last attempts in a row that said "not now", since the newest authorization.
        reviewed: a command reviewer accepted this very change.
        links: symbolic links among what the command changed.
        failure: the known outcome while its work is not kept yet.
    """

    task: TaskId
    attempt: int
    phase: Phase
    started_at: datetime
    attempt_at: datetime
    since: datetime
    parent: Oid
    enrolled: Oid
    settled: Oid | None = None
    tree: Oid | None = None
    message: bytes | None = None
    history: tuple[Attempt, ...] = ()
    feedback: str = ""
    work: Oid | None = None
    work_base: Oid | None = None
    work_message: bytes = b""
    replays: Oid | None = None
    apply_only: bool = False
    used: int = 0
    not_now: int = 0
    exit_status: int | None = None
    checks: tuple[CheckResult, ...] = ()
    changed: tuple[bytes, ...] = ()
    changed_total: int = 0
    log: LogRef | None = None
    usage: Usage = Usage()
    reviewed: bool = False
    failure: Failure | None = None
    links: tuple[bytes, ...] = ()


class TaskRecord(Struct, frozen=True):
    """What the record holds of a task that is neither untouched nor in flight.

    Attributes:
        work, work_base, work_message, apply_only: as in `InFlight`, for the next attempt.
        replays: likewise while the task is pending; afterwards what its newest attempt replayed.
        turn: its place among the commits that are to be replayed, lowest first.
    """

    status: TaskStatus
    outcome: Outcome | None
    reason: str = ""
    next_action: str = ""
    commit: Oid | None = None
    tree: Oid | None = None
    parent: Oid | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    history: tuple[Attempt, ...] = ()
    feedback: str = ""
    work: Oid | None = None
    work_base: Oid | None = None
    work_message: bytes = b""
    replays: Oid | None = None
    turn: int = 0
    apply_only: bool = False
    usage: Usage = Usage()


class Agenda(Struct, frozen=True):
    """Where every task stands, as sets of indexes in plan order; an int is a bit set.

    Immutable, cheap to copy (10,000 tasks are 1,250 bytes) and the next task is its lowest bit,
    so a step never scans the plan. Derived from the plan and `BatchState.tasks`.

    Attributes:
        done: committed or unchanged; `unchanged` is that part of it.
        parked: waiting for a person's decision.
        review: waiting for a verdict.
        accepted: the part of `review` whose verdict is in and good.
        dropped: taken out by a person.
        skipped: pending, and behind something parked or dropped.
        ready: pending, with every dependency done.
        replays: pending, their commits to be replayed in this order, before anything else starts.
    """

    size: int
    done: int = 0
    unchanged: int = 0
    parked: int = 0
    review: int = 0
    accepted: int = 0
    dropped: int = 0
    skipped: int = 0
    ready: int = 0
    replays: tuple[int, ...] = ()


class Line(Struct, frozen=True):
    """A base that a rebase left, and where the branch was then.

    Attributes:
        seq: the newest authorization then, 0 without one; a later one is for another base.
    """

    base: Oid
    head: Oid
    seq: int


def holds(authorization: Authorization, former: Sequence[Line]) -> bool:
    """Tell whether an authorization was given after the newest rebase: it is for one base."""
    return not former or authorization.seq > former[-1].seq


def accepted(authorization: Authorization | None) -> tuple[bytes, ...]:
    """Give the untracked paths that a person accepted when they confirmed."""
    return authorization.untracked if authorization else ()


def within(paths: Iterable[bytes]) -> Callable[[bytes], bool]:
    """Give what tells whether a path is one of these, or lies in one that ends with a slash."""
    known = frozenset(paths)
    folders = tuple(path for path in known if path.endswith(b"/"))
    return lambda path: path in known or (path + b"/").startswith(folders)


class BatchState(Struct, frozen=True):
    """A batch as of its newest event.

    Attributes:
        head: the branch tip that the record expects.
        enrolled: enrollments made over the batch's life.
        consecutive_failures: failed checks since the last settlement or authorization.
        fresh_parks: parks since the last authorization or decision (`fail_fast`).
        halted: one of them was a failure that halts the run.
        foreign: commits on the branch that a person blessed, oldest first.
        stale: nobody works on the task in flight: a crash or an interruption left it.
        former: what rebases left, oldest first.
    """

    batch_id: BatchId
    slug: str
    title: str
    branch: str
    base: Oid
    plan_digest: str
    head: Oid
    created_at: datetime
    updated_at: datetime
    agenda: Agenda
    status: BatchStatus = BatchStatus.RUNNING
    stop: StopReason | None = None
    reason: str = ""
    next_action: str = ""
    authorization: Authorization | None = None
    enrolled: int = 0
    consecutive_failures: int = 0
    fresh_parks: int = 0
    halted: bool = False
    stop_requested: bool = False
    usage: Usage = Usage()
    in_flight: InFlight | None = None
    tasks: Mapping[TaskId, TaskRecord] = field(default_factory=dict)
    foreign: tuple[Oid, ...] = ()
    stale: bool = False
    former: tuple[Line, ...] = ()
