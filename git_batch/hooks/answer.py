"""What a hook says and whether git may go on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from git_batch.hooks.judging import Judged  # not needed where no branch is judged


class Answer(Struct, frozen=True):
    """Lines for standard error, in git's style, and whether git has to stop."""

    lines: tuple[str, ...] = ()
    refused: bool = False


def said(kind: str, message: str, hints: Iterable[str]) -> tuple[str, ...]:
    """Write a message and its hints; `kind` is "error", "warning" or "note"."""
    return (f"{kind}: {message}", *(f"hint: {hint}" for hint in hints))


def told(judged: Judged) -> tuple[str, ...]:
    """Write what is to be said about one branch; nothing for one that is whole."""
    if judged.refused:
        return said("error", judged.error, judged.hints)
    return said("warning", judged.note, judged.hints) if judged.note else ()
