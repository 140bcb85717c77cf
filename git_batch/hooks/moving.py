"""reference-transaction: while a batch runs, only its runner moves its branch.

A commit that a person makes on it would be taken for the work of the task in flight, or stop the
run. The runner's own moves run no hooks, and a task may commit as it likes (`BATCH_TASK`).

`git pack-refs`, and so every background gc, looks to this hook like making each branch anew where
it is and deleting it (git 2.39); so neither is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from git_batch.core.ids import BATCH_ID, BatchId
from git_batch.hooks.answer import Answer, said
from git_batch.hooks.updates import HEADS, of_pre_receive
from git_batch.repo.locks import Holder, busy, holder, lock_in
from git_batch.repo.pushed import PushedRepository


def reference_transaction(
    args: Sequence[str], lines: Sequence[str], environ: Mapping[str, str]
) -> Answer:
    """Refuse a transaction that would move the branch of a live batch.

    Args:
        args: the state of the transaction; only "prepared" can be refused.
        lines: old id, new id, ref.
    """
    moved = {u.ref: u.new for u in of_pre_receive(lines) if u.is_branch and u.old != u.new}
    if environ.get("BATCH_TASK") or list(args) != ["prepared"] or not moved:
        return Answer()
    repo = PushedRepository(environ)
    running = _running(repo.common_dir)
    if not running:
        return Answer()
    tips = {batch: tip for batch, tip in repo.record_tips().items() if batch in running}
    for record in repo.read(tips, ())[0]:
        name = f"{HEADS}{record.branch}"
        if name in moved and repo.resolve(name) != moved[name]:
            error = busy(running[record.batch])
            return Answer(
                said(
                    "error",
                    f"'{record.branch}' can't be moved: {error.message}",
                    (*error.hints, "nothing was changed: what you staged stays staged"),
                ),
                refused=True,
            )
    return Answer()


def _running(common_dir: str) -> dict[BatchId, Holder]:
    """Find the batches whose run lock is held."""
    locks = Path(common_dir, "batch").glob("*.lock")
    batches = (lock.name.removesuffix(".lock") for lock in locks)
    held = {BatchId(b): holder(lock_in(common_dir, BatchId(b))) for b in batches if _is_id(b)}
    return {batch: found for batch, found in held.items() if found is not None}


def _is_id(name: str) -> bool:
    return BATCH_ID.match(name) is not None
