"""What a process reads its standard input from."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def readable(input: bytes | None) -> Iterator[BinaryIO | int]:
    """Give what a git reads its standard input from: a file without a name.

    A pipe would need somebody who writes into it for as long as git is waited for.
    """
    if input is None:
        yield subprocess.DEVNULL
        return
    with _nameless() as file:
        file.write(input)
        file.seek(0)
        yield file


def _nameless() -> BinaryIO:
    try:
        return os.fdopen(os.memfd_create("git-batch"), "w+b")
    except (AttributeError, OSError):  # not Linux, or it may not be had here
        import tempfile

        return tempfile.TemporaryFile()
