"""`decide` and `admit`: the order of decisions, and each rule that is one of them."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.actions import next_action
from git_batch.core.admission import admission_stop, needs_authorization
from git_batch.core.agenda import counts
from git_batch.core.attempt import DEATHS, Failure, Usage
from git_batch.core.ids import TaskId
from git_batch.core.machine import (
    Facts,
    Machine,
    found,
    next_attempt,
    reopen,
)
from git_batch.core.model import BatchState, Budget
from git_batch.core.standing import (
    NEEDS_AUTHORIZATION,
    RESUMABLE,
    BatchStatus,
    OnEmpty,
    Outcome,
    Phase,
    StopReason,
    TaskStatus,
)
from git_batch.core.transitions import BATCH, FLIGHT
from git_batch.core.values import replace
from tests.world import BASE, START, Script, World, plan, task

C, U, CF = Outcome.COMMITTED, Outcome.UNCHANGED, Outcome.CHECK_FAILED
HUMAN, STOPPED = BatchStatus.NEEDS_HUMAN, BatchStatus.BUDGET_STOPPED
CHAIN = plan(task("a"), task("b", "a"), task("c", "b"), task("d"))


def ends(**of: list[Outcome]) -> Script:
    return Script({name: tuple(several) for name, several in of.items()})


def outcomes(state: BatchState) -> dict[str, Outcome | None]:
    return {name: record.outcome for name, record in state.tasks.items()}


def kinds(world: World) -> list[str]:
    return [type(event).__name__ for event in world.events]


def stop_before(world: World, kind: type, nth: int = 1) -> fx.Effect:
    """Start and drive until the nth effect of a kind is decided, and give that."""
    world.start()
    while True:
        effect = world.machine.decide(world.current)
        if isinstance(effect, kind):
            nth -= 1
            if not nth:
                return effect
        world.append(world.perform(effect))


def test_a_task_goes_from_enrollment_over_checks_to_its_commit() -> None:
    world = World(plan(task("a")))
    state = world.run()
    assert kinds(world)[2:] == [
        "Enrolled",
        "Ran",
        "ChecksPassed",
        "Settled",
        "Committed",
        "Closed",
    ]
    assert (state.status, state.stop) == (BatchStatus.COMPLETED, StopReason.COMPLETED)
    assert state.reason == "the task is done"
    assert state.head == world.tip != BASE


def test_a_task_without_checks_settles_right_after_its_run() -> None:
    world = World(plan(task("a", checks=())))
    world.run()
    assert kinds(world)[2:5] == ["Enrolled", "Ran", "Settled"]


def test_all_done_wins_over_an_exhausted_budget() -> None:
    world = World(CHAIN, budget=Budget(max_tasks=4))
    state = world.run()
    assert (state.status, state.enrolled) == (BatchStatus.COMPLETED, 4)
    assert state.reason == "all 4 tasks are done"


def test_all_done_wins_over_a_stop_request_and_a_reached_failure_limit() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.Close)
    world.append(ev.StopRequested(world.now(), world.current.authorization.actor))  # type: ignore[union-attr]
    broken = replace(world.current, consecutive_failures=99)
    effect = world.machine.decide(broken)
    assert isinstance(effect, fx.Close)
    assert effect.stop is StopReason.COMPLETED


def test_what_is_left_over_wins_over_an_exhausted_budget_too() -> None:
    world = World(plan(task("a"), task("b")), ends(b=[Outcome.BLOCKED]), budget=Budget(max_tasks=2))
    assert (world.run().status, world.current.stop) == (HUMAN, StopReason.NEEDS_HUMAN)


@pytest.mark.parametrize("stop_at", [fx.RunTask, fx.RunChecks, fx.Settle, fx.Commit])
def test_what_is_in_flight_comes_before_every_bound(stop_at: type) -> None:
    world = World(CHAIN, budget=Budget(max_tasks=1, qa_failure_limit=1))
    expected = stop_before(world, stop_at)
    world.append(ev.StopRequested(world.now(), world.current.authorization.actor))  # type: ignore[union-attr]
    late = replace(
        world.current,
        authorization=replace(world.current.authorization, expires_at=START, deadline_at=START),  # type: ignore[type-var]
        consecutive_failures=5,
        fresh_parks=3,
    )
    assert isinstance(world.machine.decide(late), type(expected))


def test_an_expired_authorization_stops_new_enrollments_only() -> None:
    world = World(plan(task("a"), task("b")), expires_at=START + timedelta(seconds=5))
    state = world.run()
    assert outcomes(state) == {"a": C}
    assert (state.status, state.stop) == (STOPPED, StopReason.EXPIRED)
    assert "the authorization expired at 2025-01-01T00:00:05+00:00" in state.reason


def test_a_passed_deadline_stops_new_enrollments_only() -> None:
    world = World(plan(task("a"), task("b")), deadline_at=START + timedelta(seconds=5))
    state = world.run()
    assert (state.status, state.stop, len(state.tasks)) == (STOPPED, StopReason.DEADLINE, 1)


def test_expiry_counts_from_its_very_second_and_comes_before_deadline_and_budget() -> None:
    world = World(plan(task("a")), budget=Budget(max_tasks=0))
    world.start()
    at = world.current.updated_at
    a = world.current.authorization
    assert a is not None
    for expires, deadline, stop in [
        (at, at, StopReason.EXPIRED),
        (at + timedelta(seconds=1), at, StopReason.DEADLINE),
        (at + timedelta(seconds=1), at + timedelta(seconds=1), StopReason.BUDGET),
    ]:
        bound = replace(a, expires_at=expires, deadline_at=deadline)
        answer = admission_stop(replace(world.current, authorization=bound), at)
        assert answer is not None
        assert answer[0] is stop
    ready = replace(a, budget=Budget(max_tasks=1))
    assert admission_stop(replace(world.current, authorization=ready), at) is None


def test_a_clock_that_goes_back_extends_nothing() -> None:
    world = World(plan(task("a")))
    world.start()
    newest = world.current.updated_at
    authorization = replace(world.current.authorization, expires_at=newest)  # type: ignore[type-var]
    state = replace(world.current, authorization=authorization)
    effect = fx.Enroll(TaskId("a"), 1)
    event = world.machine.admit(state, effect, Facts(newest - timedelta(days=1), "host/run"))
    assert isinstance(event, ev.Closed)
    assert event.at == newest
    allowed = world.machine.admit(
        world.current, effect, Facts(newest - timedelta(days=1), "host/run")
    )
    assert isinstance(allowed, ev.Enrolled)
    assert (allowed.at, allowed.parent, allowed.runner) == (newest, BASE, "host/run")


def test_nobodys_confirmation_enrolls_nothing() -> None:
    world = World(plan(task("a")))
    world.append(
        replace(ev.Created(world.now(), *("",) * 6), base=BASE)  # type: ignore[arg-type]
    )
    assert world.drive().stop is StopReason.EXPIRED
    assert needs_authorization(world.current)


def test_the_budget_counts_enrollments_parked_ones_and_second_ones_too() -> None:
    world = World(
        plan(task("a"), task("b"), task("c")), ends(a=[Outcome.BLOCKED]), budget=Budget(max_tasks=2)
    )
    state = world.run()
    assert (state.enrolled, state.stop) == (2, StopReason.BUDGET)
    assert outcomes(state) == {"a": Outcome.BLOCKED, "b": C}
    world.decide(ev.Decision.RETRY, "a")
    assert world.resume().stop is StopReason.BUDGET
    world.authorize(budget=Budget(max_tasks=4))
    assert world.resume().status is BatchStatus.COMPLETED
    assert world.current.enrolled == 4


@pytest.mark.parametrize(
    ("budget", "usage", "stopped"),
    [
        (Budget(max_usd=1.0), Usage(usd=1.0), True),
        (Budget(max_usd=1.0), Usage(usd=0.99), False),
        (Budget(max_usd=1.0), Usage(), False),
        (Budget(max_tokens=10), Usage(input_tokens=4, output_tokens=6), True),
        (Budget(max_tokens=10), Usage(input_tokens=9), False),
    ],
)
def test_used_money_and_tokens_bound_enrollments_where_they_are_known(
    budget: Budget, usage: Usage, stopped: bool
) -> None:
    world = World(plan(task("a")), budget=budget)
    world.start()
    answer = admission_stop(replace(world.current, usage=usage), world.now())
    assert (answer is not None) == stopped
    assert answer is None or answer[0] is StopReason.BUDGET


@pytest.mark.parametrize("fail_fast", [False, True])
def test_at_the_failure_limit_the_task_is_parked_and_the_run_ends_whatever_fail_fast_says(
    fail_fast: bool,
) -> None:
    made = plan(task("a", attempts=9), task("b"), fail_fast=fail_fast)
    world = World(made, ends(a=[CF] * 9), budget=Budget(qa_failure_limit=2))
    state = world.run()
    assert outcomes(state) == {"a": CF}
    assert (state.status, state.stop) == (HUMAN, StopReason.FAILURE_LIMIT)
    assert state.consecutive_failures == 2
    assert "limit on failing checks" in state.tasks[TaskId("a")].reason
    assert needs_authorization(state)


def test_the_failure_limit_counts_over_tasks_and_a_settlement_resets_it() -> None:
    made = plan(*(task(n, attempts=1) for n in "abcde"))
    script = ends(a=[CF], b=[CF], d=[CF], e=[CF])
    state = World(made, script, budget=Budget(qa_failure_limit=3)).run()
    assert state.stop is StopReason.NEEDS_HUMAN  # c came in between
    assert state.consecutive_failures == 2
    script = ends(a=[CF], b=[CF], c=[CF])
    state = World(made, script, budget=Budget(qa_failure_limit=3)).run()
    assert (state.stop, len(state.tasks)) == (StopReason.FAILURE_LIMIT, 3)


def test_an_unchanged_task_and_a_fresh_authorization_reset_the_failure_count_too() -> None:
    made = plan(task("a", attempts=1), task("b", on_empty=OnEmpty.ACCEPT))
    state = World(made, ends(a=[CF], b=[U])).run()
    assert state.consecutive_failures == 0
    world = World(plan(task("a", attempts=1)), ends(a=[CF]))
    assert world.run().consecutive_failures == 1
    world.authorize()
    assert world.current.consecutive_failures == 0


@pytest.mark.parametrize("outcome", [Outcome.SCOPE_REFUSED, Outcome.RUN_FAILED, Outcome.BLOCKED])
def test_only_failed_checks_count_against_the_failure_limit(outcome: Outcome) -> None:
    made = plan(*(task(n, attempts=2) for n in "ab"))
    world = World(made, ends(a=[outcome, outcome]), budget=Budget(qa_failure_limit=1))
    state = world.run()
    assert outcomes(state) == {"a": outcome, "b": C}
    assert "limit" not in state.tasks[TaskId("a")].reason


@pytest.mark.parametrize(
    ("outcome", "tries"),
    [
        (CF, 3),
        (Outcome.SCOPE_REFUSED, 3),
        (Outcome.PROTECTED_CHANGED, 3),
        (Outcome.HOOK_REFUSED, 3),
        (Outcome.RUN_FAILED, 1),
        (Outcome.TIMED_OUT, 1),
        (Outcome.STALLED, 1),
        (Outcome.KILLED, 1),
        (Outcome.BLOCKED, 1),
        (Outcome.EMPTY, 1),
        (Outcome.TAMPERED, 1),
    ],
)
def test_what_the_same_task_may_mend_is_tried_again_and_the_rest_is_parked(
    outcome: Outcome, tries: int
) -> None:
    world = World(plan(task("a", attempts=3)), ends(a=[outcome] * 9))
    state = world.run()
    assert world.runs == ["a"] * tries
    assert outcomes(state) == {"a": outcome}
    assert [a.n for a in state.tasks[TaskId("a")].history] == list(range(1, tries + 1))


def test_rework_that_mends_it_leads_to_the_commit_with_the_failure_as_feedback() -> None:
    world = World(plan(task("a", attempts=2)), ends(a=[CF, C]))
    effect = stop_before(world, fx.RunTask, nth=2)
    assert isinstance(effect, fx.RunTask)
    assert effect.flight.feedback == "its output"
    assert world.drive().status is BatchStatus.COMPLETED


def test_independent_tasks_go_on_after_a_park_and_dependents_are_skipped_transitively() -> None:
    world = World(CHAIN, ends(a=[Outcome.BLOCKED]))
    state = world.run()
    assert outcomes(state) == {"a": Outcome.BLOCKED, "d": C}
    assert counts(state)[TaskStatus.SKIPPED_BLOCKED] == 2
    assert (state.status, state.reason) == (HUMAN, "'a' needs a person")
    assert state.next_action == "git batch show a"


def test_with_fail_fast_the_first_park_ends_the_run_and_only_a_confirmation_goes_on() -> None:
    world = World(replace(CHAIN, fail_fast=True), ends(a=[Outcome.BLOCKED]))
    state = world.run()
    assert (state.status, state.stop) == (HUMAN, StopReason.FAIL_FAST)
    assert outcomes(state) == {"a": Outcome.BLOCKED}
    assert needs_authorization(state)
    world.authorize()
    assert outcomes(world.resume())["d"] is C


def test_a_retry_unskips_what_was_behind_it() -> None:
    world = World(CHAIN, ends(a=[Outcome.BLOCKED]))
    world.run()
    world.decide(ev.Decision.RETRY, "a")
    assert counts(world.current)[TaskStatus.SKIPPED_BLOCKED] == 0
    assert world.resume().status is BatchStatus.COMPLETED


def test_what_needs_a_dropped_task_keeps_the_batch_open_until_it_is_dropped_too() -> None:
    world = World(plan(task("a"), task("b", "a")), ends(a=[Outcome.BLOCKED]))
    world.run()
    world.decide(ev.Decision.SKIP, "a")
    state = world.resume()
    assert (state.status, state.stop) == (HUMAN, StopReason.NEEDS_HUMAN)
    assert state.reason == "what is left needs 'a', which was taken out"
    assert state.next_action == "git batch skip a --dependents"
    world.decide(ev.Decision.SKIP, "b")
    assert world.resume().status is BatchStatus.COMPLETED


def test_many_parks_are_named_three_at_a_time() -> None:
    made = plan(*(task(n) for n in "abcde"))
    state = World(made, ends(**{n: [Outcome.BLOCKED] for n in "abcde"})).run()
    assert state.reason == "'a', 'b', 'c' and 2 more need a person"


def test_what_went_wrong_a_batch_whose_tasks_were_taken_out_said_that_they_are_done() -> None:
    for names, out, said in (
        ("a", "a", "the task was taken out"),
        ("ab", "ab", "all 2 tasks were taken out"),
        ("ab", "a", "1 of 2 tasks is done, the other was taken out"),
        ("abcd", "ad", "2 of 4 tasks are done, the others were taken out"),
    ):
        world = World(plan(*(task(n) for n in names)), ends(**{n: [Outcome.BLOCKED] for n in out}))
        world.run()
        for n in out:
            world.decide(ev.Decision.SKIP, n)
        state = world.resume()
        assert (state.status, state.reason) == (BatchStatus.COMPLETED, said)


def test_what_went_wrong_two_tasks_waits_for_a_review() -> None:
    state = World(plan(task("a", review="human"), task("b", review="human"))).run()
    assert state.reason == "'a', 'b' wait for a review"


def test_what_went_wrong_a_budget_of_1_enrollments() -> None:
    state = World(CHAIN, budget=Budget(max_tasks=1)).run()
    assert state.reason == "the budget of 1 enrollment is used up"


def test_a_task_that_changes_nothing_is_parked_or_accepted_as_its_plan_says() -> None:
    made = plan(task("a", on_empty=OnEmpty.ACCEPT), task("b", "a"), task("c"))
    state = World(made, ends(a=[U], c=[U])).run()
    assert outcomes(state) == {"a": U, "b": C, "c": Outcome.EMPTY}
    assert state.tasks[TaskId("a")].commit is None


def test_a_review_waits_while_others_go_on_and_is_the_next_action_when_none_is_left() -> None:
    world = World(plan(task("a", review="human"), task("b", "a"), task("c")))
    state = world.run()
    assert outcomes(state) == {"a": Outcome.REVIEW_PENDING, "c": C}
    assert (state.status, state.stop) == (HUMAN, StopReason.REVIEW_PENDING)
    assert state.reason == "'a' waits for a review"
    assert state.next_action == "git batch show a --diff"
    assert not needs_authorization(state)


def test_accepted_work_is_applied_checked_and_committed_without_another_enrollment() -> None:
    world = World(plan(task("a", review="human"), task("b", "a")), budget=Budget(max_tasks=2))
    world.run()
    world.review("a", ev.Verdict.ACCEPT)
    state = world.resume()
    assert outcomes(state) == {"a": C, "b": C}
    assert state.enrolled == 2
    assert kinds(world).count("ReviewRequested") == 1
    assert kinds(world).count("AttemptStarted") == 1


def test_accepted_work_comes_before_new_tasks_but_not_after_a_stop_was_asked_for() -> None:
    world = World(plan(task("a", review="human"), task("b")))
    stop_before(world, fx.Enroll, nth=2)
    world.review("a", ev.Verdict.ACCEPT)
    assert world.machine.decide(world.current) == fx.StartAttempt(TaskId("a"), 2)
    asked = replace(world.current, stop_requested=True)
    assert world.machine.decide(asked) == fx.Close(
        STOPPED,
        StopReason.STOP_REQUESTED,
        "a person asked the run to stop",
        "git batch resume",
    )


@pytest.mark.parametrize("outcome", [CF, Outcome.SCOPE_REFUSED])
def test_accepted_work_that_no_longer_passes_is_parked_and_never_reworked(
    outcome: Outcome,
) -> None:
    world = World(plan(task("a", review="human", attempts=5)), ends(a=[C, outcome]))
    world.run()
    world.review("a", ev.Verdict.ACCEPT)
    state = world.resume()
    assert outcomes(state) == {"a": outcome}
    assert world.runs == ["a", "a"]


def test_a_review_that_asks_for_rework_parks_with_its_summary_and_leaves_the_counter() -> None:
    made = plan(task("a", attempts=1), task("b", review="human"))
    world = World(made, ends(a=[CF]))
    world.run()
    world.review("b", ev.Verdict.REWORK)
    record = world.current.tasks[TaskId("b")]
    assert (record.status, record.outcome) == (TaskStatus.NEEDS_HUMAN, Outcome.REVIEW_REWORK)
    assert record.reason == record.feedback == "looked at it"
    assert world.current.consecutive_failures == 1


def test_a_change_that_a_command_reviewer_accepted_settles_without_a_person() -> None:
    world = World(plan(task("a", review="./review")))
    effect = stop_before(world, fx.Review)
    assert isinstance(effect, fx.Review)
    assert effect.flight.tree is not None
    actor = world.current.authorization.actor  # type: ignore[union-attr]
    yes = ev.Reviewed(
        world.now(), TaskId("a"), effect.flight.tree, ev.Verdict.ACCEPT, actor, "fine"
    )
    world.append(yes)
    assert isinstance(world.machine.decide(world.current), fx.Settle)


def test_a_stop_request_ends_the_run_after_the_task_in_flight_and_needs_no_confirmation() -> None:
    world = World(CHAIN)
    stop_before(world, fx.RunTask)
    world.append(ev.StopRequested(world.now(), world.current.authorization.actor))  # type: ignore[union-attr]
    state = world.drive()
    assert (state.status, state.stop) == (STOPPED, StopReason.STOP_REQUESTED)
    assert outcomes(state) == {"a": C}
    assert not needs_authorization(state)
    assert world.resume().status is BatchStatus.COMPLETED


# Not now.


def test_not_now_stops_at_once_when_waiting_was_not_allowed_and_a_resume_tries_again() -> None:
    script = ends(a=[Outcome.STOPPED, Outcome.STOPPED])
    world = World(plan(task("a", attempts=1), task("b")), script)
    state = world.run()
    assert (state.status, state.stop) == (STOPPED, StopReason.NOT_NOW)
    assert (state.reason, state.next_action) == ("'a' says 'not now'", "git batch resume")
    assert state.in_flight is not None
    assert state.in_flight.phase is Phase.READY
    assert not needs_authorization(state)
    assert world.resume().stop is StopReason.NOT_NOW
    assert world.runs == ["a", "a"]
    assert world.resume().status is BatchStatus.COMPLETED
    assert world.pauses == [0.0, 0.0]
    assert world.current.enrolled == 2


def test_not_now_waits_with_growing_pauses_up_to_half_an_hour() -> None:
    script = ends(a=[Outcome.STOPPED] * 8)
    world = World(plan(task("a", attempts=1)), script, budget=Budget(max_wait=1e6))
    assert world.run().status is BatchStatus.COMPLETED
    assert world.pauses == [60, 120, 240, 480, 960, 1800, 1800, 1800]


def test_the_pauses_of_an_enrollment_are_no_longer_than_the_budget_allows_in_all() -> None:
    world = World(plan(task("a")), ends(a=[Outcome.STOPPED] * 20), budget=Budget(max_wait=300.0))
    state = world.run()
    assert world.pauses == [60, 120, 120]
    assert (state.status, state.stop) == (STOPPED, StopReason.NOT_NOW)
    assert state.reason == "'a' says 'not now' after 300 seconds of waiting"


def test_another_end_in_between_begins_the_pauses_anew() -> None:
    script = ends(a=[Outcome.STOPPED, Outcome.STOPPED, CF, Outcome.STOPPED])
    world = World(plan(task("a", attempts=2)), script, budget=Budget(max_wait=1e6))
    assert world.run().status is BatchStatus.COMPLETED
    assert world.pauses == [60, 120, 0, 60]


def test_a_person_who_resumes_or_confirms_anew_does_not_wait_first() -> None:
    script = ends(a=[Outcome.STOPPED] * 3)
    world = World(plan(task("a")), script, budget=Budget(max_wait=60.0))
    world.run()
    assert world.pauses == [60]
    world.authorize()
    assert world.machine.decide(world.current) == fx.StartAttempt(TaskId("a"), 3)
    world.drive()
    assert world.pauses == [60, 0, 60]


def test_each_sign_that_a_person_took_it_up_again_is_enough_not_to_wait() -> None:
    world = World(plan(task("a")), ends(a=[Outcome.STOPPED]), budget=Budget(max_wait=1e6))
    assert stop_before(world, fx.StartAttempt) == fx.StartAttempt(TaskId("a"), 2, 60.0)
    at_once = fx.StartAttempt(TaskId("a"), 2)
    assert world.machine.decide(replace(world.current, stale=True)) == at_once
    stopped = replace(world.current, stop=StopReason.NOT_NOW)
    assert world.machine.decide(stopped) == at_once


def test_a_stop_request_ends_the_waiting_for_not_now() -> None:
    world = World(plan(task("a")), ends(a=[Outcome.STOPPED]), budget=Budget(max_wait=1e6))
    stop_before(world, fx.StartAttempt)
    world.append(ev.StopRequested(world.now(), world.current.authorization.actor))  # type: ignore[union-attr]
    assert world.drive().stop is StopReason.STOP_REQUESTED


def test_not_now_uses_up_no_attempt_and_stands_in_the_history_as_stopped() -> None:
    world = World(plan(task("a", attempts=1)), ends(a=[Outcome.STOPPED]))
    world.run()
    state = world.resume()
    assert [a.outcome for a in state.tasks[TaskId("a")].history] == [Outcome.STOPPED, C]


# Stopped, read again, gone.


def test_a_stopped_or_ended_batch_asks_for_nothing() -> None:
    state = World(plan(task("a"))).run()
    for status in set(BatchStatus) - {BatchStatus.RUNNING}:
        assert Machine(plan(task("a"))).decide(replace(state, status=status)) == fx.Finish()


def test_only_resumable_batches_are_taken_up_again() -> None:
    state = World(plan(task("a"))).run()
    for status in BatchStatus:
        taken = reopen(replace(state, status=status)).status
        assert taken is (BatchStatus.RUNNING if status in RESUMABLE else status)


@pytest.mark.parametrize("kind", [fx.RunTask, fx.RunChecks, fx.Settle])
def test_an_attempt_that_nobody_works_on_any_more_is_kept_and_run_again(kind: type) -> None:
    world = World(plan(task("a")))
    stop_before(world, kind)
    effect = world.machine.decide(found(world.current))
    assert isinstance(effect, fx.KeepWork)
    assert isinstance(effect.ending, fx.Interrupt)
    world.take_up()
    world.drive()
    assert [a.outcome for a in world.current.tasks[TaskId("a")].history] == [
        Outcome.INTERRUPTED,
        C,
    ]


def test_a_settled_task_that_nobody_works_on_is_committed_and_never_run_again() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.Commit)
    assert isinstance(world.machine.decide(found(world.current)), fx.Commit)
    world.resume()
    assert world.runs == ["a"]


def test_a_known_failure_that_nobody_works_on_ends_as_it_would_have() -> None:
    world = World(plan(task("a", attempts=2)), ends(a=[CF]))
    effect = stop_before(world, fx.KeepWork)
    assert world.machine.decide(found(world.current)) == effect


def test_what_others_add_does_not_make_a_lost_attempt_look_alive() -> None:
    world = World(plan(task("a")))
    stop_before(world, fx.RunTask)
    world.take_up()
    actor = world.current.authorization.actor  # type: ignore[union-attr]
    world.append(ev.StopRequested(world.now(), actor))
    world.authorize()
    assert isinstance(world.machine.decide(world.current), fx.KeepWork)


def test_nothing_in_flight_is_nothing_lost() -> None:
    state = World(plan(task("a"))).run()
    assert found(state) == state


def test_a_commit_error_leaves_the_task_settled_its_dependents_pending_and_can_be_resumed() -> None:
    world = World(plan(task("a"), task("b", "a")))

    def fail(_: World, effect: fx.Effect) -> ev.Event | None:
        if not isinstance(effect, fx.Commit):
            return None
        return ev.Closed(
            world.now(), HUMAN, StopReason.COMMIT_FAILED, "no space", "git batch resume"
        )

    world.disturb = fail
    state = world.run()
    assert (state.status, state.stop) == (HUMAN, StopReason.COMMIT_FAILED)
    assert counts(state)[TaskStatus.SETTLED] == counts(state)[TaskStatus.PENDING] == 1
    assert not needs_authorization(state)
    world.disturb = lambda world, effect: None
    assert world.resume().status is BatchStatus.COMPLETED
    assert world.runs == ["a", "b"]


def test_whatever_a_stop_left_in_flight_can_be_gone_on_with() -> None:
    answers = {
        Phase.READY: {"attempt_started"},
        Phase.RUNNING: {"interrupted"},
        Phase.RAN: {"interrupted"},
        Phase.CHECKED: {"interrupted"},
        Phase.FAILED: {"rework", "parked", "interrupted"},
        Phase.SETTLED: {"committed", "interrupted"},
    }
    for stopped, phase in product((HUMAN, STOPPED), Phase):
        assert all((stopped, name) in BATCH for name in answers[phase])
        assert all((phase, name) in FLIGHT for name in answers[phase])


def test_only_bounds_and_breaks_need_a_fresh_confirmation() -> None:
    state = World(plan(task("a"))).run()
    asked = {s for s in StopReason if needs_authorization(replace(state, stop=s))}
    assert asked == NEEDS_AUTHORIZATION
    assert not needs_authorization(replace(state, stop=None))


# Small answers.


def test_attempts_are_numbered_over_the_tasks_whole_life() -> None:
    world = World(plan(task("a", attempts=2)), ends(a=[CF, CF]))
    state = world.run()
    assert next_attempt(None) == 1
    assert next_attempt(state.tasks[TaskId("a")]) == 3
    world.decide(ev.Decision.RETRY, "a")
    world.resume()
    assert [a.n for a in world.current.tasks[TaskId("a")].history] == [1, 2, 3]


@pytest.mark.parametrize(
    ("outcome", "command"),
    [
        (Outcome.BLOCKED, "git batch retry a -m 'ANSWER'"),
        (Outcome.SCOPE_REFUSED, "git batch show a --diff"),
        (Outcome.PROTECTED_CHANGED, "git batch show a --diff"),
        (Outcome.EMPTY, "git batch show a --output"),
        (CF, "git batch show a --output"),
    ],
)
def test_every_park_names_the_command_that_helps(outcome: Outcome, command: str) -> None:
    assert next_action(TaskId("a"), outcome, output=True) == command


def test_a_park_that_printed_nothing_names_no_output() -> None:
    assert next_action(TaskId("a"), CF, output=False) == "git batch show a"
    assert (
        next_action(TaskId("a"), Outcome.SCOPE_REFUSED, output=False) == "git batch show a --diff"
    )


def test_a_park_at_the_failure_limit_keeps_its_own_reason_in_front() -> None:
    world = World(plan(task("a", attempts=1)), ends(a=[CF]), budget=Budget(qa_failure_limit=1))
    effect = stop_before(world, fx.KeepWork)
    assert isinstance(effect, fx.KeepWork)
    reason = "check exited with 1 (the limit on failing checks is reached)"
    assert effect.ending == fx.Park(Failure(CF, reason, "its output"), "git batch show a --output")


def test_another_failure_at_the_failure_limit_is_parked_under_its_own_reason() -> None:
    world = World(plan(task("a", attempts=9)), ends(a=[Outcome.SCOPE_REFUSED]))
    stop_before(world, fx.KeepWork)
    effect = world.machine.decide(replace(world.current, consecutive_failures=6))
    assert isinstance(effect, fx.KeepWork)
    assert effect.ending == fx.Park(
        Failure(Outcome.SCOPE_REFUSED, "scope_refused"), "git batch show a --diff"
    )


def test_totals_name_every_state_and_add_up_with_a_task_in_flight() -> None:
    world = World(CHAIN)
    stop_before(world, fx.RunTask)
    assert counts(world.current) == dict.fromkeys(TaskStatus, 0) | {
        TaskStatus.ENROLLED: 1,
        TaskStatus.PENDING: 3,
    }


def die(world: World, times: int) -> None:
    """Have runs end while a task's command is at work, each taken up by the next."""
    for _ in range(times):
        while not isinstance(effect := world.machine.decide(world.current), fx.RunTask):
            world.append(world.perform(effect))
        world.crash()
        world.take_up()


def test_what_went_wrong_a_task_that_ended_each_run_was_run_for_ever() -> None:
    """It could not even be taken out: it was always in flight."""
    world = World(plan(task("a"), task("b")))
    world.start()
    die(world, DEATHS)
    state = world.drive()
    record = state.tasks[TaskId("a")]
    assert (record.status, record.outcome) == (TaskStatus.NEEDS_HUMAN, Outcome.INTERRUPTED)
    assert record.reason == "3 runs in a row ended before its attempt did; it may be what ends them"
    assert [attempt.outcome for attempt in record.history] == [Outcome.INTERRUPTED] * DEATHS
    assert state.consecutive_failures == 0
    assert state.tasks[TaskId("b")].status is TaskStatus.COMMITTED
    # A person had a look: it has as many tries again.
    world.decide(ev.Decision.RETRY, "a")
    die(world, DEATHS - 1)
    assert world.drive().status is BatchStatus.COMPLETED


def test_a_run_that_ended_otherwise_in_between_begins_the_count_anew() -> None:
    world = World(plan(task("a")), ends(a=[CF]))
    world.start()
    die(world, DEATHS - 1)
    while len(world.current.in_flight.history if world.current.in_flight else ()) < DEATHS:
        world.append(world.perform(world.machine.decide(world.current)))
    die(world, DEATHS - 1)
    assert world.drive().status is BatchStatus.COMPLETED
