"""The person's own hook, beside ours: it gets what git gave, and its exit status counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.hooks.hosts import call, hooks, write_hook


@pytest.mark.parametrize("batches", [False, True])
def test_own_hook_keeps_name_arguments_input_and_status(
    repo: Path, remote: Path, told: Path, batches: bool
) -> None:
    hook = write_hook(repo / ".git/hooks/pre-push")
    hooks(repo, "install")
    if batches:  # then standard input is read before
        git(repo, "update-ref", "refs/notes/batch/other-abc123", "HEAD")
    tip = git(repo, "rev-parse", "HEAD")
    line = f"refs/heads/main {tip} refs/heads/main {'0' * 40}\n"
    assert call(repo, "git", "push", "origin", "main", env={"ENDS": "7"}).status == 1
    name, args, given = told.read_text().split("|")
    assert (repo / name).resolve() == hook.resolve()
    assert (args, given) == (f"origin {remote}", line)
    assert call(repo, "git", "push", "origin", "main").status == 0


@pytest.mark.parametrize(
    "first", ["#!/bin/sh", "#!/usr/bin/env sh", "#! /bin/sh -e", "#!/bin/bash"]
)
def test_hook_that_asks_for_its_own_name_still_works(
    repo: Path, remote: Path, told: Path, first: str
) -> None:
    """husky's hooks source a file beside them, which looks for a script by the hook's name."""
    folder = repo / ".git/hooks"
    (folder / "h").write_text('n=$(basename "$0"); . "$(dirname "$0")/../$n.own"\n')
    (repo / ".git/pre-push.own").write_text('echo "own $n $1" >>"$TOLD"\n')
    write_hook(folder / "pre-push", f'{first}\n. "$(dirname "$0")/h"\n')
    hooks(repo, "install")
    assert call(repo, "git", "push", "origin", "main").status == 0
    assert told.read_text() == "own pre-push origin\n"


def test_hook_in_another_language_runs(repo: Path, remote: Path, told: Path) -> None:
    write_hook(
        repo / ".git/hooks/pre-push",
        "#!/usr/bin/env python3\nimport os, sys\n"
        "open(os.environ['TOLD'], 'w').write(sys.argv[1] + ' ' + sys.stdin.read().split()[0])\n",
    )
    hooks(repo, "install")
    assert call(repo, "git", "push", "origin", "main").status == 0
    assert told.read_text() == "origin refs/heads/main"


def test_moved_away_by_the_pre_commit_framework(repo: Path, remote: Path, told: Path) -> None:
    """It calls a hook that it found `pre-push.legacy` and runs it from its own."""
    folder = repo / ".git/hooks"
    write_hook(folder / "pre-push")
    hooks(repo, "install")
    (folder / "pre-push").rename(folder / "pre-push.legacy")
    write_hook(folder / "pre-push", '#!/bin/sh\nexec "$0.legacy" "$@"\n')
    assert call(repo, "git", "push", "origin", "main").status == 0
    assert "origin" in told.read_text()


def test_what_another_tool_moved_aside_works_after_uninstall(
    repo: Path, remote: Path, told: Path
) -> None:
    folder = repo / ".git/hooks"
    write_hook(folder / "pre-push")
    hooks(repo, "install")
    (folder / "pre-push").rename(folder / "pre-push.legacy")
    write_hook(folder / "pre-push", '#!/bin/sh\nexec "$0.legacy" "$@"\n')
    assert "not ours" in hooks(repo, "uninstall")
    assert call(repo, "git", "push", "origin", "main").status == 0
    assert "origin" in told.read_text()


@pytest.mark.parametrize("name", ["reference-transaction", "post-rewrite"])
def test_own_hooks_of_every_kind_run(repo: Path, told: Path, name: str) -> None:
    write_hook(repo / f".git/hooks/{name}")
    hooks(repo, "install")
    git(repo, "commit", "-q", "--amend", "-m", "other")
    expected = "amend|" if name == "post-rewrite" else "committed|"
    assert expected in told.read_text()
    assert git(repo, "rev-parse", "HEAD") in told.read_text()
