"""`git batch bless`: take a person's commits on top of the recorded head as foreign ones.

They are part of the branch from then on and of no task. Only what lies purely on top is taken: no
merge, nothing with trailers of ours, nothing above a rewritten history.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from git_batch.app.deciding import Deciding
from git_batch.app.session import Session
from git_batch.core import events as ev
from git_batch.core.chain import ref_name
from git_batch.core.ids import Oid
from git_batch.core.lineage import FOREIGN, word
from git_batch.core.model import BatchState
from git_batch.core.standing import BatchStatus, Phase
from git_batch.errors import DriftError, PreconditionError
from git_batch.repo import commits, lineage
from git_batch.repo.journal import Journal
from git_batch.repo.linked import told_here


class Blessed(Struct, frozen=True):
    """What was recorded: the state, and the commits, oldest first."""

    state: BatchState
    commits: tuple[Oid, ...]


def bless(session: Session, batch: str | None, *, words: str, at: datetime) -> Blessed:
    """Record the commits on top as foreign.

    Raises:
        PreconditionError: there are none, the branch does not exist, or the batch was abandoned.
        DriftError: something else is wrong with the branch.
    """
    with Deciding(session, batch, at) as journal:
        state = journal.state
        if state.status is BatchStatus.ABANDONED:
            raise PreconditionError(f"batch '{state.batch_id}' was abandoned")
        tip = session.refs.read(f"refs/heads/{state.branch}")
        if tip is None:
            raise PreconditionError(
                f"branch '{state.branch}' does not exist",
                f"git branch {word(state.branch)} {state.head}",
            )
        flight = state.in_flight
        if flight is not None and flight.phase is Phase.SETTLED:
            raise PreconditionError(
                f"the commit of '{flight.task}' is decided, but not made yet",
                f"git batch resume {state.batch_id}",
            )
        chosen = _on_top(session, journal, tip)
        who = session.idents().author
        event = ev.Decided(at, ev.Decision.BLESS, who, (), words, commits=chosen, head=tip)
        return Blessed(journal.append(event), chosen)


def _on_top(session: Session, journal: Journal, tip: Oid) -> tuple[Oid, ...]:
    """List the commits on top; refused if anything else differs from the record."""
    state = journal.state
    record_tip = session.refs.read(ref_name(state.batch_id))
    found = lineage.verdict(session.repo.git, tip=tip, batch=state.batch_id, record_tip=record_tip)
    if found.status == "unknown":
        raise PreconditionError(f"'{state.branch}' can't be verified: {found.reason}")
    other = [d for d in found.drifts if d.kind != FOREIGN]
    if other:
        raise DriftError(
            f"only commits purely on top can be blessed, but: {other[0].kind}: {other[0].detail}",
            *told_here(session.repo.git, other[0]).ways,
            f"all of it: git batch verify {state.batch_id}",
        )
    if not found.drifts:
        raise PreconditionError(
            f"there is nothing on top of '{state.branch}' that the record does not know"
        )
    chain: list[Oid] = []
    oid = tip
    while oid != state.head:
        chain.append(oid)
        oid = commits.read(session.repo, oid).parents[0]
    return tuple(reversed(chain))
