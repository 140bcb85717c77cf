"""What somebody met who used git-batch for the first time, by what was said and done wrongly."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, task, told, write
from tests.e2e.near import by_hand, finished, near, record, said

ONE = task("one", "echo one >src/one")


@pytest.fixture
def lost(template: Path, tmp_path: Path) -> Path:
    """A working tree on a batch's branch whose record was deleted, beside another batch's."""
    top = finished(template, tmp_path / "repo", ONE)
    other = record(top)
    git(top, "switch", "-q", "main")
    text = (top / "batch.toml").read_text()
    parts = ONE + task("two", "exit 1")
    (top / "batch.toml").write_text(text.split("\n[[task]]")[0].replace("demo", "lost") + parts)
    near(top, "start", "--yes", status=1)
    refs = git(top, "for-each-ref", "--format=%(refname)", "refs/notes/batch").split()
    git(top, "update-ref", "-d", next(ref for ref in refs if ref != other))
    return top


@pytest.mark.parametrize("command", [("status",), ("report",), ("log",)])
def test_what_went_wrong_where_a_record_was_lost_another_batch_was_shown(
    lost: Path, command: tuple[str, ...]
) -> None:
    done = said(near(lost, *command, status=None))
    assert "is not here" in done
    assert "git batch recover batch/lost" in done
    assert "demo-" not in done
    assert told(lost, "status")["batch_id"] != told(lost, "status", "demo")["batch_id"]


@pytest.mark.parametrize("command", [("retry", "one"), ("undo", "one"), ("resume",), ("bless",)])
def test_what_went_wrong_where_a_record_was_lost_another_batch_was_acted_on(
    lost: Path, command: tuple[str, ...]
) -> None:
    before = git(lost, "for-each-ref")
    assert near(lost, *command, status=3).hints == ["get it: git batch recover batch/lost"]
    assert git(lost, "for-each-ref") == before
    assert "lost-" in said(near(lost, "verify", status=3))
    near(lost, "recover")
    assert told(lost)["slug"] == "lost"


def test_what_went_wrong_a_list_said_there_was_no_batch_where_a_record_was_lost(
    template: Path, tmp_path: Path
) -> None:
    top = finished(template, tmp_path / "repo", ONE)
    git(top, "update-ref", "-d", record(top))
    out = near(top, "list").out
    assert "no batch in this repository" not in out
    assert "get it: git batch recover batch/demo" in out


def test_a_branch_that_only_has_the_commits_of_a_batch_is_not_its_branch(lost: Path) -> None:
    git(lost, "switch", "-qc", "batch/mine")
    assert told(lost)["slug"] == "demo"
    git(lost, "switch", "-q", "main")
    git(lost, "merge", "-q", "--ff-only", "batch/lost")
    assert told(lost)["slug"] == "demo"


@pytest.fixture
def two(template: Path, tmp_path: Path) -> Path:
    """A working tree on `main` with a batch that needs a person and, newer, one of the same."""
    top = tmp_path / "repo"
    shutil.copytree(template, top, symlinks=True)
    for name in ("demo", "newer"):
        path = write(top, ONE, task("two", "exit 1"))
        path.write_text(path.read_text().replace("demo", name))
        near(top, "start", "--yes", status=1)
        git(top, "switch", "-q", "main")
    return top


def test_what_went_wrong_the_report_of_another_batch_was_pointed_at(two: Path) -> None:
    near(two, "abandon", "demo")  # a decision: which tasks need a person is not listed any more
    batch = told(two, "status", "demo")["batch_id"]
    assert f"see git batch report {batch}\n" in near(two, "status", "demo").out
    git(two, "switch", "-q", BRANCH)
    assert "see git batch report\n" in near(two, "status").out


def test_what_went_wrong_a_hint_for_a_batch_that_was_named_meant_another(two: Path) -> None:
    git(two, "switch", "-q", BRANCH)
    by_hand(two)
    git(two, "switch", "-q", "main")
    [hint] = near(two, "undo", "demo:one", status=3).hints
    near(two, *hint.split()[2:])
    assert told(two, "status", "demo")["drift"] == []


def test_what_went_wrong_adopt_took_a_branch_with_a_commit_on_top_for_one_not_checked_out(
    two: Path,
) -> None:
    git(two, "switch", "-q", BRANCH)
    by_hand(two)
    (two / "src/fix").write_text("fix")
    done = near(two, "adopt", "two", status=3)
    assert done.err.startswith("error: foreign commits: ")
    assert done.hints == ["git batch bless"]
    near(two, "bless")
    near(two, "adopt", "two")


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize(
    "command", [("resume", "demo"), ("undo", "demo:one"), ("adopt", "demo:two")]
)
def test_what_went_wrong_a_branch_of_another_working_tree_was_to_be_checked_out(
    two: Path, tmp_path: Path, command: tuple[str, ...], gone: bool
) -> None:
    git(two, "worktree", "add", "-q", str(tmp_path / "other tree"), BRANCH)
    near(two, "retry", "demo:two") if command[0] == "resume" else None
    if gone:
        shutil.rmtree(tmp_path / "other tree")
    done = near(two, *command, status=3)
    assert ", and that is gone" in done.err if gone else "which is checked out in" in done.err
    shown = f"{done.hints[0]} && git symbolic-ref HEAD"
    at = subprocess.run(shown, shell=True, cwd=two, check=True, capture_output=True, text=True)
    assert at.stdout == f"refs/heads/{BRANCH}\n"


@pytest.mark.parametrize("command", [("status",), ("verify",)])
def test_what_went_wrong_commits_on_an_abandoned_batch_were_to_be_blessed(
    two: Path, command: tuple[str, ...]
) -> None:
    git(two, "switch", "-q", BRANCH)
    near(two, "abandon")
    mine = by_hand(two)
    out = near(two, *command, status=None).out
    assert "bless" not in out
    [way] = [line for line in out.splitlines() if "git reset --keep" in line]
    shell = way[way.index("git switch") :]
    subprocess.run(shell, shell=True, cwd=two, check=True, capture_output=True)
    near(two, "verify")
    assert git(two, "rev-parse", f"{BRANCH}-aside-{mine[:10]}") == mine


@pytest.mark.parametrize("bounds", [("--max-tasks", "3"), ("--max-tasks", "+1")])
def test_what_went_wrong_more_was_said_to_run_than_the_budget_allows(
    two: Path, bounds: tuple[str, ...]
) -> None:
    git(two, "switch", "-q", BRANCH)
    more = "".join(task(name, f"echo {name} >src/{name}") for name in ("three", "four"))
    path = write(two, "baseline = true\n", ONE, task("two", "exit 1"), more)
    shown = near(two, "resume", "--yes", "--plan", str(path), *bounds, status=1).out
    assert "budget:     3 enrollments in all, 2 of them made\n" in shown
    assert "2 tasks will run, in this order, until the budget is used up:\n" in shown
    assert "all checks run on the base first" not in shown
    assert told(two)["counts"]["pending"] == 1
    shown = near(two, "resume", "--yes", "--max-tasks", "+1", status=1).out
    assert "1 task will run, in this order:\n" in shown


def test_what_went_wrong_a_first_confirmation_promised_more_than_its_budget(repo: Path) -> None:
    write(repo, ONE, task("two", "echo two >src/two"))
    shown = near(repo, "start", "--dry-run", "--max-tasks", "1").out
    assert "budget:     1 enrollment\n" in shown
    assert "2 tasks will run, in this order, until the budget is used up:\n" in shown
    assert "2 tasks will run, in this order:\n" in near(repo, "start", "--dry-run").out


def test_what_went_wrong_a_renewal_listed_an_untracked_file_that_was_not_there(two: Path) -> None:
    git(two, "switch", "-q", BRANCH)
    (two / "batch.toml").unlink()
    near(two, "retry", "two")
    shown = near(two, "resume", "--yes", "--max-tasks", "+1", status=1).out
    assert "accepted as untracked, in no commit (1):\n  batch.toml\n" in shown
    assert "\nuntracked, in no commit" not in shown


@pytest.mark.parametrize("command", ["status", "list", "report", "log", "verify", "check"])
def test_what_went_wrong_json_left_the_prompt_on_its_last_line(two: Path, command: str) -> None:
    assert near(two, command, "--json").out.endswith("}\n")


@pytest.mark.parametrize(
    ("status", "label", "words"),
    [
        ("failed (lineage broken)", "reason", "branch 'batch/demo' was set back: "),
        ("completed", "drift", "moved back: "),
    ],
)
def test_what_went_wrong_resume_said_nothing_of_a_branch_that_was_moved(
    two: Path, status: str, label: str, words: str
) -> None:
    git(two, "switch", "-q", BRANCH)
    if status == "completed":
        near(two, "skip", "two")
        near(two, "resume")
    git(two, "reset", "-q", "--keep", "HEAD~1")
    done = near(two, "resume", status=None)
    lines = [line.split(":", 1) for line in reversed(done.out.splitlines())]
    first = {name: said.strip() for name, said in lines}
    assert first["batch"].endswith(status)
    assert first[label].startswith(words)
    way = first["next"]
    subprocess.run(way, shell=True, cwd=two, check=True, capture_output=True)
    near(two, "verify")
    again = near(two, "resume", "--yes", status=None).out
    assert "drift:" not in again
    assert words not in again


def test_what_went_wrong_no_commit_was_said_to_be_no_batch_either(two: Path) -> None:
    done = near(two, "find", "--commit", "nonsense", status=2)
    assert done.err == "error: 'nonsense' is no commit here\n"


@pytest.mark.parametrize("plan", ["batch.toml", "plans/batch.toml"])
def test_what_went_wrong_a_hook_that_staged_the_plan_was_said_to_have_changed_it(
    repo: Path, plan: str
) -> None:
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ngit add -A\n")
    hook.chmod(0o755)
    (repo / plan).parent.mkdir(exist_ok=True)
    write(repo, ONE, name=plan)
    near(repo, "start", plan, "--yes", status=1)
    reason = told(repo)["tasks"][0]["reason"]
    assert f"it staged '{plan}', which is yours and untracked; list it in" in reason
    with (repo / ".git/info/exclude").open("a") as exclude:
        exclude.write(f"{plan}\n")
    near(repo, "retry", "one")
    near(repo, "resume")


def test_what_went_wrong_a_batch_was_said_to_be_needs_human(two: Path) -> None:
    git(two, "switch", "-q", BRANCH)
    assert "is not running: it needs a human\n" in near(two, "stop", status=3).err
    near(two, "skip", "two")
    near(two, "resume")
    assert "' is completed, so 'retry'" in near(two, "retry", "two", status=3).err


def test_what_went_wrong_show_led_to_what_it_showed(two: Path) -> None:
    git(two, "switch", "-q", BRANCH)
    assert "next:" not in near(two, "show", "one").out
    assert "\nnext:\n  git" in near(two, "show", "two").out


def test_what_went_wrong_a_fix_outside_of_the_scope_was_refused_without_a_way(two: Path) -> None:
    git(two, "switch", "-q", BRANCH)
    (two / "stray").write_text("stray")
    assert near(two, "adopt", "two", status=3).hints == [
        "move that elsewhere first, or let the task change it: git batch resume --plan FILE"
    ]


def test_what_went_wrong_a_folder_that_git_left_empty_was_listed_as_a_batch(repo: Path) -> None:
    git(repo, "update-ref", "refs/notes/batch/old-abcdef/x", "HEAD")
    git(repo, "update-ref", "-d", "refs/notes/batch/old-abcdef/x")
    (repo / ".git/refs/notes/batch/old-abcdef").mkdir(parents=True, exist_ok=True)
    for command in ("list", "status"):
        assert near(repo, command).out.startswith("no batch in this repository")
    assert "there is no batch" in near(repo, "status", "old-abcdef", status=2).err
