"""Writing objects: each is there when it was written, or that is an error.

Each by one call of libgit2 with its whole content, as a loose object: to `create_commit`,
`create_blob` and a `TreeBuilder` come looks at what they name, or streams, and at the packs. A tree
is written as changes to another one: only the folders on the way are made anew, and what they held
is mostly known, as we have just written it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from git_batch.core.ids import Oid
from git_batch.errors import GitError
from git_batch.repo.libgit2 import FileMode, ObjectType, pygit2
from git_batch.repo.objects import EMPTY_TREE
from git_batch.repo.repository import Repository
from git_batch.repo.trees import DIRECTORY, Entry, in_order, read_tree, remember

_Change = bytes | tuple[Oid, int] | None

Changes = dict[str, _Change]
"""By path: the content of a file, or an object and its mode; None removes what is there."""

_Split = dict[tuple[bytes, ...], _Change]
"""The same by the parts of the path."""

_EMPTY = bytes.fromhex(EMPTY_TREE)


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


def write_blob(repo: Repository, content: bytes) -> Oid:
    """Write a blob; GitError if it could not be written."""
    return Oid(str(write_object(repo, ObjectType.BLOB, content, "a file of the record")))


def write_paths(
    repo: Repository, base: Oid | None, changes: Changes, *, pass_damaged: bool = False
) -> Oid:
    """Write a tree with some paths set or removed; folders left empty go.

    Args:
        base: the tree to change; None is the empty one.
        pass_damaged: leave out what was in a folder that can't be read, and an object that is not
            there to be named.

    Raises:
        GitError: it could not be written, or an object that it is to name is not there.
    """
    split = {tuple(path.encode().split(b"/")): value for path, value in changes.items()}
    root = bytes.fromhex(base) if base else None
    return Oid(_write(repo, root, split, pass_damaged=pass_damaged).hex())


def _write(repo: Repository, base: bytes | None, changes: _Split, *, pass_damaged: bool) -> bytes:
    below: dict[bytes, _Split] = {}
    tree = _read(repo, base, pass_damaged=pass_damaged)
    for (name, *rest), value in changes.items():
        if rest:
            below.setdefault(name, {})[tuple(rest)] = value
        elif value is None:
            tree.pop(name, None)
        elif isinstance(value, bytes):
            tree[name] = FileMode.BLOB, bytes.fromhex(write_blob(repo, value))
        elif pygit2.Oid(hex=value[0]) in repo.objects.odb:
            tree[name] = value[1], bytes.fromhex(value[0])
        elif not pass_damaged:  # a `git gc --prune=now`, say, took it before this names it
            raise GitError(f"could not write a tree: there is no object {value[0]}")
    for name, inner in below.items():
        mode, old = tree.get(name, (0, b""))
        under = old if mode == DIRECTORY and (name,) not in changes else None
        sub = _write(repo, under, inner, pass_damaged=pass_damaged)
        if sub != _EMPTY:
            tree[name] = DIRECTORY, sub
        elif mode == DIRECTORY:
            del tree[name]
    content = b"".join(b"%o %s\0%s" % (m, name, oid) for name, (m, oid) in in_order(tree))
    written = write_object(repo, ObjectType.TREE, content, "a tree").raw
    remember(repo.objects, written, tree)
    return written


def _read(repo: Repository, base: bytes | None, *, pass_damaged: bool) -> dict[bytes, Entry]:
    try:
        return dict(read_tree(repo.objects, base))
    except GitError:
        if not pass_damaged:
            raise
        return {}
