"""Kept work put into the working tree again: accepted by a review, adopted, or gone on from.

The work is a change: a tree against the commit that it began on. If the branch has not moved since,
it is taken as it is; otherwise it is merged onto the tip in memory, and a conflict is an outcome,
not an exception. The files are written the way an attempt's are put back, only towards the work
instead of the tip, so that filters, modes and folders in the way are right.
"""

from __future__ import annotations

from git_batch.core.attempt import Failure
from git_batch.core.codec import quote
from git_batch.core.model import InFlight
from git_batch.core.standing import Outcome
from git_batch.errors import PreconditionError
from git_batch.repo.merging import merge_trees
from git_batch.repo.restore import restore
from git_batch.run.context import RunContext


def apply_work(context: RunContext, flight: InFlight) -> Failure | None:
    """Put the work that an attempt starts on into the working tree.

    Returns:
        Why it can't be put there; None when it is.

    Raises:
        PreconditionError: files that are nobody's are in the way.
    """
    assert flight.work is not None
    assert flight.work_base is not None
    repo = context.repo
    tip = repo.tree_of(flight.parent)
    merged = merge_trees(repo, base=repo.tree_of(flight.work_base), ours=tip, theirs=flight.work)
    if merged.tree is None:
        listing = "\n".join(quote(path) for path in merged.conflicts)
        return Failure(
            Outcome.RUN_FAILED,
            f"the kept work does not apply to {flight.parent[:12]} any more",
            f"The kept work conflicts with what was committed since in:\n\n{listing}",
        )
    done = restore(context.scanner, merged.tree, tip)
    if done.left:
        names = ", ".join(f"'{quote(path)}'" for path in done.left[:5])
        raise PreconditionError(
            f"kept work of '{flight.task}' can't be applied: {names} are in the way",
            "commit them elsewhere or put them away with 'git stash', then: git batch resume",
        )
    return None
