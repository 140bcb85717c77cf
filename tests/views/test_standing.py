from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core import agenda as agendas
from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.agenda import counts
from git_batch.core.graph import Graph
from git_batch.core.ids import TaskId
from git_batch.core.model import Agenda, Task
from git_batch.core.standing import BatchStatus, Outcome, StopReason, TaskStatus
from git_batch.views.common import Around, counts_text
from git_batch.views.outline import counts_line, outline
from git_batch.views.report import report_json, report_text
from git_batch.views.standing import Board, Standing, behind
from git_batch.views.status import status_json
from tests.views.states import ANN, CHECK, Story, logs, morning, oid, plan, task


def at(story: Story, name: str, *, live: bool = False) -> Standing:
    return Board(story.state, story.plan, live=live).of(TaskId(name))


def test_a_skipped_task_names_the_root_and_not_the_task_between() -> None:
    story = Story(plan(task("a"), task("b", "a"), task("c", "b"), task("d")))
    story.fails("a", Outcome.RUN_FAILED)
    c = at(story, "c")
    assert (c.state, c.outcome) == (TaskStatus.SKIPPED_BLOCKED, Outcome.SKIPPED)
    assert c.reason == "dependency 'a' parked"
    assert at(story, "d").outcome is None


def test_several_roots_are_named_and_a_dropped_one_is_said_to_be_dropped() -> None:
    story = Story(plan(task("a"), task("b"), task("c", "a", "b"), task("d", "c")))
    story.fails("a", Outcome.RUN_FAILED)
    story.fails("b", Outcome.RUN_FAILED)
    story.decide(ev.Decision.SKIP, "b")
    assert at(story, "d").reason == "dependency 'a' parked; dependency 'b' was dropped"


def test_what_went_wrong_a_long_chain_of_skipped_tasks_counted_all_that_each_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of n skipped tasks listed up to n roots to name three of them."""
    many, listed = 40, 0
    roots = [task(f"r{i}") for i in range(many)]
    chain = [task(f"s{i}", f"r{i}", *([f"s{i - 1}"] if i else [])) for i in range(many)]
    story = Story(plan(*roots, *chain))
    for root in roots:
        story.fails(root.id, Outcome.RUN_FAILED)
    members = agendas.members

    def counting(mask: int) -> Iterator[int]:
        nonlocal listed
        for member in members(mask):
            listed += 1
            yield member

    board = Board(story.state, story.plan, live=False)
    monkeypatch.setattr(agendas, "members", counting)
    reasons = [each.reason for each in board]
    assert listed <= 4 * many
    assert reasons[many + 2].endswith("'r2' parked")
    assert reasons[-1] == (
        "dependency 'r0' parked; dependency 'r1' parked; dependency 'r2' parked; 37 more"
    )


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        (StopReason.BUDGET, Outcome.NOT_RUN_BUDGET),
        (StopReason.DEADLINE, Outcome.NOT_RUN_DEADLINE),
        (StopReason.EXPIRED, Outcome.NOT_RUN_EXPIRED),
        (StopReason.FAILURE_LIMIT, Outcome.NOT_RUN_FAILURE_LIMIT),
        (StopReason.STOP_REQUESTED, Outcome.NOT_RUN_STOPPED),
        (StopReason.FAIL_FAST, Outcome.NOT_RUN_STOPPED),
        (StopReason.TAMPERED, Outcome.NOT_RUN_STOPPED),
    ],
)
def test_a_stop_says_why_the_others_were_not_run(stop: StopReason, outcome: Outcome) -> None:
    story = Story(plan(task("a"), task("b")))
    story.done("a", b"src/a")
    assert at(story, "b").outcome is None
    story.close(BatchStatus.BUDGET_STOPPED, stop, "said why")
    b = at(story, "b")
    assert (b.state, b.outcome, b.reason) == (TaskStatus.PENDING, outcome, "said why")


def test_dependents_of_a_review_wait_for_it() -> None:
    story = Story(plan(task("a", review="human"), task("b", "a")))
    story.enroll("a")
    story.ran(b"src/a")
    story.checked()
    story.review(b"src/a")
    story.close_as_decided()
    assert at(story, "a").waits
    b = at(story, "b")
    assert (b.outcome, b.reason) == (Outcome.NOT_RUN_STOPPED, "waits for the review of 'a'")


def test_an_accepted_review_waits_for_nobody() -> None:
    story = Story(plan(task("a", review="human")))
    story.enroll("a")
    story.ran(b"src/a")
    story.checked()
    story.review(b"src/a")
    story.fold(ev.Reviewed(story.tick(), TaskId("a"), oid(77), ev.Verdict.ACCEPT, ANN, ""))
    a = at(story, "a")
    assert (a.state, a.waits, a.reason) == (
        TaskStatus.IN_REVIEW,
        False,
        "accepted, not applied yet",
    )


def test_in_flight_is_open_while_somebody_works_on_it_and_interrupted_after_a_crash() -> None:
    story = Story(plan(task("a")))
    story.enroll("a")
    assert at(story, "a", live=True).outcome is None
    dead = at(story, "a")
    assert (dead.state, dead.outcome, dead.attempts) == (
        TaskStatus.ENROLLED,
        Outcome.INTERRUPTED,
        1,
    )
    story.interrupt()
    dead = at(story, "a")
    assert (dead.outcome, dead.reason, dead.attempts) == (Outcome.INTERRUPTED, "Ctrl-C", 1)


def test_a_settled_task_is_open_unless_its_commit_failed() -> None:
    story = Story(plan(task("a")))
    story.enroll("a")
    story.ran(b"src/a")
    story.checked()
    story.settle(b"src/a")
    assert at(story, "a").outcome is None
    story.close(BatchStatus.NEEDS_HUMAN, StopReason.COMMIT_FAILED, "disk full")
    a = at(story, "a")
    assert (a.state, a.outcome, a.reason) == (
        TaskStatus.SETTLED,
        Outcome.COMMIT_FAILED,
        "disk full",
    )


def test_a_retried_task_keeps_its_attempts_and_shows_no_old_outcome() -> None:
    story = Story(plan(task("a")))
    story.fails("a", Outcome.RUN_FAILED, "broke", b"src/a")
    story.decide(ev.Decision.RETRY, "a", why="use the other tool")
    a = at(story, "a")
    assert (a.state, a.outcome, a.attempts, a.ended_at) == (TaskStatus.PENDING, None, 1, None)
    story.enroll("a")
    assert at(story, "a", live=True).attempts == 2


def test_abandoning_says_so() -> None:
    story = Story(plan(task("a"), task("b")))
    story.enroll("a")
    story.decide(ev.Decision.ABANDON, why="enough")
    assert at(story, "a").outcome is Outcome.STOPPED
    assert at(story, "b").reason == "the batch was abandoned"
    told = status_json(story.state, story.plan, live=False, around=Around(None, ()))
    assert (told["state"], told["outcome"]) == ("abandoned", "abandoned")


def test_ten_thousand_skipped_in_a_chain_cost_their_edges() -> None:
    tasks = [task("t0", checks=())]
    tasks += [task(f"t{n}", f"t{n - 1}", checks=()) for n in range(1, 10_000)]
    story = Story(plan(*tasks))
    story.fails("t0", Outcome.RUN_FAILED)
    reasons = {s.reason for s in Board(story.state, story.plan, live=False)}
    assert reasons == {"why", "dependency 't0' parked"}


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Give a batch at any moment of any run: plans, ends and decisions at random."""
    size = draw(st.integers(1, 7))
    tasks: list[Task] = []
    for n in range(size):
        after = draw(st.lists(st.sampled_from(tasks), unique=True, max_size=2)) if tasks else []
        checks = (CHECK,) if draw(st.booleans()) else ()
        review = draw(st.sampled_from(["none", "none", "human"]))
        tasks.append(task(f"t{n}", *(t.id for t in after), checks=checks, review=review))
    order = draw(st.permutations(tasks))
    story = Story(plan(*order, fail_fast=draw(st.booleans())))
    for _ in range(draw(st.integers(0, 25))):
        if not step(story, draw):
            break
    return story


def step(story: Story, draw: st.DrawFn) -> bool:
    """Do what is decided, with any end; False if nothing follows."""
    state = story.state
    if draw(st.integers(0, 19)) == 13 and state.in_flight is None:
        stop = draw(st.sampled_from([StopReason.BUDGET, StopReason.DEADLINE, StopReason.EXPIRED]))
        story.close(BatchStatus.BUDGET_STOPPED, stop)
        return False
    match story.machine.decide(state):
        case fx.Enroll(name, _):
            story.enroll(name)
        case fx.StartAttempt(name, n):
            story.fold(ev.AttemptStarted(story.tick(), name, n, state.head))
        case fx.RunTask():
            outcomes = [None, None, None, Outcome.TIMED_OUT, Outcome.BLOCKED, Outcome.INTERRUPTED]
            ended = draw(st.sampled_from(outcomes))
            story.ran(b"src/a") if ended is None else story.failed(ended)
        case fx.RunChecks():
            story.checked(*draw(st.sampled_from([(), (), (CHECK,)])))
        case fx.KeepWork(_, fx.Rework()):
            f = story.flight
            story.fold(ev.Reworked(story.tick(), *f, story.ref(), (b"src/a",), 1))
        case fx.KeepWork(_, fx.Interrupt()):
            story.interrupt()
        case fx.KeepWork():
            story.park(*draw(st.sampled_from([(), (b"src/a",)])))
        case fx.Review():
            story.review(b"src/a")
        case fx.Settle():
            story.settle(b"src/a")
        case fx.Commit():
            story.commit()
        case fx.Close():
            story.close_as_decided()
            return decide(story, draw)
        case _:
            return False
    return True


def decide(story: Story, draw: st.DrawFn) -> bool:
    """Decide something about a task that waits, or leave the batch as it is."""
    waiting = [s for s in Board(story.state, story.plan, live=False) if s.waits]
    if not waiting or draw(st.booleans()):
        return False
    one = draw(st.sampled_from(waiting))
    if one.state is TaskStatus.IN_REVIEW:
        verdict = draw(st.sampled_from(ev.Verdict))
        story.fold(ev.Reviewed(story.tick(), one.task.id, oid(77), verdict, ANN, "said"))
        return verdict is ev.Verdict.ACCEPT
    story.decide(draw(st.sampled_from([ev.Decision.RETRY, ev.Decision.SKIP])), one.task.id)
    return True


@given(stories(), st.booleans())
def test_totals_add_up_and_all_views_say_the_same(story: Story, live: bool) -> None:
    state, size = story.state, len(story.plan.tasks)
    told = status_json(state, story.plan, live=live, around=Around(state.head, ()))
    seen = Counter(t["state"] for t in told["tasks"])
    assert sum(told["counts"].values()) == size == len(told["tasks"])
    assert seen == Counter({s: n for s, n in told["counts"].items() if n})
    assert told["counts"] == {s.value: n for s, n in counts(state).items()}
    said = outline(Board(state, story.plan, live=live), logs)
    assert sum(len(items) for _, items in said.groups) == size
    line = counts_line(list(Board(state, story.plan, live=live)))
    assert sum(numbers(line)[1:]) == numbers(line)[0] == size
    totals = story.entry.totals.counts
    assert numbers(counts_text(totals))[0] == sum(numbers(counts_text(totals))[1:]) == size
    report_text(state, story.plan, logs=logs, live=live)
    full = report_json(state, story.plan, live=live, around=Around(None, ()))
    assert [len(t["history"]) for t in full["tasks"]] == [
        len(s.history) for s in Board(state, story.plan, live=live)
    ]


def numbers(line: str) -> list[int]:
    """Give the total and the numbers of each state, without those in brackets."""
    total, _, rest = line.partition(": ")
    first, *bracketed = rest.split("(")
    outside = first + "".join(part.split(")", 1)[1] for part in bracketed)
    return [int(total.split()[0]), *(int(part.split()[0]) for part in outside.split(", ") if part)]


@given(stories())
def test_every_outcome_is_said_or_open_for_a_reason(story: Story) -> None:
    for live in (True, False):
        for shown in Board(story.state, story.plan, live=live):
            moving = shown.state in (TaskStatus.ENROLLED, TaskStatus.SETTLED)
            running = story.state.status is BatchStatus.RUNNING
            may_be_open = moving or (shown.state is TaskStatus.PENDING and running)
            assert shown.outcome is not None or may_be_open
            if shown.commit is not None:
                assert shown.outcome is Outcome.COMMITTED


def blocking_roots(graph: Graph, agenda: Agenda, i: int) -> tuple[int, ...]:
    """Walk from a skipped task to what it waits for: parked or dropped tasks, lowest first."""
    blocked, seen, stack = agenda.parked | agenda.dropped, set[int](), [i]
    roots: set[int] = set()
    while stack:
        for d in graph.dependencies[stack.pop()]:
            if d in seen:
                continue
            seen.add(d)
            if blocked >> d & 1:
                roots.add(d)
            elif not agenda.done >> d & 1:
                stack.append(d)
    return tuple(sorted(roots))


@given(stories())
def test_roots_are_those_that_a_walk_finds(story: Story) -> None:
    agenda, graph = story.state.agenda, story.machine.graph
    find = behind(graph, agenda.parked | agenda.dropped, agenda.done)
    for place in agendas.members(agenda.skipped):
        roots = blocking_roots(graph, agenda, place)
        assert tuple(agendas.members(find(place))) == roots
        assert roots


def test_the_morning_adds_up() -> None:
    story = morning()
    assert counts_line(list(Board(story.state, story.plan, live=False))) == (
        "9 tasks: 3 committed, 3 need a human (1 check failed, 1 scope refused, 1 timed out), "
        "2 skipped, 1 not run (1 deadline)"
    )
