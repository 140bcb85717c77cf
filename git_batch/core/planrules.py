"""What single values of a plan file may be: the rules behind `planmodel`'s types.

Theory. Each rule takes a value as `tomllib` gives it, returns it in the form that the plan wants,
or raises ValueError with the end of a sentence that begins with the key: "'timeout' must be …".
Rules here look at one value only and know nothing of the other tables.

Rules. Whatever could be read in two ways is refused with the way to write it: a bare number as a
duration, a list of arguments where a list of checks belongs, a misspelt 'human'.
"""

from __future__ import annotations

import difflib
import math
import re
import warnings
from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any

from git_batch.core.duration import parse_duration, parse_time
from git_batch.core.ids import RESERVED_SLUGS, SLUG
from git_batch.core.template import NAME, RUN_TIME_NAMES

MAX_ARGUMENT = 131_071
"""Bytes of one argument: Linux refuses more (MAX_ARG_STRLEN, less its final NUL)."""

SHORTEST = 0.001
"""Seconds; a duration of nothing would end every command at once."""

MAX_VALUE = 1_000
"""Characters of a value for `{name}`."""

RESERVED_NAMES = frozenset({"id", "model", *RUN_TIME_NAMES})

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_GIT_IDENTITY = re.compile(r"GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)\Z")
_OUR_TRAILER = re.compile(r"^Batch-[A-Za-z-]+[ \t]*:", re.IGNORECASE | re.MULTILINE)
_AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def _is_argv(raw: Any) -> bool:
    return isinstance(raw, list) and all(isinstance(part, str) for part in raw)


def command(raw: Any) -> Any:
    """Check one command: a text for the shell, or a list of arguments."""
    if not isinstance(raw, str) and not _is_argv(raw):
        raise ValueError("must be a string (for sh) or a list of strings (the arguments)")
    if not raw or not (raw if isinstance(raw, str) else raw[0]).strip():
        raise ValueError("is an empty command")
    if any(len(part.encode()) > MAX_ARGUMENT for part in ([raw] if isinstance(raw, str) else raw)):
        raise ValueError(f"has an argument longer than {MAX_ARGUMENT} bytes")
    return raw


def argv(raw: Any) -> Any:
    """Check a command that must be a list of arguments."""
    if isinstance(raw, str):
        raise ValueError('must be a list of arguments, such as ["claude", "-p"]')
    return command(raw)


def check(raw: Any) -> Any:
    """Check one check."""
    command(raw)
    if isinstance(raw, str) and raw.lstrip().startswith("-"):
        # `check = ["pytest", "-q"]` would be two checks, of which the first may well pass.
        raise ValueError('is only an argument: one check as a list is [["pytest", "-q"]]')
    return raw


def checks(raw: Any) -> Any:
    """Make a list of checks; one string is one check."""
    if isinstance(raw, str):
        return [raw]
    if not isinstance(raw, list):
        raise ValueError("must be a string or a list of checks, each a string or a list of strings")
    return raw


def review(raw: Any) -> Any:
    """Check "none", "human" or a command."""
    command(raw)
    if isinstance(raw, str) and raw not in ("none", "human") and re.fullmatch(r"\w+", raw):
        close = difflib.get_close_matches(raw[:64].lower(), ["none", "human"], 1, 0.7)
        if close:
            raise ValueError(f"must be 'none', 'human' or a command; did you mean '{close[0]}'?")
    return raw


def seconds(at_least: float) -> Callable[[Any], float]:
    """Make the rule for durations of at least so many seconds."""

    def read(raw: Any) -> float:
        if not isinstance(raw, str):
            raise ValueError('must be a duration with its unit in quotes, such as "90s" or "1h30m"')
        seconds = parse_duration(raw)
        if seconds < at_least:
            raise ValueError("must be more than nothing")
        return seconds

    return read


def deadline(raw: Any) -> float | datetime:
    """Read a duration (seconds) or a point in time."""
    if isinstance(raw, datetime) and raw.tzinfo is not None:
        return raw
    if isinstance(raw, date | time):
        raise ValueError("must be a time with an offset, such as 2030-01-31T08:00:00+01:00")
    if isinstance(raw, str) and re.match(r"[0-9]{4}-", raw):
        return parse_time(raw)
    return seconds(SHORTEST)(raw)


def slug(raw: str) -> str:
    """Check a batch's slug."""
    if not SLUG.match(raw):
        raise ValueError("must be 1 to 48 of a-z, 0-9 and '-', and begin with a letter or digit")
    if raw in RESERVED_SLUGS:
        raise ValueError("is a name that git-batch needs for itself")
    return raw


def env(raw: dict[str, str]) -> dict[str, str]:
    """Check the names of environment variables."""
    for name in raw:
        if not _ENV_NAME.match(name):
            raise ValueError(f"has the name {name!a}, which no environment variable can have")
        if name.startswith("BATCH_"):
            raise ValueError(f"sets '{name}', but BATCH_* belongs to git-batch")
        # Others point git at another repository, index or configuration, or make it run things.
        if name.startswith("GIT_") and not _GIT_IDENTITY.match(name):
            raise ValueError(f"sets '{name}': of git's variables only a person and date may be set")
    return raw


def matrix(raw: dict[str, list[str]]) -> dict[str, list[str]]:
    """Check the names and values of a matrix."""
    if not raw:
        raise ValueError("is empty")
    for name, values in raw.items():
        if not NAME.fullmatch(name):
            raise ValueError(f"has the name {name!a}; names are letters, digits, '_' and '-'")
        if name in RESERVED_NAMES:
            raise ValueError(f"has the name '{name}', which has a meaning already")
        if not values:
            raise ValueError(f"has no values for '{name}'")
        if len(set(values)) != len(values):
            raise ValueError(f"has a value twice for '{name}'")
        if any(len(value) > MAX_VALUE for value in values):
            raise ValueError(f"has a value for '{name}' longer than {MAX_VALUE} characters")
    return raw


def patterns(raw: list[str]) -> list[str]:
    """Check regular expressions over bytes."""
    for pattern in raw:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about what a later Python may read differently
                re.compile(pattern.encode())
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"has the bad regular expression {pattern!a}: {error}") from None
    return raw


def message(raw: str) -> str:
    """Check text for a commit's body."""
    if _OUR_TRAILER.search(raw):
        raise ValueError("has a line that looks like one of git-batch's own trailers ('Batch-…:')")
    return raw


def agent_name(raw: str) -> str:
    """Check an agent's name."""
    if not _AGENT_NAME.match(raw):
        raise ValueError("is no name: letters, digits, '.', '_' and '-', at most 64")
    return raw


def finite(raw: float) -> float:
    """Refuse infinity and NaN."""
    if not math.isfinite(raw):
        raise ValueError("must be a finite number")
    return raw


def version(raw: Any) -> Any:
    """Check the format's number."""
    if type(raw) is not int or raw != 1:
        raise ValueError("must be 1, the only version that this git-batch reads")
    return raw
