"""Writing beside a live run: a renewal, or the wish that it stops.

Whoever runs a batch appends an event every moment, and may do so while a person is asked. So what
comes from beside is made anew, on top of what is there by then, until it was in time; the run folds
it in before it decides the next time (`Journal.refresh`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from git_batch.app.session import Session
from git_batch.core import events as ev
from git_batch.core.ids import BatchId
from git_batch.errors import StaleError
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.run.context import new_runner

_TRIES = 50


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
        StaleError: the record never stood still for long enough.
    """
    for left in reversed(range(_TRIES)):
        journal = Journal.load(session.repo, session.refs, batch, who=who, runner=new_runner())
        event = make(journal, clock())
        try:
            journal.append(event)
        except StaleError:
            if not left:
                raise
            continue
        return journal
    raise AssertionError("unreachable")
