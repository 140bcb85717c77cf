"""Batches of any size with branch and record, made without running a command.

Each task goes through the same events as in a run, written by the same journal; only the working
tree is left out. So what is measured on it is what a run of that length leaves behind.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from git_batch.core import canonical, trailers
from git_batch.core import events as ev
from git_batch.core.attempt import CheckResult, LogRef, Usage
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import Actor, Authorization, Plan, Task
from git_batch.repo import commits
from git_batch.repo.journal import Journal
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from git_batch.repo.treewrite import write_paths

WHO = commits.Idents(Actor("T", "t@example.com"), Actor("T", "t@example.com"))
BATCH = BatchId("bench-abc123")
BRANCH = "batch/bench"
FOLDERS = 100
BEGAN = datetime(2025, 1, 1, tzinfo=UTC)


def lineage(place: Path, tasks: int) -> None:
    """Put a completed batch of so many tasks into a repository: its branch and its record."""
    repo = Repository.open(os.fspath(place))
    refs = Refs(repo)
    _, base = repo.head()
    plan = Plan("bench", "Benchmark", tuple(_task(i) for i in range(tasks)))
    journal = Journal.create(repo, refs, plan, who=WHO, runner="host/bench")
    digest = canonical.digest(canonical.to_toml(plan))
    journal.append(ev.Created(BEGAN, BATCH, plan.slug, plan.title, BRANCH, base, digest))
    granted = Authorization(1, WHO.author, BEGAN, digest, BRANCH, base, "nonce")
    journal.append(ev.Authorized(BEGAN, granted))
    tip = base
    for i, task in enumerate(plan.tasks):
        tip = _commit(repo, journal, task.id, i, tip, digest)
    refs.swap(f"refs/heads/{BRANCH}", None, tip, "bench")
    journal.publish()


def _task(i: int) -> Task:
    folder = f"d{i % FOLDERS}"
    return Task(TaskId(f"t{i}"), f"Task {i}", (f"{folder}/**",), "true", checks=("true",))


def _commit(repo: Repository, journal: Journal, task: TaskId, i: int, tip: Oid, digest: str) -> Oid:
    at = BEGAN + timedelta(seconds=i)
    tree = _tree(repo, tip, i)
    path = (_path(i).encode(),)
    journal.append(ev.Enrolled(at, task, 1, tip, "host/bench"))
    journal.append(ev.Ran(at, task, 1, tree, path, 1, None, Usage(), b""))
    unique = hashlib.sha256(task.encode()).hexdigest()
    passed = CheckResult("true", "passed", 0, 0.005, tree, unique[:32])
    journal.append(ev.ChecksPassed(at, task, 1, (passed,), LogRef(73, unique)))
    message = trailers.with_trailers(
        trailers.compose(f"Task {i}", ""),
        [(trailers.BATCH_ID, BATCH), (trailers.TASK, task), (trailers.PLAN, digest)],
    )
    state = journal.append(ev.Settled(at, task, 1, tree, tip, message, path, 1))
    assert state.in_flight
    assert state.in_flight.settled
    whole = trailers.with_trailers(message, [(trailers.RECORD, state.in_flight.settled)])
    made = commits.make(repo, tree=tree, parents=[tip], message=whole, who=WHO, at=at)
    journal.append(ev.Committed(at, task, made))
    return made


def _path(i: int) -> str:
    return f"d{i % FOLDERS}/t{i}"


def _tree(repo: Repository, tip: Oid, i: int) -> Oid:
    return write_paths(repo, repo.tree_of(tip), {_path(i): f"{i}\n".encode()})
