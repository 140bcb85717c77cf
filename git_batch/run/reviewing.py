"""The review of a change: by a command at once, or by a person later.

A command reviewer gets the diff as a file (`BATCH_DIFF`) and must not change the tree, nor what the
fence watches: 0 accepts, 1 asks for rework with its output as the summary, 125 hands over to a
person. A person's review keeps the change and goes on with a clean tree; the verdict is an event of
its own.
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.core import events as ev
from git_batch.core.attempt import Failure, LogRef, Usage
from git_batch.core.model import Actor, InFlight, Task
from git_batch.core.standing import Outcome
from git_batch.repo.trees import patch
from git_batch.run.commands import BLOCKED_STATUS, FEEDBACK, limits
from git_batch.run.context import RunContext
from git_batch.run.process import Ended, How
from git_batch.run.saying import heard
from git_batch.run.tasks import TaskRunner, UnfitError, changed_tree

REWORK_STATUS = 1
HUMAN = "human"


class HandedOver(Struct, frozen=True):
    """A change that a person is to judge.

    Attributes:
        said: what a review command said that did not want to judge.
        log: what is kept of the attempt's output, that of the command included.
    """

    said: str = ""
    log: LogRef | None = None


Verdict = ev.Reviewed | ev.AttemptFailed | HandedOver


class Reviewer:
    """Has the change of the attempt in flight reviewed by a command."""

    def __init__(self, context: RunContext, tasks: TaskRunner) -> None:
        self._c, self._tasks = context, tasks

    def review(self, task: Task, flight: InFlight) -> Verdict:
        """Run the review command, if it is not a person who reviews."""
        c = self._c
        assert flight.tree is not None
        if task.review == HUMAN:
            return HandedOver()
        c.files.diff.write_bytes(patch(c.repo.git, flight.parent, flight.tree))
        env = {**c.files.environment(task, flight), "BATCH_DIFF": str(c.files.diff)}
        argv = c.files.check(task, flight, task.review)
        self._tasks.begin_review(flight)
        ended, piece = self._tasks.commands.execute("review", argv, env, limits(task))
        breach = self._tasks.end_review(flight)
        if breach is not None:
            return self._failed(flight, breach, ended)
        try:
            changes = self._tasks.changed_since(flight.tree)
        except UnfitError as error:
            return self._failed(flight, error.failure, ended)
        if changes:
            failure = changed_tree(changes, "review", Outcome.REVIEW_CHANGED_TREE)
            return self._failed(flight, failure, ended)
        said = heard(piece, FEEDBACK)
        if ended.how is How.EXITED and ended.status == 0:
            actor, log = Actor("the review command", ""), self._log(flight)
            return ev.Reviewed(
                c.now(), flight.task, flight.tree, ev.Verdict.ACCEPT, actor, said, log
            )
        if ended.how is How.EXITED and ended.status == BLOCKED_STATUS:
            return HandedOver(said, self._log(flight))
        return self._failed(flight, _failure(ended, said, piece.ending), ended)

    def _failed(self, flight: InFlight, failure: Failure, ended: Ended) -> ev.AttemptFailed:
        now, log = self._c.now(), self._log(flight)
        return ev.AttemptFailed(
            now, flight.task, flight.attempt, failure, ended.status, log, Usage()
        )

    def _log(self, flight: InFlight) -> LogRef | None:
        return self._tasks.keep_log(flight, at_once=True)


def _failure(ended: Ended, said: str, ending: str) -> Failure:
    if ended.how is How.INTERRUPTED:
        return Failure(Outcome.INTERRUPTED, "interrupted")
    if ended.how is How.EXITED and ended.status == REWORK_STATUS:
        summary = said or "the review asks for rework without saying why"
        return Failure(Outcome.REVIEW_REWORK, summary.split("\n", 1)[0][:200], summary)
    outcome = Outcome.TIMED_OUT if ended.how is How.TIMED_OUT else Outcome.RUN_FAILED
    return Failure(outcome, f"the review command did not give a verdict: {ending}", said)
