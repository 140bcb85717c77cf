"""What a person is kept from while a batch runs, and told when a rewrite broke a branch."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, argv, task, write
from tests.e2e.scene import environment
from tests.hooks.hosts import call
from tests.hooks.pushing import passed, push


@pytest.fixture
def live(top: Path) -> Iterator[Path]:
    """Start a batch whose second task waits; give its top when it does."""
    gate = top.parent / "gate"
    git(top, "switch", "-q", "main")
    write(
        top,
        task("one", "echo 1 >src/x"),
        task("two", f"while [ ! -e '{gate}' ]; do sleep 0.05; done"),
    )
    text = (top / "batch.toml").read_text()
    (top / "batch.toml").write_text(text.replace('slug = "demo"', 'slug = "live"'))
    run = subprocess.Popen(
        argv("start", "--yes"), cwd=top, env=environment(), stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    limit = time.monotonic() + 20
    while git(top, "rev-list", "--count", "--all", "--", "src/x") != "1":
        assert time.monotonic() < limit
        time.sleep(0.05)
    yield top
    gate.touch()
    run.wait(20)


class TestLive:
    def test_its_lineage_may_be_pushed(self, live: Path) -> None:
        passed(push(live, "batch/live"))

    def test_nobody_else_moves_its_branch(self, live: Path) -> None:
        before = git(live, "rev-parse", "batch/live")
        for command in (
            ("commit", "-q", "--allow-empty", "-m", "mine"),
            ("commit", "-q", "--amend", "-m", "mine"),
            ("reset", "-q", "--soft", "HEAD~1"),
            ("update-ref", "refs/heads/batch/live", "main"),
            ("merge", "-q", "--no-ff", "-m", "mine", "batch/demo"),
        ):
            done = call(live, "git", *command)
            assert done.status != 0, command
            assert "error: 'batch/live' can't be moved" in done.said, command
            assert "is being run by process" in done.said
            assert "hint: " in done.said
            assert git(live, "rev-parse", "batch/live") == before

    def test_other_branches_move_and_tasks_commit(self, live: Path) -> None:
        assert call(live, "git", "update-ref", "refs/heads/side", "main").status == 0
        assert call(live, "git", "pack-refs", "--all").status == 0
        assert call(live, "git", "gc", "-q").status == 0
        commit = ("git", "commit", "-q", "--allow-empty", "-m", "by the task")
        assert call(live, *commit, env={"BATCH_TASK": "two"}).status == 0

    def test_other_worktrees_are_free(self, live: Path) -> None:
        git(live, "worktree", "add", "-q", "-b", "tree", "../a tree", "main")
        tree = live.parent / "a tree"
        assert call(tree, "git", "commit", "-q", "--allow-empty", "-m", "mine").status == 0
        done = call(tree, "git", "update-ref", "refs/heads/batch/live", "main")
        assert "can't be moved" in done.said


def test_own_commit_is_possible_when_the_run_is_over(top: Path) -> None:
    done = call(top, "git", "commit", "-q", "--allow-empty", "-m", "mine")
    assert (done.status, done.said) == (0, "")


class TestRewrites:
    def test_amend_is_told_at_once(self, top: Path) -> None:
        before = git(top, "rev-parse", "HEAD")
        done = call(top, "git", "commit", "-q", "--amend", "-m", "other")
        assert done.status == 0
        assert "warning: this amend broke a batch's branch" in done.said
        assert f"hint: before, the branch was at {before}" in done.said
        aside = f"git branch batch/demo-aside-{git(top, 'rev-parse', 'HEAD')[:10]} ORIG_HEAD"
        way = f"git switch batch/demo && git reset --keep {before} && {aside}"
        assert f"hint: {way}" in done.said

    def test_rebase_is_told_at_once(self, top: Path) -> None:
        git(top, "switch", "-q", "main")
        git(top, "commit", "-q", "--allow-empty", "-m", "moved")
        done = call(top, "git", "rebase", "-q", "main", BRANCH)
        assert done.status == 0
        assert "warning: this rebase broke a batch's branch" in done.said
        assert re.search(r"hint: to rebase a batch: git batch rebase demo-\w+ --onto", done.said)

    def test_other_branches_are_not_mentioned(self, top: Path) -> None:
        git(top, "switch", "-q", "main")
        done = call(top, "git", "commit", "-q", "--amend", "-m", "other")
        assert (done.status, done.said) == (0, "")
