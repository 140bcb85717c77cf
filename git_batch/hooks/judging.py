"""Whether branches may be pushed: which batch they are of, and whether its lineage is whole.

A branch concerns a batch if a record names it, or if the commit at its tip is a task's. The tip
decides which batch is meant, so that another branch that holds a batch's commits further down
(main, after a merge) is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from git_batch.core.chain import RECORDS
from git_batch.core.ids import BATCH_ID, BatchId, Oid
from git_batch.core.lineage import BEYOND, word
from git_batch.core.standing import BatchStatus
from git_batch.core.values import replace
from git_batch.errors import BatchError
from git_batch.hooks.updates import HEADS, Update
from git_batch.repo.lineage import Drift, Verdict, verdict
from git_batch.repo.linked import told_here
from git_batch.repo.pushed import Claim, PushedRepository, Record

PREFIX = "batch/"
"""What the branches of batches are called, unless a person chose another name."""
SHOWN = 5
"""How many drifts of one branch are told; `git batch verify` tells all."""

_COPIED = (
    "if it is your own branch with a copy of a task's commit: leave the 'Batch-' trailers out of "
    "its message (git commit --amend)"
)


class Judged(Struct, frozen=True):
    """What is to be said about one branch; refused if `error` is not empty."""

    branch: str
    batch: BatchId | None = None
    error: str = ""
    hints: tuple[str, ...] = ()
    note: str = ""
    drifts: tuple[Drift, ...] = ()
    record: Oid | None = None

    @property
    def refused(self) -> bool:
        """Whether this branch may not be pushed."""
        return bool(self.error)


def judge(
    repo: PushedRepository,
    updates: Sequence[Update],
    *,
    live: Callable[[Record], bool],
    demand: bool = False,
    remote: str | None = None,
    here: bool = False,
) -> list[Judged]:
    """Look at each branch of a batch that is to be moved; others are not mentioned.

    Args:
        live: tells whether a batch may be running right now, so that its record is ahead.
        demand: refuse a batch's branch whose record is neither here nor in the same push.
        remote: where it is pushed to; the tracking copies of its records are read too.
        here: who is told stands in a working tree of this repository.

    Raises:
        GitError: the pushed commits can't be read.
    """
    branches = [(u, u.new) for u in updates if u.is_branch and u.new is not None]
    if not branches:
        return []
    tips = repo.record_tips(remote)
    for update in updates:
        if update.ref.startswith(RECORDS) and update.new is not None:
            tips[BatchId(update.ref.removeprefix(RECORDS))] = update.new
    records, tasks = repo.read(tips, (new for _, new in branches))
    found: list[Judged] = []
    for update, new in branches:
        tip, said = tasks[new]
        record, batch = _meant(records, update.names, said)
        if batch is not None:
            alone = f"{RECORDS}{batch}" not in {other.ref for other in updates}
            found.append(_judge_one(repo, update, tip, batch, record, live, demand, alone, here))
    return found


def _meant(
    records: Iterable[Record], names: Sequence[str], claim: Claim | None
) -> tuple[Record | None, BatchId | None]:
    """Choose the record to compare with: the one that the tip names, else the branch's newest."""
    known = {record.batch: record for record in records}
    said: BatchId | None = None
    if claim is not None and (claim.one_task or any(n.startswith(PREFIX) for n in names)):
        said = BatchId(claim.batch)
    if said in known:
        return known[said], said
    named = [r for r in known.values() if r.branch in names]
    if named:
        return named[-1], named[-1].batch
    # A batch without a record here. What is no id at all was forged, which the walk will tell.
    return None, said


def _judge_one(
    repo: PushedRepository,
    update: Update,
    tip: Oid,
    batch: BatchId,
    record: Record | None,
    live: Callable[[Record], bool],
    demand: bool,
    alone: bool,
    here: bool,
) -> Judged:
    """Judge one branch; `alone`: its record does not come with it; `here` as of `judge`."""
    name = update.names[-1]
    at = record.tip if record else None
    known = batch if BATCH_ID.match(batch) else None
    moves = record is not None and live(record)
    # Where the branch itself is pushed, it has to be where the record says.
    own = update.source or update.ref
    ends = record is not None and own == f"{HEADS}{record.branch}"
    try:
        found = verdict(repo.git, tip=tip, batch=known, record_tip=at, live=moves, ends=ends)
    except BatchError as error:
        return Judged(
            name, batch, f"'{name}' can't be verified: {error.message}", tuple(error.hints)
        )
    if here:
        found = replace(found, drifts=tuple(told_here(repo.git, d) for d in found.drifts))
    if found.status == "drift":
        drifted = _drifted(name, batch, found, stale=alone and not update.source)
        copied = record is not None and record.branch not in update.names
        return replace(drifted, hints=(*drifted.hints, _COPIED)) if copied else drifted
    if found.batch_status is BatchStatus.FAILED:
        return _failed(name, batch)
    if found.status == "unknown":
        return _unknown(name, batch, found, demand=demand, here=at is not None)
    return Judged(name, batch, record=at)


def _failed(name: str, batch: BatchId) -> Judged:
    way = f"see why, and what can be done: git batch status {batch}"
    return Judged(name, batch, f"batch '{batch}' of '{name}' has failed", (way,))


def _drifted(name: str, batch: BatchId, found: Verdict, *, stale: bool) -> Judged:
    first, *others = found.drifts
    more = "".join(f"\n\t{d.kind}: {d.detail}" for d in others[: SHOWN - 1])
    rest = len(others) - SHOWN + 1
    if rest > 0:
        more += f"\n\tand {rest} more"
    hints = [way for d in found.drifts[:SHOWN] for way in d.ways]
    beyond = all(d.kind == BEYOND for d in found.drifts)
    if stale and beyond:  # who receives has nowhere to pull from
        hints = [f"push the record with the branch: {_both(batch)}"]
    elif stale:  # perhaps: who receives a branch may have an older record of it
        hints.append(f"if the record here is older than the branch: {_both(batch)}")
    hints.append(f"all of it: git batch verify {word(name)}")
    said = f"'{name}' is not what the record of batch '{batch}' says"
    if beyond:
        said = f"the record of batch '{batch}' here does not reach as far as '{name}' yet"
    return Judged(
        name,
        batch,
        f"{said}: {first.kind}: {first.detail}{more}",
        tuple(dict.fromkeys(hints)),
        drifts=found.drifts,
    )


def _unknown(name: str, batch: BatchId, found: Verdict, *, demand: bool, here: bool) -> Judged:
    """A record that is here must be readable; one that is not here proves nothing."""
    if here or demand:
        missing = f"its record 'refs/notes/batch/{batch}' is missing"
        why = found.reason if here else missing
        return Judged(
            name,
            batch,
            f"'{name}' can't be verified: {why}",
            () if here else (f"push both: {_both(batch)}",),
        )
    return Judged(
        name,
        batch,
        hints=(f"get it, if there is one: git fetch <remote> {RECORDS}{batch}:{RECORDS}{batch}",),
        note=f"'{name}' was not verified: the record of batch '{batch}' is not here",
    )


def _both(batch: BatchId) -> str:
    return f"git batch push <remote> {batch}"
