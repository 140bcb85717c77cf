"""The commands that help a person with what the record says: a look at a task, and the way on.

They name tasks only; which batch they have to name is for views (`views.addressing`).
"""

from __future__ import annotations

from datetime import datetime

from git_batch.core.agenda import counts
from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState, Budget
from git_batch.core.standing import IN_THE_CHANGE, Outcome, StopReason, TaskStatus

_ELSEWHERE = frozenset({Outcome.HISTORY_CHANGED, Outcome.TAMPERED})
"""Outcomes that are explained neither by the change nor by what was printed."""


def look_at(task: TaskId, outcome: Outcome | None, *, output: bool, diff: bool = False) -> str:
    """Give the command that shows why a task stands where it does.

    Args:
        output: something that it printed is kept.
        diff: its change tells more than what it printed, whatever the outcome.
    """
    if diff or outcome in IN_THE_CHANGE:
        return f"git batch show {task} --diff"
    if not output or outcome in _ELSEWHERE:
        return f"git batch show {task}"
    return f"git batch show {task} --output"


def kept_part(command: str) -> str | None:
    """Say what such a look needs of what is never pushed: "logs", or `attempts/TASK/`."""
    words = command.split(" ")
    if command.startswith("git show refs/batch/") or words[4:] == ["--output"]:
        return "logs"
    return f"attempts/{words[3]}/" if words[4:] == ["--diff"] else None


def without_kept(command: str) -> str:
    """Give what helps where that is not here: what the record says, or another try."""
    words = command.split(" ")
    return " ".join(words[:4]) if words[1:3] == ["batch", "show"] else "git batch resume"


def next_action(task: TaskId, outcome: Outcome, *, output: bool) -> str:
    """Say which command helps a person with a parked task; `output` as of `look_at`."""
    if outcome is Outcome.BLOCKED:
        return f"git batch retry {task} -m 'ANSWER'"
    return look_at(task, outcome, output=output)


def way_on(state: BatchState, stop: StopReason | None) -> str:
    """Say how a batch goes on after a stop: a bound that is used up has to be raised."""
    budget = state.authorization.budget if state.authorization else Budget()
    if stop is StopReason.BUDGET:
        if budget.max_tasks is None or state.enrolled < budget.max_tasks:
            return "git batch resume --plan PLAN"  # the bounds on usage stand in the plan
        return f"git batch resume --max-tasks +{max(counts(state)[TaskStatus.PENDING], 1)}"
    if stop is StopReason.DEADLINE and isinstance(budget.deadline, datetime):
        return "git batch resume --deadline 8h"
    return "git batch resume"
