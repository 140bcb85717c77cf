"""The wish to stop, as the system tells it: Ctrl-C, a closed terminal, `kill`.

All three mean the same: end what runs, keep its work, stop in a state that can be resumed. So they
are counted, not told apart, but for the exit status. Nothing is raised: a decision in the middle of
a durable step would be the wrong one; who waits is woken, who doesn't looks when it is done.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    _Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ended_at_once() -> Iterator[int]:
    """Let a signal end the process at once while nothing runs and a person is asked something.

    A handler of ours would only count: the question would go on waiting for its answer.

    Yields:
        What gets readable when a signal comes (see `wake_up`).
    """
    ours = [number for number in SIGNALS if callable(signal.getsignal(number))]
    ends = {signal.SIGINT: signal.default_int_handler}
    with wake_up() as woken, _handled({n: ends.get(n, signal.SIG_DFL) for n in ours}):
        yield woken


@contextlib.contextmanager
def _handled(handlers: Mapping[signal.Signals, _Handler]) -> Iterator[None]:
    """Have signals handled until the block ends, then as before."""
    before = {number: signal.getsignal(number) for number in handlers}
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def wake_up() -> Iterator[int]:
    """Give a descriptor that gets readable when a signal comes for which there is a handler.

    A handler alone could come between the last look at what it does and poll(2), which would then
    sleep on. The byte that the interpreter writes at once can't be missed.
    """
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


_SAME_SIGNAL = 0.05  # s; a closed terminal or a wrapper often sends the same wish twice


class Interrupt:
    """A wish to stop, told by a signal; wakes whoever waits for a command.

    Attributes:
        signum: the first signal, None as long as there was none.
        count: how many there were; two within 0.05 s are one.
    """

    __slots__ = ("_last", "_reader", "count", "signum")

    def __init__(self) -> None:
        self._reader = -1
        self.reset()

    @contextlib.contextmanager
    def install(self) -> Iterator[Interrupt]:
        """Take SIGINT, SIGTERM and SIGHUP until the block ends, but for those that are ignored.

        What is ignored stays so: `nohup` and a shell's background jobs rely on it.
        """
        ours = [n for n in SIGNALS if signal.getsignal(n) not in (signal.SIG_IGN, None)]
        with wake_up() as self._reader, _handled(dict.fromkeys(ours, self._note)):
            try:
                yield self
            finally:
                self._reader = -1

    def reset(self) -> None:
        """Forget what came, so that one more command can run: the notice of the interruption."""
        self.signum: int | None = None
        self.count = 0
        self._last = -math.inf

    def fileno(self) -> int:
        """Return what gets readable when a signal comes, -1 unless installed."""
        return self._reader

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over or a signal comes; tell whether one came, or had before."""
        if not self.count and self._reader >= 0:
            select.select([self._reader], [], [], seconds)
        elif not self.count:
            time.sleep(seconds)
        return bool(self.count)

    def drain(self) -> None:
        """Make it unreadable again; `count` stays."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)

    def _note(self, signum: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > _SAME_SIGNAL:
            self.count += 1
        self._last = now
        if self.signum is None:
            self.signum = signum
