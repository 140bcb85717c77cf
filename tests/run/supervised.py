"""How the tests of this folder run a child script, and look at what became of it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from git_batch.run import procfs
from git_batch.run.output import tail
from git_batch.run.process import Ended, Interrupt, Limits, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHILDREN = Path(__file__).parents[2] / "fixtures" / "children"
PYTHON = (sys.executable, "-S", "-E")
ENV = {"PATH": os.defpath, "LC_ALL": "C"}
MIB = 2**20

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a subreaper")


@dataclass
class Runner:
    """What a test changes of a call; everything else has a default."""

    folder: Path
    interrupt: Interrupt = field(default_factory=Interrupt)
    env: dict[str, str] = field(default_factory=lambda: dict(ENV))
    stdin: Path | None = None
    lock_fd: int | None = None
    marker: str = f"test-{os.getpid()}/1"  # the same tests may run beside us
    on_slow: Callable[[], None] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def __call__(self, *argv: str | bytes, **limits: float) -> Ended:
        return run(
            argv,
            cwd=self.folder,
            env=self.env,
            stdin=self.stdin,
            log=self.log,
            limits=Limits(**limits),  # type: ignore[arg-type]
            interrupt=self.interrupt,
            lock_fd=self.lock_fd,
            marker=self.marker,
            on_slow=self.on_slow,
        )

    def child(self, name: str, *arguments: str, **limits: float) -> Ended:
        start = PYTHON if name.endswith(".py") else ()
        return self(*start, str(CHILDREN / name), *arguments, **limits)

    def output(self) -> bytes:
        return tail(self.log, 16 * MIB)


@contextlib.contextmanager
def signals_at(*plan: tuple[float, int]) -> Iterator[None]:
    """Send signals to this process, each so many seconds after the one before."""

    def send() -> None:
        for pause, signum in plan:
            time.sleep(pause)
            os.kill(os.getpid(), signum)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def is_alive(pid: int) -> bool:
    stat = procfs.stat_of(pid)
    return stat is not None and not stat.dead
