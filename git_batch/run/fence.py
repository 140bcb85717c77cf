"""What a task may not do to the repository itself: move its branch, or HEAD.

The comparison reads refs in process, so it comes before any git command of ours. A task's own
commits on top of the expected tip are its work: they are kept by a ref, the branch is set back,
and the one commit is made from the working tree. Any other move is `history_changed`: what was
moved away is kept by a ref, branch and HEAD are put back to where they were, so that the next
independent task starts from a right state.
"""

from __future__ import annotations

from git_batch.core.model import Failure, InFlight, Oid, Outcome
from git_batch.errors import GitError
from git_batch.repo import attempts, commits
from git_batch.run.context import RunContext

OWN_MOST = 10_000
"""How many commits of a task are walked to see that they stand on the expected tip."""


class Fence:
    """Compares HEAD and the batch branch before and after a command."""

    def __init__(self, context: RunContext) -> None:
        self._c = context

    def raise_(self) -> None:
        """Note how things stand before a command."""

    def breach(self, flight: InFlight) -> Failure | None:
        """Put right what a command moved; say so if it was not simply committing."""
        c = self._c
        head, tip = c.refs.symbolic(), c.refs.read(c.branch)
        if head == c.branch and tip == flight.parent:
            return None
        moved = [tip] if tip is not None and tip != flight.parent else []
        detached = c.refs.read("HEAD")
        if head != c.branch and detached is not None and detached != flight.parent:
            moved.append(detached)
        own = head == c.branch and tip is not None and self._stands_on(tip, flight.parent)
        self._keep(flight, moved)
        if tip != flight.parent:
            c.refs.swap(c.branch, tip, flight.parent, f"{flight.task}: commits taken apart")
        if head != c.branch:
            c.refs.point(c.branch, f"{flight.task}: HEAD put back")
        if own:
            return None
        where = head or (f"detached at {detached}" if detached else "nothing")
        return Failure(
            Outcome.HISTORY_CHANGED,
            f"the command moved '{c.branch}' from {flight.parent} to {tip}, HEAD to {where}",
            "Do not commit, amend, reset, rebase or switch branches: only change files.",
        )

    def _keep(self, flight: InFlight, moved: list[Oid]) -> None:
        """Keep what was moved away under the attempt's ref, with a number of its own."""
        c = self._c
        for i, oid in enumerate(dict.fromkeys(moved)):
            ref = attempts.attempt_ref(c.state.batch_id, flight.task, flight.attempt)
            name = f"{ref}-commits" + (f"-{i}" if i else "")
            c.refs.swap(name, c.refs.read(name), oid, f"{flight.task}: own commits")

    def _stands_on(self, tip: Oid, base: Oid) -> bool:
        """Tell whether a tip is a straight line of commits on top of another commit."""
        for _ in range(OWN_MOST):
            if tip == base:
                return True
            try:
                facts = commits.read(self._c.repo, tip)
            except GitError:
                return False
            if len(facts.parents) != 1:
                return False
            tip = facts.parents[0]
        return False
