"""The codec: every value of the model survives, and what does not fit its type is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from git_batch.core import events as ev
from git_batch.core.attempt import Attempt, CheckResult, Usage
from git_batch.core.codec import CodecError, decode, encode, quote, unquote
from git_batch.core.entries import Receipt
from git_batch.core.ids import Oid
from git_batch.core.model import Authorization, Budget, InFlight, TaskRecord
from git_batch.core.standing import Outcome, TaskStatus
from git_batch.core.tip import Header, Totals
from git_batch.core.toml import loads
from tests.core.facts import HOSTILE_BYTES, HOSTILE_TEXTS, any_event, values
from tests.tries import tries

AT = datetime(2025, 1, 1, tzinfo=UTC)
KINDS = (InFlight, TaskRecord, Authorization, Attempt, Budget, Totals, Header, Receipt)


def through_toml(value: object) -> dict[str, Any]:
    return loads(tomli_w.dumps(encode(value)))


@tries(60)
@given(any_event())
def test_every_event_survives_toml(event: ev.Event) -> None:
    assert decode(type(event), through_toml(event)) == event


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_fact_of_the_record_survives_toml(kind: type) -> None:
    @tries(10)
    @given(values(kind))
    def check(value: object) -> None:
        assert decode(kind, through_toml(value)) == value

    check()


@given(st.binary())
def test_bytes_survive_quoting(raw: bytes) -> None:
    assert unquote(quote(raw)) == raw


@pytest.mark.parametrize("raw", HOSTILE_BYTES)
def test_hostile_bytes_survive_quoting(raw: bytes) -> None:
    assert unquote(quote(raw)) == raw


@pytest.mark.parametrize("text", [t for t in HOSTILE_TEXTS if t[:1] != '"' and "\x7f" not in t])
def test_plain_text_is_not_quoted(text: str) -> None:
    assert quote(text.encode()) == text


@pytest.mark.parametrize(
    ("quoted", "raw"),
    [
        (r'"\303\274"', b"\xc3\xbc"),
        (r'"a\tb\nc\"d\\e"', b'a\tb\nc"d\\e'),
        (r'"\a\b\v\f\r"', b"\a\b\v\f\r"),
        ('""', b""),
        ('"ü"', "ü".encode()),
    ],
)
def test_names_quoted_by_git_are_read(quoted: str, raw: bytes) -> None:
    assert unquote(quoted) == raw


@pytest.mark.parametrize("text", ['"', '"a', r'"\x41"', r'"\9"', r'"\30"', '"\\"'])
def test_a_quoted_name_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(CodecError):
        unquote(text)


def test_what_is_empty_by_default_is_left_out_and_what_differs_from_it_is_not() -> None:
    assert encode(TaskRecord(TaskStatus.PENDING, None)) == {"status": "pending"}
    assert encode(Budget()) == {"qa_failure_limit": 6}
    assert encode(Budget(qa_failure_limit=0, max_usd=0.0)) == {
        "qa_failure_limit": 0,
        "max_usd": 0.0,
    }


def test_a_lone_surrogate_in_a_reason_can_be_recorded() -> None:
    record = TaskRecord(TaskStatus.NEEDS_HUMAN, Outcome.BLOCKED, reason="can't open \udcff")
    assert decode(TaskRecord, through_toml(record)).reason == "can't open ?"


def test_a_field_that_a_later_version_added_is_ignored() -> None:
    assert decode(Usage, {"usd": 1, "joules": 3}) == Usage(usd=1.0)


class Small(Struct, frozen=True):
    number: int
    share: float
    at: datetime
    flag: bool = False
    pair: tuple[str, int] = ("", 0)
    either: float | datetime | None = None


GOOD = {"number": 1, "share": 0.5, "at": AT}


def test_a_whole_table_is_read() -> None:
    assert decode(Small, GOOD) == Small(1, 0.5, AT)
    assert decode(Small, GOOD | {"either": AT, "pair": ["a", 1]}) == Small(
        1, 0.5, AT, pair=("a", 1), either=AT
    )
    assert decode(Small, GOOD | {"share": 2, "either": 3}).either == 3.0


@pytest.mark.parametrize(
    "change",
    [
        {"number": "1"},
        {"number": 1.0},
        {"number": True},
        {"share": "a"},
        {"share": 10**400},
        {"share": float("nan")},
        {"share": float("-inf")},
        {"at": "2025"},
        {"at": datetime(2025, 1, 1)},
        {"at": AT.date()},
        {"flag": 1},
        {"pair": ["a"]},
        {"pair": ["a", "b"]},
        {"pair": "ab"},
        {"either": "soon"},
        {"either": datetime(2025, 1, 1)},
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused_with_its_key(change: dict[str, object]) -> None:
    with pytest.raises(CodecError, match=next(iter(change))):
        decode(Small, GOOD | change)


@pytest.mark.parametrize("name", list(GOOD))
def test_a_missing_value_is_refused_by_name(name: str) -> None:
    with pytest.raises(CodecError, match=f"'{name}' is missing"):
        decode(Small, {k: v for k, v in GOOD.items() if k != name})


@pytest.mark.parametrize("value", ["comitted", 1, [], None])
def test_a_word_that_is_none_of_the_list_is_refused(value: object) -> None:
    with pytest.raises(CodecError):
        decode(Outcome, value)


@pytest.mark.parametrize("table", [[], "a", 1, None])
def test_what_is_not_a_table_is_refused(table: object) -> None:
    with pytest.raises(CodecError):
        decode(CheckResult, table)


def test_ids_are_read_as_text() -> None:
    assert decode(Oid, "a" * 40) == "a" * 40
    with pytest.raises(CodecError):
        decode(Oid, 1)
