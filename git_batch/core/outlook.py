"""What becomes of each task if a batch goes on as it stands and all goes well.

Whoever confirms a batch consents to what will run; so that is told apart from what only has its
work put on the branch, from what waits for a person, and from what is over. Found by going the way
that the run will go (`agenda.following`), so the order is the order in which tasks come.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from git_batch.core import agenda as agendas
from git_batch.core.graph import Graph
from git_batch.core.ids import TaskId
from git_batch.core.model import Agenda, InFlight, Plan, TaskRecord
from git_batch.core.standing import Phase, TaskStatus


class Outlook(Struct, frozen=True):
    """The tasks of a plan by their places, each in one of the groups.

    Attributes:
        runs: their commands will run, in this order.
        applied: their work is there (to be replayed, accepted, adopted): it is checked and
            committed, in this order, and their commands do not run.
        waits: nothing happens to them before a person decides, and where each stands; one that
            stands as pending waits for the review of another.
        dropped: a person took them out, or back.
        done: committed, or nothing was to be changed.
    """

    runs: tuple[int, ...] = ()
    applied: tuple[int, ...] = ()
    waits: Mapping[int, TaskStatus] = field(default_factory=dict)
    dropped: tuple[int, ...] = ()
    done: tuple[int, ...] = ()


def outlook(
    plan: Plan, tasks: Mapping[TaskId, TaskRecord], flight: InFlight | None = None
) -> Outlook:
    """Tell what becomes of the tasks of a plan.

    Args:
        tasks: what the record holds of them; of tasks that the plan does not have it is ignored.
    """
    graph = Graph(plan)
    known = {task: record for task, record in tasks.items() if task in graph.index}
    now = agendas.build(graph, known, flight.task if flight else None)
    order = _order(graph, now, flight)
    coming, settled = set(order), now.done | now.dropped
    applied = {i for i in order if _has_its_work(graph.ids[i], known, flight)}
    return Outlook(
        runs=tuple(i for i in order if i not in applied),
        applied=tuple(i for i in order if i in applied),
        waits={
            i: _status(now, i) for i in range(now.size) if i not in coming and not settled >> i & 1
        },
        dropped=tuple(agendas.members(now.dropped)),
        done=tuple(agendas.members(now.done)),
    )


def _order(graph: Graph, agenda: Agenda, flight: InFlight | None) -> list[int]:
    order = [graph.index[flight.task]] if flight is not None else []
    if flight is not None:
        agenda = agendas.place(graph, agenda, flight.task, TaskStatus.COMMITTED)
    while (i := agendas.following(graph, agenda)) is not None:
        order.append(i)
        agenda = agendas.place(graph, agenda, graph.ids[i], TaskStatus.COMMITTED)
    return order


def _has_its_work(
    task: TaskId, tasks: Mapping[TaskId, TaskRecord], flight: InFlight | None
) -> bool:
    if flight is not None and flight.task == task:
        return flight.apply_only or flight.phase is Phase.SETTLED
    record = tasks.get(task)
    return record is not None and record.apply_only


def _status(agenda: Agenda, i: int) -> TaskStatus:
    for mask, status in (
        (agenda.parked, TaskStatus.NEEDS_HUMAN),
        (agenda.review, TaskStatus.IN_REVIEW),
        (agenda.skipped, TaskStatus.SKIPPED_BLOCKED),
    ):
        if mask >> i & 1:
            return status
    return TaskStatus.PENDING
