"""Scans: the tree is exactly what git would commit, the person's index is not touched."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from git_batch.core.ids import Oid
from git_batch.errors import GitError
from git_batch.repo.inprocess import InProcess
from git_batch.repo.objects import EMPTY_TREE
from git_batch.repo.repository import Repository
from git_batch.repo.trees import Change, Kind, diff, lookup, paths_of
from git_batch.repo.worktree import Scanner, pattern
from tests.conftest import git


class Tree:
    """A scanner on a repository, with short ways to look at what it found."""

    def __init__(self, top: Path, *excluded: bytes) -> None:
        self.repo = Repository.open(str(top))
        self.scanner = Scanner(self.repo, excluded)
        self.tip = self.repo.tree_of(self.repo.head()[1])
        self.scanner.begin(self.tip)

    def scan(self, *also: bytes) -> dict[bytes, Change]:
        self.tree = self.scanner.scan(also)
        return {c.path: c for c in diff(self.repo.objects, self.tip, self.tree)}

    def checks(self) -> dict[bytes, Change]:
        return {change.path: change for change in self.scanner.changed_by_checks(self.tree)}

    def blob(self, path: bytes) -> bytes:
        found = lookup(self.repo.objects, self.tree, path)
        assert found
        return self.repo.objects.read(found[1])[1]


@pytest.fixture(autouse=True, params=["small", "big"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let every test run as in a small repository (libgit2 helps) and in a big one (git only)."""
    if request.param == "big":
        monkeypatch.setattr("git_batch.repo.inprocess._MOST", 10)
    return str(request.param)


def as_git_commits(top: Path) -> str:
    """Make the tree with plain git, in an index of its own."""
    env = os.environ | {"GIT_INDEX_FILE": str(top.parent / "plain.index")}
    subprocess.run(["git", "read-tree", "HEAD"], cwd=top, env=env, check=True)
    subprocess.run(["git", "add", "-A"], cwd=top, env=env, check=True, stderr=subprocess.DEVNULL)
    out = subprocess.run(["git", "write-tree"], cwd=top, env=env, check=True, capture_output=True)
    return out.stdout.decode().strip()


# What is in the tree


def test_nothing_changed(repo: Path) -> None:
    tree = Tree(repo)
    assert tree.scan() == {}
    assert tree.tree == tree.tip
    assert tree.checks() == {}


def test_all_kinds_of_changes(repo: Path) -> None:
    (repo / "plain").write_text("p\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "more")
    tree = Tree(repo)
    index = (repo / ".git/index").read_bytes()
    (repo / "src/a").write_text("changed\n")
    (repo / "src/b").unlink()
    (repo / "src/new").write_text("new\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "plain").unlink()
    (repo / "plain").symlink_to("/etc")
    (repo / "x.log").write_text("ignored\n")
    found = tree.scan()
    assert {path: change.kind for path, change in found.items()} == {
        b"src/a": Kind.CHANGED,
        b"src/b": Kind.DELETED,
        b"src/new": Kind.CREATED,
        b"run.sh": Kind.MODE,
        b"plain": Kind.TYPE,
    }
    assert found[b"run.sh"].new_mode == 0o100755
    assert found[b"plain"].is_symlink
    assert tree.blob(b"plain") == b"/etc"
    assert tree.tree == as_git_commits(repo)
    assert (repo / ".git/index").read_bytes() == index
    assert git(repo, "diff", "--cached", "--name-only") == ""


def test_names_of_any_bytes(repo: Path) -> None:
    tree = Tree(repo)
    names = [b"caf\xe9.txt", b"a b\n.txt", "src/Ü".encode(), b"src/A", b"-x", b":(top)y", b"s*r"]
    for name in names:
        (repo / os.fsdecode(name)).write_bytes(name)
    assert sorted(tree.scan()) == sorted(names)
    assert tree.blob(names[1]) == names[1]
    (repo / "sub\n").mkdir()
    (repo / "sub\n/x").write_text("x")
    assert list(tree.checks()) == [b"sub\n/x"]


def test_a_file_becomes_a_folder_and_the_other_way_round(repo: Path) -> None:
    (repo / "d").mkdir()
    (repo / "d/x").write_text("x\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "d")
    tree = Tree(repo)
    (repo / "src/a").unlink()
    (repo / "src/a").mkdir()
    (repo / "src/a/deep").write_text("deep\n")
    (repo / "d/x").unlink()
    (repo / "d").rmdir()
    (repo / "d").write_text("file\n")
    assert {path: change.kind for path, change in tree.scan().items()} == {
        b"src/a": Kind.DELETED,
        b"src/a/deep": Kind.CREATED,
        b"d/x": Kind.DELETED,
        b"d": Kind.CREATED,
    }
    assert tree.tree == as_git_commits(repo)


def test_filters_run(repo: Path) -> None:
    git(repo, "config", "filter.up.clean", "tr a-z A-Z")
    git(repo, "config", "filter.up.smudge", "tr A-Z a-z")
    git(repo, "config", "filter.up.required", "true")
    (repo / ".gitattributes").write_text("*.t filter=up\n*.u working-tree-encoding=UTF-16LE\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "attributes")
    tree = Tree(repo)
    (repo / "src/z.t").write_text("lower\n")
    (repo / "src/z.u").write_bytes("ü\n".encode("utf-16-le"))
    tree.scan()
    assert tree.blob(b"src/z.t") == b"LOWER\n"
    assert tree.blob(b"src/z.u") == "ü\n".encode()


def test_a_filter_that_fails_is_an_error(repo: Path) -> None:
    git(repo, "config", "filter.no.clean", "false")
    git(repo, "config", "filter.no.required", "true")
    tree = Tree(repo)
    (repo / ".gitattributes").write_text("*.t filter=no\n")
    (repo / "z.t").write_text("z\n")
    with pytest.raises(GitError, match="clean filter 'no' failed"):
        tree.scan()


def test_line_ends_are_converted(repo: Path) -> None:
    git(repo, "config", "core.autocrlf", "true")
    tree = Tree(repo)
    (repo / "src/a").write_bytes(b"a\r\n")
    (repo / "src/dos").write_bytes(b"1\r\n2\r\n")
    assert list(tree.scan()) == [b"src/dos"]
    assert tree.blob(b"src/dos") == b"1\n2\n"


def test_same_size_edits_in_the_same_second(repo: Path) -> None:
    tree = Tree(repo)
    for n in range(30):
        (repo / "src/a").write_text(f"{n % 10}\n")
        assert list(tree.scan()) == [b"src/a"]
        assert tree.blob(b"src/a") == b"%d\n" % (n % 10)


# Indexes of every shape


def outside(repo: Path) -> None:
    for folder in ("other", "third"):
        (repo / folder / "deep").mkdir(parents=True)
        (repo / folder / "deep/o").write_text("o\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "outside")


@pytest.mark.parametrize("option", ["--no-sparse-index", "--sparse-index"])
def test_a_sparse_checkout_deletes_nothing(repo: Path, option: str) -> None:
    outside(repo)
    git(repo, "sparse-checkout", "set", "--cone", option, "src")
    assert not (repo / "other").exists()
    tree = Tree(repo)
    (repo / "src/a").write_text("x\n")
    assert list(tree.scan()) == [b"src/a"]
    assert tree.checks() == {}
    assert tree.scanner.install() == []
    assert git(repo, "status", "--porcelain") == "M  src/a"
    assert not (repo / "other").exists()


def test_strays_outside_of_the_cone_are_seen(repo: Path) -> None:
    outside(repo)
    git(repo, "sparse-checkout", "set", "--cone", "src")
    tree = Tree(repo)
    (repo / "other").mkdir()
    (repo / "other/stray").write_text("x\n")
    assert list(tree.scan()) == [b"other/stray"]
    assert tree.scanner.problems == ()


def test_a_split_index(repo: Path) -> None:
    git(repo, "update-index", "--split-index")
    tree = Tree(repo)
    (repo / "src/a").write_text("x\n")
    assert list(tree.scan()) == [b"src/a"]
    assert tree.scanner.install() == []
    assert git(repo, "status", "--porcelain") == "M  src/a"
    git(repo, "fsck")


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_index_versions_and_extensions(repo: Path, version: str) -> None:
    git(repo, "config", "core.untrackedCache", "true")
    git(repo, "update-index", "--index-version", version, "--untracked-cache")
    git(repo, "status")
    tree = Tree(repo)
    (repo / "src/a").write_text("x\n")
    assert list(tree.scan()) == [b"src/a"]
    assert tree.tree == as_git_commits(repo)
    assert tree.scanner.install() == []
    assert b"UNTR" in (repo / ".git/index").read_bytes()


def test_fsmonitors_extension_survives(repo: Path, tmp_path: Path) -> None:
    hook = tmp_path / "monitor"
    hook.write_text("#!/bin/sh\nprintf 'token\\0/\\0'\n")
    hook.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(hook))
    git(repo, "update-index", "--fsmonitor")
    assert b"FSMN" in (repo / ".git/index").read_bytes()
    tree = Tree(repo)
    (repo / "src/a").write_text("x\n")
    assert list(tree.scan()) == [b"src/a"]
    tree.scanner.install()
    assert b"FSMN" in (repo / ".git/index").read_bytes()
    (repo / "src/a").write_text("y\n")
    git(repo, "status")
    tree.scan()
    tree.scanner.person.set_paths(list(tree.scan().values()))
    assert b"FSMN" in (repo / ".git/index").read_bytes()


def test_intent_to_add_is_taken_with_its_content(repo: Path) -> None:
    (repo / "new").write_text("content\n")
    git(repo, "add", "-N", "new")
    tree = Tree(repo)
    assert list(tree.scan()) == [b"new"]
    assert tree.blob(b"new") == b"content\n"


def test_libgit2_still_takes_intent_to_add_for_an_empty_file(repo: Path) -> None:
    (repo / "new").write_text("content\n")
    git(repo, "add", "-N", "new")
    opened = Repository.open(str(repo))
    tree = pygit2.Index(str(repo / ".git/index")).write_tree(opened.objects)
    assert lookup(opened.objects, Oid(str(tree)), b"new") is not None
    assert git(repo, "write-tree") != str(tree)


@pytest.mark.parametrize("make", ["split", "sparse"])
def test_libgit2_still_can_not_read_these(repo: Path, make: str, size: str) -> None:
    tree = Tree(repo)
    in_process = InProcess(tree.repo, tree.scanner.private)
    if size == "small":
        assert in_process.write_tree() is not None
    if make == "split":
        git(repo, "update-index", "--split-index")
    else:
        outside(repo)
        git(repo, "sparse-checkout", "set", "--cone", "--sparse-index", "src")
    tree.scanner.begin(tree.repo.tree_of(tree.repo.head()[1]))
    assert in_process.write_tree() is None
    assert in_process.is_untouched() is None


def test_a_big_index_is_left_to_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(repo)
    (repo / "src/a").write_text("x\n")
    small = tree.scanner.scan()
    monkeypatch.setattr("git_batch.repo.inprocess._MOST", 10)
    monkeypatch.setattr(pygit2, "Index", None)
    assert tree.scanner.scan() == small
    assert tree.scanner.changed_by_checks(small) == []


def test_an_index_is_read_once_until_it_is_another(repo: Path, size: str) -> None:
    """Also one of the same size."""
    tree = Tree(repo)
    private = Path(tree.scanner.private)
    in_process = InProcess(tree.repo, str(private))
    if size == "big":
        assert (in_process.write_tree(), in_process.is_untouched()) == (None, None)
        return
    first, index = in_process.write_tree(), in_process._index()
    assert in_process.is_untouched()
    assert in_process._index() is index
    (repo / "src/a").write_text("A\n")  # as long as before
    assert not in_process.is_untouched()
    tree.scan()
    assert in_process.write_tree() != first
    assert in_process.is_untouched()
    assert in_process._index() is not index
    private.unlink()
    assert (in_process.write_tree(), in_process.is_untouched()) == (None, None)


def test_no_index_at_all(repo: Path) -> None:
    (repo / ".git/index").unlink()
    tree = Tree(repo)
    assert tree.scan() == {}
    assert tree.scanner.install() == []
    assert git(repo, "status", "--porcelain") == ""


def test_what_was_staged_by_force_is_not_the_next_tasks(repo: Path) -> None:
    (repo / "x.log").write_text("ignored\n")
    git(repo, "add", "-f", "x.log")
    git(repo, "rm", "-q", "--cached", "src/b")
    tree = Tree(repo)
    assert tree.scan() == {}
    assert git(repo, "diff", "--cached", "--name-status").split() == ["D", "src/b", "A", "x.log"]


# Ignored, excluded, nested, unreadable


def test_ignored_files_that_are_named_are_taken(repo: Path) -> None:
    tree = Tree(repo)
    (repo / "x.log").write_text("x\n")
    (repo / "y.log").write_text("y\n")
    (repo / "link").symlink_to("/etc")
    assert sorted(tree.scan(b"x.log", b"no.log", b"link/passwd")) == [b"link", b"x.log"]


def test_excluded_paths_never_come_in(repo: Path, home: Path) -> None:
    names = [
        b"notes.txt",
        b"a b",
        b"#x",
        b"!y",
        b"star*",
        b"new\nline",
        b"back\\slash",
        b"t ",
        b"r\r",
    ]
    for name in names:
        (repo / os.fsdecode(name)).write_bytes(b"mine")
    (repo / "star1").write_text("the task's\n")
    (repo / "folder/deep").mkdir(parents=True)
    (repo / "folder/deep/x").write_text("mine\n")
    tree = Tree(repo, *names, b"folder/")
    assert list(tree.scan()) == [b"star1"]
    assert tree.checks() == {}
    (repo / "src/notes.txt").write_text("not at the top\n")
    assert list(tree.checks()) == [b"src/notes.txt"]


def test_excluded_paths_stay_out_when_the_repository_wants_them(repo: Path) -> None:
    (repo / "notes.txt").write_text("mine\n")
    (repo / "folder").mkdir()
    (repo / "folder/x").write_text("mine\n")
    tree = Tree(repo, b"notes.txt", b"folder/")
    (repo / ".gitignore").write_text("!*\n")
    assert list(tree.scan()) == [b".gitignore"]
    assert tree.checks() == {}
    assert tree.scanner.install() == []
    assert git(repo, "ls-files") == ".gitignore\nsrc/a\nsrc/b"


@pytest.mark.parametrize("where", ["config", "default"])
def test_the_persons_own_excludes_still_hold(repo: Path, home: Path, where: str) -> None:
    own = home / (".config/git/ignore" if where == "default" else "own ignores")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(b"*.swp")
    if where == "config":
        git(repo, "config", "--global", "core.excludesFile", "~/own ignores")
    (repo / "mine").write_text("m\n")
    tree = Tree(repo, b"mine")
    (repo / "x.swp").write_text("s\n")
    assert tree.scan() == {}


def test_a_huge_excluded_folder_is_not_entered(repo: Path) -> None:
    (repo / "huge").mkdir()
    for n in range(3000):
        (repo / f"huge/{n}").write_text("x")
    tree = Tree(repo, b"huge/")
    before = list((repo / ".git/objects").iterdir())
    started = time.perf_counter()
    assert tree.scan() == {}
    assert time.perf_counter() - started < 1
    assert list((repo / ".git/objects").iterdir()) == before


def test_a_nested_repository_is_one_entry(repo: Path) -> None:
    tree = Tree(repo)
    git(repo, "init", "-q", "sub")
    for n in range(500):
        (repo / f"sub/{n}").write_text("x")
    git(repo / "sub", "commit", "-qm", "s", "--allow-empty")
    (change,) = tree.scan().values()
    assert (change.path, change.new_mode, change.is_gitlink) == (b"sub", 0o160000, True)
    assert tree.checks() == {}


def test_what_git_can_not_take_is_named_and_the_rest_is_taken(repo: Path) -> None:
    tree = Tree(repo)
    git(repo, "init", "-q", "sub")
    (repo / "sub/x").write_text("x\n")
    (repo / "src/a").unlink()
    os.mkfifo(repo / "src/a")
    os.mkfifo(repo / "new-fifo")
    (repo / "src/new").write_text("new\n")
    assert list(tree.scan()) == [b"src/new"]
    assert sorted(tree.scanner.problems) == [b"src/a", b"sub/"]
    assert tree.checks() == {}, "the checks did not make them"
    (repo / "src/more").write_text("more\n")
    assert list(tree.checks()) == [b"src/more"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_named(repo: Path) -> None:
    tree = Tree(repo)
    (repo / "src/new").write_text("new\n")
    (repo / "src/new").chmod(0)
    assert tree.scan() == {}
    assert tree.scanner.problems == (b"src/new",)


def test_sockets_do_not_hang_it(repo: Path) -> None:
    tree = Tree(repo)
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(repo)
        try:
            listener.bind("s")
        finally:
            os.chdir(here)
        assert tree.scan() == {}


def test_a_dirty_submodule_counts_once_its_head_moves(repo: Path) -> None:
    git(repo, "clone", "-q", str(repo), "sub")
    git(repo, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    git(repo, "commit", "-qm", "sub")
    tree = Tree(repo)
    (repo / "sub/src/a").write_text("dirt\n")
    assert tree.scan() == {}
    assert tree.checks() == {}
    git(repo / "sub", "commit", "-qam", "moved")
    assert tree.checks()[b"sub"].is_gitlink
    assert tree.scan()[b"sub"].kind is Kind.CHANGED


def test_symbolic_links_are_not_followed(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("s\n")
    tree = Tree(repo)
    (repo / "src/a").unlink()
    (repo / "src/b").unlink()
    (repo / "src").rmdir()
    (repo / "src").symlink_to(tmp_path / "outside")
    found = tree.scan(b"src/secret")
    assert sorted(found) == [b"src", b"src/a", b"src/b"]
    assert found[b"src"].is_symlink


# The second scan


def test_what_the_checks_changed(repo: Path) -> None:
    tree = Tree(repo)
    (repo / "src/a").write_text("task\n")
    (repo / "src/new").write_text("task\n")
    tree.scan()
    (repo / "src/new").write_text("check\n")
    (repo / "src/b").unlink()
    (repo / "out").mkdir()
    (repo / "out/report").write_text("r\n")
    (repo / "x.log").write_text("ignored\n")
    found = tree.checks()
    assert {path: change.kind for path, change in found.items()} == {
        b"src/new": Kind.CHANGED,
        b"src/b": Kind.DELETED,
        b"out/report": Kind.CREATED,
    }


def test_another_tree_is_compared_by_a_full_scan(repo: Path) -> None:
    tree = Tree(repo)
    (repo / "src/a").write_text("task\n")
    tree.scan()
    assert paths_of(tree.scanner.changed_by_checks(tree.tip)) == [b"src/a"]


# How much it costs


def test_one_walk_per_scan(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    tree = Tree(repo)
    log = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(log))
    scanner = Scanner(Repository.open(str(repo)))
    scanner.begin(tree.tip)
    log.write_text("")

    def commands() -> list[str]:
        events = [json.loads(line) for line in log.read_text().splitlines()]
        log.write_text("")
        return [event["name"] for event in events if event["event"] == "cmd_name"]

    big = size == "big"
    for n in range(3):
        (repo / "src/a").write_text(f"{n}\n")
        tip = scanner.scan()
        assert commands() == (["add", "write-tree"] if big else ["add"])
        index = Path(scanner.private).read_bytes()
        scanner.changed_by_checks(tip)
        assert commands() == (["status"] if big else []), "nothing changed: nothing is written"
        assert Path(scanner.private).read_bytes() == index
        scanner.install()
        scanner.begin(tip)
        assert commands() == []


def test_scan_needs_begin(repo: Path) -> None:
    scanner = Scanner(Repository.open(str(repo)))
    with pytest.raises(ValueError, match="without begin"):
        scanner.scan()
    with pytest.raises(ValueError, match="without scan"):
        scanner.install()


def test_a_stale_lock_of_ours_is_no_obstacle(repo: Path) -> None:
    tree = Tree(repo)
    Path(tree.scanner.private + ".lock").write_text("")
    tree.scanner.begin(tree.tip)
    (repo / "src/a").write_text("x\n")
    assert list(tree.scan()) == [b"src/a"]


# Trees


def test_diff_against_git(repo: Path) -> None:
    for n in range(120):
        folder = repo / f"d{n % 7}" / f"e{n % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{n}").write_text(f"{n}\n")
    git(repo, "add", "-A")
    one = git(repo, "write-tree")
    for n in range(0, 120, 9):
        (repo / f"d{n % 7}/e{n % 3}/f{n}").unlink()
    (repo / "d1/e1/f1").write_text("changed\n")
    (repo / "d5/g").symlink_to("x")
    (repo / "src/a").chmod(0o755)
    git(repo, "add", "-A")
    two = git(repo, "write-tree")
    objects = Repository.open(str(repo)).objects
    for old, new in ((one, two), (two, one), (EMPTY_TREE, two), (two, EMPTY_TREE)):
        raw = git(repo, "diff-tree", "-r", "--no-renames", "--no-abbrev", old, new).splitlines()
        mine = [
            f":{c.old_mode:06o} {c.new_mode:06o} {c.old_oid or '0' * 40} {c.new_oid or '0' * 40}"
            for c in diff(objects, Oid(old), Oid(new))
        ]
        assert mine == [line.rsplit(" ", 1)[0] for line in raw]
        back = [change.reversed() for change in diff(objects, Oid(new), Oid(old))]
        assert back == diff(objects, Oid(old), Oid(new))


def test_diff_of_what_is_not_there(repo: Path) -> None:
    opened = Repository.open(str(repo))
    commit = opened.head()[1]
    with pytest.raises(GitError, match="can't read tree"):
        diff(opened.objects, Oid("1" * 40), EMPTY_TREE)
    with pytest.raises(GitError, match="is not a tree"):
        diff(opened.objects, commit, EMPTY_TREE)
    assert lookup(opened.objects, opened.tree_of(commit), b"src/a/no") is None
    assert lookup(opened.objects, opened.tree_of(commit), b"src") is not None


def test_patterns() -> None:
    assert pattern(b"a b/[x]*?\\") == b"/a\\ b/\\[x]\\*\\?\\\\"
    assert pattern(b"a\nb") is None
    assert pattern(b"folder/") == b"/folder/"


# The acceptance cases, as far as they are seen from here


def commit_itself(top: Path) -> None:
    (top / "README").write_text("r\n")
    git(top, "add", "README")
    git(top, "commit", "-qm", "mine")


def nested(top: Path) -> None:
    git(top, "init", "-q", "sub")
    git(top / "sub", "commit", "-qm", "s", "--allow-empty")


def link_and_mode(top: Path) -> None:
    (top / "src/link").symlink_to("/etc")
    (top / "src/a").chmod(0o755)


@pytest.mark.parametrize(
    ("work", "strays"),
    [
        (lambda top: (top / "README").write_text("r\n"), [b"README"]),
        (lambda top: (top / ".gitignore").write_text("evil\n"), [b".gitignore"]),
        (nested, [b"sub"]),
        (commit_itself, [b"README"]),
        (link_and_mode, [b"src/a", b"src/link"]),
        (lambda top: (top / "src/../.gitignore").unlink(), [b".gitignore"]),
        (lambda top: git(top, "rm", "-q", "--cached", "src/a"), []),
    ],
)
def test_every_stray_path_is_seen(
    repo: Path, work: Callable[[Path], object], strays: list[bytes]
) -> None:
    tree = Tree(repo)
    (repo / "src/ok").write_text("ok\n")
    work(repo)
    assert sorted(tree.scan()) == sorted([b"src/ok", *strays])


def test_a_task_that_commits_leaves_an_index_that_agrees(repo: Path) -> None:
    tree = Tree(repo)
    (repo / "src/a").write_text("one\n")
    commit_itself(repo)
    (repo / "src/b").write_text("two\n")
    assert sorted(tree.scan()) == [b"README", b"src/a", b"src/b"]
    assert tree.scanner.install() == []
    assert git(repo, "write-tree") == tree.tree


def test_a_folder_in_the_scope_does_not_drag_in_what_is_ignored_in_it(repo: Path) -> None:
    tree = Tree(repo)
    (repo / "src/x.log").write_text("ignored\n")
    (repo / "src/a").write_text("task\n")
    assert set(tree.scan(b"src")) == {b"src/a"}
    assert set(tree.scan(b"src", b"src/x.log")) == {b"src/a", b"src/x.log"}


def test_what_libgit2_sees_is_looked_at_again_by_git(repo: Path, tmp_path: Path) -> None:
    tree = Tree(repo)
    (repo / "src/a").write_text("task\n")
    tree.scan()
    (repo / "src/new").write_text("check\n")
    assert list(tree.checks()) == [b"src/new"]


def test_a_filter_that_libgit2_does_not_run_is_no_change_by_a_check(repo: Path) -> None:
    git(repo, "config", "filter.up.clean", "tr a-z A-Z")
    git(repo, "config", "filter.up.smudge", "tr A-Z a-z")
    (repo / ".gitattributes").write_text("*.t filter=up\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "filter")
    tree = Tree(repo)
    (repo / "z.t").write_text("lower\n")
    tree.scan()
    os.utime(repo / "z.t")  # as young as the index, or younger: its content has to be looked at
    assert tree.checks() == {}


@pytest.mark.parametrize("length", [1, 2])
def test_an_edit_of_the_same_size_right_after_the_scan_is_seen(repo: Path, length: int) -> None:
    tree = Tree(repo)
    for n in range(20):
        (repo / "src/a").write_text(f"{n % 10}" * length)
        tree.scan()
        (repo / "src/a").write_text(f"{(n + 1) % 10}" * length)
        assert list(tree.checks()) == [b"src/a"], n
