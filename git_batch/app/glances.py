"""Where batches stand, by header and newest event: the same cost whatever their size.

For `status` and `list`, so nothing here needs libgit2, a plan, or the kinds of events there are.
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.app.session import Session, called, choose
from git_batch.core.actions import kept_part
from git_batch.core.chain import kept_below
from git_batch.core.ids import BatchId, Oid
from git_batch.core.lineage import Drift
from git_batch.core.tips import tips_differ, unreadable_tip
from git_batch.core.values import replace
from git_batch.repo import batches
from git_batch.repo.linked import told_here
from git_batch.repo.locks import Holder, batch_lock, holder
from git_batch.repo.objects import DamagedError, ObjectReader
from git_batch.views.common import Around, Kept


class Glance(Struct, frozen=True):
    """A batch, who runs it now, and whether its branch is where its record says.

    Attributes:
        head: where its branch is, None if it does not exist.
        name: what commands have to call it, None where they need no name.
        kept: as of `Around`; looked for only where the next action needs some of it.
    """

    summary: batches.Summary
    live: Holder | None
    drift: tuple[Drift, ...]
    head: Oid | None = None
    name: BatchId | None = None
    kept: Kept | None = None

    @property
    def around(self) -> Around:
        """Give what views say about the surroundings of a record."""
        return Around(self.head, self.drift, self.name, self.kept)


def glance(session: Session, named: str | None) -> Glance | None:
    """Read where a batch stands; None if there is none here."""
    found = choose(session, named)
    if found is None:
        return None
    seen = look(session, found, called(session, found.batch_id) if named else None)
    if found.tip is None or kept_part(found.tip.totals.next_action) is None:
        return seen
    return replace(seen, kept=kept_here(session, found.batch_id))


def kept_here(session: Session, batch: BatchId) -> Kept:
    """List what is still here of kept work and kept output."""
    below = kept_below(batch)
    refs = session.refs.listed(below)
    return Kept(refs, f"{below}logs" in refs)


def everything(session: Session) -> list[Glance]:
    """Read where every batch of this repository stands, the most recently active first."""
    return [look(session, found) for found in batches.listed(session.repo)]


def look(session: Session, found: batches.Summary, name: BatchId | None = None) -> Glance:
    """Look at one batch; `name` as of `Glance`."""
    live = holder(batch_lock(session.repo, found.batch_id))
    head, drift = _branch(session, found)
    return Glance(found, live, drift, head, name)


def _branch(session: Session, found: batches.Summary) -> tuple[Oid | None, tuple[Drift, ...]]:
    """Find where a batch's branch is, and how that differs from its record."""
    if found.tip is None or found.header is None:
        return None, ()
    tip = found.tip
    name = f"refs/heads/{found.header.branch}"
    session.repo.refuse_pipes(name)
    with ObjectReader(session.repo.git) as reader:
        try:
            there = reader.find(name)
        except DamagedError:  # it is said below, of this batch alone
            there = None
        at = there.oid if there is not None else session.refs.read(name)  # says it if it's broken
        if there is None and at is not None:
            drift: Drift | None = unreadable_tip(found.header.branch, at)
        else:
            drift = tips_differ(reader.commit, found.header, at, tip.totals.head, tip.in_flight)
    return at, (told_here(session.repo.git, drift),) if drift else ()
