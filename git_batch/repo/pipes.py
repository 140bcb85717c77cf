"""Named pipes where git reads a file: whoever opens one waits until somebody writes into it.

git opens the `.gitignore` and the `.gitattributes` of each folder whatever they are, and a task can
make a pipe of that name. Nothing would ever end that wait: no time limit of a task, and no signal
to us. So a git that takes its time is looked after.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PATIENCE = 2.0
"""Seconds after which what git may be waiting for is looked for."""

_READ = frozenset({".gitignore", ".gitattributes", ".gitmodules"})


def in_the_way(top: str) -> str | None:
    """Name a pipe below a directory that git would open, by its path from there; None if none."""
    for folder, folders, files in os.walk(top):
        with suppress(ValueError):
            folders.remove(".git")
        for name in _READ.intersection(files):
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):
                if stat.S_ISFIFO(os.lstat(path).st_mode):
                    return os.path.relpath(path, top)
    return None


@contextmanager
def not_for_ever() -> Iterator[None]:
    """Have what libgit2 waits for in this block fail after a while, instead of waiting on.

    A signal ends the wait: open(2) is not taken up again after it. Only the main thread can take
    one; and where somebody else uses this alarm it stays theirs.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
