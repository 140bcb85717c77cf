"""The claim on a slug: taken at the start, adopted by a resume, let go when the batch is over."""

from __future__ import annotations

from datetime import datetime

from git_batch.app.session import Session
from git_batch.core.ids import BatchId
from git_batch.core.model import BatchState
from git_batch.core.standing import BatchStatus
from git_batch.repo import claims
from git_batch.repo.commits import Idents

_OVER = (BatchStatus.COMPLETED, BatchStatus.ABANDONED)


def claim(session: Session, slug: str, batch: BatchId, who: Idents, at: datetime) -> None:
    """Claim a slug for a batch, or adopt the claim that it holds already.

    Raises:
        PreconditionError: another batch holds it; it is named.
    """
    claims.take(session.repo, session.refs, slug, batch, who=who, at=at)


def let_go(session: Session, state: BatchState) -> BatchState:
    """Let go of the slug if the batch is over, and give the state back."""
    if state.status in _OVER:
        claims.release(session.repo, session.refs, state.slug, state.batch_id)
    return state
