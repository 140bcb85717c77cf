"""`git batch pull`: bring a batch here to where a remote has it, forward only.

The remote's record is taken over if it goes on from the one that is here (or none is), and if the
branch that it speaks of is whole. The record comes first, then files and index, the branch last; a
pull that was cut short is completed by the next one. Two records that went on from one event are
told and both kept. What was taken over carries no authority: `resume` asks a person first.
"""

from __future__ import annotations

import os
import shlex
from datetime import datetime

from msgspec import Struct

from git_batch.app import preconditions
from git_batch.app.following import bring, nothing_in_the_way
from git_batch.app.session import Session, outside_of_tasks
from git_batch.app.sharing import Fetched, fetch
from git_batch.app.unrecorded import not_at
from git_batch.app.verifying import must_be_whole
from git_batch.core.chain import ref_name
from git_batch.core.ids import BatchId, Oid, slug_of
from git_batch.core.naming import few, path_text, shell_path
from git_batch.core.tip import Header
from git_batch.errors import PreconditionError, RecordError, UsageError
from git_batch.repo import batches, remotes, trust
from git_batch.repo.linked import elsewhere
from git_batch.repo.locks import RunLock
from git_batch.repo.objects import is_ancestor
from git_batch.repo.remotes import Relation, Relay
from git_batch.repo.repository import Dirt


class Pulled(Struct, frozen=True):
    """A batch as it is here now; `changed` if it was not so before."""

    batch: BatchId
    branch: str
    head: Oid
    changed: bool


class PulledAll(Struct, frozen=True):
    """What was taken over from a remote, and which of its batches are not here."""

    remote: str
    taken: tuple[Pulled, ...]
    left: tuple[BatchId, ...]


class _Theirs(Struct, frozen=True):
    """A remote's record that was read, and the head that it names."""

    batch: BatchId
    record: Oid
    header: Header
    head: Oid

    @property
    def ref(self) -> str:
        """Name the batch's branch in full."""
        return f"refs/heads/{self.header.branch}"


def pull(
    session: Session, remote: str | None, named: str | None, *, at: datetime, relay: Relay
) -> PulledAll:
    """Fetch from a remote; take over the batch that is named, the only one, or those here.

    Args:
        relay: passes on what git and the remote say about it.

    Raises:
        UsageError: the remote has no such batch.
        PreconditionError: one is running, or branch or files are not ready; it is as it was.
        DriftError: the remote's branch is not what its record says.
    """
    outside_of_tasks()
    remote, found = fetch(session, remote, relay=relay)
    wanted = _wanted(session, remote, found, named)
    taken = tuple(_take(session, remote, one, at) for one in wanted)
    left = [f.batch for f in found if f.relation is Relation.NEW and f not in wanted]
    return PulledAll(remote, taken, tuple(left))


def _wanted(
    session: Session, remote: str, found: list[Fetched], named: str | None
) -> list[Fetched]:
    """Choose the batch that is named by id or slug, or the only one, or all that are here."""
    if named is not None:
        mine = [f for f in found if named in (f.batch, slug_of(f.batch))]
        exact = [f for f in mine if f.batch == named] or mine
        if not exact:
            known = few([f.batch for f in found], 5) or "none"
            raise UsageError(
                f"'{remote}' has no batch '{named}'",
                f"its batches: {known}",
                *not_at(session, remote, named),
            )
        return exact
    on = session.repo.symbolic_head()
    mine = [f for f in found if f.relation is not Relation.NEW or _is_of(session, f, on)]
    return found if len(found) == 1 else mine  # where there is but one it is meant


def _is_of(session: Session, one: Fetched, ref: str | None) -> bool:
    header = batches.at(session.repo.git, one.batch, one.there).header
    return header is not None and f"refs/heads/{header.branch}" == ref


def _take(session: Session, remote: str, one: Fetched, at: datetime) -> Pulled:
    with RunLock(session.repo, one.batch, at):
        here = session.refs.read(ref_name(one.batch))
        relation = remotes.relation(session.repo.git, here, one.there)
        if relation is Relation.DIVERGED:
            raise _apart(session, remote, one, here)
        # What is ahead here stays so; its branch may still have to follow.
        ahead = here if relation is Relation.AHEAD else None
        theirs = _read(session, one.batch, ahead or one.there)
        slug, branch = theirs.header.slug, theirs.header.branch
        preconditions.locks_cleared_up(session, slug, branch, None, session.note)
        preconditions.objects_cleared_up(session, session.note)
        tip = session.refs.read(theirs.ref)
        untracked = _may_follow(session, theirs, tip)
        changed = theirs.record != here
        if changed:
            session.refs.swap(ref_name(one.batch), here, theirs.record, f"pulled from {remote}")
        if tip is None:
            session.refs.swap(theirs.ref, None, theirs.head, f"pulled from {remote}")
        elif tip != theirs.head and session.repo.symbolic_head() == theirs.ref:
            bring(session, theirs.header.branch, tip, theirs.head, untracked)
        elif tip != theirs.head:
            session.refs.swap(theirs.ref, tip, theirs.head, f"pulled from {remote}")
        changed = changed or tip != theirs.head
        return Pulled(one.batch, theirs.header.branch, theirs.head, changed)


def _apart(session: Session, remote: str, one: Fetched, here: Oid | None) -> PreconditionError:
    """Say how two records stand that went on from one event, and how to go on with theirs."""
    hints = [
        f"compare them: git log --first-parent --left-right {here}...{one.there}",
        "the branch's newest 'Batch-Record' trailer names the one that it was made by",
    ]
    header = batches.at(session.repo.git, one.batch, one.there).header
    if header is not None:
        top = session.repo.layout.top
        url = remotes.location(session.repo.git, remote, top)
        place = os.path.join(os.path.dirname(top), f"{header.slug}-of-{remote.replace('/', '-')}")
        words = shlex.join(["git", "clone", "-o", remote, "-b", header.branch])
        there = shell_path(place)
        hints += [
            "go on with theirs in a clone of its own, yours stays here: "
            f"{words} {shell_path(url)} {there} && cd {there} && git batch pull",
            f"or go on with yours, here only: git batch resume {one.batch}",
        ]
    return PreconditionError(
        f"the record of '{one.batch}' is {here} here and {one.there} on '{remote}'; both "
        "went on from the same event, so neither is taken over",
        *hints,
    )


def _read(session: Session, batch: BatchId, record: Oid) -> _Theirs:
    """Read a record whose branch is whole up to the head that it names."""
    found = batches.at(session.repo.git, batch, record)
    if found.header is None or found.tip is None:  # and to recover ours would not mend theirs
        why = found.error.message if found.error else "it has no header"
        raise RecordError(f"at {record}, as it was fetched: {why}")
    granted, head = found.header.authorization, found.tip.totals.head
    trust.load(session.repo, batch).refuse_rollback(batch, found.tip.step, granted)
    what, way = f"the branch of '{batch}'", "whoever pushed it has to put it right"
    must_be_whole(session, batch, head, record, what=what, way=way)
    return _Theirs(batch, record, found.header, head)


def _may_follow(session: Session, theirs: _Theirs, tip: Oid | None) -> tuple[bytes, ...]:
    """See that the branch here can go where the record says, and nobody's files are in the way.

    Returns:
        What is untracked, if the branch is checked out here and has to go anywhere.
    """
    branch, head = theirs.header.branch, theirs.head
    if tip is None or tip == head:
        return ()
    rebased = tip in [line.head for line in theirs.header.former]
    if not rebased and not is_ancestor(session.repo.git, tip, head):
        raise PreconditionError(
            f"'{branch}' is at {tip} here, which is not below {head}, where its record ends",
            f"see what only it has: git log {head}..{shlex.quote(branch)}",
            f"keep that under another name: git branch NAME {shlex.quote(branch)}",
        )
    if session.repo.symbolic_head() == theirs.ref:
        preconditions.no_operation(session)
        dirt = session.repo.dirty()
        preconditions.refuse_dirt(session, Dirt(dirt.tracked, ()))
        nothing_in_the_way(session, tip, head)
        return dirt.untracked
    place = elsewhere(session.repo.git, theirs.ref)
    if place is not None:
        raise PreconditionError(
            f"'{branch}' is checked out in '{path_text(place.path)}'",
            "pull it there, where its files are",
        )
    return ()
