"""Two working trees of one repository: what one batch does to refs is no doing of the other's task.

The long task of one batch stands still while something happens to the other one, in the other tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.beside import beside, ended, opened
from tests.e2e.job import batch, outcomes, task, write
from tests.e2e.near import back_to, near


def other_plan(top: Path, *tasks: str) -> None:
    path = write(top, *tasks)
    path.write_text(path.read_text().replace('"demo"', '"other"'))


def whole_run(top: Path) -> None:
    """Begin and end within the task."""
    other_plan(top, task("x", "echo x >src/x"))
    batch(top, "start", "--yes")


def beginning(top: Path) -> None:
    """Begin, and stop for a person."""
    other_plan(top, task("x", "false", "attempts = 1"), task("y", "echo y >src/y"))
    batch(top, "start", "--yes", status=1)


def decision(top: Path) -> None:
    """Decide about a batch that nobody runs."""
    batch(top, "skip", "x")


def going_on(top: Path) -> None:
    """Go on with it to its end: its claim goes."""
    batch(top, "skip", "x")
    batch(top, "resume", "--yes")


def abandoning(top: Path) -> None:
    """End it for good."""
    batch(top, "abandon", "-m", "enough")


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        (None, whole_run),
        (None, beginning),
        (beginning, decision),
        (beginning, going_on),
        (beginning, abandoning),
    ],
    ids=lambda f: f.__name__ if f else "nothing",
)
def test_a_task_was_blamed_for_what_another_batch_did_meanwhile(
    repo: Path,
    before: Callable[[Path], None] | None,
    meanwhile: Callable[[Path], None],
) -> None:
    other = repo.parent / "other"
    git(repo, "worktree", "add", "-q", "-b", "side", str(other), "main")
    if before:
        before(other)
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(repo, task("a", f"read x <{gate}; echo a >src/one"), task("b", "echo b >src/two"))
    with beside(repo, "start", "--yes") as run:
        with opened(gate, run) as go:
            meanwhile(other)
            go.write("go\n")
        said = ended(run, 0)
    assert outcomes(repo) == {"a": "committed", "b": "committed"}
    assert "tampered" not in said


@pytest.mark.parametrize(
    "asked", [["resume"], ["adopt", "one"], ["undo", "two"]], ids=lambda words: words[0]
)
def test_who_stood_in_the_other_tree_was_sent_where_git_does_not_go(
    repo: Path, tmp_path: Path, asked: list[str]
) -> None:
    side = tmp_path / "si de"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    write(side, task("one", "exit 1", "attempts = 1"), task("two", "echo 2 >src/2"))
    batch(side, "start", "--yes", status=1)
    done = batch(repo, *asked, *(["demo"] if asked == ["resume"] else []), status=3)
    assert f"which is checked out in '{side}'" in done.err
    assert done.hints == [f"cd '{side}'"]


def test_a_fix_beside_a_branch_that_moved_was_said_not_to_be_checked_out(repo: Path) -> None:
    write(repo, task("one", "exit 1", "attempts = 1"))
    batch(repo, "start", "--yes", status=1)
    (repo / "src/mine").write_text("mine\n")
    git(repo, "add", "src/mine")
    git(repo, "commit", "-qm", "mine")
    done = batch(repo, "adopt", "one", status=3)
    assert "foreign commits" in done.err
    assert "checked out" not in done.err


def test_a_tree_that_is_gone_is_gone_round_and_forgotten_by_nobody(
    repo: Path, tmp_path: Path
) -> None:
    side = tmp_path / "side"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    write(side, task("one", "exit 1", "attempts = 1"), task("two", "echo 2 >src/2"))
    batch(side, "start", "--yes", status=1)
    shutil.move(side, tmp_path / "a disk that is not here")
    done = batch(repo, "resume", "demo", status=3)
    assert f"which is checked out in '{side}', and that is gone" in done.err
    subprocess.run(done.hints[0], shell=True, cwd=repo, check=True)
    batch(repo, "skip", "one")
    batch(repo, "resume", "--yes")
    assert str(side) in git(repo, "worktree", "list")


@pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
def test_what_went_wrong_the_way_back_switched_to_what_another_tree_has(
    repo: Path, tmp_path: Path, gone: bool
) -> None:
    side = tmp_path / "si de"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    write(side, task("one", "echo 1 >src/1"))
    batch(side, "start", "--yes")
    head = git(side, "rev-parse", "HEAD")
    git(side, "commit", "-q", "--amend", "-m", "other")
    batch(repo, "hooks", "install")
    git(repo, "init", "-q", "--bare", str(tmp_path / "remote"))
    back = back_to(head, git(side, "rev-parse", "HEAD"))
    there = batch(side, "push", "nowhere", "demo", status=4)
    assert there.hints[0] == f"git switch batch/demo && {back}"
    way = f"cd '{side}' && {back}"
    if gone:
        shutil.move(side, tmp_path / "a disk that is not here")
        way = f"git switch --ignore-other-worktrees batch/demo && {back}"
    pushing = ["git", "push", str(tmp_path / "remote"), "batch/demo"]
    pushed = subprocess.run(pushing, cwd=repo, capture_output=True, text=True)
    assert f"hint: {way}\n" in pushed.stderr
    for look in ("status", "report"):
        assert way in batch(repo, look, "demo").out
    assert way in batch(repo, "verify", "demo", status=4).out
    assert batch(repo, "push", "nowhere", "demo", status=4).hints[0] == way
    subprocess.run(way, shell=True, cwd=repo, check=True, capture_output=True)
    assert git(repo, "rev-parse", "batch/demo") == head
    batch(repo, "verify", "demo")


@pytest.mark.parametrize("name", ["caf\udce9 'x", "a\tb %s"])
def test_what_went_wrong_no_way_led_to_a_working_tree_whose_name_can_not_be_typed(
    repo: Path, name: str
) -> None:
    night = repo.parent / name
    git(repo, "worktree", "add", "-q", "--detach", str(night))
    write(night, task("a", "exit 1"))
    near(night, "start", "--yes", status=1)
    refused = near(repo, "resume", status=3)
    (hint,) = refused.hints
    assert len(refused.err.splitlines()) == 2
    told = subprocess.run(["/bin/sh", "-c", f"{hint} && pwd"], cwd=repo, capture_output=True)
    assert os.fsdecode(told.stdout).removesuffix("\n") == str(night)
