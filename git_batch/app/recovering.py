"""`git batch recover`: bring back a record that was lost, from whatever is left of it.

In this order: an event that the commits' trailers, the ref's log or a remote's copy still name, or
one that lies in the object store without a name; the newest of those whose chain has the event
that the branch's newest task names. Only if there is none the record is rebuilt from trailers
(`core.rebuilding`). Nothing is overwritten: a ref that holds an older event is moved forward, a
ref file that can't be read is put aside.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from git_batch.app import preconditions
from git_batch.app.planning import load_plan
from git_batch.app.session import Session, outside_of_tasks
from git_batch.app.unrecorded import branch_of
from git_batch.app.verifying import commit_of, tracking_copies
from git_batch.core import canonical
from git_batch.core.chain import ref_name
from git_batch.core.claims import Seen, claim_of
from git_batch.core.ids import BATCH_ID, BatchId, Oid, slug_of
from git_batch.core.model import Plan
from git_batch.core.naming import few_of
from git_batch.core.rebuilding import (
    UNPROVEN,
    WHY,
    Remains,
    is_stand_in,
    rebuild,
    remains,
    stand_in,
)
from git_batch.core.standing import BatchStatus
from git_batch.core.unrecorded import by_trailers
from git_batch.errors import GitError, PreconditionError, RecordError, UsageError
from git_batch.repo import batches, claimed, claims, lostevents, recordfiles, trust
from git_batch.repo.journal import Journal
from git_batch.repo.locks import RunLock
from git_batch.repo.lostfiles import set_aside
from git_batch.repo.recordread import read_at
from git_batch.run.context import new_runner
from git_batch.run.lineage import drift_here
from git_batch.views.common import stands_text

_LISTED = 10


class _Case(Struct, frozen=True):
    """A branch whose record is to be brought back."""

    session: Session
    branch: str
    batch: BatchId
    seen: tuple[Seen, ...]
    base: Oid
    at: datetime

    @property
    def name(self) -> str:
        """The record's ref."""
        return ref_name(self.batch)


def recover(session: Session, named: str | None, *, plan: str | None, at: datetime) -> list[str]:
    """Bring back the record of the batch on a branch, and say how and what is lost.

    Raises:
        PreconditionError: no commit of the branch is a batch's, or its trailers contradict
            themselves; or the branch was deleted, and the record is here.
        UsageError: the plan is not the one that the commits name.
    """
    outside_of_tasks()
    case = _case(session, named, at)
    with RunLock(session.repo, case.batch, at):
        slug = slug_of(case.batch)
        preconditions.locks_cleared_up(session, slug, case.branch, case.batch, session.note)
        preconditions.objects_cleared_up(session, session.note)
        current, aside = lostevents.readable_ref(session.repo, session.refs, case.name)
        said = [f"put aside: the ref's file, which could not be read, is now '{aside}'"]
        said = [*(said if aside else []), *_mended(case, current)]
        best = _rebuilt(case, current) or _best(case, current)
        if best is None or (plan is not None and _is_stand_in(session, best)):
            return said + _rebuild(case, current, plan)
        if best != current:
            said += [*_put_back(case, current, best), *_mended(case, best)]
        said += _gap(case, best)
        here = f"the record of '{case.batch}' is here and can be read"
        return said or [f"{here}; nothing was changed"]


def _case(session: Session, named: str | None, at: datetime) -> _Case:
    branch, meant = named, None
    if named is None:
        on = session.repo.symbolic_head()
        if on is None:
            raise UsageError("HEAD is detached", "name a branch: git batch recover BRANCH")
        branch = on
    assert branch is not None
    if BATCH_ID.match(branch) and session.refs.read(f"refs/heads/{branch}") is None:
        meant = BatchId(branch)
        branch = _branch_of(session, meant)
    branch = _branch_there(session, branch.removeprefix("refs/heads/"))
    tip = commit_of(session, branch, or_batch=True)
    batch, base, seen = claimed.batch_part(session.repo.git, tip)
    if batch is None or not BATCH_ID.match(batch):
        batch = meant or _by_records(session, branch)
        return _Case(session, branch, batch, (), tip, at)
    if meant not in (None, batch):
        raise PreconditionError(
            f"the commits of '{branch}' are of batch '{batch}', not of '{meant}'",
            "name the branch with its commits: git batch recover BRANCH",
        )
    return _Case(session, branch, batch, tuple(seen), base, at)


def _branch_there(session: Session, named: str) -> str:
    """Name the branch of a record that is here, by its slug as well; other names stay as they are.

    Raises:
        PreconditionError: it was deleted: it is the branch that has to come back.
    """
    if session.repo.git.commit_named(named) is not None:
        return named
    known = [s for s in batches.listed(session.repo) if named in (s.branch, s.slug)]
    here = next((s for s in known if s.header is not None), None)
    if here is None or here.ref_tip is None:
        return named
    if session.refs.read(f"refs/heads/{here.branch}") is not None:
        return here.branch
    drift = drift_here(session.repo, session.refs, read_at(session.repo, here.ref_tip)[2])
    assert drift is not None
    raise PreconditionError(f"the record of '{here.batch_id}' is here: {drift.detail}", *drift.ways)


def _branch_of(session: Session, batch: BatchId) -> str:
    """Name the branch of a batch: by its record, by its slug, else by the branches' trailers."""
    known = batches.find(session.repo, batch)
    usual = known.branch if known else f"batch/{slug_of(batch)}"
    if session.refs.read(f"refs/heads/{usual}") is None:
        return branch_of(session, batch) or usual
    return usual


def _by_records(session: Session, branch: str) -> BatchId:
    """Name the batch of a branch that has no commit of a task yet: only a record tells."""
    here = batches.listed(session.repo)
    known = [s for s in here if s.branch == branch]
    if known:
        return known[0].batch_id
    found = claims.listed(session.repo, session.refs).values()
    claimed_by = {claim.batch for claim in found if isinstance(claim, claims.Claim)}
    lost = sorted(filter(BATCH_ID.match, claimed_by.difference(s.batch_id for s in here)))
    raise PreconditionError(
        f"no commit of '{branch}' has the trailers of a batch",
        *(f"a record that is not here any more: git batch recover {batch}" for batch in lost),
    )


def _rebuilt(case: _Case, current: Oid | None) -> Oid | None:
    """Take a record that was rebuilt before; it has none of the events that the commits name."""
    if current is None:
        return None
    try:
        _, _, state = read_at(case.session.repo, current)
    except (RecordError, GitError):
        return None
    on_trust = any(item.reason == WHY for item in state.tasks.values())
    return current if on_trust and state.batch_id == case.batch else None


def _best(case: _Case, current: Oid | None) -> Oid | None:
    """Choose the newest record that is left and that the branch's newest task speaks for."""
    session = case.session
    claims = [claim_of(commit.message)[0] for commit in case.seen]
    of_it = [c.record for c in claims if c is not None and c.batch == case.batch]
    needed = of_it[-1] if of_it else None
    if current is not None:
        found = lostevents.newest(session.repo, case.batch, needed, [current], search=False)
        seen = trust.load(session.repo, case.batch).step
        if found == current and read_at(session.repo, current)[0].tip.step >= seen:
            return current
    named = [
        *([current] if current else []),
        *lostevents.logged(session.repo, case.name),
        *tracking_copies(session, case.batch).values(),
    ]
    return lostevents.newest(session.repo, case.batch, needed, named, search=True)


def _is_stand_in(session: Session, oid: Oid) -> bool:
    return is_stand_in(read_at(session.repo, oid)[1])


def _put_back(case: _Case, current: Oid | None, best: Oid) -> list[str]:
    session = case.session
    session.refs.swap(case.name, current, best, f"recover {case.batch}")
    at, _, state = read_at(session.repo, best)
    said = [f"the record of '{case.batch}' is back, at its event {at.tip.step} ({best})"]
    seen = trust.load(session.repo, case.batch).step
    if seen > at.tip.step:
        trust.forget(session.repo, case.batch)
        said.append(f"lost: the events {at.tip.step + 1} to {seen}")
    unfinished = state.status is BatchStatus.RUNNING  # nobody is running it: we hold its lock
    stands = "is not finished" if unfinished else stands_text(state.status)
    return [*said, f"it {stands}; see: git batch status {case.batch}"]


def _mended(case: _Case, tip: Oid | None) -> list[str]:
    """Write anew what is damaged and follows from the rest of the record.

    git keeps a file that is there, whatever is in it: so those that can't be read are put aside.
    """
    repo = case.session.repo
    damaged = recordfiles.damaged(repo, tip) if tip is not None else {}
    if tip is None or not damaged:
        return []
    for oid in damaged.values():
        set_aside(repo, os.path.join(repo.layout.common_dir, recordfiles.place(oid)))
    recordfiles.write_again(repo, tip)
    left = recordfiles.damaged(repo, tip)
    mended = [name for name in damaged if name not in left]
    said = [f"damaged, written anew: {few_of(mended, _LISTED)}"] if mended else []
    return [*said, f"damaged: {few_of(list(left), _LISTED)}"] if left else said


def _gap(case: _Case, best: Oid) -> list[str]:
    """Say that a chain has lost its beginning."""
    gap = lostevents.gap(case.session.repo, best)
    return [] if gap is None else [f"lost: the event {gap} and what came before it"]


def _rebuild(case: _Case, current: Oid | None, plan_file: str | None) -> list[str]:
    session = case.session
    if not case.seen:
        raise RecordError(
            f"nothing of the record of '{case.batch}' is left here that could be read, and no "
            f"commit of '{case.branch}' tells of it",
            "no task of it was committed: give the plan another 'slug', then git batch start",
        )
    drifts = by_trailers(case.seen).drifts
    if drifts:
        raise PreconditionError(
            f"the trailers on '{case.branch}' contradict themselves: {drifts[0].detail}",
            f"all of it: git batch verify --trailers-only {shlex.quote(case.branch)}",
        )
    left = remains(case.batch, case.base, case.seen)
    plan, digest = _plan(left, plan_file)
    who = session.idents()
    journal = Journal.create(
        session.repo, session.refs, plan, who=who, runner=new_runner(), instead_of=current
    )
    trust.forget(session.repo, case.batch)
    for event in rebuild(left, plan, digest, case.branch, who.author, case.at):
        journal.append(event)
    journal.publish()
    return [*_told(case, left, plan), f"next: {journal.state.next_action}"]


def _plan(left: Remains, plan_file: str | None) -> tuple[Plan, str]:
    """Take the plan if it is the one that the commits name; a stand-in if none is given."""
    if plan_file is None:
        made = stand_in(left)
        return made, canonical.digest(canonical.to_toml(made))
    loaded = load_plan(plan_file)
    if loaded.digest != left.plan:
        raise UsageError(
            f"'{plan_file}' is not the plan of '{left.batch}': its digest is {loaded.digest}, "
            f"the commits name {left.plan}",
            "an earlier version of the file may be: git log -p -- " + plan_file,
        )
    return loaded.plan, loaded.digest


def _told(case: _Case, left: Remains, plan: Plan) -> Iterator[str]:
    yield f"nothing of the record of '{case.batch}' is left here; it was rebuilt from trailers"
    yield f"known: {_many(len(left.tasks), 'task')} with a commit on '{case.branch}'"
    if left.others:
        yield f"taken as foreign: {_many(len(left.others), 'commit')} without a task"
    yield f"not proven: {UNPROVEN}"
    if is_stand_in(plan):
        yield "lost: the plan, and with it every task without a commit"


def _many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
