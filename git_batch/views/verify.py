"""A verdict in words, or as JSON. "Can't tell" never reads as "ok"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from git_batch.core.lineage import Drift, Verdict
from git_batch.core.naming import few_of
from git_batch.views.common import VERSION, counted
from git_batch.views.escape import MORE, one_line

SHOWN = 20
"""Drifts that the text shows; the JSON has them all."""

UNCHECKED = (
    "that each commit is the one that was recorded (tree, parent, message, date)",
    "scopes, and the plan that was in force",
    "commits without trailers: whether they are blessed",
    "checks, reviews and who confirmed the batch",
)
"""What trailers alone can't prove."""


def verify_text(
    found: Verdict, *, what: str, record: str | None, trailers_only: bool, hints: Sequence[str] = ()
) -> str:
    """Say a verdict for people: `ok` first, or each drift by its name."""
    lines = _head(found, what, record, trailers_only)
    for drift in found.drifts[:SHOWN]:
        lines += ["", *_drift(drift)]
    if len(found.drifts) > SHOWN:
        lines += ["", f"{MORE} and {len(found.drifts) - SHOWN} more: git batch verify --json"]
    if found.status == "unknown" and found.batch is not None:
        lines += ["", "not checked, since only the record could tell:"]
        lines += [f"    {text}" for text in UNCHECKED]
    if hints:
        lines += ["", *(f"    {hint}" for hint in hints)]
    return "\n".join(lines)


def _head(found: Verdict, what: str, record: str | None, trailers_only: bool) -> list[str]:
    name = f"'{one_line(what)}'"
    of = f" of batch '{found.batch}'" if found.batch else ""
    if found.status == "drift":
        many = "drift" if len(found.drifts) == 1 else f"{len(found.drifts)} drifts"
        return (
            [f"{many}: {name} is not what the record{of} says"]
            if found.certified
            else [f"{many}: the trailers on {name} contradict themselves"]
        )
    if found.status == "whole":
        lines = [f"ok: {name} is what the record{of} says ({_count(found)})"]
        if found.reason:
            lines.append(f"not proven: {one_line(found.reason)}")
        if record is not None and not record.startswith("refs/notes/"):
            lines.append(f"compared with the copy '{one_line(record)}'")
        return lines
    if trailers_only and found.batch is not None:
        return [f"the trailers on {name} agree with each other{of} ({_count(found)})"]
    return [f"can't tell whether {name} is whole: {one_line(found.reason)}"]


def _count(found: Verdict) -> str:
    """Count tasks that have a commit, the commits that were theirs, and all the others."""
    said = [counted(found.tasks, "task")]
    if found.undone:
        were = "was" if found.undone == 1 else "were"
        said.append(f"{counted(found.undone, 'commit')} that {were} undone")
    others = found.commits - found.tasks - found.undone
    if others:
        said.append("one other commit" if others == 1 else f"{others} other commits")
    return ", ".join(said)


def _drift(drift: Drift) -> list[str]:
    lines = [f"{one_line(drift.kind)}: {one_line(drift.detail)}"]
    return [*lines, *(f"    {one_line(way)}" for way in drift.ways)]


def verify_json(
    found: Verdict, *, what: str, tip: str | None, record: str | None, trailers_only: bool
) -> dict[str, Any]:
    """Say a verdict for programs."""
    return {
        "version": VERSION,
        "batch_id": found.batch,
        "what": what,
        "tip": tip,
        "record": record,
        "status": found.status,
        "certified": found.certified,
        "trailers_only": trailers_only,
        "state": found.batch_status,
        "commits": found.commits,
        "tasks": found.tasks,
        "undone": found.undone,
        "reason": found.reason,
        "unchecked": [] if found.certified else list(UNCHECKED),
        "drift": [
            {
                "kind": d.kind,
                "detail": d.detail,
                "commit": d.commit,
                "way_out": d.way_out,
                "look": d.look or None,
            }
            for d in found.drifts
        ],
    }


class Unrecorded(Protocol):
    """A batch that is known from its commits only."""

    @property
    def batch(self) -> str:
        """Its id."""

    @property
    def branch(self) -> str:
        """Where its commits are."""

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks that they name."""

    @property
    def way(self) -> str:
        """The command that gets the record."""


def unrecorded_text(left: Unrecorded) -> str:
    """Say that a batch's state is not here, and what its commits tell nevertheless."""
    shown = few_of([one_line(task) for task in left.tasks], SHOWN)
    return "\n".join(
        [
            f"the state of batch '{one_line(left.batch)}' is not fetched: its record is not here",
            f"by the trailers on '{one_line(left.branch)}', done: {shown or 'nothing'}",
            f"get it: {one_line(left.way)}",
        ]
    )


def unrecorded_json(left: Unrecorded | None) -> dict[str, Any]:
    """Say the same to programs; without any batch the id is null."""
    if left is None:
        return {"version": VERSION, "batch_id": None}
    return {
        "version": VERSION,
        "batch_id": left.batch,
        "branch": left.branch,
        "state": None,
        "reason": "the record is not here",
        "next_action": left.way,
        "tasks": [{"id": task, "state": "committed"} for task in left.tasks],
    }
