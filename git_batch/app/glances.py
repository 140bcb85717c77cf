"""Where batches stand, by header and newest event: the same cost whatever their size.

For `status` and `list`, so nothing here needs libgit2, a plan, or the kinds of events there are.
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.app.session import Session, choose
from git_batch.core.lineage import Drift
from git_batch.core.tips import tips_differ
from git_batch.repo import batches
from git_batch.repo.locks import Holder, batch_lock, holder
from git_batch.repo.objects import ObjectReader


class Glance(Struct, frozen=True):
    """A batch, who runs it now, and whether its branch is where its record says."""

    summary: batches.Summary
    live: Holder | None
    drift: tuple[Drift, ...]


def glance(session: Session, named: str | None) -> Glance | None:
    """Read where a batch stands; None if there is none here."""
    found = choose(session, named)
    return None if found is None else look(session, found)


def everything(session: Session) -> list[Glance]:
    """Read where every batch of this repository stands, the most recently active first."""
    return [look(session, found) for found in batches.listed(session.repo.git)]


def look(session: Session, found: batches.Summary) -> Glance:
    """Look at one batch."""
    live = holder(batch_lock(session.repo, found.batch_id))
    return Glance(found, live, _drift(session, found))


def _drift(session: Session, found: batches.Summary) -> tuple[Drift, ...]:
    if found.tip is None or found.header is None:
        return ()
    tip = found.tip
    with ObjectReader(session.repo.git) as reader:
        name = f"refs/heads/{found.header.branch}"
        there = reader.find(name)
        at = there.oid if there is not None else session.refs.read(name)  # says it if it's broken
        drift = tips_differ(reader.commit, found.header, at, tip.totals.head, tip.in_flight)
    return (drift,) if drift else ()
