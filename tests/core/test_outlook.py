"""What will run, as a person is told before they confirm, is what the machine then decides."""

from __future__ import annotations

from git_batch.core import events as ev
from git_batch.core.ids import TaskId
from git_batch.core.outlook import Outlook, outlook
from git_batch.core.standing import Outcome, TaskStatus
from tests.views.states import ANN, Story, plan, task


def coming(story: Story) -> Outlook:
    return outlook(story.plan, story.state.tasks, story.state.in_flight)


def test_without_a_record_all_run_in_the_order_of_the_plan() -> None:
    made = plan(task("a", "b"), task("b"), task("c"))
    assert outlook(made, {}) == Outlook(runs=(1, 0, 2))


def test_each_task_is_in_one_group_by_what_becomes_of_it() -> None:
    story = Story(
        plan(
            *(task("done"), task("out"), task("parked"), task("behind", "parked")),
            *(task("review", review="human"), task("waits", "review"), task("accepted")),
            *(task("adopted"), task("new", "accepted"), task("left", "out")),
        )
    )
    story.done("done", b"src/a")
    for name in ("review", "accepted"):
        story.enroll(name)
        story.ran(b"src/b")
        story.checked()
        story.review(b"src/b")
    story.fails("parked", Outcome.RUN_FAILED)
    story.fails("adopted", Outcome.RUN_FAILED)
    story.decide(ev.Decision.SKIP, "out")
    story.decide(ev.Decision.ADOPT, "adopted")
    tree = story.state.tasks[TaskId("accepted")].tree
    assert tree is not None
    story.fold(ev.Reviewed(story.tick(), TaskId("accepted"), tree, ev.Verdict.ACCEPT, ANN, ""))
    assert coming(story) == Outlook(
        runs=(8,),
        applied=(6, 7),
        waits={
            2: TaskStatus.NEEDS_HUMAN,
            3: TaskStatus.SKIPPED_BLOCKED,
            4: TaskStatus.IN_REVIEW,
            5: TaskStatus.PENDING,
            9: TaskStatus.SKIPPED_BLOCKED,
        },
        dropped=(1,),
        done=(0,),
    )


def test_what_is_in_flight_comes_first() -> None:
    story = Story(plan(task("a"), task("b", "c"), task("c")))
    story.enroll("c")
    assert coming(story) == Outlook(runs=(2, 0, 1))
    story.ran(b"src/c")
    story.checked()
    story.settle(b"src/c")
    assert coming(story) == Outlook(runs=(0, 1), applied=(2,))


def test_tasks_that_a_changed_plan_does_not_have_are_not_missed() -> None:
    story = Story(plan(task("a"), task("b")))
    story.fails("a", Outcome.RUN_FAILED)
    assert outlook(plan(task("b")), story.state.tasks) == Outlook(runs=(0,))
