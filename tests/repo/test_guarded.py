"""Objects whose files break off: libgit2 would read on in them for ever, deaf to signals.

A hanging test ends the whole run of tests, so each way to read is tried here, on small ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from git_batch.repo import commits
from git_batch.repo.guarded import BreaksOffError, Objects, breaks_off
from git_batch.repo.libgit2 import UNREADABLE
from git_batch.repo.repository import Repository
from tests.conftest import git

WAYS: dict[str, Callable[[Objects, pygit2.Oid], object]] = {
    "[]": lambda objects, oid: objects[oid],
    "get": lambda objects, oid: objects.get(oid),
    "read": lambda objects, oid: objects.read(oid),
}


def written(top: Path, content: bytes) -> tuple[pygit2.Oid, Path]:
    oid = git(top, "hash-object", "-w", "--stdin", input=content)
    path = top / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    return pygit2.Oid(hex=oid), path


def opened(top: Path) -> Objects:
    found = Repository.open(str(top)).objects
    assert isinstance(found, Objects)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [0, 1, 2, 10, 511, 512, 513, 1024, -5, -1])
def test_what_went_wrong_libgit2_read_for_ever_in_an_object_that_breaks_off(
    repo: Path, way: str, size: int
) -> None:
    oid, path = written(repo, os.urandom(2000))
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)
    with pytest.raises(UNREADABLE) as refused:
        WAYS[way](opened(repo), oid)
    assert isinstance(refused.value, BreaksOffError)
    assert str(path) in str(refused.value)


def test_what_is_whole_is_read(repo: Path) -> None:
    content = os.urandom(200_000)
    oid, path = written(repo, content)
    found = opened(repo)
    assert not breaks_off(str(path))
    assert (found[oid].id, found.get(oid).data, found.read(oid)[1]) == (oid, content, content)
    git(repo, "add", "-A")
    git(repo, "repack", "-qad")
    assert found[pygit2.Oid(hex=git(repo, "rev-parse", "HEAD"))].id
    absent = pygit2.Oid(hex="1" * 40)
    assert found.get(absent, 1) == 1
    with pytest.raises(KeyError):
        found[absent]


def test_what_is_damaged_in_another_way_libgit2_says(repo: Path) -> None:
    oid, path = written(repo, b"text\n")
    path.write_bytes(b"garbage")
    with pytest.raises(pygit2.GitError, match="inflate"):
        opened(repo)[oid]
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BreaksOffError):
        opened(repo)[oid]


def test_what_went_wrong_a_tag_of_a_commit_that_breaks_off_was_waited_for(repo: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    git(repo, "tag", "-am", "tag", "tag")
    opened_here, tag = Repository.open(str(repo)), git(repo, "rev-parse", "tag")
    commit = git(repo, "rev-parse", "HEAD")
    found = commits.peeled(opened_here, tag)
    assert found is not None
    assert found[0] == commit
    path = repo / ".git/objects" / commit[:2] / commit[2:]
    path.chmod(0o644)
    os.truncate(path, 40)
    assert commits.peeled(Repository.open(str(repo)), tag) is None
