"""Which batches are here: one notes ref each; where each stands, by its newest event only.

Read through git processes (two, for any number of batches): `status` and `list` come by here and
must start fast.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from msgspec import Struct

from git_batch.core import reading
from git_batch.core.chain import RECORDS, newest_event, ref_name, unreadable
from git_batch.core.ids import BATCH_ID, BatchId, Oid, slug_of
from git_batch.core.tip import Header, Tip
from git_batch.errors import GitError, RecordError
from git_batch.repo.git import Git
from git_batch.repo.objects import ObjectReader
from git_batch.repo.repository import Repository


class Summary(Struct, frozen=True):
    """A batch by its header and newest event; `error` says why there is neither.

    Attributes:
        ref_tip: where the record's ref is; None if that can't be read.
        tree: of our newest event.
    """

    batch_id: BatchId
    ref_tip: Oid | None
    tree: Oid | None = None
    tip: Tip | None = None
    header: Header | None = None
    error: RecordError | None = None

    @property
    def unfinished(self) -> bool:
        """Whether it can still go on."""
        return self.tip is not None and self.tip.unfinished

    @property
    def slug(self) -> str:
        """Its slug, by its id: that is known without the record, too."""
        return slug_of(self.batch_id)

    @property
    def branch(self) -> str:
        """Its branch; where the header can't be read the one that it has without `--branch`."""
        return self.header.branch if self.header else f"batch/{self.slug}"

    def readable(self) -> tuple[Header, Tip]:
        """Give header and newest event.

        Raises:
            RecordError: the record can't be read.
        """
        if self.error is not None:
            raise self.error
        assert self.header is not None
        assert self.tip is not None
        return self.header, self.tip


def listed(repo: Repository) -> list[Summary]:
    """Read all batches of this repository, the most recently active first."""
    found = repo.git.refs(RECORDS)
    read = [*_read(repo.git, found), *(_lost(batch) for batch in _unlisted(repo, found))]
    return sorted(read, key=_activity, reverse=True)


def find(repo: Repository, batch: BatchId) -> Summary | None:
    """Read one batch; None if it is not here."""
    found = repo.git.refs(ref_name(batch))
    if not found and batch in _unlisted(repo, found):
        return _lost(batch)
    return next(iter(_read(repo.git, found)), None)


def at(git: Git, batch: BatchId, ref_tip: Oid) -> Summary:
    """Read a record that no ref of ours may name."""
    with ObjectReader(git) as reader:
        return _summary(reader, batch, ref_tip)


def _unlisted(repo: Repository, found: Collection[str]) -> list[BatchId]:
    """Name the batches whose ref is a file without an id in it: git passes over such a ref.

    A folder is none: git leaves an empty one where a ref below it was deleted.
    """
    try:
        with os.scandir(os.path.join(repo.layout.common_dir, RECORDS)) as entries:
            names = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    left = (n for n in sorted(names) if BATCH_ID.match(n) and RECORDS + n not in found)
    # One that has come since git was asked holds an id: somebody begins a batch just now.
    return [BatchId(n) for n in left if not repo.git.refs(RECORDS + n)]


def _lost(batch: BatchId) -> Summary:
    said = RecordError(f"'{ref_name(batch)}' holds no commit's id")
    return Summary(batch, None, error=unreadable(batch, said))


def _read(git: Git, found: Mapping[str, str]) -> list[Summary]:
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
        header = reading.parse_header(reader.blob(f"{event.oid}:batch.toml"), batch)
    except (RecordError, GitError) as error:
        return Summary(batch, ref_tip, error=unreadable(batch, error))
    return Summary(batch, ref_tip, event.tree, tip, header)


def _activity(item: Summary) -> float:
    return item.tip.totals.updated_at.timestamp() if item.tip else 0.0
