"""Every command that is named can be pasted: it acts on the batch it was named for, and works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from git_batch.cli.main import COMMANDS
from git_batch.cli.manpage import root_context
from git_batch.views.addressing import OF_A_BATCH, OF_A_TASK, addressed
from tests.conftest import git
from tests.e2e.job import task, told, write
from tests.e2e.near import near, pasted

OURS = re.compile(r"git batch [a-z][^\n`]*")


def parks(top: Path, slug: str, *, status: int = 1) -> str:
    """Run a batch whose three tasks need a person, and go back to main; give its id."""
    tasks = (task(f"t{n}", f"echo {slug} >src/{slug}{n}; exit 1") for n in (1, 2, 3))
    path = write(top, *tasks)
    path.write_text(path.read_text().replace('slug = "demo"', f'slug = "{slug}"'))
    near(top, "start", "--yes", status=status)
    git(top, "switch", "-q", "main")
    return str(told(top, "status", slug)["batch_id"])


def test_what_went_wrong_commands_of_a_named_batch_acted_on_another(repo: Path) -> None:
    a, b = parks(repo, "a"), parks(repo, "b")
    (repo / "batch.toml").unlink()
    said = (
        near(repo, "report", a).out
        + near(repo, "status", a).out
        + near(repo, "show", f"{a}:t1").out
    )
    named = [c for c in OURS.findall(said) if "report" not in c]
    assert f"git batch retry {a}:t1" in said
    assert f"git batch skip {a}:t1" in said
    assert f"git batch resume {a}" in said
    assert [c for c in named if a not in c] == []
    near(repo, *shlex.split(f"retry {a}:t1"))
    assert told(repo, "report", a)["tasks"][0]["state"] == "pending"
    assert told(repo, "report", b)["tasks"][0]["state"] == "needs_human"


def test_names_are_left_out_where_a_bare_command_means_the_same_batch(repo: Path) -> None:
    a = parks(repo, "a")
    assert a not in " ".join(OURS.findall(near(repo, "report", a).out))
    parks(repo, "b")
    git(repo, "switch", "-q", "batch/a")
    assert f"git batch retry {a}:t1" not in near(repo, "report", a).out
    assert near(repo, "retry", "t1").out.endswith("go on: git batch resume\n")
    git(repo, "switch", "-q", "main")
    assert near(repo, "retry", f"{a}:t2").out.endswith("go on: git batch resume\n")  # the latest
    git(repo, "switch", "-q", "batch/b")
    assert near(repo, "retry", f"{a}:t3").out.endswith(f"go on: git batch resume {a}\n")


def test_every_command_that_takes_a_batch_or_task_first_can_be_addressed() -> None:
    root = root_context()
    assert isinstance(root.command, click.Group)
    found: dict[str, set[str]] = {"task": set(), "batch": set()}
    for name in COMMANDS:
        command = root.command.get_command(root, name)
        assert command is not None
        first = next((p for p in command.params if isinstance(p, click.Argument)), None)
        if first is not None and first.name in found:
            found[first.name].add(name)
    assert found["task"] == OF_A_TASK
    assert found["batch"] | {"verify"} == OF_A_BATCH | {"prune"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git batch resume", "git batch resume a-abc123"),
        ("git batch resume --max-tasks +2", "git batch resume a-abc123 --max-tasks +2"),
        ("git batch resume b-abc123", "git batch resume b-abc123"),
        ("git batch retry t1 -m 'ANSWER'", "git batch retry a-abc123:t1 -m 'ANSWER'"),
        ("git batch retry b:t1", "git batch retry b:t1"),
        ("git batch find --commit HEAD", "git batch find --commit HEAD"),
        ("git batch recover batch/a", "git batch recover batch/a"),
        ("git log --oneline a..b", "git log --oneline a..b"),
        ("", ""),
    ],
)
def test_a_command_is_addressed_once(command: str, expected: str) -> None:
    assert addressed(command, "a-abc123") == expected
    assert addressed(command, None) == command


def test_what_went_wrong_a_task_that_nothing_needs_was_to_be_skipped_again(repo: Path) -> None:
    write(
        repo,
        task("solo", "exit 2"),
        task("base", "exit 2"),
        task("mid", "true", 'blocked_by = ["base"]'),
        task("leaf", "true", 'blocked_by = ["mid"]'),
    )
    near(repo, "start", "--yes", status=1)
    near(repo, "skip", "solo")
    near(repo, "skip", "base")
    near(repo, "resume", status=1)
    status = told(repo)
    assert status["reason"] == "what is left needs 'base', which was taken out"
    assert status["next_action"] == "git batch skip base --dependents"
    near(repo, *shlex.split(status["next_action"])[2:])
    near(repo, "resume")
    assert told(repo)["state"] == "completed"


def test_what_went_wrong_a_skip_led_to_a_run_that_began_nothing(repo: Path) -> None:
    write(
        repo,
        task("solo", "exit 2"),
        task("base", "exit 2"),
        task("mid", "true", 'blocked_by = ["base"]'),
    )
    near(repo, "start", "--yes", "--fail-fast", status=1)  # 'base' can still run
    assert near(repo, "skip", "solo").out.endswith("taken out\ngo on: git batch resume\n")
    near(repo, "resume", "--yes", status=1)
    said = near(repo, "skip", "base").out
    lines = [line.removeprefix("go on: ") for line in said.splitlines() if "go on: " in line]
    assert lines == ["git batch skip base --dependents", "git batch resume"]
    for line in lines:
        near(repo, *shlex.split(line)[2:])
    assert told(repo)["state"] == "completed"


@pytest.mark.parametrize("verdict", ["--rework", "--reject"])
def test_what_went_wrong_a_refused_review_was_to_be_resumed_at_once(
    repo: Path, verdict: str
) -> None:
    write(repo, task("a", "echo 1 >>src/a", 'review = "human"'))
    near(repo, "start", "--yes", status=1)
    said = near(repo, "review", "a", verdict, "-m", "no").out
    lines = [line.removeprefix("go on: ") for line in said.splitlines() if "go on: " in line]
    assert lines == ["git batch retry a", "git batch resume"]
    for line in lines[:-1]:
        near(repo, *shlex.split(line)[2:])
    near(repo, "resume", status=1)
    assert told(repo)["tasks"][0]["attempts"] == 2


def test_an_accepted_review_is_resumed_at_once(repo: Path) -> None:
    write(repo, task("a", "echo 1 >>src/a", 'review = "human"'))
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    assert near(repo, "review", "a", "--accept").out.endswith("go on: git batch resume\n")


def test_going_on_with_a_used_up_budget_names_more_of_it(repo: Path) -> None:
    write(repo, task("a", "exit 1"), task("b", "echo 1 >src/b"))
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    assert near(repo, "retry", "a").out.endswith("go on: git batch resume --max-tasks +2\n")
    near(repo, "resume", "--max-tasks", "+2", "--yes", status=1)


def test_what_went_wrong_no_option_was_named_after_a_stop_by_what_was_spent(repo: Path) -> None:
    spends = 'echo \'{"usd": 1}\' >"$BATCH_USAGE"; echo 1 >src/one'
    write(repo, "\n[budget]\nmax_usd = 0.6\n", task("a", spends), task("b", "echo 2 >src/b"))
    near(repo, "start", "--yes", status=1)
    status = told(repo)
    assert status["reason"] == "the budget of 0.6 USD is used up: 1 USD were used"
    assert status["next_action"] == "git batch resume --plan PLAN"
    assert told(repo, "report")["next_commands"] == ["git batch resume --plan PLAN"]


@pytest.mark.parametrize("option", ["--diff", "--output"])
@pytest.mark.parametrize("name", ["seen", "parked"])
def test_what_went_wrong_a_look_at_a_task_did_not_say_what_comes_next(
    repo: Path, option: str, name: str
) -> None:
    write(
        repo,
        task("seen", "echo 1 >>src/a", 'review = "human"'),
        task("parked", "echo 2 >>src/b; echo no; exit 1"),
    )
    near(repo, "start", "--yes", status=1)
    plain, looked = near(repo, "show", name).out, near(repo, "show", name, option).out
    assert looked.endswith(plain[plain.index("\nnext:\n") :])


def test_what_went_wrong_hints_named_a_task_called_task(repo: Path) -> None:
    write(
        repo,
        task("seen", "echo 1 >>src/a", 'review = "human"'),
        task("done", "echo 2 >>src/b"),
        task("out", "true"),
    )
    near(repo, "start", "--yes", status=1)
    near(repo, "skip", "out")
    assert near(repo, "retry", "done", status=3).hints[0].endswith("git batch show done --diff")
    assert near(repo, "retry", "seen", status=3).hints[0].endswith("git batch show seen --diff")
    assert near(repo, "skip", "out", status=3).hints[0].endswith("git batch retry out")
    refused = near(repo, "review", "out", "--accept", status=3)
    assert "it is dropped" in refused.err


def test_what_went_wrong_output_was_offered_though_none_was_kept(repo: Path) -> None:
    write(
        repo,
        task("a", "echo mine >src/a", 'review = "human"'),
        task("c", "echo theirs >src/a"),
    )
    near(repo, "start", "--yes", status=1)
    near(repo, "review", "a", "--accept")
    near(repo, "resume", status=1)
    assert "does not apply" in told(repo)["tasks"][0]["reason"]
    shown = near(repo, "status").out + near(repo, "report").out
    assert "git batch show a --output" not in shown
    assert "git batch show a\n" in shown


ODD = "it's-(a)-branch&co"


def done_as_told(top: Path, command: str) -> None:
    """Run a command as a person who pastes it; `git batch` here."""
    words = shlex.split(command)
    if words[:2] == ["git", "batch"]:
        near(top, *words[2:])
    else:
        pasted(top, command)


def test_what_went_wrong_a_branchs_name_broke_the_command_that_leads_back_to_it(
    repo: Path,
) -> None:
    git(repo, "switch", "-qc", ODD)
    write(repo, task("a", "echo a >src/one"))
    out = near(repo, "start", "--yes").out
    done_as_told(repo, out.partition("back:")[2].strip())
    assert git(repo, "branch", "--show-current") == ODD


def test_what_went_wrong_a_batchs_branch_by_an_odd_name_could_not_be_made_again(
    repo: Path,
) -> None:
    write(repo, task("a", "echo a >src/one"))
    near(repo, "start", "--yes", "--branch", ODD)
    git(repo, "switch", "-q", "main")
    for ask, hint in (("verify", False), ("bless", True)):
        git(repo, "branch", "-q", "-D", ODD)
        done = near(repo, ask, "demo", status=None)
        way = done.hints[0] if hint else done.out.splitlines()[-1].strip()
        done_as_told(repo, way)
        assert near(repo, "verify", "demo").out.startswith("ok: ")


def test_what_went_wrong_a_start_was_told_to_bring_more_without_its_plan(repo: Path) -> None:
    place = write(repo.parent, task("a", "echo a >src/one"), name="my plan.toml")
    past = '[budget]\ndeadline = "2020-01-01T00:00:00Z"\n'
    place.write_text(place.read_text().replace("\n[[task]]", f"\n{past}\n[[task]]"))
    (way,) = near(repo, "start", "../my plan.toml", "--yes", status=3).hints
    near(repo, *shlex.split(way)[2:], "--yes")


def test_what_went_wrong_a_plan_with_a_space_in_its_name_could_not_be_started(
    repo: Path,
) -> None:
    write(repo, task("a", "echo a >src/one; exit 1"))
    near(repo, "start", "--yes", status=1)
    git(repo, "switch", "-q", "main")
    (repo / "batch.toml").unlink()
    other = write(repo.parent, task("b", "echo b >src/two"), name="my plan.toml")
    other.write_text(other.read_text().replace('"demo"', '"other"'))
    (hint,) = near(repo, "resume", "--plan", "../my plan.toml", status=2).hints
    near(repo, *shlex.split(hint.partition(": ")[2])[2:], "--yes")


@pytest.mark.parametrize("named", [(), ("-o", "a plan.toml")])
def test_what_went_wrong_a_new_plan_was_not_found_by_the_command_that_checks_it(
    repo: Path, named: tuple[str, ...]
) -> None:
    for place in (repo, repo / "src"):
        said = near(place, "new", *named).out
        done_as_told(place, said.partition("see what it means: ")[2].strip())
        (place / (named[-1] if named else "batch.toml")).unlink()
