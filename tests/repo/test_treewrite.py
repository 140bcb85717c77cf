"""Trees written as changes to others, against what git makes of the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pygit2.enums import FileMode, ObjectType

from git_batch.core.ids import Oid
from git_batch.errors import GitError
from git_batch.repo.objects import EMPTY_TREE
from git_batch.repo.repository import Repository
from git_batch.repo.trees import read_tree
from git_batch.repo.treewrite import Changes, write_blob, write_object, write_paths
from tests.conftest import git

NAMES = ("a", "a.b", "a-b", "a0", "b", "ä")
"""A folder `a` comes after `a.b` and `a-b`, and before `a0`: as if it were `a/`."""


@pytest.fixture
def opened(repo: Path) -> Repository:
    return Repository.open(str(repo))


def listed(repo: Path, tree: Oid) -> dict[str, str]:
    """What git finds in a tree: content by path."""
    names = git(repo, "ls-tree", "-r", "-z", "--name-only", tree).split("\0")
    return {name: git(repo, "cat-file", "blob", f"{tree}:{name}") for name in names if name}


def by_git(repo: Path, files: dict[str, str]) -> str:
    """The tree that git writes of the same files."""
    git(repo, "read-tree", "--empty")
    for name, text in files.items():
        (repo / ".git/content").write_text(text)
        oid = git(repo, "hash-object", "-w", ".git/content")
        git(repo, "update-index", "--add", "--cacheinfo", f"100644,{oid},{name}")
    return git(repo, "write-tree")


@pytest.mark.parametrize("seed", range(8))
def test_trees_are_those_that_git_writes(repo: Path, opened: Repository, seed: int) -> None:
    """Also where a file takes a folder's place, and a folder that of a file."""
    chance = random.Random(seed)
    tree: Oid | None = None
    files: dict[str, str] = {}
    for step in range(6):
        changes: Changes = {}
        for _ in range(chance.randint(1, 4)):
            path = "/".join(chance.choices(NAMES, k=chance.randint(1, 3)))
            if any(p.startswith(f"{path}/") or path.startswith(f"{p}/") for p in changes):
                continue  # one change would undo the other
            text = f"{step} {path}" if chance.random() < 0.7 else None
            changes[path] = None if text is None else text.encode()
            above = {p for p in files if path.startswith(f"{p}/") and text is not None}
            gone = {p for p in files if p == path or p.startswith(f"{path}/")} | above
            files = {p: t for p, t in files.items() if p not in gone}
            if text is not None:
                files[path] = text
        tree = write_paths(opened, tree, changes)
        assert listed(repo, tree) == files
        assert tree == by_git(repo, files)
    git(repo, "fsck", "--strict")


def test_what_was_written_is_known_as_it_is_read(repo: Path, opened: Repository) -> None:
    blob = write_blob(opened, b"x")
    tree = write_paths(opened, None, {"d/f": b"1", "x": (blob, FileMode.BLOB_EXECUTABLE)})
    tree = write_paths(opened, tree, {"d/g": b"2", "d/f": None})
    other = Repository.open(str(repo))
    for here in (tree, Oid(git(repo, "rev-parse", f"{tree}:d"))):
        raw = bytes.fromhex(here)
        assert read_tree(opened.objects, raw) == read_tree(other.objects, raw)


def test_what_is_left_empty_goes(opened: Repository) -> None:
    tree = write_paths(opened, None, {"a/b/c": b"1"})
    assert write_paths(opened, tree, {"a/b/c": None}) == EMPTY_TREE
    assert write_paths(opened, tree, {"a": None, "none/such": None}) == EMPTY_TREE


def test_a_tree_that_is_missing_stops_it_unless_it_may_be_passed(opened: Repository) -> None:
    gone = Oid("1" * 40)
    with pytest.raises(GitError, match=f"can't read tree {gone}: it is missing"):
        write_paths(opened, gone, {"a": b"1"})
    alone = write_paths(opened, None, {"a": b"1"})
    assert write_paths(opened, gone, {"a": b"1"}, pass_damaged=True) == alone


@pytest.mark.parametrize(
    "content",
    [b"100644", b"100644 a", b"x a\0" + b"1" * 20, b"100644 a\0" + b"1" * 19],
    ids=["no name", "no id", "no mode", "short id"],
)
def test_an_object_that_is_no_tree_but_calls_itself_one_is_named(
    opened: Repository, content: bytes
) -> None:
    """Somebody may send us any bytes under that name; git itself would refuse to take them."""
    oid = write_object(opened, ObjectType.TREE, content, "a tree")
    with pytest.raises(GitError, match=f"tree {oid} is malformed"):
        read_tree(opened.objects, oid.raw)


def test_what_went_wrong_a_tree_named_an_object_that_was_gone(opened: Repository) -> None:
    gone = Oid("1" * 40)
    with pytest.raises(GitError, match=f"there is no object {gone}"):
        write_paths(opened, None, {"a/b": (gone, FileMode.BLOB)})
