"""From a settled tree to the task's one commit: commit object, record, index, branch.

The order is storage.md's (Writing), and each step can be done again after a crash: a commit that is
made already is found, the same event gives the same commit. Somebody who moved the branch in the
meantime is never overwritten.
"""

from __future__ import annotations

from functools import partial

from git_batch.core import events as ev
from git_batch.core.model import InFlight
from git_batch.core.naming import path_text
from git_batch.core.standing import BatchStatus, StopReason
from git_batch.errors import GitError, LockedError, StaleError
from git_batch.repo import commits
from git_batch.repo.trees import diff
from git_batch.run.context import RunContext
from git_batch.run.keeping import Keeper
from git_batch.run.lineage import ground_of, is_made, message_of
from git_batch.run.tasks import KEEP

_ERRORS = (GitError, LockedError, OSError)


class Committer:
    """Makes the commits of one run."""

    def __init__(self, context: RunContext, keeper: Keeper) -> None:
        self._c, self._keeper = context, keeper
        self._sign = context.repo.signs_commits()
        self._encoding = commits.encoding_of(context.repo)

    def commit(self, flight: InFlight) -> ev.Event:
        """Commit what is settled; what can't be committed ends the run for a person.

        Raises:
            StaleError: another run works on the record.
        """
        try:
            return self._commit(flight)
        except StaleError:
            raise
        except _ERRORS as error:
            return ev.Closed(
                self._c.now(),
                BatchStatus.NEEDS_HUMAN,
                StopReason.COMMIT_FAILED,
                f"'{flight.task}' could not be committed: {error}",
                "git batch resume",
            )

    def _commit(self, flight: InFlight) -> ev.Event:
        c = self._c
        tip = c.refs.read(c.branch)
        if tip is not None and is_made(c.repo, flight, tip):
            self._set_index(flight)  # a power cut may have kept the one and not the other
            return ev.Committed(c.now(), flight.task, tip)
        if tip != flight.parent:
            return self._displaced(flight)
        flight, made, synced = self._publish_settled(flight)
        self._set_index(flight)
        try:
            # Publishing it follows at once, and syncs the move; it is told only then. Where a ref
            # is on disk as soon as it is set, the index has to be there before.
            why = f"{flight.task}: committed"
            synced = synced and not c.refs.sync_each
            c.refs.swap(c.branch, flight.parent, made.commit, why, synced=synced, durable=False)
        except StaleError:
            return self._displaced(flight)
        return made

    def _publish_settled(self, flight: InFlight) -> tuple[InFlight, ev.Committed, bool]:
        """Make the commit object, then publish the event that decides it: one barrier for both.

        What another process appended meanwhile gives the event another id, and so the commit.

        Returns:
            The flight with the published event's id, the event of its commit, and whether that
            commit is on disk.
        """
        c = self._c
        replays = flight.replays
        authored = commits.authored(c.repo, replays) if replays is not None else None
        while True:
            assert flight.tree
            commit = commits.make(
                c.repo,
                tree=flight.tree,
                parents=[flight.parent],
                message=message_of(flight),
                who=c.who,
                at=flight.since,
                sign=self._sign,
                encoding=self._encoding,
                authored=authored,
            )
            made = ev.Committed(c.now(), flight.task, commit)
            # It can be written while the disk is waited for: there is little else to do.
            synced = c.journal.publish(durable=False, beside=partial(c.journal.foresee, made))
            newer = c.state.in_flight
            assert newer is not None
            if newer.settled == flight.settled:
                return flight, made, synced
            flight = newer

    def _set_index(self, flight: InFlight) -> None:
        """Set the person's index for exactly the changed paths, before the branch moves.

        Where HEAD is not on the branch the index is not the batch's.
        """
        c = self._c
        if c.repo.symbolic_head() != c.branch:
            return
        assert flight.tree is not None
        if c.scanner.tree == flight.tree:
            left = c.scanner.install()
        else:  # settled by a run that is gone
            base = c.repo.tree_of(flight.parent)
            left = c.scanner.person.set_paths(diff(c.repo.objects, base, flight.tree))
        for path in left:
            c.tools.progress.note(f"left as it is in your index: '{path_text(path)}'")

    def _displaced(self, flight: InFlight) -> ev.Event:
        """Somebody moved the branch between `settled` and the commit: keep the work, stop.

        Where they only put commits on top, the task's next attempt begins there, so its work leaves
        the files. Else a person puts the branch right first, and the files stay as they are.

        Raises:
            StaleError: it was another run of this very batch; then nothing of it is ours any more.
        """
        self._c.journal.refresh()
        assert flight.tree is not None
        ref, changed = self._keeper.keep_settled(flight)
        ground = ground_of(self._c.repo, self._c.refs, self._c.state)
        if ground != self._c.state.head:
            self._keeper.restore(self._c.repo.tree_of(ground), flight.tree)
        return ev.Interrupted(
            self._c.now(),
            flight.task,
            flight.attempt,
            ref,
            changed[:KEEP],
            len(changed),
            "the branch was moved by somebody else before the commit",
        )
