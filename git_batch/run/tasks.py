"""One attempt of one task: run it, look at what it left, check that.

The scan after the command gives the tree that everything later speaks of; the scan after the
checks proves that they left it alone. There is no other scan.
"""

from __future__ import annotations

from collections.abc import Sequence

from git_batch.core.codec import quote
from git_batch.core.events import AttemptFailed, ChecksFailed, ChecksPassed, Ran
from git_batch.core.machine import accepts_empty
from git_batch.core.model import CheckResult, Failure, InFlight, LogRef, Oid, Outcome, Task, Usage
from git_batch.core.scope import literal_paths
from git_batch.repo.trees import diff, paths_of
from git_batch.run.attemptlog import reference
from git_batch.run.commands import Commands, check_failure, failure_of, result_of
from git_batch.run.context import RunContext
from git_batch.run.fence import Fence
from git_batch.run.scopecheck import refuse

KEEP = 100
"""Changed paths that an event lists; the total is always said."""


class TaskRunner:
    """Runs commands and checks of the attempt in flight."""

    def __init__(self, context: RunContext) -> None:
        self._c = context
        self.commands = Commands(context)
        self._fence = Fence(context)

    def run(self, task: Task, flight: InFlight) -> Ran | AttemptFailed:
        """Run the task's command and compare what it left with the scope."""
        c = self._c
        base = c.repo.tree_of(flight.parent)
        c.log.begin()
        c.files.begin(task, flight)
        c.scanner.begin(base)
        self._fence.raise_()
        ended, piece = self.commands.task(task, flight)
        usage = c.files.used()
        breach = self._fence.breach(flight)
        failure = breach or failure_of(c, task, ended, piece)
        if failure is not None:
            return self._failed(flight, failure, ended.status, usage)
        tree = c.scanner.scan(also=literal_paths(task.scope))
        changes = diff(c.repo.objects, base, tree)
        failure = self._problems(c.scanner.problems) or refuse(task, changes)
        if failure is None and not changes and not accepts_empty(task):
            failure = Failure(Outcome.EMPTY, "the command changed nothing")
        if failure is not None:
            return self._failed(flight, failure, ended.status, usage)
        return Ran(
            at=c.now(),
            task=task.id,
            attempt=flight.attempt,
            tree=tree,
            changed=tuple(paths_of(changes[:KEEP])),
            changed_total=len(changes),
            log=None if task.checks else self.keep_log(flight),
            usage=usage,
            message=c.files.body().encode("utf-8", "replace"),
        )

    def check(self, task: Task, flight: InFlight) -> ChecksPassed | ChecksFailed | AttemptFailed:
        """Run the task's checks in order, to the first that does not pass."""
        assert flight.tree is not None
        results, failure = self._check_all(task, flight, flight.tree)
        now = self._c.now()
        if failure is None:
            log = self.keep_log(flight)
            return ChecksPassed(now, task.id, flight.attempt, results, log)
        if failure.outcome is Outcome.INTERRUPTED:
            return self._failed(flight, failure, flight.exit_status, Usage())
        log = self.keep_log(flight)
        return ChecksFailed(now, task.id, flight.attempt, failure, results, log)

    def check_again(self, task: Task, flight: InFlight, tree: Oid) -> Failure | None:
        """Run the checks on a tree that a hook changed."""
        return self._check_all(task, flight, tree)[1]

    def _check_all(
        self, task: Task, flight: InFlight, tree: Oid
    ) -> tuple[tuple[CheckResult, ...], Failure | None]:
        results: list[CheckResult] = []
        for command in task.checks:
            ended, piece = self.commands.check(task, flight, command)
            results.append(result_of(ended, piece))
            failure = check_failure(ended, piece)
            if failure is not None:
                return tuple(results), failure
        moved = self._fence.breach(flight)
        if moved is not None:
            return tuple(results), moved
        changes = self._c.scanner.changed_by_checks(tree) if task.checks else []
        if changes:
            return tuple(results), _changed_tree(paths_of(changes))
        return tuple(results), None

    def keep_log(self, flight: InFlight) -> LogRef | None:
        """Keep the attempt's output; say how it can be found again."""
        text = self._c.log.text()
        place = self._c.machine.graph.index[flight.task]
        self._c.logs.put(place, flight.task, flight.attempt, text)
        return reference(text)

    def _failed(
        self, flight: InFlight, failure: Failure, status: int | None, usage: Usage
    ) -> AttemptFailed:
        log = self.keep_log(flight)
        return AttemptFailed(
            self._c.now(), flight.task, flight.attempt, failure, status, log, usage
        )

    def _problems(self, paths: Sequence[bytes]) -> Failure | None:
        if not paths:
            return None
        named = ", ".join(f"'{quote(p)}'" for p in paths[:3])
        text = f"left what git can't take: {named}"
        listing = "\n".join(quote(p) for p in paths[:KEEP])
        return Failure(Outcome.SCOPE_REFUSED, text, f"git can't take these paths:\n\n{listing}")


def _changed_tree(paths: list[bytes]) -> Failure:
    named = ", ".join(f"'{quote(p)}'" for p in paths[:3])
    listing = "\n".join(quote(p) for p in paths[:KEEP])
    return Failure(
        Outcome.CHECK_CHANGED_TREE,
        f"the checks changed {named}; a check must leave the tree as it was",
        f"The checks changed these paths:\n\n{listing}",
    )
