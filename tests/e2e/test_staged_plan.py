"""Commands that stage all there is: what a person accepted as untracked stays untracked.

The plan lies in the tree and git does not know it. Agents say `git add -A` all the same, with a
commit or without one; what they stage is the person's index.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import batch, committed, here, outcomes, refs, task, write
from tests.e2e.near import near
from tests.e2e.plants import at_work
from tests.e2e.scene import eventually

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and SIGKILL")

PARKED = task("parked", "[ -e .git/go ] && echo 2 >src/two")
"""Leaves something to do. Where it comes first nothing puts the index back after the others."""

STAGES = {
    "add": "git add -A",
    "add by name": "git add batch.toml",
    "intent to add": "git add -N batch.toml",
    "commit": "git add -A && git commit -qm mine",
    "commits": "git add -A && git commit -qm mine && echo 3 >src/one && git commit -qam more",
    "hidden": "git add -A && git update-index --skip-worktree batch.toml",
    "assumed": "git add -A && git update-index --assume-unchanged batch.toml",
    "edited since": "cp batch.toml .git/x; echo '#' >>batch.toml; git add -A; cp .git/x batch.toml",
}


def goes_on(repo: Path, *, untracked: str = "?? batch.toml") -> None:
    """See that the plan is as it was, and that the batch resumes and ends."""
    assert git(repo, "status", "--porcelain") == untracked
    (repo / ".git/go").touch()
    near(repo, "retry", "parked")
    near(repo, "resume")
    assert git(repo, "status", "--porcelain") == untracked
    changed = git(repo, "log", "--format=", "--name-only", "main..batch/demo").split()
    assert set(changed) <= {"src/one", "src/two", "src/three"}
    near(repo, "verify")


@pytest.mark.parametrize("stage", STAGES)
def test_what_went_wrong_a_plan_that_a_task_had_staged_was_in_the_way_of_resume(
    repo: Path, stage: str
) -> None:
    write(repo, PARKED, task("one", f"echo 1 >src/one; {STAGES[stage]}", "attempts = 1"))
    content = (repo / "batch.toml").read_bytes()
    near(repo, "start", "--yes", status=1)
    assert committed(repo) == ["one"]
    goes_on(repo)
    assert (repo / "batch.toml").read_bytes() == content


@pytest.mark.parametrize("by", ["check", "review"])
def test_what_went_wrong_a_check_or_review_staged_the_plan(repo: Path, by: str) -> None:
    write(repo, PARKED, task("one", "echo 1 >src/one", f'{by} = "git add -A"'))
    near(repo, "start", "--yes", status=1)
    assert committed(repo) == ["one"]
    goes_on(repo)


def test_what_went_wrong_a_check_on_the_base_staged_the_plan(repo: Path) -> None:
    plan = task("parked", "echo 2 >src/two", 'check = "git add -A; [ -e .git/go ]"')
    write(repo, "baseline = true\n", plan)
    near(repo, "start", "--yes", status=1)
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    (repo / ".git/go").touch()
    near(repo, "resume")
    assert committed(repo) == ["parked"]
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


def test_what_went_wrong_a_task_without_changes_staged_the_plan(repo: Path) -> None:
    write(repo, PARKED, task("one", "git add -A", 'on_empty = "accept"'))
    near(repo, "start", "--yes", status=1)
    assert outcomes(repo)["one"] == "unchanged"
    goes_on(repo)


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg", "post-commit"])
def test_what_went_wrong_a_hook_staged_the_plan(repo: Path, name: str) -> None:
    hook = repo / ".git/hooks" / name
    hook.write_text("#!/bin/sh\nunset GIT_INDEX_FILE\ngit add -A\n")
    hook.chmod(0o755)
    (repo / "notes").mkdir()
    (repo / "notes/a").write_text("mine\n")
    write(repo, PARKED, task("one", "echo 1 >src/one"))
    near(repo, "start", "--yes", "--allow-untracked", status=1)
    assert committed(repo) == ["one"]
    goes_on(repo, untracked="?? batch.toml\n?? notes/")


def test_the_next_command_does_not_find_staged_what_one_before_it_had(repo: Path) -> None:
    look = "git ls-files >.git/seen; ! grep batch.toml .git/seen"
    write(
        repo,
        task("one", "echo 1 >src/one; git add -A", f"check = '{look}'"),
        task("two", f"{look} && echo 2 >src/two", f"check = '{look}'"),
    )
    near(repo, "start", "--yes")
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


def test_what_went_wrong_accepted_folders_and_files_were_staged_by_a_task(repo: Path) -> None:
    for name in ("notes/deep/a", "notes/b", "caf\udce9", "it's", "*"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("mine\n")
    git(repo, "init", "-q", "nested")
    git(repo / "nested", "commit", "-q", "--allow-empty", "-m", "nested")
    before = git(repo, "status", "--porcelain")
    stage = "echo >notes/new; git add -A 2>/dev/null; git ls-files --stage nested >.git/seen"
    write(repo, PARKED, task("one", f"echo 1 >src/one; {stage}"))
    near(repo, "start", "--yes", "--allow-untracked", status=1)
    assert (repo / ".git/seen").read_text().startswith("160000 ")
    assert committed(repo) == ["one"]
    lines = sorted([*before.splitlines(), "?? batch.toml"])
    now = git(repo, "status", "--porcelain").splitlines()
    assert sorted(now) == lines
    goes_on(repo, untracked="\n".join(now))


def test_what_a_task_stages_of_its_own_work_stays_staged_for_its_checks(repo: Path) -> None:
    look = "git diff --cached --name-only >.git/seen"
    write(repo, task("one", "echo 1 >src/one; git add -A", f'check = "{look}"'))
    near(repo, "start", "--yes")
    assert (repo / ".git/seen").read_text() == "src/one\n"


@pytest.mark.parametrize("kind", ["split", "sparse"])
def test_what_went_wrong_a_plan_was_staged_in_an_unusual_index(repo: Path, kind: str) -> None:
    if kind == "split":
        git(repo, "update-index", "--split-index")
    else:
        (repo / "far").mkdir()
        (repo / "far/x").write_text("x\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "far")
        git(repo, "sparse-checkout", "set", "--cone", "--sparse-index", "src")
    write(repo, PARKED, task("one", "echo 1 >src/one; git add -A"))
    near(repo, "start", "--yes", status=1)
    goes_on(repo)


ONCE = "[ -e .git/once ] || { : >.git/once; git add -A; kill -9 $PPID; exit 1; }; "


@LINUX
@pytest.mark.parametrize("by", ["run", "check", "review", "baseline"])
def test_what_went_wrong_a_run_was_killed_before_the_plan_was_taken_out(
    repo: Path, by: str
) -> None:
    baseline = "baseline = true\n" if by == "baseline" else ""
    run = f"{ONCE if by == 'run' else ''}echo 1 >src/one"
    check = f"check = '{ONCE}true'" if by in ("check", "baseline") else ""
    review = f"review = '{ONCE}true'" if by == "review" else ""
    write(repo, baseline, task("one", run, check, review))
    batch(repo, "start", "--yes", status=-9)
    eventually(lambda: not at_work(repo), "the command has ended")
    assert "A  batch.toml" in git(repo, "status", "--porcelain")
    assert "taken out of the index again: 'batch.toml'" in here(repo, "resume").err
    assert committed(repo) == ["one"]
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    near(repo, "verify")


@LINUX
def test_what_is_in_a_commit_of_a_killed_run_is_for_a_person_to_decide(repo: Path) -> None:
    kill = ONCE.replace("git add -A;", "git add -A; git commit -qm mine;")
    write(repo, task("one", f"{kill}echo 1 >src/one"))
    batch(repo, "start", "--yes", status=-9)
    eventually(lambda: not at_work(repo), "the command has ended")
    assert "foreign commits" in here(repo, "resume", status=1).out
    assert git(repo, "status", "--porcelain") == ""
    near(repo, "bless", "-m", "the plan as well")
    near(repo, "resume")
    assert committed(repo) == ["one"]
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("stage", ["git add", "git add -N"])
@pytest.mark.parametrize("folder", [".", "src"])
def test_what_a_person_stages_while_a_batch_stands_still_is_theirs(
    repo: Path, stage: str, folder: str
) -> None:
    (repo / "notes").mkdir()
    (repo / "notes/it's").write_text("mine\n")
    write(repo, PARKED, task("one", "echo 1 >src/one; git add -A"))
    near(repo, "start", "--yes", "--allow-untracked", status=1)
    git(repo, *stage.split()[1:], "batch.toml", "notes")
    before, status = refs(repo), git(repo, "status", "--porcelain")
    done = near(repo / folder, "resume", status=3)
    assert "\tbatch.toml\n\tnotes/it's\n" in done.err
    assert git(repo, "status", "--porcelain") == status
    assert refs(repo) == before
    (hint,) = done.hints
    way = hint.partition(": ")[2]
    assert way.startswith("git reset --quiet -- ")
    subprocess.run(way, shell=True, cwd=repo / folder, check=True)
    goes_on(repo, untracked="?? batch.toml\n?? notes/")


def test_what_is_staged_and_edited_since_is_not_said_to_be_taken_out(repo: Path) -> None:
    write(repo, PARKED)
    near(repo, "start", "--yes", status=1)
    git(repo, "add", "batch.toml")
    with (repo / "batch.toml").open("a") as plan:
        plan.write("# what is staged is nowhere else\n")
    assert "git reset" not in near(repo, "resume", status=3).err


def test_what_went_wrong_a_plan_that_a_person_had_staged_was_to_be_stashed(repo: Path) -> None:
    write(repo, PARKED)
    near(repo, "start", "--yes", status=1)
    git(repo, "add", "batch.toml")
    (repo / "src/a").write_text("mine\n")
    for hint in near(repo, "resume", status=3).hints:
        subprocess.run(hint.rpartition(": ")[2], shell=True, cwd=repo, check=True)
    goes_on(repo)
