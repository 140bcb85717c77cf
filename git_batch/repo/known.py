"""The state of a watched file: read without following a link or waiting, and compared as git would.

Content is kept as far as it is to be put back; of a file larger than `KEPT_MOST` only the digest.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator

from msgspec import Struct

from git_batch.repo import surveying
from git_batch.repo.reflist import Signature, is_racy, signature
from git_batch.repo.wholefile import UNFOLLOWED, read_open

KEPT_MOST = 1 << 20
"""Bytes of a file whose content is kept; of a larger one only the digest is."""

_EXECUTABLE = 0o111


class Known(Struct, frozen=True):
    """A file as it was noted.

    Attributes:
        signature: by which an unchanged file is known without reading it; None: read it again.
        kind: "file", "link", "folder", "absent", or "other" (a fifo, a device, unreadable).
        data: a file's content, a link's target; None if it is too large to be kept.
    """

    signature: Signature | None
    kind: str
    mode: int = 0
    data: bytes | None = None
    digest: bytes = b""

    def same(self, other: Known) -> bool:
        """Say whether two states are one to git: whatever has the same kind, content, use."""
        here = (self.kind, self.mode & _EXECUTABLE, self.digest)
        return here == (other.kind, other.mode & _EXECUTABLE, other.digest)


ABSENT = Known(None, "absent")
FOLDER = Known(None, "folder")


def read_state(path: str, now: int, known: Known | None = None) -> Known:
    """Read a file unless it is as it was `known`; nothing here follows a link or can wait.

    Args:
        now: nanoseconds since the epoch, read before.
    """
    try:
        state = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return Known(None, "other")
    here = signature(state)
    if known is not None and known.signature == here:
        return known
    kept = None if is_racy(state, now) else here
    if stat.S_ISDIR(state.st_mode):
        return Known(kept, "folder")
    if stat.S_ISLNK(state.st_mode):
        target = os.fsencode(os.readlink(path))
        return Known(kept, "link", 0, target, target)
    if not stat.S_ISREG(state.st_mode):
        return Known(kept, "other")
    return _read(path, kept, state)


def _read(path: str, kept: Signature | None, state: os.stat_result) -> Known:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | UNFOLLOWED)
    except OSError:
        return Known(None, "other")
    try:
        data = read_open(fd, KEPT_MOST + 1)
        digest = hashlib.sha256(data)
        whole = len(data) <= KEPT_MOST
        while not whole and (more := os.read(fd, KEPT_MOST)):
            digest.update(more)
    finally:
        os.close(fd)
    return Known(kept, "file", state.st_mode, data if whole else None, digest.digest())


def walk(folder: str) -> Iterator[str]:
    """List a folder of hooks, itself included; samples, which git never runs, left out."""
    waiting, found = [folder], 0
    while waiting:
        here = waiting.pop()
        yield here
        try:
            entries = list(os.scandir(here))
        except OSError:
            continue
        for entry in entries:
            if entry.name.endswith(".sample"):
                continue
            found += 1
            # A folder that holds so much is not one of hooks alone: only its top counts.
            if entry.is_dir(follow_symlinks=False) and found < surveying.HOOKS_MOST:
                waiting.append(entry.path)
            else:
                yield entry.path
