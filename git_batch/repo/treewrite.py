"""Writing objects: each is there when it was written, or that is an error.

A commit and a blob by one call of libgit2 with their whole content, as a loose object: to
`create_commit` and `create_blob` come looks at what they name, or streams, and at the packs. A tree
as changes to another one: only the folders on the way are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from git_batch.errors import GitError
from git_batch.repo.libgit2 import UNREADABLE, FileMode, ObjectType, pygit2
from git_batch.repo.objects import EMPTY_TREE
from git_batch.repo.repository import Repository

Changes = dict[str, tuple[pygit2.Oid, int] | None]
"""By path: an object and its mode, or None to remove it."""

_EMPTY = pygit2.Oid(hex=EMPTY_TREE)


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turn what libgit2 raises when it can't write (a full disk, say) into a GitError.

    That is so as well if it can't read what is to be changed.
    """
    try:
        yield
    except (pygit2.GitError, KeyError, OSError) as error:
        raise GitError(f"could not write {what}: {error}") from None


def write_object(repo: Repository, kind: ObjectType, content: bytes, what: str) -> pygit2.Oid:
    """Write an object.

    Args:
        what: what it is called in the error.

    Raises:
        GitError: it could not be written, or is not there.
    """
    with writing(what):
        oid = repo.loose.write(kind, content)
    if oid not in repo.loose:
        raise GitError(f"could not write {what}: is the disk full or read-only?")
    return oid


def write_blob(repo: Repository, content: bytes) -> pygit2.Oid:
    """Write a blob; GitError if it could not be written."""
    return write_object(repo, ObjectType.BLOB, content, "a file of the record")


def write_paths(
    objects: pygit2.Repository,
    base: pygit2.Oid | None,
    changes: Changes,
    *,
    pass_damaged: bool = False,
) -> pygit2.Oid:
    """Write a tree with some paths set or removed; folders left empty go.

    Args:
        pass_damaged: leave out what was in a folder that can't be read.

    Raises:
        GitError: it could not be written.
    """
    here: Changes = {}
    below: dict[str, Changes] = {}
    for path, value in changes.items():
        name, _, rest = path.partition("/")
        if rest:
            below.setdefault(name, {})[rest] = value
        else:
            here[name] = value
    builder = _builder(objects, base, pass_damaged=pass_damaged)
    for name, inner in below.items():
        old = _id_of(builder, name) if name not in here else None
        sub = write_paths(objects, old, inner, pass_damaged=pass_damaged)
        here[name] = (sub, int(FileMode.TREE)) if sub != _EMPTY else None
    for name, value in here.items():
        if value is not None:
            builder.insert(name, value[0], value[1])
        elif _id_of(builder, name) is not None:
            builder.remove(name)
    with writing("a tree"):
        return builder.write()


def _builder(
    objects: pygit2.Repository, base: pygit2.Oid | None, *, pass_damaged: bool
) -> pygit2.TreeBuilder:
    with writing("a tree"):
        try:
            tree = objects[base] if base is not None else None
        except UNREADABLE:
            if not pass_damaged:
                raise
            tree = None
    return objects.TreeBuilder(tree) if isinstance(tree, pygit2.Tree) else objects.TreeBuilder()


def _id_of(builder: pygit2.TreeBuilder, name: str) -> pygit2.Oid | None:
    entry: pygit2.Object | None = builder.get(name)
    return None if entry is None else entry.id
