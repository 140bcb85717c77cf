"""What a command said, as the record may have it: bounded, and without the secrets it may know.

Whole output goes to the local logs ref and keeps them (`attemptlog`). Secrets are taken out before
anything is cut, since of one that is cut through nobody could tell what it was.
"""

from __future__ import annotations

from git_batch.run.attemptlog import Piece
from git_batch.run.output import cut, excerpt

_READ = 64 * 1024
"""Bytes of output that are looked through: more than anybody asks for."""

_LINE = 200


def heard(piece: Piece, limit: int) -> str:
    """Give the beginning and the end of what a command printed, in about `limit` bytes of UTF-8."""
    read = excerpt(piece.path, _READ)
    text = piece.hide(read.decode("utf-8", "replace")).strip()
    return cut(text.encode(), limit).decode("utf-8", "replace")


def last_line(piece: Piece) -> str:
    """Give the last line that a command printed; empty if it printed nothing."""
    return last_of(heard(piece, _READ))


def last_of(text: str) -> str:
    """Give the last line of a text, no longer than a reason may be."""
    return text.strip().rsplit("\n", 1)[-1].strip()[:_LINE]
