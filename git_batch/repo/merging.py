"""Three-way merges of trees, in memory: neither index nor working tree are touched.

Used to put kept work on a tip that has moved, and to revert a commit: both are a change taken from
one tree to another. A conflict is an answer, not an error.
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.core.ids import Oid
from git_batch.errors import GitError
from git_batch.repo.libgit2 import UNREADABLE, pygit2
from git_batch.repo.repository import Repository


class Merged(Struct, frozen=True):
    """The merged tree, or the paths that are in conflict."""

    tree: Oid | None
    conflicts: tuple[bytes, ...] = ()


def merge_trees(repo: Repository, *, base: Oid, ours: Oid, theirs: Oid) -> Merged:
    """Take the change from `base` to `theirs` over to `ours`; all are trees.

    Raises:
        GitError: a tree is missing or libgit2 failed.
    """
    if base == ours:
        return Merged(theirs)
    try:
        index = repo.objects.merge_trees(
            pygit2.Oid(hex=base), pygit2.Oid(hex=ours), pygit2.Oid(hex=theirs)
        )
        if index.conflicts is not None:
            return Merged(None, _paths(index))
        return Merged(Oid(str(index.write_tree(repo.objects))))
    except UNREADABLE as error:
        raise GitError(f"could not merge {theirs} onto {ours}: {error}") from None


def _paths(index: pygit2.Index) -> tuple[bytes, ...]:
    found = {
        entry.path.encode("utf-8", "surrogateescape")
        for sides in index.conflicts or ()
        for entry in sides
        if entry is not None
    }
    return tuple(sorted(found))
