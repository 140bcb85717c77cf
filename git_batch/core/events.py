"""Events: facts in the past tense, frozen, one closed union.

Each is one transition of one batch and one commit of its record. Guards live in the type: a
command that exited 0 is `Ran`, any other end is `AttemptFailed`; so the transition table needs no
conditions. `KINDS` maps each type to the name it has in the record (storage.md); `Ran` and
`AttemptFailed` share `ran` there and differ by their result, `ChecksPassed` and `ChecksFailed`
share `checked`.

`PIVOTAL` are the events that must be durable before anything else happens: something that can't
be taken back follows (a budget is counted, a command runs), or a person may act on them. The others
are published together with the next pivotal one, or as soon as a command turns out to be slow;
losing them in a crash leads to a state that resume handles anyway. `Settled` is published by the
performer, between making the commit object and moving the branch.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from git_batch.core.attempt import CheckResult, Failure, LogRef, Usage
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import Actor, Authorization
from git_batch.core.standing import BatchStatus, StopReason


class Created(Struct, frozen=True):
    """The batch exists; nothing is authorized yet."""

    at: datetime
    batch_id: BatchId
    slug: str
    title: str
    branch: str
    base: Oid
    plan_digest: str


class Authorized(Struct, frozen=True):
    """A person confirmed; `seq` 2 and up renew, perhaps with another plan."""

    at: datetime
    authorization: Authorization


class StopRequested(Struct, frozen=True):
    """A person asked a live run to end after the task in flight."""

    at: datetime
    actor: Actor


class Enrolled(Struct, frozen=True):
    """A task is in flight and counted; its first attempt begins."""

    at: datetime
    task: TaskId
    attempt: int
    parent: Oid
    runner: str


class AttemptStarted(Struct, frozen=True):
    """A further attempt of the task begins; on its own for work that a review accepted."""

    at: datetime
    task: TaskId
    attempt: int
    parent: Oid


class Ran(Struct, frozen=True):
    """The command exited 0 and left `tree`, all of it in scope.

    Attributes:
        links: symbolic links among what changed.
    """

    at: datetime
    task: TaskId
    attempt: int
    tree: Oid
    changed: tuple[bytes, ...]
    changed_total: int
    log: LogRef | None
    usage: Usage
    message: bytes
    links: tuple[bytes, ...] = ()


class AttemptFailed(Struct, frozen=True):
    """The command ended in any other way, or what it left was refused (scope, hook, review)."""

    at: datetime
    task: TaskId
    attempt: int
    failure: Failure
    exit_status: int | None
    log: LogRef | None
    usage: Usage


class ChecksPassed(Struct, frozen=True):
    """All checks exited 0 and left the tree as it was (none at all is a pass)."""

    at: datetime
    task: TaskId
    attempt: int
    checks: tuple[CheckResult, ...]
    log: LogRef | None


class ChecksFailed(Struct, frozen=True):
    """A check did not pass, or changed the tree."""

    at: datetime
    task: TaskId
    attempt: int
    failure: Failure
    checks: tuple[CheckResult, ...]
    log: LogRef | None


class Reworked(Struct, frozen=True):
    """The attempt's work is kept and put back; the task is tried again."""

    at: datetime
    task: TaskId
    attempt: int
    ref: str | None
    changed: tuple[bytes, ...]
    changed_total: int


class Interrupted(Struct, frozen=True):
    """The attempt was cut short; its work is kept and put back. Counts for nothing."""

    at: datetime
    task: TaskId
    attempt: int
    ref: str | None
    changed: tuple[bytes, ...]
    changed_total: int
    reason: str


class ReviewRequested(Struct, frozen=True):
    """The work is kept as `tree` on `parent` and waits for a person's verdict.

    Attributes:
        summary: what a review command said that handed it over; `log` has all of its output.
    """

    at: datetime
    task: TaskId
    attempt: int
    tree: Oid
    parent: Oid
    ref: str
    changed: tuple[bytes, ...]
    changed_total: int
    summary: str = ""
    log: LogRef | None = None


class Verdict(StrEnum):
    """What a reviewer said."""

    ACCEPT = "accept"
    REWORK = "rework"
    REJECT = "reject"


class Reviewed(Struct, frozen=True):
    """A verdict on `tree`; void for any other.

    Attributes:
        log: the attempt's output with that of a review command.
    """

    at: datetime
    task: TaskId
    tree: Oid
    verdict: Verdict
    actor: Actor
    summary: str
    log: LogRef | None = None


class Settled(Struct, frozen=True):
    """The commit is decided: its tree, parent and message but for the last trailer."""

    at: datetime
    task: TaskId
    attempt: int
    tree: Oid
    parent: Oid
    message: bytes
    changed: tuple[bytes, ...]
    changed_total: int


class Committed(Struct, frozen=True):
    """The branch holds the task's commit."""

    at: datetime
    task: TaskId
    commit: Oid


class BecameUnchanged(Struct, frozen=True):
    """The task had nothing to change and its plan allows that."""

    at: datetime
    task: TaskId
    attempt: int


class Parked(Struct, frozen=True):
    """The task waits for a person; the attempt's work is kept and put back."""

    at: datetime
    task: TaskId
    attempt: int
    failure: Failure
    next_action: str
    ref: str | None
    changed: tuple[bytes, ...]
    changed_total: int


class Decision(StrEnum):
    """What a person decided about tasks or the whole batch."""

    RETRY = "retry"
    SKIP = "skip"
    ADOPT = "adopt"
    UNDO = "undo"
    REDO = "redo"
    BLESS = "bless"
    REBASE = "rebase"
    RECOVER = "recover"
    ABANDON = "abandon"


class Decided(Struct, frozen=True):
    """A person's decision, with who and why.

    Attributes:
        commits: what it names; of a rebase and a recovery one for each of the tasks, in order.
        head: where it puts the branch; of a rebase this is the new base.
        work: kept work that the task is given, `work_base` the commit that this began on, and
            `work_message` what was said for the body of its commit.
        former: of a rebase, where the branch was before.
    """

    at: datetime
    decision: Decision
    actor: Actor
    tasks: tuple[TaskId, ...] = ()
    why: str = ""
    commits: tuple[Oid, ...] = ()
    head: Oid | None = None
    work: Oid | None = None
    work_base: Oid | None = None
    work_message: bytes = b""
    former: Oid | None = None


class Closed(Struct, frozen=True):
    """The run ended: why, and what a person can do next."""

    at: datetime
    status: BatchStatus
    stop: StopReason
    reason: str
    next_action: str


Event = (
    Created
    | Authorized
    | StopRequested
    | Enrolled
    | AttemptStarted
    | Ran
    | AttemptFailed
    | ChecksPassed
    | ChecksFailed
    | Reworked
    | Interrupted
    | ReviewRequested
    | Reviewed
    | Settled
    | Committed
    | BecameUnchanged
    | Parked
    | Decided
    | Closed
)

KINDS: dict[type[Event], str] = {
    Created: "created",
    Authorized: "authorized",
    StopRequested: "stop_requested",
    Enrolled: "enrolled",
    AttemptStarted: "attempt_started",
    Ran: "ran",
    AttemptFailed: "ran",
    ChecksPassed: "checked",
    ChecksFailed: "checked",
    Reworked: "rework",
    Interrupted: "interrupted",
    ReviewRequested: "review_requested",
    Reviewed: "reviewed",
    Settled: "settled",
    Committed: "committed",
    BecameUnchanged: "unchanged",
    Parked: "parked",
    Decided: "decided",
    Closed: "closed",
}

DEFERRED: frozenset[type[Event]] = frozenset(
    {Created, Ran, ChecksPassed, Settled, Committed, BecameUnchanged}
)
PIVOTAL: frozenset[type[Event]] = frozenset(KINDS) - DEFERRED
AT_LEISURE: frozenset[type[Event]] = frozenset({Ran, ChecksPassed})
"""Of the deferred ones those whose own id nothing holds; a command may come right after them."""
