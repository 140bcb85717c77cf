r"""What is printed for people holds no character that acts on a terminal or can't be seen.

Plans, output of tasks, names of files and people, and records from elsewhere hold anything: an
escape sequence that clears the screen, a bidi override that shows another command than the one
that runs. `printable` writes such characters as Python would (`\x1b`, `\u202e`); which ones they
are is `core.scope.HIDDEN`, besides all that this Python's Unicode does not know as printable.
Every view ends in one of these functions; `printable` is idempotent, so twice does no harm.

Widths count characters: the width of what a terminal draws is not known here.
"""

from __future__ import annotations

import re

from git_batch.core.scope import HIDDEN

MORE = "..."
"""ASCII, as output may be: whoever reads with LC_ALL=C shall not get an error instead."""

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_ESCAPES = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f]..)|.)")
"""What follows a backslash in ASCII JSON; half of a pair of surrogates, alone, is the group."""

_SAFE_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def printable(text: str) -> str:
    """Write every character visibly, apart from newline, tab and the spaces of all scripts."""
    if text.isprintable() and HIDDEN.search(text) is None:
        return text
    shown = HIDDEN.sub(_unless_layout, text)
    if shown.isascii():
        return shown
    return "".join(c if c.isprintable() or c.isspace() else _visible(c) for c in shown)


def one_line(text: str, width: int | None = None) -> str:
    """Write a text in one line, line breaks visibly; cut to a number of characters if given."""
    shown = printable(text).replace("\n", "\\n").replace("\t", "\\t")
    if width is None or len(shown) <= width:
        return shown
    return shown[: max(width - len(MORE), 0)] + MORE


def output_text(raw: bytes) -> str:
    """Write a program's output: bytes that are no UTF-8 visibly, colours left out."""
    text = raw.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return printable(_COLOUR.sub("", text))


def relayed_text(text: str, *, redraws: bool) -> str:
    """Write what a program says while it runs, maybe in the middle of a line; no colours.

    Args:
        redraws: it goes to a terminal, where a carriage return draws a progress anew.
    """
    lines = (printable(_COLOUR.sub("", line)) for line in text.replace("\r\n", "\n").split("\r"))
    return ("\r" if redraws else "\n").join(lines)


def shell_word(text: str) -> str:
    """Write a word so that a shell takes it as it is; a command may hold it, whatever it is."""
    shown = one_line(text)
    if shown and _SAFE_WORD.issuperset(shown) and not shown.startswith("-"):
        return shown
    return "'" + shown.replace("'", "'\\''") + "'"


def json_text(value: object) -> str:
    """Write JSON in ASCII, so it is valid in every locale and harmless on every terminal.

    A byte that is no UTF-8 (in the name of a folder, say) is half of a pair of surrogates in
    Python. Such a half is no character for most readers of JSON; it is written visibly.
    """
    import json  # the text of `status` does not need it, and must be fast

    import msgspec.json  # the other one indents in Python: three times as long

    text = json.dumps(value)
    if "\\ud" in text:
        text = _ESCAPES.sub(_whole, text)
    return msgspec.json.format(text, indent=2).replace("\x7f", "\\u007f")


def _whole(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else "\\\\" + match[1]


def _unless_layout(match: re.Match[str]) -> str:
    return match[0] if match[0] in "\n\t" else _visible(match[0])


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
