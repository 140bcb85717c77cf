"""Mutated text: bytes anywhere, and whole values and lines of TOML, which get past the parser."""

from __future__ import annotations

import random
import re

PIECES = (
    b"", b"\xff", b"\n\n", b'"', b"[", b"]", b"9" * 30, b"=", b"\0", b"1e999", b"\n", b"'", b"{}",
    b"true", b"[" * 3000, b"../", b"-1", b"\x1b[31m", b"2030-13-99", b"#", b"\\", b": ",
)  # fmt: skip
VALUES = (
    b'""', b"-1", b"0", b"1e999", b"nan", b"true", b"[]", b"[[]]", b"{}", b'"x"', b"9" * 25, b"0.5",
    b"9999-12-31T23:59:59-23:59", b"0001-01-01T00:00:00+23:59", b"2026-01-01", b"12:00:00", b'[""]',
    b'"\\u0000"', b'"\\u202e"', b'"' + b"y" * 9000 + b'"', b'["a", 1]', b'{ a = "b" }', b"9" * 5000,
    b'"refs/heads/../x"', b'"' + b"0" * 40 + b'"', b"0x7fffffffffffffffffff", b'"\\ud7ff\\ue000"',
)  # fmt: skip
"""Each is TOML, and few of them are what is expected anywhere."""

_VALUE = re.compile(rb"(?m)(?<= = ).+$|(?<=: ).+$")


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Change one to three places."""
    made = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        dice.choice([_bytes, _value, _line])(made, dice)
    return bytes(made)


def _bytes(made: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(made) + 1)
    made[at : at + dice.choice([0, 1, 1, 5, 40])] = dice.choice(PIECES)


def _value(made: bytearray, dice: random.Random) -> None:
    """Put another value in the place of that of a key or a trailer."""
    found = [match.span() for match in _VALUE.finditer(made)]
    if found:
        begin, end = dice.choice(found)
        other = slice(*dice.choice(found))
        made[begin:end] = dice.choice([*VALUES, bytes(made[other])])


def _line(made: bytearray, dice: random.Random) -> None:
    """Take a line out, or put it somewhere else as well, or instead."""
    lines = made.split(b"\n")
    line = dice.choice(lines)
    if dice.random() < 0.7:
        lines.remove(line)
    if dice.random() < 0.5:
        lines.insert(dice.randrange(len(lines) + 1), line)
    made[:] = b"\n".join(lines)
