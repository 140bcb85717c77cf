"""Any value of a type of the model, made from its type hints: what tests of the record feed on."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from git_batch.core import events as ev
from git_batch.core.ids import Oid
from git_batch.core.standing import BatchStatus

HOSTILE_TEXTS = (
    "",
    '"',
    "a\nb\n\nc",
    "\n\nBatch-Event: closed\nBatch-Format: 2\n",
    "---\n",
    "'''\n\"\"\"\n",
    "# a comment",
    "[event]\nat = 1",
    "a\tb\x1b[31m\x00\r\n\x7f\x85\u2028",
    "ü \U0001f600 \u202e",
    "\\303\\274 \\",
    " leading and trailing ",
)
HOSTILE_BYTES = (b"", b"\xff\xfe", b'"quoted"', b"a\nb", b"\xc3\xbc", b"\x00\x7f\\", b"-x", b" ")

_zones = st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))])
_made: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(HOSTILE_TEXTS) | st.text(max_size=6),
    bytes: st.sampled_from(HOSTILE_BYTES) | st.binary(max_size=6),
    bool: st.booleans(),
    int: st.integers(0, 2**40),
    Oid: st.sampled_from(["", "0123456789abcdef0123456789abcdef01234567", "f" * 40]),
    float: st.floats(0, 1e12, allow_nan=False) | st.sampled_from([0.0, 0.1, 1e-7]),
    datetime: st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=_zones),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Give a strategy for a type."""
    if kind not in _made:
        _made[kind] = _strategy(kind)
    return _made[kind]


def _strategy(kind: Any) -> st.SearchStrategy[Any]:
    if kind is types.NoneType:
        return st.none()
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union or origin is types.UnionType:
        return st.one_of([values(a) for a in args])
    if origin is tuple:
        if args[1:] == (Ellipsis,):
            return st.lists(values(args[0]), max_size=2).map(tuple)
        return st.tuples(*(values(a) for a in args))
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(st.text("abc", min_size=1), values(args[1]), max_size=2)
    if hasattr(kind, "__supertype__"):
        return st.sampled_from(["", "a", "T.1_x-y", "0123456789abcdef" * 2])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    assert issubclass(kind, Struct), kind
    make = typing.cast(Callable[..., Any], kind)
    return st.builds(make, **{f.name: values(f.type) for f in fields(kind)})


def any_event() -> st.SearchStrategy[ev.Event]:
    """Give a strategy for events of every type."""
    return st.one_of([values(kind) for kind in ev.KINDS])


def smallest(kind: type[ev.Event], **more: Any) -> ev.Event:
    """Make an event of a type with nothing in it."""
    empty = {f.name: more.get(f.name, _least(f.type)) for f in fields(kind)}
    return kind(**empty)


def _least(hint: Any) -> Any:
    if types.NoneType in typing.get_args(hint):
        return None
    if typing.get_origin(hint) is tuple:
        return ()
    if hasattr(hint, "__supertype__"):
        return _least(hint.__supertype__)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if isinstance(hint, type) and issubclass(hint, Struct):
        return None
    return {str: "", bytes: b"", int: 0, datetime: datetime(2025, 1, 1, tzinfo=UTC)}[hint]


def every_trigger() -> list[ev.Event]:
    """Make one event for each row name that the tables can have."""
    made: list[ev.Event] = [
        smallest(kind) for kind in ev.KINDS if kind not in (ev.Closed, ev.Decided)
    ]
    made += [smallest(ev.Closed, status=status) for status in BatchStatus]
    made += [smallest(ev.Decided, decision=decision) for decision in ev.Decision]
    return made
