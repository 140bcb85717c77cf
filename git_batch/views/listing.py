"""`git batch list`: one line per batch, from header and newest event alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from git_batch.core.ids import BatchId
from git_batch.core.standing import TaskStatus
from git_batch.views.common import VERSION, batch_text, counts_text, rfc3339, stop_of
from git_batch.views.escape import one_line

if TYPE_CHECKING:
    from git_batch.core.tip import Header, Tip


class Listed(NamedTuple):
    """One batch of the list; `live` if somebody runs it now."""

    head: Header
    tip: Tip
    live: bool


class Claimed(Protocol):
    """A claim, as `repo.claims` reads it."""

    @property
    def batch(self) -> BatchId:
        """Whose it is."""

    @property
    def host(self) -> str:
        """Where it was taken."""

    @property
    def worktree(self) -> str:
        """In which working tree."""

    @property
    def since(self) -> str:
        """When, as RFC 3339 has it."""


def list_text(batches: Sequence[Listed], claims: Mapping[str, Claimed] | None = None) -> str:
    """Say where each batch stands, one line each, in the given order; then who claims what."""
    column = max((len(b.head.batch_id) for b in batches), default=0)
    lines = []
    for batch in batches:
        totals = batch.tip.totals
        stands = batch_text(totals.status, totals.stop, live=batch.live)
        said = f"{stands}; {counts_text(totals.counts)}; {one_line(batch.head.title)}"
        lines.append(f"{one_line(batch.head.batch_id):<{column}}  {said}\n")
    for what, claim in sorted((claims or {}).items()):
        lines.append(f"claim on '{one_line(what)}': {one_line(str(claim))}\n")
    return "".join(lines)


def list_json(
    batches: Sequence[Listed], claims: Mapping[str, Claimed] | None = None
) -> dict[str, Any]:
    """Give where each batch stands, in the given order, and who claims what."""
    held = [
        {
            "on": what,
            "batch_id": claim.batch,
            "host": claim.host,
            "worktree": claim.worktree,
            "since": claim.since,
        }
        for what, claim in sorted((claims or {}).items())
    ]
    return {
        "version": VERSION,
        "batches": [_batch_json(batch) for batch in batches],
        "claims": held,
    }


def _batch_json(batch: Listed) -> dict[str, Any]:
    head, totals = batch.head, batch.tip.totals
    stop = stop_of(totals.status, totals.stop)
    return {
        "batch_id": head.batch_id,
        "slug": head.slug,
        "title": head.title,
        "branch": head.branch,
        "state": totals.status.value,
        "outcome": None if stop is None else stop.value,
        "live": batch.live,
        "counts": {status.value: totals.counts.get(status.value, 0) for status in TaskStatus},
        "created_at": rfc3339(head.created_at),
        "updated_at": rfc3339(totals.updated_at),
    }
