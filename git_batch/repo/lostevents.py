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
from git_batch.repo.lostfiles import set_aside
from git_batch.repo.objects import AbsentError, DamagedError, ObjectReader, seen_of
from git_batch.repo.recordread import read_at
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
        aside = set_aside(repo, os.path.join(repo.layout.common_dir, name))
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
    repo: Repository, batch: BatchId, needed: Oid | None, named: Iterable[Oid], *, search: bool
) -> Oid | None:
    """Choose the newest readable event of a batch whose chain has a certain event.

    A chain that is all here goes before one that has lost its beginning.

    Args:
        needed: the event that the branch's newest task names; None if it has no task.
        named: commits that a record's ref was at, as far as anything tells.
        search: look at every commit in the object store as well (seconds, in a large one).
    """
    with ObjectReader(repo.git) as reader:
        pool = {*named, *([needed] if needed else [])}
        if search:
            pool.update(_all_commits(repo.git))
        steps = dict(_steps(reader, pool))
        least = steps.get(needed, 0) if needed else 0
        newest_first = sorted((o for o in steps if steps[o] >= least), key=lambda o: -steps[o])
        for holds in (_holds, _leads_to):
            for oid in newest_first:
                if holds(reader, oid, needed) and _is_of(repo, oid, batch):
                    return oid
    return None


def gap(repo: Repository, tip: Oid) -> Oid | None:
    """Name the newest commit of a chain that is not here; None if all of it is."""
    with ObjectReader(repo.git) as reader:
        return next((oid for oid, is_here in _line(reader, tip) if not is_here), None)


def _all_commits(git: Git) -> Iterator[Oid]:
    form = "--batch-check=%(objecttype) %(objectname)"
    out = git.run(["cat-file", "--batch-all-objects", "--unordered", form])
    for line in out.split(b"\n"):
        if line.startswith(b"commit "):
            yield Oid(line[7:].decode("ascii"))


def _steps(reader: ObjectReader, pool: Iterable[Oid]) -> Iterator[tuple[Oid, int]]:
    """Number those commits that are events."""
    for name, found in reader.many(pool, pass_damaged=True):
        if found is not None and found.kind == b"commit":
            message = seen_of(Oid(name), found).message
            match = _STEP.search(message) if is_event(message) else None
            if match is not None:
                yield Oid(name), int(match[1])


def _holds(reader: ObjectReader, tip: Oid, event: Oid | None) -> bool:
    """Tell whether a chain that is all here has an event."""
    try:
        return any(event in (None, commit.oid) for commit in reader.chain(tip, None))
    except (AbsentError, DamagedError):
        return False


def _leads_to(reader: ObjectReader, tip: Oid, event: Oid | None) -> bool:
    """Tell whether an event is on what is here of a chain; without one, its newest will do."""
    return any(is_here and event in (None, oid) for oid, is_here in _line(reader, tip))


def _line(reader: ObjectReader, tip: Oid) -> Iterator[tuple[Oid, bool]]:
    """Go down a chain, to the first commit that is not here or is damaged, that one included."""
    oid: Oid | None = tip
    while oid is not None:
        try:
            parents = reader.commit(oid).parents
        except (AbsentError, DamagedError):
            yield oid, False
            return
        yield oid, True
        oid = parents[0] if parents else None


def _is_of(repo: Repository, tip: Oid, batch: BatchId) -> bool:
    try:
        return read_at(repo, tip)[2].batch_id == batch
    except (RecordError, GitError):
        return False
