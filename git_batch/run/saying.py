"""What a command said, as the record may have it: bounded, and without the secrets it may know.

Secrets are taken out before anything is cut, since of one that is cut through nobody could tell
what it was.
"""

from __future__ import annotations

from git_batch.run.attemptlog import Piece
from git_batch.run.output import excerpt

_ENOUGH = 4096
_LINE = 200


def heard(piece: Piece, limit: int) -> str:
    """Give the beginning and the end of what a command printed, in `limit` bytes at most."""
    output = excerpt(piece.path, limit, piece.hide.of_output)
    return output.decode("utf-8", "replace").strip()


def last_line(piece: Piece) -> str:
    """Give the last line that a command printed; empty if it printed nothing."""
    return last_of(heard(piece, _ENOUGH))


def last_of(text: str) -> str:
    """Give the last line of a text, no longer than a reason may be."""
    return text.strip().rsplit("\n", 1)[-1].strip()[:_LINE]
