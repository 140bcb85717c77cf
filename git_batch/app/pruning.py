"""`git batch prune`: drop the kept attempts and logs of finished batches, when a person asks.

Nothing is ever dropped by itself. Only a batch that is over (completed or abandoned) is pruned: one
that can still go on may need its kept work. The record, the branch and its commits are not touched,
so reports stay; what was dropped is in the object store until git collects it. While any batch is
being run here nothing is dropped: its runner could not tell that from a task's doing.
"""

from __future__ import annotations

from msgspec import Struct, field

from git_batch.app.session import Session, choose, outside_of_tasks
from git_batch.core.chain import kept_below
from git_batch.core.ids import BatchId, Oid
from git_batch.core.standing import BatchStatus
from git_batch.errors import LockedError, PreconditionError
from git_batch.repo import attempts, batches
from git_batch.repo.locks import live_batches

_OVER = frozenset({BatchStatus.COMPLETED, BatchStatus.ABANDONED})


class Prunable(Struct, frozen=True):
    """What of one batch can be dropped: refs, and how many attempts they keep."""

    batch: BatchId
    refs: dict[str, Oid] = field(default_factory=dict)
    attempts: int = 0
    logs: bool = False


def prunable(session: Session, named: str | None, *, keep_latest: bool) -> list[Prunable]:
    """List what can be dropped, of one batch or of all that are over; writes nothing.

    Args:
        keep_latest: leave the newest kept attempt of each task, and the logs.

    Raises:
        UsageError: there is no such batch.
        PreconditionError: the named batch can still go on, or a batch is being run.
    """
    outside_of_tasks()
    live = sorted(live_batches(session.repo))
    if live:
        raise LockedError(f"batch '{live[0]}' is being run", "wait for it to end, then prune")
    found = (_prunable(session, s.batch_id, keep_latest) for s in _over(session, named))
    return [item for item in found if item.refs]


def prune(session: Session, items: list[Prunable]) -> None:
    """Drop what `prunable` listed; a ref that moved since then is left, and all others with it.

    Raises:
        GitError: git refused.
    """
    for item in items:
        session.refs.delete_all(item.refs)


def _over(session: Session, named: str | None) -> list[batches.Summary]:
    if named is None:
        return [s for s in batches.listed(session.repo) if _is_over(s)]
    summary = choose(session, named)
    if summary is None or not _is_over(summary):
        raise PreconditionError(
            f"batch '{summary.batch_id if summary else named}' is not over, so nothing is dropped",
            "finish it, or end it for good: git batch abandon",
        )
    return [summary]


def _is_over(summary: batches.Summary) -> bool:
    return summary.tip is not None and summary.tip.totals.status in _OVER


def _prunable(session: Session, batch: BatchId, keep_latest: bool) -> Prunable:
    listed = session.refs.listed(kept_below(batch))
    logs = attempts.logs_ref(batch)
    numbered = {name: key for name in listed if (key := attempts.parse_ref(batch, name))}
    if keep_latest:
        newest: dict[str, int] = {}
        for task, n in numbered.values():
            newest[task] = max(n, newest.get(task, 0))
        numbered = {name: (task, n) for name, (task, n) in numbered.items() if n < newest[task]}
    refs = {name: listed[name] for name in numbered}
    drop_logs = logs in listed and not keep_latest
    if drop_logs:
        refs[logs] = listed[logs]
    return Prunable(batch, refs, len(set(numbered.values())), drop_logs)
