"""Files of objects that a power cut left empty, as XFS does, and ext4 and btrfs, too."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import zlib
from itertools import count
from pathlib import Path

import pytest

from git_batch.repo import emptied
from git_batch.repo.emptied import Cleared, clear_torn_objects
from git_batch.repo.repository import Repository
from tests.conftest import git
from tests.e2e.job import batch, committed, refs, task, write
from tests.e2e.near import near


def empty(top: Path, content: str) -> Path:
    """Leave the file of a blob as a power cut does."""
    oid = git(top, "hash-object", "--stdin", input=content.encode())
    file = top / ".git/objects" / oid[:2] / oid[2:]
    file.parent.mkdir(exist_ok=True)
    file.touch()
    return file


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine be switched on at each look."""
    numbers = count()
    monkeypatch.setattr(emptied, "boot_id", lambda: str(next(numbers)))


def test_a_task_whose_blob_a_power_cut_left_empty_was_committed_without_it(
    repo: Path, boots: None
) -> None:
    left = empty(repo, "work\n")
    write(repo, task("a", "echo work >src/new"))
    said = near(repo, "start", "--yes")
    assert "removed 1 file of an object without content, as a power cut leaves them" in said.err
    assert committed(repo) == ["a"]
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
    assert left.stat().st_size > 0


def test_it_is_looked_for_once_after_the_machine_was_switched_on(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".git/batch").mkdir()
    opened = Repository.open(str(repo))
    for boot, found in (("one", 1), ("one", 0), ("two", 1), ("", 1), ("", 1), ("two", 0)):
        monkeypatch.setattr(emptied, "boot_id", lambda boot=boot: boot)
        file = empty(repo, boot)
        assert clear_torn_objects(opened).empty == found
        assert file.exists() != bool(found)
        file.unlink(missing_ok=True)


BIG = random.Random(1).randbytes(100_000)


def torn(top: Path, content: bytes) -> Path:
    """Leave the file of a blob with its first blocks only."""
    oid = git(top, "hash-object", "-w", "--stdin", input=content)
    file = top / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    os.truncate(file, 8192)
    return file


def test_what_went_wrong_a_task_whose_blob_breaks_off_was_committed_without_it(
    repo: Path,
) -> None:
    """libgit2 might read in it for ever, deaf to signals: so that is another process."""
    (repo.parent / "big").write_bytes(BIG)
    file = torn(repo, BIG)
    write(repo, task("a", f"cp {repo.parent}/big src/big"))
    said = batch(repo, "start", "--yes")
    aside = repo / ".git/batch/unreadable" / f"{file.name}.1"
    told = f"put aside 1 file of an object that break off, as a power cut leaves them: {aside}"
    assert told in said.err
    assert aside.stat().st_size == 8192
    assert committed(repo) == ["a"]
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""


def test_what_went_wrong_libgit2_read_for_ever_in_a_record_that_breaks_off(
    repo: Path, boots: None
) -> None:
    run = f"echo {'x' * 40}; false"
    write(repo, *(task(f"t{n}", run, f'message = """{BIG[:9000].hex()}"""') for n in range(2)))
    near(repo, "start", "--yes", status=1)
    (ref,) = [name for name in refs(repo) if name.startswith("refs/notes/batch/")]
    oid = git(repo, "rev-parse", f"{ref}:plan.toml")
    file = repo / ".git/objects" / oid[:2] / oid[2:]
    assert file.stat().st_size > 4096
    file.chmod(0o644)
    os.truncate(file, 4096)
    (repo / ".git/batch/boot").unlink()
    said = batch(repo, "resume", status=3)
    assert "'plan.toml' is damaged" in said.err
    assert any(hint.startswith("git batch recover") for hint in said.hints)


def test_an_object_that_fills_its_blocks_stays(repo: Path, boots: None) -> None:
    (repo / ".git/batch").mkdir()
    content = b"blob 1003\0" + b"x" * 1003
    oid = hashlib.sha1(content).hexdigest()
    file = repo / ".git/objects" / oid[:2] / oid[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(content, 0))
    assert git(repo, "cat-file", "-s", oid) == "1003"
    assert file.stat().st_size == 1024
    assert clear_torn_objects(Repository.open(str(repo))) == Cleared()
    assert file.exists()


def test_what_went_wrong_a_file_was_removed_that_a_git_was_about_to_write(
    repo: Path, boots: None
) -> None:
    """git makes it empty, beside where its object will be, and renames it when it is whole."""
    (repo / ".git/batch").mkdir()
    file = empty(repo, "work\n").with_name("tmp_obj_AbCdEf")
    file.touch()
    assert clear_torn_objects(Repository.open(str(repo))).empty == 1
    assert file.exists()


def test_what_went_wrong_what_a_gc_removed_meanwhile_was_a_bug(
    repo: Path, boots: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".git/batch").mkdir()
    folders = {name: empty(repo, name).parent for name in ("one", "two")}
    listed = os.listdir

    def meanwhile(path: str) -> list[str]:
        """Let what was just listed be packed and tidied up."""
        found = listed(path)
        gone = folders.values() if path.endswith("objects") else [Path(path)]
        for folder in list(gone)[:1]:
            shutil.rmtree(folder)
        return found

    monkeypatch.setattr(os, "listdir", meanwhile)
    assert clear_torn_objects(Repository.open(str(repo))) == Cleared()


def test_what_is_no_file_of_an_object_stays(repo: Path, boots: None) -> None:
    objects = repo / ".git/objects"
    (repo / ".git/batch").mkdir()
    (objects / "ab" / ("c" * 38)).mkdir(parents=True)  # some file systems say it has no bytes
    others = [objects / "info/empty", objects / "pack/empty", objects / "xx"]
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.touch()
    assert clear_torn_objects(Repository.open(str(repo))) == Cleared()
    assert all(other.exists() for other in others)
