"""Putting an attempt's paths back: all of them, none but them, and nothing is ever lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from git_batch.core.ids import Oid
from git_batch.errors import GitError
from git_batch.repo import restore as module
from git_batch.repo.repository import Repository
from git_batch.repo.restore import Restored, restore
from git_batch.repo.worktree import Scanner
from tests.conftest import git

Listing = dict[str, tuple[int, bytes]]


def listing(top: Path) -> Listing:
    """Describe every file and folder outside of `.git`, nested ones included."""
    found: Listing = {}
    for folder, folders, files in os.walk(top):
        if Path(folder) == top:
            folders.remove(".git")
        for name in folders + files:
            path = Path(folder) / name
            content = b""
            if path.is_symlink():
                content = os.fsencode(path.readlink())
            elif path.is_file():
                content = path.read_bytes()
            found[str(path.relative_to(top))] = (path.lstat().st_mode, content)
    return found


class World:
    """A repository at its tip, an attempt, and what was there before it."""

    def __init__(self, top: Path, *excluded: bytes) -> None:
        self.top = top
        self.repo = Repository.open(str(top))
        self.scanner = Scanner(self.repo, excluded)
        self.tip = self.repo.tree_of(self.repo.head()[1])
        self.before = listing(top)
        self.scanner.begin(self.tip)
        self.snapshot = Oid("")

    def attempt(self, work: Callable[[Path], object]) -> None:
        work(self.top)
        self.snapshot = self.scanner.scan()

    def restore(self, *, begun: bool = False) -> Restored:
        return restore(self.scanner, self.tip, self.snapshot, begun=begun)

    def assert_as_before(self, *, but: frozenset[str] = frozenset()) -> None:
        after = listing(self.top)
        changed = {p for p in self.before.keys() | after if self.before.get(p) != after.get(p)}
        assert changed == but
        assert git(self.top, "diff", "--cached", "--name-only") == ""
        assert git(self.top, "stash", "list") == ""


def many(top: Path) -> None:
    (top / "src/a").write_text("a\nx\n")
    (top / "src/new").write_text("new\n")
    (top / "src/b").unlink()
    (top / "deep/er").mkdir(parents=True)
    (top / "deep/er/x").write_text("x\n")
    (top / os.fsdecode(b"caf\xe9\n")).write_text("c\n")
    (top / "link").symlink_to("/etc")


def folder_for_file(top: Path) -> None:
    (top / "src/a").unlink()
    (top / "src/a/b").mkdir(parents=True)
    (top / "src/a/b/c").write_text("c\n")


def file_for_folder(top: Path) -> None:
    shutil.rmtree(top / "src")
    (top / "src").write_text("file\n")


def link_for_folder(top: Path) -> None:
    shutil.rmtree(top / "src")
    (top / "src").symlink_to("/etc")


def link_for_file(top: Path) -> None:
    (top / "src/a").unlink()
    (top / "src/a").symlink_to("b")


def mode(top: Path) -> None:
    (top / "src/a").chmod(0o755)


def all_gone(top: Path) -> None:
    shutil.rmtree(top / "src")
    (top / ".gitignore").unlink()


def staged(top: Path) -> None:
    many(top)
    git(top, "add", "-A")


def committed(top: Path) -> None:
    many(top)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "mine")
    git(top, "reset", "-q", "--soft", "HEAD~1")


WORKS = [
    many,
    folder_for_file,
    file_for_folder,
    link_for_folder,
    link_for_file,
    mode,
    all_gone,
    staged,
    committed,
]


@pytest.mark.parametrize("work", WORKS)
def test_everything_is_as_before(repo: Path, work: Callable[[Path], None]) -> None:
    (repo / "x.log").write_text("ignored\n")
    (repo / "notes.txt").write_text("mine\n")
    world = World(repo, b"notes.txt")
    world.attempt(work)
    done = world.restore()
    world.assert_as_before()
    assert (done.left, done.kept) == ([], {})
    assert done.paths
    assert git(repo, "status", "--porcelain") == "?? notes.txt"
    assert world.scanner.tree == world.tip
    assert world.restore() == Restored(), "again, with nothing left to do"
    world.assert_as_before()


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("step", ["_remove", "_write", "_unignored", "swap"])
def test_killed_in_the_middle_and_run_again(
    repo: Path, work: Callable[[Path], None], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(repo)
    world.attempt(work)
    target = Scanner if step == "swap" else module._Work
    real = getattr(target, step)

    def crash(self: object, *args: object) -> None:
        if step in ("_remove", "_write"):
            real(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(target, step, crash)
        with pytest.raises(KeyboardInterrupt):
            world.restore()
    again = World(repo)
    again.before, again.snapshot = world.before, world.snapshot
    done = again.restore()
    again.assert_as_before()
    assert (done.left, done.kept) == ([], {})


def test_an_unchanged_tree(repo: Path) -> None:
    world = World(repo)
    world.attempt(lambda top: None)
    assert world.restore() == Restored()
    world.assert_as_before()


def test_what_is_neither_the_tips_nor_the_attempts_is_left(repo: Path) -> None:
    world = World(repo)
    world.attempt(many)
    (repo / "src/a").write_text("person\n")
    (repo / "src/mine").write_text("person\n")
    (repo / "src/new").unlink()
    done = world.restore()
    assert done.left == [b"src/a", b"src/mine"]
    assert (repo / "src/a").read_text() == "person\n"
    assert (repo / "src/mine").read_text() == "person\n"
    assert git(repo, "diff", "--cached", "--name-only") == ""
    assert (repo / "src/b").exists()
    assert not (repo / "deep").exists()


def test_ignored_files_stay(repo: Path) -> None:
    (repo / "build").mkdir()
    (repo / "build/out").write_text("o\n")
    world = World(repo)
    many(repo)
    world.attempt(lambda top: (top / "deep/er/x.log").write_text("log\n"))
    world.restore()
    world.assert_as_before(but=frozenset({"deep", "deep/er", "deep/er/x.log"}))


def test_files_that_only_the_attempt_made_visible_stay(repo: Path) -> None:
    (repo / "secret.log").write_text("mine, ignored\n")
    world = World(repo)

    def work(top: Path) -> None:
        (top / ".gitignore").write_text("")
        (top / "src/.gitignore").write_text("!*.log\n")
        (top / "src/new").write_text("new\n")

    world.attempt(work)
    assert b"secret.log" in git(repo, "ls-tree", "--name-only", world.snapshot).encode()
    done = world.restore()
    world.assert_as_before()
    assert sorted(done.paths) == [b".gitignore", b"src/.gitignore", b"src/new"]


def test_files_that_the_attempt_hid_are_kept_aside(repo: Path) -> None:
    world = World(repo)

    def work(top: Path) -> None:
        (top / ".gitignore").write_text("*.log\nbuild/\nhidden\n")
        (top / "hidden").write_text("h\n")
        (top / "more").mkdir()
        (top / "more/.gitignore").write_text("*\n")
        (top / "more/x").write_text("x\n")

    world.attempt(work)
    done = world.restore()
    assert b"hidden" in done.kept
    assert Path(os.fsdecode(done.kept[b"hidden"])).read_text() == "h\n"
    assert git(repo, "status", "--porcelain", "-uall") in ("", "?? more/x")
    assert git(repo, "diff", "HEAD") == ""


def test_a_nested_repository_is_kept_aside(repo: Path) -> None:
    world = World(repo)

    def work(top: Path) -> None:
        for name in ("with", "without"):
            git(top, "init", "-q", name)
            (top / name / "x").write_text(name)
        git(top / "with", "add", "-A")
        git(top / "with", "commit", "-qm", "x")

    world.attempt(work)
    done = world.restore()
    world.assert_as_before()
    assert sorted(done.kept) == [b"with", b"without"]
    for name, place in done.kept.items():
        assert (Path(os.fsdecode(place)) / "x").read_text() == name.decode()
        assert (Path(os.fsdecode(place)) / ".git/HEAD").exists()


@pytest.mark.parametrize("content", ["empty", "ignored", "repository"])
def test_a_folder_in_the_way_is_kept_aside(repo: Path, content: str) -> None:
    world = World(repo)

    def work(top: Path) -> None:
        (top / "src/a").unlink()
        (top / "src/a").mkdir()
        if content == "ignored":
            (top / "src/a/x.log").write_text("log\n")
        if content == "repository":
            git(top / "src/a", "init", "-q")

    world.attempt(work)
    done = world.restore()
    world.assert_as_before()
    assert list(done.kept) == ([] if content == "empty" else [b"src/a"])


def test_git_still_destroys_a_folder_in_the_way(repo: Path) -> None:
    (repo / "src/a").unlink()
    (repo / "src/a").mkdir()
    (repo / "src/a/x.log").write_text("log\n")
    git(repo, "checkout-index", "-f", "src/a")
    assert (repo / "src/a").is_file()


def test_a_hidden_file_in_a_folders_place_is_kept_aside(repo: Path) -> None:
    (repo / ".gitignore").write_text("src\n")
    git(repo, "commit", "-qam", "ignores src")
    world = World(repo)
    world.attempt(file_for_folder)
    done = world.restore()
    world.assert_as_before()
    assert Path(os.fsdecode(done.kept[b"src"])).read_text() == "file\n"


def test_a_fifo_in_the_way(repo: Path) -> None:
    world = World(repo)
    (repo / "src/a").unlink()
    world.attempt(lambda top: os.mkfifo(top / "src/a"))
    done = world.restore()
    world.assert_as_before()
    assert list(done.kept) == [b"src/a"]


def test_excluded_files_stay(repo: Path) -> None:
    (repo / "mine").mkdir()
    (repo / "mine/x").write_text("mine\n")
    world = World(repo, b"mine/")
    many(repo)
    world.attempt(lambda top: (top / ".gitignore").write_text("!*\n"))
    world.restore()
    world.assert_as_before()


def test_filters_run_on_the_way_back(repo: Path) -> None:
    git(repo, "config", "filter.up.clean", "tr a-z A-Z")
    git(repo, "config", "filter.up.smudge", "tr A-Z a-z")
    (repo / ".gitattributes").write_text("*.t filter=up\n*.c eol=crlf\n")
    (repo / "z.t").write_text("lower\n")
    (repo / "z.c").write_bytes(b"1\r\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "attributes")
    world = World(repo)
    world.attempt(lambda top: [(top / name).write_text("bad\n") for name in ("z.t", "z.c")])
    world.restore()
    world.assert_as_before()
    assert world.scanner.scan() == world.tip


@pytest.mark.parametrize("option", ["--no-sparse-index", "--sparse-index"])
def test_a_sparse_checkout_stays_sparse(repo: Path, option: str) -> None:
    (repo / "other").mkdir()
    (repo / "other/o").write_text("o\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "other")
    git(repo, "sparse-checkout", "set", "--cone", option, "src")
    world = World(repo)

    def work(top: Path) -> None:
        (top / "other").mkdir()
        (top / "other/o").write_text("changed\n")
        (top / "other/stray").write_text("s\n")
        (top / "src/a").write_text("changed\n")

    world.attempt(work)
    done = world.restore()
    assert sorted(done.paths) == [b"other/o", b"other/stray", b"src/a"]
    world.assert_as_before(but=frozenset({"other"} if (repo / "other").exists() else ()))
    assert git(repo, "status", "--porcelain") == ""
    assert "S other/o" in git(repo, "ls-files", "-t")


def with_submodule(repo: Path) -> None:
    git(repo, "clone", "-q", str(repo), "sub")
    git(repo, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    git(repo, "commit", "-qm", "sub")


def test_a_submodule_is_switched_back_and_keeps_its_files(repo: Path) -> None:
    with_submodule(repo)
    world = World(repo)

    def work(top: Path) -> None:
        (top / "sub/src/a").write_text("committed\n")
        git(top / "sub", "commit", "-qam", "moved")
        (top / "sub/scratch").write_text("untracked\n")

    world.attempt(work)
    done = world.restore()
    assert done.paths == [b"sub"]
    assert (repo / "sub/scratch").exists()
    assert git(repo, "diff", "--cached", "--name-only") == ""
    assert git(repo / "sub", "log", "-1", "--format=%s", "main") == "moved"
    assert world.scanner.scan() == world.tip


def test_a_submodule_with_work_in_it_is_left(repo: Path) -> None:
    with_submodule(repo)
    world = World(repo)

    def work(top: Path) -> None:
        (top / "sub/src/a").write_text("committed\n")
        git(top / "sub", "commit", "-qam", "moved")
        (top / "sub/src/a").write_text("not committed\n")

    world.attempt(work)
    done = world.restore()
    assert (done.paths, done.left) == ([], [b"sub"])
    assert (repo / "sub/src/a").read_text() == "not committed\n"


def test_files_in_place_of_a_submodule_are_invisible_to_git(repo: Path) -> None:
    with_submodule(repo)
    world = World(repo)

    def work(top: Path) -> None:
        shutil.rmtree(top / "sub")
        (top / "sub").mkdir()
        (top / "sub/x").write_text("x\n")

    world.attempt(work)
    assert world.snapshot == world.tip
    assert world.restore() == Restored()
    assert (repo / "sub/x").exists()


@pytest.mark.parametrize("instead", ["nothing", "file"])
def test_a_submodule_that_is_gone_is_named(repo: Path, instead: str) -> None:
    with_submodule(repo)
    world = World(repo)

    def work(top: Path) -> None:
        shutil.rmtree(top / "sub")
        if instead == "file":
            (top / "sub").write_text("file\n")

    world.attempt(work)
    done = world.restore()
    assert done.left == [b"sub"]
    assert (repo / "sub").is_dir()
    assert world.scanner.scan() == world.tip


def test_an_ignored_file_that_a_task_staged_stays_but_is_unstaged(repo: Path) -> None:
    (repo / "x.log").write_text("ignored\n")
    world = World(repo)
    many(repo)
    world.attempt(lambda top: git(top, "add", "-f", "x.log"))
    world.restore()
    world.assert_as_before()


def test_a_folder_without_permission(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(repo)
    world.attempt(many)

    real = os.unlink

    def refuse(path: str | bytes) -> None:
        if b"src/new" in os.fsencode(path):
            raise PermissionError(13, "Permission denied", path)
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        with pytest.raises(GitError) as caught:
            world.restore()
    assert caught.value.message == f"can't put back '{repo}/src/new': Permission denied"
    world.restore()
    world.assert_as_before()


@pytest.mark.parametrize("left", [None, b"", b"one\r\ntw"], ids=["gone", "empty", "part"])
def test_what_was_half_put_back_is_completed_whatever_filters_git_writes_it_by(
    repo: Path, left: bytes | None
) -> None:
    (repo / ".gitattributes").write_text("src/a text eol=crlf\n")
    (repo / "src/a").write_bytes(b"one\r\ntwo\r\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "crlf")
    world = World(repo)
    world.attempt(lambda top: (top / "src/a").write_bytes(b"the attempt's\r\n"))
    (repo / "src/a").unlink()
    if left is not None:
        (repo / "src/a").write_bytes(left)
    assert world.restore().left == [b"src/a"]
    done = world.restore(begun=True)
    assert (done.left, done.completed) == ([], [b"src/a"])
    world.assert_as_before()


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(b"b"),
        lambda file: file.write_bytes(file.read_bytes() + b"more\n"),
        lambda file: (file.write_bytes(b""), file.chmod(0o755)),
        lambda file: (file.unlink(), file.symlink_to("b")),
    ],
    ids=["other", "longer", "mode", "link"],
)
def test_what_is_not_a_beginning_of_what_is_put_back_stays(
    repo: Path, change: Callable[[Path], object]
) -> None:
    world = World(repo)
    world.attempt(lambda top: (top / "src/a").write_bytes(b"the attempt's\n"))
    git(repo, "checkout", "src/a")
    change(repo / "src/a")
    now = listing(repo)
    done = world.restore(begun=True)
    assert (done.left, done.completed) == ([b"src/a"], [])
    assert listing(repo) == now


def test_what_no_attempt_changed_is_not_completed(repo: Path) -> None:
    world = World(repo)
    world.attempt(lambda top: (top / "src/new").write_bytes(b"the attempt's\n"))
    (repo / "src/a").write_bytes(b"")
    assert world.restore(begun=True).left == [b"src/a"]
    assert (repo / "src/a").read_bytes() == b""
