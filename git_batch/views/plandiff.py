"""How a changed plan differs from the one in force, as a person reads it before they confirm."""

from __future__ import annotations

from datetime import datetime

from git_batch.core.duration import write_duration
from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState, Budget
from git_batch.core.plandiff import Kind, PlanDiff
from git_batch.core.standing import TaskStatus
from git_batch.views.common import state_word
from git_batch.views.escape import one_line

NAMED = 20
"""Tasks that are named where the whole list would hide what else is said."""

_DURATIONS = frozenset({"deadline", "max_wait"})

_SIGNS = {Kind.ADDED: "+", Kind.REMOVED: "-", Kind.CHANGED: "~", Kind.MOVED: ">"}


def plandiff_text(
    diff: PlanDiff, old: tuple[str, Budget], new: tuple[str, Budget], state: BatchState
) -> str:
    """Show what differs, one line for each task.

    Args:
        old: digest and bounds in force; `new` likewise those that are proposed.
    """
    head = ["the plan changes:", f"  from {one_line(old[0])}", f"  to   {one_line(new[0])}"]
    if old[0] == new[0]:
        head = [f"what runs is the same, {one_line(new[0])}; what differs:"]
    lines = list(head)
    lines += [f"  ~ the plan's {key}" for key in diff.keys]
    lines += [f"  ~ the budget's {line}" for line in _bounds(old[1], new[1])]
    for change in diff.changes:
        said = f" ({', '.join(change.fields)})" if change.fields else ""
        lines.append(
            f"  {_SIGNS[change.kind]} {one_line(change.task)}: {change.kind}{said}"
            f"{_stays(change.task, change.kind, state)}"
        )
    if lines == head:
        lines.append("  nothing differs")
    return "\n".join(lines) + "\n"


def summary(diff: PlanDiff) -> str:
    """Name what differs, in one line."""
    shown = [f"'{one_line(c.task)}' {c.kind}" for c in diff.changes[:NAMED]]
    shown += [f"the plan's {key}" for key in diff.keys]
    more = len(diff.changes) - NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _stays(task: TaskId, kind: Kind, state: BatchState) -> str:
    """Say what a change alone does not do: a person's decision is one of its own."""
    record = state.tasks.get(task)
    if kind is not Kind.CHANGED or record is None:
        return ""
    if record.status not in (TaskStatus.NEEDS_HUMAN, TaskStatus.DROPPED):
        return ""
    return f"; still {state_word(record.status)} until 'git batch retry {one_line(task)}'"


def _bounds(old: Budget, new: Budget) -> list[str]:
    names = ("max_tasks", "deadline", "qa_failure_limit", "max_wait", "max_usd", "max_tokens")
    pairs = ((name, getattr(old, name), getattr(new, name)) for name in names)
    return [f"{name}: {_value(name, a)} -> {_value(name, b)}" for name, a, b in pairs if a != b]


def _value(name: str, value: object) -> str:
    """Write a bound as a plan does."""
    if isinstance(value, float) and name in _DURATIONS:
        return write_duration(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return "none" if value is None else one_line(str(value))
