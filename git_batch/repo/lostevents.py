"""Finding the events of a record whose ref is gone, behind, or can't be read.

git keeps objects that nothing names for two weeks. The log of a notes ref goes with the ref when
git deletes it, but stays when the ref's file was cut off by a crash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from git_batch.core.chain import is_event
from git_batch.core.ids import BatchId, Oid
from git_batch.errors import GitError, RecordError
from git_batch.repo.git import Git
from git_batch.repo.journal import read_at
from git_batch.repo.objects import AbsentError, ObjectReader, seen_of
from git_batch.repo.refs import BrokenRefError, Refs
from git_batch.repo.repository import Repository

_LOG_LINE = re.compile(rb"[0-9a-f]{40} ([0-9a-f]{40}) ")
_STEP = re.compile(rb"\nBatch-Event: [a-z_]+\nBatch-Step: ([0-9]{1,9})\n")


def readable_ref(repo: Repository, refs: Refs, name: str) -> tuple[Oid | None, str | None]:
    """Read a ref; one whose file holds no id is put aside.

    Returns:
        What the ref is at, and where its file was put.
    """
    try:
        return refs.read(name), None
    except BrokenRefError:
        path = os.path.join(repo.layout.common_dir, name)
        folder = os.path.join(repo.layout.common_dir, "batch", "unreadable")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        aside = next(
            place
            for n in range(1, 10_000)
            if not os.path.lexists(place := os.path.join(folder, f"{os.path.basename(name)}.{n}"))
        )
        os.rename(path, aside)
        return refs.read(name), aside


def logged(repo: Repository, name: str) -> list[Oid]:
    """List what the log of a ref says it was at, the newest first."""
    path = os.path.join(repo.layout.common_dir, "logs", name)
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    found = (_LOG_LINE.match(line) for line in reversed(lines))
    return list(dict.fromkeys(Oid(match[1].decode()) for match in found if match))


def newest(
    repo: Repository, batch: BatchId, needed: Oid, named: Iterable[Oid], *, search: bool
) -> Oid | None:
    """Choose the newest readable event of a batch whose chain has a certain event.

    Args:
        needed: the event that the branch's newest task names.
        named: commits that a record's ref was at, as far as anything tells.
        search: look at every commit in the object store as well (seconds, in a large one).
    """
    with ObjectReader(repo.git) as reader:
        pool = {*named, needed}
        if search:
            pool.update(_all_commits(repo.git))
        steps = dict(_steps(reader, pool))
        for oid in sorted(steps, key=lambda o: -steps[o]):
            if steps[oid] < steps.get(needed, 0):
                break
            if _holds(reader, oid, needed) and _is_of(repo, oid, batch):
                return oid
    return None


def _all_commits(git: Git) -> Iterator[Oid]:
    form = "--batch-check=%(objecttype) %(objectname)"
    out = git.run(["cat-file", "--batch-all-objects", "--unordered", form])
    for line in out.split(b"\n"):
        if line.startswith(b"commit "):
            yield Oid(line[7:].decode("ascii"))


def _steps(reader: ObjectReader, pool: Iterable[Oid]) -> Iterator[tuple[Oid, int]]:
    """Number those commits that are events."""
    for name, found in reader.many(pool):
        if found is not None and found.kind == b"commit":
            message = seen_of(Oid(name), found).message
            match = _STEP.search(message) if is_event(message) else None
            if match is not None:
                yield Oid(name), int(match[1])


def _holds(reader: ObjectReader, tip: Oid, event: Oid) -> bool:
    """Tell whether a chain that is all here has an event."""
    try:
        return any(commit.oid == event for commit in reader.chain(tip, None))
    except AbsentError:
        return False


def _is_of(repo: Repository, tip: Oid, batch: BatchId) -> bool:
    try:
        return read_at(repo, tip)[2].batch_id == batch
    except (RecordError, GitError, KeyError):
        return False
