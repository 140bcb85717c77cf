"""What a person's confirmation grants: the bounds that they set, laid over the plan's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta

from git_batch.app.requests import Bounds
from git_batch.core.admission import Bound
from git_batch.core.ids import Oid
from git_batch.core.model import Actor, Authorization, Budget, Plan
from git_batch.core.values import replace
from git_batch.errors import PreconditionError


def authorize(
    *,
    seq: int,
    actor: Actor,
    at: datetime,
    digest: str,
    branch: str,
    base: Oid,
    plan: Plan,
    bounds: Bounds,
    untracked: tuple[bytes, ...],
    fingerprint: tuple[tuple[str, str], ...],
) -> Authorization:
    """Make what a person's confirmation grants."""
    budget = _budget(plan.budget, bounds)
    return Authorization(
        seq=seq,
        actor=actor,
        confirmed_at=at,
        plan_digest=digest,
        branch=branch,
        base=base,
        nonce=os.urandom(16).hex(),
        budget=budget,
        expires_at=_moment(bounds.expires, at),
        deadline_at=_moment(budget.deadline, at),
        fail_fast=plan.fail_fast or bounds.fail_fast,
        untracked=untracked,
        fingerprint=fingerprint,
        claim=bounds.claim,
        signed=bounds.sign,
    )


def nothing_would_run(bounds: Sequence[Bound], *ways: str) -> PreconditionError:
    """Refuse bounds that would stop a batch at once."""
    return PreconditionError(f"nothing would run: {'; '.join(b.said for b in bounds)}", *ways)


def _budget(planned: Budget, bounds: Bounds) -> Budget:
    """Lay the options over the plan's budget."""
    return replace(
        planned,
        max_tasks=planned.max_tasks if bounds.max_tasks is None else bounds.max_tasks,
        deadline=planned.deadline if bounds.deadline is None else bounds.deadline,
        qa_failure_limit=bounds.qa_failures or planned.qa_failure_limit,
    )


def _moment(when: float | datetime | None, at: datetime) -> datetime | None:
    """Resolve a duration from a confirmation, or a time, to a time."""
    if when is None or isinstance(when, datetime):
        return when
    return at + timedelta(seconds=when)
