"""The objects below a record's newest event: which of them are damaged, and writing them anew.

What an object says follows from its id, so writing the same content again is all that brings it
back. Most of a record follows from the rest of it: a task's file from the plan, a receipt from the
task's note.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from git_batch.core import canonical, record
from git_batch.core.chain import newest_event
from git_batch.core.ids import Oid
from git_batch.core.standing import TaskStatus
from git_batch.errors import GitError, RecordError
from git_batch.repo import commits
from git_batch.repo.libgit2 import UNREADABLE, FileMode, pygit2
from git_batch.repo.notestree import NotesTree
from git_batch.repo.recordread import read_at
from git_batch.repo.repository import Repository
from git_batch.repo.treewrite import write_blob

_TREES_OF_WORK = ("settled", "review")
"""What they hold is work, not the record's own."""


def place(oid: Oid) -> str:
    """Name the file of an object that is in no pack, as of the common directory."""
    return f"objects/{oid[:2]}/{oid[2:]}"


def damaged(repo: Repository, tip: Oid) -> dict[str, Oid]:
    """List what can't be read of the tree of a record's newest event, by its name."""
    try:
        tree = newest_event(lambda oid: commits.read(repo, oid), tip).tree
    except (RecordError, GitError):
        return {"its newest event": tip}
    return dict(_damaged(repo.objects, pygit2.Oid(hex=tree), ""))


def _damaged(objects: pygit2.Repository, oid: pygit2.Oid, path: str) -> Iterator[tuple[str, Oid]]:
    try:
        found = objects[oid]
    except UNREADABLE:
        yield f"'{path}'" if path else "its tree", Oid(str(oid))
        return
    if isinstance(found, pygit2.Tree):
        for entry in found:
            if not path and entry.name in _TREES_OF_WORK:
                continue
            if entry.filemode in (FileMode.TREE, FileMode.BLOB):
                yield from _damaged(objects, entry.id, f"{path}/{entry.name}".lstrip("/"))


def write_again(repo: Repository, tip: Oid) -> None:
    """Write the objects that follow from what can be read of a record; those that are there stay.

    First the plan's folders, from the plan: the tasks' notes are found by them.
    """
    with suppress(RecordError, GitError):
        tree = newest_event(lambda oid: commits.read(repo, oid), tip).tree
        NotesTree(repo, None).write_plan(canonical.from_toml(*NotesTree(repo, tree).plan()))
    with suppress(RecordError, GitError):
        _, _, state = read_at(repo, tip)
        write_blob(repo, record.header(state))
        for name, done in state.tasks.items():
            if done.status is TaskStatus.COMMITTED and done.commit is not None:
                write_blob(repo, record.receipt(state, name))
