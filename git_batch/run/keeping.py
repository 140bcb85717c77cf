"""Keeping what an attempt left: first a commit under a ref, then its paths go back.

Nobody's work is lost that way, whatever ends the run in between; a second time finds the ref and
keeps nothing twice.
"""

from __future__ import annotations

from git_batch.core.ids import Oid
from git_batch.core.model import InFlight
from git_batch.core.naming import few_lines, path_text
from git_batch.errors import PreconditionError
from git_batch.repo import attempts, commits, setaside
from git_batch.repo.restore import restore
from git_batch.repo.trees import diff, paths_of
from git_batch.run.context import RunContext


class Keeper:
    """Keeps trees of the attempt in flight."""

    def __init__(self, context: RunContext) -> None:
        self._c = context

    def put_away(
        self, flight: InFlight, tree: Oid, ground: Oid
    ) -> tuple[str | None, tuple[bytes, ...]]:
        """Keep a tree as the attempt's work unless that is done already; put its paths back.

        Args:
            ground: the commit that the work is on top of.

        Returns:
            The ref, None if there is nothing to keep, and the paths.

        Raises:
            PreconditionError: somebody else changed some of the paths meanwhile.
        """
        c = self._c
        base = c.repo.tree_of(ground)
        changes = diff(c.repo.objects, base, tree)
        ref = attempts.attempt_ref(c.state.batch_id, flight.task, flight.attempt)
        kept = c.refs.read(ref)
        if kept is None and changes:
            own = c.refs.read(f"{ref}-commits")
            self._keep(ref, flight, tree, [ground, *([own] if own else [])])
        else:
            # Kept before a crash: what differs from it now is not the attempt's and stays.
            tree = commits.read(c.repo, kept).tree if kept else tree
            changes = diff(c.repo.objects, base, tree)
        self._put_back(base, tree, begun=kept is not None)
        if not (kept or changes):  # it may have been given work that did not apply
            ref = attempts.adopted_ref(c.state.batch_id, flight.task, flight.attempt)
            return (ref if c.refs.read(ref) else None), ()
        return ref, tuple(paths_of(changes))

    def keep_settled(self, flight: InFlight) -> tuple[str, tuple[bytes, ...]]:
        """Keep the settled tree unless that is done already; give its ref and paths."""
        c = self._c
        assert flight.tree is not None
        ref = attempts.attempt_ref(c.state.batch_id, flight.task, flight.attempt)
        if c.refs.read(ref) is None:
            self._keep(ref, flight, flight.tree, [flight.parent])
        base = c.repo.tree_of(flight.parent)
        return ref, tuple(paths_of(diff(c.repo.objects, base, flight.tree)))

    def restore(self, base: Oid, tree: Oid, *, begun: bool = False) -> list[bytes]:
        """Put an attempt's paths back; give those that are somebody else's by now."""
        done = restore(self._c.scanner, base, tree, begun=begun, still_ours=self._still_ours)
        for path in done.completed:
            said = f"completed: '{path_text(path)}', of which only a part had been put back"
            self._c.tools.progress.note(said)
        for path, place in done.kept.items():
            self._c.tools.progress.note(
                f"moved aside: '{path_text(path)}' is now '{path_text(place)}'"
            )
        return done.left

    def _still_ours(self) -> None:
        """See that no other run has taken over from this one: it would have gone on from here.

        Raises:
            StaleError: one has.
        """
        self._c.journal.publish()
        self._c.journal.refresh()

    def _keep(self, ref: str, flight: InFlight, tree: Oid, parents: list[Oid]) -> None:
        c = self._c
        title = f"{flight.task}: attempt {flight.attempt} of {c.state.batch_id}"
        attempts.keep(
            c.repo, c.refs, ref, tree=tree, parents=parents, title=title, who=c.who, at=c.now()
        )

    def _put_back(self, base: Oid, tree: Oid, *, begun: bool) -> None:
        """Put an attempt's paths back; go on only if nothing else is left in the way."""
        left = self.restore(base, tree, begun=begun)
        if left:
            names = few_lines([path_text(p) for p in left], 20)
            raise PreconditionError(
                f"these paths were changed by somebody else and are left as they are:\n{names}",
                *setaside.ways(self._c.repo, left, "git batch resume"),
            )
