"""Files that are an index, or a copy of one: made, compared, removed; git reads their entries.

A copy that outlives a run is there as a whole or not at all, whatever ends the run. The next run
compares the person's index with it: half a copy (a kill), or one without its content (a power cut),
must not be taken for what it says. git would refuse to read it, in every run from then on, or find
marks of the person's own to be new.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat

from git_batch.repo.wholefile import read, read_open

_BEGINS = b"DIRC"
_SUM = 20
_SUBMODULE = (0o160000).to_bytes(4, "big")
"""How each version of the format has the mode of a submodule's entry (gitformat-index(5))."""
ELSEWHERE = b"link"
"""The extension of an index whose entries are, most of them, in another file."""


def link(source: str, target: str) -> bool:
    """Make `target` the same file as `source`, or a copy with its mtime; False if there is none.

    Raises:
        FileExistsError: there is a `target`.
    """
    try:
        os.link(source, target)
    except FileNotFoundError:
        return False
    except OSError as error:
        if isinstance(error, FileExistsError):
            raise
        return copy(source, target)
    return True


def copy(source: str, target: str) -> bool:
    """Make `target` a copy of `source` with its mode and mtime; False if there is none.

    Raises:
        FileExistsError: there is a `target`.
    """
    try:
        fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        content, was = read_open(fd), os.fstat(fd)
    finally:
        os.close(fd)
    with open(target, "xb", buffering=0) as new:
        with contextlib.suppress(PermissionError):  # a file system that has no modes
            os.fchmod(new.fileno(), stat.S_IMODE(was.st_mode))
        try:
            left = memoryview(content)
            while left:  # a disk that gets full takes a part first
                left = left[new.write(left) :]
        except OSError:
            discard(target)
            raise
    os.utime(target, ns=(was.st_atime_ns, was.st_mtime_ns))
    return True


def copy_whole(source: str, target: str) -> None:
    """Put a copy of an index, if there is one, in the place of an earlier one."""
    new = target + ".new"
    discard(target, new)
    if copy(source, new):
        os.rename(new, target)


def same(a: str, b: str) -> bool:
    """Say whether two index files are equal; two absent ones are."""
    here, there = _stat(a), _stat(b)
    if here is None or there is None:
        return here is there
    if os.path.samestat(here, there):
        return True
    if here.st_size != there.st_size:
        return False
    return read(a) == read(b)


def same_file(a: str, b: str) -> bool:
    """Tell whether two paths name one file."""
    here, there = _stat(a), _stat(b)
    return here is not None and there is not None and os.path.samestat(here, there)


def is_whole(path: str) -> bool:
    """Tell whether there is an index that has the checksum which it ends with, or says none."""
    try:
        content = read(path, flags=os.O_NONBLOCK)
    except OSError:
        return False
    said = content[-_SUM:]
    if said == bytes(_SUM):  # `index.skipHash`
        return content.startswith(_BEGINS)
    return said == hashlib.sha1(content[:-_SUM], usedforsecurity=False).digest()


def may_hold_submodules(path: str) -> bool:
    """Tell whether git has to be asked which submodules an index knows; False: none, for sure."""
    try:
        content = read(path, flags=os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:  # git says what is wrong with it
        return True
    return _SUBMODULE in content or ELSEWHERE in content


def is_spoilt(path: str, copy: str, *, link: bool) -> bool:
    """Tell whether a command left in an index's place what git can't read as one, or nothing.

    Args:
        copy: what was made of the index before the command; absent if there was none.
        link: a link in its place may be the person's own.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return os.path.lexists(copy)
    if stat.S_ISLNK(mode):
        return not link
    return not (stat.S_ISREG(mode) and is_whole(path))


def discard(*paths: str) -> None:
    """Remove scratch files that may not be there."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
