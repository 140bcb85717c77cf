"""Checks that need not be run again: all of a task's checks have passed on this very tree before.

That happens when work that was kept is tried again: after a review, a refusing hook, a crash. The
results stand in the record beside the tree they are for (`CheckResult.tree`), only where all of
the task's checks passed and left the tree alone; so they hold or fall together: a check may need
what the one before it has built.

Only the same counts as the same: command, values, environment given by the plan, task. A check
that looks at the attempt (its number, the feedback, what the command says) is never reused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256

from git_batch.core.attempt import CheckResult
from git_batch.core.ids import Oid
from git_batch.core.model import BatchState, Command, Task
from git_batch.core.template import RUN_TIME_NAMES, names, render_command
from git_batch.core.values import replace

_OF_THE_ATTEMPT = re.compile(r"BATCH_(ATTEMPT|PROMPT|FEEDBACK|MESSAGE|USAGE|BLOCKED|DIFF)")
_LENGTH = 32


class CheckCache:
    """Knows what has passed, from the record and from this run."""

    def __init__(self, *, recheck: bool) -> None:
        self._recheck = recheck
        self._known: dict[tuple[Oid, str], CheckResult] | None = None

    def passed(self, state: BatchState, task: Task, tree: Oid) -> tuple[CheckResult, ...] | None:
        """Give the results of a task's checks on a tree; None if they have to be run."""
        if self._recheck or not task.checks:
            return None
        if self._known is None:
            self._known = {(r.tree, r.key): r for r in _recorded(state) if r.tree and r.key}
        found = [self._known.get((tree, check_key(task, command))) for command in task.checks]
        results = tuple(replace(r, reused=True) for r in found if r is not None)
        return results if len(results) == len(found) else None

    def note(
        self, task: Task, tree: Oid, results: tuple[CheckResult, ...]
    ) -> tuple[CheckResult, ...]:
        """Give the results of checks that have all passed as they are to be recorded."""
        noted = tuple(
            replace(result, tree=tree, key=key) if (key := check_key(task, command)) else result
            for command, result in zip(task.checks, results, strict=True)
        )
        if self._known is not None:
            self._known |= {(tree, r.key): r for r in noted if r.key}
        return noted


def check_key(task: Task, command: Command) -> str:
    """Give a digest of what a check runs; empty if that differs from one attempt to the next."""
    words = (command,) if isinstance(command, str) else command
    if any(_OF_THE_ATTEMPT.search(w) or {*names(w)} & {*RUN_TIME_NAMES} for w in words):
        return ""
    same = [
        task.id,
        command if isinstance(command, str) else list(render_command(task, {}, command)),
        task.env,
        task.variables,
        task.model,
        task.scope,
    ]
    return sha256(json.dumps(same).encode()).hexdigest()[:_LENGTH]


def _recorded(state: BatchState) -> Iterator[CheckResult]:
    for record in state.tasks.values():
        for attempt in record.history:
            yield from attempt.checks
    if state.in_flight is not None:
        for attempt in state.in_flight.history:
            yield from attempt.checks
        yield from state.in_flight.checks
