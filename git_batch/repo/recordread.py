"""A record as it stands: its newest event, the plan in force, the state of every task.

Reading costs the number of tasks, whatever the number of events. Nothing is written here, and
nothing is taken on trust: the plan has the digest that the header names, and the notes count the
tasks as the newest event does.
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.core import canonical, reading, record
from git_batch.core.chain import newest_event, reading_of, ref_name
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.machine import Machine
from git_batch.core.model import BatchState, Plan, TaskRecord
from git_batch.core.tip import Tip
from git_batch.errors import RecordError
from git_batch.repo import commits
from git_batch.repo.notestree import NotesTree
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository


class Newest(Struct, frozen=True):
    """Where a record stands: its ref's commit, and our newest event on its first-parent chain."""

    ref_tip: Oid
    oid: Oid
    tree: Oid
    tip: Tip


def read(repo: Repository, refs: Refs, batch: BatchId) -> tuple[Newest, Plan, BatchState]:
    """Read where a batch stands, with its plan: O(tasks), whatever the number of events.

    Raises:
        RecordError: the record is missing, unreadable, or contradicts itself.
    """
    with reading_of(batch):
        tip = refs.read(ref_name(batch))
    if tip is None:
        raise RecordError(f"there is no record of batch '{batch}' here")
    with reading_of(batch):
        return read_at(repo, tip, batch)


def read_at(
    repo: Repository, tip: Oid, batch: BatchId | None = None
) -> tuple[Newest, Plan, BatchState]:
    """Read a record that no ref may name, as `read` does.

    Args:
        batch: whose record it is, where that is known.

    Raises:
        RecordError: it is unreadable, or contradicts itself.
    """
    event = newest_event(lambda oid: commits.read(repo, oid), tip)
    at = Newest(tip, event.oid, event.tree, reading.parse_tip(event))
    tree = NotesTree(repo, at.tree)
    head = reading.parse_header(tree.blob("batch.toml"), batch)
    toml, intents = tree.plan()
    if canonical.digest(toml) != head.plan_digest:
        raise RecordError(f"the plan in the record of '{head.batch_id}' is not the one it names")
    plan = canonical.from_toml(toml, intents)
    tasks = _tasks(tree, plan)
    return at, plan, record.restore(at.tip, head, tasks, Machine(plan).graph)


def _tasks(tree: NotesTree, plan: Plan) -> dict[TaskId, TaskRecord]:
    records: dict[TaskId, TaskRecord] = {}
    for task, blob in tree.task_notes():
        note = record.parse_note(blob)
        if note.task != task:
            raise RecordError(f"the note of '{task}' speaks of '{note.task}'")
        records[task] = note.record
    return {t.id: records[t.id] for t in plan.tasks if t.id in records}
