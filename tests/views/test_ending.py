"""The end of a run: few commands, each one that exists, the most useful first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from git_batch.cli.main import COMMANDS
from git_batch.core.model import Budget
from git_batch.core.standing import BatchStatus, Outcome, StopReason
from git_batch.views.commands import next_commands
from git_batch.views.ending import LOOKS, ending_text
from tests.views.states import Story, plan, task


def following(story: Story) -> list[str]:
    lines = ending_text(story.state, story.plan).splitlines()
    return [line.split(":", 1)[1].strip() for line in lines if line.startswith("next:")]


def parked(n: int) -> Story:
    story = Story(plan(*(task(f"t{i}") for i in range(n))))
    for i in range(n):
        story.fails(f"t{i}", Outcome.RUN_FAILED)
    story.close_as_decided()
    return story


def completed() -> Story:
    story = Story(plan(task("a")))
    story.done("a", b"src/a")
    story.close_as_decided()
    return story


def in_review() -> Story:
    story = Story(plan(task("a", review="human")))
    story.enroll("a")
    story.ran(b"src/a")
    story.checked()
    story.review(b"src/a")
    story.close_as_decided()
    return story


def out_of_budget() -> Story:
    story = Story(plan(task("a"), task("b"), task("c"), budget=Budget(max_tasks=1)))
    story.fails("a", Outcome.SCOPE_REFUSED)
    story.close(BatchStatus.BUDGET_STOPPED, StopReason.BUDGET, "used up", "git batch resume")
    return story


def broken() -> Story:
    story = Story(plan(task("a")))
    story.close(BatchStatus.FAILED, StopReason.LINEAGE_BROKEN, "moved back", "git log x")
    return story


def interrupted() -> Story:
    story = Story(plan(task("a"), task("b")))
    story.fails("a", Outcome.CHECK_FAILED)
    return story


@pytest.mark.parametrize("n", [1, LOOKS, LOOKS + 3])
def test_each_task_that_needs_a_person_has_one_line_and_there_are_few(n: int) -> None:
    lines = following(parked(n))
    looks = [f"git batch show t{i} --output" for i in range(min(n, LOOKS))]
    more = [f"... and {n - LOOKS} more"] if n > LOOKS else []
    assert lines == [*looks, *more, "git batch report"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (completed, ["git log --oneline bbbbbbbbbb..batch/demo", "git batch report"]),
        (in_review, ["git batch show a --diff", "git batch report"]),
        (
            out_of_budget,
            ["git batch show a --diff", "git batch resume --max-tasks +2", "git batch report"],
        ),
        (broken, ["git log x", "git batch verify", "git batch report"]),
        (interrupted, ["git batch show a --output", "git batch resume", "git batch report"]),
    ],
)
def test_each_end_leads_on(make: Callable[[], Story], expected: list[str]) -> None:
    assert following(make()) == expected


@pytest.mark.parametrize("make", [completed, in_review, out_of_budget, broken, interrupted])
def test_no_command_is_named_that_does_not_exist(make: Callable[[], Story]) -> None:
    story = make()
    told = [*next_commands(story.state, story.plan), *following(story)]
    ours = [line.split()[2] for line in told if line.startswith("git batch ")]
    assert ours
    assert set(ours) <= set(COMMANDS)
