"""What `git batch push`, `fetch` and `pull` say when they are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from git_batch.core.ids import BatchId, Oid
from git_batch.repo.remotes import Relation
from git_batch.views.common import short
from git_batch.views.escape import one_line

_SAID = {
    Relation.NEW: "not here yet",
    Relation.SAME: "as it is here",
    Relation.BEHIND: "further than it is here",
    Relation.AHEAD: "behind what is here",
    Relation.DIVERGED: "another one than here: both went on from the same event",
}


def pushed_text(batch: BatchId, branch: str, head: Oid, remote: str, *, dry_run: bool) -> str:
    """Say what a remote has now."""
    verb = "would take" if dry_run else "has"
    return (
        f"'{one_line(remote)}' {verb} '{one_line(branch)}' at {short(head)} and the record of "
        f"'{one_line(batch)}'"
    )


def fetched_text(remote: str, found: Mapping[BatchId, Relation]) -> str:
    """Say how a remote's records stand to those here, and what takes one over."""
    name = one_line(remote)
    if not found:
        return f"'{name}' has no record of a batch"
    column = max(len(batch) for batch in found)
    lines = [f"{one_line(batch):<{column}}  {_SAID[how]}" for batch, how in found.items()]
    lines += [
        f"take it over: git batch pull {name} {one_line(batch)}"
        for batch, how in found.items()
        if how in (Relation.NEW, Relation.BEHIND)
    ]
    lines += [
        f"what to do about it: git batch pull {name} {one_line(batch)}"
        for batch, how in found.items()
        if how is Relation.DIVERGED
    ]
    return "\n".join(lines)


def pulled_text(
    remote: str, taken: Sequence[tuple[BatchId, str, Oid, bool]], left: Sequence[BatchId]
) -> str:
    """Say what is here now: batch, branch, head, and whether anything changed.

    Args:
        left: batches that the remote has and that are not here; nobody asked for them.
    """
    lines = []
    for batch, branch, head, changed in taken:
        where = f"'{one_line(branch)}' at {short(head)}"
        what = "is here now" if changed else "was up to date"
        lines.append(f"{one_line(batch)} {what}: {where}")
    name = one_line(remote)
    if not taken and left:
        lines.append(f"'{name}' has {len(left)} batches, none of which is here; name one")
    elif not taken:
        lines.append(f"'{name}' has nothing for the batches that are here")
    lines += [f"not here yet: git batch pull {name} {one_line(batch)}" for batch in left]
    return "\n".join(lines)
