"""A person's decisions: where each is possible, and what it does."""

from __future__ import annotations

import time

import pytest

from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.admission import needs_authorization
from git_batch.core.agenda import counts
from git_batch.core.decisions import allowed
from git_batch.core.events import Decision
from git_batch.core.ids import TaskId
from git_batch.core.model import Budget, Line, Task
from git_batch.core.standing import BatchStatus, Outcome, StopReason, TaskStatus
from git_batch.core.transitions import IllegalTransition
from tests.core.test_machine import CHAIN, ends, outcomes, stop_before
from tests.world import Script, World, oid, plan, task

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
    ("p", Decision.REBASE),  # if it waits to be replayed; else its commit is none of it
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


def test_a_fix_is_taken_of_what_is_to_run_again_in_place_of_what_it_was_given() -> None:
    world = World(plan(task("a", attempts=1), task("b")), ends(a=[Outcome.CHECK_FAILED]))
    world.run()
    assert not allowed(world.current, TaskId("b"), Decision.ADOPT)  # it is done
    world.decide(Decision.RETRY, "a", why="try harder", work=oid("kept"))
    assert allowed(world.current, TaskId("a"), Decision.ADOPT)
    world.decide(Decision.ADOPT, "a", work=oid("fix"))
    record = world.current.tasks[TaskId("a")]
    assert (record.work, record.apply_only) == (oid("fix"), True)
    world.decide(Decision.ADOPT, "a", work=oid("better fix"))
    assert world.current.tasks[TaskId("a")].work == oid("better fix")
    assert outcomes(world.drive()) == {"a": Outcome.COMMITTED, "b": Outcome.COMMITTED}


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


def test_what_went_wrong_redoing_thousands_of_tasks_took_minutes() -> None:
    many = [f"t{n}" for n in range(5000)]
    world = World(plan(*(task(name, *many[:n][-1:]) for n, name in enumerate(many))))
    world.start()
    began = time.process_time()
    for decision in (Decision.SKIP, Decision.REDO):
        world.decide(decision, *many)
    assert time.process_time() - began < 3
    assert world.current.agenda.ready == 1
    assert counts(world.current)[TaskStatus.PENDING] == len(many)


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


def rebased(*tasks: Task, **script: frozenset[str]) -> World:
    """A completed batch, moved to another base and confirmed there."""
    world = World(plan(*(tasks or (task("a"), task("b", "a")))), Script(**script))  # type: ignore[arg-type]
    world.run()
    world.rebase(oid("moved"))
    return world


def test_a_rebase_makes_each_commit_work_that_is_replayed_and_keeps_the_history() -> None:
    world = World(plan(task("a"), task("b", "a")))
    before = world.run()
    world.rebase(oid("moved"))
    state = world.current
    assert (state.status, state.base, state.head) == (
        BatchStatus.RUNNING,
        oid("moved"),
        oid("moved"),
    )
    assert state.former == (Line(before.base, before.head, 1),)
    for name, old in before.tasks.items():
        record = state.tasks[name]
        assert (record.status, record.outcome, record.commit) == (TaskStatus.PENDING, None, None)
        assert (record.replays, record.apply_only) == (old.commit, True)
        assert record.history == old.history


def test_a_replay_runs_no_command_makes_a_commit_of_its_own_and_names_the_old_one() -> None:
    world = rebased()
    old = {name: record.replays for name, record in world.current.tasks.items()}
    world.authorize()
    state = world.resume()
    assert state.status is BatchStatus.COMPLETED
    assert world.runs == ["a", "b"]
    for name, record in state.tasks.items():
        assert record.replays == old[name]
        assert record.commit not in (None, old[name])
        assert [a.n for a in record.history] == [1, 2]


def test_nothing_runs_after_a_rebase_until_a_person_has_confirmed_again() -> None:
    world = rebased()
    assert needs_authorization(world.current)
    world.take_up()
    effect = world.machine.decide(world.current)
    answer = world.perform(effect)
    assert isinstance(answer, ev.Closed)
    assert answer.reason == "nobody has confirmed this batch since it was rebased"
    world.rebase(oid("base"))  # what was confirmed first, but another line
    assert needs_authorization(world.current)
    world.authorize()
    assert not needs_authorization(world.current)
    assert world.resume().status is BatchStatus.COMPLETED


def test_commits_are_replayed_in_the_order_they_had_not_in_the_plans() -> None:
    world = World(plan(task("a"), task("b"), task("c")), ends(a=[Outcome.BLOCKED]))
    world.run()
    world.decide(Decision.RETRY, "a")
    world.resume()
    world.rebase(oid("moved"))
    world.authorize()
    asked: list[TaskId] = []
    world.disturb = lambda _, effect: (
        asked.append(effect.task) if isinstance(effect, fx.Enroll) else None
    )
    world.resume()
    assert asked == ["b", "c", "a"]


def test_what_waits_to_be_replayed_keeps_its_turn_in_a_second_rebase() -> None:
    world = World(plan(task("a"), task("b"), task("c")), ends(a=[Outcome.BLOCKED]))
    world.run()
    world.decide(Decision.RETRY, "a")
    world.resume()
    world.rebase(oid("moved"))
    world.authorize()
    world.take_up()
    while not isinstance(world.log[-1][0], ev.Committed):
        world.append(world.perform(world.machine.decide(world.current)))
    first = world.current.tasks[TaskId("b")].commit
    world.rebase(oid("again"))
    assert world.events[-1].tasks == ("b", "c", "a")  # type: ignore[union-attr]
    assert world.current.tasks[TaskId("b")].replays == first
    assert world.current.agenda.replays == (1, 2, 0)
    assert [line.base for line in world.current.former] == [oid("base"), oid("moved")]


def test_a_replay_costs_nothing_of_the_budget_and_a_used_up_one_does_not_stop_it() -> None:
    world = World(plan(task("a"), task("b", "a")), budget=Budget(max_tasks=2))
    world.run()
    world.rebase(oid("moved"))
    world.authorize()
    state = world.resume()
    assert (state.status, state.enrolled) == (BatchStatus.COMPLETED, 2)


def test_a_commit_that_does_not_apply_parks_and_a_retry_runs_the_command() -> None:
    world = rebased(task("a"), task("b", "a"), task("c"), conflicts=frozenset({"a"}))
    world.authorize()
    state = world.resume()
    record = state.tasks[TaskId("a")]
    assert outcomes(state) == {"a": Outcome.RUN_FAILED, "b": None, "c": Outcome.COMMITTED}
    assert (record.next_action, record.replays is None) == ("git batch retry a", False)
    assert counts(state)[TaskStatus.SKIPPED_BLOCKED] == 1
    world.decide(Decision.RETRY, "a")
    assert world.current.tasks[TaskId("a")].replays is None
    state = world.resume()
    assert state.status is BatchStatus.COMPLETED
    assert (world.runs, state.enrolled) == (["a", "b", "c", "a"], 4)


def test_a_change_that_the_new_base_has_is_done_and_what_needs_it_goes_on() -> None:
    world = rebased(contained=frozenset({"a"}))
    world.authorize()
    state = world.resume()
    assert outcomes(state) == {"a": Outcome.UNCHANGED, "b": Outcome.COMMITTED}
    assert state.status is BatchStatus.COMPLETED


def test_blessed_commits_stay_on_the_line_that_is_left() -> None:
    world = World(plan(task("a")))
    world.run()
    world.tip = oid("on top")
    world.decide(Decision.BLESS, commits=(oid("on top"),), head=oid("on top"))
    world.rebase(oid("moved"))
    assert world.current.foreign == ()
    assert world.current.former[-1].head == oid("on top")


def test_a_rebase_that_contradicts_the_record_is_refused() -> None:
    world = World(plan(task("a"), task("b")))
    world.run()
    with pytest.raises(IllegalTransition, match="the branch was at"):
        world.rebase(oid("moved"), former=oid("elsewhere"))
    world.tip = world.current.head
    with pytest.raises(IllegalTransition, match=r"a: .* is not its commit"):
        world.rebase(oid("moved"), commits=(oid("x"), oid("y")))
    world.tip = world.current.head
    with pytest.raises(ValueError, match="shorter"):
        world.rebase(oid("moved"), commits=(world.current.tasks[TaskId("a")].commit,))


def test_a_failed_batch_goes_on_from_another_base_once_it_is_confirmed() -> None:
    world = World(CHAIN)
    stop_before(world, fx.Enroll, nth=2)
    world.tip, kept = oid("elsewhere"), world.tip
    assert world.drive().status is BatchStatus.FAILED
    world.tip = kept
    world.rebase(oid("moved"))
    assert world.current.stop is None
    assert needs_authorization(world.current)
    world.authorize()
    assert world.drive().status is BatchStatus.COMPLETED


def test_words_said_for_a_commit_outlive_the_wait_for_a_review() -> None:
    world = World(plan(task("a", review="human")))
    world.run()
    world.review("a", ev.Verdict.ACCEPT)
    assert world.current.tasks[TaskId("a")].work_message == b"said"
    world.take_up()
    assert next_run(world).flight.work_message == b"said"


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


def test_what_went_wrong_a_task_that_says_not_now_each_time_could_not_be_taken_out() -> None:
    world = World(CHAIN, ends(a=[Outcome.STOPPED] * 9))
    stopped = world.run()
    assert stopped.stop is StopReason.NOT_NOW
    assert stopped.in_flight is not None
    history = stopped.in_flight.history
    for decision in (Decision.RETRY, Decision.ADOPT):
        with pytest.raises(IllegalTransition):
            world.decide(decision, "a")
    world.decide(Decision.SKIP, "a", why="never mind")
    record = world.current.tasks[TaskId("a")]
    assert (record.outcome, record.reason, record.history) == (
        Outcome.DROPPED, "never mind", history
    )  # fmt: skip
    assert world.current.in_flight is None
    assert outcomes(world.resume())["d"] is Outcome.COMMITTED
    world.decide(Decision.RETRY, "a")
    assert world.resume().in_flight is not None


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
