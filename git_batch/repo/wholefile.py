"""Files read in as few calls of the system as it takes; written where a command could plant.

A run looks at a dozen small files around each command: Python's own file objects ask the system
twice as much about each of them, and take as long again for themselves.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress

_AT_ONCE = 16 << 20
"""Bytes asked for at once: what a task planted may pretend to any size."""
_LITTLE = 4096

UNFOLLOWED = os.O_NOFOLLOW | os.O_NONBLOCK
"""For a path that a command may have replaced: no link is followed, no pipe waited for."""


def read(path: str | bytes, most: int | None = None, *, flags: int = 0) -> bytes:
    """Read a file, or no more than `most` bytes of it.

    Args:
        flags: of `os.open`, on top.

    Raises:
        OSError: it can't be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        return read_open(fd, most)
    finally:
        os.close(fd)


def read_small(path: str, most: int) -> bytes | None:
    """Read a file; None, and nothing is read, if it has more than `most` bytes.

    Raises:
        OSError: it can't be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return None if os.fstat(fd).st_size > most else read_open(fd)
    finally:
        os.close(fd)


def read_open(fd: int, most: int | None = None) -> bytes:
    """Read an open file from where it stands; the rest as of `read`."""
    step = min(max(os.fstat(fd).st_size + 1, _LITTLE), _AT_ONCE)
    parts: list[bytes] = []
    while most is None or most > 0:
        data = os.read(fd, step if most is None else min(step, most))
        if not data:
            break
        parts.append(data)
        most = None if most is None else most - len(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def write_anew(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file in the place of whatever is there: no link is followed, no pipe waited for.

    A folder is put aside, beside it.
    """
    if not is_folder(path):
        with suppress(FileNotFoundError):
            os.unlink(path)
    else:
        put_beside(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        file.write(data)


def folder_of_ours(path: str) -> str:
    """See that a folder is one, and no link to another one; what else is there is put aside."""
    if os.path.lexists(path) and not is_folder(path):
        put_beside(path)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def put_beside(path: str) -> None:
    """Move what is at a path into a new folder beside it."""
    folder, name = os.path.split(path)
    os.rename(path, os.path.join(tempfile.mkdtemp(dir=folder, prefix=f"{name}-"), name))


def is_folder(path: str) -> bool:
    """Tell whether a path is a folder itself."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
