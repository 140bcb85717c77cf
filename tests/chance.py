"""Random plans, ends, bounds and decisions, for the fake world."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from git_batch.core import events as ev
from git_batch.core.ids import TaskId
from git_batch.core.machine import Machine
from git_batch.core.model import BatchState, Budget, Plan, Task
from git_batch.core.standing import BatchStatus, OnEmpty, Outcome, TaskStatus
from tests.world import Script, World, plan, task


def random_plan(dice: random.Random, most: int = 12) -> Plan:
    """Make a plan with any dependencies that have no cycle."""
    size = dice.randint(1, most)
    order = list(range(size))
    dice.shuffle(order)  # plan order need not be an order of the dependencies
    tasks: list[Task] = []
    for place in range(size):
        before = [i for i in range(size) if order[i] < order[place]]
        needs = dice.sample(before, min(len(before), dice.choice([0, 0, 1, 1, 2, 3])))
        tasks.append(
            task(
                f"t{place}",
                *(f"t{i}" for i in sorted(needs)),
                attempts=dice.randint(1, 3),
                checks=("check",) if dice.random() < 0.8 else (),
                review=dice.choice(["none", "none", "none", "human"]),
                on_empty=dice.choice(list(OnEmpty)),
            )
        )
    return plan(*tasks, fail_fast=dice.random() < 0.2)


FAILURES = (
    Outcome.CHECK_FAILED,
    Outcome.CHECK_FAILED,
    Outcome.RUN_FAILED,
    Outcome.SCOPE_REFUSED,
    Outcome.BLOCKED,
    Outcome.UNCHANGED,
    Outcome.STOPPED,
)


def random_script(dice: random.Random, made: Plan, failing: float = 0.4) -> Script:
    """Make up how the attempts of a plan's tasks end."""
    ends: dict[str, tuple[Outcome, ...]] = {}
    for one in made.tasks:
        several: list[Outcome] = []
        while dice.random() < failing and len(several) < 4:
            several.append(dice.choice(FAILURES))
        ends[one.id] = tuple(several)
    rest = [one.id for one in made.tasks if dice.random() < 0.3]
    unfit = frozenset(name for name in rest if dice.random() < 0.5)
    return Script(ends, unfit, frozenset(rest) - unfit)


def random_budget(dice: random.Random) -> Budget:
    """Make up bounds, most of them wide."""
    return Budget(
        max_tasks=dice.choice([None, None, None, 1, 3, 8]),
        qa_failure_limit=dice.choice([1, 3, 6, 6]),
        max_wait=dice.choice([0.0, 100.0, 10_000.0]),
    )


def random_decision(dice: random.Random, world: World) -> bool:
    """Let a person do one of the things that are possible now; tell whether there was one."""
    state = world.current
    if state.status not in (BatchStatus.NEEDS_HUMAN, BatchStatus.BUDGET_STOPPED):
        return False
    choices: list[Callable[[], None]] = [world.authorize]
    if state.in_flight is None:
        choices += _about_tasks(dice, world, state)
        if dice.random() < 0.2:
            choices = [lambda: _rebase(world)]
    dice.choice(choices)()
    return True


def _rebase(world: World) -> None:
    """Move to another base, and confirm it: nothing would run without that."""
    world.rebase(world.make_base())
    world.authorize()


def _about_tasks(
    dice: random.Random, world: World, state: BatchState
) -> Iterable[Callable[[], None]]:
    of = {s: [t for t, r in state.tasks.items() if r.status is s] for s in TaskStatus}
    for name in of[TaskStatus.NEEDS_HUMAN]:
        for decision in (ev.Decision.RETRY, ev.Decision.SKIP, ev.Decision.ADOPT):
            yield lambda n=name, d=decision: world.decide(d, n)  # type: ignore[misc]
    for name in of[TaskStatus.IN_REVIEW]:
        verdict = dice.choice(list(ev.Verdict))
        yield lambda n=name, v=verdict: world.review(n, v)  # type: ignore[misc]
    for name in of[TaskStatus.DROPPED]:
        yield lambda n=name: world.decide(ev.Decision.RETRY, n)  # type: ignore[misc]
    committed = [t for t in world.machine.graph.ids if t in of[TaskStatus.COMMITTED]]
    if committed:
        undone = _with_dependents(world.machine, dice.choice(committed), set(committed))
        decision = dice.choice([ev.Decision.UNDO, ev.Decision.REDO])
        yield lambda: world.undo(decision, undone)


def _with_dependents(machine: Machine, name: TaskId, committed: set[TaskId]) -> tuple[TaskId, ...]:
    place = machine.graph.index[name]
    places = sorted({place, *machine.graph.closure(place)})
    return tuple(t for t in (machine.graph.ids[i] for i in places) if t in committed)
