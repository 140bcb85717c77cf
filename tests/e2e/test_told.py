"""What is told is on disk: a power cut right after the line takes nothing back."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_batch.cli.output import Printer
from git_batch.core import events as ev
from git_batch.core.model import BatchState
from git_batch.repo import durability
from tests.conftest import git
from tests.e2e.job import task, write
from tests.e2e.near import near, record


class Disk:
    """Which refs were on disk whenever something was told of a task's end.

    Attributes:
        told: each end that was told: the task, and the refs as the last barrier found them.
    """

    def __init__(self, top: Path) -> None:
        self.told: list[tuple[str, dict[str, str]]] = []
        self._top = top
        self._refs: dict[str, str] = {}

    def sync(self) -> None:
        """Note where the refs are."""
        lines = git(self._top, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        self._refs = dict(line.split(" ") for line in lines)

    def tell(self, event: ev.Event) -> None:
        """Note what was on disk when an event was told."""
        if isinstance(event, ev.Committed | ev.BecameUnchanged | ev.Parked):
            self.told.append((event.task, self._refs))


@pytest.fixture
def disk(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Watch the barriers of a run and what it tells."""
    seen = Disk(repo)
    barrier, tell = durability.barrier, Printer.event

    def synced(directory: str) -> None:
        barrier(directory)
        seen.sync()

    def told(self: Printer, event: ev.Event, state: BatchState) -> None:
        seen.tell(event)
        tell(self, event, state)

    monkeypatch.setattr(durability, "barrier", synced)
    monkeypatch.setattr(Printer, "event", told)
    return seen


@pytest.mark.parametrize("hook", [False, True], ids=["", "post-commit"])
def test_a_commit_that_was_told_was_not_on_disk_yet(repo: Path, disk: Disk, hook: bool) -> None:
    if hook:
        place = repo / ".git/hooks/post-commit"
        place.parent.mkdir(exist_ok=True)
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
    write(
        repo,
        task("one", "echo 1 >src/1"),
        task("two", "true", 'on_empty = "accept"'),
        task("three", "false", "attempts = 1"),
        task("four", "echo 4 >src/4"),
    )
    near(repo, "start", "--yes", status=1)
    assert [name for name, _ in disk.told] == ["one", "two", "three", "four"]
    for name, refs in disk.told:
        ends = git(repo, "log", "--first-parent", "--format=%s", refs[record(repo)]).splitlines()
        kinds = ("committed", "unchanged", "parked (run_failed)")
        assert {f"{name}: {kind}" for kind in kinds} & set(ends), "the record is on disk"
    for name, refs in (disk.told[0], disk.told[3]):
        assert git(repo, "log", "-1", "--format=%s", refs["refs/heads/batch/demo"]) == f"Do {name}"
