"""What each task of a stored plan may touch, read without reading the rest of the plan.

`canonical.from_toml` checks all of a plan and takes a second for ten thousand tasks; whoever only
wants scopes takes them from the canonical form by one expression per task. That form has its keys
in one order, one value a line, strings as JSON writes them, and ends a text of several lines at
the first three quotes, so nothing in a prompt can pass for a key. What does not fit to the last
byte is read as TOML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from git_batch.core.scope import Scope
from git_batch.core.toml import loads
from git_batch.errors import RecordError

_VALUE = rb'(?:"""\n(?:[^"\\]|\\.)*"""|(?!""")[^\n]*)\n'
_KEYS = rb"(?:[a-z_]+ = " + _VALUE + rb")*"
_TASK = re.compile(
    rb'\n\[\[task\]\]\nid = "([A-Za-z0-9._-]+)"\ntitle = ' + _VALUE + rb"(?:blocked_by = [^\n]*\n)?"
    rb"(?:scope = ([^\n]*)\n)?(?:protect = ([^\n]*)\n)?((?!scope = |protect = )" + _KEYS + rb")"
)
_FIRST = re.compile(rb"format = 1\n" + _KEYS)

Path = tuple[bytes, bool]
"""A changed path, and whether a nested repository appeared there."""


class Bounds(NamedTuple):
    """The patterns of one task."""

    scope: tuple[str, ...]
    protect: tuple[str, ...]


def scopes(toml: bytes) -> Mapping[str, Bounds]:
    """Read the scopes of a plan in canonical form, by task.

    Raises:
        RecordError: it is no stored plan.
    """
    found: dict[str, Bounds] = {}
    first = _FIRST.match(toml)
    at = first.end() if first else 0
    while match := _TASK.match(toml, at):
        found[match[1].decode()] = Bounds(_patterns(match[2]), _patterns(match[3]))
        at = match.end()
    return found if first and at == len(toml) else _carefully(toml)


@lru_cache(maxsize=1024)
def _patterns(text: bytes | None) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


def _carefully(toml: bytes) -> Mapping[str, Bounds]:
    try:
        tasks = loads(toml.decode())["task"]
        return {
            t["id"]: Bounds(tuple(t.get("scope", ())), tuple(t.get("protect", ()))) for t in tasks
        }
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise RecordError(f"the stored plan can't be read: {error}") from None


@lru_cache(maxsize=1024)
def _compiled(patterns: tuple[str, ...]) -> Scope:
    return Scope(patterns)


def stray(bounds: Bounds, paths: Sequence[Path]) -> Iterator[tuple[bytes, str]]:
    """Name the paths that a task may not change, each with the reason."""
    scope, protected = _compiled(bounds.scope), _compiled(bounds.protect)
    for path, nested in paths:
        if not scope.match(path):
            yield path, OUTSIDE
        elif nested:
            yield path, NESTED
        elif bounds.protect and protected.match(path):
            yield path, PROTECTED


OUTSIDE, NESTED, PROTECTED = "outside the scope", "a nested git repository", "protected"
"""Reasons, in the order in which they count."""
