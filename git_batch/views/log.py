"""`git batch log`: every transition, one line each: when, which step, what, and who."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from git_batch.core import events as ev
from git_batch.core.ids import Oid, TaskId
from git_batch.core.naming import few_of
from git_batch.core.record import subject
from git_batch.views.common import VERSION, moment, rfc3339, short
from git_batch.views.escape import one_line

if TYPE_CHECKING:
    from git_batch.core.entries import Entry

_NAMED = 20
Entries = Sequence[tuple[Oid, "Entry"]]


def log_lines(entries: Entries, *, task: TaskId | None = None) -> str:
    """List transitions in the given order.

    Args:
        task: only those that concern it.
    """
    listed = [(oid, entry) for oid, entry in entries if concerns(entry.event, task)]
    column = max((len(str(entry.step)) for _, entry in listed), default=0)
    lines = []
    for oid, entry in listed:
        event = entry.event
        why = _why(event)
        said = subject(event) + (f": {why}" if why else "")
        lines.append(
            f"{moment(event.at)}  {entry.step:>{column}}  {short(oid)}  {one_line(said)}"
            f"  [{one_line(who(entry))}]\n"
        )
    return "".join(lines)


def log_json(entries: Entries, *, task: TaskId | None = None) -> dict[str, Any]:
    """Give transitions in the given order."""
    listed = (pair for pair in entries if concerns(pair[1].event, task))
    return {"version": VERSION, "events": [_event_json(oid, entry) for oid, entry in listed]}


def concerns(event: ev.Event, task: TaskId | None) -> bool:
    """Tell whether an event is about a task; every event is about None."""
    if isinstance(event, ev.Decided):
        return task is None or task in event.tasks
    return task is None or getattr(event, "task", None) == task


def who(entry: Entry) -> str:
    """Name the person who caused a transition, else the run that recorded it."""
    event = entry.event
    match event:
        case ev.Authorized():
            return str(event.authorization.actor)
        case ev.StopRequested() | ev.Reviewed() | ev.Decided():
            return str(event.actor)
    return entry.runner or "unknown"


def _why(event: ev.Event) -> str:
    match event:
        case ev.AttemptFailed() | ev.ChecksFailed() | ev.Parked():
            return event.failure.reason
        case ev.Interrupted() | ev.Closed():
            return event.reason
        case ev.Decided():
            return "; ".join(part for part in (_replaced(event), event.why) if part)
        case ev.Reviewed() | ev.ReviewRequested():
            return event.summary
    return ""


def _replaced(event: ev.Decided) -> str:
    """Say where a rebase went, and which commits were left for it."""
    if event.decision is not ev.Decision.REBASE:
        return ""
    pairs = list(zip(event.tasks, event.commits, strict=True))
    named = few_of([f"{task} was {short(commit)}" for task, commit in pairs], _NAMED)
    where = f"onto {short(event.head)}, before at {short(event.former)}"
    return f"{where}, {named}" if named else where


def _commits(event: ev.Event) -> dict[str, Any]:
    """Give the commits that an event names, where it put the branch, and where that was before."""
    match event:
        case ev.Committed():
            return {"commits": [event.commit], "head": event.commit, "former": None}
        case ev.Decided():
            commits = list(event.commits)
            return {"commits": commits, "head": event.head, "former": event.former}
    return {"commits": [], "head": None, "former": None}


def _event_json(oid: Oid, entry: Entry) -> dict[str, Any]:
    event = entry.event
    failure = getattr(event, "failure", None)
    task = getattr(event, "task", None)
    tasks = event.tasks if isinstance(event, ev.Decided) else (task,) if task else ()
    return {
        "oid": oid,
        "step": entry.step,
        "at": rfc3339(event.at),
        "event": ev.KINDS[type(event)],
        "tasks": list(tasks),
        "attempt": getattr(event, "attempt", None),
        "outcome": None if failure is None else failure.outcome.value,
        "subject": subject(event),
        "reason": _why(event) or None,
        "who": who(entry),
        **_commits(event),
    }
