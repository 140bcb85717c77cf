"""`git batch start`: check everything, have a person confirm, check again if they were asked, run.

Nothing is written before the answer. Then the record comes first, the branch second, HEAD third,
each by compare-and-swap, so that a crash in between leaves something that `resume` completes.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from git_batch.app import aftermath, preconditions
from git_batch.app.claiming import claim
from git_batch.app.granting import authorize, nothing_would_run
from git_batch.app.notifying import Bell
from git_batch.app.planning import LoadedPlan
from git_batch.app.reader import PlanReader
from git_batch.app.requests import StartRequest
from git_batch.app.session import Session
from git_batch.core import events as ev
from git_batch.core.admission import reached
from git_batch.core.ids import BatchId, Oid
from git_batch.core.model import Authorization, BatchState, Plan
from git_batch.core.values import replace
from git_batch.errors import PreconditionError, RecordError, UsageError
from git_batch.repo import batches, claims, fingerprint, trust
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.repo.locks import RunLock, batch_lock, busy, holder, refuse_live
from git_batch.repo.stalelocks import wait_for
from git_batch.run.context import Tools, new_runner
from git_batch.views.common import Around

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"  # to import `string` takes a millisecond


class Proposal(Struct, frozen=True):
    """What is to be confirmed: shown to a person, and checked again after the answer."""

    loaded: LoadedPlan
    authorization: Authorization
    head: str | None
    who: Idents

    @property
    def plan(self) -> Plan:
        """The plan to be run."""
        return self.loaded.plan


def propose(
    session: Session,
    request: StartRequest,
    at: datetime,
    reader: PlanReader,
    *,
    again: bool = False,
) -> Proposal:
    """Check everything that can be checked before a person is asked; writes nothing.

    Args:
        reader: reads the plan of the request.
        again: leave out what a person's answer can't have changed and may ask them something.

    Raises:
        BatchError: what is in the way, and what to do about it.
    """
    here = _look(session, request, again=again)  # the plan may still be being read
    loaded = reader.read(session.repo.layout.top, request.plan, request.again())
    plan = loaded.plan
    if not again:
        preconditions.can_sign(session, here.who, sign=request.bounds.sign)
    branch = _branch(session, request, plan.slug, here)
    preconditions.commands_exist(session, plan)
    preconditions.remote_exists(session, request.bounds.claim)
    untracked = preconditions.clean_tree(session, plan, loaded.files, request)
    authorization = authorize(
        seq=1,
        actor=here.who.author,
        at=at,
        digest=loaded.digest,
        branch=branch,
        base=here.base,
        plan=plan,
        bounds=request.bounds,
        untracked=untracked,
        fingerprint=fingerprint.take(session.repo, plan, here.base),
    )
    _refuse_vain(request, authorization, at)
    return Proposal(loaded, authorization, here.head, here.who)


def _refuse_vain(request: StartRequest, authorization: Authorization, at: datetime) -> None:
    """Refuse bounds within which nothing would run."""
    bounds = list(reached(authorization, at))
    if bounds:
        options = (bound.option.format(more="N") for bound in bounds)
        raise nothing_would_run(bounds, request.again(*options))


class _Here(Struct, frozen=True):
    """What there is before a plan: HEAD's branch, where to begin, who works, other batches."""

    head: str | None
    base: Oid
    who: Idents
    known: Sequence[batches.Summary]


def _look(session: Session, request: StartRequest, *, again: bool) -> _Here:
    """Check what needs no plan."""
    aftermath.refuse_unless_live(session.repo)
    branch, head = session.repo.head()
    preconditions.no_operation(session, scanned=True)
    who = session.idents()
    preconditions.can_commit(session, again=again)
    base = _resolve(session, request.base) if request.base else head
    return _Here(branch, base, who, batches.listed(session.repo))


def start(
    session: Session,
    request: StartRequest,
    confirm: Callable[[Proposal], bool],
    tools: Tools,
    reader: PlanReader,
) -> Outcome:
    """Start a batch and drive it until it stops.

    Args:
        confirm: shows the proposal to a person and raises unless they agree. Returns whether they
            were asked: then time has passed, and everything is looked at again.
        tools: from the answer on a signal is a wish to stop, to its interrupt; before that nothing
            is begun, so it ends the process.
        reader: as of `propose`; closed before anything begins.
    """
    refuse_live(session.repo)
    try:
        with reader:
            proposal = propose(session, request, tools.clock(), reader)
            asked = confirm(proposal)
            at = tools.clock()
            if asked:
                session.repo.look_again()
                _same_as_asked(proposal, propose(session, request, at, reader, again=True))
    except PreconditionError:
        refuse_live(session.repo)  # somebody who began meanwhile is the better reason
        raise
    runner = new_runner()
    batch = new_batch_id(proposal.plan.slug)
    interruptible = tools.interrupt.install()
    with interruptible, Bell(session, tools) as bell, RunLock(session.repo, batch, at):
        aftermath.settle(session.repo, tools.progress.note)
        journal = _begin(session, proposal, batch, runner, at, tools)
        state = bell.drive(journal, proposal.who, runner)
        return Outcome(state, proposal.plan)


class Outcome(Struct, frozen=True):
    """A batch after a run, and its plan.

    Attributes:
        live: a run that goes on was renewed instead.
        around: what is found around the record, where the run had no reason to look.
    """

    state: BatchState
    plan: Plan
    live: bool = False
    around: Around | None = None


def _same_as_asked(asked: Proposal, now: Proposal) -> None:
    """Refuse what is not any more what a person agreed to."""
    if _essence(asked) != _essence(now):
        raise PreconditionError(
            "the plan, what it runs, the branch or HEAD changed while you were asked", "start again"
        )


def _essence(p: Proposal) -> tuple[object, ...]:
    """Give what a person agreed to, apart from the time of asking."""
    a = p.authorization
    return (p.loaded.digest, p.head, p.who, a.branch, a.base, a.untracked, a.budget, a.fingerprint)


def _begin(
    session: Session, proposal: Proposal, batch: BatchId, runner: str, at: datetime, tools: Tools
) -> Journal:
    """Claim the slug, write the beginning of the record, and make the branch."""
    plan, branch, who = proposal.plan, proposal.authorization.branch, proposal.who
    preconditions.locks_cleared_up(session, plan.slug, branch, None, tools.progress.note)
    preconditions.objects_cleared_up(session, tools.progress.note)
    claim(session, plan.slug, batch, who, at)
    journal = Journal.create(session.repo, session.refs, plan, who=who, runner=runner)
    _record(session, journal, batch, proposal, at)
    take_branch(session, journal.state)
    return journal


def _record(
    session: Session, journal: Journal, batch: BatchId, proposal: Proposal, at: datetime
) -> None:
    """Write the record's first two events; what was shown is what is granted."""
    plan, granted = proposal.plan, replace(proposal.authorization, confirmed_at=at)
    trust.confirm(session.repo, batch, granted, trust.digests(proposal.loaded.files))
    journal.append(
        ev.Created(
            at, batch, plan.slug, plan.title, granted.branch, granted.base, granted.plan_digest
        )
    )
    journal.append(ev.Authorized(at, granted))


def new_batch_id(slug: str) -> BatchId:
    """Make a batch id: the slug and six random characters."""
    return BatchId(f"{slug}-{''.join(secrets.choice(_ALPHABET) for _ in range(6))}")


def take_branch(session: Session, state: BatchState) -> None:
    """Make the branch at its base if it is not there yet, and check it out.

    Done again after a crash: what is there already is taken over.
    """
    name = f"refs/heads/{state.branch}"
    if session.refs.read(name) is None and state.enrolled == 0:
        session.refs.swap(name, None, state.base, f"start {state.batch_id}")
    if session.repo.symbolic_head() != name:
        git_dir = session.repo.layout.git_dir
        wait_for(f"{git_dir}/HEAD", f"{git_dir}/index")
        session.repo.git.run(["switch", "--quiet", "--no-guess", state.branch], fsmonitor=True)


def _resolve(session: Session, rev: str) -> Oid:
    found = session.repo.git.commit_named(rev)
    if found is None:
        raise UsageError(f"'{rev}' does not name a commit")
    return Oid(found)


def _branch(session: Session, request: StartRequest, slug: str, here: _Here) -> str:
    """Name the batch's branch; it and the slug are free."""
    named = request.branch
    # After a slug it can't be but a good name.
    if named and session.repo.git.call(["check-ref-format", "--branch", named]).status:
        raise UsageError(f"'{named}' is not a name for a branch")
    branch = named or f"batch/{slug}"
    _slug_free(session, slug, here.known)
    _branch_free(session, branch, here, request.again("--branch NAME"))
    return branch


def _branch_free(session: Session, branch: str, here: _Here, elsewhere: str) -> None:
    """Refuse a branch that is in use, or can't be; `elsewhere` starts the batch on another."""
    name = f"refs/heads/{branch}"
    tip = session.refs.read(name)
    if tip is not None:
        _record_readable(branch, here, elsewhere)
    if tip is not None and not (tip == here.base and not _used(session, branch, here.known)):
        hints = [f"give the batch another branch: {elsewhere}"]
        its = [s for s in here.known if s.header is not None and s.header.branch == branch]
        if any(s.unfinished for s in its):
            hints.append("or go on with its batch: git batch status, git batch resume")
        elif its:
            hints.append(f"what its batch did, which has ended: git batch report {its[0].batch_id}")
        else:
            from git_batch.app.unrecorded import way_to_lost  # rarely needed

            hints += way_to_lost(session, branch, tip)
        raise PreconditionError(f"branch '{branch}' exists already, at {tip[:12]}", *hints)
    for other in _in_the_way(session, branch):
        raise PreconditionError(
            f"branch '{other}' is in the way of '{branch}'",
            f"give the batch another branch: {elsewhere}",
            f"or rename that one: git branch -m {shlex.quote(other)} NAME",
        )


def _record_readable(branch: str, here: _Here, elsewhere: str) -> None:
    """Send to `recover` whoever would be told to go on with a batch that can't be read."""
    for error in (s.error for s in here.known if s.branch == branch):
        if error is not None:
            other = f"or give the new batch another branch: {elsewhere}"
            raise RecordError(error.message, *error.hints, other)


def _in_the_way(session: Session, branch: str) -> Iterator[str]:
    """Name branches that git can't have beside one: `a` and `a/b` are a file and a folder."""
    parts = branch.split("/")
    for i in range(1, len(parts)):
        above = "/".join(parts[:i])
        if session.refs.read(f"refs/heads/{above}") is not None:
            yield above
    listed = ["for-each-ref", "--count=1", "--format=%(refname)", f"refs/heads/{branch}/"]
    below = os.fsdecode(session.repo.git.run(listed)).splitlines()
    yield from (name.removeprefix("refs/heads/") for name in below)


def _used(session: Session, branch: str, known: Sequence[batches.Summary]) -> bool:
    """Tell whether a branch that stands at the base is a batch's, or where a person works."""
    if session.repo.symbolic_head() == f"refs/heads/{branch}":
        return True
    return any(s.header is not None and s.header.branch == branch for s in known)


def _slug_free(session: Session, slug: str, known: Sequence[batches.Summary]) -> None:
    for item in known:
        if item.header is not None and item.header.slug == slug and item.unfinished:
            live = holder(batch_lock(session.repo, item.batch_id))
            if live is not None:
                raise busy(live)
            why = f"batch '{item.batch_id}' has the slug '{slug}' and isn't finished"
            raise claims.taken(why, item.batch_id)
    held = claims.on_slug(session.repo, session.refs, slug)
    if held is not None:
        from git_batch.app.unrecorded import refuse_lost  # rarely needed

        refuse_lost(session, slug, held.batch)
