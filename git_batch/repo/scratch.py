"""Our folder of a working tree, around a command: what is ours there is as we left it.

A command can write into it as we can. Our index copies, locks and notes are compared by `stat`;
what it changed or planted is put aside, and made anew by whoever uses it: an index copy by the
next `Scanner.begin`, the fence's files by the next note. What the person's index was like before is
kept in memory, as long as that is no burden: where both it and our copy of it were changed, marks
that hide files are still told from the person's own. One thing can't be made anew: a lock whose
file was removed, since somebody else may hold another one of that name by now.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Sequence

from git_batch.repo import fencefile, index, worktree
from git_batch.repo.indexfile import is_spoilt
from git_batch.repo.reflist import Signature, signature
from git_batch.repo.repository import Repository
from git_batch.repo.wholefile import is_folder, read_small

_FILES = (
    worktree.INDEX,
    worktree.BASE,
    worktree.EXCLUDES,
    f"{worktree.INDEX}.lock",
    index.MINE,
    index.BASE,
    f"{index.MINE}.lock",
    *fencefile.FILES,
)
_IN_MEMORY = 4 << 20
"""Bytes of an index up to which it is kept in memory; a larger one has its copy only."""
_OUTPUT = "output"


class Scratch:
    """What is ours in the folder, as it was noted before a command.

    Args:
        locks: paths of the files that our run locks are on.
        memory: a file that others write as well, so only its loss counts.
    """

    def __init__(self, repo: Repository, locks: Sequence[str], memory: str) -> None:
        self._folder, self._index = repo.scratch, repo.layout.index
        self._locks, self._memory = tuple(locks), memory
        self._files = tuple(os.path.join(self._folder, name) for name in _FILES)
        self._base = os.path.join(self._folder, worktree.BASE)
        self._before: tuple[tuple[int, ...] | None, bytes | None] = (None, None)
        self._known: dict[str, Signature | None] | None = None
        self._index_was: Signature | None = None
        self._remembered: bytes | None = None

    def note(self) -> None:
        """Take what is there as known, until `spoilt` was asked."""
        self._known = {path: _look(path) for path in (*self._files, *self._locks)}
        self._index_was = _look(self._index)
        base = _same_content(self._known[self._base])
        if self._before[0] != base:
            self._before = (base, _content(self._base))
        self._remembered = _content(self._memory)

    def spoilt(self) -> tuple[list[str], bool]:
        """List what a command changed, removed or planted.

        Returns:
            The paths, and whether one of them can't be made anew.
        """
        known, self._known = self._known, None
        if known is None:
            return [], False
        found = [path for path, was in known.items() if _look(path) != was]
        if not is_folder(os.path.join(self._folder, _OUTPUT)):
            found.append(os.path.join(self._folder, _OUTPUT))
        if self._remembered is not None and not os.path.lexists(self._memory):
            found.append(self._memory)
        unknown = self._base in found and self._before[1] is None
        lost = unknown and _look(self._index) != self._index_was
        return found, lost or any(path in found for path in self._locks)

    def index_spoilt(self) -> bool:
        """Tell whether the person's index is none any more; its copy is renewed before."""
        was, now = self._index_was, _look(self._index)
        linked = was is not None and stat.S_ISLNK(was[-1])
        return now != was and is_spoilt(self._index, self._base, link=linked)

    def renew(self, paths: Sequence[str], set_aside: Callable[[str], object]) -> None:
        """Put aside what is there now, and make what nobody else makes."""
        if not is_folder(self._folder):
            other = tempfile.mkdtemp(dir=os.path.dirname(self._folder), prefix="batch-")
            if os.path.lexists(self._folder):
                os.rename(self._folder, os.path.join(other, "batch"))
            os.mkdir(self._folder, 0o700)
            set_aside(other)
        for path in paths:
            if path not in self._locks:
                set_aside(path)
        os.makedirs(os.path.join(self._folder, _OUTPUT), mode=0o700, exist_ok=True)
        for path, content in ((self._memory, self._remembered), (self._base, self._before[1])):
            if content is not None and not os.path.lexists(path):
                _make(path, content)


def _look(path: str) -> Signature | None:
    try:
        return signature(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _same_content(here: Signature | None) -> tuple[int, ...] | None:
    """Leave out of a signature what moves with each link of a file that is made or goes."""
    if here is None:
        return None
    inode, size, modified, _, _ = here
    return inode, size, modified


def _content(path: str) -> bytes | None:
    """Read a file; None if there is none, or it is too large to be kept in memory."""
    try:
        return read_small(path, _IN_MEMORY)
    except OSError:
        return None


def _make(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
