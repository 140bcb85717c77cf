"""The claim on a slug: taken at the start, adopted by a resume, let go when the batch is over.

Then nothing of it is claimed any more: what a run that was killed, or that was given up with a task
in flight, has left of its claims on a remote is let go as well. So is the claim on a task that a
person takes out while it is in flight.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from git_batch.app.session import Session
from git_batch.core.ids import BatchId, TaskId
from git_batch.core.model import BatchState
from git_batch.core.standing import BatchStatus
from git_batch.errors import GitError
from git_batch.repo import claims
from git_batch.repo.claims import RemoteClaims
from git_batch.repo.commits import Idents
from git_batch.run.claiming import remote_claims

_OVER = (BatchStatus.COMPLETED, BatchStatus.ABANDONED)


def claim(session: Session, slug: str, batch: BatchId, who: Idents, at: datetime) -> None:
    """Claim a slug for a batch, or adopt the claim that it holds already.

    Raises:
        PreconditionError: another batch holds it; it is named.
    """
    claims.take(session.repo, session.refs, slug, batch, who=who, at=at)


def let_go(session: Session, state: BatchState, note: Callable[[str], None]) -> BatchState:
    """Let go of slug and tasks, on a remote as well, if the batch is over; give the state back."""
    if state.status in _OVER:
        claims.release(session.repo, session.refs, state.slug, state.batch_id)
        _on_remote(session, state, note, RemoteClaims.release_all)
    return state


def let_go_of_task(session: Session, state: BatchState, task: TaskId) -> None:
    """Let go of the claim on a task that a person took out while it was in flight."""
    _on_remote(session, state, session.note, lambda remote: remote.release(task))


def _on_remote(
    session: Session,
    state: BatchState,
    note: Callable[[str], None],
    act: Callable[[RemoteClaims], None],
) -> None:
    """Do something about the claims on a remote, if there are any; note that it failed."""
    remote = remote_claims(session.repo, state)
    if remote is None:
        return
    try:
        act(remote)
    except GitError as error:
        note(error.message)
