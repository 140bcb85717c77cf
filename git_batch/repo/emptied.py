"""What a power cut leaves in an object store: the files of objects without all of their content.

A file system may write the name of a file before what is in it (XFS, btrfs, and ext4, too). A power
cut in between leaves it empty, or, a large one, with its first blocks. git and libgit2 take an
object for written where its file is there, so the same content is never written again: a task that
is run again after the power cut makes the same files, and its commit would name what nobody can
read. And libgit2 (1.9) reads on for ever in a file that breaks off, deaf to signals.

So the first run after the machine was switched on looks for such files before it reads anything,
and removes them, or puts aside what has some content: it is no object, and nobody who writes
objects gives them their name before their content. Others may write objects, or tidy up, at the
same time: what they write has another name until it is whole, and what is gone meanwhile is no
matter.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator

from msgspec import Struct

from git_batch.repo.guarded import breaks_off
from git_batch.repo.lostfiles import set_aside
from git_batch.repo.repository import Repository

_BOOT = "/proc/sys/kernel/random/boot_id"
_FILE = "boot"
"""In `<common dir>/batch`: since which boot there is nothing to look for."""
_FOLDER, _OBJECT = re.compile(r"[0-9a-f]{2}\Z"), re.compile(r"[0-9a-f]{38}\Z")

_BLOCK = 512
"""Bytes that every file system's blocks are a multiple of: so is the size of what breaks off."""


class Cleared(Struct, frozen=True):
    """How many files were removed, being empty, and where those are now that broke off."""

    empty: int = 0
    torn: tuple[str, ...] = ()


def clear_torn_objects(repo: Repository) -> Cleared:
    """Remove files of objects that a power cut left empty, and put aside those that break off.

    To be called under a run lock, before anything is read or written. Where the system does not
    say when it was switched on it looks each time.
    """
    boot, known = boot_id(), os.path.join(repo.layout.common_dir, "batch", _FILE)
    if boot and _read(known) == boot:
        return Cleared()
    empty, torn = 0, list[str]()
    for path, size in _suspects(os.path.join(repo.layout.common_dir, "objects")):
        with contextlib.suppress(FileNotFoundError):
            if not size:
                os.unlink(path)
                empty += 1
            elif breaks_off(path) and (place := set_aside(repo, path)):
                torn.append(place)
    if boot:
        with open(known, "w", encoding="ascii") as file:
            file.write(boot)
    return Cleared(empty, tuple(torn))


def _suspects(objects: str) -> Iterator[tuple[str, int]]:
    """List the files of objects that may not be whole by their size."""
    for folder in filter(_FOLDER.match, os.listdir(objects)):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in filter(_OBJECT.match, os.listdir(os.path.join(objects, folder))):
                path = os.path.join(objects, folder, name)
                size = _size(path)
                if size is not None and size % _BLOCK == 0:
                    yield path, size


def _size(path: str) -> int | None:
    try:
        state = os.lstat(path)
    except FileNotFoundError:
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None


def boot_id() -> str:
    """Name the time for which the machine has been on; empty where the system does not say."""
    return _read(_BOOT)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, UnicodeDecodeError):
        return ""
