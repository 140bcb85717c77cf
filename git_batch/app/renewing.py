"""A further authorization for a batch: why one is needed, what it grants, what else it changes.

Freshness is the sequence number (semantics.md section 4). What a person does not name stays as it
was granted: bounds, a lifetime that ran out runs as long again. What would stop the batch at once
is refused instead of recorded. Branch and base never change; the plan only by `resume --plan`,
within `core.plandiff.not_allowed`.
"""

from __future__ import annotations

import os
import shlex
from datetime import datetime, timedelta

from msgspec import Struct

from git_batch.app import preconditions
from git_batch.app.granting import authorize, nothing_would_run
from git_batch.app.planning import LoadedPlan, find_plan, load_plan
from git_batch.app.requests import Bounds, ResumeRequest
from git_batch.app.session import Session
from git_batch.core import events as ev
from git_batch.core.actions import raising
from git_batch.core.admission import IN_THE_PLAN, needs_authorization, reached
from git_batch.core.model import Authorization, BatchState, Budget, Plan, accepted, holds
from git_batch.core.outlook import Outlook, outlook
from git_batch.core.plandiff import PlanDiff, compare, not_allowed
from git_batch.core.standing import BatchStatus, StopReason
from git_batch.core.values import replace
from git_batch.errors import PlanError, PreconditionError, RecordError, UsageError
from git_batch.repo import fingerprint, trust
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.run.lineage import drift_here


class Renewal(Struct, frozen=True):
    """A further authorization to be confirmed, and why it is needed.

    Attributes:
        state: the batch as it stands under `old`.
        plan: the plan that will run; `diff` says how it differs from the one in force.
        outlook: what becomes of each task under it.
        here: the one in force was confirmed in this repository: what is done was seen by a person.
        notes: what a person should know before they answer.
    """

    state: BatchState
    plan: Plan
    authorization: Authorization
    why: str
    old: Budget = Budget()
    diff: PlanDiff | None = None
    outlook: Outlook = Outlook()
    here: bool = True
    notes: tuple[str, ...] = ()


def changed_plan(
    session: Session, state: BatchState, plan: Plan, request: ResumeRequest
) -> LoadedPlan:
    """Read the plan that is to come into force.

    Raises:
        UsageError: it is another batch's.
        PreconditionError: it changes what is done, in flight or under review.
    """
    assert request.plan is not None
    path = request.plan
    loaded = load_plan(path)
    if loaded.plan.slug != state.slug:
        raise UsageError(
            f"'{path}' is the plan of '{loaded.plan.slug}', batch '{state.batch_id}' has the slug "
            f"'{state.slug}'",
            f"start it as a batch of its own: {request.as_start()}",
        )
    refused = not_allowed(compare(plan, loaded.plan), state)
    if refused:
        listed = "\n".join(
            f"\t'{c.task}' {c.kind}" + (f" ({', '.join(c.fields)})" if c.fields else "")
            for c in refused
        )
        raise PreconditionError(
            f"the plan changes tasks that are done, in flight or under review:\n{listed}",
            f"the plan in force is {state.plan_digest}, '{path}' is {loaded.digest}",
            "leave those tasks as they were; a task that is added may change their work",
        )
    preconditions.commands_exist(session, loaded.plan)
    return loaded


def why(session: Session, state: BatchState, *, asked: bool, here: bool) -> str | None:
    """Say why a person has to confirm; None if the standing authorization is enough.

    Args:
        asked: new bounds or another plan were given.
        here: the standing authorization was confirmed in this repository.

    Raises:
        PreconditionError: the batch failed, and its branch is not whole again.
        RecordError: the authorization is for another plan, base or branch than the record's.
    """
    _matches(state)
    if state.authorization is not None and not holds(state.authorization, state.former):
        return f"the batch was rebased onto {state.base[:12]} since"
    if state.status is BatchStatus.FAILED:
        drift = drift_here(session.repo, session.refs, state)
        if drift is not None:
            raise PreconditionError(
                f"batch '{state.batch_id}' failed and its branch is not whole: {drift.detail}",
                *drift.ways,
            )
        return "the branch is where the record says again"
    if state.authorization is None:
        return "nobody has confirmed this batch"
    if not here:
        return "its record comes from elsewhere: nobody has confirmed it in this repository"
    if asked:
        return "new bounds or another plan were given"
    if needs_authorization(state) and state.in_flight is None:
        return state.reason or "nobody has confirmed this batch"
    return None


def _matches(state: BatchState) -> None:
    a = state.authorization
    if a is None:
        return
    former = () if holds(a, state.former) else tuple(line.base for line in state.former)
    for what, granted, is_now, was in (
        ("plan", a.plan_digest, state.plan_digest, ()),
        ("base", a.base, state.base, former),
        ("branch", a.branch, state.branch, ()),
    ):
        if granted not in (is_now, *was):
            raise RecordError(
                f"the authorization in the record of '{state.batch_id}' is for the {what} "
                f"'{granted}', the record's is '{is_now}'",
                "look at its history: git batch log",
            )


def renewal(
    session: Session,
    state: BatchState,
    plan: Plan,
    request: ResumeRequest,
    *,
    why: str,
    here: bool,
    loaded: LoadedPlan | None,
    who: Idents,
    at: datetime,
) -> Renewal:
    """Make the further authorization that a person is asked for; writes nothing.

    Raises:
        UsageError: there is no such remote for claims.
        PreconditionError: it would stop the batch at once.
    """
    preconditions.remote_exists(session, request.bounds.claim)
    old, now = state.authorization, max(at, state.updated_at)
    granted, asked = old.budget if old else plan.budget, _total(state, request.bounds)
    to_come = loaded.plan if loaded else replace(plan, budget=granted)
    fresh = _further(session, state, to_come, asked, loaded, who, now)
    _not_at_once(state, fresh, asked, request, now)
    notes = (f"a person has to confirm: {why}", *_around(state, plan, old, fresh))
    new, diff = (loaded.plan, compare(plan, loaded.plan)) if loaded else (plan, None)
    coming = outlook(new, state.tasks, state.in_flight)
    return Renewal(state, new, fresh, why, granted, diff, coming, here, notes)


def _further(
    session: Session,
    state: BatchState,
    to_come: Plan,
    asked: Bounds,
    loaded: LoadedPlan | None,
    who: Idents,
    now: datetime,
) -> Authorization:
    """Lay what is asked for over what was granted before, or over the plan's own bounds."""
    old = state.authorization
    fresh = authorize(
        seq=old.seq + 1 if old else 1,
        actor=who.author,
        at=now,
        digest=loaded.digest if loaded else state.plan_digest,
        branch=state.branch,
        base=state.base,
        plan=to_come,
        bounds=asked,
        untracked=_untracked(session, old, loaded),
        fingerprint=fingerprint.take(session.repo, to_come, state.head),
    )
    return fresh if old is None else _carried_over(old, fresh, asked, now)


def _untracked(
    session: Session, old: Authorization | None, loaded: LoadedPlan | None
) -> tuple[bytes, ...]:
    """Accept what was accepted before, and the files of a plan that is to come."""
    own = preconditions.untracked_among(session, loaded.files) if loaded else ()
    return tuple(dict.fromkeys((*accepted(old), *own)))


def _carried_over(
    old: Authorization, fresh: Authorization, asked: Bounds, now: datetime
) -> Authorization:
    """Keep what a person granted before and does not change now."""
    fresh = replace(fresh, fail_fast=fresh.fail_fast or old.fail_fast)
    if asked.claim is None:
        fresh = replace(fresh, claim=old.claim)
    if asked.expires is None and old.expires_at is not None:
        fresh = replace(fresh, expires_at=_lifetime(old, now))
    return fresh


def _total(state: BatchState, asked: Bounds) -> Bounds:
    """Turn `+N` into a total."""
    if asked.extra_tasks is not None:
        return replace(asked, max_tasks=state.enrolled + asked.extra_tasks)
    return asked


def _lifetime(old: Authorization, now: datetime) -> datetime:
    """Keep an end that lies ahead; one that has passed comes after the same time again."""
    assert old.expires_at is not None
    if old.expires_at > now:
        return old.expires_at
    lifetime = old.expires_at - old.confirmed_at
    return now + lifetime if lifetime > timedelta(0) else old.expires_at


def _not_at_once(
    state: BatchState,
    fresh: Authorization,
    asked: Bounds,
    request: ResumeRequest,
    now: datetime,
) -> None:
    """Refuse what would stop the batch at once, and say all that has to be given instead.

    That is whatever stops it, and again what a person gave because it would stop it otherwise.

    Args:
        asked: the bounds of the request, as totals.
    """
    replay, old = bool(state.agenda.replays), state.authorization
    stops = list(reached(fresh, now, state.enrolled, state.usage, replay=replay))
    if not stops or state.in_flight is not None:
        return
    given = {
        StopReason.BUDGET: asked.max_tasks is not None,
        StopReason.DEADLINE: asked.deadline is not None,
        StopReason.EXPIRED: asked.expires is not None,
    }
    before = reached(old, now, state.enrolled, state.usage) if old else iter(())
    options = [b.option for b in (*stops, *(b for b in before if given[b.reason]))]
    raised = "raise the bound in the plan: " if IN_THE_PLAN in options else ""
    if request.plan is not None:
        options = [option for option in options if option != IN_THE_PLAN]
    way = request.again(*raising(state, sorted(set(options))))
    raise nothing_would_run(stops, raised + way)


def _around(
    state: BatchState, plan: Plan, old: Authorization | None, fresh: Authorization
) -> list[str]:
    if old is None:
        return []
    same = old.plan_digest == fresh.plan_digest
    return changed_around(state, plan, old, fresh.fingerprint, same_plan=same)


def changed_around(
    state: BatchState,
    plan: Plan,
    old: Authorization,
    now: fingerprint.Fingerprint,
    *,
    same_plan: bool = True,
) -> list[str]:
    """Warn of what else runs now than at the last confirmation, and say how to look at it."""
    # Without anybody else's commits it was tasks that changed the files of the branch.
    others = bool(state.foreign or state.former)
    scripts = None if others else fingerprint.executed(plan)
    differing = fingerprint.differing(old.fingerprint, now, same_plan=same_plan, scripts=scripts)
    commits = f"{state.base[:12]}..{state.branch}"
    return [
        f"warning: not as it was at the last confirmation: {name}; if that was not meant, stop "
        f"before it runs; look: {fingerprint.look(name, commits)}"
        for name in differing
    ]


def record(
    session: Session, journal: Journal, agreed: Renewal, loaded: LoadedPlan | None, at: datetime
) -> None:
    """Write down what a person agreed to: here first, then in the record."""
    fresh = replace(agreed.authorization, confirmed_at=max(at, agreed.state.updated_at))
    files = trust.digests(loaded.files) if loaded else {}
    trust.confirm(session.repo, agreed.state.batch_id, fresh, files)
    if loaded is not None and loaded.digest != agreed.state.plan_digest:
        journal.renew_plan(loaded.plan)
    journal.append(ev.Authorized(fresh.confirmed_at, fresh))


def note_edited_plan(session: Session, state: BatchState, plan: Plan) -> str | None:
    """Say that the plan file differs from the plan in force; None if it doesn't.

    It has no effect: the batch runs the plan that was confirmed. The file is the one that was
    read at the confirmation here; where that isn't known, the one that `start` would find.
    """
    known = dict(trust.load(session.repo, state.batch_id).files)
    if known:
        if trust.digests(tuple(known)) == known:
            return None
        path = next(iter(known))
    else:
        try:
            path = find_plan(session.repo.layout.top, None)
        except UsageError:
            return None
    if not os.path.exists(path):
        return None
    shown = os.path.relpath(path)
    try:
        loaded = load_plan(path)
    except (PlanError, UsageError) as error:
        return (
            f"'{shown}' was edited and is no plan now ({error.message.splitlines()[0]}); "
            f"the batch runs the plan that was confirmed, {state.plan_digest}"
        )
    if loaded.plan.slug != state.slug or loaded.digest == state.plan_digest:
        return None
    from git_batch.views.plandiff import summary

    return (
        f"'{shown}' was edited since: {summary(compare(plan, loaded.plan))}\n"
        f"the batch runs the plan that was confirmed, {state.plan_digest}\n"
        f"to change to {loaded.digest}: git batch resume --plan {shlex.quote(shown)}"
    )
