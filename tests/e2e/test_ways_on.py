"""What a person typed is taken as it is, or refused with a way that works from there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, task, told, write
from tests.e2e.near import TASKS, back_to, finished, near, record

ONE = task("one", "echo 1 >src/one")


def test_what_went_wrong_of_two_verdicts_the_last_was_recorded(repo: Path) -> None:
    write(repo, task("one", "echo 1 >src/one", 'review = "human"'))
    near(repo, "start", "--yes", status=1)
    before = git(repo, "rev-parse", record(repo))
    done = near(repo, "review", "one", "--accept", "--reject", status=2)
    assert "give one verdict" in done.err
    near(repo, "review", "one", status=2)
    assert git(repo, "rev-parse", record(repo)) == before
    near(repo, "review", "one", "--accept", "--accept")


def test_what_went_wrong_the_log_of_a_task_that_is_not_there_was_empty(
    template: Path, tmp_path: Path
) -> None:
    top = finished(template, tmp_path / "repo")
    plain = near(top, "log", "--task", "one").out
    assert "one: committed" in plain
    assert near(top, "log", "--task", f"{told(top)['batch_id']}:one").out == plain
    assert near(top, "log", "--task", "demo:one").out == plain
    for args in (("--task", "on"), ("--task", "demo:on"), ("--task", "on", "--json")):
        done = near(top, "log", *args, status=2)
        assert "there is no task 'on'" in done.err
        assert done.hints == ["did you mean 'one'?"]
    near(top, "log", "--task", "other:one", status=2)
    near(top, "log", "demo", "--task", "other:one", status=2)


@pytest.mark.parametrize("command", [("resume",), ("skip", "one"), ("push",)])
def test_what_went_wrong_without_the_record_a_clone_was_told_to_begin_anew(
    repo: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    write(repo, ONE, task("two", "exit 1"))
    near(repo, "start", "--yes", status=1)
    git(tmp_path, "clone", "-q", str(repo), "clone")
    done = near(tmp_path / "clone", *command, status=3)
    assert "is not here" in done.err
    [way] = [hint.removeprefix("get it: ") for hint in done.hints]
    near(tmp_path / "clone", *way.split()[2:])
    assert told(tmp_path / "clone")["outcome"] == "needs_human"


def test_what_went_wrong_undo_took_an_amended_branch_for_one_not_checked_out(
    template: Path, tmp_path: Path
) -> None:
    top = finished(template, tmp_path / "repo")
    head = git(top, "rev-parse", "HEAD")
    git(top, "commit", "-q", "--amend", "--no-edit", "--allow-empty", "--date=now", "-m", "mine")
    done = near(top, "undo", "three", status=3)
    assert done.err.startswith("error: history rewritten: ")
    assert "not checked out" not in done.err
    mine = git(top, "rev-parse", "HEAD")
    assert done.hints == [f"git switch {BRANCH} && {back_to(head, mine)}"]
    subprocess.run(done.hints[0], shell=True, cwd=top, check=True, capture_output=True)
    assert git(top, "rev-parse", "HEAD") == head
    git(top, "switch", "-q", "main")
    done = near(top, "undo", "three", status=3)
    assert done.hints == [f"git switch {BRANCH}"]
    subprocess.run(done.hints[0], shell=True, cwd=top, check=True, capture_output=True)
    near(top, "undo", "three")


def test_what_went_wrong_a_report_to_standard_output_made_a_file(
    template: Path, tmp_path: Path
) -> None:
    top = finished(template, tmp_path / "repo")
    assert near(top, "report", "-o", "-").out == near(top, "report").out
    assert json.loads(near(top, "report", "--format", "json", "-o", "-").out)["batch_id"]
    assert not (top / "-").exists()


@pytest.mark.parametrize("command", ["check", "start"])
def test_what_went_wrong_check_hinted_at_starting_what_it_should_only_read(
    repo: Path, command: str
) -> None:
    (repo / ".batch").mkdir()
    for name in ("a.toml", "b b.toml"):
        write(repo, ONE, name=f".batch/{name}")
    done = near(repo, command, status=2)
    assert done.hints == [
        f"git batch {command} .batch/a.toml",
        f"git batch {command} '.batch/b b.toml'",
    ]


def test_what_went_wrong_from_a_detached_head_there_was_no_way_back(repo: Path) -> None:
    git(repo, "switch", "-q", "--detach")
    at = git(repo, "rev-parse", "HEAD")
    write(repo, ONE)
    out = near(repo, "start", "--yes").out
    [back] = [line.split(":", 1)[1] for line in out.splitlines() if line.startswith("back")]
    subprocess.run(back, shell=True, cwd=repo, check=True, capture_output=True)
    assert git(repo, "rev-parse", "HEAD") == at
    assert subprocess.run(["git", "symbolic-ref", "-q", "HEAD"], cwd=repo, check=False).returncode


def test_what_went_wrong_an_abandoned_batch_was_to_be_resumed(repo: Path) -> None:
    write(repo, ONE, task("two", "exit 1"))
    near(repo, "start", "--yes", status=1)
    near(repo, "abandon")
    done = near(repo, "resume", status=3)
    assert "is abandoned; it does not go on" in done.err
    git(repo, "switch", "-q", "main")
    hints = near(repo, "start", "--yes", status=3).hints
    assert not any("resume" in hint for hint in hints)
    [report] = [hint.split(": ")[1] for hint in hints if "git batch report" in hint]
    near(repo, *report.split()[2:])
    near(repo, "start", "--yes", "--branch", "again", status=1)


def test_what_went_wrong_trailers_agreed_and_the_status_did_not(
    template: Path, tmp_path: Path
) -> None:
    top = finished(template, tmp_path / "repo")
    for name in reversed(TASKS):
        near(top, "undo", name)
    assert "agree with each other" in near(top, "verify", "--trailers-only").out
