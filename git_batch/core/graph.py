"""Who waits for whom, built once from a plan.

Theory. Tasks are numbered by their place in the plan, since every question that `decide` asks is
about order; ids are looked up once. An edge goes from a task to each task that it is blocked by.
The graph of a plan is acyclic and complete (every id that is named exists) or it is not built:
the author's plan file and a plan read back from a record both go through here, so neither can
hold a cycle or a dependency that counts as satisfied because nobody knows it.
"""

from __future__ import annotations

import graphlib
from collections.abc import Sequence

from git_batch.core.ids import TaskId
from git_batch.core.model import Plan, Task


class GraphError(ValueError):
    """Tasks that can't be put in order.

    Attributes:
        path: the ids that say why: a cycle, each blocked by the next and the first one again at
            the end; or a task and the id it names in vain; or two ids that are the same.
    """

    def __init__(self, message: str, path: Sequence[TaskId]) -> None:
        super().__init__(message)
        self.path = tuple(path)


class DuplicateTaskError(GraphError):
    """Two tasks have ids that are equal when case is folded."""


class UnknownTaskError(GraphError):
    """A task is blocked by an id that no task has."""


class CycleError(GraphError):
    """Tasks wait for each other, or one for itself."""


class Graph:
    """The dependencies of a plan, by the tasks' places in it.

    Attributes:
        ids: the ids in the plan's order; `index` is the place of each.
        dependencies: for each task, the tasks it is blocked by, in the plan's order.
        dependents: for each task, the tasks that are blocked by it, in the plan's order.
    """

    __slots__ = ("dependencies", "dependents", "ids", "index")

    def __init__(self, plan: Plan | Sequence[Task]) -> None:
        """Build the graph in time linear in tasks and dependencies.

        Raises:
            GraphError: a duplicate or unknown id, or a cycle.
        """
        tasks = plan.tasks if isinstance(plan, Plan) else plan
        self.index = _index(tasks)
        self.ids = tuple(self.index)
        self.dependencies = tuple(self._places(task) for task in tasks)
        waiting: list[list[int]] = [[] for _ in tasks]
        for place, needed in enumerate(self.dependencies):
            for dependency in needed:
                waiting[dependency].append(place)
        self.dependents = tuple(tuple(places) for places in waiting)
        _refuse_cycles(tasks, self.dependencies)

    def closure(self, place: int) -> set[int]:
        """Give every task that waits for this one, directly or through others."""
        found: set[int] = set()
        open_ends = [place]
        while open_ends:
            for dependent in self.dependents[open_ends.pop()]:
                if dependent not in found:
                    found.add(dependent)
                    open_ends.append(dependent)
        return found

    def _places(self, task: Task) -> tuple[int, ...]:
        places = set()
        for needed in task.blocked_by:
            if needed not in self.index:
                message = f"task '{task.id}' is blocked by '{needed}', which does not exist"
                raise UnknownTaskError(message, (task.id, needed))
            places.add(self.index[needed])
        return tuple(sorted(places))


def _index(tasks: Sequence[Task]) -> dict[TaskId, int]:
    folded: dict[str, int] = {}
    for place, task in enumerate(tasks):
        first = folded.setdefault(task.id.casefold(), place)
        if first != place:
            path = (tasks[first].id, task.id)
            raise DuplicateTaskError(f"two tasks have the id '{task.id}'", path)
    return {task.id: place for place, task in enumerate(tasks)}


def _refuse_cycles(tasks: Sequence[Task], dependencies: Sequence[tuple[int, ...]]) -> None:
    sorter = graphlib.TopologicalSorter(dict(enumerate(dependencies)))
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        # graphlib names the cycle from dependency to dependent; people read it the other way.
        path = [tasks[place].id for place in reversed(error.args[1])]
        raise CycleError(f"tasks wait for each other: {' -> '.join(path)}", path) from None
