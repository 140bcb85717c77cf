"""Does this path belong to this task: git's `:(glob)` pathspecs, matched by ourselves.

Theory. A scope is a list of patterns, each with the meaning that `git ls-files ':(glob)PATTERN'`
gives it at the top level of the repository (gitglossary, "pathspec"; wildmatch.c), over bytes:

* `?`, `*` and `[...]` never match `/`; `**` as a whole component matches any number of folders.
* The pattern's own text, taken as it is written, is a name too: it covers that path and, if that
  is a folder, what is in it. So `src` covers `src/a`, and `app/[id]` covers `app/[id]/page.tsx`.
* A folder that only a *wildcard* matches is not thereby covered: `src/*` means the files directly
  in `src`, as `*` stops at `/`. Whoever wants the folders' content writes `src/*/**`.
* Backslash takes the next byte literally. No other magic exists: a path is never handed to git as
  a pathspec, so `:(exclude)x` or `:/` can't turn a scope round.

Rules. What git accepts but reads in a way that nobody expects is refused by `check_glob` rather
than imitated: `a**` (crosses folders or not, depending on its place), `x*/` (matches nothing),
braces, a leading `!`, bytes of a non-ASCII letter in brackets. Everything that `check_glob` lets
pass matches exactly as in git; a property test compares the two.

All patterns of a scope become one regular expression. It can't backtrack its way to a standstill:
between two stars of a component, and between two `**`, the leftmost match is as good as any, so
these groups are atomic, and runs of `**/**` are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

MAX_GLOB = 4096
"""Bytes; no path is longer (PATH_MAX)."""

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters apart from newline and tab."""

HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Characters that can't be seen or that reorder what is seen: control, bidi, zero width."""

_STAR = b"*"
_ANY = b"[^/]"
_FOLDERS = b"(?:[^/]+/)*"
_NEVER = b"(?!)"

_CLASSES: dict[bytes, frozenset[int]] = {
    b"alnum": frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
    b"alpha": frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset([*range(0x20), 0x7F]),
    b"digit": frozenset(b"0123456789"),
    b"graph": frozenset(range(0x21, 0x7F)),
    b"lower": frozenset(b"abcdefghijklmnopqrstuvwxyz"),
    b"print": frozenset(range(0x20, 0x7F)),
    b"punct": frozenset(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    b"space": frozenset(b" \t\n\r"),  # git's own isspace
    b"upper": frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}


class Scope:
    """The paths that a list of patterns covers; no pattern covers nothing."""

    __slots__ = ("_matches", "patterns")

    def __init__(self, patterns: Sequence[str]) -> None:
        """Compile the patterns.

        Raises:
            ValueError: a pattern that `check_glob` refuses for its syntax.
        """
        self.patterns = tuple(patterns)
        self._matches = _compile(self.patterns).fullmatch

    def match(self, path: bytes) -> bool:
        """Say whether a path, relative to the top level and without a final `/`, is covered."""
        return self._matches(path) is not None


@lru_cache(maxsize=4096)
def check_glob(text: str) -> str | None:
    """Say why a pattern is refused, as the end of a sentence, or None if it is good."""
    hidden = check_visible(text)
    if hidden:
        return hidden
    pattern = text.encode()
    reason = _check_ends(text, pattern)
    if reason:
        return reason
    try:
        parts = _components(pattern)
    except ValueError as error:
        return str(error)
    if _has_wildcard(parts) and pattern.endswith(b"/"):
        return "ends with '/' after a wildcard, which matches nothing: add '**'"
    folder = parts[:-1] if pattern.endswith(b"/") else parts
    return next((why for part in folder if (why := _check_component(part))), None)


def check_visible(text: str) -> str | None:
    """Say which character can't be seen and where, as the end of a sentence, or None."""
    hidden = HIDDEN.search(text)
    if hidden is None:
        return None
    return f"has the invisible character U+{ord(hidden[0]):04X} at position {hidden.start() + 1}"


def literal_paths(patterns: Iterable[str]) -> tuple[bytes, ...]:
    """Give the paths that patterns without a wildcard name, unescaped, without a final `/`.

    Raises:
        ValueError: a pattern that `check_glob` refuses for its syntax.
    """
    found = []
    for text in patterns:
        parts = _components(text.encode())
        if not _has_wildcard(parts):
            found.append(b"/".join(_literal(part) for part in parts).rstrip(b"/"))
    return tuple(found)


def _check_ends(text: str, pattern: bytes) -> str | None:
    if not text:
        return "is empty"
    if len(pattern) > MAX_GLOB:
        return f"is longer than {MAX_GLOB} bytes"
    if text != text.strip():
        return "begins or ends with a space"
    if text[0] == "/":
        return "is absolute: patterns start at the top level of the repository"
    if text[0] == ":":
        return "begins with ':': git's pathspec magic has no meaning here"
    if text[0] == "!":
        return "begins with '!': patterns can't exclude, use 'protect'"
    if text[0] == "-":
        return "begins with '-': write '[-]' if a name does"
    if "$(" in text or "`" in text:
        return "looks like a shell substitution: patterns are not expanded"
    if re.search(r"(?<!\\)\{[^{}]*,", text):
        return "has braces, which are no alternatives here: write one pattern for each"
    return None


def _check_component(part: list[bytes]) -> str | None:
    if not part:
        return "has an empty component ('//')"
    if any(token == _STAR or token.startswith((b"[", _NEVER)) for token in part):
        return None
    name = _literal(part)
    if name in (b".", b".."):
        return f"has the component '{name.decode()}'"
    if name.lower() == b".git":
        return "names '.git', which no commit can hold"
    return None


def _has_wildcard(parts: list[list[bytes]]) -> bool:
    return any(
        token == _STAR or token.startswith((b"[", _NEVER)) for part in parts for token in part
    )


def _literal(part: list[bytes]) -> bytes:
    return b"".join(token[-1:] for token in part)


@lru_cache(maxsize=256)
def _compile(patterns: tuple[str, ...]) -> re.Pattern[bytes]:
    """Make one expression of all patterns, to be used with `fullmatch`."""
    choices: list[bytes] = []
    for text in dict.fromkeys(patterns):
        pattern = text.encode()
        parts = _components(pattern)
        inside = b".*" if pattern.endswith(b"/") else b"(?:/.*)?"
        choices.append(re.escape(pattern) + inside)
        if _has_wildcard(parts) or b"\\" in pattern:
            choices.append(_path_regex(parts))
    return re.compile(b"|".join(choices) or _NEVER, re.DOTALL)


def _path_regex(parts: list[list[bytes]]) -> bytes:
    """Join components; what stands between two `**` is searched for once, leftmost."""
    runs: list[list[bytes]] = [[]]
    for part in parts:
        if part == [_STAR, _STAR]:
            runs.append([])
        else:
            runs[-1].append(_component_regex(part))
    first, *others = runs
    if not others:
        return b"/".join(first)
    middle = [run for run in others[:-1] if run]
    regex = b"".join(part + b"/" for part in first)
    for run in middle:
        regex += b"(?>(?:[^/]+/)*?" + b"".join(part + b"/" for part in run) + b")"
    return regex + (_FOLDERS + b"/".join(others[-1]) if others[-1] else b".*")


def _component_regex(part: list[bytes]) -> bytes:
    """Join the bytes of a component; between two stars the leftmost match is taken for good."""
    segments: list[bytes] = [b""]
    for token in part:
        if token == _STAR:
            segments.append(b"")
        else:
            segments[-1] += token
    if len(segments) == 1:
        return segments[0]
    middle = b"".join(b"(?>[^/]*?" + segment + b")" for segment in segments[1:-1])
    return segments[0] + middle + b"[^/]*" + segments[-1]


def _components(pattern: bytes) -> list[list[bytes]]:
    """Split at `/` into tokens: `*`, or an expression that matches exactly one byte."""
    parts: list[list[bytes]] = [[]]
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        at += 1
        if char == b"/":
            parts.append([])
        elif char == b"*":
            parts[-1].append(_STAR)
        elif char == b"?":
            parts[-1].append(_ANY)
        elif char == b"[":
            token, at = _bracket(pattern, at)
            parts[-1].append(token)
        else:
            if char == b"\\":
                char = pattern[at : at + 1]
                at += 1
                if char in (b"", b"/"):
                    raise ValueError("has a backslash with nothing to escape")
            parts[-1].append(re.escape(char))
    for part in parts:
        stars = any(a == b == _STAR for a, b in pairwise(part))
        if stars and part != [_STAR, _STAR]:
            raise ValueError("has '**' beside something else than '/': write '*', or '**/*'")
    return parts


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Read a bracket expression from behind its `[` as wildmatch.c does."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous: int | None = None
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        named = pattern.find(b"]", at + 2) if pattern.startswith(b"[:", at) else -1
        if named > at + 2 and pattern[named - 1 : named] == b":":
            members |= _class(pattern[at + 2 : named - 1])
            previous, at = None, named + 1
            continue
        is_range = (
            previous is not None
            and pattern[at : at + 1] == b"-"
            and pattern[at + 1 : at + 2] not in (b"", b"]")
        )
        char, at = _member(pattern, at + 1 if is_range else at)
        if is_range and previous is not None:
            if char < previous:
                raise ValueError("has a range in brackets that is the wrong way round")
            members.update(range(previous, char + 1))
            previous = None
        else:
            members.add(char)
            previous = char
    if negated:
        members = set(range(256)) - members
    members.discard(ord("/"))
    if not members:
        return _NEVER, at + 1
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]", at + 1


def _member(pattern: bytes, at: int) -> tuple[int, int]:
    if pattern[at : at + 1] == b"\\":
        at += 1
    if at >= len(pattern):
        raise ValueError("has a '[' without its ']'")
    char = pattern[at]
    if char == ord("/"):
        raise ValueError("has '/' in brackets, or a '[' without its ']'")
    if char > 0x7F:
        raise ValueError("has a non-ASCII letter in brackets, which hold single bytes")
    return char, at + 1


def _class(name: bytes) -> frozenset[int]:
    if name not in _CLASSES:
        raise ValueError(f"has the unknown class '[:{name.decode(errors='replace')}:]' in brackets")
    return _CLASSES[name]
