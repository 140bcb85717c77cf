"""A record's ref and its chain of commits: which of them are events of ours.

A person's `git notes` puts commits on the same ref, so a record is read at the newest event below
its tip. Apart from what reads events, since the hooks come by here and must start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from git_batch.core.claims import Seen
from git_batch.core.ids import BatchId, Oid
from git_batch.errors import BatchError, GitError, RecordError

RECORDS = "refs/notes/batch/"
"""Where the records are: one notes ref per batch (storage.md)."""

TRACKING = "refs/batch/remotes/"
"""Below it are, by remote, copies of records that were fetched: what others say, no authority."""

_FOREIGN_MOST = 1000
"""How many commits of others on top of our newest event are walked before giving up."""


def ref_name(batch: BatchId) -> str:
    """Name the notes ref of a batch."""
    return f"{RECORDS}{batch}"


def tracking_name(remote: str, batch: BatchId) -> str:
    """Name the tracking copy of a batch's record."""
    return f"{TRACKING}{remote}/{batch}"


def kept_below(batch: BatchId) -> str:
    """Name what the refs of a batch are below that are never pushed: kept work and logs."""
    return f"refs/batch/{batch}/"


def unreadable(batch: BatchId, why: BatchError) -> RecordError:
    """Say that a batch's record can't be read, and what brings it back.

    Args:
        why: what was met; a hint of the record's own (a newer format) is the better one.
    """
    own = why.hints if isinstance(why, RecordError) else ()
    ways = own or (f"git batch recover {batch}",)
    return RecordError(f"the record of '{batch}' can't be read: {why.message}", *ways)


@contextmanager
def reading_of(batch: BatchId) -> Iterator[None]:
    """Have whatever can't be read of a batch's record say whose it is."""
    try:
        yield
    except (RecordError, GitError) as error:
        raise unreadable(batch, error) from None


def is_event(message: bytes) -> bool:
    """Tell our events from other commits."""
    return b"\nBatch-Format: " in message


def newest_event(read: Callable[[Oid], Seen], tip: Oid) -> Seen:
    """Find our newest event at or below a record's tip.

    Args:
        read: gives a commit by its id.

    Raises:
        RecordError: there is none.
    """
    commit = read(tip)
    for _ in range(_FOREIGN_MOST):
        if is_event(commit.message):
            return commit
        if not commit.parents:
            break
        commit = read(commit.parents[0])
    raise RecordError(f"no event of git-batch is on the record's ref (at {tip[:12]})")
