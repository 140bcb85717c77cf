"""The wait for the disk, with something else done meanwhile."""

from __future__ import annotations

from pathlib import Path
from threading import Event, main_thread

import pytest

from git_batch.errors import GitError
from git_batch.repo import durability
from git_batch.repo.durability import barrier_beside


class Disk:
    """A disk that is done when it is told to be."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked, self.let_go = Event(), Event()
        self.fails, self.done = fails, False

    def __call__(self, directory: str) -> None:
        self.asked.set()
        assert self.let_go.wait(30)
        self.done = True
        if self.fails:
            raise GitError("could not write to disk: Input/output error")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(durability, "barrier", made)
    return made


def test_something_is_done_while_the_disk_is_waited_for(tmp_path: Path, disk: Disk) -> None:
    def act() -> None:
        assert disk.asked.wait(30)
        assert not disk.done
        disk.let_go.set()

    barrier_beside(str(tmp_path), act)
    assert disk.done


def test_a_disk_that_fails_is_said_after_the_rest_was_done(tmp_path: Path, disk: Disk) -> None:
    disk.fails = True
    with pytest.raises(GitError, match="Input/output error"):
        barrier_beside(str(tmp_path), disk.let_go.set)
    assert disk.let_go.is_set()


def test_the_disk_is_waited_for_whatever_goes_wrong_meanwhile(tmp_path: Path, disk: Disk) -> None:
    def act() -> None:
        disk.let_go.set()
        raise KeyError("meanwhile")

    with pytest.raises(KeyError, match="meanwhile"):
        barrier_beside(str(tmp_path), act)
    assert disk.done


def test_without_another_thread_the_disk_comes_first(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the system grants no more of them (`RLIMIT_NPROC`)."""

    def none(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    disk.let_go.set()
    monkeypatch.setattr(durability, "start_new_thread", none)
    seen = []
    barrier_beside(str(tmp_path), lambda: seen.append(disk.done))
    assert seen == [True]


def test_what_is_done_meanwhile_is_done_in_the_main_thread(tmp_path: Path) -> None:
    """libgit2's handles are for one thread, and only the main one gets signals."""
    import threading

    seen = []
    barrier_beside(str(tmp_path), lambda: seen.append(threading.current_thread()))
    assert seen == [main_thread()]


def test_what_went_wrong_a_barrier_that_broke_down_in_the_other_thread_was_taken_for_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only what the disk says: no memory for its thread, a C library without syncfs(2)."""

    def broken(directory: str) -> None:
        raise MemoryError(directory)

    monkeypatch.setattr(durability, "barrier", broken)
    seen: list[int] = []
    with pytest.raises(MemoryError, match=tmp_path.name):
        barrier_beside(str(tmp_path), lambda: seen.append(1))
    assert seen == [1]
