"""Where in a plan file something stands, and what is wrong there.

Theory. `tomllib` gives values without their places, and people need the line. So the text is
looked through once more, but only when there is something to report: strings and comments are
skipped, what remains (headers, keys, commas, brackets) says which path of the document stands on
which line. Whatever the scan can't place is reported at the nearest enclosing key or table.

The same scan guards `tomllib` *before* it reads a text, since a few bytes can make it recurse
until the interpreter gives up (nested brackets) or take minutes (keys of many dotted parts).

Rules. Linear in the text, whatever it holds. Nothing of the file is echoed raw: a terminal that
shows a message must not be told what to do by a plan.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from git_batch.errors import PlanError

MAX_NESTING = 32
MAX_DOTS = 32
MAX_REPORTED = 20

Path = tuple[str | int, ...]
"""Keys and places from the top of the document: ("task", 3, "scope", 0)."""

_TOKEN = re.compile(r"[\"'#\[\]{}=,.\n]")
_BASIC = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
_BASIC_END = re.compile(r'\\.|"{3,}', re.DOTALL)
_LITERAL_END = re.compile(r"'{3,}")
_PART = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\'|([A-Za-z0-9_-]+)')
_HEADER = re.compile(r"(\[\[?)((?:[^\n\"'\]]|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')*)\]")


class Problems:
    """What is wrong with one plan file, collected so that it is told in one go."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._found: dict[Path, list[str]] = {}
        self._suggestions = MAX_REPORTED

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: Path, message: str) -> None:
        """Note a problem at a path of the document."""
        self._found.setdefault(path, []).append(message)

    def suggest(self, word: str, choices: Iterable[str]) -> str:
        """Give "; did you mean 'x'?" for the choice that is most like a word, or nothing.

        Likeness is slow to compute, so only as many are sought as can be reported.
        """
        if self._suggestions == 0:
            return ""
        self._suggestions -= 1
        folded = {choice.casefold(): choice for choice in choices}
        close = difflib.get_close_matches(word[:64].casefold(), folded, 1, 0.6)
        return f"; did you mean '{show(folded[close[0]])}'?" if close else ""

    def error(self) -> PlanError:
        """Make the error that tells all of it, in the order of the file; one problem a line."""
        lines = line_index(self._text)
        told = sorted(
            (_line_of(lines, path), message)
            for path, messages in self._found.items()
            for message in dict.fromkeys(messages)
        )
        shown = [
            f"{self._name}:{line}: {message}" if line else f"{self._name}: {message}"
            for line, message in told[:MAX_REPORTED]
        ]
        if len(told) > MAX_REPORTED:
            shown.append(f"{self._name}: and {len(told) - MAX_REPORTED} more problems")
        return PlanError("\n".join(shown))


def show(text: str, limit: int = 60) -> str:
    """Make a text fit to be printed in a message: invisible characters escaped, cut if long."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut)


def check_shape(text: str) -> tuple[int, str] | None:
    """Find what `tomllib` must not be given: the line and why, or None."""
    depth = dots = 0
    for kind, start, _ in _tokens(text):
        if kind in "[{":
            depth += 1
            if depth > MAX_NESTING:
                why = f"brackets are nested more than {MAX_NESTING} deep"
                return text.count("\n", 0, start) + 1, why
        elif kind in "]}":
            depth -= depth > 0
        if kind == ".":
            dots += 1
            if dots > MAX_DOTS:
                return text.count("\n", 0, start) + 1, f"a key has more than {MAX_DOTS} dots"
        elif kind != "string":
            dots = 0
    return None


def line_index(text: str) -> dict[Path, int]:
    """Map the paths of a document to the lines that they begin on, counted from 1."""
    lines: dict[Path, int] = {(): 0}
    counts: dict[Path, int] = {}
    table: Path = ()
    key: Path | None = None  # of the statement that is being read
    begin = counted = depth = item = 0
    line = 1
    fresh = False  # an array's item may begin at the next token
    for kind, start, end in _tokens(text):
        line += text.count("\n", counted, start)
        counted = start
        if key is not None and depth == 1 and fresh and kind in ("string", "[", "{"):
            lines.setdefault((*key, item), line)
            fresh = False
        if kind == "\n" and depth == 0:
            key, begin = None, end
        elif key is None and kind == "=":
            key = (*table, *_parts(text[begin:start]))
            _note(lines, key, line)
        elif key is None and kind == "[" and (header := _HEADER.match(text, start)):
            key = table = _enter(_parts(header[2]), header[1] == "[[", counts)
            _note(lines, table, line)
            depth = 1
        elif kind in "[{":
            depth += 1
            item, fresh = (0, kind == "[") if depth == 1 else (item, fresh)
        elif kind in "]}":
            depth -= depth > 0
        elif kind == "," and depth == 1:
            item, fresh = item + 1, True
    return lines


def _note(lines: dict[Path, int], path: Path, line: int) -> None:
    """Note where a path begins, and each table above it that is first named here."""
    while path not in lines:
        lines[path] = line
        path = path[:-1]


def _line_of(lines: dict[Path, int], path: Path) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines[path]


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield what structures a text, with start and end; stop at a string that never ends."""
    at = 0
    while found := _TOKEN.search(text, at):
        kind, start, at = found[0], found.start(), found.end()
        if kind == "#":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif kind in "\"'":
            at = _string_end(text, start, kind)
            if at < 0:
                return
            yield "string", start, at
        else:
            yield kind, start, at


def _string_end(text: str, start: int, quote: str) -> int:
    if not text.startswith(quote * 3, start):
        found = (_BASIC if quote == '"' else _LITERAL).match(text, start)
        return found.end() if found else -1
    pattern = _BASIC_END if quote == '"' else _LITERAL_END
    for found in pattern.finditer(text, start + 3):
        if found[0][0] == quote:
            return found.end()
    return -1


def _parts(text: str) -> Path:
    return tuple(
        next(part for part in match.groups() if part is not None) for match in _PART.finditer(text)
    )


def _enter(parts: Path, is_item: bool, counts: dict[Path, int]) -> Path:
    """Give a header's path, with the place of each array of tables that it goes through."""
    path: Path = ()
    for part in parts[:-1] if is_item else parts:
        path = (*path, part)
        if path in counts:
            path = (*path, counts[path])
    if is_item:
        path = (*path, *parts[-1:])
        counts[path] = counts.get(path, -1) + 1
        path = (*path, counts[path])
    return path
