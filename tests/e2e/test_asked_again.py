"""What is hinted at in place of a refused command repeats what was given with it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import batch, task, told, write
from tests.e2e.near import near, pasted

PAST = "2020-01-01T00:00:00Z"
PLAN = "the plan.toml"


def plan(top: Path, *parts: str, name: str = PLAN) -> Path:
    """Write a plan under a name that a shell would split."""
    return write(top, *(parts or (task("a", "echo a >src/a1"),)), name=name)


def again(hint: str) -> list[str]:
    """Read the command of a hint as a shell does."""
    command = hint[hint.index("git batch ") :]
    return shlex.split(command)[2:]


def test_what_went_wrong_a_start_with_another_bound_was_a_start_of_another_branch(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(repo)
    given = (
        *("--branch", "it's", "--base", "HEAD~0", "--allow-untracked", "--max-tasks", "7"),
        *("--expires", "1h30m0.5s", "--qa-failures", "2", "--fail-fast", "--recheck"),
    )
    done = near(repo, "start", PLAN, "--deadline", PAST, "--yes", *given, status=3)
    assert len(done.hints) == 1
    words = again(done.hints[0])
    assert words[:4] == ["start", PLAN, "--deadline", "8h"]
    assert sorted(words[4:]) == sorted(given)
    near(repo, *words, "--yes")
    assert told(repo)["branch"] == "it's"


def test_a_short_option_and_a_time_are_repeated_as_well(repo: Path) -> None:
    plan(repo)
    late = ("--expires", "2199-01-31T08:00:00+01:00")
    done = near(repo, "start", PLAN, "-n", "-x", "--max-tasks", "0", *late, status=3)
    assert again(done.hints[0]) == ["start", PLAN, "--max-tasks", "N", *late, "--fail-fast"]


def test_what_went_wrong_a_resume_of_a_named_batch_was_one_of_another(repo: Path) -> None:
    plan(repo, *(task(name, f"echo {name} >src/{name}1") for name in "abc"))
    near(repo, "start", PLAN, "--yes", "--max-tasks", "1", status=1)
    given = ("--deadline", "2h", "--qa-failures", "3", "--fail-fast", "--recheck")
    done = near(repo, "resume", "demo", "--yes", *given, status=3)
    first = ["resume", "demo", "--max-tasks", "+2"]
    assert again(done.hints[0]) == [*first, *given]
    changed = ("--plan", PLAN, *given)
    done = near(repo, "resume", "demo", "--max-tasks", "+0", "--yes", *changed, status=3)
    assert again(done.hints[0]) == [*first, *changed]
    near(repo, *again(done.hints[0]), "--yes")
    assert told(repo)["state"] == "completed"


def test_what_went_wrong_a_deadline_of_a_plan_was_shown_as_a_number(repo: Path) -> None:
    plan(repo, task("a", "exit 1", "attempts = 1"))
    near(repo, "start", PLAN, "--yes", status=1)
    done = near(repo, "resume", "--plan", PLAN, "--deadline", "1h30m", "--yes", status=1)
    assert "  ~ the budget's deadline: none -> 1h30m\n" in done.out
    later = ("--deadline", "2199-01-31T08:00:00Z")
    done = near(repo, "resume", "--plan", PLAN, *later, "--yes", status=1)
    assert "  ~ the budget's deadline: 1h30m -> 2199-01-31T08:00:00+00:00\n" in done.out


def test_a_plan_that_is_no_change_is_started_with_what_was_given(repo: Path) -> None:
    plan(repo)
    near(repo, "start", PLAN, "--yes")
    given = ("--deadline", "2h", "--fail-fast")
    done = near(repo, "resume", "--plan", PLAN, "--max-tasks", "+1", *given, status=3)
    assert again(done.hints[0]) == ["start", PLAN, "--branch", "NAME", *given]


def test_a_plan_of_another_batch_is_started_with_what_was_given(repo: Path) -> None:
    plan(repo, task("a", "exit 1", "attempts = 1"))
    near(repo, "start", PLAN, "--yes", status=1)
    given = ("--deadline", "2h", "--fail-fast")
    ours = repo / PLAN
    ours.write_text(ours.read_text().replace('"demo"', '"other"'))
    done = near(repo, "resume", "--plan", PLAN, "--yes", *given, status=2)
    assert again(done.hints[0]) == ["start", PLAN, *given]


@pytest.mark.parametrize("ahead", [False, True])
def test_what_went_wrong_the_choice_of_a_plan_forgot_what_was_given(
    repo: Path, ahead: bool
) -> None:
    (repo / ".batch").mkdir()
    for name in ("one", "two"):
        plan(repo, name=f".batch/{name}.toml")
    run = batch if ahead else near
    done = run(repo, "start", "--branch", "mine", "--yes", status=2)
    ours = ["start", "--branch", "mine"]
    assert [again(hint) for hint in done.hints] == [
        [*ours, f".batch/{name}.toml"] for name in ("one", "two")
    ]
    near(repo, *again(done.hints[0]), "--allow-untracked", "--yes")
    assert told(repo)["branch"] == "mine"


def test_what_went_wrong_the_words_of_a_fix_that_was_none_were_to_be_typed_again(
    repo: Path,
) -> None:
    plan(repo, task("a", "exit 1", "attempts = 1"))
    near(repo, "start", PLAN, "--yes", status=1)
    done = near(repo, "adopt", "a", "-m", "it's mine", status=3)
    assert again(done.hints[0]) == ["adopt", "a", "--attempt", "N", "-m", "it's mine"]


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("git branch batch/demo; git commit -q --allow-empty -m x", ("--branch", "NAME")),
        ("git branch batch", ("--branch", "NAME")),
        ("echo 1 >notes.txt", ("--allow-untracked",)),
    ],
)
def test_what_went_wrong_an_option_was_hinted_at_without_the_command_it_belongs_to(
    repo: Path, before: str, more: tuple[str, ...]
) -> None:
    plan(repo)
    pasted(repo, before)
    done = near(repo, "start", PLAN, "--fail-fast", "--yes", status=3)
    [hint] = [hint for hint in done.hints if "git batch" in hint]
    words = again(hint)
    assert words == ["start", PLAN, *more, "--fail-fast"]
    near(repo, *(word.lower() for word in words), "--yes")


def test_what_went_wrong_a_plan_of_an_abandoned_batch_was_started_without_what_was_given(
    repo: Path,
) -> None:
    plan(repo, task("a", "exit 1", "attempts = 1"))
    near(repo, "start", PLAN, "--yes", status=1)
    near(repo, "abandon")
    git(repo, "switch", "-q", "main")
    done = near(repo, "resume", "--plan", PLAN, "--fail-fast", "--yes", status=3)
    assert again(done.hints[-1]) == ["start", PLAN, "--branch", "NAME", "--fail-fast"]
