"""A task's commit by one look into the records' trees, through git processes alone.

The cost is that of two processes, whatever the length of the history or the number of tasks.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from git_batch.core.chain import RECORDS
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.toml import loads
from git_batch.errors import GitError, RecordError
from git_batch.repo.git import Git
from git_batch.repo.ledger import event_at
from git_batch.repo.objects import ObjectReader, entries

_NOT_READ = (GitError, RecordError, ValueError, AttributeError)
"""What reading a note meets that holds anything else than what we write."""


class Noted(Struct, frozen=True):
    """What a record says of a task that its plan has.

    Attributes:
        state: as the task's note says; None if it has none yet (nothing came of it so far).
        commit: the commit that the note names.
    """

    batch: BatchId
    state: str | None
    commit: Oid | None


def noted(git: Git, task: TaskId, batch: BatchId | None = None) -> list[Noted] | None:
    """Ask one record, or all records here, about a task.

    Returns:
        An answer of each record whose plan has the task; None if a record can't be read this way.
    """
    pattern = f"{RECORDS}{batch}" if batch else RECORDS
    found: list[Noted] = []
    with ObjectReader(git) as reader:
        try:
            for ref, tip in git.refs(pattern).items():
                answer = _ask(reader, Oid(tip), BatchId(ref.removeprefix(RECORDS)), task)
                found += [answer] if answer else []
        except _NOT_READ:
            return None  # whoever reads it with more care says what is wrong
    return found


def _ask(reader: ObjectReader, tip: Oid, batch: BatchId, task: TaskId) -> Noted | None:
    event = event_at(reader, tip).oid
    shards = reader.find(f"{event}:plan")
    folders = [name.decode() for _, name, _ in entries(shards.data)] if shards else []
    names = [f"{event}:plan/{folder}/{task}.toml" for folder in folders]
    keys = [blob.oid for _, blob in reader.many(names) if blob is not None]
    if not keys:
        return None
    note = reader.find(f"{event}:{keys[0][:2]}/{keys[0][2:]}")
    if note is None:
        return Noted(batch, None, None)
    told: dict[str, Any] = loads(note.data.decode("utf-8")).get("record", {})
    commit = told.get("commit")
    return Noted(batch, str(told.get("status")), Oid(commit) if isinstance(commit, str) else None)
