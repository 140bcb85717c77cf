"""Refs by compare-and-swap: one winner, nothing overwritten, on disk before it is told."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from git_batch.core.ids import Oid
from git_batch.errors import GitError, LockedError, StaleError
from git_batch.repo import durability, refs, stalelocks
from git_batch.repo.reflist import RefList, is_value
from git_batch.repo.refs import BrokenRefError, Refs
from git_batch.repo.repository import Repository
from tests.conftest import git

NAME = "refs/notes/batch/x-abc123"


@pytest.fixture
def opened(repo: Path) -> Repository:
    return Repository.open(str(repo))


def blob(repo: Path, text: str) -> Oid:
    return Oid(git(repo, "hash-object", "-w", "--stdin", input=text.encode()))


def test_a_ref_is_made_moved_and_read_and_git_sees_it(repo: Path, opened: Repository) -> None:
    one, two = blob(repo, "1"), blob(repo, "2")
    mine = Refs(opened)
    assert mine.read(NAME) is None
    mine.swap(NAME, None, one, "first")
    assert mine.read(NAME) == git(repo, "rev-parse", NAME) == one
    mine.swap(NAME, one, two, "second")
    assert mine.read(NAME) == git(repo, "rev-parse", NAME) == two


def test_the_reflog_says_why(repo: Path, opened: Repository) -> None:
    base = Oid(git(repo, "rev-parse", "HEAD"))
    Refs(opened).swap("refs/notes/batch/y-abc123", None, base, "a: settled")
    log = (repo / ".git/logs/refs/notes/batch/y-abc123").read_text()
    assert log.endswith("\tbatch: a: settled\n")


def test_a_ref_that_is_elsewhere_is_left_there(repo: Path, opened: Repository) -> None:
    one, two, three = blob(repo, "1"), blob(repo, "2"), blob(repo, "3")
    mine = Refs(opened)
    with pytest.raises(StaleError, match=f"is at nothing, not at {one[:12]}"):
        mine.swap(NAME, one, two, "x")
    git(repo, "update-ref", NAME, one)
    for old in (None, two):
        with pytest.raises(StaleError, match=f"is at {one[:12]}"):
            mine.swap(NAME, old, three, "x")
    assert git(repo, "rev-parse", NAME) == one
    assert not (repo / f".git/{NAME}.lock").exists()


def test_what_git_packs_meanwhile_is_compared_all_the_same(repo: Path, opened: Repository) -> None:
    one, two = blob(repo, "1"), blob(repo, "2")
    mine = Refs(opened)
    mine.swap(NAME, None, one, "x")
    git(repo, "pack-refs", "--all")
    with pytest.raises(StaleError):
        mine.swap(NAME, None, two, "x")
    mine.swap(NAME, one, two, "x")
    assert git(repo, "rev-parse", NAME) == two


def test_a_move_that_was_made_already_is_no_error(repo: Path, opened: Repository) -> None:
    one = blob(repo, "1")
    mine = Refs(opened)
    mine.swap(NAME, None, one, "x")
    mine.swap(NAME, None, one, "x")
    assert mine.read(NAME) == one


def test_an_object_that_does_not_exist_is_never_named(repo: Path, opened: Repository) -> None:
    with pytest.raises(GitError, match="was not written"):
        Refs(opened).swap(NAME, None, Oid("f" * 40), "x")
    assert Refs(opened).read(NAME) is None


RACE = """
import sys
from git_batch.errors import StaleError
from git_batch.repo.reflist import RefList, is_value
from git_batch.repo.refs import BrokenRefError, Refs
from git_batch.repo.repository import Repository
path, name, *oids = sys.argv[1:]
mine = Refs(Repository.open(path))
print("ready", flush=True)
for turn in sys.stdin:
    try:
        mine.swap(f"{name}{turn.strip()}", None, oids[0], "race", durable=False)
        print("won", flush=True)
    except StaleError:
        print("lost", flush=True)
"""


def test_of_eight_processes_that_make_a_ref_exactly_one_succeeds(repo: Path) -> None:
    # The same object is nobody's claim: each has its own.
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(repo), NAME, blob(repo, str(i))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for i in range(8)
    ]
    try:
        assert all(racer.stdout and racer.stdout.readline() == "ready\n" for racer in racers)
        for turn in range(6):
            for racer in racers:
                assert racer.stdin
                racer.stdin.write(f"{turn}\n")
                racer.stdin.flush()
            said = [racer.stdout.readline() for racer in racers if racer.stdout]
            assert sorted(said) == ["lost\n"] * 7 + ["won\n"]
            winner = said.index("won\n")
            assert git(repo, "cat-file", "blob", f"{NAME}{turn}") == str(winner)
    finally:
        for racer in racers:
            racer.communicate()


def test_a_lock_that_stays_is_named_after_a_while_and_left_alone(
    repo: Path, opened: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refs, "LOCK_WAIT", 0.2)
    lock = repo / f".git/{NAME}.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("somebody's")
    began = time.monotonic()
    with pytest.raises(LockedError, match="could not lock") as caught:
        Refs(opened).swap(NAME, None, blob(repo, "1"), "x")
    assert time.monotonic() - began >= 0.2
    assert str(lock) in caught.value.message
    assert lock.read_text() == "somebody's"


def test_what_went_wrong_a_lock_that_could_not_be_made_was_waited_for_and_said_to_exist(
    repo: Path, opened: Repository
) -> None:
    """As on a full disk: there is no lock, and none can be made."""
    began = time.monotonic()
    with pytest.raises(GitError, match="File name too long") as caught:
        Refs(opened).swap(f"refs/batch/{'n' * 252}", None, blob(repo, "1"), "x")
    assert not isinstance(caught.value, LockedError)
    assert time.monotonic() - began < stalelocks.LOCK_WAIT / 2


def test_what_went_wrong_a_folder_that_git_removed_just_then_failed_a_new_ref(
    repo: Path, opened: Repository
) -> None:
    """git removes folders of refs that have become empty, as when it packs what was in them."""
    mine, one, over = Refs(opened), blob(repo, "1"), threading.Event()
    folder = repo / ".git/refs/batch/x/attempts/task"

    def tidy() -> None:
        while not over.is_set():
            for empty in (folder, folder.parent, folder.parent.parent):
                with contextlib.suppress(OSError):
                    empty.rmdir()
            time.sleep(0.0005)  # often, but not so often that there is no time to write

    tidying = threading.Thread(target=tidy)
    tidying.start()
    try:
        for n in range(400):
            mine.swap(f"refs/batch/x/attempts/task/{n}", None, one, "x", synced=True, durable=False)
            (folder / str(n)).unlink()
    finally:
        over.set()
        tidying.join()


def test_a_lock_that_goes_away_is_waited_for(repo: Path, opened: Repository) -> None:
    lock = repo / f".git/{NAME}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    timer = threading.Timer(0.2, lock.unlink)
    timer.start()
    one = blob(repo, "1")
    Refs(opened).swap(NAME, None, one, "x")
    timer.join()
    assert git(repo, "rev-parse", NAME) == one


def test_everything_is_put_on_disk_before_a_ref_moves_and_the_move_before_it_is_told(
    repo: Path, opened: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, one = Refs(opened), blob(repo, "1")
    seen: list[Oid | None] = []
    real = durability.barrier

    def barrier(directory: str) -> None:
        seen.append(mine.read(NAME))
        real(directory)

    monkeypatch.setattr(durability, "barrier", barrier)
    mine.swap(NAME, None, one, "x")
    assert seen == [None, one]


def test_a_disk_that_can_not_be_synced_moves_nothing(
    repo: Path, opened: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def barrier(directory: str) -> None:
        raise GitError("could not write to disk: Input/output error")

    mine, one = Refs(opened), blob(repo, "1")
    monkeypatch.setattr(durability, "barrier", barrier)
    with pytest.raises(GitError, match="could not write to disk"):
        mine.swap(NAME, None, one, "x")
    assert mine.read(NAME) is None


@pytest.mark.skipif(sys.platform != "linux", reason="what can't be synced differs")
@pytest.mark.parametrize("ordered", [False, True])
def test_refs_are_synced_one_by_one_exactly_where_renames_do_not_wait_for_content(
    repo: Path, opened: Repository, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    """A reflog that is a device tells: it can be written to, but fsync(2) of it fails."""
    monkeypatch.setattr(durability, "renames_wait_for_content", lambda directory: ordered)
    mine, one, two = Refs(opened), blob(repo, "1"), blob(repo, "2")
    log = repo / f".git/logs/{NAME}"
    log.parent.mkdir(parents=True)
    log.symlink_to("/dev/null")
    with pytest.raises(GitError, match="could not set"):
        mine.swap(NAME, None, one, "a new ref is always synced")
    log.unlink()
    mine.swap(NAME, None, one, "x")
    log.unlink()
    log.symlink_to("/dev/null")
    if ordered:
        mine.swap(NAME, one, two, "x")
        assert mine.read(NAME) == two
    else:
        with pytest.raises(GitError, match="could not set"):
            mine.swap(NAME, one, two, "x")


def test_symbolic_refs_are_read_through_and_by_name(repo: Path, opened: Repository) -> None:
    mine = Refs(opened)
    assert mine.read("HEAD") == git(repo, "rev-parse", "HEAD")
    assert opened.symbolic_head() == "refs/heads/main"
    git(repo, "switch", "-q", "--orphan", "unborn")
    assert (mine.read("HEAD"), opened.symbolic_head()) == (None, "refs/heads/unborn")
    git(repo, "switch", "-q", "--detach", "main")
    assert opened.symbolic_head() is None


@pytest.mark.parametrize("name", ["refs/heads/../../other", "refs/heads/x.lock", "other"])
def test_what_went_wrong_a_file_was_read_as_the_ref_of_a_name_that_no_ref_can_have(
    repo: Path, opened: Repository, name: str
) -> None:
    for path in ("other", "refs/heads/x.lock", "refs/heads/x"):
        (repo / ".git" / path).write_text("1" * 40)
    assert Refs(opened).read("refs/heads/x") == "1" * 40
    assert Refs(opened).read(name) is None


@pytest.mark.parametrize("text", [" {}", "\n{}\n", "{}\x1f", "{}\u00a0\n"])
def test_what_went_wrong_a_ref_that_git_can_not_read_was_read(
    repo: Path, opened: Repository, text: str
) -> None:
    mine, oid = Refs(opened), git(repo, "rev-parse", "HEAD")
    found = RefList(opened.layout)
    found.note()
    content = text.format(oid)
    (repo / ".git/refs/heads/main").write_text(content)
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "rev-parse", "--verify", "refs/heads/main")
    with pytest.raises(BrokenRefError):
        mine.read("refs/heads/main")
    (old, new) = found.moved()["refs/heads/main"]
    assert (old, new) == (oid, content.rstrip(" \n"))
    assert not is_value(content)


def test_pointing_head_elsewhere_moves_neither_files_nor_branches(
    repo: Path, opened: Repository
) -> None:
    git(repo, "branch", "other")
    (repo / "src/a").write_text("mine\n")
    Refs(opened).point("refs/heads/other", "start")
    assert git(repo, "branch", "--show-current") == "other"
    assert (repo / "src/a").read_text() == "mine\n"


def test_a_ref_is_deleted_only_where_it_is_expected(repo: Path, opened: Repository) -> None:
    one, two = blob(repo, "1"), blob(repo, "2")
    mine = Refs(opened)
    mine.swap(NAME, None, one, "x")
    with pytest.raises(GitError):
        mine.delete(NAME, two)
    assert mine.read(NAME) == one
    mine.delete(NAME, one)
    assert mine.read(NAME) is None


def test_refs_below_a_prefix_are_listed(repo: Path, opened: Repository) -> None:
    one = blob(repo, "1")
    mine = Refs(opened)
    for name in ("refs/batch/a/1", "refs/batch/b", "refs/batches/c"):
        mine.swap(name, None, one, "x")
    assert mine.listed("refs/batch/") == {"refs/batch/a/1": one, "refs/batch/b": one}
    assert mine.listed("refs/none/") == {}


def test_head_is_that_of_the_working_tree_which_one_is_in(
    repo: Path, opened: Repository, tmp_path: Path
) -> None:
    """Detached in both, at different commits: each has a file of that name."""
    side = tmp_path / "side"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    git(side, "commit", "-q", "--allow-empty", "-m", "x")
    git(repo, "checkout", "-q", "--detach")
    there = Refs(Repository.open(str(side)))
    assert Refs(opened).read("HEAD") == git(repo, "rev-parse", "HEAD")
    assert there.read("HEAD") == git(side, "rev-parse", "HEAD") != git(repo, "rev-parse", "HEAD")
    git(repo, "update-ref", "refs/worktree/x", "HEAD")
    assert there.read("refs/worktree/x") is None


def test_what_went_wrong_a_pipe_for_head_of_a_linked_tree_was_looked_for_in_the_main_one(
    repo: Path, tmp_path: Path
) -> None:
    side = tmp_path / "side"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    there = Refs(Repository.open(str(side)))
    head = Path(git(side, "rev-parse", "--absolute-git-dir")) / "HEAD"
    head.unlink()
    os.mkfifo(head)
    with pytest.raises(refs.BrokenRefError, match="its file is a named pipe"):
        there.read("HEAD")


def test_what_else_is_done_while_objects_go_to_disk_is_done_before_the_ref_moves(
    repo: Path, opened: Repository
) -> None:
    mine, one = Refs(opened), blob(repo, "1")
    seen: list[Oid | None] = []
    mine.swap(NAME, None, one, "x", beside=lambda: seen.append(mine.read(NAME)))
    assert seen == [None]
    assert mine.read(NAME) == one
