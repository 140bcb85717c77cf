"""Where a command is called: the directory may be gone, with a working tree or a branch."""

from __future__ import annotations

import os

from git_batch.errors import PreconditionError


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
