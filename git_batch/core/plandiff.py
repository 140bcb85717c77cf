"""What distinguishes two plans of one batch, task by task, and what of it a batch allows.

A plan may be changed while its batch is stopped (semantics.md section 4), but not what is behind
the batch's commits: a task that is done, in flight, or waits for a verdict on its change stays as
it was confirmed. Moving a task is no change of it: what is done has no place in an order any more,
and what is in flight comes first anyway.

A task is compared field by field as it is stored; its prompt file by content and name. The bounds
(`Budget`) are no part of a plan's digest and are compared by whoever shows an authorization.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import fields

from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState, Plan, Task
from git_batch.core.standing import TaskStatus

_KEYS = {"checks": "check", "intent_name": "intent"}
"""Attributes that the plan file calls otherwise."""

_CLOSED = frozenset({TaskStatus.COMMITTED, TaskStatus.UNCHANGED, TaskStatus.IN_REVIEW})
_OF_PLAN = ("title", "fail_fast", "baseline", "notify")


class Kind(StrEnum):
    """What became of a task."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


class Change(Struct, frozen=True):
    """One task that differs; `fields` are keys of the plan file, for a changed one only."""

    task: TaskId
    kind: Kind
    fields: tuple[str, ...] = ()


class PlanDiff(Struct, frozen=True):
    """What differs; in the order of the new plan, then what is gone in that of the old one.

    Attributes:
        keys: keys of the plan itself.
    """

    changes: tuple[Change, ...]
    keys: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes or self.keys)


def compare(old: Plan, new: Plan) -> PlanDiff:
    """Find what differs between two plans."""
    before = {task.id: task for task in old.tasks}
    after = {task.id for task in new.tasks}
    moved = _moved([t.id for t in old.tasks if t.id in after], [t.id for t in new.tasks])
    changes: list[Change] = []
    for task in new.tasks:
        known = before.get(task.id)
        if known is None:
            changes.append(Change(task.id, Kind.ADDED))
        elif differing := _fields(known, task):
            changes.append(Change(task.id, Kind.CHANGED, differing))
        elif task.id in moved:
            changes.append(Change(task.id, Kind.MOVED))
    changes += [Change(task.id, Kind.REMOVED) for task in old.tasks if task.id not in after]
    keys = tuple(key for key in _OF_PLAN if getattr(old, key) != getattr(new, key))
    return PlanDiff(tuple(changes), keys)


def not_allowed(diff: PlanDiff, state: BatchState) -> tuple[Change, ...]:
    """Give those changes that a batch does not allow, because of where their task stands."""
    flight = state.in_flight.task if state.in_flight else None

    def closed(task: TaskId) -> bool:
        record = state.tasks.get(task)
        return task == flight or (record is not None and record.status in _CLOSED)

    fixed = (Kind.CHANGED, Kind.REMOVED)
    return tuple(c for c in diff.changes if c.kind in fixed and closed(c.task))


def _fields(old: Task, new: Task) -> tuple[str, ...]:
    names = (f.name for f in fields(Task) if getattr(old, f.name) != getattr(new, f.name))
    return tuple(dict.fromkeys(_KEYS.get(name, name) for name in names))


def _moved(old: list[TaskId], new: list[TaskId]) -> frozenset[TaskId]:
    """Name the fewest tasks that had to move: all but a longest run that kept its order."""
    place = {task: i for i, task in enumerate(new)}
    ends: list[int] = []  # the lowest last place of a run of each length
    last: list[TaskId] = []
    before: dict[TaskId, TaskId | None] = {}
    for task in old:
        at = bisect_left(ends, place[task])
        before[task] = last[at - 1] if at else None
        ends[at : at + 1] = [place[task]]
        last[at : at + 1] = [task]
    stays: set[TaskId] = set()
    walk = last[-1] if last else None
    while walk is not None:
        stays.add(walk)
        walk = before[walk]
    return frozenset(task for task in old if task not in stays)
