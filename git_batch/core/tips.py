"""Tips compared: has somebody moved the batch branch since the record's newest event?

This is the O(1) check before each start and of `status`: it compares tips and walks no further than
it must. What kind of commit lies where it should not is for the whole walk to say (`comparison`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from git_batch.core.claims import Seen, claim_of, pretends
from git_batch.core.ids import Oid
from git_batch.core.lineage import (
    BRANCH_MISSING,
    FOREIGN,
    MISSING,
    MOVED_BACK,
    REWRITTEN,
    Drift,
    back_to,
    before_rebase,
    compare,
    to_foreign,
    word,
)
from git_batch.core.model import BatchState, InFlight
from git_batch.core.standing import Phase
from git_batch.core.tip import Header
from git_batch.errors import GitError

Read = Callable[[Oid], Seen]
"""Gives a commit by its id; raises GitError where it can't."""

MOST = 10_000


def tips_differ(
    read: Read,
    batch: BatchState | Header,
    tip: Oid | None,
    head: Oid,
    flight: InFlight | None,
) -> Drift | None:
    """Compare a branch's tip with the head that the record expects.

    Args:
        batch: what names the branch and its bases.
        tip: where the branch is; None if it does not exist.

    Raises:
        GitError: objects that decide it can't be read; that is never "no drift".
    """
    branch = batch.branch
    if tip == head or (tip is not None and is_settled(read, flight, tip)):
        return None
    if tip is None:
        return Drift(
            BRANCH_MISSING,
            f"branch '{branch}' does not exist; the record expects {head}",
            head,
            f"git branch {word(branch)} {head}",
        )
    left = before_rebase(branch, tip, head, batch.base, [line.head for line in batch.former])
    return left or _moved(read, batch, tip, head)


def unreadable_tip(branch: str, tip: Oid) -> Drift:
    """Say of a branch that its tip is damaged, or not here."""
    said = f"branch '{branch}' is at {tip}, and that commit is damaged or missing"
    return Drift(MISSING, said, tip, "git fsck")


def _moved(read: Read, batch: BatchState | Header, tip: Oid, head: Oid) -> Drift:
    """Say how a tip that is not the recorded head stands to it."""
    branch = batch.branch
    above = _above(read, tip, head)
    if above is not None:
        said = f"branch '{branch}' is at {tip}, on top of the recorded {head}"
        return _on_top(batch, said, above, tip, head)
    back = _above(read, head, tip) is not None
    how = "was set back" if back else "was rewritten"
    return Drift(
        MOVED_BACK if back else REWRITTEN,
        f"branch '{branch}' {how}: it is at {tip}, the record expects {head}",
        tip,
        back_to(branch, head, tip),
        "" if back else compare(batch.base, head, tip),
    )


def _on_top(
    batch: BatchState | Header, said: str, above: Sequence[Seen], tip: Oid, head: Oid
) -> Drift:
    """Name the way out of commits on top: nobody is sent to a blessing that takes no such."""
    if any(len(commit.parents) != 1 for commit in above):
        said += ", with a merge among what came, and none can be blessed"
        way = back_to(batch.branch, head, tip)
    elif any(pretends(commit.message) for commit in above):
        said += ", with trailers of a batch among what came"
        way = f"git batch verify {batch.batch_id}"
    else:
        way = to_foreign(batch.status, batch.branch, head, tip)
    return Drift(FOREIGN, said, tip, way)


def is_settled(read: Read, flight: InFlight | None, tip: Oid) -> bool:
    """Tell whether the tip is the settled commit of the task in flight (a crash window)."""
    if flight is None or flight.phase is not Phase.SETTLED:
        return False
    facts = read(tip)
    claim, _ = claim_of(facts.message)
    named = claim is not None and claim.record == flight.settled
    return named and facts.parents == (flight.parent,) and facts.tree == flight.tree


def _above(read: Read, tip: Oid, base: Oid) -> list[Seen] | None:
    """Read what lies above `base` on the first-parent line of `tip`; None if it is not on it."""
    oid: Oid | None = tip
    found: list[Seen] = []
    for _ in range(MOST):
        if oid == base or oid is None:
            return found if oid is not None else None
        found.append(read(oid))
        oid = found[-1].parents[0] if found[-1].parents else None
    raise GitError(f"more than {MOST} commits lie between {tip} and {base}")
