"""A `.gitmodules` that a task may write, with all that git ever ran or followed of one.

git reads that file when it works in submodules, which git-batch never asks it to; a person may have
asked for it for all commands (`submodule.recurse`). Nothing of it may run, be fetched, or be
written outside of the repository, by any command that brings such a commit into the working tree.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from git_batch.core.ids import Oid
from git_batch.repo import lineage
from git_batch.repo.repository import Repository
from tests.conftest import git
from tests.e2e.job import BRANCH, committed, everything, outcomes, task, write
from tests.e2e.modules import with_module
from tests.e2e.near import by_hand, near

HOSTILE = {
    "an option as url": 'path = mod\n\turl = "--upload-pack=touch $MARK"',
    "a transport that runs": 'path = mod\n\turl = "ext::sh -c touch% $MARK"',
    "a command as update": 'path = mod\n\turl = ./other\n\tupdate = "!touch $MARK"',
    "a path above": "path = ../..\n\turl = ./other",
    "an option as path": 'path = "-c/core.fsmonitor=touch"\n\turl = ./other',
    "the git directory": "path = .git/hooks\n\turl = ./other",
    "no file of configuration": "[[[\n\turl = = =",
}
CASES = [
    *((what, "mod") for what in HOSTILE),
    ("a path above", "../../outside"),
    ("a path above", ".."),
]


@pytest.fixture
def top(repo: Path, tmp_path: Path) -> Path:
    """Give a repository with a submodule that is there, in which git is to work by itself."""
    with_module(repo, tmp_path)
    for key in ("submodule.recurse", "fetch.recurseSubmodules"):
        git(repo, "config", key, "true")
    git(tmp_path, "clone", "-q", "--bare", str(repo), "remote.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "remote.git"))
    return repo


def hostile(top: Path, what: str, name: str) -> str:
    """Give a command that puts such a file in place of the repository's own."""
    lines = f'[submodule "{name}"]\n\t{HOSTILE[what]}\n\tignore = all\n'
    file = top.parent / "hostile"
    file.write_text(lines.replace("$MARK", str(top.parent / "mark")))
    return f"cp {file} .gitmodules"


def outside(top: Path) -> dict[str, tuple[int, bytes]]:
    found = everything(top.parent)
    inside = (top.name, "remote.git", "clone")
    return {path: what for path, what in found.items() if path.split("/")[0] not in inside}


def task_of(name: str, run: str) -> str:
    return task(name, run, 'scope = [".gitmodules", "mod", "src/**"]')


@pytest.mark.parametrize(("what", "name"), CASES)
def test_nothing_of_a_hostile_gitmodules_runs_or_is_written_outside(
    top: Path, tmp_path: Path, what: str, name: str
) -> None:
    plant = hostile(top, what, name)
    move = "git -C mod commit -q --allow-empty -m more"
    write(
        top,
        task_of("one", f"{plant}; echo 1 >src/one; {move}"),
        task_of("two", f"test -e ../flag || {{ {plant}; echo >>src/two; false; }}"),
        task_of("three", "echo 3 >src/three"),
    )
    before = outside(top)
    near(top, "start", "--yes", status=1)
    assert outcomes(top) == {"one": "committed", "two": "run_failed", "three": "committed"}
    assert "Subproject commit" in near(top, "show", "one", "--diff").out
    (top / "src/two").write_text("mine\n")
    near(top, "adopt", "two")
    near(top, "resume", "--yes", "--max-tasks", "9")
    assert near(top, "verify").out.startswith("ok: ")
    near(top, "undo", "one")
    moved(top)
    near(top, "rebase", "--onto", "main")
    near(top, "resume", "--yes", "--max-tasks", "9")
    assert near(top, "verify").out.startswith("ok: ")
    assert committed(top) == ["three", "two"]
    git(top, "config", "submodule.recurse", "false")  # git can't push ids with it
    near(top, "push")
    git(tmp_path, "clone", "-q", "remote.git", "clone")
    done = near(tmp_path / "clone", "pull", "origin", status=None)
    assert done.status == 0 or "submodule.mod.update" in done.err, done  # git refuses the file
    assert outside(top) == before


def moved(top: Path) -> None:
    """Let a person commit on `main`, in which git is not to work by itself."""
    git(top, "config", "submodule.recurse", "false")
    git(top, "switch", "-q", "main")
    by_hand(top)
    git(top, "switch", "-q", BRANCH)
    git(top, "config", "submodule.recurse", "true")


def test_what_went_wrong_a_reviewer_and_verify_did_not_see_what_gitmodules_hides(
    top: Path,
) -> None:
    hide = "git config -f .gitmodules submodule.mod.ignore all"
    move = "git -C mod commit -q --allow-empty -m more"
    seen = top.parent / "seen"
    review = f'review = ["sh", "-c", "cp $BATCH_DIFF {seen}; echo accept"]'
    part = task("one", f"{hide}; {move}", 'scope = [".gitmodules", "mod"]', review)
    write(top, part)
    near(top, "start", "--yes")
    assert "Subproject commit" in seen.read_text()
    assert "Subproject commit" in near(top, "show", "one", "--diff").out
    tip, base = (Oid(git(top, "rev-parse", f"{rev}^{{tree}}")) for rev in (BRANCH, "main"))
    found = lineage._Changes(Repository.open(str(top)).git, {0: (base, tip)}).of()
    assert [path for path, _ in found[0]] == [b".gitmodules", b"mod"]


@pytest.mark.parametrize("scope", [["src/**"], [".gitmodules", "sub", "src/**"]])
def test_no_task_adds_a_submodule(top: Path, scope: list[str]) -> None:
    url = "--upload-pack=touch ../mark"
    lines = f'[submodule "sub"]\n\tpath = sub\n\turl = {url}\n'
    (top.parent / "more").write_text(lines)
    oid = git(top, "rev-parse", "HEAD:mod")
    add = f"mkdir sub; git update-index --add --cacheinfo 160000,{oid},sub; git -C sub init -q"
    before = outside(top)
    run = f"cat ../more >>.gitmodules; {add}; git -C sub commit -q --allow-empty -m x"
    write(top, task("one", run, f"scope = {scope}", "attempts = 1"))
    near(top, "start", "--yes", status=1)
    assert outcomes(top) == {"one": "scope_refused"}
    assert outside(top) == before
