"""Reading TOML, which a run does not do: what reads it is imported when it is needed."""

from __future__ import annotations

from typing import Any


def loads(text: str) -> dict[str, Any]:
    """Read a document.

    Raises:
        ValueError: it is none (`tomllib.TOMLDecodeError`), or holds a number of too many digits.
        RecursionError: it is nested too deeply.
    """
    import tomllib

    return tomllib.loads(text)
