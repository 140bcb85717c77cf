"""The record's codec: events and state to commit messages, header and notes, and back.

Where they are stored is `repo.journal`'s business; this module only knows bytes (storage.md, The
record). An event's message is a subject for people, a TOML body with its facts, and trailers that
other tools can filter by. Every body also repeats the running totals and the task in flight, so
the newest event alone says where a batch stands, whatever its length (`reading`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import tomli_w

from git_batch.core import agenda as agendas
from git_batch.core import events as ev
from git_batch.core import reading, trailers
from git_batch.core.agenda import counts
from git_batch.core.codec import decode, encode
from git_batch.core.entries import Entry, Note, Receipt
from git_batch.core.graph import Graph
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, TaskRecord
from git_batch.core.naming import few_of
from git_batch.core.standing import says_more
from git_batch.core.tip import Header, Tip, Totals
from git_batch.errors import RecordError

T = TypeVar("T")

NAMED = 20
"""How many ids that need a person an event lists; the total is always said."""

_FAILED = "failed"
_BY_KIND: dict[tuple[str, str], type[Any]] = {
    (kind, _FAILED if event in (ev.AttemptFailed, ev.ChecksFailed) else ""): event
    for event, kind in ev.KINDS.items()
}


def render(event: ev.Event, state: BatchState, graph: Graph, step: int, runner: str) -> bytes:
    """Write an event's commit message; `state` is what it led to."""
    parked = [graph.ids[i] for i in agendas.members(state.agenda.parked | state.agenda.review)]
    listed = isinstance(event, ev.Parked | ev.Closed)
    totals = Totals(
        head=state.head,
        status=state.status,
        updated_at=state.updated_at,
        counts={status.value: n for status, n in counts(state).items() if n},
        stop=state.stop,
        reason=state.reason,
        next_action=state.next_action,
        enrolled=state.enrolled,
        consecutive_failures=state.consecutive_failures,
        fresh_parks=state.fresh_parks,
        halted=state.halted,
        stop_requested=state.stop_requested,
        usage=state.usage,
        needs=tuple(parked[:NAMED]) if listed else (),
        needs_total=len(parked),
    )
    body = {"event": encode(event), "totals": encode(totals)}
    if state.in_flight is not None:
        body["in_flight"] = encode(state.in_flight)
    first = " ".join(subject(event).split())  # a name from git's configuration may hold anything
    text = f"{first}\n\n{tomli_w.dumps(body).strip()}\n"
    return trailers.with_trailers(text.encode("utf-8"), _trailers(event, step, runner))


def _trailers(event: ev.Event, step: int, runner: str) -> list[tuple[str, str]]:
    pairs = [
        ("Batch-Format", str(reading.FORMAT)),
        ("Batch-Event", ev.KINDS[type(event)]),
        ("Batch-Step", str(step)),
    ]
    if isinstance(event, ev.AttemptFailed | ev.ChecksFailed):
        pairs.append(("Batch-Result", _FAILED))
    for key, name in (("Batch-Task", "task"), ("Batch-Attempt", "attempt")):
        if (value := getattr(event, name, None)) is not None:
            pairs.append((key, str(value)))
    if isinstance(event, ev.Settled):
        pairs += [("Batch-Parent", event.parent), ("Batch-Tree", event.tree)]
    pairs.append(("Batch-Runner", runner))
    return pairs


def subject(event: ev.Event) -> str:
    """Say an event in one line for people."""
    match event:
        case ev.Created():
            return f"created {event.batch_id}"
        case ev.Authorized():
            a = event.authorization
            return f"authorized by {a.actor.name} ({a.seq})"
        case ev.StopRequested():
            return f"stop requested by {event.actor.name}"
        case ev.Decided():
            named = few_of(event.tasks) or "batch"
            return f"{named}: {event.decision} decided by {event.actor.name}"
        case ev.Closed():
            why = f" ({event.stop})" if says_more(event.status, event.stop) else ""
            return f"closed: {event.status}{why}"
        case ev.AttemptFailed() | ev.ChecksFailed():
            return f"{event.task}: attempt {event.attempt} failed ({event.failure.outcome})"
        case ev.Parked():
            return f"{event.task}: parked ({event.failure.outcome})"
        case ev.Reviewed():
            return f"{event.task}: review says {event.verdict}"
    return f"{event.task}: {_PHRASES[type(event)]}"


_PHRASES: dict[type[Any], str] = {
    ev.Enrolled: "enrolled",
    ev.AttemptStarted: "next attempt started",
    ev.Ran: "command done",
    ev.ChecksPassed: "checks passed",
    ev.Reworked: "work kept, tried again",
    ev.Interrupted: "interrupted",
    ev.ReviewRequested: "review requested",
    ev.Settled: "settled",
    ev.Committed: "committed",
    ev.BecameUnchanged: "unchanged",
}


def parse(message: bytes) -> Entry:
    """Read an event's commit message.

    Raises:
        RecordError: it is not whole, or was written by a newer git-batch.
    """
    values, table = reading.event_tables(message)
    kind = _BY_KIND.get((values["Batch-Event"], values.get("Batch-Result", "")))
    if kind is None:
        raise RecordError("an event of the record can't be read: its trailers are not whole")
    event = reading.decoded(lambda: decode(kind, table["event"]))
    return reading.decoded(lambda: Entry(event=event, **reading.repeated(values, table)))


def keeps(event: ev.Event) -> tuple[Oid, ...]:
    """Name the commits that an event keeps alive, whatever becomes of the branch."""
    match event:
        case ev.Committed():
            return (event.commit,)
        case ev.Authorized() if event.authorization.seq == 1:
            return (event.authorization.base,)
        case ev.Decided(decision=ev.Decision.REBASE):  # the line that it left, and the new base
            return tuple(oid for oid in (event.former, event.head) if oid is not None)
        case ev.Decided():
            return event.commits[-1:]
    return ()


def header(state: BatchState) -> bytes:
    """Write the header, which is also the base commit's note."""
    made = Header(
        format=reading.FORMAT,
        batch_id=state.batch_id,
        slug=state.slug,
        title=state.title,
        branch=state.branch,
        base=state.base,
        created_at=state.created_at,
        plan_digest=state.plan_digest,
        status=state.status,
        authorization=state.authorization,
        stop=state.stop,
        reason=state.reason,
        next_action=state.next_action,
        foreign=state.foreign,
        former=state.former,
    )
    return tomli_w.dumps(encode(made)).encode("utf-8")


def note(task: TaskId, record: TaskRecord) -> bytes:
    """Write a task's note."""
    return tomli_w.dumps(encode(Note(task, record))).encode("utf-8")


def receipt(state: BatchState, task: TaskId) -> bytes:
    """Write the receipt for a task's commit."""
    record = state.tasks[task]
    last = record.history[-1]
    assert record.commit is not None
    made = Receipt(
        batch=state.batch_id,
        task=task,
        certifies=record.commit,
        tree=record.tree,
        attempts=len(record.history),
        checks=last.checks,
        log=last.log,
        replays=record.replays,
    )
    return tomli_w.dumps(encode(made)).encode("utf-8")


def parse_note(blob: bytes) -> Note:
    """Read a task's note; RecordError says what is wrong with it."""
    return _read(Note, blob, "a task's note")


def parse_receipt(blob: bytes) -> Receipt:
    """Read a receipt; RecordError says what is wrong with it."""
    return _read(Receipt, blob, "a receipt")


def _read(kind: type[T], blob: bytes, what: str) -> T:
    table = reading.toml(blob, what)
    return reading.decoded(lambda: decode(kind, table), what)


def restore(
    entry: Tip, head: Header, tasks: Mapping[TaskId, TaskRecord], graph: Graph
) -> BatchState:
    """Build the state of the newest event; a test proves that it equals the replay of all.

    Raises:
        RecordError: the parts contradict each other.
    """
    flight, totals = entry.in_flight, entry.totals
    _all_planned((*tasks, *([flight.task] if flight else [])), graph)
    state = BatchState(
        batch_id=head.batch_id,
        slug=head.slug,
        title=head.title,
        branch=head.branch,
        base=head.base,
        plan_digest=head.plan_digest,
        head=totals.head,
        created_at=head.created_at,
        updated_at=totals.updated_at,
        agenda=agendas.build(graph, tasks, flight.task if flight else None),
        status=totals.status,
        stop=totals.stop,
        reason=totals.reason,
        next_action=totals.next_action,
        authorization=head.authorization,
        enrolled=totals.enrolled,
        consecutive_failures=totals.consecutive_failures,
        fresh_parks=totals.fresh_parks,
        halted=totals.halted,
        stop_requested=totals.stop_requested,
        usage=totals.usage,
        in_flight=flight,
        tasks=dict(tasks),
        foreign=head.foreign,
        former=head.former,
    )
    if {s.value: n for s, n in counts(state).items() if n} != dict(totals.counts):
        raise RecordError("the record's notes and its newest event count the tasks differently")
    return state


def _all_planned(tasks: Iterable[TaskId], graph: Graph) -> None:
    """Refuse a record of tasks that its plan does not have."""
    for task in tasks:
        if task not in graph.index:
            raise RecordError(f"the record names '{task}', which its plan does not have")
