"""What the kernel tells about processes: /proc, prctl, pidfd. Nothing is decided here.

Everything in /proc may vanish between two reads, or belong to somebody else: each read answers
with nothing then, never with an error. A walk through /proc is not a snapshot. Where there is no
/proc of the Linux kind, `table` is empty.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_COMMAND_BYTES = 4096
_ENVIRONMENT_BYTES = 4 * 2**20
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # <linux/prctl.h>


class Stat(NamedTuple):
    """One process, as /proc/<pid>/stat has it; `birth` in clock ticks since boot."""

    name: bytes
    dead: bool
    parent: int
    group: int
    session: int
    birth: int


def table() -> dict[int, Stat]:
    """Read all processes; empty where there is no /proc of the Linux kind."""
    if sys.platform != "linux":
        return {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    found = {int(name): stat_of(int(name)) for name in names if name.isdigit()}
    return {pid: stat for pid, stat in found.items() if stat is not None}


def stat_of(pid: int) -> Stat | None:
    """Read one process, None if it is gone."""
    text = _read(f"/proc/{pid}/stat", 4096)
    # The name stands in parentheses and may hold anything, parentheses and newlines too.
    start, end = text.find(b"("), text.rfind(b")")
    field = text[end + 2 :].split()
    if start < 0 or len(field) < 20:
        return None
    return Stat(
        name=text[start + 1 : end],
        dead=field[0] in (b"Z", b"X", b"x"),
        parent=int(field[1]),
        group=int(field[2]),
        session=int(field[3]),
        birth=int(field[19]),
    )


def with_children(processes: dict[int, Stat], roots: Iterable[int]) -> set[int]:
    """Return `roots` and all that descends from them."""
    children: dict[int, list[int]] = {}
    for pid, stat in processes.items():
        children.setdefault(stat.parent, []).append(pid)
    found = set(roots)
    todo = list(found)
    while todo:
        new = [pid for pid in children.get(todo.pop(), ()) if pid not in found]
        found.update(new)
        todo.extend(new)
    return found


def with_ancestors(processes: dict[int, Stat], pid: int) -> set[int]:
    """Return `pid` and all that it descends from."""
    found = set[int]()
    while pid not in found and (stat := processes.get(pid)):
        found.add(pid)
        pid = stat.parent
    return found


def children() -> frozenset[int]:
    """Return the children of this process, living or not yet waited for (Linux)."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # the usual answer, and a cheap one
        return frozenset()
    try:
        threads = os.listdir("/proc/self/task")
        lists = [_read(f"/proc/self/task/{thread}/children", 2**20) for thread in threads]
    except OSError:
        lists = []
    if not any(lists):  # a kernel without these lists
        me = os.getpid()
        return frozenset(pid for pid, stat in table().items() if stat.parent == me)
    return frozenset(int(pid) for pids in lists for pid in pids.split())


def arguments_of(pid: int) -> bytes:
    """Return what a process was started with, each argument with a NUL behind it."""
    return _read(f"/proc/{pid}/cmdline", _COMMAND_BYTES)


def command_of(pid: int, stat: Stat) -> str:
    """Return the command line of a process, its bare name in brackets if it has none.

    It is one line: a process must not be able to write lines of ours by what it calls itself.
    """
    line = arguments_of(pid).rstrip(b"\0")
    text = os.fsdecode(line.replace(b"\0", b" ") or b"[" + stat.name + b"]")
    return " ".join(text.split())


def has_variable(pid: int, start: bytes) -> bool:
    """Tell whether a process was given an environment entry that begins with `start`."""
    return b"\0" + start in b"\0" + _read(f"/proc/{pid}/environ", _ENVIRONMENT_BYTES)


def holds_lock(pid: int, file: tuple[int, int], name: str) -> bool:
    """Tell whether a process has a file open with a flock(2) on it.

    Args:
        pid: the process.
        file: device and inode.
        name: the file's name; only what is called so is looked at, since a stat of just any open
            file may hang on a dead network drive.
    """
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for fd in os.listdir(folder):
            with suppress(OSError):  # closed meanwhile
                link = os.readlink(f"{folder}/{fd}").removesuffix(" (deleted)")
                if os.path.basename(link) == name:
                    stat = os.stat(f"{folder}/{fd}")
                    locks = _read(f"/proc/{pid}/fdinfo/{fd}", 2**16)
                    if (stat.st_dev, stat.st_ino) == file and b"FLOCK" in locks:
                        return True
    return False


def bury(pid: int) -> None:
    """Wait for a dead child of this process; do nothing for anyone else."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def open_pidfd(pid: int) -> int:
    """Open a descriptor that gets readable when the process ends; -1 where there is none."""
    if sys.platform == "linux":
        with suppress(OSError):
            return os.pidfd_open(pid)
    return -1


def send(pid: int, birth: int, signum: int) -> None:
    """Signal a process if it is still the one that was born then, and let it go on if stopped.

    A negative pid is a process group. Somebody else's process is left as it is.

    Raises:
        ValueError: the pid is this process, init, or what kill(2) takes for many: never meant.
    """
    if pid in (-1, 0, 1, os.getpid()):
        raise ValueError(f"refusing to signal pid {pid}")
    pidfd = open_pidfd(pid) if pid > 0 else -1
    try:
        if pid > 0 and birth:
            stat = stat_of(pid)
            if stat is None or stat.birth != birth:
                return
        # A stopped process takes a TERM only when it goes on.
        for number in (signum, signal.SIGCONT):
            with suppress(ProcessLookupError, PermissionError):
                if sys.platform == "linux" and pidfd >= 0:
                    signal.pidfd_send_signal(pidfd, number)
                else:
                    os.kill(pid, number)
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def ticks() -> int:
    """Return the clock ticks since boot, as `Stat.birth` counts them; 0 where not known."""
    if sys.platform != "linux":
        return 0
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def subreaper(*, on: bool) -> bool | None:
    """Say whether orphaned descendants become children of this process (Linux).

    Returns:
        What held before; None where it can't be said.
    """
    prctl = _prctl()
    if prctl is None:
        return None
    before = prctl(_GET_SUBREAPER, 0)
    if before is not None and before != on and prctl(_SET_SUBREAPER, on) is None:
        return None
    return before


@cache
def _prctl() -> Callable[[int, int], bool | None] | None:
    if sys.platform != "linux":
        return None
    try:
        import ctypes  # 5 ms that only a run has to pay, once

        function = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    ulong, answer = ctypes.c_ulong, ctypes.c_int()
    none, here = ulong(0), ctypes.byref(answer)

    def prctl(option: int, value: int) -> bool | None:
        argument = here if option == _GET_SUBREAPER else ulong(value)
        failed = function(option, argument, none, none, none) != 0
        return None if failed else bool(answer.value)

    return prctl


def _read(path: str, limit: int) -> bytes:
    """Read a file of /proc, empty if its process is gone or none of our business."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    parts = []
    try:
        while limit > 0 and (part := os.read(fd, min(limit, 2**16))):
            parts.append(part)
            limit -= len(part)
    except OSError:  # the process ended in the middle
        pass
    finally:
        os.close(fd)
    return b"".join(parts)


def ancestor_holding(name: str) -> int | None:
    """Give the nearest of the processes that started us which has a file `batch/<name>` open.

    None where there is none, or where the kernel doesn't tell.
    """
    pid, seen = os.getppid(), set[int]()
    while pid > 1 and pid not in seen:
        seen.add(pid)
        stat = stat_of(pid) if sys.platform == "linux" else None
        if stat is None:
            return None
        if any(target.endswith(f"/batch/{name}") for target in _open_files(pid)):
            return pid
        pid = stat.parent
    return None


def _open_files(pid: int) -> list[str]:
    found = []
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found
