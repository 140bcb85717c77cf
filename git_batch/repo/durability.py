"""What survives a power cut, and how cheaply that can be had on this file system.

Neither git nor libgit2 syncs anything by default. libgit2 can sync every object and every ref on
its own, which is some fifteen waits for the disk per task. One `syncfs(2)` does the same for all
that was written before it: objects of ours, of git and of the task, and refs that were moved. So a
*barrier* stands before each move of a ref (the objects it names are on disk) and after the last one
before something that can't be taken back (the move itself is).

Between a move and the barrier after it a power cut may undo the move, which is a crash like any
other. What must not happen is a ref file that is renamed in before its content is on disk, and
comes back empty. Where renames over a file wait for its content (ext4 unless it is mounted with
`noauto_da_alloc` or `data=writeback`, and tmpfs, which does not outlive a power cut anyway),
nothing more is needed for a ref that exists; a new one, and everywhere else any, is written through
a handle that syncs it by itself. (btrfs begins to write the content then, but does not wait for
it.)
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable

from git_batch.errors import GitError, PreconditionError

ROOM = 1 << 20
"""Bytes that must be free where a run is to write."""

_ORDERED = frozenset({"ext4", "ext3", "tmpfs"})

_UNORDERED = ("noauto_da_alloc", "data=writeback")


def barrier(directory: str) -> None:
    """Put everything written so far to a directory's file system on disk.

    Raises:
        GitError: the system reports that it could not.
    """
    if not sys.platform.startswith("linux"):
        os.sync()
        return
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _LIBC.syncfs(fd) != 0:
            raise GitError(f"could not write to disk: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(fd)


def barrier_beside(directory: str, act: Callable[[], object]) -> None:
    """As `barrier`, and do something meanwhile: the disk needs none of the processor's time.

    What `act` writes may be on disk afterwards or not.

    Raises:
        GitError: as of `barrier`; what `act` raises comes first.
    """
    failed: list[BaseException] = []
    done = allocate_lock()

    def wait() -> None:
        try:
            barrier(directory)
        except BaseException as error:  # whatever it is: else nobody would hear of it
            failed.append(error)
        finally:
            done.release()

    done.acquire()
    try:
        start_new_thread(wait, ())  # a `Thread` takes twice the time to begin and end
    except RuntimeError:  # the system gives no more threads
        barrier(directory)
        act()
        return
    try:
        act()
    finally:
        done.acquire()
    if failed:
        raise failed[0]


def writable(*directories: str) -> None:
    """See that files can be made in directories, by making one that has no name and goes at once.

    Raises:
        PreconditionError: one is read-only, forbidden or full.
    """
    seen: set[int] = set()
    for directory in dict.fromkeys(directories):
        try:
            with tempfile.TemporaryFile(dir=directory) as file:
                disk = os.fstat(file.fileno()).st_dev
                if disk not in seen:
                    seen.add(disk)
                    file.write(bytes(ROOM))
        except OSError as error:
            raise PreconditionError(
                f"can't write to '{directory}': {error.strerror or error}",
                "a batch writes its commits, its record and your files there",
            ) from None


def renames_wait_for_content(directory: str) -> bool:
    """Tell whether a file renamed over another is on disk before its new name is."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            return ordered(file, os.stat(directory).st_dev)
    except OSError:
        return False


def ordered(mounts: Iterable[str], device: int) -> bool:
    """Look a device up in the lines of a `mountinfo` (proc(5)); unknown ones are not ordered."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts:
        words, _, rest = line.partition(" - ")
        if words.split(" ")[2:3] == [number]:
            kind, _, options = rest.strip().partition(" ")
            return kind in _ORDERED and not any(option in options for option in _UNORDERED)
    return False


_LIBC = ctypes.CDLL(None, use_errno=True)
