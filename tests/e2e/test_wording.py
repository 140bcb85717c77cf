"""What is said reads well: nothing twice, one form for times, no line break inside of a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from git_batch.cli.reading import _moment
from tests.conftest import git
from tests.e2e.job import task, told, write
from tests.e2e.near import near, said


def test_what_went_wrong_a_state_was_said_twice(repo: Path) -> None:
    write(repo, task("a", "echo 1 >src/one"), task("b", "echo 2 >src/two"))
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    assert re.search(r"state: +budget stopped, ", near(repo, "status").out)
    near(repo, "resume", "--yes", "--max-tasks", "2")
    log = near(repo, "log").out
    assert "closed: budget_stopped: the budget" in log
    assert "closed: completed: all 2 tasks" in log


def test_what_went_wrong_a_plan_was_said_to_change_into_itself(repo: Path) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    write(repo, "\n[budget]\nmax_tasks = 9\n", task("a", "exit 1"))
    shown = near(repo, "resume", "--plan", "batch.toml", "--yes", status=1).out
    digest = told(repo)["plan_digest"]
    assert f"what runs is the same, {digest}; what differs:\n  ~ the budget's max_tasks" in shown
    assert "the plan changes" not in shown


def test_what_went_wrong_words_of_several_lines_were_shown_with_escapes(repo: Path) -> None:
    to = '"$BATCH_BLOCKED"'
    why = f"echo 'which one?' >{to}; echo 'the old or the new' >>{to}"
    write(repo, task("a", why))
    shown = said(near(repo, "start", "--yes", status=1))
    for form in ("text", "markdown", "html"):
        shown += near(repo, "report", "--format", form).out
    assert "\\n" not in shown
    assert "  a: blocked: which one? ...\n" in shown
    assert "| the old or the new\n" in shown


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2030-01-31T20:00:00.123456+00:00", "2030-01-31 20:00:00+00:00"),
        ("long ago", "long ago"),
    ],
)
def test_the_runners_time_is_written_as_all_others(since: str, expected: str) -> None:
    assert _moment(since) == expected


def test_what_went_wrong_the_first_few_were_named_as_if_they_were_all(repo: Path) -> None:
    names = [f"src/n{i}" for i in range(4)]
    write(repo, task("a", "echo 1 >src/one", f'check = "touch {" ".join(names)}"'))
    near(repo, "start", "--yes", status=1)
    assert "the checks changed 'src/n0', 'src/n1', 'src/n2' and 1 more" in near(repo, "report").out
    for i in range(5):
        path = write(repo, task("a", "true", 'on_empty = "accept"'))
        path.write_text(path.read_text().replace("demo", f"more-{i}"))
        git(repo, "switch", "-q", "main")
        near(repo, "start", "--yes")
    [hint] = near(repo, "status", "other", status=2).hints
    assert hint.endswith(" and 1 more")


def test_what_went_wrong_the_first_conflicts_were_named_as_if_they_were_all(repo: Path) -> None:
    many = "for i in 1 2 3 4 5 6; do echo {} >src/n$i; done"
    write(repo, task("a", many.format("a")), task("b", many.format("b")))
    near(repo, "start", "--yes")
    assert "'src/n5' and 1 more as well" in near(repo, "undo", "a", status=3).err
