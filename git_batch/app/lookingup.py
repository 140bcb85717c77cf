"""The answer to `git batch find TASK` where one look gives it: nearly always.

It imports next to nothing, so that asking a record costs less than a walk over any history would.
Where more than one record knows the task, or none, `finding` has the answer.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from git_batch.core.ids import BATCH_ID, TASK_ID, BatchId, Oid, TaskId
from git_batch.core.standing import TaskStatus
from git_batch.repo.armed import is_suspect
from git_batch.repo.lookup import noted
from git_batch.repo.repository import Repository


class Found(Struct, frozen=True):
    """A task's commit, and who says so."""

    batch: BatchId
    task: TaskId
    commit: Oid
    source: Literal["record", "trailers"]


def at_once(text: str, start: str = ".") -> Found | None:
    """Find the commit of a task if exactly one record here knows it; None leaves it open."""
    batch, _, name = text.rpartition(":")
    if not TASK_ID.match(name) or (batch and not BATCH_ID.match(batch)):
        return None
    repo = Repository.open(start)
    if is_suspect(repo.layout):
        return None  # how git may be asked then is for a session to say
    answers = noted(repo.git, TaskId(name), BatchId(batch) if batch else None)
    if answers is None or len(answers) != 1 or answers[0].state != TaskStatus.COMMITTED:
        return None
    (one,) = answers
    return None if one.commit is None else Found(one.batch, TaskId(name), one.commit, "record")
