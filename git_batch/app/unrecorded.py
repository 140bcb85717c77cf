"""A batch that is known from its commits only: its record was not fetched, or is lost."""

from __future__ import annotations

import shlex

from msgspec import Struct

from git_batch.app.session import Session
from git_batch.core.chain import TRACKING, tracking_name
from git_batch.core.claims import claim_of, undo_of
from git_batch.core.ids import BATCH_ID, BatchId, Oid, slug_of
from git_batch.errors import RecordError
from git_batch.repo import batches, claimed, remotes


class Unrecorded(Struct, frozen=True):
    """What the commits of the current branch say; `way` is the command that gets the record."""

    batch: BatchId
    branch: str
    tasks: tuple[str, ...]
    way: str


def unrecorded(session: Session) -> Unrecorded | None:
    """Find the batch that the current branch is of by its trailers; None if it is of none."""
    on = session.repo.symbolic_head()
    tip = session.refs.read("HEAD")
    if tip is None:
        return None
    batch, _, seen = claimed.batch_part(session.repo.git, tip)
    if batch is None or not BATCH_ID.match(batch):
        return None
    tasks: dict[str, None] = {}
    for commit in seen:
        claim = claim_of(commit.message)[0]
        if claim is not None and claim.batch == batch:
            tasks[claim.task] = None
        elif (undone := undo_of(commit.message)) is not None:
            tasks.pop(undone, None)
    branch = on.removeprefix("refs/heads/") if on else tip
    return Unrecorded(batch, branch, tuple(tasks), way_to_record(session, batch, branch))


def only_fetched(session: Session, named: str | None) -> list[str]:
    """Say, as hints, how a batch is taken over of which only copies of its record were fetched.

    Args:
        named: what it may be called; None for all there are.
    """
    ways = []
    for ref in session.refs.listed(TRACKING):
        remote, _, batch = ref.removeprefix(TRACKING).rpartition("/")
        slug = slug_of(BatchId(batch)) if BATCH_ID.match(batch) else None
        if slug is not None and named in (None, batch, slug, f"batch/{slug}"):
            it = "it" if named else f"'{batch}'"
            ways.append(f"'{remote}' has {it}: git batch pull {shlex.quote(remote)} {batch}")
    return ways


def branch_of(session: Session, batch: BatchId) -> str | None:
    """Name a branch whose newest trailers are of a batch, its usual one first; None if none is."""
    heads, usual = session.refs.listed("refs/heads/"), f"batch/{slug_of(batch)}"
    for name in sorted(heads, key=lambda name: name != f"refs/heads/{usual}"):
        if claimed.batch_part(session.repo.git, heads[name])[0] == batch:
            return name.removeprefix("refs/heads/")
    return None


def refuse_lost(session: Session, slug: str, batch: BatchId) -> None:
    """Refuse a slug that a batch claims which has lost its record, but not its commits.

    Without commits it is taken for one of a start that died before anything was recorded. Who
    starts just now records before a commit is made: so the record is looked for last.

    Raises:
        RecordError: it has; with the way to get it.
    """
    if _is_recorded(session, batch):
        return
    branch = branch_of(session, batch)
    if branch is not None and not _is_recorded(session, batch):
        raise RecordError(
            f"batch '{batch}' has the slug '{slug}', and its record is not here",
            f"get it: {way_to_record(session, batch, branch)}",
            "or give the plan another 'slug'",
        )


def _is_recorded(session: Session, batch: BatchId) -> bool:
    """Tell whether there is a record of a batch, readable or not."""
    return batches.find(session.repo, batch) is not None


def way_to_lost(session: Session, branch: str, tip: Oid) -> list[str]:
    """Say how to get the record of the batch that a branch's newest commit is of, if it is lost."""
    batch, _, seen = claimed.batch_part(session.repo.git, tip)
    if batch is None or not BATCH_ID.match(batch) or seen[-1].oid != tip:
        return []
    if _is_recorded(session, batch):
        return []
    return [f"or get the record of its batch, '{batch}': {way_to_record(session, batch, branch)}"]


def not_at(session: Session, remote: str, named: str) -> list[str]:
    """Say, as hints, how the lost record of a branch here comes back that a remote does not have.

    Args:
        named: an id, or a slug.
    """
    if BATCH_ID.match(named):
        batch = BatchId(named)
    else:
        tip = session.refs.read(f"refs/heads/batch/{named}")
        found = claimed.batch_part(session.repo.git, tip)[0] if tip is not None else None
        if found is None or not BATCH_ID.match(found) or slug_of(found) != named:
            return []
        batch = found
    branch = None if _is_recorded(session, batch) else branch_of(session, batch)
    if branch is None:
        return []
    others = [name for name in remotes.known(session.repo.git) if name != remote]
    ways = [f"another remote may have it: git batch pull {shlex.quote(o)} {batch}" for o in others]
    return [*ways, f"bring back what is left of it here: git batch recover {shlex.quote(branch)}"]


def still_lost(session: Session, remote: str) -> list[str]:
    """Say, after a look at a remote, that the current branch's batch has no record there either."""
    left = unrecorded(session)
    if left is None or session.refs.read(tracking_name(remote, left.batch)) is not None:
        return []
    ways = not_at(session, remote, left.batch)
    said = f"'{remote}' has no record of '{left.batch}', which '{left.branch}' is of"
    return [said, *ways] if ways else []


def not_read(session: Session) -> list[str]:
    """Say, as hints, what helps with a remote that can't be read and a record that is lost."""
    left = unrecorded(session)
    branch = branch_of(session, left.batch) if left is not None else None
    if left is None or branch is None or _is_recorded(session, left.batch):
        return []
    lost = f"the record of '{left.batch}' is not here either"
    return [f"{lost}; to bring back what is left of it: git batch recover {shlex.quote(branch)}"]


def ways_to_copy(session: Session, batch: BatchId, what: str) -> list[str]:
    """Give the commands that let commits be compared with a record which is not here.

    A remote need not have it, and nothing here tells whether it was looked for there.

    Args:
        what: how the commits were named, by a branch or otherwise.
    """
    here = session.refs.read(f"refs/heads/{what}") is not None
    branch = what if here else branch_of(session, batch)
    remote = _remote(session)
    if remote is None:
        return [f"git batch recover {shlex.quote(branch or what)}"]
    ways = [f"git batch fetch {shlex.quote(remote)}"]
    if branch is not None:
        ways.append(f"or, if no remote has its record: git batch recover {shlex.quote(branch)}")
    return ways


def way_to_record(session: Session, batch: BatchId, branch: str) -> str:
    """Give the command that gets a record: from a remote, without one from what is left."""
    remote = _remote(session)
    if remote is None:
        return f"git batch recover {shlex.quote(branch)}"
    return f"git batch pull {shlex.quote(remote)} {batch}"


def _remote(session: Session) -> str | None:
    """Name the remote that is asked first."""
    names = remotes.known(session.repo.git)
    return "origin" if "origin" in names else next(iter(names), None)
