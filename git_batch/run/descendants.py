"""Whatever a command started: found, ended, named.

A process gets away from its parent by `setsid`, by forking twice, by closing its files, by
clearing its environment. No single trace of it is enough, so four are used, the strongest first:

1. **Adoption** (Linux). While a command runs, this process is a *child subreaper* (prctl(2)): an
   orphan becomes our child, not init's. So "no children but those we had before" *proves* that
   nothing is left, and costs one system call. It is set for the length of a command only, lest the
   background `git gc` of our own git commands become ours too.
2. **Session and group** of the leader.
3. **The marker**: an environment variable that the command inherits (`MARKER`). It must be unlike
   that of any other run on this machine, of another clone of the same batch, too; while the first
   trace can be had it isn't looked at, since it proves less.
4. **The lock**: an open file that the command inherits, with a shared flock(2) on it. It outlives
   a kill -9 of the runner, which the first two don't; the next run finds its holders (`living`),
   and whoever is in the control group of the killed run, where it had one (`group`).

Rules of the room:

* One command at a time, and nobody else in this process starts any meanwhile: a new child of ours
  is taken to be the command's. Children from before are never touched.
* A pid is reused; a pid with its birth (clock ticks since boot) isn't. Nothing is signalled unless
  both agree, by pidfd where there is one.
* TERM first, then a grace time, then KILL until none is left; TERM is sent once to each. What is
  still there after the last KILL (another user's, or stuck in the kernel) is told, not waited for.
* A zombie is not alive; ours are reaped, by pid, never by `waitpid(-1)`.

Elsewhere than on Linux there is neither adoption nor /proc: the process group is ended as a whole,
and what left it escapes.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self

from msgspec import Struct

from git_batch.run import procfs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from git_batch.run.procfs import Stat

MARKER = "GIT_BATCH_RUN"
"""Environment variable that every process of a run carries, unless it clears it."""

GIVE_UP = 5.0
"""Seconds of KILL after which what still lives is reported as a survivor."""

_LONGEST_PAUSE = 0.05


class Leftover(Struct, frozen=True):
    """A process that outlived its command.

    A negative `pid` is a whole process group, as for kill(1). `birth` is in clock ticks since
    boot, 0 where unknown. `command` is what the process says of itself: escape it before showing.
    """

    pid: int
    command: str
    birth: int = 0

    @property
    def age(self) -> float | None:
        """Seconds since it was started, None where that can't be known."""
        return (
            max(0, procfs.ticks() - self.birth) / os.sysconf("SC_CLK_TCK") if self.birth else None
        )

    @property
    def key(self) -> tuple[int, int]:
        """What tells it from every other process, also from a later one with its pid."""
        return self.pid, self.birth


class Swept(NamedTuple):
    """What `sweep` had to signal, in the order of their pids, and what is still alive."""

    named: tuple[Leftover, ...]
    survivors: tuple[Leftover, ...]


class Kin:
    """The processes of one command; a context manager around its whole life.

    Enter it before the command is started, then set `leader`.
    """

    __slots__ = ("_adopting", "_before", "_marker", "_restore", "_since", "leader")

    def __init__(self, marker: str) -> None:
        self._marker = os.fsencode(f"{MARKER}={marker}\0") if marker else b""
        self.leader = 0

    def __enter__(self) -> Self:
        self._restore = procfs.subreaper(on=True)
        self._adopting = self._restore is not None
        if self._adopting:
            self._marker = b""
        self._before = procfs.children() if self._adopting else frozenset[int]()
        self._since = procfs.ticks()
        return self

    def __exit__(self, *_: object) -> None:
        if self._restore is False:
            procfs.subreaper(on=False)

    def gone(self) -> bool:
        """Tell, once the leader was waited for, whether nothing of the command is left.

        A proof where adoption works and the runner has no children of its own.
        """
        if self._adopting and not procfs.children() - self._before:
            return True
        return not self.find()

    def reap(self) -> None:
        """Bury adopted children that died, all but the leader, whose status is somebody's to read.

        To be called now and then while the command runs: it may itself wait for the pid of a
        daemon of its own to go away.
        """
        if self._adopting:
            for pid in procfs.children() - self._before - {self.leader}:
                procfs.bury(pid)

    def find(self) -> list[Leftover]:
        """List the living processes of the command, bury its dead."""
        for _ in range(3):
            table = procfs.table()
            if not table:
                return self._group()
            me = os.getpid()
            mine = self._mine(table)
            for pid in mine:
                if table[pid].dead and table[pid].parent == me and pid != self.leader:
                    procfs.bury(pid)
            living = sorted(pid for pid in mine if not table[pid].dead)
            # A walk through /proc isn't a snapshot: who forked and died meanwhile may be missed.
            if living or not self._adopting or not procfs.children() - self._before - {self.leader}:
                return [_leftover(pid, table[pid]) for pid in living]
        return []

    def signal(self, signum: int) -> list[Leftover]:
        """Send a signal to all of the command, its leader included; tell to whom.

        The leader must not have been waited for yet: that keeps the group's number ours.
        """
        found = self.find()
        # The group first, and as a whole: it can't outrun that by forking.
        procfs.send(-self.leader, 0, signum)
        for process in found:
            with suppress(OSError):
                if os.getpgid(process.pid) != self.leader:
                    procfs.send(process.pid, process.birth, signum)
        return found

    def _mine(self, table: dict[int, Stat]) -> set[int]:
        me, leader = os.getpid(), self.leader
        roots = set[int]()
        for pid, stat in table.items():
            if stat.parent == me:
                if pid == leader or (self._adopting and pid not in self._before):
                    roots.add(pid)
            elif (
                stat.birth >= self._since  # else it isn't this command's, whatever it carries
                and not stat.dead
                and (
                    leader in (stat.session, stat.group)
                    or (self._marker and procfs.has_variable(pid, self._marker))
                )
            ):
                roots.add(pid)
        return procfs.with_children(table, roots) - {me}

    def _group(self) -> list[Leftover]:
        try:
            os.killpg(self.leader, 0)
        except (ProcessLookupError, PermissionError):  # the latter: only zombies, on macOS
            return []
        return [Leftover(-self.leader, f"process group {self.leader}")]


def sweep(
    find: Callable[[], list[Leftover]],
    *,
    settle: float,
    grace: float,
    pause: Callable[[float], None] = time.sleep,
    hurry: Callable[[], bool] = lambda: False,
    asked: Iterable[Leftover] = (),
) -> Swept:
    """End all that `find` finds, until it finds none or KILL has failed for `GIVE_UP` seconds.

    Args:
        find: lists those still alive.
        settle: seconds in which they may end by themselves, unnamed, as the end of a pipeline does.
        grace: seconds between TERM and KILL.
        hurry: tells that the grace time is over.
        asked: who has had a TERM.
    """
    start = time.monotonic()
    term_at, kill_at, give_up = start + settle, start + settle + grace, float("inf")
    termed = {process.key for process in asked}
    named: dict[tuple[int, int], Leftover] = {}
    delay = 0.001
    while alive := find():
        now = time.monotonic()
        if now >= give_up:
            return Swept(tuple(named.values()), tuple(alive))
        if now >= kill_at or hurry():
            give_up, kill_at = min(give_up, now + GIVE_UP), min(kill_at, now)
        if now >= min(term_at, kill_at):
            for process in alive:
                named.setdefault(process.key, process)
                if now >= kill_at:
                    procfs.send(process.pid, process.birth, signal.SIGKILL)
                elif process.key not in termed:
                    termed.add(process.key)
                    procfs.send(process.pid, process.birth, signal.SIGTERM)
        pause(delay)
        delay = min(2 * delay, _LONGEST_PAUSE)
    return Swept(tuple(named.values()), ())


def living(
    lock_path: Path, marker_prefix: str, group: frozenset[int] = frozenset()
) -> list[Leftover]:
    """List what an earlier run left alive, oldest first, this process excepted.

    Args:
        lock_path: the lock file whose descriptor the commands inherited.
        marker_prefix: what the markers of the run begin with, its last character being one that
            ends an id; empty to go by the lock alone.
        group: the processes of the run's control group.

    Returns:
        They, holders of a lock on the file, processes with the marker, and all their children.
        Empty where there is no /proc; the lock itself still tells whether there is somebody.
    """
    try:
        stat = lock_path.stat()
        file = (stat.st_dev, stat.st_ino)
    except FileNotFoundError:
        file = None
    marker = os.fsencode(f"{MARKER}={marker_prefix}") if marker_prefix else None
    table = procfs.table()
    line = procfs.with_ancestors(table, os.getpid())
    found = {
        pid
        for pid, process in table.items()
        if not process.dead
        and pid != os.getpid()
        and (
            (pid in group and not _is_meant_to_stay(pid))
            or (marker is not None and procfs.has_variable(pid, marker))
            or (file is not None and procfs.holds_lock(pid, file, lock_path.name))
        )
    }
    found |= procfs.with_children(table, found - line) - line
    order = sorted(found, key=lambda pid: (table[pid].birth, pid))
    return [_leftover(pid, table[pid]) for pid in order if not table[pid].dead]


def _is_meant_to_stay(pid: int) -> bool:
    """Tell git's file system monitor: a git of ours may have started it, and it changes nothing."""
    return b"\0fsmonitor--daemon\0" in procfs.arguments_of(pid)


def end(leftovers: Iterable[Leftover], grace: float) -> list[Leftover]:
    """End processes that an earlier run left, with all their children; return who survived.

    Spares this process and those that it descends from, though they be among the leftovers, and
    what else those have started: a mistake there would end the whole session, or the machine.

    Args:
        leftovers: as `living` returned them, however long ago.
        grace: seconds between TERM and KILL.
    """
    wanted = {process.key for process in leftovers}

    def find() -> list[Leftover]:
        table = procfs.table()
        line = procfs.with_ancestors(table, os.getpid())
        roots = {pid for pid, stat in table.items() if (pid, stat.birth) in wanted} - line
        mine = procfs.with_children(table, roots) - line
        alive = [_leftover(pid, table[pid]) for pid in sorted(mine) if not table[pid].dead]
        wanted.update(process.key for process in alive)  # its parent may be gone the next time
        return alive

    return list(sweep(find, settle=0, grace=grace).survivors)


def _leftover(pid: int, stat: Stat) -> Leftover:
    return Leftover(pid, procfs.command_of(pid, stat), stat.birth)
