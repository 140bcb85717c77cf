"""pre-push: refuse a batch's branch that is not what its record says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from git_batch.core.chain import RECORDS
from git_batch.hooks.answer import Answer, told
from git_batch.hooks.judging import Judged, judge
from git_batch.hooks.updates import Update, of_framework, of_pre_push
from git_batch.repo.pushed import PushedRepository, Record


def pre_push(args: Sequence[str], lines: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """Judge what is to be pushed.

    Args:
        args: the remote's name and its location.
        lines: what git writes to the hook.
    """
    framed = of_framework(environ)
    updates = of_pre_push(lines) if framed is None else framed
    remote = environ.get("PRE_COMMIT_REMOTE_NAME") or (args[0] if args else "<remote>")
    repo = PushedRepository(environ)

    def live(record: Record) -> bool:
        if not record.running:
            return False
        from git_batch.repo.locks import holder, lock_in  # milliseconds that most pushes can spare

        return holder(lock_in(repo.common_dir, record.batch)) is not None

    judged = judge(repo, updates, live=live, remote=remote, here=True)
    said = tuple(line for one in judged for line in told(one))
    refused = any(one.refused for one in judged)
    if not refused:
        said += _alone(repo, judged, updates, remote)
    # A remote without a name is named by its location.
    return Answer(tuple(line.replace("<remote>", remote) for line in said), refused)


def _alone(
    repo: PushedRepository, judged: Sequence[Judged], updates: Sequence[Update], remote: str
) -> tuple[str, ...]:
    """Say how a record gets to where its branch goes, unless it is there or goes along."""
    lines: tuple[str, ...] = ()
    along = {update.ref for update in updates}
    for one in judged:
        name = f"{RECORDS}{one.batch}"
        there = repo.tracked.get(one.batch) if one.batch else None
        if one.record is not None and name not in along and there != one.record:
            lines += (
                f"hint: this pushes '{one.branch}' without the record of its batch; to share it:",
                f"hint: git batch push {remote} {one.batch}",
            )
    return lines
