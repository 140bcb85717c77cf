"""Kept work put into the working tree again: accepted by a review, adopted, gone on from, replayed.

The work is a change: a tree against the commit that it began on. If the branch has not moved since,
it is taken as it is; otherwise it is merged onto the tip in memory, and a conflict is an outcome,
not an exception. The files are written the way an attempt's are put back, only towards the work
instead of the tip, so that filters, modes and folders in the way are right.

Of a commit that is replayed on another base the work is the commit itself: its tree against its
parent's, and the words of its message, to which only our trailers are added anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from git_batch.core import trailers
from git_batch.core.attempt import Failure
from git_batch.core.ids import Oid
from git_batch.core.model import InFlight
from git_batch.core.naming import few, few_paths, path_text
from git_batch.core.standing import Outcome
from git_batch.errors import PreconditionError
from git_batch.repo import commits, setaside
from git_batch.repo.merging import merge_trees
from git_batch.repo.repository import Repository
from git_batch.repo.restore import restore
from git_batch.repo.trees import diff
from git_batch.run.context import RunContext


class Work(Struct, frozen=True):
    """Kept work: its tree, the commit that it began on, and what was said for its commit."""

    tree: Oid
    base: Oid
    message: bytes


def work_of(repo: Repository, flight: InFlight) -> Work | None:
    """Find the work that an attempt starts on; None if it starts on nothing.

    Raises:
        GitError: a commit that is to be replayed can't be read.
    """
    if flight.replays is not None:
        facts = commits.read(repo, flight.replays)
        return Work(facts.tree, facts.parents[0], trailers.without_ours(facts.message))
    if flight.work is None:
        return None
    assert flight.work_base is not None
    return Work(flight.work, flight.work_base, flight.work_message)


def apply_work(context: RunContext, flight: InFlight, work: Work) -> Failure | None:
    """Put the work that an attempt starts on into the working tree.

    Returns:
        Why it can't be put there; None when it is.

    Raises:
        PreconditionError: files that are nobody's are in the way.
    """
    repo = context.repo
    tip = repo.tree_of(flight.parent)
    merged = merge_trees(repo, base=repo.tree_of(work.base), ours=tip, theirs=work.tree)
    if merged.tree is None:
        return _conflict(flight, merged.conflicts)
    nested = [c.path for c in diff(repo.objects, tip, merged.tree) if c.is_nested]
    if nested:
        return _nested(nested)
    done = restore(context.scanner, merged.tree, tip)
    if done.left:
        names = few_paths(done.left, 5)
        raise PreconditionError(
            f"kept work of '{flight.task}' can't be applied: {names} are in the way",
            *setaside.ways(repo, done.left, "git batch resume"),
        )
    return None


def _nested(paths: Sequence[bytes]) -> Failure:
    """Refuse work that git can't give back: it keeps no files of a nested repository."""
    named, listing = _listed(paths)
    return Failure(
        Outcome.RUN_FAILED,
        f"the kept work can't be applied: it has a nested git repository, {named}",
        f"Of a nested git repository no files are kept:\n\n{listing}",
    )


def _conflict(flight: InFlight, paths: Sequence[bytes]) -> Failure:
    what = "the kept work"
    if flight.replays is not None:
        what = f"the change of {flight.replays[:12]}"
    named, listing = _listed(paths)
    return Failure(
        Outcome.RUN_FAILED,
        f"{what} does not apply to {flight.parent[:12]} any more: conflict in {named}",
        f"What was done before conflicts with what was committed since in:\n\n{listing}",
    )


def _listed(paths: Sequence[bytes]) -> tuple[str, str]:
    """Name the first paths in a sentence, and all of them one a line."""
    quoted = [path_text(path) for path in paths]
    return few(quoted), "\n".join(quoted)
