"""The person's index: swapped or set path by path, never lost, never blocked for ever."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from git_batch.errors import GitError, LockedError
from git_batch.repo import index, indexfile
from git_batch.repo.index import PersonIndex, parents
from git_batch.repo.indexfile import link, same
from git_batch.repo.repository import Repository
from git_batch.repo.trees import EMPTY_BLOB, Change, diff
from git_batch.repo.worktree import Scanner
from tests.conftest import git


def scanned(repo: Path) -> Scanner:
    """Change `src/a`, make `src/new`, and scan."""
    opened = Repository.open(str(repo))
    scanner = Scanner(opened)
    scanner.begin(opened.tree_of(opened.head()[1]))
    (repo / "src/a").write_text("task\n")
    (repo / "src/new").write_text("task\n")
    scanner.scan()
    return scanner


def staged(repo: Path) -> list[str]:
    return git(repo, "diff", "--cached", "--name-status", "--no-renames").split("\n")


NEW = ["M\tsrc/a", "A\tsrc/new"]


# The whole index


def test_the_private_index_takes_the_place(repo: Path) -> None:
    scanner = scanned(repo)
    before = (repo / ".git/index").stat()
    assert scanner.install() == []
    assert staged(repo) == NEW
    after = (repo / ".git/index").stat()
    assert os.path.samestat(after, Path(scanner.private).stat())
    assert not os.path.samestat(after, before)
    assert not (repo / ".git/index.lock").exists()
    assert git(repo, "diff-files") == "", "what git knows about the files is kept"
    assert scanner.install() == [], "again, for a resumed run"
    assert not (repo / ".git/index.lock").exists()


def test_nothing_to_install(repo: Path) -> None:
    opened = Repository.open(str(repo))
    scanner = Scanner(opened)
    scanner.begin(opened.tree_of(opened.head()[1]))
    scanner.scan()
    assert scanner.install() == []
    assert not (repo / ".git/index.lock").exists()
    assert (repo / ".git/index").exists()


def test_an_index_rewritten_with_the_same_bytes_is_still_the_base(repo: Path) -> None:
    scanner = scanned(repo)
    content = (repo / ".git/index").read_bytes()
    (repo / ".git/index").unlink()
    (repo / ".git/index").write_bytes(content)
    assert scanner.swap(scanner.scan())
    assert staged(repo) == NEW


def test_what_the_person_staged_meanwhile_stays(repo: Path) -> None:
    scanner = scanned(repo)
    (repo / "mine").write_text("mine\n")
    git(repo, "add", "mine")
    assert scanner.install() == []
    assert staged(repo) == ["A\tmine", *NEW]


def test_an_entry_that_is_neither_old_nor_new_is_left(repo: Path) -> None:
    scanner = scanned(repo)
    (repo / "src/a").write_text("person\n")
    git(repo, "add", "src/a")
    assert scanner.install() == [b"src/a"]
    assert git(repo, "show", ":src/a") == "person"
    assert git(repo, "show", ":src/new") == "task"


def test_where_there_are_no_hard_links(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no)
    mtime = (repo / ".git/index").stat().st_mtime_ns
    scanner = scanned(repo)
    assert Path(scanner.base).stat().st_mtime_ns == mtime
    assert scanner.install() == []
    assert staged(repo) == NEW
    (repo / "src/a").write_text("person\n")
    git(repo, "add", "src/a")
    assert scanner.install() == [b"src/a"]
    assert not (repo / ".git/index.lock").exists()
    assert not link(str(repo / "no"), str(repo / "copy"))
    with pytest.raises(FileExistsError):
        link(str(repo / "src/a"), str(repo / "src/b"))


def test_what_went_wrong_a_copy_for_which_the_disk_was_too_full_was_taken_for_whole(
    tmp_path: Path,
) -> None:
    (tmp_path / "index").write_bytes(b"x" * 10_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            indexfile.copy(str(tmp_path / "index"), str(tmp_path / "copy"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "copy").exists()


def test_what_went_wrong_a_run_killed_while_it_copied_the_index_left_one_that_stopped_every_resume(
    repo: Path,
) -> None:
    """`error: 'git ls-files -v -z' failed: scan.base: index file smaller than expected`."""
    git(repo, "update-index", "--skip-worktree", "src/b")
    opened = Repository.open(str(repo))
    scanner, tip = Scanner(opened), opened.tree_of(opened.head()[1])
    half = (repo / ".git/index").stat().st_size // 2
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))
        scanner.begin(tip)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGXFSZ
    assert scanner.take_back() == []
    assert git(repo, "ls-files", "-t", "src/b") == "S src/b", "a mark of the person's own"
    scanner.begin(tip)
    assert same(scanner.base, str(repo / ".git/index"))


@pytest.mark.parametrize("left", [0, 100])
def test_a_copy_of_the_index_that_a_power_cut_took_the_content_of_says_nothing(
    repo: Path, left: int
) -> None:
    git(repo, "update-index", "--skip-worktree", "src/b")
    opened = Repository.open(str(repo))
    scanner = Scanner(opened)
    scanner.begin(opened.tree_of(opened.head()[1]))
    os.truncate(scanner.base, left)
    assert scanner.take_back() == []
    assert git(repo, "ls-files", "-t", "src/b") == "S src/b"


def test_what_went_wrong_an_index_that_a_group_shares_came_back_as_ours_alone(repo: Path) -> None:
    """Where git had nothing to write into our copy, that took the place of the person's index."""
    opened = Repository.open(str(repo))
    scanner = Scanner(opened)
    (repo / ".git/index").chmod(0o660)
    scanner.begin(opened.tree_of(opened.head()[1]))
    assert Path(scanner.private).stat().st_mode & 0o777 == 0o660


def test_git_never_writes_into_an_index_file(repo: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    os.link(repo / ".git/index", copy)
    content = copy.read_bytes()
    (repo / "src/a").write_text("x\n")
    for command in (["add", "-A"], ["commit", "-qm", "x"], ["reset", "-q", "--hard", "HEAD~1"]):
        git(repo, *command)
        assert copy.read_bytes() == content


def test_equality() -> None:
    assert same("/no/such", "/nor/this")


def test_equal_only_with_equal_bytes(tmp_path: Path) -> None:
    for name, content in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "22")):
        (tmp_path / name).write_text(content)
    a = str(tmp_path / "a")
    answers = [same(a, str(tmp_path / name)) for name in ("a", "b", "c", "d", "e")]
    assert answers == [True, True, False, False, False]


# Named paths


def changes(repo: Path) -> tuple[PersonIndex, list[Change]]:
    """Make a tree that changes, adds and deletes; leave working tree and index as they were."""
    opened = Repository.open(str(repo))
    tip = opened.tree_of(opened.head()[1])
    (repo / "src/a").write_text("new\n")
    (repo / "src/b").unlink()
    (repo / "made").mkdir()
    (repo / "made/x").write_text("x\n")
    git(repo, "add", "-A")
    tree = git(repo, "write-tree")
    git(repo, "reset", "-q", "--hard")
    return PersonIndex(opened), diff(opened.objects, tip, type(tip)(tree))


ALL = ["A\tmade/x", "M\tsrc/a", "D\tsrc/b"]


@pytest.mark.parametrize("many", [False, True])
def test_set_paths(repo: Path, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if many:
        monkeypatch.setattr(index, "_AS_ARGUMENTS", 0)
    person, todo = changes(repo)
    assert person.set_paths([]) == []
    assert staged(repo) == [""]
    assert person.set_paths(todo) == []
    assert staged(repo) == ALL
    content = (repo / ".git/index").read_bytes()
    assert person.set_paths(todo) == [], "again, for a resumed run"
    assert (repo / ".git/index").read_bytes() == content
    assert person.set_paths([change.reversed() for change in todo]) == []
    assert staged(repo) == [""]


@pytest.mark.parametrize("many", [False, True])
def test_entries_in_the_way_are_the_persons(
    repo: Path, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many:
        monkeypatch.setattr(index, "_AS_ARGUMENTS", 0)
    person, todo = changes(repo)
    (repo / "made").write_text("a file of the person\n")
    git(repo, "add", "made")
    assert person.set_paths(todo) == [b"made/x"]
    assert staged(repo) == ["A\tmade", "M\tsrc/a", "D\tsrc/b"]
    git(repo, "rm", "-qf", "made")
    (repo / "f").mkdir()
    (repo / "f/mine").write_text("mine\n")
    git(repo, "add", "f")
    blob = todo[0].new_oid
    assert person.set_paths([Change(b"f", 0, 0o100644, None, blob)]) == [b"f"]


def test_conflicts_are_the_persons(repo: Path) -> None:
    person, todo = changes(repo)
    git(repo, "update-index", "--force-remove", "src/a")
    lines = "".join(f"100644 {c.new_oid} 2\tsrc/a\n" for c in todo if c.path == b"src/a")
    git(repo, "update-index", "--index-info", input=lines.encode())
    assert person.set_paths(todo) == [b"src/a"]
    assert git(repo, "ls-files", "-u").endswith("2\tsrc/a")


def test_intent_to_add_is_no_content_of_the_persons(repo: Path) -> None:
    person, todo = changes(repo)
    (repo / "made").mkdir()
    (repo / "made/x").write_text("x\n")
    git(repo, "add", "-N", "made/x")
    assert person.set_paths(todo) == []
    assert staged(repo) == ALL


@pytest.mark.parametrize("shape", ["split", "sparse"])
def test_set_paths_in_other_shapes(repo: Path, shape: str) -> None:
    (repo / "other").mkdir()
    (repo / "other/o").write_text("o\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "other")
    person, todo = changes(repo)
    if shape == "split":
        git(repo, "update-index", "--split-index")
    else:
        git(repo, "sparse-checkout", "set", "--cone", "--sparse-index", "src")
    assert person.set_paths(todo) == []
    assert staged(repo) == ALL
    assert "other" not in git(repo, "status", "--porcelain")


def test_a_person_who_is_faster(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person, todo = changes(repo)
    real, left = PersonIndex.install, [2]

    def late(self: PersonIndex, private: str, base: str) -> bool:
        if left[0]:
            left[0] -= 1
            (repo / f"mine{left[0]}").write_text("mine\n")
            git(repo, "add", "-A")
        return real(self, private, base)

    monkeypatch.setattr(PersonIndex, "install", late)
    assert person.set_paths(todo) == []
    assert staged(repo) == ["A\tmade/x", "A\tmine0", "A\tmine1", *ALL[1:]]
    left[0] = 99
    git(repo, "reset", "-q", "--hard")
    with pytest.raises(GitError, match="kept changing"):
        person.set_paths(todo)


# The lock


def test_a_lock_that_goes_away_is_waited_for(repo: Path) -> None:
    scanner = scanned(repo)
    lock = repo / ".git/index.lock"
    lock.write_text("")
    timer = threading.Timer(0.3, lock.unlink)
    timer.start()
    assert scanner.install() == []
    timer.join()
    assert staged(repo) == NEW


def test_a_lock_that_stays_is_named_and_kept(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LOCK_WAIT", 0.2)
    scanner = scanned(repo)
    lock = repo / ".git/index.lock"
    lock.write_text("")
    os.utime(lock, (time.time() - 60,) * 2)
    with pytest.raises(LockedError) as caught:
        scanner.install()
    assert f"'{lock}' exists, 6" in caught.value.message
    assert "no process has it open" in caught.value.hints[0]
    holder = subprocess.Popen(["sh", "-c", f"exec 9<'{lock}'; echo; exec sleep 60"], stdout=-1)
    assert holder.stdout
    with holder, holder.stdout:
        holder.stdout.readline()
        with pytest.raises(LockedError) as caught:
            scanner.install()
        holder.kill()
    assert caught.value.hints == (f"process {holder.pid} has it open",)
    assert lock.read_text() == ""
    assert not Repository.open(str(repo)).git.run(["diff", "--cached", "--name-only"])


@pytest.mark.parametrize("copies", [False, True])
def test_a_lock_that_our_crash_left_is_removed(
    repo: Path, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner = scanned(repo)
    lock = repo / ".git/index.lock"

    def crash(*args: object) -> None:
        raise KeyboardInterrupt

    if copies:
        lock.write_bytes(Path(scanner.private).read_bytes())
    else:
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", crash)
            with pytest.raises(KeyboardInterrupt):
                scanner.install()
    assert lock.exists()
    opened = Repository.open(str(repo))
    again = Scanner(opened)
    again.begin(opened.tree_of(opened.head()[1]))
    assert not lock.exists()


def test_none_of_our_files_is_the_persons_index_when_a_command_is_run(repo: Path) -> None:
    """Also those that a crash left which had just been put in its place."""
    scanner = scanned(repo)
    assert scanner.install() == []
    theirs, ours = repo / ".git/index", repo / ".git/batch"
    for name in (index.MINE, index.BASE):
        os.link(theirs, ours / name)
    scanner.begin(scanner.repo.tree_of(scanner.repo.head()[1]))
    assert not [path for path in ours.iterdir() if path.samefile(theirs)]


def test_anothers_lock_is_not_removed(repo: Path) -> None:
    scanner = scanned(repo)
    lock = repo / ".git/index.lock"
    lock.write_bytes(b"")
    assert not scanner.person.recover(scanner.private)
    assert lock.exists()


# What a command did to entries


def test_only_what_is_new_since_the_base_is_taken_back(repo: Path) -> None:
    for name in ("mine", "since", "held", "folder/x"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("x\n")
    opened = Repository.open(str(repo))
    tip = opened.tree_of(opened.head()[1])
    git(repo, "add", "mine")
    scanner = Scanner(opened, [b"mine", b"since", b"held", b"folder/", b"src/a"])
    scanner.begin(tip)
    git(repo, "add", "-A")
    git(repo, "update-index", "--assume-unchanged", "src/a", "since")
    git(repo, "update-index", "--skip-worktree", "src/b")
    tree = git(repo, "write-tree", "--prefix=src/")
    held = git(repo, "mktree", "--missing", input=f"100644 blob {EMPTY_BLOB}\theld\n".encode())
    assert scanner.take_back(type(tip)(held)) == [b"folder/x", b"since"]
    assert staged(repo) == ["A\theld", "A\tmine"]
    assert git(repo, "write-tree", "--prefix=src/") == tree
    tags = {line[0] for line in git(repo, "ls-files", "-v").splitlines()}
    assert tags == {"H"}, "a tracked file can't be hidden, though it was accepted as untracked"
    index = (repo / ".git/index").stat()
    assert scanner.take_back(type(tip)(held)) == []
    assert os.path.samestat((repo / ".git/index").stat(), index)


def test_parents() -> None:
    assert list(parents(b"a/b/c")) == [b"a/b", b"a"]
    assert list(parents(b"a")) == []
