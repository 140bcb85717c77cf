"""A batch that is known from its commits only: its record was not fetched, or is lost."""

from __future__ import annotations

import shlex

from msgspec import Struct

from git_batch.app.session import Session
from git_batch.core.chain import TRACKING
from git_batch.core.claims import claim_of
from git_batch.core.ids import BATCH_ID, BatchId, slug_of
from git_batch.repo import claimed, remotes


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
    claims = (claim_of(commit.message)[0] for commit in seen)
    tasks = dict.fromkeys(c.task for c in claims if c is not None and c.batch == batch)
    branch = on.removeprefix("refs/heads/") if on else tip
    return Unrecorded(batch, branch, tuple(tasks), way_to_record(session, batch, branch))


def only_fetched(session: Session, named: str) -> list[str]:
    """Say, as hints, how a batch is taken over of which only copies of its record were fetched."""
    ways = []
    for ref in session.refs.listed(TRACKING):
        remote, _, batch = ref.removeprefix(TRACKING).rpartition("/")
        slug = slug_of(BatchId(batch)) if BATCH_ID.match(batch) else None
        if slug is not None and named in (batch, slug, f"batch/{slug}"):
            ways.append(f"'{remote}' has it: git batch pull {shlex.quote(remote)} {batch}")
    return ways


def way_to_record(session: Session, batch: BatchId, branch: str, *, copy: bool = False) -> str:
    """Give the command that gets a record: from a remote, without one from what is left.

    Args:
        copy: a tracking copy will do.
    """
    names = remotes.known(session.repo.git)
    if not names:
        return f"git batch recover {shlex.quote(branch)}"
    remote = "origin" if "origin" in names else names[0]
    return f"git batch fetch {remote}" if copy else f"git batch pull {remote} {batch}"
