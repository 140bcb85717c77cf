"""Putting our hooks beside what is there, taking them out, telling what a file is.

A hook that was there keeps its bytes, mode, links and times: it is linked to `<name>.before-batch`
and our shim takes its place by one rename, so that at no moment there is no hook. The shim runs it
afterwards with its arguments, input and name. Taking ours out renames it back.

Nothing is ever overwritten: should another tool have put a hook over ours since, what we had moved
aside before stays under a number.
"""

from __future__ import annotations

import filecmp
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path

from git_batch.errors import PreconditionError

CLIENT = ("pre-push", "reference-transaction", "post-rewrite")
SERVER = ("pre-receive", "update")
SHARED = "git-batch.sh"
ASIDE = ".before-batch"

_MARK = b"# git-batch: "
_MARKED_WITHIN = 200
_PYTHON = "@PYTHON@"


class Found(Enum):
    """What lies where git looks for a hook."""

    NOTHING = "nothing"
    OURS = "ours"
    FOREIGN = "foreign"


class Put(Enum):
    """What an installation or its undoing did to one hook."""

    INSTALLED = "installed"
    BESIDE = "installed; the hook that was there runs after it"
    UPDATED = "brought up to date"
    SAME = "installed already"
    REMOVED = "removed"
    RESTORED = "removed; the hook that was there before is back"
    ABSENT = "not installed"
    LEFT = "not ours, left as it is"


def found(path: Path) -> Found:
    """Tell what a hook's file is."""
    if not os.path.lexists(path):
        return Found.NOTHING
    if path.is_symlink() or not path.is_file():
        return Found.FOREIGN
    with path.open("rb") as file:
        return Found.OURS if _MARK in file.read(_MARKED_WITHIN) else Found.FOREIGN


def install(directory: Path, names: tuple[str, ...]) -> dict[str, Put]:
    """Put hooks into a directory, which is made if it does not exist.

    Raises:
        PreconditionError: something can't be read or written; hooks done before that stay.
    """
    return _each(directory, names, _install, before=True)


def uninstall(directory: Path, names: tuple[str, ...]) -> dict[str, Put]:
    """Take hooks out again and put back what was there before, byte for byte; errors as above."""
    done = _each(directory, names, _uninstall, before=False)
    # Another tool may have moved one of ours aside, and still run it.
    if not any(found(path) is Found.OURS for path in directory.iterdir() if path.name != SHARED):
        (directory / SHARED).unlink(missing_ok=True)
    return done


def _each(
    directory: Path, names: tuple[str, ...], act: Callable[[Path], Put], *, before: bool
) -> dict[str, Put]:
    try:
        if before:
            directory.mkdir(parents=True, exist_ok=True)
            # First what the hooks source: a hook without it would refuse everything.
            _write(directory / SHARED, shim(SHARED), mode=0o644)
        return {name: act(directory / name) for name in names}
    except OSError as error:
        raise PreconditionError(
            f"can't change '{error.filename or directory}': {error.strerror or error}"
        ) from None


def _install(path: Path) -> Put:
    text, here = shim(path.name), found(path)
    if here is Found.OURS:
        if path.read_bytes() == text and os.access(path, os.X_OK):
            return Put.SAME
        _write(path, text, mode=0o755)
        return Put.UPDATED
    if here is Found.FOREIGN:
        _set_aside(path)
    _write(path, text, mode=0o755)
    return Put.BESIDE if here is Found.FOREIGN else Put.INSTALLED


def _uninstall(path: Path) -> Put:
    aside, here = Path(f"{path}{ASIDE}"), found(path)
    if here is Found.FOREIGN:
        return Put.LEFT
    if os.path.lexists(aside):
        aside.rename(path)
        return Put.RESTORED
    if here is Found.NOTHING:
        return Put.ABSENT
    path.unlink()
    return Put.REMOVED


def _set_aside(path: Path) -> None:
    """Give a hook its second name; the first one stays until our shim takes it."""
    aside = Path(f"{path}{ASIDE}")
    if os.path.lexists(aside):
        if _same(path, aside):
            return
        number = 1
        while os.path.lexists(f"{aside}.{number}"):
            number += 1
        aside.rename(f"{aside}.{number}")
    try:
        os.link(path, aside, follow_symlinks=False)
    except OSError:  # a file system without hard links
        path.rename(aside)


def _same(path: Path, aside: Path) -> bool:
    """Tell whether an installation that was killed, or a tool, left the same hook twice."""
    if path.is_symlink() or aside.is_symlink():
        return path.is_symlink() and aside.is_symlink() and path.readlink() == aside.readlink()
    same_mode = path.stat().st_mode == aside.stat().st_mode
    return same_mode and filecmp.cmp(path, aside, shallow=False)


def _write(path: Path, text: bytes, *, mode: int) -> None:
    """Write a file in one rename; what had the name before is not written through."""
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(mode & ~umask)
        Path(name).rename(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def shim(name: str) -> bytes:
    """Read one of the shell files, with the interpreter that runs us written into it."""
    packaged = Path(__file__).parents[1] / "_data" / "hooks"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[2] / "hooks"
    text = (folder / name).read_bytes()
    python = os.fsencode(sys.executable).replace(b"'", b"'\\''")
    return text.replace(_PYTHON.encode(), python)
