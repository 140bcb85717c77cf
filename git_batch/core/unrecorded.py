"""The comparison of commits with each other, where there is no record (theory: `lineage`)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from git_batch.core.claims import Seen, claim_of, pretends, undo_of
from git_batch.core.comparison import titled
from git_batch.core.ids import BATCH_ID, BatchId, Oid
from git_batch.core.lineage import FORGED, MERGE, REPEATED, Drift


class ByTrailers(Struct, frozen=True):
    """What commits say of themselves.

    Attributes:
        drifts: what contradicts itself.
        tasks: those that have a commit which none of the others takes back.
        undone: how many commits of tasks are taken back.
        strangers: those that carry no trailer of ours (a person's, of which only the record could
            say whether they are blessed).
    """

    batch: BatchId | None
    drifts: tuple[Drift, ...]
    tasks: tuple[str, ...]
    undone: int
    strangers: tuple[Oid, ...]


def by_trailers(seen: Sequence[Seen]) -> ByTrailers:
    """Compare commits with each other, where there is no record to compare them with."""
    drifts: list[Drift] = []
    tasks: dict[str, Oid] = {}
    batch: str | None = None
    undone = 0
    strangers: list[Oid] = []
    for commit in seen:
        claim, wrong = claim_of(commit.message)[0], ""
        if len(commit.parents) != 1:
            drifts.append(_alone(MERGE, f"{titled(commit)} is a merge", commit))
        elif not pretends(commit.message):
            strangers.append(commit.oid)
        elif (undo := undo_of(commit.message)) is not None:
            undone += tasks.pop(undo, None) is not None
        elif claim is None or not BATCH_ID.match(claim.batch):
            wrong = f"the trailers of {commit.oid} are not whole"
        elif batch not in (None, claim.batch):
            wrong = f"{commit.oid} names batch '{claim.batch}', an earlier one '{batch}'"
        elif claim.task in tasks:
            said = f"'{claim.task}' has two commits, {tasks[claim.task]} and {commit.oid}"
            drifts.append(_alone(REPEATED, said, commit))
        else:
            batch, tasks[claim.task] = claim.batch, commit.oid
        if wrong:
            drifts.append(_alone(FORGED, wrong, commit))
    named = BatchId(batch) if batch else None
    return ByTrailers(named, tuple(drifts), tuple(tasks), undone, tuple(strangers))


def _alone(kind: str, detail: str, commit: Seen) -> Drift:
    return Drift(kind, detail, commit.oid, f"git show {commit.oid}")
