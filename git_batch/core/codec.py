r"""Frozen structs to TOML tables and back, by their own type hints.

One rule for every fact of the record: a field that is None, or an empty tuple, text or mapping
where that is its default, is left out; so adding a field with a default stays readable both ways.
Bytes (paths, messages) are text when they are plain UTF-8 and else quoted as git quotes names
(`"\303\274"`), so nothing is lost. Unknown keys are ignored, since a later version may have
added them; a missing or ill-typed one is an error.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from git_batch.core.ids import OID, Oid

T = TypeVar("T")

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_SHOWN = 60


class CodecError(ValueError):
    """A table does not hold what its type needs."""


def quote(raw: bytes) -> str:
    """Write bytes as text; only what is not plain UTF-8, or begins with a quote, is escaped."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = '"'
    if not text.startswith('"') and "\x7f" not in text:
        return text
    body = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:03o}" for b in raw)
    return f'"{body}"'


def unquote(text: str) -> bytes:
    """Read what `quote` wrote, and git's own quoted names.

    Raises:
        CodecError: a quoted text that does not end, or an escape that git does not write.
    """
    if not text.startswith('"'):
        return text.encode("utf-8")
    if len(text) < 2 or not text.endswith('"'):
        raise CodecError("a quoted name does not end")
    out, body, i = bytearray(), text[1:-1], 0
    while i < len(body):
        c = body[i]
        if c != "\\":
            out += c.encode("utf-8")
            i += 1
        elif body[i + 1 : i + 2] in _ESCAPES:
            out.append(_ESCAPES[body[i + 1]])
            i += 2
        elif len(octal := body[i + 1 : i + 4]) == 3 and all(d in "01234567" for d in octal):
            out.append(int(octal, 8) & 0xFF)
            i += 4
        else:
            raise CodecError("a quoted name has an unknown escape")
    return bytes(out)


def encode(value: Any) -> Any:
    """Turn a value into what TOML can hold."""
    kind: Any = type(value)
    return _encoder(kind)(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    """Choose once for a type what is done with its values; an event has some sixty."""
    if issubclass(kind, Enum):
        return lambda v: v.value
    if issubclass(kind, bytes):
        return quote
    if issubclass(kind, str):
        return _text
    if issubclass(kind, tuple | list):
        return lambda v: [encode(item) for item in v]
    if issubclass(kind, Mapping):
        return lambda v: {str(key): encode(item) for key, item in v.items()}
    if issubclass(kind, Struct):
        return partial(_table, _layout(kind))
    return lambda v: v


def _text(value: str) -> str:
    # A lone surrogate (an undecodable path in a reason) has no UTF-8.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _table(layout: tuple[tuple[str, Any], ...], value: Struct) -> dict[str, Any]:
    table = {}
    for name, default in layout:
        field = getattr(value, name)
        if field is None:
            continue
        encoded = encode(field)
        if encoded or field != default:
            table[name] = encoded
    return table


def decode(kind: type[T], table: Any) -> T:
    """Build a value of a type from its table.

    Raises:
        CodecError: a key is missing or holds something else.
    """
    return typing.cast(T, _decoder(typing.cast(Any, kind))(table))


@cache
def _layout(kind: type[Struct]) -> tuple[tuple[str, Any], ...]:
    """List a type's fields, each with the empty value that is left out."""
    return tuple(
        (f.name, _absent(f.type) if f.default is NODEFAULT else f.default) for f in fields(kind)
    )


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    origin = typing.get_origin(kind)
    if origin is typing.Union or origin is types.UnionType:
        return _union(typing.get_args(kind))
    if origin is tuple:
        return _sequence(typing.get_args(kind))
    if origin is not None and issubclass(origin, Mapping):
        item = _decoder(typing.get_args(kind)[1])
        return lambda v: {k: item(x) for k, x in _expect(v, dict).items()}
    if kind is Oid:
        return _oid
    if hasattr(kind, "__supertype__"):
        return _decoder(kind.__supertype__)
    if issubclass(kind, Struct):
        return _struct(kind)
    if issubclass(kind, Enum):
        return _enum(kind)
    if kind is bytes:
        return lambda v: unquote(_expect(v, str))
    if kind is float:
        return _float
    if kind is datetime:
        return _datetime
    return lambda v: v if type(v) is kind else _expect(v, kind)


def _expect(value: Any, *kinds: type) -> Any:
    if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
        return value
    raise CodecError(f"{shown(value)} is not {' or '.join(k.__name__ for k in kinds)}")


def shown(value: Any) -> str:
    """Write a value as a message names it: of one that fills the screen only the beginning."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _float(value: Any) -> float:
    try:
        number = value if type(value) is float else float(_expect(value, int, float))
    except OverflowError:
        raise CodecError("a number is too large") from None
    if not math.isfinite(number):  # TOML has them; JSON, which a listing is told in, has not
        raise CodecError(f"{value} is no number")
    return number


def _datetime(value: Any) -> datetime:
    if _expect(value, datetime).tzinfo is None:
        raise CodecError(f"{value} has no offset")
    return typing.cast(datetime, value)


def _oid(value: Any) -> Oid:
    """Read an object's id, or the empty one: nothing else may reach git as a name."""
    if not _expect(value, str) or OID.match(value):
        return Oid(value)
    raise CodecError(f"{shown(value)} is not an object id")


def _enum(kind: type[Enum]) -> Callable[[Any], Any]:
    members = {member.value: member for member in kind}

    def read(value: Any) -> Any:
        try:
            return members[value]
        except (KeyError, TypeError):  # of what is no text, too
            raise CodecError(f"{shown(value)} is not a valid {kind.__name__}") from None

    return read


def _union(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    *others, last = [_decoder(k) for k in kinds if k is not types.NoneType]

    def read(value: Any) -> Any:
        for one in others:
            try:
                return one(value)
            except CodecError:
                continue
        return last(value)

    return read if others else last


def _sequence(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        item = _decoder(kinds[0])
        return lambda v: tuple(item(x) for x in _expect(v, list))
    items = [_decoder(k) for k in kinds]

    def read(value: Any) -> tuple[Any, ...]:
        if len(_expect(value, list)) != len(items):
            raise CodecError(f"{len(items)} values expected")
        return tuple(d(x) for d, x in zip(items, value, strict=True))

    return read


def _struct(kind: type[Struct]) -> Callable[[Any], Any]:
    decoders = [(f.name, _decoder(f.type)) for f in fields(kind)]
    absent = [(f.name, _absent(f.type)) for f in fields(kind) if f.required]

    def read(value: Any) -> Any:
        table, given, name = _expect(value, dict), {}, ""
        try:
            for name, decoder in decoders:
                if name in table:
                    given[name] = decoder(table[name])
        except CodecError as error:
            raise CodecError(f"{name}: {error}") from None
        for name, fallback in absent:
            if name not in given:
                if fallback is NODEFAULT:
                    raise CodecError(f"'{name}' is missing")
                given[name] = fallback
        return kind(**given)

    return read


def _absent(hint: Any) -> Any:
    """Give what a left-out field without a default stands for; NODEFAULT if it may not be."""
    if types.NoneType in typing.get_args(hint):
        return None
    empty = {str: "", bytes: b""}.get(hint, NODEFAULT)
    return () if typing.get_origin(hint) is tuple else empty
