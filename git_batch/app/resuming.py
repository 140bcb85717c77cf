"""`git batch resume`: read the state, see that nothing else is at work, go on in the same loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from git_batch.app import preconditions
from git_batch.app.session import Session, must_choose
from git_batch.app.starting import Bounds, Outcome, authorize, take_branch
from git_batch.core import events as ev
from git_batch.core.machine import needs_authorization
from git_batch.core.model import Authorization, BatchState, BatchStatus, Plan
from git_batch.errors import PreconditionError
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.repo.locks import RunLock, tree_lock
from git_batch.run import descendants
from git_batch.run.context import RunContext, Tools, new_runner
from git_batch.run.driver import drive
from git_batch.run.lineage import drift_of

_ORPHAN_GRACE = 5.0


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """The options of `git batch resume`."""

    batch: str | None = None
    bounds: Bounds = Bounds()
    kill_orphans: bool = False
    renew: bool = False


@dataclass(frozen=True, slots=True)
class Renewal:
    """A further authorization to be confirmed, and why it is needed."""

    state: BatchState
    plan: Plan
    authorization: Authorization
    why: str


def resume(
    session: Session, request: ResumeRequest, confirm: Callable[[Renewal], None], tools: Tools
) -> Outcome:
    """Go on with a batch until it stops; one that has ended is only told again.

    Args:
        confirm: shows the renewal to a person and returns if they agree, else raises.
    """
    batch = must_choose(session, request.batch).batch_id
    runner = new_runner()
    with RunLock(session.repo, batch, tools.clock()):
        who = session.idents()
        journal = Journal.load(session.repo, session.refs, batch, who=who, runner=runner)
        if journal.state.status in (BatchStatus.COMPLETED, BatchStatus.ABANDONED):
            return Outcome(journal.state, journal.machine.plan)
        _no_orphans(session, request)
        _ready(session, journal.state)
        _renew(session, journal, request, confirm, who, tools)
        journal.take_up()
        with RunContext(session.repo, session.refs, journal, who, runner, tools) as context:
            return Outcome(drive(context), context.machine.plan)


def _ready(session: Session, state: BatchState) -> None:
    """See that the working tree is where the batch left it, or can be put there."""
    preconditions.no_operation(session)
    name = f"refs/heads/{state.branch}"
    untouched = state.enrolled == 0 and state.in_flight is None
    accepted = state.authorization.untracked if state.authorization else ()
    if state.in_flight is None:
        preconditions.refuse_dirt(preconditions.still_clean(session, accepted))
    if untouched and (session.refs.read(name) in (None, state.base)):
        take_branch(session, state)
    elif session.refs.symbolic() != name and session.refs.read(name) is not None:
        raise PreconditionError(
            f"batch '{state.batch_id}' goes on in '{state.branch}', which is not checked out",
            f"git switch {state.branch}",
        )


def _renew(
    session: Session,
    journal: Journal,
    request: ResumeRequest,
    confirm: Callable[[Renewal], None],
    who: Idents,
    tools: Tools,
) -> None:
    state, plan = journal.state, journal.machine.plan
    why = _why_renew(session, state, request)
    if why is None:
        return
    old = state.authorization
    at = tools.clock()
    bounds = _bounds(state, request.bounds)
    fresh = authorize(
        seq=old.seq + 1 if old else 1,
        who=who,
        at=at,
        digest=state.plan_digest,
        branch=state.branch,
        base=state.base,
        plan=replace(plan, budget=replace(old.budget) if old else plan.budget),
        bounds=bounds,
        untracked=old.untracked if old else (),
    )
    confirm(Renewal(state, plan, fresh, why))
    journal.append(ev.Authorized(tools.clock(), fresh))


def _bounds(state: BatchState, asked: Bounds) -> Bounds:
    """Turn `+N` into a total; what is not named keeps the standing authorization's value."""
    if asked.extra_tasks is not None:
        return replace(asked, max_tasks=state.enrolled + asked.extra_tasks)
    return asked


def _why_renew(session: Session, state: BatchState, request: ResumeRequest) -> str | None:
    if state.status is BatchStatus.FAILED:
        drift = drift_of(session.repo, session.refs, state.branch, state.head, state.in_flight)
        if drift is not None:
            raise PreconditionError(
                f"batch '{state.batch_id}' failed and its branch is not whole: {drift.detail}",
                drift.way_out,
            )
        return "the branch is where the record says again"
    if request.renew:
        return "new bounds were given"
    if needs_authorization(state) and state.in_flight is None:
        return state.reason or "nobody has confirmed this batch"
    return None


def _no_orphans(session: Session, request: ResumeRequest) -> None:
    """Refuse while a process of an earlier run lives, or end it if that was asked for."""
    path = Path(tree_lock(session.repo))
    alive = descendants.living(path, "")
    if alive and request.kill_orphans:
        alive = descendants.end(alive, _ORPHAN_GRACE)
    if alive:
        named = "\n".join(f"\t{left.pid}  {left.command}" for left in alive[:20])
        raise PreconditionError(
            f"processes of an earlier run are still alive:\n{named}",
            "wait until they end, or end them: git batch resume --kill-orphans",
        )
