"""A process of its own that reads plan files, for `git batch start`.

What validates a plan (pydantic and its models) takes longer to import than libgit2 and all that
runs the plan afterwards, and a run has no use for it. So the console script begins this process
before it imports anything, on another core, and asks it for the plan when it knows which. It is
gone before the batch begins.

This module imports nothing that takes time: it is there before click is.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NoReturn, Self

if TYPE_CHECKING:
    from git_batch.app.planning import LoadedPlan
    from git_batch.errors import BatchError


START = "git batch start"


class PlanReader:
    """Reads plans: in a process of its own if one was begun and answers, else here.

    A context that ends that process.
    """

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._asked: tuple[str, str | None] | None = None

    def begin(self) -> Self:
        """Start the process, so that what it needs is imported by the time it is asked.

        A process of several threads can't be copied safely: it reads for itself, as does one that
        the system gives no other process.
        """
        if _has_one_thread():
            self._process = _Process.begun()
        return self

    def ahead(
        self, top: str, named: str | None, command: str = START, *, once: bool = False
    ) -> None:
        """Say which plan will be wanted.

        Args:
            top, named, command: as of `planning.plan_for`.
            once: nothing is asked after it, so that the process ends while others work.
        """
        if self._process is not None and self._process.ask(top, named, command, once=once):
            self._asked = (top, named)

    def read(self, top: str, named: str | None, command: str = START) -> LoadedPlan:
        """Find and read a plan.

        Raises:
            UsageError: there is none, or it can't be read.
            PlanError: it is not a plan.
        """
        from git_batch.app.planning import LoadedPlan, plan_for

        if self._asked != (top, named):
            self.ahead(top, named, command)
        said = self._process.answer() if self._asked and self._process is not None else None
        self._asked = None
        if said is None:
            self.close()
            return plan_for(top, named, command)
        if not isinstance(said, LoadedPlan):
            raise said
        return said

    def close(self) -> None:
        """End the process, whatever it waits for: that may be the end of a pipe.

        It is ended once: a Ctrl-C ends both processes, so ours may be interrupted right here.
        """
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()


class _Process:
    """The other process, and what it is asked and answers through: pickles, one for each plan."""

    def __init__(self, pid: int, asks: int, answers: BinaryIO) -> None:
        self._pid, self._asks, self._answers = pid, asks, answers

    @classmethod
    def begun(cls) -> Self | None:
        """Start it; None if the system refuses."""
        pipes: list[int] = []
        try:
            for _ in range(2):
                pipes += os.pipe()
            pid = os.fork()
        except OSError:
            for fd in pipes:
                os.close(fd)
            return None
        asked, asks, answers, answer = pipes
        if pid == 0:
            os.close(asks)  # else it would wait for itself
            _serve(asked, answer)
        os.close(asked)
        os.close(answer)
        return cls(pid, asks, os.fdopen(answers, "rb"))

    def ask(self, top: str, named: str | None, command: str, *, once: bool) -> bool:
        """Ask for a plan; False if nobody is there to answer."""
        import pickle

        try:
            os.write(self._asks, pickle.dumps((top, named, command, once)))
        except BrokenPipeError:
            return False
        return True

    def answer(self) -> LoadedPlan | BatchError | None:
        """Wait for what was asked for; None if it came to no answer (a bug, or it was killed)."""
        import pickle

        try:
            said: LoadedPlan | BatchError = pickle.load(self._answers)
        except (EOFError, pickle.UnpicklingError):
            return None
        return said

    def end(self) -> None:
        """Be rid of it."""
        os.close(self._asks)
        self._answers.close()
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # whoever started us ignores SIGCHLD
            os.waitpid(self._pid, 0)


def _has_one_thread() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:  # not Linux: those that Python knows of
        import threading

        return threading.active_count() == 1


def _serve(asked: int, answer: int) -> NoReturn:
    """Read the plans that are asked for, say each or what is wrong with it, until nobody asks."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the other one says that it was interrupted
        import pickle

        from git_batch.app.planning import parser, plan_for
        from git_batch.errors import BatchError

        parser()  # what takes the time

        with os.fdopen(asked, "rb") as questions, os.fdopen(answer, "wb") as answers:
            once = False
            while not once:
                top, named, command, once = pickle.load(questions)
                try:
                    said: LoadedPlan | BatchError = plan_for(top, named, command)
                except BatchError as error:
                    said = error
                pickle.dump(said, answers, pickle.HIGHEST_PROTOCOL)
                answers.flush()
    finally:
        os._exit(0)
