"""What a commit says of itself, and what its `settled` event decided: both read at full speed.

A lineage of ten thousand commits is verified before each push, so a commit's claim is read by one
regular expression, and so is an event; `core.record` would need a hundred times as long, and half
of a hook's time only to be imported. What does not look as our own writers leave it is not guessed
at: a claim is read again by `trailers`, and an event is left to the record's codec. Tests compare
both with those.

Four readers of trailers (`trailers`) disagree on half of the messages that people can write, but
not on a plain one: nothing but our block could be taken for trailers of ours, for the end of the
message or for its beginning.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from git_batch.core import trailers
from git_batch.core.ids import OID, Oid


class Seen(NamedTuple):
    """A commit as its object is, whatever grafts or replacements say."""

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    message: bytes


class Claim(NamedTuple):
    """What a commit says about itself in our trailers."""

    batch: str
    task: str
    plan: str
    record: Oid


class Settled(NamedTuple):
    """What a `settled` event decides; `message` lacks the last trailer, which names the event."""

    task: str
    tree: Oid
    parent: Oid
    message: bytes


_CLAIM = re.compile(
    rb"\n(?:[A-Za-z][A-Za-z0-9-]*: [^\x00-\x20\x7f][^\x00-\x1f\x7f]*\n)*?"  # others' trailers
    rb"Batch-Id: ([ -~]{1,80})\nBatch-Task: ([ -~]{1,80})\nBatch-Plan: (sha256:[0-9a-f]{64})\n"
    rb"Batch-Record: ([0-9a-f]{40})\n\Z"
)
_ODD = re.compile(
    rb"[\x00\r\x0b\x0c]|^---|^[#-][^\n]*>8|^[ \t]*batch-[a-z0-9-]*[ \t]*:",
    re.MULTILINE | re.IGNORECASE,
)
_STRING = json.JSONDecoder(strict=False)
"""A basic string of TOML is one of JSON, but for raw tabs and for \\U (from TOML 1.1 on, \\x)."""
_OURS = re.compile(rb"^[ \t]*batch-(?:id|task|plan|record|undo)[ \t]*:", re.MULTILINE | re.I)
_LONGEST_BLOCK = 1000
_SETTLED = re.compile(
    rb'[^\n]*\n\n\[event\]\nat = [^\n]*\ntask = "([^"\\\n]+)"\nattempt = \d+\n'
    rb'tree = "([0-9a-f]{40})"\nparent = "([0-9a-f]{40})"\nmessage = ("(?:[^"\\\n]|\\[^Ux])*")\n'
)
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}\Z")


def claim_of(message: bytes) -> tuple[Claim | None, bool]:
    """Read our trailers.

    Returns:
        The claim (None: there is none, or it is not whole), and whether the message is plain, so
        that all readers of trailers are known to agree about it.
    """
    match = _CLAIM.search(message, max(0, len(message) - _LONGEST_BLOCK))
    if match is not None:
        alone = message.endswith(b"\n", 0, match.start()) and not message.startswith(b"\n")
        if alone and _ODD.search(message, 0, match.start(1) - len("Batch-Id: ")) is None:
            batch, task, plan, record = (part.decode("ascii") for part in match.groups())
            return Claim(batch, task, plan, Oid(record)), True
    found = trailers.ours(message) or {}
    keys = (trailers.BATCH_ID, trailers.TASK, trailers.PLAN, trailers.RECORD)
    batch, task, plan, record = (found.get(key, "") for key in keys)
    if batch and task and _SHA256.match(plan) and OID.match(record):
        return Claim(batch, task, plan, Oid(record)), False
    return None, False


def pretends(message: bytes) -> bool:
    """Tell whether some line of a message could pass for a trailer of ours."""
    return _OURS.search(message) is not None


def settled(message: bytes) -> Settled | None:
    """Read a `settled` event's commit message; None if it is not one in the usual form."""
    match = _SETTLED.match(message)
    if match is None or b"\nBatch-Event: settled\n" not in message:
        return None
    try:
        text: str = _STRING.decode(match[4].decode("utf-8"))
    except ValueError:
        return None
    if text.startswith('"'):  # quoted by the codec, since it is not UTF-8
        return None
    task, tree, parent = (match[i].decode("ascii", "replace") for i in (1, 2, 3))
    return Settled(task, Oid(tree), Oid(parent), text.encode("utf-8", "surrogatepass"))


def rendered(event: Oid, decided: Settled) -> bytes:
    """Give the whole message that the commit of a `settled` event has."""
    line = f"{trailers.RECORD}: {event}\n".encode()
    if decided.message.endswith(b"\n"):
        return decided.message + line
    return trailers.with_trailers(decided.message, [(trailers.RECORD, event)])


def undo_of(message: bytes) -> str | None:
    """Name the task that a commit says it takes back."""
    found = trailers.ours(message) if b"Batch-Undo" in message else None
    return found.get(trailers.UNDO) if found else None
