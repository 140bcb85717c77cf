"""Random plans in random worlds, cut off anywhere: what holds for every one of them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from git_batch.core import agenda as agendas
from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.agenda import counts
from git_batch.core.attempt import DEATHS, Failure
from git_batch.core.decisions import replaying
from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState, Budget
from git_batch.core.standing import FREE, BatchStatus, Outcome, TaskStatus
from git_batch.core.values import replace
from tests.chance import random_budget, random_decision, random_plan, random_script
from tests.tries import tries
from tests.world import (
    MOST_STEPS,
    PERSON,
    Crashed,
    World,
    essence,
    oid,
)

seeds = st.integers(0, 2**32)


def make(seed: int, most: int = 12) -> tuple[random.Random, World]:
    dice = random.Random(seed)
    made = random_plan(dice, most)
    script = random_script(dice, made)
    return dice, World(made, script, budget=random_budget(dice))


def person_goes_on(dice: random.Random, world: World, rounds: int = 8) -> BatchState:
    """Let a person decide something at each stop, a few times."""
    for _ in range(rounds):
        if not random_decision(dice, world):
            break
        world.resume()
    return world.current


def dependencies_of(world: World, name: TaskId) -> set[TaskId]:
    graph = world.machine.graph
    return {graph.ids[i] for i in graph.dependencies[graph.index[name]]}


@tries(40)
@given(seeds)
def test_every_run_ends_and_the_totals_always_add_up(seed: int) -> None:
    dice, world = make(seed)
    size = len(world.machine.plan.tasks)

    def add_up(state: BatchState) -> None:
        totals = counts(state)
        assert sum(totals.values()) == size
        assert min(totals.values()) >= 0

    world.watch = add_up
    world.run()
    state = person_goes_on(dice, world)
    assert state.status is not BatchStatus.RUNNING
    assert len(world.log) < MOST_STEPS
    assert (state.reason, bool(state.next_action)) != ("", False)


@tries(40)
@given(seeds)
def test_the_agenda_kept_step_by_step_is_the_one_built_from_scratch(seed: int) -> None:
    dice, world = make(seed)

    def same(state: BatchState) -> None:
        flight = state.in_flight.task if state.in_flight else None
        assert state.agenda == agendas.build(world.machine.graph, state.tasks, flight)

    world.watch = same
    world.run()
    person_goes_on(dice, world)
    assert world.log


@tries(40)
@given(seeds)
def test_a_task_runs_only_when_all_it_needs_is_done(seed: int) -> None:
    dice, world = make(seed)
    done = {TaskStatus.COMMITTED, TaskStatus.UNCHANGED}

    def look(_: World, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Enroll | fx.RunTask):
            name = effect.task if isinstance(effect, fx.Enroll) else effect.flight.task
            tasks = world.current.tasks
            needed = dependencies_of(world, name)
            assert all(n in tasks and tasks[n].status in done for n in needed)

    world.disturb = look
    world.run()
    person_goes_on(dice, world)
    assert world.log


@tries(40)
@given(seeds)
def test_a_task_is_never_tried_more_often_than_its_plan_allows_for_each_enrollment(
    seed: int,
) -> None:
    dice, world = make(seed)

    def look(state: BatchState) -> None:
        flight = state.in_flight
        if flight is not None:
            counted = sum(a.outcome not in FREE for a in flight.history)
            assert flight.used <= counted
            assert flight.used < world.machine.task(flight.task).attempts

    world.watch = look
    for_one = world.run()
    for name, record in for_one.tasks.items():  # nothing was enrolled twice yet
        tries = [a for a in record.history if a.outcome not in FREE]
        assert len(tries) <= world.machine.task(name).attempts
    person_goes_on(dice, world)


@tries(40)
@given(seeds)
def test_the_task_that_is_enrolled_is_always_the_first_one_that_could_be(seed: int) -> None:
    dice, world = make(seed)
    done = {TaskStatus.COMMITTED, TaskStatus.UNCHANGED}

    def could(name: TaskId) -> bool:
        tasks = world.current.tasks
        if name in tasks and tasks[name].status is not TaskStatus.PENDING:
            return False
        needed = dependencies_of(world, name)
        return all(n in tasks and tasks[n].status in done for n in needed)

    def look(_: World, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Enroll):
            tasks = world.current.tasks
            waits = [t for t in tasks if replaying(world.current, t)]
            order = sorted(waits, key=lambda t: tasks[t].turn) + list(world.machine.graph.ids)
            assert effect.task == next(t for t in order if could(t))

    world.disturb = look
    world.run()
    person_goes_on(dice, world)
    assert world.log


def crashed_everywhere(seed: int, *, rerun: int) -> None:
    """Cut a run after each of its events, `rerun` times in all, and compare the ends."""
    dice = random.Random(seed)
    made = random_plan(dice, 5)
    script = random_script(dice, made, 0.5)
    budget = Budget(
        max_tasks=dice.choice([None, 2]), qa_failure_limit=dice.choice([2, 6]), max_wait=1e6
    )
    calm = World(made, script, budget=budget)
    expected = essence(calm.run())
    for cut in range(2, len(calm.log) + 1):
        world = World(made, script, budget=budget)
        for times in range(rerun):
            world.crash_after = cut + 2 * times
            try:
                world.start() if world.state is None else world.resume()
                world.drive()
            except Crashed:
                world.crash()
            if world.state is not None and world.state.status is not BatchStatus.RUNNING:
                break
        world.crash_after = None
        if world.current.status is BatchStatus.RUNNING:
            world.resume()
        assert essence(world.current) == expected, f"cut after {cut} events"
        assert one_commit_each(world)


@tries(80)
@given(seeds)
def test_the_state_of_a_run_is_the_replay_of_its_events_whoever_asks_it_to_stop(seed: int) -> None:
    """Also of one that goes on after another had died with a wish to stop that it knew of."""
    dice, world = make(seed)

    def same(state: BatchState) -> None:
        replayed = world.machine.replay(world.log)
        assert replayed is not None
        assert state == replace(replayed, stale=state.stale)

    def ask(_: World, __: fx.Effect) -> None:
        running = world.log and world.machine.replay(world.log)
        if running and running.status is BatchStatus.RUNNING and dice.random() < 0.15:
            world.append(ev.StopRequested(world.now(), PERSON))

    world.watch, world.disturb = same, ask
    for _ in range(12):
        world.crash_after = len(world.log) + dice.randint(3, 12)
        try:
            world.start() if world.state is None else world.take_up()
            world.drive()
            random_decision(dice, world)
        except Crashed:
            world.crash()
            if world.state is None:
                break


def one_commit_each(world: World) -> bool:
    """Tell whether no task was committed twice and every commit is in the record."""
    names = [name for name, _ in world.commits.values()]
    recorded = {r.commit for r in world.current.tasks.values() if r.commit}
    return len(set(names)) == len(names) and recorded == set(world.commits)


@tries(20)
@given(seeds)
def test_a_run_cut_after_any_event_comes_to_the_same_end_with_each_task_committed_once(
    seed: int,
) -> None:
    crashed_everywhere(seed, rerun=1)


@tries(8)
@given(seeds)
def test_a_run_that_is_cut_again_while_it_recovers_comes_to_the_same_end(seed: int) -> None:
    crashed_everywhere(seed, rerun=DEATHS - 1)  # once more, and the task is parked


@tries(40)
@given(seeds)
def test_interruptions_use_up_no_attempt_and_change_no_outcome(seed: int) -> None:
    dice = random.Random(seed)
    made = random_plan(dice, 6)
    script = random_script(dice, made)
    budget = Budget(max_wait=1e6)
    expected = essence(World(made, script, budget=budget).run())
    world = World(made, script, budget=budget)
    left = 20

    def interrupt(_: World, effect: fx.Effect) -> ev.Event | None:
        nonlocal left
        if left and isinstance(effect, fx.RunTask | fx.RunChecks) and dice.random() < 0.3:
            left -= 1
            flight, failure = effect.flight, Failure(Outcome.INTERRUPTED, "interrupted")
            return ev.AttemptFailed(
                world.now(), flight.task, flight.attempt, failure, None, None, flight.usage
            )
        return None

    world.disturb = interrupt
    assert essence(world.run()) == expected


@tries(40)
@given(seeds, st.integers(0, 60), st.booleans())
def test_no_commit_is_made_after_somebody_moved_the_branch(
    seed: int, when: int, broken: bool
) -> None:
    _, world = make(seed)
    before: set[object] = set()

    def move(_: World, effect: fx.Effect) -> None:
        if len(world.log) == when and world.tip != oid("elsewhere"):
            before.update(world.commits)
            world.tip = oid("elsewhere") if broken else oid("on top", world.tip)

    world.disturb = move
    state = world.run()
    if len(world.log) > when > 2:
        assert set(world.commits) == before
    if state.status is BatchStatus.FAILED:
        events = len(world.log)
        world.resume()  # it takes a person
        assert len(world.log) == events


@tries(40)
@given(seeds)
def test_dependents_of_a_parked_task_never_run_while_it_is_parked(seed: int) -> None:
    _, world = make(seed)
    world.run()
    graph = world.machine.graph
    parked = [t for t, r in world.current.tasks.items() if r.status is TaskStatus.NEEDS_HUMAN]
    behind = {graph.ids[i] for p in parked for i in graph.closure(graph.index[p])}
    assert not behind & set(world.runs)
    skipped = {graph.ids[i] for i in agendas.members(world.current.agenda.skipped)}
    assert behind == skipped
