"""Where a command is called: the directory may be gone, and git not be asked yet."""

from __future__ import annotations

import os

from git_batch.errors import PreconditionError
from git_batch.repo.wholefile import read

_GIT_FILE_MOST = 1 << 16


def here(path: str = ".") -> str:
    """Give a path as absolute, from the current directory unless it is that already.

    Raises:
        PreconditionError: the current directory was removed, or may not be named.
    """
    try:
        return os.path.abspath(path)
    except OSError as error:
        raise PreconditionError(
            f"can't say what the current directory is: {error.strerror}",
            "if it was removed, with a working tree or by changing branches, go to one that is "
            "there, and run it again",
        ) from None


def git_dir_above(folder: str) -> str | None:
    """Find the git directory of the repository that a directory lies in, without asking git.

    Nothing that stands in a `.git` file's place is waited for.
    """
    while True:
        place = os.path.join(folder, ".git")
        if os.path.isdir(place):
            return place
        if os.path.isfile(place):
            said = _named_in(place)
            return os.path.join(folder, said) if said else None
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


def _named_in(path: str) -> str:
    """Read which directory a `.git` file names; empty if it can't be told."""
    try:
        content = read(path, _GIT_FILE_MOST, flags=os.O_NONBLOCK)
    except OSError:
        return ""
    return os.fsdecode(content.partition(b"gitdir:")[2].strip())
