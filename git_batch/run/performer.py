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
from git_batch.core.agenda import counts
from git_batch.core.machine import Facts
from git_batch.core.model import InFlight
from git_batch.core.naming import few_paths
from git_batch.core.standing import BatchStatus, Outcome, StopReason, TaskStatus
from git_batch.core.values import replace
from git_batch.errors import PreconditionError
from git_batch.repo.linked import elsewhere, way_to
from git_batch.repo.submodules import INSIDE, changed_inside
from git_batch.run.baseline import run_baseline
from git_batch.run.claiming import TaskClaims
from git_batch.run.committing import Committer
from git_batch.run.context import RunContext
from git_batch.run.keeping import Keeper
from git_batch.run.lineage import drift_of, ground_of
from git_batch.run.pausing import pause
from git_batch.run.reviewing import HandedOver, Reviewer
from git_batch.run.settling import Settler
from git_batch.run.tasks import KEEP, TaskRunner


class Performer:
    """Does what `decide` asks for."""

    def __init__(self, context: RunContext) -> None:
        self._c = context
        self._claims = TaskClaims(context)
        self._tasks = TaskRunner(context, self._claims)
        self._settler = Settler(context, self._tasks)
        self._reviewer = Reviewer(context, self._tasks)
        self._keeper = Keeper(context)
        self._committer = Committer(context, self._keeper)
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
        moved = self._moved()
        if moved is None and c.repo.symbolic_head() != c.branch:
            raise PreconditionError(
                f"HEAD is not on '{c.state.branch}' any more",
                way_to(c.state.branch, elsewhere(c.repo.git, c.branch)),
            )
        return moved or self._inside()

    def _inside(self) -> ev.Closed | None:
        """End the run where submodules hold what an attempt left: the next one would see it too."""
        c = self._c
        left = changed_inside(c.repo)
        if not left:
            return None
        return ev.Closed(
            c.now(),
            BatchStatus.NEEDS_HUMAN,
            StopReason.NEEDS_HUMAN,
            f"{INSIDE}: {few_paths(left)}",
            "git batch resume",  # it refuses to begin, and says how each is put away
        )

    def _moved(self) -> ev.Closed | None:
        """Give the end of a run whose branch is not where the record expects it."""
        c = self._c
        state = c.state
        found = drift_of(c.repo, c.refs, state, state.head, state.in_flight)
        if found is None:
            return None
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
        ref, changed = self._keeper.put_away(flight, flight.tree, flight.parent)
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
            c.scanner.take_back()
        c.scanner.begin(c.repo.tree_of(ground))
        ref, changed = self._keeper.put_away(flight, self._tasks.scan_to_keep(), ground)
        now, shown, total = c.now(), changed[:KEEP], len(changed)
        match effect.ending:
            case fx.Rework():
                return ev.Reworked(now, flight.task, flight.attempt, ref, shown, total)
            case fx.Interrupt(reason):
                reason = self._with_aftermath(reason, flight)
                return ev.Interrupted(now, flight.task, flight.attempt, ref, shown, total, reason)
            case fx.Park(failure, action):
                if failure.outcome is Outcome.INTERRUPTED:
                    failure = replace(failure, reason=self._with_aftermath(failure.reason, flight))
                return ev.Parked(
                    now, flight.task, flight.attempt, failure, action, ref, shown, total
                )

    def _with_aftermath(self, reason: str, flight: InFlight) -> str:
        return "; ".join([reason, *self._tasks.aftermath(flight)])

    def _settle(self, effect: fx.Settle) -> ev.Event:
        flight = effect.flight
        event = self._settler.settle(self._c.machine.task(flight.task), flight)
        if not counts(self._c.state)[TaskStatus.PENDING]:
            self._c.group.leave()  # beside the last commit: only a hook can start anything yet
        return event

    def _commit(self, effect: fx.Commit) -> ev.Event:
        return self._committer.commit(effect.flight)

    def _unchanged(self, effect: fx.AcceptUnchanged) -> ev.Event:
        return ev.BecameUnchanged(self._c.now(), effect.flight.task, effect.flight.attempt)

    def _close(self, effect: fx.Close) -> ev.Event:
        """End the run; a branch that was moved is why, also where nothing was left to do."""
        self._c.group.leave()  # while the end is recorded
        return self._moved() or ev.Closed(
            self._c.now(), effect.status, effect.stop, effect.reason, effect.next_action
        )
