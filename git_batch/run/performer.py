"""Effects to events: the only place where a decision becomes something in the world.

Each method does one effect and answers with the event that says what came of it; a failed task is
such an event and never an exception. Everything here can be done again after a crash: an attempt
that is kept already is not kept twice, a commit that is made already is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.codec import quote
from git_batch.core.ids import Oid
from git_batch.core.machine import Facts
from git_batch.core.model import InFlight
from git_batch.core.standing import BatchStatus, StopReason
from git_batch.errors import GitError, LockedError, PreconditionError, StaleError
from git_batch.repo import attempts, commits, setaside
from git_batch.repo.restore import restore
from git_batch.repo.trees import diff, paths_of
from git_batch.run.baseline import run_baseline
from git_batch.run.claiming import TaskClaims
from git_batch.run.context import RunContext
from git_batch.run.lineage import drift_of, ground_of, is_made, message_of
from git_batch.run.pausing import pause
from git_batch.run.reviewing import HandedOver, Reviewer
from git_batch.run.settling import Settler
from git_batch.run.tasks import KEEP, TaskRunner

_COMMIT_ERRORS = (GitError, LockedError, OSError)


class Performer:
    """Does what `decide` asks for."""

    def __init__(self, context: RunContext) -> None:
        self._c = context
        self._claims = TaskClaims(context)
        self._tasks = TaskRunner(context, self._claims)
        self._settler = Settler(context, self._tasks)
        self._reviewer = Reviewer(context, self._tasks)
        self._sign = context.repo.signs_commits()
        self._encoding = commits.encoding_of(context.repo)
        self._by_type: dict[type, Callable[[Any], ev.Event]] = {
            fx.Enroll: self._enroll,
            fx.StartAttempt: self._start_attempt,
            fx.RunTask: self._run,
            fx.RunChecks: self._check,
            fx.Review: self._review,
            fx.KeepWork: self._keep,
            fx.Settle: self._settle,
            fx.Commit: self._commit,
            fx.AcceptUnchanged: self._unchanged,
            fx.Close: self._close,
        }

    def perform(self, effect: fx.Effect) -> ev.Event:
        """Do one effect.

        Raises:
            PreconditionError: the repository is not in a state to go on; nothing was recorded.
        """
        return self._by_type[type(effect)](effect)

    def after(self, event: ev.Event) -> None:
        """Do what may only happen once an event is recorded."""
        self._c.logs.publish(event.at, at_once=isinstance(event, ev.Closed))
        self._claims.after(event)
        if isinstance(event, ev.Committed):
            self._settler.after_commit(self._c.machine.task(event.task))

    def close(self) -> None:
        """End in order: what is left then is what a person finds, and may change."""
        self._tasks.close()

    def _enroll(self, effect: fx.Enroll) -> ev.Event:
        drifted = self._drifted()
        if drifted is not None:
            return drifted
        event = self._admit(effect)
        first = self._c.machine.plan.baseline and not self._c.state.enrolled
        if isinstance(event, ev.Closed) or not first:
            return event
        return run_baseline(self._c, self._tasks) or self._admit(effect)

    def _admit(self, effect: fx.Enroll) -> ev.Enrolled | ev.Closed:
        facts = Facts(self._c.now(), self._c.runner)
        return self._c.machine.admit(self._c.state, effect, facts)

    def _start_attempt(self, effect: fx.StartAttempt) -> ev.Event:
        pause(self._c, effect)
        drifted = self._drifted()
        if drifted is not None:
            return drifted
        head = self._c.state.head
        return ev.AttemptStarted(self._c.now(), effect.task, effect.attempt, head)

    def _drifted(self) -> ev.Closed | None:
        """Compare tips before anything starts; a wrong checkout is refused, nothing is recorded."""
        c = self._c
        state = c.state
        found = drift_of(c.repo, c.refs, state, state.head, state.in_flight)
        if found is None:
            on = c.repo.symbolic_head()
            if on == c.branch:
                return None
            raise PreconditionError(
                f"HEAD is not on '{state.branch}' any more",
                f"git switch {state.branch}",
            )
        return ev.Closed(c.now(), found.status, found.stop, found.detail, found.way_out)

    def _run(self, effect: fx.RunTask) -> ev.Event:
        flight = effect.flight
        return self._tasks.run(self._c.machine.task(flight.task), flight)

    def _check(self, effect: fx.RunChecks) -> ev.Event:
        flight = effect.flight
        return self._tasks.check(self._c.machine.task(flight.task), flight)

    def _review(self, effect: fx.Review) -> ev.Event:
        """Have a command judge, or keep the change for a person and go on with a clean tree."""
        flight = effect.flight
        verdict = self._reviewer.review(self._c.machine.task(flight.task), flight)
        if not isinstance(verdict, HandedOver):
            return verdict
        assert flight.tree is not None
        ref, changed = self._keep_tree(flight, flight.tree, flight.parent)
        assert ref is not None
        return ev.ReviewRequested(
            at=self._c.now(),
            task=flight.task,
            attempt=flight.attempt,
            tree=flight.tree,
            parent=flight.parent,
            ref=ref,
            changed=changed[:KEEP],
            changed_total=len(changed),
            summary=verdict.said,
            log=verdict.log,
        )

    def _keep(self, effect: fx.KeepWork) -> ev.Event:
        c, flight = self._c, effect.flight
        ground = ground_of(c.repo, c.refs, c.state)
        if not c.log.begun and flight.log is None:
            c.log.recover()
            self._tasks.keep_log(flight, at_once=True)
        if c.state.stale:
            c.scanner.unhide()
        c.scanner.begin(c.repo.tree_of(ground))
        ref, changed = self._keep_tree(flight, self._tasks.scan_to_keep(), ground)
        now, shown, total = c.now(), changed[:KEEP], len(changed)
        match effect.ending:
            case fx.Rework():
                return ev.Reworked(now, flight.task, flight.attempt, ref, shown, total)
            case fx.Interrupt(reason):
                reason = "; ".join([reason, *self._tasks.aftermath(flight)])
                return ev.Interrupted(now, flight.task, flight.attempt, ref, shown, total, reason)
            case fx.Park(failure, action):
                return ev.Parked(
                    now, flight.task, flight.attempt, failure, action, ref, shown, total
                )

    def _keep_tree(
        self, flight: InFlight, tree: Oid, ground: Oid
    ) -> tuple[str | None, tuple[bytes, ...]]:
        """Keep a tree as the attempt's work unless that is done already; put its paths back."""
        c = self._c
        base = c.repo.tree_of(ground)
        changes = diff(c.repo.objects, base, tree)
        ref = attempts.attempt_ref(c.state.batch_id, flight.task, flight.attempt)
        kept = c.refs.read(ref)
        if kept is None and changes:
            own = c.refs.read(f"{ref}-commits")
            title = f"{flight.task}: attempt {flight.attempt} of {c.state.batch_id}"
            parents = [ground, *([own] if own else [])]
            attempts.keep(
                c.repo, c.refs, ref, tree=tree, parents=parents, title=title, who=c.who, at=c.now()
            )
        else:
            # Kept before a crash: what differs from it now is not the attempt's and stays.
            tree = commits.read(c.repo, kept).tree if kept else tree
            changes = diff(c.repo.objects, base, tree)
        self._put_back(base, tree)
        if not (kept or changes):  # it may have been given work that did not apply
            ref = attempts.adopted_ref(c.state.batch_id, flight.task, flight.attempt)
            return (ref if c.refs.read(ref) else None), ()
        return ref, tuple(paths_of(changes))

    def _put_back(self, base: Oid, tree: Oid) -> None:
        """Put an attempt's paths back; go on only if nothing else is left in the way."""
        left = self._restore(base, tree)
        if left:
            names = "\n".join(f"\t{quote(p)}" for p in left[:20])
            raise PreconditionError(
                f"these paths were changed by somebody else and are left as they are:\n{names}",
                *setaside.ways(self._c.repo, left, "git batch resume"),
            )

    def _restore(self, base: Oid, tree: Oid) -> list[bytes]:
        """Put an attempt's paths back; give those that are somebody else's by now."""
        done = restore(self._c.scanner, base, tree)
        for path, place in done.kept.items():
            self._c.tools.progress.note(f"moved aside: '{quote(path)}' is now '{quote(place)}'")
        return done.left

    def _settle(self, effect: fx.Settle) -> ev.Event:
        flight = effect.flight
        return self._settler.settle(self._c.machine.task(flight.task), flight)

    def _commit(self, effect: fx.Commit) -> ev.Event:
        try:
            return self._make_commit(effect.flight)
        except StaleError:
            raise
        except _COMMIT_ERRORS as error:
            said = f"'{effect.flight.task}' could not be committed: {error}"
            return ev.Closed(
                self._c.now(),
                BatchStatus.NEEDS_HUMAN,
                StopReason.COMMIT_FAILED,
                said,
                "git batch resume",
            )

    def _make_commit(self, flight: InFlight) -> ev.Event:
        c = self._c
        tip = c.refs.read(c.branch)
        if tip is not None and is_made(c.repo, flight, tip):
            self._set_index(flight)  # a power cut may have kept the one and not the other
            return ev.Committed(c.now(), flight.task, tip)
        if tip != flight.parent:
            return self._displaced(flight)
        flight, commit, synced = self._publish_settled(flight)
        self._set_index(flight)
        try:
            # Publishing it follows at once, and syncs the move; it is told only then. Where a ref
            # is on disk as soon as it is set, the index has to be there before.
            why = f"{flight.task}: committed"
            synced = synced and not c.refs.sync_each
            c.refs.swap(c.branch, flight.parent, commit, why, synced=synced, durable=False)
        except StaleError:
            return self._displaced(flight)
        return ev.Committed(c.now(), flight.task, commit)

    def _publish_settled(self, flight: InFlight) -> tuple[InFlight, Oid, bool]:
        """Make the commit object, then publish the event that decides it: one barrier for both.

        What another process appended meanwhile gives the event another id, and so the commit.

        Returns:
            The flight with the published event's id, the commit, and whether it is on disk.
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
            synced = c.journal.publish(durable=False)
            newer = c.state.in_flight
            assert newer is not None
            if newer.settled == flight.settled:
                return flight, commit, synced
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
            c.tools.progress.note(f"left as it is in your index: '{quote(path)}'")

    def _displaced(self, flight: InFlight) -> ev.Event:
        """Somebody moved the branch between `settled` and the commit: keep the work, stop.

        Where they only put commits on top, the task's next attempt begins there, so its work leaves
        the files. Else a person puts the branch right first, and the files stay as they are.
        """
        assert flight.tree is not None
        ref, changed = self._keep_settled(flight)
        ground = ground_of(self._c.repo, self._c.refs, self._c.state)
        if ground != self._c.state.head:
            self._restore(self._c.repo.tree_of(ground), flight.tree)
        return ev.Interrupted(
            self._c.now(),
            flight.task,
            flight.attempt,
            ref,
            changed[:KEEP],
            len(changed),
            "the branch was moved by somebody else before the commit",
        )

    def _keep_settled(self, flight: InFlight) -> tuple[str, tuple[bytes, ...]]:
        """Keep the settled tree, unless that is done already."""
        c = self._c
        assert flight.tree is not None
        ref = attempts.attempt_ref(c.state.batch_id, flight.task, flight.attempt)
        if c.refs.read(ref) is None:
            title = f"{flight.task}: attempt {flight.attempt} of {c.state.batch_id}"
            attempts.keep(
                c.repo,
                c.refs,
                ref,
                tree=flight.tree,
                parents=[flight.parent],
                title=title,
                who=c.who,
                at=c.now(),
            )
        base = c.repo.tree_of(flight.parent)
        return ref, tuple(paths_of(diff(c.repo.objects, base, flight.tree)))

    def _unchanged(self, effect: fx.AcceptUnchanged) -> ev.Event:
        return ev.BecameUnchanged(self._c.now(), effect.flight.task, effect.flight.attempt)

    def _close(self, effect: fx.Close) -> ev.Event:
        self._c.group.leave()  # while the end is recorded
        return ev.Closed(
            self._c.now(), effect.status, effect.stop, effect.reason, effect.next_action
        )
