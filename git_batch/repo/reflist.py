"""All refs of a repository by plain reads, and which of them moved since they were noted.

No git command and no library takes part, so nothing that a task put into the configuration or the
hooks can run. What was read once is not read again while its file's signature (inode, size, times)
is the same; a file that changed within `RACY` of being noted is, as git does it for its index.
So is a folder: whatever comes or goes in it changes its times. Costs one `stat` for each folder and
each loose ref; packed refs cost one as long as nobody packs.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from git_batch.core.ids import Oid
from git_batch.repo.repository import Layout

RACY = 100_000_000
"""Nanoseconds within which a second change of a file may leave its signature as it was."""

_SECOND = 1_000_000_000
_COARSE = 2 * _SECOND
"""The same where times are whole seconds (ext4 with small inodes), or every other one (FAT)."""

_ID = re.compile(r"[0-9a-f]{40}")
_VALUE = re.compile(r"[0-9a-f]{40}|ref: refs/\S+")

_PER_TREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""What each working tree has of its own."""

Signature = tuple[int, int, int, int, int]
Moves = dict[str, tuple[str | None, str | None]]
"""Full name of a ref to its old and new value; None where there is none."""


def signature(state: os.stat_result) -> Signature:
    """Tell one state of a file from any other one."""
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_mode


def is_value(text: str) -> bool:
    """Tell whether the content of a file is a ref's value: an object id, or `ref: <name>`."""
    return _VALUE.fullmatch(text.rstrip(" \t\n\v\f\r")) is not None


def is_racy(state: os.stat_result, now: int) -> bool:
    """Tell whether a file changed so recently that a further change may not show.

    Args:
        now: nanoseconds since the epoch, read before the file was.
    """
    coarse = state.st_ctime_ns % _SECOND == 0
    return now - state.st_ctime_ns < (_COARSE + RACY if coarse else RACY)


class _Listing(Struct, frozen=True):
    """What is in a folder of refs: names of folders and of other files, locks left out.

    Attributes:
        signature: by which an unchanged folder is known without listing it; None: list it again.
    """

    signature: Signature | None
    folders: tuple[str, ...]
    files: tuple[str, ...]


class RefList:
    """The values of all refs, as they were when they were noted last.

    Attributes:
        pipes: names below `refs/` that were named pipes at the last look.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._packed_file = os.path.join(layout.common_dir, "packed-refs")
        self._roots = [layout.common_dir]
        if layout.git_dir != layout.common_dir:
            self._roots.append(layout.git_dir)
        self._signatures: dict[str, Signature | None] = {}  # None: read it again next time
        self._loose: dict[str, str] = {}
        self._packed_signature: Signature | None = None
        self._packed: dict[str, str] = {}
        self._packed_text: bytes | None = None
        self.pipes: tuple[str, ...] = ()
        self._folders: dict[str, _Listing] = {}

    def value(self, name: str) -> str | None:
        """Give a ref's value as noted: an object id, or `ref: <name>`."""
        return self._loose.get(name) or self._packed.get(name)

    def values(self) -> dict[str, str]:
        """Give the values of all refs as noted."""
        return self._packed | self._loose

    def note(self) -> Moves:
        """Take the values that the refs have now as known; list those that moved."""
        return self._look(note=True)

    def moved(self) -> Moves:
        """List the refs whose values are not the noted ones; what is known stays."""
        return self._look(note=False)

    def mend_packed(self, set_aside: Callable[[str], str | None]) -> tuple[str, str | None] | None:
        """Put the file of packed refs back as it was noted if there is something else by now.

        Args:
            set_aside: moves a path away, and says where to.

        Returns:
            The file, and where that is what was there; None if all is well.
        """
        path = self._packed_file
        if not os.path.lexists(path) or os.path.isfile(path):
            return None
        kept = set_aside(path)
        if self._packed_text is not None:
            with open(path, "xb") as file:
                file.write(self._packed_text)
        return path, kept

    def _look(self, *, note: bool) -> Moves:
        now = time.time_ns()
        found = self._walk(now)
        self.pipes = tuple(name for name, state in found.items() if stat.S_ISFIFO(state.st_mode))
        known = self._signatures
        changed = [name for name, state in found.items() if known.get(name) != signature(state)]
        gone = known.keys() - found.keys()
        values = {name: _read(place_of(self._layout, name)) for name in changed}
        # After the loose ones: a ref that is being packed is then in one of the two at least.
        packed_signature, packed, text = self._read_packed(now)
        suspects = {*changed, *gone}
        if packed is not self._packed:
            suspects.update(name for name, _ in self._packed.items() ^ packed.items())
        moves: Moves = {}
        for name in suspects:
            old = self.value(name)
            loose = values[name] if name in values else self._loose.get(name)
            new = (loose if name in found else None) or packed.get(name)
            if old != new:
                moves[name] = (old, new)
        if note:
            for name in (*gone, *changed):
                self._loose.pop(name, None)
                known.pop(name, None)
            self._loose.update({name: value for name, value in values.items() if value})
            for name in changed:
                state = found[name]
                # A link stays as it is when what it leads to changes.
                certain = stat.S_ISREG(state.st_mode) and not is_racy(state, now)
                known[name] = signature(state) if certain else None
            self._packed_signature, self._packed = packed_signature, packed
            self._packed_text = text
        return moves

    def _walk(self, now: int) -> dict[str, os.stat_result]:
        """Find the loose refs; a folder is listed anew only if it is not as it was."""
        found: dict[str, os.stat_result] = {}
        listed: dict[str, _Listing] = {}
        for root in self._roots:
            waiting = ["refs/"]
            while waiting:
                prefix = waiting.pop()
                folder = os.path.join(root, prefix)
                listing = _listing(folder, now, self._folders.get(folder))
                if listing is None:
                    continue
                listed[folder] = listing
                waiting += [f"{prefix}{name}/" for name in listing.folders]
                if place_of(self._layout, prefix) != folder:
                    continue
                for name in listing.files:
                    with suppress(FileNotFoundError):
                        found[prefix + name] = os.lstat(folder + name)
        self._folders = listed
        return found

    def _read_packed(self, now: int) -> tuple[Signature | None, dict[str, str], bytes | None]:
        try:
            with open(self._packed_file, "rb") as file:
                state = os.fstat(file.fileno())
                if signature(state) == self._packed_signature:
                    return self._packed_signature, self._packed, self._packed_text
                data = file.read()
        except FileNotFoundError:
            return None, self._packed if not self._packed else {}, None
        text = data.decode("utf-8", "surrogateescape")
        lines = (line.split(" ", 1) for line in text.split("\n") if line[:1] not in ("#", "^", ""))
        packed = {words[1]: words[0] for words in lines if len(words) == 2}
        return (None if is_racy(state, now) else signature(state)), packed, data


def _listing(folder: str, now: int, known: _Listing | None) -> _Listing | None:
    """List a folder of refs unless it is as it was `known`; None if it is none."""
    try:
        state = os.lstat(folder)
        here = signature(state)
        if known is not None and known.signature == here:
            return known
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return None
    folders = tuple(e.name for e in entries if e.is_dir(follow_symlinks=False))
    files = {e.name for e in entries if not e.name.endswith(".lock")}.difference(folders)
    return _Listing(None if is_racy(state, now) else here, folders, tuple(files))


def place_of(layout: Layout, name: str) -> str:
    """Give the path of a loose ref, or of HEAD: a working tree has some of its own."""
    shared = name.startswith("refs/") and not name.startswith(_PER_TREE)
    return os.path.join(layout.common_dir if shared else layout.git_dir, name)


def loose_id(layout: Layout, name: str) -> Oid | None:
    """Read the object id that a loose ref of this working tree holds; None if it holds none."""
    value = _read(place_of(layout, name))
    return Oid(value) if value is not None and _ID.fullmatch(value) else None


def _read(path: str) -> str | None:
    """Read a loose ref; None if it is gone or empty. Nothing that is no file can make it wait."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(fd, 4096).rstrip()  # git passes over spaces at the end, and nowhere else
        return text.decode("utf-8", "surrogateescape") or None
    except OSError:
        return None
    finally:
        os.close(fd)
