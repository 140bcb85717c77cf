"""What a power cut leaves in an object store: the files of objects without their content.

A file system may write the name of a file before what is in it (XFS, btrfs, and ext4, too). A power
cut in between leaves it empty. git and libgit2 take an object for written where its file is there,
so the same content is never written again: a task that is run again after the power cut makes the
same files, and its commit would name what nobody can read.

So the first run after the machine was switched on looks for such files and removes them: an empty
file is no object, and nobody who writes objects gives them their name before their content. Others
may write objects, or tidy up, at the same time: what they write has another name until it is whole,
and what is gone meanwhile is no matter.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator

from git_batch.repo.repository import Repository

_BOOT = "/proc/sys/kernel/random/boot_id"
_FILE = "boot"
"""In `<common dir>/batch`: since which boot there is nothing to look for."""
_FOLDER, _OBJECT = re.compile(r"[0-9a-f]{2}\Z"), re.compile(r"[0-9a-f]{38}\Z")


def clear_empty_objects(repo: Repository) -> int:
    """Remove files of objects that a power cut left empty; give their number.

    To be called under a run lock, before anything is written. Where the system does not say when
    it was switched on it looks each time.
    """
    boot, known = boot_id(), os.path.join(repo.layout.common_dir, "batch", _FILE)
    if boot and _read(known) == boot:
        return 0
    removed = 0
    for path in _empty(os.path.join(repo.layout.common_dir, "objects")):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            removed += 1
    if boot:
        with open(known, "w", encoding="ascii") as file:
            file.write(boot)
    return removed


def _empty(objects: str) -> Iterator[str]:
    for folder in filter(_FOLDER.match, os.listdir(objects)):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in filter(_OBJECT.match, os.listdir(os.path.join(objects, folder))):
                path = os.path.join(objects, folder, name)
                if _is_empty(path):
                    yield path


def _is_empty(path: str) -> bool:
    try:
        state = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size == 0


def boot_id() -> str:
    """Name the time for which the machine has been on; empty where the system does not say."""
    return _read(_BOOT)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, UnicodeDecodeError):
        return ""
