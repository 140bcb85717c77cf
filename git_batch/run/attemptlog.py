"""The output of one attempt: one file per command while it runs, one kept text afterwards.

The files lie below our scratch directory, so a crash leaves them for `resume` to keep. The kept
text is bounded: the beginning and the end of each command's output, the cut marked, and has none of
the secrets that the command was given. It goes to the local logs ref; the record holds its size and
digest only (storage.md).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from git_batch.core.attempt import LogRef
from git_batch.core.redaction import Redaction
from git_batch.run.output import excerpt

KEPT = 1 << 20
"""Bytes kept of one command's output."""


class Piece(Struct):
    """One command of an attempt: what was run, where its output is, and how it ended.

    Attributes:
        hide: takes out of what it says the secrets that it was given.
    """

    title: str
    path: Path
    hide: Redaction
    ending: str = ""


class AttemptLog:
    """Collects the output of the attempt in flight."""

    def __init__(self, directory: Path) -> None:
        self._dir = directory
        self._pieces: list[Piece] = []
        self.begun = False

    def begin(self) -> None:
        """Start an attempt: what an earlier one left in the directory goes."""
        if not self.begun:
            self._dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.recover()
        self.begun = True
        for piece in self._pieces:
            piece.path.unlink(missing_ok=True)
        self._pieces = []

    def recover(self) -> None:
        """Take up the files that a crashed run left."""
        names = sorted(self._dir.glob("*.log")) if self._dir.is_dir() else []
        # Whose environment it had is not known any more; most likely it was as ours is.
        title, hide = "(output of a run that was cut short)", Redaction(os.environ)
        self._pieces = [Piece(title, path, hide) for path in names]

    def add(self, title: str, env: Mapping[str, str] = MappingProxyType({})) -> Piece:
        """Name the file for the output of the next command, which is given `env`."""
        piece = Piece(title, self._dir / f"{len(self._pieces):03d}.log", Redaction(env))
        self._pieces.append(piece)
        return piece

    def text(self) -> bytes:
        """Put the pieces together; empty if no command printed anything and all ended well."""
        parts: list[bytes] = []
        for piece in self._pieces:
            output = excerpt(piece.path, KEPT, piece.hide.of_output)
            if output or piece.ending:
                parts.append(f"$ {piece.title}\n".encode("utf-8", "replace") + output)
                if output and not output.endswith(b"\n"):
                    parts.append(b"\n")
                if piece.ending:
                    parts.append(f"[{piece.ending}]\n".encode("utf-8", "replace"))
        return b"".join(parts)


def reference(text: bytes) -> LogRef | None:
    """Name a kept log by size and digest; None for an empty one."""
    if not text:
        return None
    return LogRef(len(text), hashlib.sha256(text).hexdigest())
