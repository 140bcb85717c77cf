"""The wait for one command that has been started, and how it ended.

Rules of the room:

* The end of a command is the end of its *leader*. Its output comes through a pipe that is read
  while we wait, and whose end is never waited for: a grandchild may hold it for ever. What the
  leader wrote is in the pipe when it ends, and is taken; what it left running is ended and named.
* Waiting costs nothing: one poll(2) on the pipe, a pidfd, and the pipe that signals write to. No
  thread; no polling where there are pidfds. Four times a second a slow command's dead orphans are
  buried.
* How a command ended is one word. A limit or a signal of ours decides it, even if the command then
  exits 0; one that ended before we noticed has simply ended.
* A limit, or the first signal: TERM to all of it, the grace time, KILL. The second signal: KILL.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct, field

from git_batch.run.descendants import Leftover, Swept, sweep
from git_batch.run.output import SMALLEST_CAP
from git_batch.run.procfs import open_pidfd

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from git_batch.run.descendants import Kin
    from git_batch.run.interrupt import Interrupt
    from git_batch.run.output import Capture

SLOW: Final = 0.2
"""Seconds after which a command is slow, and `on_slow` is called."""

_SETTLE = 0.1  # s in which descendants may end by themselves once the leader has
_LEFTOVER_GRACE = 2.0  # s between TERM and KILL for what a command left behind
_TICK = 0.25  # s between two looks for dead orphans
_GIVE_UP = 5.0  # s after KILL in which a leader must be gone
_LONGEST_NAP = 0.02  # s between two looks at the leader, where there is no pidfd
_READ = 64 * 1024  # what a pipe holds
_LARGEST_PIPE = 2**20  # what a process may enlarge it to


class How(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    KILLED = "killed"  # by a signal that wasn't ours
    TIMED_OUT = "timed_out"
    STALLED = "stalled"  # no output for too long
    INTERRUPTED = "interrupted"
    NOT_FOUND = "not_found"  # or not startable for another reason: see `Ended.reason`


class Limits(Struct, frozen=True):
    """What a command may take: times in seconds (None: no limit), its log in bytes."""

    timeout: float | None = None
    idle_timeout: float | None = None
    grace: float = 10.0
    log_cap: int = 8 * 2**20

    def __post_init__(self) -> None:
        if self.log_cap < SMALLEST_CAP:
            raise ValueError(f"log_cap must be at least {SMALLEST_CAP}, not {self.log_cap}")


class Ended(Struct, frozen=True):
    """The end of a command.

    Attributes:
        how: one word for it.
        status: what the leader exited with, None if it didn't.
        signal: what killed the leader, whoever sent it, None if nothing did.
        seconds: from start to the leader's end.
        leftovers: what outlived the leader and had to be ended.
        reason: why it couldn't be started. Holds the plan's words: escape it before showing.
        survivors: what KILL didn't end; another user's processes, for instance.
        log_error: why its output isn't all in the log.
        limit: what it was ended for, in seconds; None unless it exceeded one. `seconds` holds the
            time that it then took to end, too.
    """

    how: How
    status: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    leftovers: tuple[Leftover, ...] = ()
    reason: str | None = None
    survivors: tuple[Leftover, ...] = ()
    log_error: str | None = None
    limit: float | None = None


class Watch(Struct):
    """The wait for one command. Left by an exception, it kills what is alive."""

    leader: subprocess.Popen[bytes]
    reader: int
    capture: Capture
    kin: Kin
    limits: Limits
    interrupt: Interrupt
    on_slow: Callable[[], None] | None
    started: float

    how: How | None = None  # set once we have decided to end it
    kill_at: float = math.inf
    give_up_at: float = math.inf
    asked: list[Leftover] = field(default_factory=list)
    last_output: float = math.nan  # set when the wait begins
    tick_at: float = math.nan
    nap: float = 0.001
    pidfd: int = -1
    poller: select.poll = field(default_factory=select.poll)

    def __enter__(self) -> Self:
        self.last_output = self.started
        self.tick_at = self.started + _TICK
        self.pidfd = open_pidfd(self.leader.pid)
        for fd in (self.reader, self.pidfd, self.interrupt.fileno()):
            if fd >= 0:
                self.poller.register(fd, select.POLLIN)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None:
                self._abandon()
        finally:
            self._close_pidfd()
            os.close(self.reader)

    def follow(self) -> Ended:
        """Wait for the end of the leader, then see to what it left."""
        code = self._until_exit()
        seconds = time.monotonic() - self.started
        self._close_pidfd()
        swept = self._clear()
        self._drain()
        self.capture.close()
        error = self.capture.error
        killed = code is not None and code < 0
        return Ended(
            how=self.how or (How.KILLED if killed else How.EXITED),
            status=None if killed else code,
            signal=-code if code is not None and killed else None,
            seconds=seconds,
            leftovers=swept.named,
            survivors=swept.survivors,
            log_error=None if error is None else str(error.strerror),
            limit=self._exceeded(),
        )

    def _until_exit(self) -> int | None:
        """Return the leader's status, minus its signal, or None if KILL doesn't end it."""
        while (code := self._serve(self._next())) is None:
            now = time.monotonic()
            if now >= self.give_up_at:
                return None
            if now >= self.tick_at:
                self.kin.reap()
                self.tick_at = now + _TICK
            if self.on_slow is not None and now >= self.started + SLOW:
                on_slow, self.on_slow = self.on_slow, None
                on_slow()
            if self.how is None and (how := self._cause(now)) is not None:
                self.how = how
                self.asked = self.kin.signal(signal.SIGTERM)
                self.kill_at = now + self.limits.grace
            if self.how is not None and (now >= self.kill_at or self.interrupt.count > 1):
                self.kin.signal(signal.SIGKILL)
                self.give_up_at = min(self.give_up_at, now + _GIVE_UP)
                self.kill_at = now + _TICK
        return code

    def _next(self) -> float:
        """Return when there is something to do, even if nothing happens."""
        due = min(self.tick_at, self.kill_at, self.give_up_at)
        if self.on_slow is not None:
            due = min(due, self.started + SLOW)
        if self.how is None and self.limits.timeout is not None:
            due = min(due, self.started + self.limits.timeout)
        if self.how is None and self.limits.idle_timeout is not None:
            due = min(due, self.last_output + self.limits.idle_timeout)
        return due

    def _exceeded(self) -> float | None:
        """Give the limit that the command was ended for."""
        if self.how is How.TIMED_OUT:
            return self.limits.timeout
        return self.limits.idle_timeout if self.how is How.STALLED else None

    def _cause(self, now: float) -> How | None:
        """Return why the command must end now, if it must."""
        timeout, idle = self.limits.timeout, self.limits.idle_timeout
        if self.interrupt.count:
            return How.INTERRUPTED
        if timeout is not None and now >= self.started + timeout:
            return How.TIMED_OUT
        if idle is not None and now >= self.last_output + idle:
            return How.STALLED
        return None

    def _serve(self, until: float) -> int | None:
        """Wait for output, a signal or the leader's end; return its status if it has ended."""
        wait = until - time.monotonic()
        if self.pidfd < 0:
            wait = min(wait, self.nap)
            self.nap = min(2 * self.nap, _LONGEST_NAP)
        if self.pidfd not in self._poll(wait) and self.pidfd >= 0:
            return None
        pid, status = os.waitpid(self.leader.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.leader.returncode = os.waitstatus_to_exitcode(status)
        return self.leader.returncode

    def _poll(self, wait: float) -> list[int]:
        """Wait up to so many seconds, take what comes, return what is ready."""
        ready = [fd for fd, _ in self.poller.poll(max(0, math.ceil(wait * 1000)))]
        if self.reader in ready:
            self._read()
        if self.interrupt.fileno() in ready:
            self.interrupt.drain()
        return ready

    def _read(self) -> int:
        """Take output from the pipe; return how many bytes, 0 if there is no more."""
        try:
            data = os.read(self.reader, _READ)
        except BlockingIOError:
            return 0
        if data:
            self.last_output = time.monotonic()
            self.capture.feed(data)
        else:  # all have closed it: don't be told again
            with contextlib.suppress(KeyError):
                self.poller.unregister(self.reader)
        return len(data)

    def _drain(self) -> None:
        """Take what all of them wrote last. No more than fits a pipe: some may go on for ever."""
        left = _LARGEST_PIPE
        while left > 0 and (taken := self._read()):
            left -= taken

    def _clear(self) -> Swept:
        """End what outlived the leader."""
        if self.kin.gone():
            return Swept((), ())
        grace = min(self.limits.grace, _LEFTOVER_GRACE)
        if self.how is not None:
            killed = self.give_up_at < math.inf
            grace = 0 if killed else min(grace, max(0, self.kill_at - time.monotonic()))
        return sweep(
            self.kin.find,
            settle=_SETTLE,
            grace=grace,
            pause=self._pause,
            hurry=lambda: self.interrupt.count > 1,
            asked=self.asked,
        )

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (wait := until - time.monotonic()) > 0:
            self._poll(wait)

    def _abandon(self) -> None:
        give_up_at = time.monotonic() + _GIVE_UP
        while self.leader.returncode is None and time.monotonic() < give_up_at:
            self.kin.signal(signal.SIGKILL)
            self._serve(time.monotonic() + _TICK)
        self._close_pidfd()
        sweep(self.kin.find, settle=0, grace=0, pause=self._pause)

    def _close_pidfd(self) -> None:
        if self.pidfd >= 0:
            self.poller.unregister(self.pidfd)
            os.close(self.pidfd)
            self.pidfd = -1
