"""Waiting for git and libgit2, but not for ever.

git opens the `.gitignore` and the `.gitattributes` of each folder whatever they are, and a task can
make a named pipe of that name: whoever opens one waits until somebody writes into it. Nothing would
ever end that wait: no time limit of a task, and no signal to us. So a git that takes its time is
looked after, and what libgit2 does is ended by an alarm. A pipe in place of a file of git's own is
said as well; those that libgit2 and we open ourselves are looked at before.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from git_batch.errors import GitError
from git_batch.repo.here import git_dir_above

PATIENCE = 2.0
"""Seconds after which what git may be waiting for is looked for."""

_GRACE = 1.0
"""Seconds in which git may tidy up when it is ended."""

_LISTENING = 0.1
"""Seconds between two looks at whether a git that says nothing has ended."""

_READ = frozenset({".gitignore", ".gitattributes", ".gitmodules"})

_OF_GIT = ("HEAD", "index", "packed-refs", "config", "config.worktree", "shallow", "commondir")
_FOLDERS_OF_GIT = ("info", "refs", "logs", "objects/info", "objects/pack")
_WAYS = {
    "HEAD": ", which names a branch, as in 'ref: refs/heads/main'",
    "index": ", or have git make another one: git reset",
}


class InVainError(Exception):
    """A git that need not be waited for any longer, why, and what can be done; it was ended."""

    def __init__(self, why: str, *hints: str) -> None:
        super().__init__(why)
        self.why, self.hints = why, hints


def answer(
    child: subprocess.Popen[bytes], timeout: float | None, top: str, git_dir: str | None = None
) -> tuple[bytes, bytes]:
    """Wait for what a git says, as long as it has something to do.

    Args:
        child: it leads a process group of its own, and needs nobody who writes its input.
        timeout: seconds; None is no limit.
        top: the directory that it works on.
        git_dir: its repository, if it was told; else that which `top` lies in.

    Raises:
        InVainError: the time is over, or it waits for a named pipe.
    """
    left, wait = timeout, PATIENCE
    while True:
        this = wait if left is None else min(left, wait)
        try:
            return child.communicate(timeout=this)
        except subprocess.TimeoutExpired:
            if left is not None and left <= this:
                _end(child)
                raise InVainError(f"no answer within {timeout:g} seconds") from None
        pipe = in_the_way(top, git_dir)
        if pipe is not None:
            _end(child)
            raise InVainError(*_told(pipe))
        left = None if left is None else left - this
        wait *= 2


def relayed(
    command: Sequence[str], env: Mapping[str, str], top: str, relay: Callable[[bytes], None]
) -> int:
    """Run a git, pass on what it says on standard error as it comes, and give its exit status.

    Args:
        top: the directory that it works on.
        relay: is given each piece, an empty one at the end.
    """
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=env, cwd=top) as child:
        _listen(child, relay)
    return child.returncode


def _listen(child: subprocess.Popen[bytes], relay: Callable[[bytes], None]) -> None:
    """Pass on what a git says until it has ended.

    What it leaves running may keep that open for long, as an ssh that is shared does: only git
    itself is waited for. Interrupted by the person it was interrupted with us.
    """
    assert child.stderr is not None
    source = child.stderr.fileno()
    try:
        while True:
            ended = child.poll() is not None
            if select.select([source], [], [], 0 if ended else _LISTENING)[0]:
                said = os.read(source, 1 << 16)
                relay(said)
                if not said:
                    return
            elif ended:
                return
    except BaseException:
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)
        child.kill()
        raise


def _end(child: subprocess.Popen[bytes]) -> None:
    """End git with what it started: a program that waits for somebody would go on waiting.

    Asked, it removes its locks.
    """
    os.killpg(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def in_the_way(top: str, git_dir: str | None = None) -> str | None:
    """Name a pipe that git would open, by its path from the top; None if there is none.

    Args:
        top: the directory that it works on.
        git_dir: its repository, if it was told; else that which `top` lies in.
    """
    for path in _opened(top, git_dir or git_dir_above(top)):
        if is_pipe(path):
            return os.path.relpath(path, top)
    return None


def _opened(top: str, git_dir: str | None) -> Iterator[str]:
    for folder in [] if git_dir is None else dict.fromkeys((git_dir, _common(git_dir))):
        yield from (os.path.join(folder, name) for name in _OF_GIT)
        for below in _FOLDERS_OF_GIT:
            for place, _, files in os.walk(os.path.join(folder, below)):
                yield from (os.path.join(place, name) for name in files)
    for folder, folders, files in os.walk(top):
        with suppress(ValueError):
            folders.remove(".git")
        yield from (os.path.join(folder, name) for name in _READ.intersection(files))


def _common(git_dir: str) -> str:
    """Give what a git directory shares with others, by its name: it may be that of a worktree."""
    folder = os.path.dirname(git_dir)
    return os.path.dirname(folder) if os.path.basename(folder) == "worktrees" else git_dir


def is_pipe(path: str) -> bool:
    """Tell whether a path is a named pipe."""
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except OSError:
        return False


def _told(pipe: str) -> tuple[str, str]:
    """Say what is wrong with a pipe, and what can be done about it."""
    name = os.path.basename(pipe)
    why = f"'{pipe}' is a named pipe, and git would wait for it for ever"
    if name in _READ:
        return why, "move it away, then go on: git batch resume"
    return why, f"move it away, and put back the file that was there{_WAYS.get(name, '')}"


def refuse_pipes(top: str, *paths: str) -> None:
    """Refuse to go on where a file that libgit2 or we are about to read is a pipe.

    Args:
        top: what to name it from.

    Raises:
        GitError: one is.
    """
    for path in paths:
        if is_pipe(path):
            raise GitError(*_told(os.path.relpath(path, top)))


@contextmanager
def not_for_ever() -> Iterator[None]:
    """Have what libgit2 waits for in this block fail after a while, instead of waiting on.

    A signal ends the wait: open(2) is not taken up again after it. Only the main thread can take
    one; and where somebody else uses this alarm it stays theirs.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
