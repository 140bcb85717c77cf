"""Durations and points in time as people write and read them.

Theory. A duration carries its unit ("90s", "1h30m", "2d"): a bare number would be read as seconds
by one person and as minutes by the next, so it is refused. A point in time is RFC 3339 with an
offset: without one it would mean something else on the machine that resumes the batch. Inside
the product a duration is a float of seconds and a time an aware datetime.
"""

from __future__ import annotations

import math
import re
from datetime import datetime

LONGEST = 10 * 365 * 86400
"""Seconds; longer durations are mistakes, and would overflow when added to a time."""

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_DURATION = re.compile(
    "".join(rf"(?:(?P<{unit}>[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?){unit} ?)?" for unit, _ in _UNITS)
)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def parse_duration(text: str) -> float:
    """Read "30m", "1h30m", "90s", "2d" or "1.5h" as seconds; units run from large to small.

    Raises:
        ValueError: anything else, or more than ten years.
    """
    parts = _DURATION.fullmatch(text) if text and not text[-1].isspace() else None
    if parts is None:
        raise ValueError('is not a duration such as "30m", "1h30m", "90s" or "2d"')
    seconds = sum(float(parts[unit] or 0) * length for unit, length in _UNITS)
    if seconds > LONGEST:
        raise ValueError("is longer than ten years")
    return seconds


def format_duration(seconds: float) -> str:
    """Write seconds as "3.4s", "5m 3s", "2h 5m" or "3d 4h"; what is negative counts as 0.

    Raises:
        ValueError: not a finite number.
    """
    if not math.isfinite(seconds):
        raise ValueError("a duration is a finite number of seconds")
    if round(seconds, 1) < 60:
        return f"{max(seconds, 0):.1f}".removesuffix(".0") + "s"
    # A unit is shown beside its neighbour only, and rounding may carry into a larger one.
    step = 1 if seconds < 3599.5 else 60 if seconds < 86370 else 3600
    left = math.floor(seconds / step + 0.5) * step
    shown = []
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            shown.append(f"{count}{unit}")
    return " ".join(shown)


def write_duration(seconds: float) -> str:
    """Write seconds so that `parse_duration` reads the very same: "1h30m", "0.5s"."""
    whole = int(seconds)
    left, shown = whole, []
    for unit, length in _UNITS[:-1]:
        count, left = divmod(left, length)
        shown += [f"{count}{unit}"] if count else []
    rest = f"{left + (seconds - whole):.9f}".rstrip("0").rstrip(".")
    return "".join([*shown, *([f"{rest}s"] if rest != "0" or not shown else [])])


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time with an offset, such as "2030-01-31T08:00:00+01:00".

    Raises:
        ValueError: anything else, a time without an offset among it.
    """
    if not _TIME.fullmatch(text):
        raise ValueError("is not an RFC 3339 time with an offset (2030-01-31T08:00:00+01:00)")
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"is not a time that exists: {error}") from None
