"""Reading `git status --porcelain=v2 -z`: one scan, bytes in, entries out.

The arguments switch off whatever a person's configuration could change about the answer. `normal`
untracked mode collapses a directory without tracked files to `name/` and, unlike `all`, keeps the
person's untracked cache in use.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from git_batch.core.ids import Oid
from git_batch.errors import GitError

STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=normal", "--no-renames")

ALL_SUBMODULES = "--ignore-submodules=none"
"""For whatever compares: else git asks the working tree's `.gitmodules`, which a task may have
written, what to pass over, and fails where that file is broken."""


class Entry(Struct, frozen=True):
    """One line of status.

    Attributes:
        staged: how the index differs from HEAD: one of `.MTADRCU?`.
        unstaged: how the working tree differs from the index, likewise.
        submodule: None for anything but a submodule; else git's letters, such as `C.U`.
        mode: of the index entry; `worktree_mode` of the file, 0 when there is none.
        oid: of the index entry; None for untracked paths.
    """

    path: bytes
    staged: str
    unstaged: str
    submodule: str | None = None
    mode: int = 0
    worktree_mode: int = 0
    oid: Oid | None = None

    @property
    def untracked(self) -> bool:
        """Whether git does not know the path; a directory's ends in a slash."""
        return self.staged == "?"

    @property
    def only_added(self) -> bool:
        """Whether HEAD does not know the path and the index has nothing that the file has not."""
        return self.staged + self.unstaged in ("A.", ".A")

    @property
    def changed_inside(self) -> bool:
        """Whether it is a submodule that holds more than its HEAD, ignored files aside."""
        return bool({"M", "U"}.intersection(self.submodule or ""))

    @property
    def unmerged(self) -> bool:
        """Whether the path has a conflict."""
        return self.oid is None and not self.untracked


def parse(output: bytes) -> Iterator[Entry]:
    """Read the output of `git status` with the arguments above.

    Raises:
        GitError: a line of a form that git does not document.
    """
    for line in output.split(b"\0"):
        kind = line[:2]
        if not line or kind == b"# ":
            continue
        if kind == b"? ":
            yield Entry(line[2:], "?", "?")
        elif kind == b"1 ":
            _, xy, sub, _, mode, worktree, _, oid, path = line.split(b" ", 8)
            yield Entry(
                path,
                chr(xy[0]),
                chr(xy[1]),
                _submodule(sub),
                int(mode, 8),
                int(worktree, 8),
                Oid(oid.decode()),
            )
        elif kind == b"u ":
            _, xy, sub, *_, path = line.split(b" ", 10)
            yield Entry(path, chr(xy[0]), chr(xy[1]), _submodule(sub))
        else:
            raise GitError(f"'git status' said something unexpected: {line[:80]!r}")


def _submodule(field: bytes) -> str | None:
    return field[1:].decode() if field.startswith(b"S") else None
