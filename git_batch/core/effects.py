"""Effects: requests in the imperative, frozen, one closed union.

`decide` asks for exactly one of them at a time; the performer does it and answers with the event
that says what came of it. What an effect needs to know of the state it carries along, so that a
performer never has to look into the state.
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.core.attempt import Failure
from git_batch.core.ids import TaskId
from git_batch.core.model import InFlight
from git_batch.core.standing import BatchStatus, StopReason


class Enroll(Struct, frozen=True):
    """Admit the task if authority, budget, deadline and lineage allow it (`machine.admit`)."""

    task: TaskId
    attempt: int


class StartAttempt(Struct, frozen=True):
    """Begin a further attempt: of the task in flight, or with work that a review accepted.

    Attributes:
        pause: seconds to wait before, since the attempts before it said "not now".
    """

    task: TaskId
    attempt: int
    pause: float = 0.0


class RunTask(Struct, frozen=True):
    """Run the task's command, then compare what it left with its scope."""

    flight: InFlight


class RunChecks(Struct, frozen=True):
    """Run the task's checks in order and see that they left the tree alone."""

    flight: InFlight


class Review(Struct, frozen=True):
    """Have the change reviewed as the plan says, by a command or by a person later."""

    flight: InFlight


class Ending(Struct, frozen=True):
    """What an attempt's kept work is the end of."""


class Rework(Ending, frozen=True):
    """Another attempt follows."""


class Park(Ending, frozen=True):
    """A person has to look at it."""

    failure: Failure
    next_action: str


class Interrupt(Ending, frozen=True):
    """Nobody's fault; it is run again."""

    reason: str


class KeepWork(Struct, frozen=True):
    """Keep the attempt's work under a ref, put its paths back, and record the ending."""

    flight: InFlight
    ending: Rework | Park | Interrupt


class Settle(Struct, frozen=True):
    """Run the person's hooks, fix tree, parent and message of the commit."""

    flight: InFlight


class Commit(Struct, frozen=True):
    """Make the settled commit, or find that it is made already, and move the branch."""

    flight: InFlight


class AcceptUnchanged(Struct, frozen=True):
    """Record that there was nothing to change."""

    flight: InFlight


class Close(Struct, frozen=True):
    """End the run and record why."""

    status: BatchStatus
    stop: StopReason
    reason: str
    next_action: str


class Finish(Struct, frozen=True):
    """There is nothing to do; the state says why."""


Effect = (
    Enroll
    | StartAttempt
    | RunTask
    | RunChecks
    | Review
    | KeepWork
    | Settle
    | Commit
    | AcceptUnchanged
    | Close
    | Finish
)
