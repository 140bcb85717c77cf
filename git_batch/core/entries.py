"""The tables of the record: what every event, the header and the notes hold.

Only their shape; `record` writes and reads them, `codec` turns them into TOML by their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from git_batch.core import events as ev
from git_batch.core.attempt import CheckResult, LogRef, Usage
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import Authorization, InFlight, TaskRecord
from git_batch.core.standing import BatchStatus, StopReason


@dataclass(frozen=True, slots=True)
class Totals:
    """What every event repeats about the whole batch."""

    head: Oid
    status: BatchStatus
    updated_at: datetime
    counts: Mapping[str, int]
    stop: StopReason | None = None
    reason: str = ""
    next_action: str = ""
    enrolled: int = 0
    consecutive_failures: int = 0
    fresh_parks: int = 0
    halted: bool = False
    stop_requested: bool = False
    usage: Usage = Usage()
    needs: tuple[str, ...] = ()
    needs_total: int = 0


@dataclass(frozen=True, slots=True)
class Header:
    """What `batch.toml` in the record's tree holds: what rarely changes, and the last stop."""

    format: int
    batch_id: BatchId
    slug: str
    title: str
    branch: str
    base: Oid
    created_at: datetime
    plan_digest: str
    status: BatchStatus
    authorization: Authorization | None = None
    stop: StopReason | None = None
    reason: str = ""
    next_action: str = ""
    foreign: tuple[Oid, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as the record holds it."""

    step: int
    event: ev.Event
    totals: Totals
    in_flight: InFlight | None = None
    runner: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A task's note: its id, then its record."""

    task: TaskId
    record: TaskRecord


@dataclass(frozen=True, slots=True)
class Receipt:
    """The note on a task's commit; false on any commit but the one it certifies."""

    batch: BatchId
    task: TaskId
    certifies: Oid
    tree: Oid | None
    attempts: int
    checks: tuple[CheckResult, ...] = ()
    log: LogRef | None = None
    message: str = field(default="")
