"""Named pipes where git reads a file: it would wait for them, and nothing ended that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_batch.repo import patience
from tests.e2e.job import batch, committed, task, write
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
