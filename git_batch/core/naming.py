"""Things named in a sentence: a few of them, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence


def few(names: Sequence[str], most: int = 3) -> str:
    """Name the first things in quotes, and say how many are left out."""
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
