"""The tables of the record: what every event and the notes hold (the header: `tip`).

Only their shape; `record` writes and reads them, `codec` turns them into TOML by their types.
"""

from __future__ import annotations

from msgspec import Struct, field

from git_batch.core import events as ev
from git_batch.core.attempt import CheckResult, LogRef
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import TaskRecord
from git_batch.core.tip import Tip


class Entry(Tip, frozen=True, kw_only=True):
    """One event as the record holds it, with what it repeats about the batch."""

    event: ev.Event


class Note(Struct, frozen=True):
    """A task's note: its id, then its record."""

    task: TaskId
    record: TaskRecord


class Receipt(Struct, frozen=True):
    """The note on a task's commit; false on any commit but the one it certifies.

    Attributes:
        replays: the commit of a former base whose place it took.
    """

    batch: BatchId
    task: TaskId
    certifies: Oid
    tree: Oid | None
    attempts: int
    checks: tuple[CheckResult, ...] = ()
    log: LogRef | None = None
    message: str = field(default="")
    replays: Oid | None = None
