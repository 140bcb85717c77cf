"""Named pipes where git reads a file: it would wait for them, and nothing ended that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from git_batch.repo import patience
from tests.conftest import git
from tests.e2e.job import batch, committed, outcomes, task, write
from tests.e2e.near import near

SAID = "is a named pipe, and git would wait for it for ever"


def plan(repo: Path, pipe: str, key: str) -> Path:
    """Write a plan whose task makes a pipe, or its check; not any more once the flag is there."""
    flag = repo.parent / "flag"
    plant = f"test -e {flag} || {{ mkdir -p src/deep; mkfifo {pipe}; }}"
    run, check = ("true", plant) if key == "check" else (plant, "true")
    write(repo, task("a", f"echo a >src/one; {run}", f'check = "{check}"'))
    return flag


@pytest.mark.parametrize(
    "pipe", ["src/.gitignore", "src/.gitattributes", "src/deep/.gitignore", ".gitattributes"]
)
def test_git_waited_for_ever_for_a_pipe_that_a_task_left(
    repo: Path, monkeypatch: pytest.MonkeyPatch, pipe: str
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.2)
    flag = plan(repo, pipe, "run")
    said = near(repo, "start", "--yes", status=1)
    assert f"'{pipe}' {SAID}" in said.err
    assert "move it away, then go on: git batch resume" in said.err
    (repo / pipe).unlink()
    flag.touch()
    near(repo, "resume")
    assert committed(repo) == ["a"]
    assert (repo / "src/one").read_text() == "a\n"


def test_libgit2_waited_for_ever_for_a_pipe_that_a_check_left(repo: Path) -> None:
    plan(repo, "src/.gitignore", "check")
    stopped = batch(repo, "start", "--yes", status=1)  # the alarm of this process is the tests'
    assert f"'src/.gitignore' {SAID}" in stopped.err


def test_a_pipe_by_another_name_is_nobodys_business(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".gitignore").write_text("")
    assert patience.in_the_way(str(tmp_path)) is None
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a" / ".gitignore")
    assert patience.in_the_way(str(tmp_path)) == "a/.gitignore"


GITS_OWN = {
    ".git/HEAD": "which names a branch, as in 'ref: refs/heads/main'",
    ".git/index": "or have git make another one: git reset",
    ".git/packed-refs": "put back the file that was there",
}


@pytest.mark.parametrize("pipe", GITS_OWN)
def test_what_went_wrong_a_pipe_in_place_of_a_file_of_gits_was_waited_for(
    repo: Path, monkeypatch: pytest.MonkeyPatch, pipe: str
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.2)
    write(repo, task("a", "echo a >src/one"), task("b", "echo b >src/two"))
    git(repo, "pack-refs", "--all")
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    (repo / pipe).rename(repo / f"{pipe}.old")
    os.mkfifo(repo / pipe)
    (repo / "src/deep").mkdir()
    for command in (
        ("status",), ("status", "--json"), ("list",), ("report",), ("log",), ("verify",),
        ("start", "--yes"), ("resume", "--yes"), ("retry", "b"),
    ):  # fmt: skip
        refused = near(repo, *command, status=3)
        assert f"'{pipe}' {SAID}" in refused.err
        assert GITS_OWN[pipe] in refused.hints[0]
    assert SAID in near(repo / "src/deep", "status", status=3).err
    (repo / f"{pipe}.old").rename(repo / pipe)
    near(repo, "resume", "--yes", "--max-tasks", "2")
    assert committed(repo) == ["a", "b"]


@pytest.mark.parametrize(
    ("pipe", "outcome"),
    {
        ".git/index": "tampered",
        ".git/packed-refs": "tampered",
        ".git/config": "tampered",
        ".git/refs/heads/new": "tampered",
        ".git/HEAD": "history_changed",
        ".git/refs/heads/batch/demo": "history_changed",
    }.items(),
)
def test_what_went_wrong_a_pipe_of_a_task_in_place_of_a_file_of_gits_stopped_the_run(
    repo: Path, pipe: str, outcome: str
) -> None:
    git(repo, "pack-refs", "--all")
    before = git(repo, "for-each-ref", "refs/heads/main", "refs/tags")
    plant = f"echo a >src/one; rm -f {pipe}; mkfifo {pipe}"
    write(repo, task("a", plant), task("b", "echo b >src/two"))
    said = batch(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"a": outcome, "b": "committed"}
    if outcome == "tampered":
        new = pipe.endswith("/new")
        told = "new, and is taken away" if new else "changed and is put back"
        assert f"a: tampered: '{pipe}' was {told}\n" in said.err
    assert committed(repo) == ["b"]
    assert git(repo, "for-each-ref", "refs/heads/main", "refs/tags") == before
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


def test_what_went_wrong_a_pipe_in_place_of_a_branch_was_waited_for(repo: Path) -> None:
    write(repo, task("a", "echo a >src/one"))
    near(repo, "start", "--yes")
    git(repo, "switch", "-q", "main")
    (repo / ".git/refs/heads/batch/demo").unlink()
    os.mkfifo(repo / ".git/refs/heads/batch/demo")
    for command in ("status", "list", "report", "verify"):
        refused = batch(repo, command, status=3)
        assert "refs/heads/batch/demo" in refused.err
        assert "is a named pipe" in refused.err


def test_pipes_of_the_repository_that_a_worktree_is_of_are_found(
    repo: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", "--detach", str(tree))
    git_dir = str(repo / ".git/worktrees/tree")
    assert patience.in_the_way(str(tree), git_dir) is None
    os.mkfifo(repo / ".git/refs/heads/x")
    found = patience.in_the_way(str(tree), git_dir)
    assert found is not None
    assert (tree / found).samefile(repo / ".git/refs/heads/x")
    assert patience.in_the_way(str(repo / "src")) == "../.git/refs/heads/x"
    shutil.rmtree(repo / ".git")
    assert patience.in_the_way(str(repo / "src")) is None


def test_what_went_wrong_a_pipe_was_not_looked_for_where_a_linked_tree_belongs(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.2)
    tree = repo.parent / "tree"
    git(repo, "worktree", "add", "-q", str(tree))
    (repo / ".git/config").rename(repo / ".git/config.old")
    os.mkfifo(repo / ".git/config")
    said = near(tree, "status", status=None)
    assert f"'../repo/.git/config' {SAID}" in said.err
