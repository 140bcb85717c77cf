"""A control group of a run's own (cgroup2), where kernel and rights allow one.

The runner moves into it once, when a run begins, so whatever a task starts is in it, however it
forks, whatever it closes or clears. (To move takes the kernel ten milliseconds: not for each
command, and beside what else a run begins and ends with.) While the runner lives adoption proves
more (`descendants`). After a kill -9 the group is the strongest trace: whoever is still in it is of
that run. A file of our scratch directory names it.

There is none without cgroup2, without the right to make a group below one's own (most containers, a
session that delegates nothing), and on other systems than Linux; the other traces remain. A group
that a killed run left is removed, once empty, by the next run in the same working tree, and by any
later one below the same group.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterable
from threading import Thread
from types import TracebackType
from typing import Self

FILE = "run.group"
"""Names the group, in our scratch directory of a working tree."""

_PREFIX = "git-batch-"
_PROCS = "cgroup.procs"
_DYING = 1.0
"""Seconds for which a process that is gone may still keep the kernel from removing its group."""
_YOUNG = 60.0
"""Seconds for which an empty group may be one that another run is just about to enter."""


class RunGroup:
    """A context: this process in a group of its own, from the begin of a run to its end.

    Args:
        scratch: our scratch directory of the working tree.
    """

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._path: str | None = None
        self._goal: str | None = None
        self._move: Thread | None = None
        self._refused = False

    def __enter__(self) -> Self:
        self._path = _made(self._scratch)
        if self._path is not None:
            self._move_to(self._path)
        return self

    def inside(self) -> str | None:
        """Wait until this process is in it: before anything starts that has to be in it, too.

        Returns:
            The group's directory; None where there can't be one.
        """
        if self._goal != self._path and self._path is not None:
            self._wait()
            self._move_to(self._path)
        return self._path if self._wait() else None

    def leave(self) -> None:
        """Begin to leave it: as far as is known nothing starts any more that has to be in it."""
        if self._path is not None and self._goal == self._path and self._wait():
            self._move_to(os.path.dirname(self._path))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.leave()
        if not self._wait() and self._path is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self._path)  # it was never entered
        forget(self._scratch)

    def _move_to(self, goal: str) -> None:
        def move() -> None:
            try:
                _join(goal)
            except OSError:
                self._refused = True

        self._goal, self._refused, self._move = goal, False, Thread(target=move)
        try:
            self._move.start()
        except RuntimeError:  # the system gives us no thread: then not beside anything
            self._move = None
            move()

    def _wait(self) -> bool:
        """Wait for the last move; tell whether there was one and nothing refused it."""
        if self._move is not None:
            self._move.join()
        return self._goal is not None and not self._refused


def _made(scratch: str) -> str | None:
    """Make a group and name it in its file; None if that is not ours to do."""
    above = _own()
    if above is None:
        return None
    path = os.path.join(above, f"{_PREFIX}{secrets.token_hex(6)}")
    try:
        forget(scratch)
        _remove_empty(above)
        file = os.path.join(scratch, FILE)
        with open(file, "w", encoding="utf-8", errors="surrogateescape") as named:
            named.write(path)
        os.mkdir(path, 0o755)
    except OSError:
        forget(scratch)
        return None
    return path


def forget(scratch: str) -> None:
    """Remove the group of the last run, unless somebody is still in it: that stays known."""
    path, limit = _named(scratch), time.monotonic() + _DYING
    while path is not None and not members(scratch):
        try:
            _remove(path)
            path = None
        except OSError:
            if time.monotonic() > limit:
                return
            time.sleep(0.005)
    if path is None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(os.path.join(scratch, FILE))


def members(scratch: str) -> frozenset[int]:
    """List the processes that are in the group of the last run, groups of theirs included."""
    path = _named(scratch)
    if path is None:
        return frozenset()
    return frozenset(pid for folder, _, _ in os.walk(path) for pid in _read(folder))


def _named(scratch: str) -> str | None:
    """Read which group the last run had; None if it is not there any more."""
    try:
        with open(os.path.join(scratch, FILE), encoding="utf-8", errors="surrogateescape") as file:
            path = file.read(4096)
    except OSError:
        return None
    return path if os.path.basename(path).startswith(_PREFIX) and _is_group(path) else None


def _own() -> str | None:
    """Find the directory of the group that this process is in; None without cgroup2."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            here = next((line[3:].rstrip("\n") for line in file if line.startswith("0::")), None)
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split(" ") for line in file if " - cgroup2 " in line]
    except OSError:
        return None
    if here is None:
        return None
    for words in mounts:
        root, place = words[3].rstrip("/"), words[4]
        if here.startswith(f"{root}/"):
            path = place + here.removeprefix(root).rstrip("/")
            if os.getpid() in _read(path):  # else the names are those of another namespace
                return path
    return None


def _is_group(path: str) -> bool:
    return os.path.isabs(path) and os.path.isfile(os.path.join(path, _PROCS))


def _join(path: str) -> None:
    fd = os.open(os.path.join(path, _PROCS), os.O_WRONLY | os.O_CLOEXEC)  # never made by us
    try:
        os.write(fd, b"0")  # whoever writes
    finally:
        os.close(fd)


def _read(path: str) -> Iterable[int]:
    try:
        with open(os.path.join(path, _PROCS), encoding="ascii") as file:
            return [int(line) for line in file]
    except (OSError, ValueError):
        return ()


def _remove_empty(above: str) -> None:
    """Remove groups that killed runs left; one with a process in it can't be removed."""
    made_before = time.time() - _YOUNG
    for name in os.listdir(above):
        path = os.path.join(above, name)
        with contextlib.suppress(OSError):
            if name.startswith(_PREFIX) and os.stat(path).st_mtime < made_before:
                _remove(path)


def _remove(path: str) -> None:
    """Remove a group with those that were made in it."""
    for folder, _, _ in os.walk(path, topdown=False):
        os.rmdir(folder)
