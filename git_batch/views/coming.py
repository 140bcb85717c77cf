"""What becomes of each task, in words: what will run apart from what will not, and why not."""

from __future__ import annotations

from git_batch.core.model import BatchState, Budget
from git_batch.core.outlook import Outlook
from git_batch.core.standing import TaskStatus
from git_batch.views.common import state_word


def grouped(
    coming: Outlook, seen: bool, *, enough: bool = True
) -> list[tuple[str, tuple[int, ...]]]:
    """Give the tasks whose commands are shown; a decision can have each of them run.

    Args:
        enough: the budget lets all of them run.
    """
    groups = (
        (
            "will run, in this order" + ("" if enough else ", until the budget is used up"),
            coming.runs,
        ),
        ("will not run, as the work is there: it is checked and committed", coming.applied),
        ("will not run unless a person decides so", tuple(coming.waits)),
        ("will not run, taken out by a person", coming.dropped),
        ("will not run, done already", () if seen else coming.done),
    )
    return [(heading, places) for heading, places in groups if places]


def enough(budget: Budget, coming: Outlook, before: BatchState | None) -> bool:
    """Tell whether a budget lets all run that is to run; what is in flight has had its share."""
    if budget.max_tasks is None:
        return True
    used = 0 if before is None else before.enrolled - (before.in_flight is not None)
    return len(coming.runs) <= budget.max_tasks - used


def instead(coming: Outlook) -> str:
    """Say what happens if no task's command runs."""
    if coming.applied:
        return " but checks: what comes has its work already"
    return ": everything that is left waits for a person" if coming.waits else ""


def stands(status: TaskStatus) -> str:
    """Say where a task stands that waits for a person."""
    if status is TaskStatus.PENDING:
        return "pending, behind a review"
    return state_word(status)
