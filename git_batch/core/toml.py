"""Reading TOML, which a run does not do: what reads it is imported when it is needed.

What is read here was written by us, ten thousand notes of it in a long batch. A plan file, whose
author has to be told where it is wrong, is `planfile`'s.
"""

from __future__ import annotations

from typing import Any


def loads(text: str) -> dict[str, Any]:
    """Read a document.

    Raises:
        ValueError: it is none (`tomli.TOMLDecodeError`), or holds a number of too many digits.
        RecursionError: it is nested too deeply.
    """
    import tomli

    return tomli.loads(text)
