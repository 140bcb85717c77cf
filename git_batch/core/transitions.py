"""The transition tables. They are the documentation; nothing outside them is possible.

An event must be allowed twice: by where the batch stands (`BATCH`) and by where its one task in
flight stands (`FLIGHT`, `None` when there is none). Rows are `(state, trigger) -> state`; a
trigger is the event's kind, refined where the event itself says what it leads to (`closed` names
the new state, `decided` the decision), so that no row needs a condition. What is not in a table
is `IllegalTransition`, never a guess.

A stopped batch goes on through the event that continues it (an enrollment, a further attempt, the
commit that failed): there is no event that only says "resumed", because resuming decides nothing.
"""

from __future__ import annotations

from git_batch.core.events import (
    KINDS,
    AttemptFailed,
    ChecksFailed,
    Closed,
    Decided,
    Decision,
    Event,
)
from git_batch.core.standing import BatchStatus, Phase

_R, _H, _B = BatchStatus.RUNNING, BatchStatus.NEEDS_HUMAN, BatchStatus.BUDGET_STOPPED
_C, _F, _A = BatchStatus.COMPLETED, BatchStatus.FAILED, BatchStatus.ABANDONED
_P = BatchStatus.PREPARED


class IllegalTransition(Exception):  # noqa: N818 - the word of the field
    """An event that can't follow from this state: a bug, or a record that contradicts itself."""


def trigger(event: Event) -> str:
    """Name the row of the tables that an event belongs to."""
    if isinstance(event, Closed):
        return f"closed:{event.status}"
    if isinstance(event, Decided):
        return f"decided:{event.decision}"
    if isinstance(event, AttemptFailed):
        return "ran:failed"
    if isinstance(event, ChecksFailed):
        return "checked:failed"
    return KINDS[type(event)]


_FLIGHT_EVENTS = (
    "enrolled",
    "attempt_started",
    "ran",
    "ran:failed",
    "checked",
    "checked:failed",
    "rework",
    "interrupted",
    "review_requested",
    "settled",
    "committed",
    "unchanged",
    "parked",
)
_CLOSINGS = (_C, _H, _B, _F)
_GOING_ON = (Decision.RETRY, Decision.SKIP, Decision.ADOPT, Decision.BLESS, Decision.REBASE)
_REPLAYED = f"decided:{Decision.REBASE}"

BATCH: dict[tuple[BatchStatus, str], BatchStatus] = {
    (_P, "created"): _R,
    **{(_R, name): _R for name in _FLIGHT_EVENTS},
    **{(_R, name): _R for name in ("authorized", "stop_requested", "reviewed")},
    **{(_R, f"closed:{to}"): to for to in _CLOSINGS},
    **{(_R, f"decided:{d}"): _R for d in (*_GOING_ON, Decision.UNDO, Decision.REDO)},
    (_R, "decided:abandon"): _A,
    (_R, "decided:recover"): _R,
    # A stopped batch: any continuing event sets it running again.
    **{
        (stopped, name): _R
        for stopped in (_H, _B)
        for name in (
            "authorized",
            "enrolled",
            "attempt_started",
            "rework",
            "interrupted",
            "committed",
            "parked",
            "reviewed",
            "ran:failed",
            "checked:failed",
        )
    },
    # Asked just as the run ended (it is refused now): the next run does not heed it.
    (_H, "stop_requested"): _H,
    (_B, "stop_requested"): _B,
    **{(s, f"closed:{to}"): to for s in (_H, _B) for to in _CLOSINGS},
    **{
        (s, f"decided:{d}"): _R
        for s in (_H, _B)
        for d in (*_GOING_ON, Decision.UNDO, Decision.REDO)
    },
    (_H, "decided:abandon"): _A,
    (_B, "decided:abandon"): _A,
    # Completed: only what a person adds on top or takes back, or has replayed on another base.
    (_C, "decided:bless"): _C,
    (_C, "decided:undo"): _C,
    (_C, "decided:redo"): _R,
    (_C, _REPLAYED): _R,
    # Failed: goes on when the branch is whole again, under a fresh authorization.
    (_F, "authorized"): _R,
    (_F, "decided:bless"): _H,
    (_F, _REPLAYED): _R,
    (_F, "decided:abandon"): _A,
}

_DECISIONS = tuple(f"decided:{d}" for d in Decision)
_MOVING = tuple(f"decided:{d}" for d in (Decision.BLESS, Decision.UNDO, Decision.REDO))

FLIGHT: dict[tuple[Phase | None, str], Phase | None] = {
    **{
        (None, name): None
        for name in ("created", "authorized", "stop_requested", "reviewed", *_DECISIONS)
    },
    **{(None, f"closed:{to}"): None for to in _CLOSINGS},
    (None, "enrolled"): Phase.RUNNING,
    (None, "attempt_started"): Phase.RUNNING,
    # Anybody may renew or ask for a stop while a task is in flight, or give it up for good.
    **{
        (phase, name): phase
        for phase in Phase
        for name in ("authorized", "stop_requested", "reviewed")
    },
    **{(phase, "decided:abandon"): None for phase in Phase},
    # What a person put on top while a task was in flight: its next attempt begins there.
    **{(phase, "decided:bless"): phase for phase in Phase if phase is not Phase.SETTLED},
    # A decision about another task leaves the one in flight where it is; a settled commit has its
    # parent, so nothing may move the branch before it, and no base is left in the middle of a task.
    **{
        (phase, name): phase
        for phase in Phase
        for name in _DECISIONS
        if name not in ("decided:abandon", _REPLAYED)
        and not (phase is Phase.SETTLED and name in _MOVING)
    },
    (Phase.READY, "attempt_started"): Phase.RUNNING,
    (Phase.READY, "ran:failed"): Phase.FAILED,
    (Phase.RUNNING, "ran"): Phase.RAN,
    (Phase.RUNNING, "ran:failed"): Phase.FAILED,
    (Phase.RAN, "checked"): Phase.CHECKED,
    (Phase.RAN, "checked:failed"): Phase.FAILED,
    (Phase.RAN, "ran:failed"): Phase.FAILED,
    (Phase.RAN, "settled"): Phase.SETTLED,
    (Phase.RAN, "unchanged"): None,
    (Phase.RAN, "review_requested"): None,
    (Phase.CHECKED, "ran:failed"): Phase.FAILED,
    (Phase.CHECKED, "checked:failed"): Phase.FAILED,
    (Phase.CHECKED, "settled"): Phase.SETTLED,
    (Phase.CHECKED, "unchanged"): None,
    (Phase.CHECKED, "review_requested"): None,
    (Phase.FAILED, "rework"): Phase.READY,
    # The run died with an attempt too often: that is for a person, too.
    **{
        (phase, "parked"): None for phase in (Phase.RUNNING, Phase.RAN, Phase.CHECKED, Phase.FAILED)
    },
    **{
        (phase, "interrupted"): Phase.READY
        for phase in (Phase.RUNNING, Phase.RAN, Phase.CHECKED, Phase.FAILED)
    },
    (Phase.SETTLED, "committed"): None,
    # Somebody else moved the branch: the settled commit has no place any more, its work is kept.
    (Phase.SETTLED, "interrupted"): Phase.READY,
    # A stop that leaves the task in flight: nothing of it is lost, resume goes on with it.
    **{(phase, f"closed:{to}"): phase for phase in Phase for to in (_H, _B, _F)},
}


def step(
    status: BatchStatus, phase: Phase | None, event: Event
) -> tuple[BatchStatus, Phase | None]:
    """Look up where an event leads.

    Raises:
        IllegalTransition: when one of the tables has no such row.
    """
    name = trigger(event)
    try:
        return BATCH[status, name], FLIGHT[phase, name]
    except KeyError:
        where = f"{status}/{phase or 'idle'}"
        raise IllegalTransition(f"{name} can't follow from {where}") from None
