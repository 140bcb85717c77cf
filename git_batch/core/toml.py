"""Reading TOML, which a run does not do: what reads it is imported when it is needed."""

from __future__ import annotations

import re
import sys
from typing import Any


def loads(text: str) -> dict[str, Any]:
    """Read a document.

    Raises:
        ValueError: it is none, or holds what can't be read; it ends with `(at line …, column …)`.
    """
    import tomli

    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(_in_words(text, error)) from None


def _in_words(text: str, error: Exception) -> str:
    """Say as `tomli` does what it leaves to Python, whose words are for whoever programs."""
    from git_batch.core.planlines import check_shape  # rarely needed

    shape = check_shape(text)
    if shape:
        return f"{shape[1]} (at line {shape[0]}, column 1)"
    long = re.search(rf"[0-9_]{{{sys.get_int_max_str_digits()},}}", text)
    if long is None:
        return str(error)
    before = text[: long.start()]
    line, column = before.count("\n") + 1, long.start() - before.rfind("\n")
    return f"a number has too many digits (at line {line}, column {column})"
