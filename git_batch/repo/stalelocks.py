"""Lock files that a crash left on our refs: proven stale, removed, told.

A `kill -9` inside a ref update leaves `<ref>.lock`, and no age makes git or libgit2 ignore it.
What it says is no evidence: the ref may have moved already or not, so it is simply read again by
whoever needs it. Removed is only a lock

* of a ref that is ours, while the caller holds the run lock: no other runner is at work on it;
* that has been there for a moment, the same file: it is not just passing by;
* that no process has open;
* on a branch, where a person's git writes too: that no git process which works in this repository
  could have made (one that runs a hook holds locks that it has closed).

The last two are read from /proc. Where there is none, a branch's lock stays. Locks of others
(`index.lock`, `HEAD.lock`, `packed-refs.lock`) are never removed: they are waited for, then named.
"""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from git_batch.errors import LockedError

if TYPE_CHECKING:
    from git_batch.core.ids import Oid
    from git_batch.repo.repository import Repository

PASSING = 0.5
"""Seconds for which a lock must have been there."""

LOCK_WAIT = 10.0
"""Seconds to wait for a lock that is not ours."""

_CLOCKS = 2.0
"""Seconds by which a process's start and a file's time may disagree."""

_MOST = 4096


def clear_stale_locks(
    repo: Repository,
    read: Callable[[str], Oid | None],
    names: Iterable[str],
    note: Callable[[str], None],
) -> None:
    """Remove the locks that a crash left on refs of ours; to be called under the run lock.

    Args:
        read: gives what a ref is at.
        names: full names of refs; one that ends in a slash stands for all below it.
        note: is told each lock that was removed.
    """
    root = repo.layout.common_dir
    for path in [lock for name in names for lock in _locks(root, name)]:
        ref = os.path.relpath(path, root).removesuffix(".lock")
        found = _settled(path)
        if found is None or _in_use(repo, path, ref, found):
            continue
        said = _content(path)
        if _same(path, found):
            os.unlink(path)
            note(
                f"removed the lock that a crash left on '{ref}' ({said}); "
                f"the ref is at {read(ref) or 'nothing'}"
            )


def wait_for(*files: str, opened: bool = False) -> None:
    """Wait until nobody else holds the lock of any of the files.

    Args:
        opened: a lock that no process has open does not count: it is ours to remove. This is for
            the files of our scratch directory, in which a git of a killed run may still write.

    Raises:
        LockedError: one stays for longer than `LOCK_WAIT`; its path, age and holder are named.
    """
    limit = time.monotonic() + LOCK_WAIT
    for file in files:
        lock = f"{file}.lock"
        while os.path.lexists(lock) and not (opened and next(_holders(lock), None) is None):
            if time.monotonic() > limit:
                raise held(lock, f"'{os.path.basename(file)}'", LOCK_WAIT)
            time.sleep(random.uniform(0.01, 0.1))


def held(path: str, what: str, seconds: float) -> LockedError:
    """Make the error for a lock file that stayed: where it is, how old, who has it open.

    Args:
        what: what could not be locked; `seconds` how long that was tried.
    """
    try:
        age = f"{max(0.0, time.time() - os.lstat(path).st_mtime):.0f} seconds old"
    except FileNotFoundError:
        age = "gone now"
    holder = next(_holders(path), None)
    return LockedError(
        f"could not lock {what} within {seconds:.0f} seconds: '{path}' exists, {age}",
        f"process {holder} has it open"
        if holder
        else "no process has it open: it belongs to a git command that waits for an editor or a "
        "hook, or to one that crashed",
    )


def _locks(root: str, name: str) -> Iterator[str]:
    if not name.endswith("/"):
        path = os.path.join(root, f"{name}.lock")
        if os.path.lexists(path):
            yield path
        return
    for folder, _, files in os.walk(os.path.join(root, name)):
        yield from (os.path.join(folder, file) for file in files if file.endswith(".lock"))


def _settled(path: str) -> os.stat_result | None:
    """Wait until a lock has been there for a moment; None if it has gone, or proves nothing."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    age = time.time() - found.st_mtime
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or age < 0:
        return None
    if age < PASSING:
        time.sleep(PASSING - age)
    return found if _same(path, found) else None


def _same(path: str, found: os.stat_result) -> bool:
    try:
        now = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(now, found) and now.st_mtime_ns == found.st_mtime_ns


def _in_use(repo: Repository, path: str, ref: str, found: os.stat_result) -> bool:
    branch = ref.startswith("refs/heads/")
    if not os.path.isdir("/proc/self/fd"):
        return branch
    if next(_holders(path), None) is not None:
        return True
    return branch and next(_gits(repo, found.st_mtime + _CLOCKS), None) is not None


def _content(path: str) -> str:
    """Say what a lock holds: what was to be written, as far as that got."""
    with open(path, "rb") as file:
        content = file.read(_MOST).strip()
    if not content:
        return "empty"
    text = content.decode("ascii", "replace")
    return f"for {text}" if len(text) == 40 and text.isalnum() else f"{len(content)} bytes"


def _processes() -> Iterator[int]:
    try:
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return


def _holders(path: str) -> Iterator[int]:
    """Find the processes that have a file open; another user's can't be seen."""
    real = os.path.realpath(path)
    for pid in _processes():
        try:
            with os.scandir(f"/proc/{pid}/fd") as files:
                if any(os.readlink(file.path) == real for file in files):
                    yield pid
        except OSError:  # another user's, or gone meanwhile
            continue


def _gits(repo: Repository, before: float) -> Iterator[int]:
    """Find git processes at work in a repository that were started before a time.

    Left out is the line of our own parents: `git batch` is a git that waits for us.
    """
    layout = repo.layout
    places = tuple(os.path.realpath(p) for p in (layout.top, layout.git_dir, layout.common_dir))
    line, pid = set[int](), os.getpid()
    while pid > 1 and pid not in line:
        line.add(pid)
        pid = _facts(pid)[1]
    for pid in _processes():
        name, _, birth = _facts(pid)
        if pid in line or name != "git" or birth > before:
            continue
        try:
            cwd = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if any(cwd == place or cwd.startswith(f"{place}/") for place in places):
            yield pid


def _facts(pid: int) -> tuple[str, int, float]:
    """Read a process's name, parent and start (seconds since the epoch); zeros if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read(_MOST)
    except OSError:
        return "", 0, 0.0
    # The name is in parentheses and may hold anything; what follows the last one can't.
    name = line[line.index(b"(") + 1 : line.rindex(b")")]
    fields = line[line.rindex(b")") + 2 :].split()
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return os.fsdecode(name), int(fields[1]), boot + int(fields[19]) / os.sysconf("SC_CLK_TCK")
