"""What a record says first: the header, and what its newest event repeats about the batch.

Only the shape (`reading` reads it). Enough to say where a batch stands without its plan, its tasks
or the kinds of events there are, whose import alone would take longer than the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from git_batch.core.attempt import Usage
from git_batch.core.ids import BatchId, Oid
from git_batch.core.model import Authorization, InFlight, Line
from git_batch.core.standing import RESUMABLE, BatchStatus, StopReason


class Totals(Struct, frozen=True):
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


class Header(Struct, frozen=True):
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
    former: tuple[Line, ...] = ()


class Tip(Struct, frozen=True, kw_only=True):
    """Where a batch stands, by its newest event.

    Attributes:
        step: how many events there are.
        runner: the run that wrote it.
    """

    step: int
    totals: Totals
    in_flight: InFlight | None = None
    runner: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether the batch can still go on."""
        return self.totals.status in RESUMABLE
