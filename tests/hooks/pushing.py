"""A repository with a finished batch and its remote, pushes, and the ways to break a branch."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CONFIG, git
from tests.e2e.job import BRANCH, batch, task, write
from tests.hooks.hosts import Done, call, hooks

NOWHERE = "/nowhere/python"


def finished(folder: Path) -> Path:
    """Make a repository with a completed batch of three tasks, on its branch, and its remote."""
    with pytest.MonkeyPatch.context() as patch:
        # It is made before the home of the first test.
        (folder / ".gitconfig").write_text(CONFIG)
        patch.setenv("HOME", str(folder))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))
        _make(folder)
    return folder


def _make(folder: Path) -> None:
    top = folder / "a repo"
    (top / "src/below").mkdir(parents=True)
    (top / "src/below/a").write_text("a\n")
    git(folder, "init", "-q", "--bare", str(folder / "origin.git"))
    for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "base")):
        git(top, *args)
    git(top, "remote", "add", "origin", "../origin.git")
    git(top, "push", "-q", "origin", "main")
    write(top, *(task(f"t{n}", f"echo {n} >src/{n}") for n in (1, 2, 3)))
    batch(top, "start", "--yes")


def copy_of(made: Path, place: Path) -> Path:
    """Copy it, and put the client's hooks in."""
    for name in ("a repo", "origin.git"):
        shutil.copytree(made / name, place / name, symlinks=True)
    git(place / "a repo", "update-index", "-q", "--refresh")
    hooks(place / "a repo", "install")
    return place / "a repo"


def refs(top: Path) -> dict[str, str]:
    """List all refs, of a bare repository too."""
    lines = git(top, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


def record(top: Path) -> str:
    """Name the record's ref."""
    found = [name for name in refs(top) if name.startswith("refs/notes/batch/")]
    assert len(found) == 1
    return found[0]


def push(top: Path, *what: str) -> Done:
    """Push, whatever comes of it."""
    done = call(top, "git", "push", "origin", *(what or (BRANCH,)))
    assert "Traceback" not in done.said
    assert "could not be run" not in done.said
    return done


def refused(done: Done, *words: str) -> None:
    """Insist on a refusal that says why and how to go on."""
    assert done.status == 1, done.said
    assert "error: " in done.said
    assert "hint: " in done.said
    for word in words:
        assert word in done.said


def passed(done: Done) -> None:
    """Insist on a push that went through."""
    assert done.status == 0, done.said
    assert "error: " not in done.said


def no_tool(hooks_folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Have the hooks find no git-batch: neither the interpreter nor a command on PATH."""
    shared = hooks_folder / "git-batch.sh"
    shared.write_text(shared.read_text().replace(sys.executable, NOWHERE))
    path = [p for p in os.environ["PATH"].split(":") if not Path(p, "git-batch").exists()]
    patch.setenv("PATH", ":".join(path))


def amended(top: Path) -> None:
    git(top, "commit", "-q", "--amend", "-m", "other")


def amended_with_trailers(top: Path) -> None:
    text = git(top, "log", "-1", "--format=%B")
    git(top, "commit", "-q", "--amend", "-m", text.replace("Do t3", "Do more"))


def extra_commit(top: Path) -> None:
    git(top, "commit", "-q", "--allow-empty", "-m", "by hand")


def rebased(top: Path) -> None:
    git(top, "switch", "-q", "main")
    git(top, "commit", "-q", "--allow-empty", "-m", "moved")
    git(top, "rebase", "-q", "main", BRANCH)


def dropped(top: Path) -> None:
    git(top, "rebase", "-q", "--onto", "HEAD~2", "HEAD~1", BRANCH)


def set_back(top: Path) -> None:
    git(top, "reset", "-q", "--keep", "HEAD~1")


def forged_batch(top: Path) -> None:
    text = git(top, "log", "-1", "--format=%B")
    git(top, "commit", "-q", "--amend", "-m", re.sub(r"Batch-Id: .*", "Batch-Id: x-aaaaaa", text))


def merged(top: Path) -> None:
    git(top, "branch", "side", "main")
    git(top, "switch", "-q", "side")
    git(top, "commit", "-q", "--allow-empty", "-m", "aside")
    git(top, "switch", "-q", BRANCH)
    git(top, "merge", "-q", "--no-edit", "side")


DRIFTS: list[Callable[[Path], None]] = [
    amended, amended_with_trailers, extra_commit, rebased, dropped, set_back, forged_batch, merged
]  # fmt: skip
EVERY_DRIFT = pytest.mark.parametrize("drift", DRIFTS)
