"""Which repositories git enters from a working tree: read from index files, git not asked.

Where an index has a submodule, git runs `git status` in whatever repository lies there, with that
repository's configuration, and from there in those that its own index names. So a task can plant
one by a line in an index, at any depth. Only plain reads are done here: git would enter them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from git_batch.repo.here import git_dir_above
from git_batch.repo.indexfile import ELSEWHERE, may_hold_submodules
from git_batch.repo.reflist import Signature, signature
from git_batch.repo.repository import Layout
from git_batch.repo.trees import GITLINK
from git_batch.repo.wholefile import read

_HEADER, _STAT, _ID, _FLAGS = 12, 40, 20, 2
_MODE = 24
_EXTENDED, _COMPRESSED = 0x4000, 4
_DEEPEST = 20

_Read = dict[str, tuple[Signature, list[bytes]]]


class Nested:
    """The repositories below a working tree that its index names, and theirs, and so on.

    Args:
        top: what the working tree's own index named at a time; None takes what it names now. What a
            command adds there is taken out again (`PersonIndex.take_back`) before git could enter.
    """

    def __init__(self, layout: Layout, top: Sequence[bytes] | None = None) -> None:
        self._layout = layout
        self._top = top
        self._read: _Read = {}

    def note(self) -> None:
        """Go on from what the working tree's own index names now."""
        self._top = listed(self._layout.index)

    def places(self) -> dict[str, str | None]:
        """Map the `.git` of each, there or not, to the git directory that it stands for."""
        found: dict[str, str | None] = {}
        waiting = [(self._layout.top, self._layout.git_dir, 0)]
        while waiting:
            top, git_dir, depth = waiting.pop()
            own = self._top if depth == 0 else None
            for name in self._listed(os.path.join(git_dir, "index")) if own is None else own:
                folder = os.path.join(top, os.fsdecode(name))
                place = os.path.join(folder, ".git")
                if place in found:
                    continue
                inner = git_dir_above(folder) if os.path.lexists(place) else None
                found[place] = None if inner is None else os.path.normpath(inner)
                if inner is not None and depth < _DEEPEST:
                    waiting.append((folder, inner, depth + 1))
        return found

    def _listed(self, path: str) -> list[bytes]:
        """List the submodules of an index; it is read again only when it is another one."""
        try:
            here = signature(os.stat(path))
        except OSError:
            return []
        known = self._read.get(path)
        if known is None or known[0] != here:
            known = self._read[path] = here, listed(path)
        return known[1]


def listed(path: str, git_dir: str | None = None) -> list[bytes]:
    """List the paths that an index file has as submodules; of what is no index, none.

    Args:
        git_dir: where the shared part of a split index is; None: beside the file, no copy.

    An index that is split leaves names out that its shared part has: where one of these became a
    submodule, all of the shared names are given.
    """
    if not may_hold_submodules(path):
        return []
    try:
        content = read(path, flags=os.O_NONBLOCK)
        entries = list(_entries(content))
        names = [name for mode, name in entries if mode == GITLINK]
        at = content.rfind(ELSEWHERE)
        if at > 0 and len(content) >= at + 8 + _ID:
            shared = content[at + 8 : at + 8 + _ID].hex()
            folder = os.path.dirname(path) if git_dir is None else git_dir
            whole = read(os.path.join(folder, f"sharedindex.{shared}"))
            everything = b"" in names
            names += [name for mode, name in _entries(whole) if everything or mode == GITLINK]
    except (OSError, ValueError, IndexError):
        return []
    return [name for name in names if name]


def _entries(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Walk the entries of an index (gitformat-index(5)): mode and name."""
    version, count = (int.from_bytes(content[at : at + 4], "big") for at in (4, 8))
    at, name = _HEADER, b""
    for _ in range(count):
        begin = at
        mode = int.from_bytes(content[at + _MODE : at + _MODE + 4], "big")
        at += _STAT + _ID
        flags = int.from_bytes(content[at : at + _FLAGS], "big")
        at += _FLAGS * (2 if flags & _EXTENDED else 1)
        if version == _COMPRESSED:
            cut, at = _varint(content, at)
            end = content.index(b"\0", at)
            name = name[: len(name) - cut] + content[at:end]
            at = end + 1
        else:
            end = content.index(b"\0", at)
            name = content[at:end]
            at = begin + (end - begin) // 8 * 8 + 8
        yield mode, name


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Read how much of the name before is left out; give where it ends, too."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
