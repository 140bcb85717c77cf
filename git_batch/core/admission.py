"""What lets a task start: a person's confirmation that still holds, and its bounds.

They stop further enrollments only (semantics.md sections 4 and 5); whoever drives a batch looks at
them before each one, whoever gives or renews an authorization before it is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from git_batch.core.attempt import Usage
from git_batch.core.model import Authorization, BatchState, Budget, holds
from git_batch.core.standing import NEEDS_AUTHORIZATION, StopReason

_NOTHING = Usage()

IN_THE_PLAN = "--plan PLAN"
"""What raises a bound on usage: those stand in the plan alone."""


class Bound(Struct, frozen=True):
    """A bound that is reached.

    Attributes:
        option: of `resume`, which raises it; `{more}` in it stands for a number of tasks.
    """

    reason: StopReason
    said: str
    option: str


def admission_stop(
    state: BatchState, now: datetime, *, replay: bool = False
) -> tuple[StopReason, str] | None:
    """Name the bound that forbids a further enrollment at a time, None if there is none.

    Args:
        replay: of a task that is only to be replayed: its command was paid for already.
    """
    a = state.authorization
    if a is None:
        return StopReason.EXPIRED, "nobody has confirmed this batch"
    if not holds(a, state.former):
        return StopReason.EXPIRED, "nobody has confirmed this batch since it was rebased"
    found = next(reached(a, now, state.enrolled, state.usage, replay=replay), None)
    return None if found is None else (found.reason, found.said)


def reached(
    a: Authorization,
    now: datetime,
    enrolled: int = 0,
    used: Usage = _NOTHING,
    *,
    replay: bool = False,
) -> Iterator[Bound]:
    """List every bound of an authorization that is reached at a time.

    Whoever raises the first one only is stopped by the next.

    Args:
        enrolled, used: what the batch has had of it; nothing yet when it begins.
        replay: as of `admission_stop`.
    """
    if a.expires_at is not None and now >= a.expires_at:
        said = f"the authorization expired at {a.expires_at.isoformat()}"
        yield Bound(StopReason.EXPIRED, said, "--expires 8h")
    if a.deadline_at is not None and now >= a.deadline_at:
        said = f"the deadline {a.deadline_at.isoformat()} has passed"
        yield Bound(StopReason.DEADLINE, said, "--deadline 8h")
    if replay:
        return
    limit = a.budget.max_tasks
    if limit is not None and enrolled >= limit:
        many = f"{limit} enrollment" + ("" if limit == 1 else "s")
        yield Bound(StopReason.BUDGET, f"the budget of {many} is used up", "--max-tasks {more}")
    said_of_usage = _usage_stop(used, a.budget)
    if said_of_usage is not None:
        yield Bound(StopReason.BUDGET, said_of_usage, IN_THE_PLAN)


def _usage_stop(used: Usage, budget: Budget) -> str | None:
    """Name the bound on what agents use; what none of them said is nothing, unless it may not."""
    usd, tokens = budget.max_usd, budget.max_tokens
    if usd is not None and used.usd is not None and used.usd >= usd:
        return f"the budget of {usd:g} USD is used up: {used.usd:g} USD were used"
    spent = (used.input_tokens or 0) + (used.output_tokens or 0)
    if tokens is not None and spent >= tokens:
        return f"the budget of {tokens} tokens is used up: {spent} were used"
    if budget.unknown_stops:
        for bound, what, unsaid in (
            (usd, "USD", used.usd_unsaid),
            (tokens, "tokens", used.tokens_unsaid),
        ):
            if bound is not None and unsaid:
                said = f"it is unknown what is left of the budget of {bound:g} {what}"
                return f"{said}: an agent did not say what it used"
    return None


def needs_authorization(state: BatchState) -> bool:
    """Tell whether only a fresh confirmation lets a stopped batch go on."""
    a = state.authorization
    return a is None or not holds(a, state.former) or state.stop in NEEDS_AUTHORIZATION
