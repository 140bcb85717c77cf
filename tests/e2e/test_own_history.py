"""What a task does to history itself: its commits are its work, anything else is put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, committed, here, outcomes, refs, task, tasks, write

GO_ON = task("next", "echo n >src/next")
OWN: dict[str, str] = {
    "two commits": "echo 1 >src/1; git add src; git commit -qm one; echo 2 >src/2; git add src; "
    "git commit -qm two",
    "a commit and more edits": "echo 1 >src/1; git add src; git commit -qm one; echo 2 >src/2",
    "a commit and staged edits": "echo 1 >src/1; git add src; git commit -qm one; echo 2 >src/2; "
    "git add src",
    "a commit amended": "echo 1 >src/1; git add src; git commit -qm one; echo 2 >src/2; "
    "git add src; git commit -q --amend -m two",
    "a commit with our trailers": "echo 1 >src/1; echo 2 >src/2; git add src; "
    'git commit -qm "one\n\nBatch-Id: $BATCH_ID\nBatch-Task: $BATCH_TASK"',
    "there and back": "git switch -q main; git switch -q -; echo 1 >src/1; echo 2 >src/2",
    "a commit and its undoing": "git commit -q --allow-empty -m one; git reset -q --hard HEAD~1; "
    "echo 1 >src/1; echo 2 >src/2",
    "staged only": "echo 1 >src/1; echo 2 >src/2; git add src",
}


@pytest.fixture
def two(repo: Path) -> Path:
    """Give a repository whose base has a parent, and a branch beside it."""
    git(repo, "commit", "-q", "--allow-empty", "-m", "second base")
    return repo


@pytest.mark.parametrize("run", OWN.values(), ids=OWN)
@pytest.mark.parametrize("check", ["", 'check = "test -e src/1"'])
def test_a_tasks_own_commits_become_the_one_commit(two: Path, run: str, check: str) -> None:
    write(two, task("own", run, check), GO_ON)
    here(two, "start", "--yes")
    assert committed(two) == ["own", "next"]
    changed = git(two, "diff", "--name-only", "main", f"{BRANCH}~1").split()
    assert changed == ["src/1", "src/2"]
    assert git(two, "log", "-1", "--format=%s", f"{BRANCH}~1") == "Do own"
    assert git(two, "rev-parse", f"{BRANCH}~2") == git(two, "rev-parse", "main")
    assert git(two, "status", "--porcelain") == "?? batch.toml"


def test_a_tasks_own_commits_stay_under_a_ref(two: Path) -> None:
    write(two, task("own", OWN["two commits"]))
    here(two, "start", "--yes")
    (kept,) = [name for name in refs(two) if name.endswith("/own/1-commits")]
    assert git(two, "log", "--format=%s", f"main..{kept}").split("\n") == ["two", "one"]


CHANGED: dict[str, str] = {
    "amended": "git commit -q --amend --allow-empty -m hijack",
    "reset": "git reset -q --hard HEAD~1",
    "reset softly": "git reset -q --soft HEAD~1",
    "rebased": "git commit -q --allow-empty -m x; GIT_SEQUENCE_EDITOR=true "
    "git rebase -q --force-rebase --root",
    "merged": "git switch -q -c side HEAD~1; git commit -q --allow-empty -m side; git switch -q -; "
    "git merge -q --no-edit side; git branch -q -D side",
    "orphan": "git checkout -q --orphan new; git commit -q -m orphan; git branch -M new batch/demo",
    "detached": "git checkout -q --detach; git commit -q --allow-empty -m x",
    "detached, nothing made": "git checkout -q --detach",
    "another branch": "git switch -q -c other",
    "another branch and a commit": "git switch -q -c other; git add -A src; git commit -qm x",
    "an old branch": "git switch -q main",
    "unborn": "git checkout -q --orphan other",
    "branch gone": "git checkout -q --detach; git branch -q -D batch/demo",
    "HEAD broken": "echo garbage >.git/HEAD",
    "HEAD gone": "rm .git/HEAD",
    "branch broken": "echo garbage >.git/refs/heads/batch/demo",
}


@pytest.mark.parametrize("run", CHANGED.values(), ids=CHANGED)
@pytest.mark.parametrize("which", ["command", "check"])
def test_any_other_move_is_put_back_and_the_next_task_starts_right(
    two: Path, run: str, which: str
) -> None:
    base = git(two, "rev-parse", "main")
    if which == "command":
        write(two, task("bad", f"echo c >src/c; {run}"), GO_ON)
    else:
        write(two, task("bad", "echo c >src/c", f"check = '''{run}'''"), GO_ON)
    here(two, "start", "--yes", status=1)
    assert outcomes(two) == {"bad": "history_changed", "next": "committed"}
    assert committed(two) == ["next"]
    assert git(two, "rev-parse", "main") == base
    assert git(two, "rev-parse", f"{BRANCH}~1") == base
    assert git(two, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert git(two, "status", "--porcelain") == "?? batch.toml"
    assert (two / "src/a").read_text() == "a\n"
    git(two, "fsck", "--strict")


@pytest.mark.parametrize("how", ["amended", "reset", "detached", "orphan"])
def test_both_ids_are_named_and_what_was_moved_away_is_kept(two: Path, how: str) -> None:
    base = git(two, "rev-parse", "main")
    tell = "git rev-parse HEAD >../moved"
    write(two, task("bad", f"{CHANGED[how]}; {tell}"), GO_ON)
    here(two, "start", "--yes", status=1)
    moved = (two.parent / "moved").read_text().strip()
    reason = tasks(two)["bad"]["reason"]
    assert moved in reason
    if how != "detached":
        assert base in reason
    (kept,) = [oid for name, oid in refs(two).items() if name.endswith("/bad/1-commits")]
    assert kept == moved


def test_two_things_moved_away_are_both_kept(two: Path) -> None:
    run = (
        "git commit -q --amend --allow-empty -m one; git rev-parse HEAD >../moved;"
        "git checkout -q --detach; git commit -q --allow-empty -m two;"
        "git rev-parse HEAD >>../moved"
    )
    write(two, task("bad", run))
    here(two, "start", "--yes", status=1)
    kept = {oid for name, oid in refs(two).items() if "/bad/1-commits" in name}
    assert kept == set((two.parent / "moved").read_text().split())


def test_what_a_check_commits_is_kept_beside_what_the_command_did(two: Path) -> None:
    # The second one took the first one's place under the ref.
    check = "git commit -q --allow-empty -m checked"
    write(two, task("own", OWN["two commits"], f'check = "{check}"'))
    here(two, "start", "--yes")
    kept = [git(two, "log", "-1", "--format=%s", n) for n in refs(two) if "/own/1-commits" in n]
    assert sorted(kept) == ["checked", "two"]


def test_moving_a_branch_of_somebody_else_on_the_way_is_named_too(two: Path) -> None:
    base = git(two, "rev-parse", "main")
    run = "git switch -q main; echo c >>src/a; git commit -qam x; git rev-parse HEAD >../moved"
    write(two, task("bad", run), GO_ON)
    here(two, "start", "--yes", status=1)
    moved = (two.parent / "moved").read_text().strip()
    assert outcomes(two) == {"bad": "tampered", "next": "not_run_stopped"}
    reason = tasks(two)["bad"]["reason"]
    assert f"refs/heads/main was moved from {base} to {moved}" in reason
    assert git(two, "rev-parse", "main") == moved
    assert git(two, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert git(two, "status", "--porcelain") == "?? batch.toml"
    here(two, "resume", "--yes", status=1)
    assert committed(two) == ["next"]
    assert git(two, "rev-parse", f"{BRANCH}~1") == base
