"""One child command, from its start to the end of its last descendant.

Rules of the room:

* The command gets a session of its own: no terminal to ask on, and Ctrl-C doesn't reach it. What a
  person or the system tells us is passed on (`watch`).
* No `preexec_fn`, which would turn vfork into fork: 20 times as slow in a large process.
* A command that can't be started is an outcome like another. An exception is raised only for what
  isn't the command's fault: an unreadable `stdin`, no more processes or descriptors. Whatever is
  raised, nothing is left alive.
* Runs in the main thread, one command at a time (`descendants` says why).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from git_batch.run.descendants import MARKER, Kin, Leftover
from git_batch.run.interrupt import Interrupt
from git_batch.run.output import Capture
from git_batch.run.watch import SLOW, Ended, How, Limits, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["SLOW", "Ended", "How", "Interrupt", "Leftover", "Limits", "run"]

# The command's own faults among the errors of starting it; others are the machine's, and raised.
_NOT_STARTABLE = frozenset(
    {
        errno.E2BIG,
        errno.EACCES,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.ETXTBSY,
    }
)


def run(
    argv: Sequence[str | bytes],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: Path | None,
    log: Path,
    limits: Limits,
    interrupt: Interrupt,
    lock_fd: int | None = None,
    marker: str = "",
    on_started: Callable[[], None] | None = None,
    on_slow: Callable[[], None] | None = None,
) -> Ended:
    """Run a command to its end, and end all that it leaves.

    `env` is its whole environment, but for `marker`, which goes into the variable `MARKER`; the
    program is looked for in the PATH of `env`. stdout and stderr go to `log` as they come; a
    silent command leaves none. `lock_fd` stays open in all that it starts. `on_started` is called
    while it begins to run, `on_slow` once it has run for `SLOW` seconds; neither may leave
    processes behind. Nothing is started after a signal.

    Raises:
        OSError: `stdin` can't be read, what stands at `log` not be removed, or the system gives
            no process or descriptor.
    """
    _keep_children()
    with Capture(log, limits.log_cap) as capture, _opened(stdin) as source, Kin(marker) as kin:
        if interrupt.count:
            return Ended(How.INTERRUPTED)
        variables = {**env, MARKER: marker} if marker else env
        started = time.monotonic()
        try:
            leader, reader = _start(argv, cwd, variables, source, lock_fd)
        except (OSError, ValueError) as error:
            return Ended(How.NOT_FOUND, reason=_why_not(error))
        kin.leader = leader.pid
        with Watch(leader, reader, capture, kin, limits, interrupt, on_slow, started) as watch:
            if on_started is not None:
                on_started()
            return watch.follow()


@contextlib.contextmanager
def _opened(path: Path | None) -> Iterator[int]:
    if path is None:
        yield subprocess.DEVNULL
        return
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _keep_children() -> None:
    """Undo an ignored SIGCHLD that whoever started us left behind.

    The kernel would reap our children by itself, and their status be lost.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _start(
    argv: Sequence[str | bytes],
    cwd: Path,
    env: Mapping[str, str],
    source: int,
    lock_fd: int | None,
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the leader; return it and the reading end of its output."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        leader = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=source,
            stdout=writer,
            stderr=writer,
            pass_fds=() if lock_fd is None else (lock_fd,),
            start_new_session=True,
        )
    except (OSError, ValueError):
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return leader, reader


def _why_not(error: OSError | ValueError) -> str:
    """Say why a command could not be started; raise what isn't its fault."""
    if isinstance(error, ValueError):  # a NUL byte, or '=' in the name of a variable
        return str(error)
    if error.errno not in _NOT_STARTABLE:
        raise error
    if isinstance(error.filename, str | bytes | os.PathLike):
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error.strerror)
