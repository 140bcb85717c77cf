"""The private index in process: its tree, and a cheap proof that no file has changed since.

libgit2 does both in a small repository for a tenth of what a git process costs, and most checks
leave everything alone. It reads the file once for both: from one scan to the next it stays as it
is. It may err on the safe side only: whatever it finds changed is looked at again by git, whose
word counts (filters that libgit2 does not run, ignore rules from a place that it does not read,
sparse checkouts). What it does not find is proven by the same stat data that git goes by, and
finer: nanoseconds, with the same rule for files as young as the index. Where it can't read the
index, or git's threads are faster, git is to be asked at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, cast

from git_batch.core.ids import Oid
from git_batch.repo.libgit2 import DiffOption, Option, pygit2
from git_batch.repo.patience import not_for_ever
from git_batch.repo.repository import Repository
from git_batch.repo.wholefile import read_small

Signature = tuple[int, int, int, int]

_ANY = DiffOption.INCLUDE_UNTRACKED | DiffOption.INCLUDE_TYPECHANGE | DiffOption.INCLUDE_UNREADABLE

_MOST = 512 * 1024
"""Bytes of an index up to which libgit2 writes its tree and compares it with the files. Above,
git's threads are faster, and unlike libgit2 it stores the known subtrees in the index, so that they
aren't computed in each scan."""

_UNREADABLE = (b"sdir\0\0\0\0", b"link\0")
"""Extensions that libgit2 refuses (sparse index, split index), as they stand in an index file. It
could be asked, but its binding then fails again when the object is freed."""

_FAULTS = (OSError, pygit2.GitError, KeyError)


class InProcess:
    """One index file as libgit2 reads it, as long as the file is the same."""

    def __init__(self, repo: Repository, path: str) -> None:
        self._objects, self._path = repo.objects, path
        self._read: tuple[Signature, pygit2.Index] | None = None

    def write_tree(self) -> Oid | None:
        """Write the index as a tree; None where git has to be asked, who says more of what fails.

        Intent-to-add entries are taken for empty files.
        """
        with contextlib.suppress(*_FAULTS), _trusted_entries():
            index = self._index()
            tree = None if index is None else index.write_tree(self._objects)
            if tree is not None and tree in self._objects.odb:
                return Oid(str(tree))
        return None

    def is_untouched(self) -> bool | None:
        """Say whether no file differs from its entry and none is new.

        Returns:
            False where there is any doubt, None where it was not looked: git has to be asked.
        """
        try:
            index = self._index()
            if index is None:
                return None
            # pygit2 compares only the index that a repository was opened with; libgit2 takes any.
            cast(Any, index)._repo = self._objects
            with not_for_ever():
                return len(index.diff_to_workdir(_ANY)) == 0
        except _FAULTS:
            return False

    def _index(self) -> pygit2.Index | None:
        """Read the index; None where libgit2 can't, or had better not."""
        here = signature(self._path)
        if here is not None and self._read is not None and self._read[0] == here:
            return self._read[1]
        self._read = None
        content = None if here is None else read_small(self._path, _MOST)
        if here is None or content is None or any(mark in content for mark in _UNREADABLE):
            return None
        index = pygit2.Index(self._path)
        self._read = here, index
        return index


def signature(path: str) -> Signature | None:
    """Tell an index file from any other one; its change time moves with every link made of it."""
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


@contextlib.contextmanager
def _trusted_entries() -> Iterator[None]:
    """Spare libgit2 one look-up per entry: git has just written, or known, every one of them."""
    pygit2.option(Option.ENABLE_STRICT_OBJECT_CREATION, False)
    try:
        yield
    finally:
        pygit2.option(Option.ENABLE_STRICT_OBJECT_CREATION, True)
