"""Who waits for whom."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from git_batch.core.graph import CycleError, DuplicateTaskError, Graph, GraphError, UnknownTaskError
from git_batch.core.ids import TaskId
from git_batch.core.model import Plan, Task


def task(name: str, *needed: str) -> Task:
    ids = tuple(TaskId(other) for other in needed)
    return Task(id=TaskId(name), title=name, scope=(), run="true", blocked_by=ids)


def plan(*tasks: Task) -> Plan:
    return Plan(slug="x", title="x", tasks=tasks)


FIVE = plan(task("a"), task("b", "a"), task("c", "b"), task("d"), task("e", "d", "b"))


def test_places_edges_and_closures() -> None:
    graph = Graph(FIVE)
    assert graph.index == {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}
    assert graph.dependencies == ((), (0,), (1,), (), (1, 3))
    assert graph.dependents == ((1,), (2, 4), (), (4,), ())
    assert graph.closure(0) == {1, 2, 4}
    assert graph.closure(3) == {4}
    assert graph.closure(2) == set()


def test_a_dependency_may_come_later_in_the_plan_and_be_named_twice() -> None:
    graph = Graph(plan(task("a", "b", "b"), task("b")))
    assert graph.dependencies == ((1,), ())
    assert graph.dependents == ((), (0,))


@pytest.mark.parametrize(
    ("tasks", "kind", "path"),
    [
        ([task("a", "a")], CycleError, ["a", "a"]),
        ([task("a", "x")], UnknownTaskError, ["a", "x"]),
        ([task("a"), task("a")], DuplicateTaskError, ["a", "a"]),
        ([task("A"), task("a")], DuplicateTaskError, ["A", "a"]),
    ],
)
def test_what_can_not_be_put_in_order(
    tasks: list[Task], kind: type[GraphError], path: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        Graph(plan(*tasks))
    assert list(caught.value.path) == path


def test_a_cycle_is_told_from_task_to_what_blocks_it() -> None:
    tasks = [task("z"), task("x", "y"), task("y", "w", "z"), task("w", "x")]
    with pytest.raises(CycleError) as caught:
        Graph(plan(*tasks))
    path = caught.value.path
    blocked_by = {each.id: each.blocked_by for each in tasks}
    assert path[0] == path[-1]
    assert len(path) == 4
    assert all(after in blocked_by[before] for before, after in pairwise(path))
    assert " -> ".join(path) in str(caught.value)


def test_ten_thousand_tasks_in_a_row() -> None:
    tasks = [task("t0"), *(task(f"t{n}", f"t{n - 1}") for n in range(1, 10_000))]
    began = time.perf_counter()
    graph = Graph(plan(*tasks))
    assert len(graph.closure(0)) == 9_999
    assert time.perf_counter() - began < 1
