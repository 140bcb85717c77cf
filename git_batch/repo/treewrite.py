"""Writing a tree as changes to another one: only the folders on the way are made anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pygit2
from pygit2.enums import FileMode

from git_batch.errors import GitError

Changes = dict[str, tuple[pygit2.Oid, int] | None]
"""By path: an object and its mode, or None to remove it."""

_EMPTY = pygit2.Oid(hex="4b825dc642cb6eb9a060e54bf8d69288fbee4904")


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turn what libgit2 raises when it can't write (a full disk, say) into a GitError."""
    try:
        yield
    except (pygit2.GitError, OSError) as error:
        raise GitError(f"could not write {what}: {error}") from None


def write_blob(objects: pygit2.Repository, content: bytes) -> pygit2.Oid:
    """Write a blob; GitError if it could not be written."""
    with writing("a file of the record"):
        return objects.create_blob(content)


def write_paths(
    objects: pygit2.Repository, base: pygit2.Oid | None, changes: Changes
) -> pygit2.Oid:
    """Write a tree with some paths set or removed; folders left empty go.

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
    tree = objects[base] if base is not None else None
    builder = objects.TreeBuilder(tree) if isinstance(tree, pygit2.Tree) else objects.TreeBuilder()
    for name, inner in below.items():
        sub = write_paths(objects, _id_of(builder, name) if name not in here else None, inner)
        here[name] = (sub, int(FileMode.TREE)) if sub != _EMPTY else None
    for name, value in here.items():
        if value is not None:
            builder.insert(name, value[0], value[1])
        elif _id_of(builder, name) is not None:
            builder.remove(name)
    with writing("a tree"):
        return builder.write()


def _id_of(builder: pygit2.TreeBuilder, name: str) -> pygit2.Oid | None:
    entry: pygit2.Object | None = builder.get(name)
    return None if entry is None else entry.id
