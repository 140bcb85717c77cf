"""Messages and trailers: writing ours so that every reader agrees, and reading them back.

Four readers of trailers (`git interpret-trailers`, `git log`, pygit2, a regular expression) agree
on fewer than half of the messages that people and agents can write. So text that comes from a
plan, an agent or a hook is refused or indented where it could be read as a trailer of ours or as
the end of the message, and our block is the last paragraph, one line each, each key once.
"""

from __future__ import annotations

import re

BATCH_ID, TASK, PLAN, RECORD, UNDO = (
    "Batch-Id",
    "Batch-Task",
    "Batch-Plan",
    "Batch-Record",
    "Batch-Undo",
)
KEYS = (BATCH_ID, TASK, PLAN, RECORD)

_SPACES = " \t\n\v\f\r"  # what C's isspace takes for one, unlike Python's
_LINE = re.compile(r"([A-Za-z0-9-]+)[ \t]*:(.*)\Z", re.DOTALL)
_OURS = re.compile(r"^[ \t]*Batch-[A-Za-z0-9-]*[ \t]*:", re.MULTILINE | re.IGNORECASE)
_GIT_GENERATED = ("Signed-off-by: ", "(cherry picked from commit ")
_DIVIDER = r"---|# -+ ?>8|-+ ?>8"
_DANGER = re.compile(rf"^(?={_DIVIDER}|[A-Za-z0-9-]+[ \t]*:|\(cherry picked from )", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def forges(text: str) -> bool:
    """Tell whether a text has a line that reads like one of our trailers."""
    return _OURS.search(text) is not None


def body_text(text: str) -> str:
    """Make free text fit for a commit's body.

    Line ends become newlines, other control characters go, and a line that some reader takes for
    a trailer, a divider or scissors is indented by two spaces.
    """
    clean = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = (line.rstrip() for line in clean.split("\n"))
    joined = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return _DANGER.sub("  ", joined)


def compose(subject: str, body: str) -> bytes:
    """Write a message as a person would have: subject, blank line, body."""
    first = re.sub(rf"^(?={_DIVIDER})", "  ", " ".join(_CONTROL.sub(" ", subject).split()))
    text = body_text(body)
    return (f"{first}\n\n{text}\n" if text else f"{first}\n").encode("utf-8", "replace")


def with_trailers(message: bytes, trailers: list[tuple[str, str]]) -> bytes:
    """Append trailers; they join a block that the message ends with, else begin their own."""
    stripped = message.rstrip(_SPACES.encode())
    gap = b"\n" if block(message) else b"\n\n"
    lines = "".join(f"{key}: {value}\n" for key, value in trailers)
    return stripped + gap + lines.encode("utf-8")


def without_ours(message: bytes) -> bytes:
    """Take the trailers off a task's commit again: the message as it was when they were added."""
    lines = message.rstrip(_SPACES.encode()).split(b"\n")
    while lines and lines[-1].startswith(tuple(f"{key}: ".encode() for key in KEYS)):
        lines.pop()
    return b"\n".join(lines).rstrip(_SPACES.encode()) + b"\n"


def body(message: bytes) -> bytes:
    """Give what follows the subject of a task's commit, our trailers aside."""
    return without_ours(message).partition(b"\n\n")[2].strip()


def block(message: bytes) -> list[tuple[str, str]]:
    """Read the trailer block: the last paragraph, if git would take it for one.

    The rule is git's (git-interpret-trailers): not the subject's paragraph, and either all lines
    are trailers, or at least one is one that git itself writes and a quarter of them are. What
    a person's own configuration adds to that rule is left out, since it differs between readers.
    """
    found: list[tuple[str, str]] = []
    trailers = other = 0
    generated = after_trailer = after_pair = False
    for line in _last_paragraph(message.decode("utf-8", "surrogateescape").split("\n")):
        if line[0] in _SPACES:  # goes on with the line before, if that is a trailer
            other += not after_trailer
            if after_pair:
                key, value = found[-1]
                found[-1] = (key, f"{value} {line.lstrip(_SPACES)}")
            continue
        pair, by_git = _LINE.match(line), line.startswith(_GIT_GENERATED)
        after_pair, after_trailer = pair is not None, by_git or pair is not None
        if line.startswith("#"):  # git skips its comments
            continue
        trailers += after_trailer
        other += not after_trailer
        generated = generated or by_git
        if pair:
            found.append((pair[1], pair[2]))
    if other and not (generated and trailers * 3 >= other):
        return []
    return [(key, value.strip(_SPACES)) for key, value in found]


def _last_paragraph(lines: list[str]) -> list[str]:
    """Give the lines of the last paragraph; none if it is the first one."""
    end = len(lines)
    while end and (not lines[end - 1].strip(_SPACES) or lines[end - 1].startswith("#")):
        end -= 1
    start = end
    while start and lines[start - 1].strip(_SPACES):
        start -= 1
    if not any(line.strip(_SPACES) for line in lines[:start]):
        return []
    return lines[start:end]


def ours(message: bytes) -> dict[str, str] | None:
    """Read our trailers from a task's commit.

    Returns:
        The values by key, None when the message has no such block or a key is there twice.
    """
    found = [(key, value) for key, value in block(message) if key.lower().startswith("batch-")]
    if not found or len({key.lower() for key, _ in found}) != len(found):
        return None
    return dict(found)
