"""Which task is next, which are skipped: set arithmetic over indexes in plan order.

The sets are ints (see `model.Agenda`). Moving one task costs its own dependents, or, when it is
parked, the part of its closure that is not skipped yet; so a whole run is linear in the plan's
edges. Taking a park back recomputes the skipped set: that is a person's decision and rare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from git_batch.core.graph import Graph
from git_batch.core.ids import TaskId
from git_batch.core.model import Agenda, BatchState, TaskRecord
from git_batch.core.standing import Phase, TaskStatus
from git_batch.core.values import replace


def bits(indexes: Iterator[int]) -> int:
    """Make a set of indexes."""
    result = 0
    for i in indexes:
        result |= 1 << i
    return result


def members(mask: int) -> Iterator[int]:
    """List a set of indexes, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def first(mask: int) -> int | None:
    """Give the lowest index of a set, None for the empty one."""
    return (mask & -mask).bit_length() - 1 if mask else None


def _settled_set(status: TaskStatus) -> str | None:
    return {
        TaskStatus.COMMITTED: "done",
        TaskStatus.UNCHANGED: "done",
        TaskStatus.NEEDS_HUMAN: "parked",
        TaskStatus.IN_REVIEW: "review",
        TaskStatus.DROPPED: "dropped",
    }.get(status)


def build(graph: Graph, tasks: Mapping[TaskId, TaskRecord], in_flight: TaskId | None) -> Agenda:
    """Derive the agenda of a plan from what the record holds of its tasks."""
    sets: dict[str, int] = {"done": 0, "parked": 0, "review": 0, "dropped": 0}
    accepted = unchanged = 0
    replays: list[tuple[int, int]] = []
    for task, record in tasks.items():
        if record.status is TaskStatus.PENDING and record.replays and task != in_flight:
            replays.append((record.turn, graph.index[task]))
        name = _settled_set(record.status)
        if name is None or task == in_flight:
            continue
        sets[name] |= 1 << graph.index[task]
        if name == "review" and record.apply_only:
            accepted |= 1 << graph.index[task]
        if record.status is TaskStatus.UNCHANGED:
            unchanged |= 1 << graph.index[task]
    size = len(graph.index)
    taken = sets["done"] | sets["parked"] | sets["review"] | sets["dropped"]
    if in_flight is not None:
        taken |= 1 << graph.index[in_flight]
    ready = bits(i for i in range(size) if not taken >> i & 1 and satisfied(graph, i, sets["done"]))
    agenda = Agenda(
        size=size,
        unchanged=unchanged,
        accepted=accepted,
        ready=ready,
        replays=tuple(i for _, i in sorted(replays)),
        **sets,
    )
    return replace(agenda, skipped=_skipped(graph, agenda, in_flight))


def place(
    graph: Graph, agenda: Agenda, task: TaskId, status: TaskStatus, *, accepted: bool = False
) -> Agenda:
    """Move one task to where `status` puts it, and its dependents with it."""
    i = graph.index[task]
    bit = 1 << i
    had_blocked = bool((agenda.parked | agenda.dropped) & bit)
    clean = replace(
        agenda,
        done=agenda.done & ~bit,
        unchanged=agenda.unchanged & ~bit,
        parked=agenda.parked & ~bit,
        review=agenda.review & ~bit,
        accepted=agenda.accepted & ~bit,
        dropped=agenda.dropped & ~bit,
        ready=agenda.ready & ~bit,
        skipped=agenda.skipped & ~bit,
        replays=tuple(r for r in agenda.replays if r != i),
    )
    name = _settled_set(status)
    if name is not None:
        clean = replace(clean, **{name: getattr(clean, name) | bit})
    if status is TaskStatus.UNCHANGED:
        clean = replace(clean, unchanged=clean.unchanged | bit)
    if accepted:
        clean = replace(clean, accepted=clean.accepted | bit)
    if status in (TaskStatus.COMMITTED, TaskStatus.UNCHANGED):
        clean = _release(graph, clean, i)
    elif status is TaskStatus.PENDING and satisfied(graph, i, clean.done):
        clean = replace(clean, ready=clean.ready | bit)
    if status in (TaskStatus.NEEDS_HUMAN, TaskStatus.DROPPED):
        return _block(graph, clean, i)
    if had_blocked:
        flight = task if status is TaskStatus.ENROLLED else None
        return replace(clean, skipped=_skipped(graph, clean, flight))
    return clean


def following(graph: Graph, agenda: Agenda) -> int | None:
    """Give the task that comes next when none is in flight; None if nothing can go on.

    First what stood on a former base, in the order it had there: the rest came after it. Then work
    that was accepted, as far as what it needs has not been undone since; then the plan's order.
    """
    replay = next((i for i in agenda.replays if agenda.ready >> i & 1), None)
    if replay is not None:
        return replay
    waiting = members(agenda.accepted)
    accepted = next((i for i in waiting if satisfied(graph, i, agenda.done)), None)
    return first(agenda.ready) if accepted is None else accepted


def satisfied(graph: Graph, i: int, done: int) -> bool:
    """Tell whether everything that a task needs is done."""
    return all(done >> d & 1 for d in graph.dependencies[i])


def holds_up(graph: Graph, agenda: Agenda, i: int) -> bool:
    """Tell whether a skipped task needs this one directly."""
    return any(agenda.skipped >> d & 1 for d in graph.dependents[i])


def is_stuck(graph: Graph, state: BatchState, i: int) -> bool:
    """Tell whether nothing can go on as it stands, and a skipped task needs this one directly."""
    goes_on = state.in_flight is not None or following(graph, state.agenda) is not None
    return not goes_on and holds_up(graph, state.agenda, i)


def _taken(agenda: Agenda) -> int:
    """Give the tasks that nothing before them can hold up any more, the one in flight aside."""
    return agenda.done | agenda.parked | agenda.review | agenda.dropped


def _release(graph: Graph, agenda: Agenda, i: int) -> Agenda:
    taken = _taken(agenda)
    freed = bits(
        d for d in graph.dependents[i] if not taken >> d & 1 and satisfied(graph, d, agenda.done)
    )
    return replace(agenda, ready=agenda.ready | freed)


def _block(graph: Graph, agenda: Agenda, i: int, flight: int = 0) -> Agenda:
    """Add what is behind `i` to the skipped, walking only what is not skipped yet."""
    taken, skipped, stack = _taken(agenda) | flight, agenda.skipped, [i]
    while stack:
        for d in graph.dependents[stack.pop()]:
            if not (skipped | taken) >> d & 1:
                skipped |= 1 << d
                stack.append(d)
    return replace(agenda, skipped=skipped, ready=agenda.ready & ~skipped)


def _skipped(graph: Graph, agenda: Agenda, in_flight: TaskId | None) -> int:
    flight = 0 if in_flight is None else 1 << graph.index[in_flight]
    agenda = replace(agenda, skipped=0)
    for i in members(agenda.parked | agenda.dropped):
        agenda = _block(graph, agenda, i, flight)
    return agenda.skipped


def counts(state: BatchState) -> dict[TaskStatus, int]:
    """Count the tasks per state; the sum is always the number of tasks."""
    a = state.agenda
    flight = state.in_flight
    settled = flight is not None and flight.phase is Phase.SETTLED
    result = {
        TaskStatus.PENDING: 0,
        TaskStatus.ENROLLED: int(flight is not None and not settled),
        TaskStatus.SETTLED: int(settled),
        TaskStatus.COMMITTED: (a.done & ~a.unchanged).bit_count(),
        TaskStatus.UNCHANGED: a.unchanged.bit_count(),
        TaskStatus.IN_REVIEW: a.review.bit_count(),
        TaskStatus.NEEDS_HUMAN: a.parked.bit_count(),
        TaskStatus.SKIPPED_BLOCKED: a.skipped.bit_count(),
        TaskStatus.DROPPED: a.dropped.bit_count(),
    }
    result[TaskStatus.PENDING] = a.size - sum(result.values())
    return result
