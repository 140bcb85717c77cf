"""Power cuts: whatever the disk was at any moment of a run, it has all that was told until then.

A run works on a file system that lies in a file. That file is copied whenever something was put on
disk or told: what is only in the memory of the machine is not in the copy, as after a power cut.
Each copy is mounted, which plays its journal back, looked at, and the batch is resumed on it.

Nothing of it happens where no such file can be mounted: that takes root, and a loop device.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_batch.cli.output import Printer
from git_batch.core import events as ev
from git_batch.core.model import BatchState
from git_batch.repo import durability, emptied
from tests.conftest import git
from tests.e2e.job import BRANCH, committed, outcomes, task, write
from tests.e2e.near import near


@dataclass(frozen=True)
class Kind:
    """A file system to be tried.

    Attributes:
        size: of the file that holds it, in MiB; each has a least one.
        options: to mount it with; it is not to write by itself as long as a test takes.
    """

    make: str
    size: int
    options: str


KINDS = {
    "ext4": Kind("mkfs.ext4", 32, "commit=600"),
    # A file renamed over another does not wait for its content then.
    "ext4-noauto": Kind("mkfs.ext4", 32, "commit=600,noauto_da_alloc"),
    "xfs": Kind("mkfs.xfs", 320, "nouuid"),
    "btrfs": Kind("mkfs.btrfs", 128, "commit=600"),
}


@contextlib.contextmanager
def mounted(image: Path, place: Path, kind: Kind) -> Iterator[Path]:
    """Mount a file; what is not synced stays in memory for longer than a test takes."""
    place.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-o", f"loop,{kind.options}", image, place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no file can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@dataclass
class Cut:
    """The disk at a moment.

    Attributes:
        told: the ends of tasks that were told while it was as it is: the task and the event.
    """

    image: Path
    digest: str
    told: list[ev.Event]


class Power:
    """Copies the disk of a run; one copy for each state that it has had."""

    def __init__(self, image: Path) -> None:
        self.cuts: list[Cut] = []
        self._image = image
        self._told: list[ev.Event] = []

    def tell(self, event: ev.Event) -> None:
        """Note that an event was told, and what the disk is then."""
        self._told.append(event)
        self.cut()

    def cut(self) -> None:
        """Keep what is on disk now."""
        with self._image.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if self.cuts and self.cuts[-1].digest == digest:
            self.cuts[-1].told = list(self._told)
            return
        copy = self._image.with_name(f"cut{len(self.cuts)}")
        subprocess.run(["cp", "--sparse=always", self._image, copy], check=True)
        self.cuts.append(Cut(copy, digest, list(self._told)))


def made(place: Path, kind: Kind) -> Path:
    """Make a file with a file system in it; skipped where that can't be mounted."""
    if not sys.platform.startswith("linux") or os.geteuid() or not shutil.which(kind.make):
        pytest.skip(f"only root can mount, and there has to be {kind.make}")
    image = place / "disk"
    with image.open("wb") as file:
        file.truncate(kind.size << 20)
    subprocess.run([kind.make, "-q", image], check=True)
    return image


def cuts(image: Path, template: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> list[Cut]:
    """Run a batch on the disk; give what the disk was meanwhile, oldest first."""
    power = Power(image)
    barrier, tell = durability.barrier, Printer.event

    def synced(directory: str) -> None:
        power.cut()
        barrier(directory)
        power.cut()

    def told(self: Printer, event: ev.Event, state: BatchState) -> None:
        tell(self, event, state)
        power.tell(event)

    with mounted(image, image.with_name("mounted"), kind) as disk, monkeypatch.context() as patch:
        top = disk / "repo"
        shutil.copytree(template, top, symlinks=True)
        write(
            top,
            task("one", "echo 1 >src/1; echo x >>src/a", 'check = "true"'),
            task("two", "echo 2 >src/2; false", "attempts = 1"),
            task("three", "echo 3 >src/3; echo y >>src/a"),
            task("four", "true", 'on_empty = "accept"'),
        )
        os.sync()
        patch.setattr(durability, "barrier", synced)
        patch.setattr(Printer, "event", told)
        near(top, "start", "--yes", status=1)
    return power.cuts


def look(cut: Cut, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the machine on again: nothing that was told is missing, and resume gets to the end."""
    monkeypatch.setattr(emptied, "boot_id", lambda: cut.digest)
    with mounted(cut.image, cut.image.with_name("again"), kind) as disk:
        top = disk / "repo"
        pack = [
            "git",
            "pack-objects",
            "--all",
            "--quiet",
            "--stdout",
        ]  # reads all that refs lead to
        subprocess.run(pack, cwd=top, input=b"", stdout=subprocess.DEVNULL, check=True)
        refs = git(top, "for-each-ref", "--format=%(refname)").splitlines()
        branch = committed(top) if f"refs/heads/{BRANCH}" in refs else []
        for event in cut.told:
            match event:
                case ev.Committed():
                    assert event.task in branch
                    assert git(top, "cat-file", "-t", event.commit) == "commit"
                case ev.Parked():
                    assert any(f"/attempts/{event.task}/" in name for name in refs)
        if any(name.startswith("refs/notes/batch/") for name in refs):
            near(top, "resume", "--yes", status=1)
        else:
            assert not cut.told
            near(top, "start", "--yes", status=1)
        assert committed(top) == ["one", "three"]
        assert outcomes(top) == {
            "one": "committed",
            "two": "run_failed",
            "three": "committed",
            "four": "unchanged",
        }
        assert git(top, "status", "--porcelain") == "?? batch.toml"
        assert git(top, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
def test_a_power_cut_takes_nothing_back_that_was_told(
    place: Path, template: Path, monkeypatch: pytest.MonkeyPatch, name: str, every: int
) -> None:
    kind = KINDS[name]
    found = cuts(made(place, kind), template, kind, monkeypatch)
    assert len(found) > 10
    assert sum(isinstance(event, ev.Committed) for event in found[-1].told) == 2
    for cut in found[::-every]:
        look(cut, kind, monkeypatch)
