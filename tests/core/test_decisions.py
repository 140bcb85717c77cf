"""A person's decisions: where each is possible, and what it does."""

from __future__ import annotations

import pytest

from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.agenda import counts
from git_batch.core.decisions import allowed
from git_batch.core.events import Decision
from git_batch.core.ids import TaskId
from git_batch.core.standing import BatchStatus, Outcome, StopReason, TaskStatus
from git_batch.core.transitions import IllegalTransition
from tests.core.test_machine import CHAIN, ends, outcomes, stop_before
from tests.world import World, oid, plan, task

ABOUT_TASKS = (
    Decision.RETRY,
    Decision.SKIP,
    Decision.ADOPT,
    Decision.UNDO,
    Decision.REDO,
    Decision.REBASE,
)


def mixed() -> World:
    """A batch with a task in every state that a stopped one can have."""
    made = plan(
        task("parked"), task("review", review="human"), task("done"), task("out"), task("p")
    )
    world = World(made, ends(parked=[Outcome.BLOCKED]))
    stop_before(world, fx.Enroll, nth=5)
    world.decide(Decision.UNDO, "out", head=world.current.tasks[TaskId("done")].commit)
    return world


POSSIBLE = {
    ("parked", Decision.RETRY),
    ("parked", Decision.ADOPT),
    ("parked", Decision.SKIP),
    ("review", Decision.SKIP),
    ("done", Decision.UNDO),
    ("done", Decision.REDO),
    ("done", Decision.REBASE),
    ("out", Decision.RETRY),
    ("out", Decision.REDO),
    ("p", Decision.SKIP),
}


@pytest.mark.parametrize("name", ["parked", "review", "done", "out", "p"])
def test_each_decision_is_possible_exactly_where_it_makes_sense(name: str) -> None:
    for decision in ABOUT_TASKS:
        world = mixed()
        expected = (name, decision) in POSSIBLE
        assert allowed(world.current, TaskId(name), decision) == expected
        if not expected:
            with pytest.raises(IllegalTransition, match=f"{name}: {decision} is not possible now"):
                world.decide(decision, name)


def test_a_retry_puts_a_persons_words_before_the_old_feedback() -> None:
    world = World(plan(task("a", attempts=1)), ends(a=[Outcome.CHECK_FAILED]))
    world.run()
    world.decide(Decision.RETRY, "a", why="try harder", work=oid("kept"))
    record = world.current.tasks[TaskId("a")]
    assert record.feedback == "try harder\n\nits output"
    assert (record.status, record.outcome, record.work) == (
        TaskStatus.PENDING,
        None,
        oid("kept"),
    )
    assert not record.apply_only
    assert len(record.history) == 1
    effect = next_run(world)
    assert effect.flight.feedback == "try harder\n\nits output"
    assert effect.flight.work == oid("kept")


def next_run(world: World) -> fx.RunTask:
    while not isinstance(effect := world.machine.decide(world.current), fx.RunTask):
        world.append(world.perform(effect))
    return effect


def test_a_retry_without_words_keeps_the_feedback_as_it_was() -> None:
    world = World(plan(task("a", attempts=1)), ends(a=[Outcome.CHECK_FAILED]))
    world.run()
    world.decide(Decision.RETRY, "a", why="")
    assert world.current.tasks[TaskId("a")].feedback == "its output"


def test_an_adopted_fix_is_the_whole_attempt_and_is_checked() -> None:
    world = World(plan(task("a", attempts=1)), ends(a=[Outcome.RUN_FAILED]))
    world.run()
    world.decide(Decision.ADOPT, "a", work=oid("fix"))
    effect = next_run(world)
    assert (effect.flight.apply_only, effect.flight.work) == (True, oid("fix"))
    assert isinstance(stop_after(world, fx.RunChecks), fx.RunChecks)
    assert outcomes(world.drive()) == {"a": Outcome.COMMITTED}


def stop_after(world: World, kind: type) -> fx.Effect:
    while not isinstance(effect := world.machine.decide(world.current), kind):
        world.append(world.perform(effect))
    return effect


def test_an_adopted_fix_needs_no_review() -> None:
    made = plan(task("a", review="human", attempts=1))
    world = World(made, ends(a=[Outcome.RUN_FAILED]))
    world.run()
    world.decide(Decision.ADOPT, "a", work=oid("fix"))
    assert outcomes(world.drive()) == {"a": Outcome.COMMITTED}


def test_a_skipped_task_is_dropped_with_the_persons_reason() -> None:
    world = World(CHAIN, ends(a=[Outcome.BLOCKED]))
    world.run()
    world.decide(Decision.SKIP, "a", why="not needed")
    record = world.current.tasks[TaskId("a")]
    assert (record.status, record.outcome, record.reason, record.next_action) == (
        TaskStatus.DROPPED,
        Outcome.DROPPED,
        "not needed",
        "",
    )


def test_skipping_a_task_that_was_never_run_needs_no_record_of_it() -> None:
    world = mixed()
    world.decide(Decision.SKIP, "p")
    assert world.current.tasks[TaskId("p")].status is TaskStatus.DROPPED


def test_an_undo_drops_the_tasks_and_moves_the_head_and_a_redo_makes_them_pending() -> None:
    world = World(plan(task("a"), task("b", "a")))
    for decision, status in ((Decision.UNDO, "dropped"), (Decision.REDO, "pending")):
        world = World(world.machine.plan)
        world.run()
        world.tip = oid("reverted")
        world.decide(decision, "a", "b", head=world.tip)
        assert world.current.head == oid("reverted")
        assert {r.status.value for r in world.current.tasks.values()} == {status}
    assert world.current.tasks[TaskId("a")].commit is None
    world.script = ends()
    state = world.resume()
    assert (state.status, outcomes(state)["b"]) == (BatchStatus.COMPLETED, Outcome.COMMITTED)


def test_an_undone_task_keeps_a_completed_batch_completed_and_says_undone() -> None:
    world = World(plan(task("a")))
    world.run()
    world.decide(Decision.UNDO, "a", head=oid("reverted"))
    assert world.current.status is BatchStatus.COMPLETED
    assert outcomes(world.current) == {"a": Outcome.UNDONE}


def test_blessed_commits_are_foreign_never_a_tasks_and_the_tip_is_expected_from_then_on() -> None:
    world = World(CHAIN)
    stop_before(world, fx.Enroll, nth=2)
    world.tip = oid("on top")
    assert world.drive().stop is StopReason.FOREIGN_COMMITS
    world.decide(Decision.BLESS, commits=(oid("x"), oid("on top")), head=oid("on top"))
    assert world.current.foreign == (oid("x"), oid("on top"))
    assert world.current.head == oid("on top")
    assert world.resume().status is BatchStatus.COMPLETED
    assert not {r.commit for r in world.current.tasks.values()} & set(world.current.foreign)


def test_a_rebase_gives_each_named_task_its_new_commit() -> None:
    world = World(plan(task("a"), task("b")))
    world.run()
    names = (oid("new a"), oid("new b"))
    world.decide(Decision.REBASE, "a", "b", commits=names, head=names[1])
    assert tuple(world.current.tasks[TaskId(t)].commit for t in "ab") == names
    assert world.current.head == names[1]
    with pytest.raises(ValueError, match="shorter"):
        world.decide(Decision.REBASE, "a", "b", commits=names[:1])


def test_a_failed_batch_whose_branch_was_blessed_waits_for_a_fresh_authorization() -> None:
    world = World(CHAIN)
    stop_before(world, fx.Enroll, nth=2)
    world.tip = oid("elsewhere")
    assert world.drive().status is BatchStatus.FAILED
    world.decide(Decision.BLESS, commits=(oid("elsewhere"),), head=oid("elsewhere"))
    assert (world.current.status, world.current.stop) == (
        BatchStatus.NEEDS_HUMAN,
        StopReason.LINEAGE_BROKEN,
    )
    world.authorize()
    assert world.drive().status is BatchStatus.COMPLETED


def test_abandoning_ends_the_batch_with_what_was_in_flight_and_nothing_can_follow() -> None:
    for kind in (fx.RunTask, fx.RunChecks, fx.Settle, fx.Commit):
        world = World(CHAIN)
        stop_before(world, kind)
        world.decide(Decision.ABANDON, why="enough")
        state = world.current
        assert (state.status, state.reason) == (BatchStatus.ABANDONED, "enough")
        assert outcomes(state) == {"a": Outcome.STOPPED}
        assert sum(counts(state).values()) == 4
        assert world.machine.decide(state) == fx.Finish()
        with pytest.raises(IllegalTransition):
            world.authorize()


def test_a_decision_about_the_task_in_flight_waits_but_not_one_about_another() -> None:
    world = World(CHAIN)
    stop_before(world, fx.RunTask)
    for decision in (Decision.SKIP, Decision.RETRY, Decision.ADOPT):
        with pytest.raises(IllegalTransition):
            world.decide(decision, "a")
    world.decide(Decision.SKIP, "d")
    assert world.current.tasks[TaskId("d")].outcome is Outcome.DROPPED
    assert world.current.in_flight is not None


def test_nothing_moves_the_branch_between_settled_and_its_commit() -> None:
    world = World(CHAIN)
    stop_before(world, fx.Commit)
    for decision in (Decision.BLESS, Decision.UNDO, Decision.REDO, Decision.REBASE):
        with pytest.raises(IllegalTransition):
            world.decide(decision)


def test_a_decision_makes_fail_fast_forget_the_parks_before_it() -> None:
    world = World(plan(task("a"), task("b"), fail_fast=True), ends(a=[Outcome.BLOCKED]))
    stop_before(world, fx.Close)
    assert world.current.fresh_parks == 1
    world.decide(Decision.SKIP, "a")
    assert world.current.fresh_parks == 0
    assert outcomes(world.drive())["b"] is Outcome.COMMITTED


def test_a_verdict_can_be_taken_back_before_it_is_acted_on() -> None:
    world = World(plan(task("a", review="human")))
    world.run()
    world.review("a", ev.Verdict.ACCEPT)
    world.review("a", ev.Verdict.REJECT)
    assert outcomes(world.current) == {"a": Outcome.REVIEW_REJECTED}
    assert not world.current.agenda.accepted
    assert world.resume().stop is StopReason.NEEDS_HUMAN
