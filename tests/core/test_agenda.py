"""Sets of tasks: what is ready, what is skipped, and because of whom."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core import agenda as agendas
from git_batch.core.graph import Graph
from git_batch.core.ids import TaskId
from git_batch.core.model import Agenda, TaskRecord
from git_batch.core.standing import TaskStatus
from tests.chance import random_plan
from tests.tries import tries
from tests.world import plan, task

CHAIN = Graph(plan(task("a"), task("b", "a"), task("c", "b"), task("d")))
DONE = (TaskStatus.COMMITTED, TaskStatus.UNCHANGED)
PLACES = (*DONE, TaskStatus.NEEDS_HUMAN, TaskStatus.DROPPED, TaskStatus.IN_REVIEW)


def names(graph: Graph, mask: int) -> list[str]:
    return [graph.ids[i] for i in agendas.members(mask)]


def records(**of: TaskStatus) -> dict[TaskId, TaskRecord]:
    return {TaskId(name): TaskRecord(status, None) for name, status in of.items()}


def begin(graph: Graph) -> Agenda:
    return agendas.build(graph, {}, None)


@given(st.sets(st.integers(0, 300)))
def test_a_set_of_indexes_is_listed_from_its_lowest_one(indexes: set[int]) -> None:
    mask = agendas.bits(iter(indexes))
    assert list(agendas.members(mask)) == sorted(indexes)
    assert agendas.first(mask) == min(indexes, default=None)


def test_at_first_what_needs_nothing_is_ready() -> None:
    assert names(CHAIN, begin(CHAIN).ready) == ["a", "d"]
    assert begin(CHAIN).size == 4


@pytest.mark.parametrize("status", DONE)
def test_a_done_task_makes_its_dependents_ready(status: TaskStatus) -> None:
    moved = agendas.place(CHAIN, begin(CHAIN), TaskId("a"), status)
    assert names(CHAIN, moved.done) == ["a"]
    assert names(CHAIN, moved.ready) == ["b", "d"]
    assert bool(moved.unchanged) == (status is TaskStatus.UNCHANGED)


@pytest.mark.parametrize("status", [TaskStatus.NEEDS_HUMAN, TaskStatus.DROPPED])
def test_what_is_behind_a_parked_or_dropped_task_is_skipped_also_through_skipped_ones(
    status: TaskStatus,
) -> None:
    moved = agendas.place(CHAIN, begin(CHAIN), TaskId("a"), status)
    assert names(CHAIN, moved.skipped) == ["b", "c"]
    assert names(CHAIN, moved.ready) == ["d"]


def test_what_is_behind_a_review_waits_and_is_not_skipped() -> None:
    moved = agendas.place(CHAIN, begin(CHAIN), TaskId("a"), TaskStatus.IN_REVIEW)
    assert names(CHAIN, moved.review) == ["a"]
    assert not moved.skipped
    assert names(CHAIN, moved.ready) == ["d"]


def test_a_task_that_goes_back_to_pending_takes_its_dependents_with_it() -> None:
    parked = agendas.place(CHAIN, begin(CHAIN), TaskId("a"), TaskStatus.NEEDS_HUMAN)
    assert agendas.place(CHAIN, parked, TaskId("a"), TaskStatus.PENDING) == begin(CHAIN)


def test_what_is_skipped_because_of_two_tasks_stays_so_until_both_are_back() -> None:
    graph = Graph(plan(task("a"), task("b"), task("c", "a", "b")))
    both = begin(graph)
    for name in ("a", "b"):
        both = agendas.place(graph, both, TaskId(name), TaskStatus.NEEDS_HUMAN)
    assert names(graph, both.skipped) == ["c"]
    one = agendas.place(graph, both, TaskId("a"), TaskStatus.PENDING)
    assert names(graph, one.skipped) == ["c"]
    none = agendas.place(graph, one, TaskId("b"), TaskStatus.PENDING)
    assert not none.skipped


def test_undoing_a_task_takes_readiness_from_what_needs_it() -> None:
    done = agendas.place(CHAIN, begin(CHAIN), TaskId("a"), TaskStatus.COMMITTED)
    assert names(CHAIN, done.ready) == ["b", "d"]
    assert agendas.build(CHAIN, records(a=TaskStatus.PENDING), None) == begin(CHAIN)
    dropped = agendas.build(CHAIN, records(a=TaskStatus.DROPPED), None)
    assert names(CHAIN, dropped.skipped) == ["b", "c"]


def test_the_task_in_flight_is_in_no_set_and_holds_nobody_up() -> None:
    graph = Graph(plan(task("a"), task("b", "a"), task("c", "b")))
    state = agendas.build(graph, records(a=TaskStatus.NEEDS_HUMAN), TaskId("b"))
    assert not (state.ready | state.skipped)
    after = agendas.place(graph, state, TaskId("b"), TaskStatus.COMMITTED)
    assert after == agendas.build(
        graph, records(a=TaskStatus.NEEDS_HUMAN, b=TaskStatus.COMMITTED), None
    )


@tries(40)
@given(st.integers(0, 2**32))
def test_placing_tasks_one_by_one_gives_what_building_at_once_gives(seed: int) -> None:
    dice = random.Random(seed)
    graph = Graph(random_plan(dice))
    held: dict[TaskId, TaskRecord] = {}
    state = begin(graph)
    for _ in range(15):
        ready = [TaskId(n) for n in names(graph, state.ready)]
        blocked = [t for t, r in held.items() if r.status in PLACES[2:]]
        if blocked and dice.random() < 0.4:
            name, status = dice.choice(blocked), TaskStatus.PENDING
        elif ready:
            name, status = dice.choice(ready), dice.choice(PLACES)
        else:
            continue
        held[name] = TaskRecord(status, None)
        state = agendas.place(graph, state, name, status)
        assert state == agendas.build(graph, held, None)
    assert held
