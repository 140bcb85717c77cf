"""What a record says of its branch (`core.lineage.Ledger`), read through git processes alone.

Read at the newest event of ours, as everywhere; a person's `git notes edit` on top of it is no
event. Only what a verdict needs is read, and only as much of it as is asked for: the receipts are
looked up in the folders of the notes tree that have one of the commits asked for, and the chain of
events is walked only where a decision is to be found in it, or for the audit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from git_batch.core.chain import is_event, newest_event
from git_batch.core.claims import Seen, Settled, settled
from git_batch.core.ids import OID, BatchId, Oid, TaskId
from git_batch.core.kinds import TREE_CHANGING
from git_batch.core.lineage import NOT_IN_FORCE, RECORD_CHANGED, Drift, Ledger
from git_batch.core.standing import BatchStatus
from git_batch.core.toml import loads
from git_batch.core.values import replace
from git_batch.errors import RecordError
from git_batch.repo.objects import AbsentError, Object, ObjectReader, entries

_FORMAT = b"\nBatch-Format: 1\nBatch-Event: "
_KIND = re.compile(rb"\nBatch-Format: 1\nBatch-Event: ([a-z_]+)\nBatch-Step: ([0-9]{1,9})\n")
_DIGEST = re.compile(rb'\nplan_digest = "(sha256:[0-9a-f]{64})"\n')


class Book(Struct, frozen=True):
    """An open record: its ledger, and where to look further.

    Attributes:
        event: our newest event.
        steps: how many events there are.
    """

    ledger: Ledger
    event: Oid
    steps: int


def read_book(reader: ObjectReader, tip: Oid) -> Book:
    """Read the record that a ref is at; its receipts are not looked up yet.

    Raises:
        AbsentError: a part of it is not here.
        RecordError: it can't be read, or contradicts itself.
    """
    commit = event_at(reader, tip)
    header = _toml(reader.blob(f"{commit.oid}:batch.toml"))
    body = _toml(commit.message.partition(b"\n\n")[2].rpartition(b"\n\n")[0])
    kind = _KIND.search(commit.message)
    try:
        ledger = Ledger(
            batch=BatchId(header["batch_id"]),
            branch=str(header["branch"]),
            base=_oid(header["base"]),
            head=_oid(body["totals"]["head"]),
            plan=str(header["plan_digest"]),
            status=BatchStatus(body["totals"]["status"]),
            receipts=frozenset(),
            foreign=frozenset(map(_oid, header.get("foreign", ()))),
            former=tuple(_oid(line["head"]) for line in header.get("former", ())),
            signed=header.get("authorization", {}).get("signed") is True,
            pending=_pending(reader, commit, body.get("in_flight")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"the record (at {tip[:12]}) can't be read: {error}") from None
    return Book(ledger, commit.oid, int(kind[2]) if kind else 0)


def event_at(reader: ObjectReader, tip: Oid) -> Seen:
    """Find our newest event below a record's tip, if it is in the format that is read here.

    Raises:
        AbsentError: a commit is not here.
        RecordError: there is none, or a later version wrote it.
    """
    commit = newest_event(reader.commit, tip)
    if _FORMAT not in commit.message:
        _refuse(commit.message)
    return commit


def _refuse(message: bytes) -> None:
    """Say why an event is not one that this version reads."""
    from git_batch.core import record

    record.parse(message)


def _oid(value: Any) -> Oid:
    if not (isinstance(value, str) and OID.match(value)):
        raise ValueError(f"{value!r} is no object id")
    return Oid(value)


def _toml(text: bytes) -> dict[str, Any]:
    try:
        return loads(text.decode("utf-8"))
    except ValueError as error:  # that it is not UTF-8 is one
        raise RecordError(f"a part of the record is not TOML: {error}") from None


def _pending(
    reader: ObjectReader, newest: Seen, flight: Mapping[str, Any] | None
) -> tuple[Oid, Settled] | None:
    """Read the decided commit of the task in flight."""
    if not flight or flight.get("phase") != "settled":
        return None
    event = _oid(flight.get("settled") or newest.oid)
    decided = read_settled(newest if event == newest.oid else reader.commit(event))
    return None if decided is None else (event, decided)


def read_settled(commit: Seen) -> Settled | None:
    """Read a `settled` event; None for any other commit."""
    found = settled(commit.message)
    if found is not None or b"\nBatch-Event: settled\n" not in commit.message:
        return found
    from git_batch.core import events, record

    try:
        event = record.parse(commit.message).event
    except RecordError:
        return None
    if not isinstance(event, events.Settled):
        return None
    return Settled(event.task, event.tree, event.parent, event.message)


def with_receipts(reader: ObjectReader, book: Book, commits: Iterable[Oid]) -> Ledger:
    """Look up which of some commits the record certifies.

    Raises:
        AbsentError: a part of the record is not here.
    """
    root = reader.find(f"{book.event}^{{tree}}")
    if root is None:
        raise AbsentError(f"the tree of {book.event} is not in this repository")
    folders = {name: Oid(oid.hex()) for _, name, oid in entries(root.data) if len(name) == 2}
    wanted: dict[bytes, list[Oid]] = {}
    for commit in commits:
        wanted.setdefault(commit[:2].encode(), []).append(commit)
    names = [n for n in wanted if n in folders]
    found: set[Oid] = set()
    for name, (_, tree) in zip(names, reader.many(folders[n] for n in names), strict=True):
        if tree is None:
            raise AbsentError(f"the tree {folders[name]} of the record is not in this repository")
        # An entry is `<mode> <name>\0<20 bytes>`: the name can't be met anywhere else.
        found.update(c for c in wanted[name] if b" %s\0" % c[2:].encode() in tree.data)
    found.discard(book.ledger.base)  # its note is the header
    return replace(book.ledger, receipts=frozenset(found))


def decisions(reader: ObjectReader, book: Book) -> Ledger:
    """Add the commits of undos and recoveries, which only the chain of events names.

    Raises:
        RecordError: a decision can't be read.
    """
    from git_batch.core import events, record

    undone: dict[Oid, tuple[TaskId, ...]] = {}
    rebuilt: set[Oid] = set()
    for event in reader.chain(book.event, None):
        if b"\nBatch-Event: decided\n" not in event.message:
            continue
        made = record.parse(event.message).event
        assert isinstance(made, events.Decided)
        if made.decision in (events.Decision.UNDO, events.Decision.REDO):
            undone.update((c, (t,)) for c, t in zip(made.commits, made.tasks, strict=False))
        elif made.decision is events.Decision.RECOVER:
            rebuilt.update(made.commits)
    return replace(book.ledger, undone=undone, rebuilt=rebuilt)


def audit(reader: ObjectReader, book: Book) -> tuple[set[Oid], list[Drift]]:
    """Walk the chain of events: each may change only what its kind may change.

    What a person's `git notes` put between two events is looked through.

    Returns:
        The events' ids, and what is wrong with them.
    """
    chain: set[Oid] = set()
    drifts: list[Drift] = []
    before, in_force = None, b""
    for event in reader.chain(book.event, None):
        if not is_event(event.message):
            continue
        chain.add(event.oid)
        match = _KIND.search(event.message)
        kind = match[1] if match else b"unreadable"
        if before not in (None, event.tree) and kind.decode() not in TREE_CHANGING:
            said = (
                f"the event {event.oid} ('{kind.decode()}') may not change the record's tree, "
                f"but has {event.tree} after {before}"
            )
            drifts.append(Drift(RECORD_CHANGED, said, event.oid, f"git show --stat {event.oid}"))
        before = event.tree
        if kind in (b"created", b"authorized"):
            named = _DIGEST.search(event.message)
            in_force = named[1] if named else in_force
        elif kind == b"settled" and b"\\nBatch-Plan: %s\\n" % in_force not in event.message:
            said = f"the event {event.oid} settled a task under a plan that was not in force"
            drifts.append(Drift(NOT_IN_FORCE, said, event.oid, f"git show -s {event.oid}"))
    return chain, drifts


def false_receipts(reader: ObjectReader, book: Book, commits: Iterable[Oid]) -> Iterator[Oid]:
    """Name the commits whose receipt certifies another commit.

    Raises:
        AbsentError: a receipt is not here, or is damaged.
    """
    names = {f"{book.event}:{c[:2]}/{c[2:]}": c for c in commits}
    answers = reader.many(names)
    false = [n for n, found in answers if found is None or not _certifies(found, names[n])]
    for name in false:
        reader.find(name)  # says it if one is damaged: that certifies nothing else
        yield names[name]


def _certifies(found: Object, commit: Oid) -> bool:
    return found.kind == b"blob" and b'\ncertifies = "%s"\n' % commit.encode() in found.data
