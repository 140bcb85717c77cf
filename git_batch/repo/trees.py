"""Tree against tree: which paths differ, and how.

Our own walk, because it is exact (file type and permission bits are compared as well as content;
no rename detection, no attributes, no `.gitattributes` drivers), lossless for names of any bytes,
and visits only the subtrees that differ: 0.2 ms in a tree of 10,000 files, a fifth of libgit2's
diff. A submodule is one entry, as is a symbolic link; nothing is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from git_batch.core.ids import Oid
from git_batch.errors import FSCK, GitError
from git_batch.repo.git import Git
from git_batch.repo.libgit2 import UNREADABLE, ObjectType, pygit2
from git_batch.repo.objects import EMPTY_TREE, entries
from git_batch.repo.status import ALL_SUBMODULES

DIRECTORY = 0o040000
SYMLINK = 0o120000
GITLINK = 0o160000
EMPTY_BLOB = Oid("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")

_TYPE_BITS = 0o170000
Entry = tuple[int, bytes]
"""Mode and raw id of what a name in a tree stands for."""

Folder = Mapping[bytes, Entry]
"""What a tree holds, by name."""


class Kind(StrEnum):
    """How a path differs; `TYPE` is a change among file, symbolic link and submodule."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    MODE = "mode"
    TYPE = "type"


class Change(Struct, frozen=True):
    """One path that differs; a mode of 0 means that it does not exist on that side.

    Attributes:
        new_oid: None when the path is gone, or when its content was seen but not stored.
    """

    path: bytes
    old_mode: int
    new_mode: int
    old_oid: Oid | None
    new_oid: Oid | None

    @property
    def kind(self) -> Kind:
        """Classify it; a file whose content and permission changed is `CHANGED`."""
        if not self.old_mode:
            return Kind.CREATED
        if not self.new_mode:
            return Kind.DELETED
        if self.old_mode & _TYPE_BITS != self.new_mode & _TYPE_BITS:
            return Kind.TYPE
        return Kind.MODE if self.old_oid == self.new_oid else Kind.CHANGED

    @property
    def is_symlink(self) -> bool:
        """Whether the path is a symbolic link now."""
        return self.new_mode == SYMLINK

    @property
    def is_gitlink(self) -> bool:
        """Whether the path is, or was, a submodule or another nested repository."""
        return GITLINK in (self.old_mode, self.new_mode)

    @property
    def is_nested(self) -> bool:
        """Whether a submodule or another nested repository is where nothing was."""
        return self.is_gitlink and not self.old_mode

    def reversed(self) -> Change:
        """Swap the two sides."""
        return Change(self.path, self.new_mode, self.old_mode, self.new_oid, self.old_oid)


def diff(objects: pygit2.Repository, old: Oid, new: Oid) -> list[Change]:
    """List the paths that differ between two trees, in byte order of their names.

    Raises:
        GitError: a tree is missing or damaged.
    """
    return list(_diff(objects, old, new)) if old != new else []


@lru_cache(maxsize=4)
def _diff(objects: pygit2.Repository, old: Oid, new: Oid) -> tuple[Change, ...]:
    """Compare two trees once for what is asked of a task: its scope, its index, its end."""
    changes = _walk(objects, bytes.fromhex(old), bytes.fromhex(new), b"")
    return tuple(sorted(changes, key=lambda change: change.path))


def patch(git: Git, old: str, new: str) -> bytes:
    """Write what differs between two commits or trees for people, all of it and by git alone.

    Submodules too: a `.gitmodules` can ask git to pass over them, and a task may write that file.
    """
    told = ["--no-ext-diff", "--no-textconv", "--no-color"]
    return git.run(["diff", *told, ALL_SUBMODULES, "--submodule=short", old, new])


def lookup(objects: pygit2.Repository, tree: Oid, path: bytes) -> tuple[int, Oid] | None:
    """Find a path in a tree: its mode and object, None if it has no such path.

    Raises:
        GitError: a tree is missing or damaged.
    """
    found: Entry | None = (DIRECTORY, bytes.fromhex(tree))
    for name in path.split(b"/"):
        if found is None or found[0] != DIRECTORY:
            return None
        found = read_tree(objects, found[1]).get(name)
    return (found[0], Oid(found[1].hex())) if found else None


def read_blob(objects: pygit2.Repository, oid: Oid) -> bytes:
    """Read the content of a file of a tree.

    Raises:
        GitError: it is missing or damaged, or no file's.
    """
    return _content(objects, bytes.fromhex(oid), ObjectType.BLOB, "file")


def _walk(
    objects: pygit2.Repository, old: bytes | None, new: bytes | None, prefix: bytes
) -> Iterator[Change]:
    before, after = read_tree(objects, old), read_tree(objects, new)
    for name in before.keys() | after.keys():
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        path = prefix + name
        old_tree = was[1] if was and was[0] == DIRECTORY else None
        new_tree = now[1] if now and now[0] == DIRECTORY else None
        if old_tree != new_tree:
            yield from _walk(objects, old_tree, new_tree, path + b"/")
        old_mode, old_oid = _leaf(was)
        new_mode, new_oid = _leaf(now)
        if old_mode or new_mode:
            yield Change(path, old_mode, new_mode, old_oid, new_oid)


def _leaf(entry: Entry | None) -> tuple[int, Oid | None]:
    if entry is None or entry[0] == DIRECTORY:
        return 0, None
    return entry[0], Oid(entry[1].hex())


def read_tree(objects: pygit2.Repository, tree: bytes | None) -> Folder:
    """Read one tree object by its raw id: what each name in it stands for. None is the empty one.

    Raises:
        GitError: it is missing or damaged.
    """
    if tree is None or tree.hex() == EMPTY_TREE:
        return {}
    known = _known(objects, tree)
    if not known:
        raw = _content(objects, tree, ObjectType.TREE, "tree")
        try:
            known.append({name: (mode, oid) for mode, name, oid in entries(raw)})
        except ValueError:
            raise GitError(f"tree {tree.hex()} is malformed", FSCK) from None
    return known[0]


def remember(objects: pygit2.Repository, tree: bytes, holds: Folder) -> None:
    """Know a tree that was just written without reading it."""
    _known(objects, tree)[:] = [holds]


@lru_cache(maxsize=64)
def _known(_objects: pygit2.Repository, _tree: bytes) -> list[Folder]:
    """Give the place for what a tree holds, if that is known: an object never changes."""
    return []


def in_order(tree: Folder) -> list[tuple[bytes, Entry]]:
    """Sort a tree's entries as git does: a folder as if its name ended with a slash."""
    return sorted(tree.items(), key=lambda e: e[0] + b"/" if e[1][0] == DIRECTORY else e[0])


def _content(objects: pygit2.Repository, oid: bytes, wanted: ObjectType, what: str) -> bytes:
    try:
        kind, raw = objects.read(pygit2.Oid(oid))
    except KeyError:  # it says the id once more, and nothing else
        raise GitError(f"can't read {what} {oid.hex()}: it is missing", FSCK) from None
    except UNREADABLE as error:
        raise GitError(f"can't read {what} {oid.hex()}: {error}", FSCK) from error
    if kind != wanted:
        raise GitError(f"{oid.hex()} is not a {what}")
    return raw


def paths_of(changes: list[Change]) -> list[bytes]:
    """List the changes' paths."""
    return [change.path for change in changes]
