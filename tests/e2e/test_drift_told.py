"""Drift is told wherever a person looks, with the way back; each command that is told works."""

from __future__ import annotations

import re
import subprocess
from html import unescape
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, committed, task, told, write
from tests.e2e.near import (
    PASSED,
    back_to,
    by_hand,
    finished,
    near,
    pasted,
    record,
    said,
    while_it_passes,
)

FORMS = (
    ("status",),
    ("report",),
    ("report", "--format", "markdown"),
    ("report", "--format", "html"),
)


@pytest.fixture
def top(template: Path, tmp_path: Path) -> Path:
    """Give a repository with a completed batch."""
    return finished(template, tmp_path / "top")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form))
def test_what_went_wrong_a_report_knew_nothing_of_drift(top: Path, form: tuple[str, ...]) -> None:
    head = git(top, "rev-parse", "HEAD")
    git(top, "commit", "-q", "--amend", "-m", "other")
    now = git(top, "rev-parse", "HEAD")
    shown = unescape(said(near(top, *form, "demo")))
    assert "history rewritten: " in shown
    assert f"batch/demo at {now[:10]}, recorded at {head[:10]}" in shown
    assert f"git switch batch/demo && {back_to(head, now)}" in shown
    assert f"git range-diff {git(top, 'rev-parse', 'main')} {head} {now}" in shown


def test_what_went_wrong_the_next_command_of_a_deleted_branch_failed(top: Path) -> None:
    git(top, "switch", "-q", "main")
    git(top, "branch", "-q", "-D", BRANCH)
    shown = near(top, "report", "demo").out
    assert "batch/demo does not exist, recorded at " in shown
    said_next = told(top, "report", "demo")["next_commands"]
    assert next(c for c in said_next if "batch/demo" in c).startswith("git branch batch/demo ")
    for command in said_next:
        if command.startswith("git batch "):
            near(top, *command.split()[2:])
        else:
            pasted(top, command)
    assert told(top, "report", "demo")["next_commands"][0].startswith("git log --oneline")


@pytest.mark.parametrize("here", [True, False])
def test_the_way_back_after_an_amend_works_from_any_branch(top: Path, here: bool) -> None:
    main, head = git(top, "rev-parse", "main"), git(top, "rev-parse", BRANCH)
    git(top, "commit", "-q", "--amend", "-m", "other")
    if not here:
        git(top, "switch", "-q", "main")
    way = f"git switch batch/demo && {back_to(head, git(top, 'rev-parse', BRANCH))}"
    assert re.search(rf"next: +{re.escape(way)}\n", near(top, "status", "demo").out)
    assert near(top, "push", "nowhere", "demo", status=4).hints[0] == way
    assert way in near(top, "verify", "demo", status=4).out
    pasted(top, way)
    assert (git(top, "rev-parse", BRANCH), git(top, "rev-parse", "main")) == (head, main)
    near(top, "verify", "demo")


def test_what_went_wrong_a_failed_batch_whose_branch_is_right_again_was_led_astray(
    repo: Path,
) -> None:
    write(repo, task("a", "echo 1 >src/one"), task("b", "echo 2 >src/two"))
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    head = git(repo, "rev-parse", "HEAD")
    git(repo, "commit", "-q", "--amend", "-m", "other")
    near(repo, "resume", "--yes", "--max-tasks", "2", status=4)
    assert told(repo)["state"] == "failed"
    assert "git reset --keep" in near(repo, "resume", "--yes", status=3).hints[0]
    git(repo, "reset", "-q", "--keep", head)
    assert told(repo)["next_action"] == "git batch resume"
    assert near(repo, "status").out.endswith("git batch resume\n")
    assert told(repo, "report")["next_commands"] == ["git batch resume", "git batch verify"]
    near(repo, "resume", "--yes")


@pytest.mark.parametrize(
    ("moved", "state", "way"),
    [("on top", "needs_human", "git batch bless"), ("amended", "failed", "git switch ")],
)
def test_what_went_wrong_a_resume_with_nothing_to_run_kept_the_drift_to_itself(
    repo: Path, moved: str, state: str, way: str
) -> None:
    write(repo, task("a", "echo a >src/one"), task("b", "exec ./try", "attempts = 1"))
    near(repo, "start", "--yes", status=1)
    head = git(repo, "rev-parse", "HEAD")
    if moved == "on top":
        by_hand(repo)
    else:
        git(repo, "commit", "-q", "--amend", "-m", "other")
    done = near(repo, "resume", status=1 if state == "needs_human" else 4)
    assert re.findall(r"next: +(.*)\n", done.out)[0].startswith(way)
    tip = git(repo, "rev-parse", "HEAD")
    stands = told(repo)
    assert (stands["state"], tip in stands["reason"], head in stands["reason"]) == (state, 1, 1)
    said_once = git(repo, "rev-parse", record(repo))
    near(repo, "resume", status=None)
    assert git(repo, "rev-parse", record(repo)) == said_once
    pasted(repo, told(repo)["next_action"]) if state == "failed" else near(repo, "bless")
    near(repo, "resume", "--yes", status=1)
    assert (told(repo)["state"], told(repo)["reason"]) == ("needs_human", "'b' needs a person")
    near(repo, "skip", "b")
    near(repo, "resume")
    assert committed(repo)[0] == "a"


def test_what_went_wrong_the_way_back_worked_once_only(top: Path) -> None:
    head = git(top, "rev-parse", BRANCH)
    for words in ("mine", "mine again"):
        git(top, "commit", "-q", "--amend", "-m", words)
        mine = git(top, "rev-parse", BRANCH)
        git(top, "branch", "-f", "kept", mine)
        pasted(top, told(top)["next_action"])
        assert git(top, "rev-parse", f"{BRANCH}-aside-{mine[:10]}") == mine
        assert git(top, "rev-parse", BRANCH) == head
        near(top, "verify")


def test_what_went_wrong_the_way_back_that_git_refused_could_not_be_pasted_again(
    top: Path,
) -> None:
    head = git(top, "rev-parse", BRANCH)
    (top / "src/mine").write_text("mine\n")
    git(top, "add", "src/mine")
    git(top, "commit", "-q", "--amend", "-m", "mine")
    mine = git(top, "rev-parse", BRANCH)
    (top / "src/mine").write_text("and an edit\n")
    way = told(top)["next_action"]
    with pytest.raises(subprocess.CalledProcessError):
        pasted(top, way)
    assert (git(top, "rev-parse", BRANCH), (top / "src/mine").read_text()) == (
        mine,
        "and an edit\n",
    )
    git(top, "stash", "-q")
    pasted(top, way)
    assert git(top, "rev-parse", BRANCH) == head
    assert git(top, "rev-parse", f"{BRANCH}-aside-{mine[:10]}") == mine


def test_what_went_wrong_a_merge_on_top_was_to_be_blessed(repo: Path) -> None:
    write(repo, task("one", "echo 1 >src/1"), task("two", "exit 1"))
    near(repo, "start", "--yes", status=1)
    head = git(repo, "rev-parse", BRANCH)
    moved = git(repo, "commit-tree", "-p", "main", "-m", "moved", "main^{tree}")
    git(repo, "merge", "-q", "--no-edit", moved)
    merge = git(repo, "rev-parse", BRANCH)
    way = f"git switch {BRANCH} && {back_to(head, merge)}"
    assert told(repo)["next_action"] == way
    assert near(repo, "adopt", "two", status=3).hints[0] == way
    near(repo, "resume", "--yes", status=1)
    assert told(repo)["next_action"] == way
    assert "git batch bless" not in near(repo, "report").out
    pasted(repo, way)
    near(repo, "retry", "two")
    near(repo, "resume", "--yes", status=1)


def test_what_went_wrong_a_copy_of_a_tasks_commit_was_to_be_blessed(top: Path) -> None:
    git(top, "cherry-pick", "--keep-redundant-commits", "HEAD~1")
    shown = near(top, "status").out
    assert "with trailers of a batch among what came" in shown
    assert "bless" not in shown
    way = told(top)["next_action"]
    assert way.startswith("git batch verify ")
    out = near(top, *way.split()[2:], status=4).out
    assert "git reset --keep" in out


def test_what_went_wrong_with_a_deleted_branch_checked_out_a_stash_was_told_of(repo: Path) -> None:
    write(repo, task("one", "echo 1 >src/1"), task("two", "exit 1"))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "two")
    head = git(repo, "rev-parse", BRANCH)
    git(repo, "update-ref", "-d", f"refs/heads/{BRANCH}")
    done = near(repo, "resume", "--yes", status=4)
    assert "the working tree has changes" not in done.err
    assert told(repo)["next_action"] == f"git branch {BRANCH} {head}"
    pasted(repo, told(repo)["next_action"])
    near(repo, "resume", "--yes", status=1)
    assert committed(repo) == ["one"]


def test_what_went_wrong_a_branch_that_was_deleted_before_its_first_commit_held_up_a_resume(
    repo: Path,
) -> None:
    write(repo, task("one", "echo 1 >src/1"))
    with while_it_passes(repo):
        near(repo, "start", "--yes", "--expires", PASSED, status=1)
    git(repo, "update-ref", "-d", f"refs/heads/{BRANCH}")
    (repo / "src/a").write_text("a person's\n")
    done = near(repo, "resume", "--yes", "--expires", "1h", status=3)
    assert done.err.startswith("error: the working tree has changes that no task made:\n\tsrc/a\n")
    git(repo, "stash", "-q")
    git(repo, "update-ref", "-d", f"refs/heads/{BRANCH}")
    near(repo, "resume", "--yes", "--expires", "1h")
    assert committed(repo) == ["one"]


def test_what_went_wrong_a_new_root_was_to_be_made_where_a_batchs_branch_was_deleted(
    top: Path,
) -> None:
    git(top, "update-ref", "-d", f"refs/heads/{BRANCH}")
    done = near(top, "start", "--yes", "--branch", "other", status=3)
    assert done.err.startswith(f"error: there is no commit yet on branch '{BRANCH}', so ")
    assert done.hints == ["go to a branch that has one: git switch BRANCH"]
