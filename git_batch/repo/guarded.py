"""libgit2's objects, except those whose files break off: in them it would read on for ever.

libgit2 (1.9) takes no notice of the end of a compressed file that ends before its content does. It
asks for more again and again, deaf to signals, so nothing would end a command that reads such an
object (a power cut leaves them, a copy that was broken off, a bad disk). So the file of an object
that is in no pack is looked through before libgit2 reads it, once: a third of what that takes. Only
those in this repository are; not in what it borrows from. Those that we have just written, too:
libgit2 takes a file that is there already for written.

What libgit2 reads by itself (while it merges, say) is not looked at: what these trees lead to is
for git to tell.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

from git_batch.repo.libgit2 import pygit2

_AT_ONCE = 1 << 16
_REMEMBERED = 10_000


class BreaksOffError(pygit2.GitError):
    """The file of an object ends before its content does."""


class Objects(pygit2.Repository):
    """A repository whose objects can be asked for without waiting for ever.

    All three ways to read one raise `BreaksOffError` where its file breaks off.
    """

    def __init__(self, git_dir: str, common_dir: str) -> None:
        super().__init__(git_dir)
        self._folder = os.path.join(common_dir, "objects")
        self._whole: set[str] = set()

    def __getitem__(self, key: Any) -> pygit2.Object:
        """Read an object by its id; KeyError if it is not here."""
        self._refuse_torn(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """Read an object by its id; the default if it is not here."""
        self._refuse_torn(key)
        return super().get(key, default)

    def read(self, oid: Any) -> tuple[int, bytes]:
        """Read an object's type and content; KeyError if it is not here."""
        self._refuse_torn(oid)
        return super().read(oid)

    def _refuse_torn(self, oid: Any) -> None:
        name = str(oid)
        if name in self._whole:
            return
        path = os.path.join(self._folder, name[:2], name[2:])
        try:
            torn = breaks_off(path)
        except OSError:  # mostly: it is in a pack
            return
        if torn:
            raise BreaksOffError(f"its file breaks off: '{path}'")
        if len(self._whole) >= _REMEMBERED:
            self._whole.clear()
        self._whole.add(name)


def breaks_off(path: str) -> bool:
    """Tell whether a compressed file ends before its content does.

    Raises:
        OSError: it can't be read.
    """
    inflate = zlib.decompressobj()
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may be a pipe
    try:
        while not inflate.eof and (data := inflate.unconsumed_tail or os.read(fd, _AT_ONCE)):
            try:
                inflate.decompress(data, 1 << 20)
            except zlib.error:  # damaged in another way: libgit2 says so, and it may be another's
                return False
    finally:
        os.close(fd)
    return not inflate.eof
