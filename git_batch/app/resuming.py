"""`git batch resume`: read the state, see that nothing else is at work, go on in the same loop.

A batch that somebody is running can be renewed as well: the authorization is appended beside the
run, which takes it up before its next task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from git_batch.app import aftermath, preconditions, readiness, renewing
from git_batch.app.beside import append_beside
from git_batch.app.claiming import claim, let_go
from git_batch.app.following import follow, must_not_be_behind
from git_batch.app.notifying import Bell, around
from git_batch.app.planning import LoadedPlan, load_plan
from git_batch.app.renewing import Renewal
from git_batch.app.requests import ResumeRequest
from git_batch.app.session import Session, must_choose
from git_batch.app.starting import Outcome, take_branch
from git_batch.core import events as ev
from git_batch.core.chain import reading_of, ref_name
from git_batch.core.ids import BatchId
from git_batch.core.model import Authorization, BatchState, accepted
from git_batch.core.standing import BatchStatus
from git_batch.errors import PreconditionError
from git_batch.repo import fingerprint, history, trust
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.repo.locks import RunLock, batch_lock, holder, tree_lock
from git_batch.run import group
from git_batch.run.context import Tools, new_runner
from git_batch.run.lineage import drift_here
from git_batch.views.common import OF_THE_BRANCH, Around

__all__ = ["Renewal", "resume"]

_OVER = (BatchStatus.COMPLETED, BatchStatus.ABANDONED)

Confirm = Callable[[Renewal], bool]
"""Shows a renewal to a person and raises unless they agree; returns whether they were asked."""


def resume(session: Session, request: ResumeRequest, confirm: Confirm, tools: Tools) -> Outcome:
    """Go on with a batch until it stops; one that has ended is only told again."""
    batch = must_choose(session, request.batch).batch_id
    if request.renew and request.plan is None and holder(batch_lock(session.repo, batch)):
        return _renew_live(session, batch, request, confirm, tools)
    runner = new_runner()
    with Bell(session, tools) as bell, RunLock(session.repo, batch, tools.clock()):
        ways = aftermath.Ways(asked=request)
        aftermath.settle(session.repo, tools.progress.note, ways)
        preconditions.objects_cleared_up(session, tools.progress.note)
        who = session.idents()
        journal = Journal.load(session.repo, session.refs, batch, who=who, runner=runner)
        slug, branch = journal.state.slug, journal.state.branch
        preconditions.locks_cleared_up(session, slug, branch, batch, tools.progress.note)
        follow(session, journal.state)
        if journal.state.status in _OVER:
            let_go(session, journal.state, tools.progress.note)
            group.forget(session.repo.scratch)
            return _ended(session, journal, request)
        _no_orphans(session, batch, ways)
        must_not_be_behind(session, journal.state)
        preconditions.plan_is_known(journal.machine.plan, journal.state)
        loaded = None
        if request.plan is not None:
            state, plan = journal.state, journal.machine.plan
            loaded = renewing.changed_plan(session, state, plan, request)
        _ready(session, journal, loaded.files if loaded else (), tools.progress.note)
        _renew(session, journal, request, loaded, confirm, who, tools)
        journal.take_up(tools.clock())
        claim(session, journal.state.slug, batch, who, tools.clock())
        state = bell.drive(journal, who, runner)
        return Outcome(state, journal.machine.plan, around=_around(session, state))


def _around(session: Session, state: BatchState) -> Around | None:
    """Look where the branch is: a run that has nothing to do does not."""
    return None if state.stop in OF_THE_BRANCH else around(session, state)


def _ended(session: Session, journal: Journal, request: ResumeRequest) -> Outcome:
    state = journal.state
    if state.status is BatchStatus.ABANDONED:
        raise PreconditionError(
            f"batch '{state.batch_id}' is abandoned; it does not go on",
            f"what it did: git batch report {state.batch_id}",
            f"its plan can be started anew: {request.as_start('--branch NAME')}",
        )
    if request.plan is not None:
        # Its branch is there, as a rule, and so is the slug that names it in the changed plan.
        new = request.as_start("--branch NAME")
        raise PreconditionError(
            f"batch '{state.batch_id}' is {state.status}; its plan can't change any more",
            f"start what is new as a batch of its own: {new}",
        )
    return Outcome(state, journal.machine.plan, around=_around(session, state))


def _ready(
    session: Session, journal: Journal, plan_files: Sequence[str], note: Callable[[str], None]
) -> None:
    """See that the working tree is where the batch left it, or can be put there."""
    state = journal.state
    preconditions.no_operation(session)
    name = f"refs/heads/{state.branch}"
    untouched = state.enrolled == 0 and state.in_flight is None
    own = preconditions.untracked_among(session, plan_files) if plan_files else ()
    excluded = (*accepted(state.authorization), *own)
    # Of a branch that somebody deleted under their own feet nothing tells what was changed: it is
    # made again where nothing stands on it yet; else the run says that it is gone.
    deleted = session.refs.read(name) is None and session.repo.symbolic_head() == name
    if deleted and untouched:
        take_branch(session, state)
    if untouched or not deleted:
        readiness.refuse_unknown(session, journal.machine.plan, state, excluded, note)
    if untouched and (session.refs.read(name) in (None, state.base)):
        take_branch(session, state)
    elif session.refs.read(name) is not None:
        what = f"batch '{state.batch_id}' goes on in '{state.branch}'"
        preconditions.on_branch(session, state.branch, what)
    readiness.settle_files(session, state, excluded, note)


def _renew(
    session: Session,
    journal: Journal,
    request: ResumeRequest,
    loaded: LoadedPlan | None,
    confirm: Confirm,
    who: Idents,
    tools: Tools,
) -> None:
    """Have a person confirm if that is needed; tell what differs if it isn't."""
    state, plan = journal.state, journal.machine.plan
    here = trust.load(session.repo, state.batch_id).confirmed(state.authorization)
    asked = request.renew or loaded is not None
    why = renewing.why(session, state, asked=asked, here=here)
    if loaded is None:
        edited = renewing.note_edited_plan(session, state, plan)
        if edited is not None:
            tools.progress.note(edited)
    if why is None:
        _tell_changes(session, journal, tools)
        return

    if request.bounds.sign:
        preconditions.can_sign(session, who, sign=True)
    offer = partial(renewing.renewal, session, state, plan, request)
    offer = partial(offer, why=why, here=here, loaded=loaded, who=who)
    offered = offer(at=tools.clock())
    if confirm(offered):
        session.repo.look_again()
        _same_as_asked(offered, offer(at=tools.clock()), loaded)
    _ready(session, journal, loaded.files if loaded else (), tools.progress.note)
    renewing.record(session, journal, offered, loaded, tools.clock())


def _same_as_asked(asked: Renewal, now: Renewal, loaded: LoadedPlan | None) -> None:
    """Refuse what is not any more what a person agreed to."""
    edited = loaded is not None and load_plan(loaded.path).digest != loaded.digest
    if edited or asked.authorization.fingerprint != now.authorization.fingerprint:
        raise PreconditionError(
            "the plan, or what it runs, changed while you were asked", "resume again"
        )


def _tell_changes(session: Session, journal: Journal, tools: Tools) -> None:
    """Note what else runs now than at the confirmation; the branch must be whole for that."""
    state = journal.state
    granted = state.authorization
    drift = drift_here(session.repo, session.refs, state)
    if granted is None or drift is not None:
        return
    plan = journal.machine.plan
    now = fingerprint.take(session.repo, plan, state.head)
    for line in renewing.changed_around(state, plan, granted, now):
        tools.progress.note(line)


def _renew_live(
    session: Session, batch: BatchId, request: ResumeRequest, confirm: Confirm, tools: Tools
) -> Outcome:
    """Renew a batch while somebody runs it."""
    who = session.idents()
    agreed: list[Authorization | None] = []

    def authorized(journal: Journal, at: datetime) -> ev.Authorized:
        state = journal.state
        here = trust.load(session.repo, batch).confirmed(state.authorization)
        offered = renewing.renewal(
            session,
            state,
            journal.machine.plan,
            request,
            why="new bounds were given, for the run that goes on",
            here=here,
            loaded=None,
            who=who,
            at=at,
        )
        # Once more where somebody else's renewal came first: this one is on top of that.
        if agreed != [state.authorization]:
            confirm(offered)
            agreed[:] = [state.authorization]
        fresh = offered.authorization
        trust.confirm(session.repo, batch, fresh, {})
        return ev.Authorized(fresh.confirmed_at, fresh)

    journal = append_beside(session, batch, who, authorized, tools.clock)
    return Outcome(journal.state, journal.machine.plan, live=True)


def _no_orphans(session: Session, batch: BatchId, ways: aftermath.Ways) -> None:
    """Refuse while a process of the batch's last run lives, or end it if that was asked for."""
    tip = session.refs.read(ref_name(batch))
    with reading_of(batch):
        mark = history.last_runner(session.repo, tip) if tip else ""
    aftermath.no_orphans(Path(tree_lock(session.repo)), mark, ways)
