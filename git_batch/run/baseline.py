"""`baseline = true`: every distinct check passes on the base, or no task is started.

A check that fails before anything was changed would park every task for what none of them did. So
it ends the run, `needs_human`, before the first enrollment; resume tries it again. Nothing of it is
recorded if all pass: a crash in between only means to run them once more.
"""

from __future__ import annotations

from collections.abc import Iterator

from git_batch.core.attempt import Failure
from git_batch.core.events import Closed
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import Command, InFlight, Plan, Task
from git_batch.core.naming import few_paths
from git_batch.core.standing import BatchStatus, Outcome, Phase, StopReason
from git_batch.core.template import render_command
from git_batch.repo.attempts import log_path, logs_ref
from git_batch.repo.submodules import changed_inside
from git_batch.repo.trees import diff, paths_of
from git_batch.run.context import RunContext
from git_batch.run.pausing import CutShort
from git_batch.run.saying import last_of
from git_batch.run.tasks import TaskRunner

_LOG = TaskId("baseline")
"""Its log stands beside those of tasks, as attempt 0, which no task has."""


def distinct_checks(plan: Plan) -> Iterator[tuple[Task, Command]]:
    """List the checks of a plan, each once, with the first task that has it."""
    seen = set()
    for task in plan.tasks:
        for command in task.checks:
            values = (task.variables, task.model) if isinstance(command, str) else ()
            same = (render_command(task, {}, command), task.env, values)
            if same not in seen:
                seen.add(same)
                yield task, command


def run_baseline(context: RunContext, tasks: TaskRunner) -> Closed | None:
    """Run every distinct check on the base; give the end of the run if one does not pass.

    Raises:
        CutShort: a signal ended it.
    """
    c = context
    c.log.begin()
    c.scanner.begin(c.repo.tree_of(c.state.head))
    checks = list(distinct_checks(c.machine.plan))
    c.tools.progress.note(f"running {len(checks)} check{'s' * (len(checks) != 1)} on the base")
    for task, command in checks:
        failure = _check(context, tasks, task, command)
        if failure is not None:
            return _closed(context, failure)
    left = tasks.scan()
    changed = paths_of(diff(c.repo.objects, c.repo.tree_of(c.state.head), left))
    changed += changed_inside(c.repo, c.scanner.private)
    if changed:
        said = f"the checks changed {few_paths(changed)}"
        return _closed(context, Failure(Outcome.CHECK_CHANGED_TREE, said))
    return None


def _check(context: RunContext, tasks: TaskRunner, task: Task, command: Command) -> Failure | None:
    now = context.now()
    flight = InFlight(
        task=task.id,
        attempt=0,
        phase=Phase.RAN,
        started_at=now,
        attempt_at=now,
        since=now,
        parent=context.state.head,
        enrolled=Oid(""),
    )
    failure = tasks.check_base(task, flight, command)
    if failure is not None and failure.outcome is Outcome.INTERRUPTED:
        raise CutShort
    return failure


def _closed(context: RunContext, failure: Failure) -> Closed:
    c, printed = context, context.log.text()
    c.logs.put(0, _LOG, 0, printed)
    c.logs.publish(c.now())
    last = last_of(failure.feedback)
    said = f": {last}" if last and last != failure.reason else ""
    return Closed(
        c.now(),
        BatchStatus.NEEDS_HUMAN,
        StopReason.BASELINE_FAILED,
        f"on the base, before any task, {failure.reason}{said}",
        # Checks that printed nothing, and did not fail, can only have changed files.
        f"git show {logs_ref(c.state.batch_id)}:{log_path(0, _LOG, 0)}"
        if printed
        else "git status",
    )
