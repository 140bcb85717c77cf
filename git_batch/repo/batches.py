"""Which batches are here: one notes ref each; where each stands, by its newest event only.

Read through git processes (two, for any number of batches): `status` and `list` come by here and
must start fast.
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.core import reading
from git_batch.core.chain import RECORDS, newest_event, ref_name
from git_batch.core.ids import BatchId, Oid
from git_batch.core.tip import Header, Tip
from git_batch.errors import GitError, RecordError
from git_batch.repo.git import Git
from git_batch.repo.objects import ObjectReader


class Summary(Struct, frozen=True):
    """A batch by its header and newest event; `error` says why there is neither.

    Attributes:
        ref_tip: where the record's ref is.
        tree: of our newest event.
    """

    batch_id: BatchId
    ref_tip: Oid
    tree: Oid | None = None
    tip: Tip | None = None
    header: Header | None = None
    error: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether it can still go on."""
        return self.tip is not None and self.tip.unfinished

    def readable(self) -> tuple[Header, Tip]:
        """Give header and newest event.

        Raises:
            RecordError: the record can't be read.
        """
        if self.header is None or self.tip is None:
            raise RecordError(
                f"the record of '{self.batch_id}' can't be read: {self.error}",
                "git batch recover brings it back from what is left",
            )
        return self.header, self.tip


def listed(git: Git) -> list[Summary]:
    """Read all batches of this repository, the most recently active first."""
    return sorted(_read(git, RECORDS), key=_activity, reverse=True)


def find(git: Git, batch: BatchId) -> Summary | None:
    """Read one batch; None if it is not here."""
    return next(iter(_read(git, ref_name(batch))), None)


def at(git: Git, batch: BatchId, ref_tip: Oid) -> Summary:
    """Read a record that no ref of ours may name."""
    with ObjectReader(git) as reader:
        return _summary(reader, batch, ref_tip)


def _read(git: Git, pattern: str) -> list[Summary]:
    found = git.refs(pattern)
    if not found:
        return []
    with ObjectReader(git) as reader:
        named = ((BatchId(name.removeprefix(RECORDS)), Oid(oid)) for name, oid in found.items())
        return [_summary(reader, batch, tip) for batch, tip in named]


def _summary(reader: ObjectReader, batch: BatchId, ref_tip: Oid) -> Summary:
    """Read where a batch stands; a record that can't be read is part of the answer."""
    try:
        event = newest_event(reader.commit, ref_tip)
        tip = reading.parse_tip(event)
        header = reading.parse_header(reader.blob(f"{event.oid}:batch.toml"))
    except (RecordError, GitError) as error:
        return Summary(batch, ref_tip, error=error.message)
    return Summary(batch, ref_tip, event.tree, tip, header)


def _activity(item: Summary) -> float:
    return item.tip.totals.updated_at.timestamp() if item.tip else 0.0
