"""Writing beside a live run: a renewal, or the wish that it stops.

Whoever runs a batch appends an event every moment, and may do so while a person is asked. So what
comes from beside is made anew, on top of what is there by then, until it was in time; the run folds
it in before it decides the next time (`Journal.refresh`).

The run may end as well meanwhile. What nobody would heed is refused instead of recorded: without a
run lock, and once the record says that the batch stopped. A run that has just begun says so as
well until its first event, so that one is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from time import monotonic, sleep

from git_batch.app.session import Session
from git_batch.core import events as ev
from git_batch.core.ids import BatchId
from git_batch.core.model import BatchState
from git_batch.core.standing import BatchStatus
from git_batch.core.transitions import IllegalTransition
from git_batch.errors import PreconditionError, StaleError
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.repo.locks import batch_lock, holder
from git_batch.run.context import new_runner
from git_batch.views.common import stands_text

_TRIES = 50
PATIENCE = 2.0
"""Seconds in which a run that holds its lock has to record that it goes on."""
_LOOK = 0.05


def append_beside(
    session: Session,
    batch: BatchId,
    who: Idents,
    make: Callable[[Journal, datetime], ev.Authorized | ev.StopRequested],
    clock: Callable[[], datetime],
) -> Journal:
    """Append what may come at any time to the record of a batch that somebody else writes.

    Args:
        make: makes the event for the record as it is now; called again if that has moved.

    Raises:
        PreconditionError: nobody runs it, perhaps not any more.
        StaleError: the record never stood still for long enough.
    """
    for left in reversed(range(_TRIES)):
        journal = _running(session, batch, who)
        event = make(journal, clock())
        try:
            journal.append(event)
        except IllegalTransition:
            raise _not_running(journal.recorded) from None
        except StaleError:
            if not left:
                raise
            continue
        return journal
    raise AssertionError("unreachable")


def _running(session: Session, batch: BatchId, who: Idents) -> Journal:
    """Open the record of a batch that somebody runs.

    Raises:
        PreconditionError: nobody does.
    """
    limit = monotonic() + PATIENCE
    while True:
        held = holder(batch_lock(session.repo, batch)) is not None
        journal = Journal.load(session.repo, session.refs, batch, who=who, runner=new_runner())
        if held and journal.state.status is BatchStatus.RUNNING:
            return journal
        if not held or monotonic() > limit:
            raise _not_running(journal.state)
        sleep(_LOOK)


def _not_running(state: BatchState) -> PreconditionError:
    batch, said = state.batch_id, stands_text(state.status)
    stands = "" if state.status is BatchStatus.RUNNING else f": it {said}"
    return PreconditionError(f"batch '{batch}' is not running{stands}", f"git batch status {batch}")
