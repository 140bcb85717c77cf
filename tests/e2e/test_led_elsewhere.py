"""A task that leads git to another configuration than the one that is watched runs nothing of it.

Which git directory, and so which configuration, git takes is said by files of a line each: the
`commondir` in one, and the `.git` of a submodule. Which repositories it enters says an index.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, committed, here, outcomes, task, tasks, write
from tests.e2e.modules import ALLOWED, with_module
from tests.e2e.near import near
from tests.e2e.plants import is_undone

GO_ON = task("next", "echo n >src/next")
PLANT = 'git config -f "$EVIL/config" core.fsmonitor "touch $MARK; false"'
"""What is run by whichever git reads that copy of a configuration."""


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a file that whatever is planted makes; tasks copy a git directory to $EVIL."""
    path = tmp_path / "mark"
    monkeypatch.setenv("MARK", str(path))
    monkeypatch.setenv("EVIL", str(tmp_path / "evil"))
    return path


@pytest.fixture
def module(repo: Path, tmp_path: Path) -> Path:
    """Give the repository a submodule `mod`."""
    return with_module(repo, tmp_path)


def planted(top: Path, mark: Path, plant: str, where: str) -> None:
    """Run a task that plants something, and see that it was found out, put back and never run."""
    write(top, task("bad", f"echo c >src/c; {plant}", 'check = "true"'), GO_ON)
    here(top, "start", "--yes", status=1)
    assert outcomes(top) == {"bad": "tampered", "next": "committed"}
    assert is_undone(tasks(top)["bad"]["reason"], where)
    git(top, "status")
    assert not mark.exists()


def test_what_went_wrong_a_commondir_led_git_to_another_repository(repo: Path, mark: Path) -> None:
    plant = f'cp -r .git "$EVIL"; {PLANT}; echo "$EVIL" >.git/commondir'
    planted(repo, mark, plant, ".git/commondir")
    assert not (repo / ".git/commondir").exists()
    git(repo, "fsck", "--strict")


@pytest.mark.parametrize(
    ("lead", "where"),
    [
        ('echo "$EVIL" >.git/modules/mod/commondir', ".git/modules/mod/commondir"),
        ('echo "gitdir: $EVIL" >mod/.git', "mod/.git"),
    ],
)
def test_what_went_wrong_a_submodule_was_led_to_another_repository(
    repo: Path, module: Path, mark: Path, lead: str, where: str
) -> None:
    work = f'git config -f "$EVIL/config" core.worktree {module}'
    planted(repo, mark, f'cp -r .git/modules/mod "$EVIL"; {PLANT}; {work}; {lead}', where)
    assert (module / ".git").read_text() == "gitdir: ../.git/modules/mod\n"


def test_what_went_wrong_a_submodule_of_a_linked_working_tree_was_not_watched(
    repo: Path, module: Path, mark: Path
) -> None:
    night = repo.parent / "night"
    git(repo, "worktree", "add", "-q", "--detach", str(night))
    git(night, *ALLOWED, "submodule", "-q", "update", "--init")
    plant = 'git -C mod config core.fsmonitor "touch $MARK; false"'
    planted(night, mark, plant, ".git/worktrees/night/modules/mod/config")


def test_a_submodule_may_be_removed_where_the_scope_allows_it(repo: Path, module: Path) -> None:
    remove = task("one", "git rm -q mod", 'scope = [".gitmodules", "mod"]')
    write(repo, remove, GO_ON)
    near(repo, "start", "--yes")
    assert committed(repo) == ["one", "next"]
    assert not module.exists()
    assert "mod" not in git(repo, "ls-tree", "--name-only", BRANCH).split()


REPOSITORY = (
    'git init -q "$D"; echo y >"$D/y"; git -C "$D" add y; git -C "$D" commit -qm y; '
    'echo z >"$D/y"; git -C "$D" config core.fsmonitor "touch $MARK; false"; '
)
"""Makes a repository at $D that runs something as soon as git looks at its files."""


def entered(index_of: str, name: str) -> str:
    """Give a command that has an index name a repository that was planted as a submodule."""
    where = f"{index_of}/{name}"
    at = f'160000,"$(git -C {where} rev-parse HEAD)",{name}'
    return f"D={where}; {REPOSITORY} git -C {index_of} update-index --add --cacheinfo {at}"


def test_what_went_wrong_a_submodule_of_a_submodule_was_led_to_another_repository(
    repo: Path, module: Path, tmp_path: Path, mark: Path
) -> None:
    inner = tmp_path / "inner"
    git(tmp_path, "clone", "-q", str(tmp_path / "other"), str(inner))
    git(module, *ALLOWED, "submodule", "-q", "add", str(inner), "sub")
    git(module, "commit", "-qm", "sub")
    git(repo, "commit", "-qam", "module of a module")
    at = f'git config -f "$EVIL/config" core.worktree {module / "sub"}'
    lead = 'echo "gitdir: $EVIL" >mod/sub/.git'
    plant = f'cp -r .git/modules/mod/modules/sub "$EVIL"; {PLANT}; {at}; {lead}'
    planted(repo, mark, plant, "mod/sub/.git")
    assert git(module / "sub", "rev-parse", "--git-dir").endswith("/.git/modules/mod/modules/sub")


def test_what_went_wrong_the_index_of_a_submodule_led_to_another_repository(
    repo: Path, module: Path, mark: Path
) -> None:
    write(repo, task("bad", f"echo c >src/c; {entered('mod', 'x')}"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert "'mod/x/.git' was new, and is taken away; it is in '" in tasks(repo)["bad"]["reason"]
    assert not mark.exists()


@pytest.mark.parametrize("version", ["2", "4", "split"])
def test_what_went_wrong_the_persons_index_led_a_later_command_to_another_repository(
    repo: Path, mark: Path, version: str
) -> None:
    how = "--split-index" if version == "split" else f"--index-version {version}"
    plant = f"git update-index {how}; {entered('.', 'build')}"
    (repo / ".git/info/exclude").write_text("build\n")
    write(repo, GO_ON, task("bad", f"echo c >src/c; {plant}"))
    here(repo, "start", "--yes")
    assert "build" not in git(repo, "ls-files"), "it is taken out of the index again"
    assert (repo / "build/y").read_text() == "z\n", "and stays where it is"
    (repo / ".git/hooks/post-commit").write_text("#!/bin/sh\n")
    (repo / ".git/hooks/post-commit").chmod(0o755)
    here(repo, "resume", status=None)
    assert not mark.exists()


def test_what_went_wrong_the_configuration_of_another_working_tree_was_not_watched(
    repo: Path, tmp_path: Path, mark: Path
) -> None:
    git(repo, "config", "extensions.worktreeConfig", "true")
    night, third = tmp_path / "night", tmp_path / "third"
    for top in (night, third):
        git(repo, "worktree", "add", "-q", "--detach", str(top))
    plants = [
        f'git -C {top} config --worktree core.fsmonitor "touch $MARK"' for top in (repo, third)
    ]
    planted(night, mark, "; ".join(plants), ".git/config.worktree")
    assert "worktrees/third/config.worktree" in tasks(night)["bad"]["reason"]
    git(third, "status")
    git(repo, "status")
    assert not mark.exists()


def test_what_a_person_does_in_other_working_trees_is_no_tampering(
    repo: Path, tmp_path: Path
) -> None:
    git(repo, "config", "extensions.worktreeConfig", "true")
    night, third = tmp_path / "night", tmp_path / "third"
    for top in (night, third):
        git(repo, "worktree", "add", "-q", "--detach", str(top))
    write(night, task("one", f"echo 1 >src/1; git -C {third} sparse-checkout set src"))
    here(night, "start", "--yes")
    assert committed(night) == ["one"]
