"""Things named in a sentence: a few of them, and how many more there are; paths as git names them.

A path may hold anything, and be a task's choice: a line break in it would make lines of its own, a
hint among them, and an escape sequence would act on the terminal.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from git_batch.core.scope import HIDDEN

_GIT_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def few(names: Sequence[str], most: int = 3) -> str:
    """Name the first things in quotes, and say how many are left out."""
    return few_of([f"'{name}'" for name in names], most)


def few_paths(paths: Sequence[bytes], most: int = 3) -> str:
    """Name the first paths in quotes, as git does, and say how many are left out."""
    return few([path_text(path) for path in paths], most)


def few_of(said: Sequence[str], most: int = 3) -> str:
    """Name the first things in the words they have, and say how many are left out."""
    shown = ", ".join(said[:most])
    return shown if len(said) <= most else f"{shown} and {len(said) - most} more"


def few_facts(facts: Sequence[str], most: int) -> str:
    """Say the first facts, one after another, and how many are left out."""
    more = [f"and {len(facts) - most} more"] if len(facts) > most else []
    return "; ".join([*facts[:most], *more])


def few_lines(lines: Sequence[str], most: int, indent: str = "\t") -> str:
    """List the first things, one a line, and say in the last line how many are left out."""
    more = [f"… and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join(indent + line for line in [*lines[:most], *more])


def path_text(path: bytes | str) -> str:
    """Write a path as git does: quoted when it holds anything that is not plain text.

    Args:
        path: its bytes, or what `os.fsdecode` makes of them.
    """
    raw = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _quoted(raw)
    if '"' in text or "\\" in text or not _is_plain(text):
        return _quoted(raw)
    return text


def shell_path(path: str) -> str:
    """Write a path as a shell takes it: by its bytes, where it can't be typed or even printed.

    Args:
        path: as `os.fsdecode` gives it.
    """
    if _is_plain(path):
        return shlex.quote(path)
    raw = path.encode("utf-8", "surrogateescape")
    body = (chr(b) if 32 < b < 127 and b not in b"%'\\" else f"\\{b:03o}" for b in raw)
    return "\"$(printf '" + "".join(body) + "')\""


def _is_plain(text: str) -> bool:
    """Tell whether every character can be seen, spaces of all scripts included."""
    if HIDDEN.search(text) is not None:
        return False
    return text.isprintable() or all(c.isprintable() or c.isspace() for c in text)


def _quoted(path: bytes) -> str:
    body = (
        f"\\{_GIT_ESCAPES[b]}" if b in _GIT_ESCAPES else chr(b) if 32 <= b < 127 else f"\\{b:03o}"
        for b in path
    )
    return f'"{"".join(body)}"'
