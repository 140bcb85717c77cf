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
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

from git_batch.core.model import BatchId
from git_batch.errors import LockedError
from git_batch.repo.repository import Repository


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a run lock."""

    pid: int = 0
    host: str = ""
    since: str = ""
    batch: str = ""


def batch_lock(repo: Repository, batch: BatchId) -> str:
    """Name the lock of a batch, shared by all working trees."""
    return os.path.join(repo.layout.common_dir, "batch", f"{batch}.lock")


def tree_lock(repo: Repository) -> str:
    """Name the lock that the processes of this working tree's tasks hold."""
    return os.path.join(repo.scratch, "tree.lock")


def holder(path: str) -> Holder | None:
    """Say who holds a lock now; None if nobody does."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(ValueError, TypeError):
            return Holder(**json.loads(os.pread(fd, 4096, 0)))
        return Holder()
    finally:
        os.close(fd)
    return None


class RunLock:
    """Both run locks, held until the block ends or the process does.

    Raises:
        LockedError: on entering, another process holds one; it is named.
    """

    def __init__(self, repo: Repository, batch: BatchId, now: datetime) -> None:
        tree = os.path.join(repo.scratch, "run.lock")
        os.makedirs(os.path.join(repo.layout.common_dir, "batch"), mode=0o700, exist_ok=True)
        self._paths = (tree, batch_lock(repo, batch))
        self._me = Holder(os.getpid(), socket.gethostname(), now.isoformat(), batch)
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
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise busy(holder(path)) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(asdict(self._me)).encode(), 0)
        return fd


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
