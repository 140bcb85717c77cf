"""Which batches are here: one notes ref each; where each stands, by its newest event only."""

from __future__ import annotations

from dataclasses import dataclass

from git_batch.core import entries, record
from git_batch.core import events as ev
from git_batch.core.ids import BatchId, Oid
from git_batch.core.standing import RESUMABLE
from git_batch.errors import RecordError
from git_batch.repo import commits
from git_batch.repo.journal import NAMESPACE, Newest, newest
from git_batch.repo.notestree import NotesTree
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository

_BY_PERSONS = (ev.Decided, ev.Authorized, ev.StopRequested, ev.Reviewed)
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Summary:
    """A batch by its header and newest event; `error` says why there is neither."""

    batch_id: BatchId
    tip: Oid
    newest: Newest | None = None
    header: entries.Header | None = None
    error: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether it can still go on."""
        return self.newest is not None and self.newest.entry.totals.status in RESUMABLE


def summary(repo: Repository, batch: BatchId, tip: Oid) -> Summary:
    """Read where a batch stands; a record that can't be read is part of the answer."""
    try:
        found = newest(repo, tip)
        head = record.parse_header(NotesTree(repo, found.tree).blob("batch.toml"))
    except RecordError as error:
        return Summary(batch, tip, error=error.message)
    return Summary(batch, tip, found, head)


def listed(repo: Repository, refs: Refs) -> list[Summary]:
    """Read all batches of this repository, the most recently active first."""
    found = [
        summary(repo, BatchId(name.removeprefix(NAMESPACE)), tip)
        for name, tip in refs.listed(NAMESPACE).items()
    ]
    return sorted(found, key=_activity, reverse=True)


def _activity(item: Summary) -> float:
    return item.newest.entry.totals.updated_at.timestamp() if item.newest else 0.0


def last_runner(repo: Repository, tip: Oid) -> str:
    """Name the run that last drove a batch; empty if none did.

    What persons decided since is passed over: that was recorded by runs of its own.
    """
    at = newest(repo, tip)
    for _ in range(_MOST):
        if not isinstance(at.entry.event, _BY_PERSONS):
            return at.entry.runner
        parents = commits.read(repo, at.oid).parents
        if not parents:
            break
        at = newest(repo, parents[0])
    return ""
