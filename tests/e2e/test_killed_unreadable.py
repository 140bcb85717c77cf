"""A task left what git can't read, and its run was killed: git starts nothing there, nor us.

So each way out names the program itself, and is run here as it is written.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import committed, here, task, write
from tests.e2e.near import pasted
from tests.e2e.plants import killed, killer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and SIGKILL")

UNREADABLE = {
    "a broken configuration": 'echo "[broken" >>"$SHARED/config"',
    "a configuration that includes a broken one": (
        'echo "[broken" >"$SHARED/more"; git config include.path "$SHARED/more"'
    ),
    "an unknown extension": (
        "git config core.repositoryFormatVersion 1; git config extensions.unknown 1"
    ),
}
SHARED = 'SHARED=$(git rev-parse --path-format=absolute --git-common-dir); export SHARED="$SHARED"'


def planted(top: Path, plant: str) -> None:
    write(top, task("bad", killer(f"{SHARED}; {plant}")), task("next", "echo n >src/next"))
    killed(top, "start", "--yes")
    if "mkfifo" not in plant:  # git would wait for ever
        assert subprocess.run(["git", "rev-parse", "HEAD"], cwd=top, capture_output=True).returncode


def decided(top: Path, told: str) -> None:
    """Go on as the hint of a refusal tells, and as the next one does."""
    refused = pasted(top, told, status=3)
    assert "not what they were" in refused.stderr
    hints = [line for line in refused.stderr.splitlines() if line.startswith("hint: ")]
    assert all("git batch" not in hint for hint in hints)
    [back] = [hint for hint in hints if hint.endswith(" --put-back")]
    pasted(top, back.rpartition(": ")[2])
    assert committed(top) == ["bad", "next"]


@pytest.mark.parametrize("plant", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize(
    "command", [("status",), ("resume",), ("start", "--dry-run")], ids=" ".join
)
def test_what_went_wrong_no_way_out_was_named_that_could_be_gone(
    repo: Path, mark: Path, plant: str, command: tuple[str, ...]
) -> None:
    planted(repo, plant)
    said = here(repo, *command, status=None)
    if command == ("resume",):
        decided(repo, "git-batch resume")
        return
    [told] = said.hints
    assert told.startswith("a run was killed here while a command ran, which may have done it: ")
    decided(repo, told.rpartition(": ")[2])


@pytest.mark.parametrize("plant", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("where", ["linked", "main"])
def test_what_went_wrong_another_tree_was_told_only_what_git_said(
    repo: Path, mark: Path, place: Path, plant: str, where: str
) -> None:
    side = place / "side it's"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    (repo / ".git/info/exclude").write_text("*.toml\n")
    bad, good = (side, repo) if where == "linked" else (repo, side)
    planted(bad, plant)
    (good / "deep").mkdir()
    said = here(good / "deep", "status", status=None)
    assert "a run was killed in '" in said.err
    decided(bad, said.hints[0].rpartition(": ")[2])
    here(good, "status", "demo")


def test_what_went_wrong_only_the_other_tree_could_not_be_read_and_git_was_to_start_us_there(
    repo: Path, mark: Path, place: Path
) -> None:
    side = place / "side"
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    (repo / ".git/info/exclude").write_text("*.toml\n")
    private = 'echo "[broken" >"$(git rev-parse --git-path config.worktree)"'
    planted(side, f"git config core.editor mine; {private}")
    write(repo, task("x", "true"))
    said = here(repo, "start", "--yes", status=3)
    decided(side, said.hints[-1].rpartition(": ")[2])


def test_what_git_cant_read_without_a_killed_run_is_told_as_before(repo: Path) -> None:
    with (repo / ".git/config").open("a") as file:
        file.write("[broken\n")
    said = here(repo, "status", status=None)
    assert "bad config" in said.err
    assert not said.hints
