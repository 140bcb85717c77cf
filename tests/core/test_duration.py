"""Durations and times, in and out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from git_batch.core.duration import (
    LONGEST,
    format_duration,
    parse_duration,
    parse_time,
    write_duration,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("8h", 28800),
        ("1h30m", 5400),
        ("2d", 172800),
        ("1d2h3m4s", 93784),
        ("2h 5m", 7500),
        ("1.5h", 5400),
        ("3.4s", 3.4),
        ("0s", 0),
        ("3650d", LONGEST),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "30",
        "m",
        "-5m",
        "+5m",
        "5 m",
        "5m ",
        " 5m",
        "5m3h",
        "5m5m",
        "1e3s",
        ".5h",
        "5.h",
        "5M",
        "5min",
        "1w",
        "\u0665m",
        "3651d",
        "9999999999s",
        "5m\n",
        "1h  5m",
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is "):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-5, "0s"),
        (0.04, "0s"),
        (3.4, "3.4s"),
        (59.94, "59.9s"),
        (59.96, "1m"),
        (60, "1m"),
        (303, "5m 3s"),
        (3599.4, "59m 59s"),
        (3599.6, "1h"),
        (7500, "2h 5m"),
        (7529, "2h 5m"),
        (86369, "23h 59m"),
        (86371, "1d"),
        (100_000, "1d 4h"),
        (LONGEST, "3650d"),
    ],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_only_numbers_are_durations(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        format_duration(seconds)


@given(st.floats(0, LONGEST))
def test_what_is_shown_can_be_read_and_is_near(seconds: float) -> None:
    again = parse_duration(format_duration(seconds))
    assert again == pytest.approx(seconds, rel=0.03, abs=0.051)


@given(st.floats(0, LONGEST))
@example(5400.0)
def test_what_is_written_is_read_as_the_same(seconds: float) -> None:
    seconds = parse_duration(f"{seconds:.9f}s")
    assert parse_duration(write_duration(seconds)) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (5400, "1h30m"), (0.5, "0.5s"), (86401, "1d1s")]
)
def test_durations_for_a_command_line(seconds: float, text: str) -> None:
    assert write_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2030-01-31T08:00:00Z", datetime(2030, 1, 31, 8, tzinfo=UTC)),
        ("2030-01-31t08:00:00z", datetime(2030, 1, 31, 8, tzinfo=UTC)),
        ("2030-01-31 08:00:00.25+00:00", datetime(2030, 1, 31, 8, 0, 0, 250_000, UTC)),
        (
            "2030-01-31T08:00:00-05:30",
            datetime(2030, 1, 31, 8, tzinfo=timezone(-timedelta(hours=5, minutes=30))),
        ),
    ],
)
def test_times(text: str, when: datetime) -> None:
    assert parse_time(text) == when
    assert parse_time(text).tzinfo is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2030-01-31",
        "2030-01-31T08:00:00",
        "2030-01-31T08:00Z",
        "2030-02-30T08:00:00Z",
        "2030-01-31T25:00:00Z",
        "2030-01-31T08:00:60Z",
        "20300131T080000Z",
        "2030-W05-4T08:00:00Z",
        "2030-01-31T08:00:00+0100",
        "2030-01-31T08:00:00Z ",
        "tomorrow",
        "8h",
        "\u0662\u0660\u0663\u0660-01-31T08:00:00Z",
        "2030-01-31T08:00:00+99:00",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parse_time(text)
