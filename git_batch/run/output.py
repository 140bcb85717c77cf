"""What a command prints: kept in a bounded file, however much it is.

Rules of the room:

* The log is a plain file of mode 0600, made new; whatever stood at its path is unlinked and never
  written through. It is made with the first byte: most checks say nothing, and a new file costs a
  third of what starting a shell does. So a missing log is an empty one, to all who read it here.
* At most `cap` bytes stay when the command has ended: the beginning, a line that says how much was
  left out, and the end. While it runs the file may grow to twice the cap; then its end is moved
  down over what lies between (`_compact`). So memory stays flat, the disk is bounded, each byte is
  copied about once, and the file can be read from the front at any time, also after a kill -9.
* Bytes are bytes: nothing is decoded, no line is looked for. A line without an end is nothing
  special. A cut may split a character; who shows a log replaces what doesn't decode.
* A log that can't be written (disk full) must not bring down the run, let alone leave its command
  unwatched: the first error is kept in `error`, the rest of the output is read and dropped.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

MARK_ROOM = 64
"""Bytes set aside for the line that marks the cut; it never takes more."""

SMALLEST_CAP = 4096
_MARGIN = 8192
"""Bytes beyond a cut that whoever changes what is read has to see: more than a private key has."""
_BLOCK = 256 * 1024
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def mark(left_out: int) -> bytes:
    """Return the line that stands where `left_out` bytes were cut."""
    return b"\n[git-batch: %d bytes left out]\n" % left_out


def tail(path: Path, limit: int) -> bytes:
    """Read the last `limit` bytes of a log, or all of it if it is shorter."""
    with _open(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        return file.read(limit)


def excerpt(path: Path, limit: int, change: Callable[[bytes], bytes] | None = None) -> bytes:
    """Read beginning and end of a log in `limit` bytes at most, the cut marked.

    Args:
        change: what is done to them before they are cut, so that it sees what lies across the cut.
    """
    if not path.is_file():  # the command removed it
        return b""
    room = limit if change is None else limit + 2 * _MARGIN
    change = change or bytes
    with _open(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= room:
            head = end = change(file.read(room))
            if len(head) <= limit:
                return head
        else:
            first, last = _shares(room)
            head = change(file.read(first))
            file.seek(size - last)
            end = change(file.read(last))
    first, last = _shares(limit)
    head, end = head[:first], end[max(0, len(end) - last) :]
    return (head + mark(max(size - len(head) - len(end), 0)) + end)[:limit]


def _shares(limit: int) -> tuple[int, int]:
    """Say how many bytes of the beginning and of the end there is room for beside the mark."""
    kept = max(0, limit - MARK_ROOM)
    return kept // 2, kept - kept // 2


def digest(path: Path) -> tuple[int, str]:
    """Return the size of a log in bytes and its SHA-256 in hexadecimal."""
    with _open(path) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), sha256


class Capture:
    """Take a command's output into a file of bounded size; a context manager."""

    __slots__ = ("_cap", "_fd", "_head", "_left_out", "_marked", "_path", "_size", "error")

    def __init__(self, path: Path, cap: int) -> None:
        if cap < SMALLEST_CAP:
            raise ValueError(f"a log needs at least {SMALLEST_CAP} bytes, not {cap}")
        self.error: OSError | None = None
        self._cap = cap
        self._head = (cap - MARK_ROOM) // 2
        self._size = 0
        self._left_out = 0
        self._marked = 0  # bytes that the mark takes in the file
        self._path = path
        self._fd = -1
        with suppress(FileNotFoundError):
            path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def feed(self, data: bytes) -> None:
        """Append output; an error of the file system is kept in `error`, not raised."""
        if self.error is not None:
            return
        try:
            if self._fd < 0:
                self._fd = os.open(self._path, _NEW, 0o600)
            _write(self._fd, data, self._size)
            self._size += len(data)
            if self._size >= 2 * self._cap:
                self._compact()
        except OSError as error:
            self.error = error

    def close(self) -> None:
        """Cut the file to the cap and close it; a second call does nothing."""
        if self._fd < 0:
            return
        try:
            if self.error is None and self._size > self._cap:
                self._compact()
        except OSError as error:
            self.error = error
        finally:
            os.close(self._fd)
            self._fd = -1

    def _compact(self) -> None:
        keep = self._cap - self._head - MARK_ROOM
        source = self._size - keep
        self._left_out += source - self._head - self._marked
        line = mark(self._left_out)
        _write(self._fd, line, self._head)
        # The target lies before the source, so that a copy from front to back never meets itself.
        target = self._head + len(line)
        for done in range(0, keep, _BLOCK):
            block = os.pread(self._fd, min(_BLOCK, keep - done), source + done)
            _write(self._fd, block, target + done)
        self._size = target + keep
        self._marked = len(line)
        os.ftruncate(self._fd, self._size)


def _open(path: Path) -> io.BufferedReader | io.BytesIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return io.BytesIO()


def _write(fd: int, data: bytes, offset: int) -> None:
    written = os.pwrite(fd, data, offset)
    while written < len(data):  # a short write: the disk is filling up, the next one says why
        written += os.pwrite(fd, data[written:], offset + written)
