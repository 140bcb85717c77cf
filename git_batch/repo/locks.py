"""Run locks: one live runner per batch and per working tree, and proof that its children are gone.

`flock` is dropped by the kernel when the process dies, whatever kills it: holding it proves that
no other runner on this host is at work, so there is nothing to time out and nothing to steal. The
file also says who holds it, for the message. `tree.lock` is held *shared* by everything that a
task started (an inherited descriptor): after a kill -9 of the runner it stays held as long as one
descendant lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import asdict

from git_batch.core.codec import decode
from git_batch.core.ids import BATCH_ID, BatchId
from git_batch.errors import LockedError
from git_batch.repo.reflist import is_racy
from git_batch.repo.repository import Layout, Repository

LOCK_NAME = "run.lock"
"""Of the lock that whoever runs a batch in a working tree has open, and nobody else."""

HOST = os.uname().nodename
"""This machine, as in locks, claims and the names of runs."""

_LOOKS = 50
"""How often a lock that nobody seems to hold is tried again."""


class Holder(Struct, frozen=True):
    """Who holds a run lock."""

    pid: int = 0
    host: str = ""
    since: str = ""
    batch: str = ""


def batch_lock(repo: Repository, batch: BatchId) -> str:
    """Name the lock of a batch, shared by all working trees."""
    return lock_in(repo.layout.common_dir, batch)


def lock_in(common_dir: str, batch: BatchId) -> str:
    """Name the lock of a batch in the directory that all working trees share."""
    return os.path.join(common_dir, "batch", f"{batch}.lock")


def tree_lock(repo: Repository) -> str:
    """Name the lock that the processes of this working tree's tasks hold."""
    return os.path.join(repo.scratch, "tree.lock")


def holder(path: str) -> Holder | None:
    """Say who holds a lock now; None if nobody does."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(ValueError, RecursionError):  # what makes no sense is a ValueError, too
            return decode(Holder, json.loads(os.pread(fd, 4096, 0)))
        return Holder()
    finally:
        os.close(fd)
    return None


def live_batches(repo: Repository) -> set[BatchId]:
    """Name the batches that are being run, in whichever working tree of the repository."""
    return {batch for batch, path, _ in _batch_locks(repo) if holder(path) is not None}


class OtherRuns:
    """Which batches others work on, for whoever asks often.

    A lock that nobody holds tells by its file's time whether somebody has had it meanwhile: whoever
    takes it writes into it. So a run that began and ended between two looks is seen, and so is a
    decision; and the locks of all old batches are tried only once.
    """

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._free: dict[BatchId, int] | None = None

    def look(self) -> tuple[set[BatchId], set[BatchId]]:
        """Name the batches that are being worked on, and those that seem to have been meanwhile.

        Whoever can write here can let a lock's file seem to have been taken since the last look.
        """
        now, free, first = time.time_ns(), self._free or {}, self._free is None
        found: set[BatchId] = set()
        taken: set[BatchId] = set()
        for batch, path, state in _batch_locks(self._repo):
            if free.get(batch) == state.st_mtime_ns:
                continue
            held = holder(path) is not None
            if held:
                found.add(batch)
            elif not first:
                taken.add(batch)
            if not held and not is_racy(state, now):
                free[batch] = state.st_mtime_ns
        self._free = free
        return found, taken


def _batch_locks(repo: Repository) -> Iterator[tuple[BatchId, str, os.stat_result]]:
    """List the batches' locks with the state of their files."""
    try:
        entries = list(os.scandir(os.path.join(repo.layout.common_dir, "batch")))
    except FileNotFoundError:
        return
    for entry in entries:
        batch = BatchId(entry.name.removesuffix(".lock"))
        if batch != entry.name and BATCH_ID.match(batch):
            yield batch, entry.path, entry.stat()


class RunLock:
    """Both run locks, held until the block ends or the process does.

    Args:
        batch: None takes only that of the working tree.

    Raises:
        LockedError: on entering, another process holds one; it is named.
    """

    def __init__(self, repo: Repository, batch: BatchId | None, now: datetime) -> None:
        os.makedirs(os.path.join(repo.layout.common_dir, "batch"), mode=0o700, exist_ok=True)
        self._paths = run_locks(repo, batch)
        self._me = Holder(os.getpid(), HOST, now.isoformat(), batch or "")
        self._fds: list[int] = []

    def __enter__(self) -> Self:
        for path in self._paths:
            try:
                self._fds.append(self._take(path))
            except LockedError:
                self.release()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let go of what is held."""
        while self._fds:
            os.close(self._fds.pop())

    def _take(self, path: str) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for last in (*(False,) * _LOOKS, True):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                other = holder(path)
                # Who only looks who holds it (`holder`) locks it for a moment, too; and who has
                # just got it has not written their name yet.
                if last or (other is not None and _alive(other)):
                    os.close(fd)
                    raise busy(other) from None
            time.sleep(0.01)
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(asdict(self._me)).encode(), 0)
        return fd


def run_locks(repo: Repository, batch: BatchId | None) -> tuple[str, ...]:
    """Name the files of a run's locks: of the working tree, and of a batch."""
    return (_run_lock(repo), *(() if batch is None else (batch_lock(repo, batch),)))


def live(repo: Repository) -> Holder | None:
    """Say who runs something in this working tree now; makes no directory of ours."""
    return live_in(repo.layout)


def live_in(layout: Layout) -> Holder | None:
    """Say who runs something in a working tree of which only the git directory need be known."""
    return holder(os.path.join(layout.scratch, LOCK_NAME))


def refuse_live(repo: Repository) -> None:
    """Refuse while a run is at work in this working tree, before anything else is said of it.

    Raises:
        LockedError: there is one; it is named.
    """
    other = live(repo)
    if other is not None:
        raise busy(other)


def _run_lock(repo: Repository) -> str:
    return os.path.join(repo.scratch, LOCK_NAME)


def _alive(other: Holder) -> bool:
    """Say whether a holder is who holds the lock now, as far as that can be told."""
    if other.host != HOST:
        return other.pid != 0
    try:
        os.kill(other.pid, 0)
    except (ProcessLookupError, OverflowError):  # no process has such a number
        return False
    except PermissionError:
        return True
    return other.pid != 0


def busy(other: Holder | None) -> LockedError:
    """Make the error that names whoever holds a run lock."""
    who = f"process {other.pid} on {other.host}" if other and other.pid else "another process"
    since = f" since {other.since}" if other and other.since else ""
    batch = f"batch '{other.batch}'" if other and other.batch else "a batch"
    return LockedError(
        f"{batch} is being run by {who}{since}",
        "wait for it to end, or ask it to stop after the task in flight: git batch stop",
    )


class TreeLock:
    """The descriptor that a task's processes inherit."""

    def __init__(self, repo: Repository) -> None:
        self.path = tree_lock(repo)
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.fd, fcntl.LOCK_SH)

    def close(self) -> None:
        """Let go of our part; descendants keep theirs."""
        os.close(self.fd)
