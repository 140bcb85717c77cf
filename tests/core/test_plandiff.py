"""What distinguishes two plans, and what a batch allows of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from git_batch.core import events as ev
from git_batch.core.ids import TaskId
from git_batch.core.model import Plan, Task
from git_batch.core.plandiff import Change, Kind, compare, not_allowed
from git_batch.core.standing import OnEmpty, Outcome
from git_batch.core.values import replace
from tests.world import Script, World, plan, task

OTHER: dict[str, object] = {
    "title": "Another",
    "scope": ("other/**",),
    "run": ("other",),
    "blocked_by": (TaskId("b"),),
    "checks": (),
    "agent": "robot",
    "model": "small",
    "stdin": "prompt",
    "prompt": "Do it.",
    "intent": "0" * 64,
    "intent_name": "other.md",
    "protect": ("x",),
    "review": "human",
    "on_empty": OnEmpty.ACCEPT,
    "timeout": 1.0,
    "idle_timeout": 1.0,
    "attempts": 9,
    "message": "More",
    "env": (("A", "b"),),
    "variables": (("a", "b"),),
    "not_now": ("later",),
}


def kinds(old: Plan, new: Plan) -> list[tuple[str, str]]:
    return [(c.task, c.kind.value) for c in compare(old, new).changes]


def test_the_same_plan_does_not_differ() -> None:
    assert not compare(plan(task("a"), task("b", "a")), plan(task("a"), task("b", "a")))


@pytest.mark.parametrize("name", [f.name for f in fields(Task) if f.name != "id"])
def test_every_field_of_a_task_is_compared_and_called_as_the_plan_calls_it(name: str) -> None:
    old = plan(task("b"), task("a"))
    new = plan(task("b"), replace(task("a"), **{name: OTHER[name]}))  # type: ignore[arg-type]
    key = {"checks": "check", "intent_name": "intent"}.get(name, name)
    assert compare(old, new).changes == (Change(TaskId("a"), Kind.CHANGED, (key,)),)


@pytest.mark.parametrize("key", ["title", "fail_fast", "baseline", "notify"])
def test_keys_of_the_plan_itself_are_compared(key: str) -> None:
    old = plan(task("a"))
    other = {"title": "Another", "fail_fast": True, "baseline": True, "notify": ("x",)}
    diff = compare(old, replace(old, **{key: other[key]}))  # type: ignore[arg-type]
    assert diff
    assert (diff.keys, diff.changes) == ((key,), ())


def test_added_removed_and_changed_tasks_are_told_apart() -> None:
    old = plan(task("a"), task("b"), task("c"))
    new = plan(task("a"), task("c", checks=()), task("d"))
    assert kinds(old, new) == [("c", "changed"), ("d", "added"), ("b", "removed")]


def test_the_fewest_tasks_count_as_moved() -> None:
    old = plan(*map(task, "abcdef"))
    assert kinds(old, plan(*map(task, "fabcde"))) == [("f", "moved")]
    assert kinds(old, plan(*map(task, "bacdfe"))) == [("a", "moved"), ("e", "moved")] or kinds(
        old, plan(*map(task, "bacdfe"))
    ) == [("b", "moved"), ("f", "moved")]


@given(st.permutations("abcdefgh"))
def test_what_did_not_move_keeps_its_order_and_an_order_that_differs_is_noticed(
    order: list[str],
) -> None:
    old, new = plan(*map(task, "abcdefgh")), plan(*map(task, order))
    moved = {name for name, _ in kinds(old, new)}
    stayed = [name for name in order if name not in moved]
    assert stayed == sorted(stayed)
    assert bool(moved) == (order != sorted(order))


def world() -> World:
    """A batch with a task in every state that a stopped one can have."""
    made = plan(
        task("done"),
        task("same", on_empty=OnEmpty.ACCEPT),
        task("review", review="human"),
        task("parked"),
        task("behind", "parked"),
        task("out"),
    )
    ends = {"same": (Outcome.UNCHANGED,), "parked": (Outcome.KILLED,), "out": (Outcome.KILLED,)}
    made_world = World(made, Script(ends))
    made_world.run()
    made_world.decide(ev.Decision.SKIP, "out")
    return made_world


@pytest.mark.parametrize("name", ["done", "same", "review"])
def test_what_is_done_or_under_review_may_neither_change_nor_go(name: str) -> None:
    w = world()
    old = w.machine.plan
    changed = [replace(t, title="Another") if t.id == name else t for t in old.tasks]
    gone = [t for t in old.tasks if t.id != name]
    for tasks, kind in ((changed, Kind.CHANGED), (gone, Kind.REMOVED)):
        refused = not_allowed(compare(old, replace(old, tasks=tuple(tasks))), w.current)
        assert [(c.task, c.kind) for c in refused] == [(name, kind)]


def test_what_is_in_flight_may_neither_change_nor_go() -> None:
    w = World(plan(task("a"), task("b")))
    w.start()
    effect = w.machine.decide(w.current)
    w.append(w.perform(effect))
    old = w.machine.plan
    for tasks in ((task("a", checks=()), task("b")), (task("b"),)):
        assert [c.task for c in not_allowed(compare(old, plan(*tasks)), w.current)] == ["a"]


def test_all_else_may_change_be_added_go_or_move() -> None:
    w = world()
    old = w.machine.plan
    by_name = {t.id: t for t in old.tasks}
    new = plan(
        task("new"),
        replace(by_name[TaskId("parked")], title="Another"),
        *(by_name[TaskId(name)] for name in ("review", "same", "done")),
        task("newer", "done"),
    )
    diff = compare(old, new)
    assert {c.kind for c in diff.changes} == set(Kind)
    assert not_allowed(diff, w.current) == ()
