"""What a person is told to put away: all that is in the way, by a command that works."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from git_batch.repo.repository import Repository
from git_batch.repo.setaside import ways
from tests.conftest import git

START = "commit them elsewhere, or put them away: "


@pytest.mark.parametrize("place", [".", "src"])
@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["src/a"], "git stash"),
        (["src/a", "src/a b"], "git stash && git stash push -u -- "),
        (["src/*", ":x", "it's", "new/deep/file"], "git stash push -u -- "),
    ],
)
def test_what_went_wrong_the_stash_took_what_nobody_minded(
    repo: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], command: str, place: str
) -> None:
    for name in (*files, "batch.toml", "src/mine"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("x\n")
    monkeypatch.chdir(repo / place)
    first, then = ways(Repository.open("."), map(os.fsencode, files), "git batch resume")
    way = first.removeprefix(START)
    assert way.startswith(command)
    assert then == "then go on: git batch resume"
    subprocess.run(way, shell=True, check=True)
    left = git(repo, "status", "--porcelain", "--untracked-files=all")
    assert left.splitlines() == ["?? batch.toml", "?? src/mine"]


def test_what_git_ignores_or_can_not_be_typed_is_not_put_into_a_command(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    for name in ("x.log", "a\nb"):
        (repo / name).write_text("x\n")
    opened = Repository.open(".")
    assert ways(opened, [b"x.log"]) == ("commit them elsewhere, or move them out of the way",)
    assert ways(opened, [b"a\nb"]) == (f"{START}git stash push -u -- PATH...",)
