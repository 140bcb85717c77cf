"""`evolve`: what an event makes of a state, and what it can't follow."""

from __future__ import annotations

from datetime import timedelta

import pytest

from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.attempt import KEEP_PATHS, CheckResult, Failure, LogRef, Usage
from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState
from git_batch.core.standing import BatchStatus, Outcome, Phase, StopReason
from git_batch.core.transitions import IllegalTransition
from git_batch.core.values import replace
from tests.core.facts import smallest
from tests.core.test_machine import CHAIN, ends, stop_before
from tests.world import PERSON, World, oid, plan, task

A = TaskId("a")


def test_a_batch_begins_with_created_only() -> None:
    world = World(plan(task("a")))
    with pytest.raises(IllegalTransition, match="StopRequested without a batch"):
        world.append(ev.StopRequested(world.now(), PERSON))
    world.start()
    with pytest.raises(IllegalTransition, match="created can't follow from running/idle"):
        world.append(smallest(ev.Created))


def test_an_event_of_another_task_than_the_one_in_flight_is_refused() -> None:
    world = World(CHAIN)
    stop_before(world, fx.RunTask)
    flight = world.current.in_flight
    assert flight is not None
    other = smallest(ev.AttemptFailed, task=TaskId("d"), failure=Failure(Outcome.KILLED, ""))
    with pytest.raises(IllegalTransition, match="d: 'a' is in flight"):
        world.append(other)


def test_a_task_that_is_done_is_never_enrolled_again() -> None:
    world = World(CHAIN)
    stop_before(world, fx.Enroll, nth=2)
    again = ev.Enrolled(world.now(), A, 2, world.current.head, "host/run")
    with pytest.raises(IllegalTransition, match="it is committed and can't be enrolled"):
        world.append(again)


def test_a_task_starts_without_an_enrollment_only_with_work_that_was_accepted() -> None:
    world = World(plan(task("a", review="human"), task("b")))
    stop_before(world, fx.Enroll, nth=2)
    for name in ("a", "b"):
        with pytest.raises(IllegalTransition, match="no accepted work"):
            world.append(ev.AttemptStarted(world.now(), TaskId(name), 2, world.current.head))
    world.review("a", ev.Verdict.ACCEPT)
    world.append(ev.AttemptStarted(world.now(), A, 2, world.current.head))
    flight = world.current.in_flight
    assert flight is not None
    assert (flight.phase, flight.apply_only) == (Phase.RUNNING, True)
    assert flight.work == flight.history[-1].ref or flight.work is not None


def test_a_verdict_holds_only_for_the_change_that_was_looked_at() -> None:
    world = World(plan(task("a", review="human")))
    world.run()
    other = ev.Reviewed(world.now(), A, oid("another"), ev.Verdict.ACCEPT, PERSON, "")
    with pytest.raises(IllegalTransition, match="no review of this change is pending"):
        world.append(other)


def test_a_reviewers_verdict_on_another_tree_in_flight_accepts_nothing() -> None:
    world = World(plan(task("a", review="./review")))
    stop_before(world, fx.Review)
    other = ev.Reviewed(world.now(), A, oid("another"), ev.Verdict.ACCEPT, PERSON, "")
    world.append(other)
    assert isinstance(world.machine.decide(world.current), fx.Review)


def test_a_verdict_of_rework_on_the_change_in_flight_accepts_nothing() -> None:
    world = World(plan(task("a", review="./review")))
    effect = stop_before(world, fx.Review)
    assert isinstance(effect, fx.Review)
    assert effect.flight.tree is not None
    world.append(ev.Reviewed(world.now(), A, effect.flight.tree, ev.Verdict.REWORK, PERSON, "no"))
    assert not isinstance(world.machine.decide(world.current), fx.Settle)


def test_time_never_goes_back() -> None:
    world = World(plan(task("a")))
    world.start()
    before = world.current.updated_at
    world.append(ev.StopRequested(before - timedelta(hours=1), PERSON))
    assert world.current.updated_at == before


def test_a_stop_keeps_its_reason_until_the_batch_runs_again() -> None:
    world = World(CHAIN, ends(a=[Outcome.BLOCKED]))
    state = world.run()
    assert state.reason
    world.decide(ev.Decision.RETRY, "a")
    assert (world.current.stop, world.current.reason, world.current.next_action) == (None, "", "")
    assert world.current.status is BatchStatus.RUNNING


def test_a_closing_forgets_the_stop_request_and_the_parks_before_it() -> None:
    world = World(replace(CHAIN, fail_fast=True), ends(a=[Outcome.BLOCKED]))
    world.run()
    assert world.current.stop is StopReason.FAIL_FAST
    assert world.current.fresh_parks == 0
    asked = World(CHAIN)
    stop_before(asked, fx.RunTask)
    asked.append(ev.StopRequested(asked.now(), PERSON))
    assert asked.current.stop_requested
    asked.drive()
    assert not asked.current.stop_requested


def test_a_stop_that_came_after_the_end_stopped_the_next_run() -> None:
    world = World(CHAIN, ends(a=[Outcome.BLOCKED]))
    world.run()
    world.append(ev.StopRequested(world.now(), PERSON))
    world.decide(ev.Decision.RETRY, "a")
    assert not world.current.stop_requested
    assert world.resume().status is BatchStatus.COMPLETED


@pytest.mark.parametrize("kind", [fx.Enroll, fx.RunTask, fx.RunChecks, fx.Settle, fx.Commit])
def test_what_went_wrong_the_record_kept_a_stop_that_the_run_after_a_crash_did_not_heed(
    kind: type[fx.Effect],
) -> None:
    world = World(plan(task("a"), task("b")))
    stop_before(world, kind)
    world.append(ev.StopRequested(world.now(), PERSON))
    world.crash()
    world.resume()
    assert world.current == world.machine.replay(world.log)
    ends = [(e.status, e.stop) for e in world.events if isinstance(e, ev.Closed)]
    assert ends == [
        (BatchStatus.BUDGET_STOPPED, StopReason.STOP_REQUESTED),  # of the run that died
        (BatchStatus.COMPLETED, StopReason.COMPLETED),
    ]


def test_a_run_that_died_after_a_task_had_tampered_ends_for_that_though_a_stop_was_asked_for() -> (
    None
):
    world = World(plan(task("a"), task("b")))
    stop_before(world, fx.RunTask)
    flight = world.current.in_flight
    assert flight is not None
    failure = Failure(Outcome.TAMPERED, "it moved a branch", halts=True)
    now = world.now()
    world.append(ev.AttemptFailed(now, flight.task, 1, failure, None, None, Usage()))
    world.append(world.perform(world.machine.decide(world.current)))
    assert world.current.halted
    world.append(ev.StopRequested(world.now(), PERSON))
    world.crash()
    assert world.resume().stop is StopReason.TAMPERED
    assert world.current == world.machine.replay(world.log)


def test_a_renewal_withdrew_the_wish_to_stop_without_a_word() -> None:
    world = World(CHAIN)
    stop_before(world, fx.RunTask)
    world.append(ev.StopRequested(world.now(), PERSON))
    world.authorize()
    assert world.drive().stop is StopReason.STOP_REQUESTED


def test_the_next_attempt_knows_nothing_of_the_one_before_but_its_feedback_and_history() -> None:
    world = World(plan(task("a", attempts=2)), ends(a=[Outcome.CHECK_FAILED]))
    stop_before(world, fx.StartAttempt)
    flight = world.current.in_flight
    assert flight is not None
    assert (flight.tree, flight.failure, flight.log, flight.exit_status) == (None,) * 4
    assert (flight.checks, flight.changed, flight.changed_total) == ((), (), 0)
    assert flight.usage == Usage()
    assert flight.feedback == "its output"
    [done] = flight.history
    assert (done.n, done.outcome, done.exit_status) == (1, Outcome.CHECK_FAILED, 0)
    assert done.checks == (CheckResult("check", "failed", 1, 0.5),)
    assert done.log == LogRef(4, "1" * 64)
    assert done.started_at < done.ended_at
    assert done.ref == "refs/a/1"


def test_feedback_outlives_an_interruption() -> None:
    world = World(plan(task("a", attempts=3)), ends(a=[Outcome.CHECK_FAILED]))
    stop_before(world, fx.RunTask, nth=2)
    world.take_up()
    world.append(world.perform(world.machine.decide(world.current)))
    flight = world.current.in_flight
    assert flight is not None
    assert [a.outcome for a in flight.history] == [Outcome.CHECK_FAILED, Outcome.INTERRUPTED]
    assert flight.feedback == "its output"


def test_a_hook_that_refuses_after_the_checks_does_not_lose_their_log() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.Settle)
    refused = Failure(Outcome.HOOK_REFUSED, "refused")
    world.append(ev.AttemptFailed(world.now(), A, 1, refused, None, None, Usage()))
    flight = world.current.in_flight
    assert flight is not None
    assert flight.log == LogRef(4, "1" * 64)


def test_checks_that_changed_the_tree_did_not_fail_and_are_not_counted() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.RunChecks)
    changed = Failure(Outcome.CHECK_CHANGED_TREE, "changed")
    world.append(ev.ChecksFailed(world.now(), A, 1, changed, (), None))
    assert world.current.consecutive_failures == 0


def test_usage_is_summed_over_all_attempts_of_a_task_and_over_the_batch() -> None:
    script = ends(a=[Outcome.CHECK_FAILED], b=[Outcome.BLOCKED])
    state = World(plan(task("a", attempts=2), task("b")), script).run()
    assert state.tasks[A].usage == Usage(usd=1.0, input_tokens=20)
    assert state.tasks[TaskId("b")].usage == Usage(usd=0.25)
    assert state.usage == Usage(usd=1.25, input_tokens=20)
    assert Usage(output_tokens=1).plus(Usage(usd=2.0)) == Usage(usd=2.0, output_tokens=1)


def test_an_abandoned_task_keeps_what_it_used_once() -> None:
    world = World(plan(task("a", attempts=3)), ends(a=[Outcome.CHECK_FAILED]))
    stop_before(world, fx.StartAttempt)
    world.decide(ev.Decision.ABANDON)
    record = world.current.tasks[A]
    assert (record.outcome, record.usage) == (
        Outcome.STOPPED,
        Usage(usd=0.5, input_tokens=10),
    )
    assert world.current.in_flight is None
    assert world.current.status is BatchStatus.ABANDONED


def test_long_lists_of_paths_are_cut_and_their_total_is_kept() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.RunTask)
    many = tuple(b"%d" % i for i in range(KEEP_PATHS + 5))
    ran = ev.Ran(world.now(), A, 1, oid("t"), many, len(many), None, Usage(), b"")
    world.append(ran)
    flight = world.current.in_flight
    assert flight is not None
    assert (len(flight.changed), flight.changed_total) == (KEEP_PATHS, KEEP_PATHS + 5)
    assert flight.message is None


def test_a_commit_becomes_the_expected_head_and_an_unchanged_task_does_not_move_it() -> None:
    world = World(plan(task("a")))
    state = world.run()
    assert state.head == state.tasks[A].commit == world.tip
    assert state.tasks[A].parent == state.base


def test_a_settled_task_names_its_event_its_tree_and_its_parent() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.Commit)
    flight = world.current.in_flight
    assert flight is not None
    event, name = world.log[-1]
    assert isinstance(event, ev.Settled)
    assert (flight.settled, flight.tree, flight.parent) == (name, event.tree, event.parent)
    assert flight.message == event.message
    assert flight.since == event.at


def test_a_branch_that_moved_before_the_commit_gives_the_settled_work_back() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.Commit)
    world.tip = oid("on top")
    state = world.drive()
    assert state.stop is StopReason.FOREIGN_COMMITS
    flight = state.in_flight
    assert flight is not None
    assert (flight.phase, flight.settled, flight.tree) == (Phase.READY, None, None)
    assert flight.history[-1].outcome is Outcome.INTERRUPTED


def test_a_renewal_takes_the_new_bounds_and_forgets_tasks_that_its_plan_left_out() -> None:
    world = World(CHAIN, ends(a=[Outcome.BLOCKED]))
    world.run()
    smaller = World(plan(task("b"), task("d"), task("e")))
    old = world.current.authorization
    assert old is not None
    renewal = ev.Authorized(world.now(), replace(old, seq=2, plan_digest="other"))
    state = smaller.machine.evolve(world.current, renewal, oid("renewal"))
    assert set(state.tasks) == {"d"}
    assert (state.plan_digest, state.agenda.size) == ("other", 3)
    assert smaller.machine.decide(state) == fx.Enroll(TaskId("b"), 1)


def test_rework_without_a_known_failure_is_a_contradiction() -> None:
    world = World(plan(task("a")), ends(a=[Outcome.CHECK_FAILED]))
    stop_before(world, fx.KeepWork)
    flight = world.current.in_flight
    assert flight is not None
    world.state = replace(world.current, in_flight=replace(flight, failure=None))
    with pytest.raises(IllegalTransition, match="rework without a failure"):
        world.append(ev.Reworked(world.now(), A, 1, None, (), 0))


def test_replaying_the_events_gives_the_live_state_at_every_step() -> None:
    world = World(CHAIN, ends(a=[Outcome.CHECK_FAILED], d=[Outcome.BLOCKED]))
    seen: list[BatchState] = []
    world.watch = seen.append
    world.run()
    for length, state in enumerate(seen, 1):
        assert world.machine.replay(world.log[:length]) == state
    assert world.machine.replay([]) is None
