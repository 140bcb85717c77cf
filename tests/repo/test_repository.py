"""Which repository it is, what is refused and why, and what counts as clean."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from git_batch.core.model import Actor
from git_batch.errors import PreconditionError, UsageError
from git_batch.repo import operations
from git_batch.repo.git import Git, Result
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository, discover
from tests.conftest import git


def test_from_the_top_and_from_below(repo: Path) -> None:
    for start in (repo, repo / "src"):
        layout = discover(str(start))
        assert (layout.top, layout.git_dir) == (str(repo), str(repo / ".git"))
        assert layout.common_dir == layout.git_dir
        assert layout.index == str(repo / ".git/index")


def test_one_process_finds_it(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    real = Git.call

    def count(self: Git, *args: object, **options: object) -> Result:
        calls.append(args)
        return real(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "call", count)
    discover(str(repo))
    assert len(calls) == 1


def test_finding_it_does_not_load_libgit2(repo: Path) -> None:
    code = (
        "import sys; from git_batch.repo.repository import discover;"
        f"discover({str(repo)!r}); sys.exit('pygit2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_a_linked_worktree(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"))
    opened = Repository.open(str(tmp_path / "other"))
    assert opened.layout.git_dir == str(repo / ".git/worktrees/other")
    assert opened.layout.common_dir == str(repo / ".git")
    assert opened.head()[0] == "refs/heads/other"
    assert opened.scratch == str(repo / ".git/worktrees/other/batch")
    assert not opened.dirty()


def test_scratch_is_private(repo: Path) -> None:
    assert Path(Repository.open(str(repo)).scratch).stat().st_mode & 0o777 == 0o700


# What the environment says


def test_variables_of_a_hook_say_nothing_new(repo: Path) -> None:
    found = discover(str(repo / "src"), {"GIT_DIR": str(repo / ".git"), "GIT_INDEX_FILE": "x"})
    assert found.top == str(repo)
    assert discover(str(repo), {"GIT_DIR": ".git"}).top == str(repo)


def test_run_by_a_real_hook(repo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    root = Path(__file__).parents[2]
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text(
        f"#!/bin/sh\nPYTHONPATH={root} {sys.executable} -c 'import os\n"
        "from git_batch.repo.repository import Repository\n"
        'os.chdir("src")\nr = Repository.open(); print(r.layout.top, bool(r.dirty()))\''
        f" >{out}\n"
    )
    hook.chmod(0o755)
    (repo / "src/a").write_text("changed\n")
    git(repo, "commit", "-qam", "x")
    assert out.read_text() == f"{repo} True\n"


def test_another_git_dir_is_honoured(repo: Path, tmp_path: Path) -> None:
    other, plain = tmp_path / "dotfiles", tmp_path / "plain"
    (repo / ".git").rename(other)
    plain.mkdir()
    named = {"GIT_DIR": str(other), "GIT_WORK_TREE": str(repo)}
    assert discover(str(repo), named).git_dir == str(other)
    layout = discover(str(plain), named | {"GIT_WORK_TREE": str(plain)})
    assert (layout.top, layout.git_dir) == (str(plain), str(other))


def test_a_git_dir_that_is_none(repo: Path, tmp_path: Path) -> None:
    assert discover(str(repo), {"GIT_DIR": str(tmp_path / "no")}).top == str(repo)
    with pytest.raises(PreconditionError):
        discover(str(tmp_path), {"GIT_DIR": str(tmp_path / "no")})


# What is refused


def refused(start: Path) -> PreconditionError:
    with pytest.raises(PreconditionError) as caught:
        Repository.open(str(start)).head()
    assert caught.value.hints
    return caught.value


def test_no_repository(tmp_path: Path) -> None:
    assert refused(tmp_path).message == f"'{tmp_path}' is not in a git repository"


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        discover(str(tmp_path / "no"))


def test_a_bare_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "b")
    assert "bare repository" in refused(tmp_path / "b").message


def test_inside_of_the_git_directory(repo: Path) -> None:
    assert "not inside a working tree" in refused(repo / ".git").message


def test_no_commit_yet(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "r")
    assert "no commit yet" in refused(tmp_path / "r").message


def test_sha256(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "r")
    assert "object format 'sha256'" in refused(tmp_path / "r").message


@pytest.mark.parametrize("value", ["refStorage=reftable", "strange=1"])
def test_an_extension_that_nobody_knows(repo: Path, value: str) -> None:
    name, _, setting = value.partition("=")
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", f"extensions.{name}", setting)
    assert f"'extensions.{name.lower()}'" in refused(repo).message


def test_an_extension_that_only_libgit2_does_not_know(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Repository.open(str(repo))
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "extensions.refStorage", "reftable")
    with pytest.raises(PreconditionError, match=r"'extensions\.refstorage'"):
        _ = opened.objects


def test_a_format_of_the_future(repo: Path) -> None:
    git(repo, "config", "core.repositoryFormatVersion", "7")
    assert "expected git repo version" in refused(repo).message.lower()


def test_another_users(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    error = refused(repo)
    assert "belongs to another user" in error.message
    assert "safe.directory" in error.hints[0]
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")


def test_a_partial_clone_works(repo: Path) -> None:
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "extensions.partialClone", "origin")
    assert Repository.open(str(repo)).head()[0] == "refs/heads/main"


def test_a_shallow_clone_works(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "s")
    assert Repository.open(str(tmp_path / "s")).head()[0] == "refs/heads/main"


# HEAD and identity


def test_head(repo: Path) -> None:
    opened = Repository.open(str(repo))
    oid = git(repo, "rev-parse", "HEAD")
    assert opened.head() == ("refs/heads/main", oid)
    assert opened.tree_of(opened.head()[1]) == git(repo, "rev-parse", "HEAD^{tree}")
    git(repo, "checkout", "-q", "--detach")
    assert opened.head() == (None, oid)


def test_identity_from_the_configuration(repo: Path) -> None:
    assert Repository.open(str(repo)).identity() == Actor("T", "t@x")


def test_identity_from_the_environment_only(
    repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".gitconfig").write_text("")
    for role, name in (("AUTHOR", "Ada"), ("COMMITTER", "Bob")):
        monkeypatch.setenv(f"GIT_{role}_NAME", name)
        monkeypatch.setenv(f"GIT_{role}_EMAIL", f"{name}@x")
    opened = Repository.open(str(repo))
    assert opened.identity("author") == Actor("Ada", "Ada@x")
    assert opened.identity("committer") == Actor("Bob", "Bob@x")


def test_no_identity(repo: Path, home: Path) -> None:
    (home / ".gitconfig").write_text("")
    with pytest.raises(PreconditionError, match="does not know who you are") as caught:
        Repository.open(str(repo)).identity()
    assert [hint.split()[3] for hint in caught.value.hints] == ["user.name", "user.email"]


def test_identity_of_any_bytes(repo: Path, home: Path) -> None:
    (home / ".gitconfig").write_bytes(b"[user]\n name = \xe9\n email = e@x\n")
    assert os.fsencode(Repository.open(str(repo)).identity().name) == b"\xe9"


# Clean or not


def conflict(repo: Path) -> None:
    git(repo, "checkout", "-qb", "side")
    (repo / "src/a").write_text("side\n")
    git(repo, "commit", "-qam", "side")
    git(repo, "checkout", "-q", "main")
    (repo / "src/a").write_text("main\n")
    git(repo, "commit", "-qam", "main")


def stopped(repo: Path, *command: str) -> None:
    conflict(repo)
    result = subprocess.run(["git", *command], cwd=repo, capture_output=True, check=False)
    assert result.returncode


def mail(repo: Path) -> None:
    conflict(repo)
    (repo / "p").write_text(git(repo, "format-patch", "-1", "--stdout", "side"))
    result = subprocess.run(["git", "am", "p"], cwd=repo, capture_output=True, check=False)
    assert result.returncode


def stash(repo: Path) -> None:
    (repo / "src/a").write_text("stashed\n")
    git(repo, "stash", "-q")
    (repo / "src/a").write_text("main\n")
    git(repo, "commit", "-qam", "main")
    subprocess.run(["git", "stash", "pop"], cwd=repo, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("merge", lambda repo: stopped(repo, "merge", "side")),
        ("rebase", lambda repo: stopped(repo, "rebase", "side")),
        ("rebase", lambda repo: stopped(repo, "rebase", "--apply", "side")),
        ("cherry-pick", lambda repo: stopped(repo, "cherry-pick", "side")),
        ("revert", lambda repo: stopped(repo, "revert", "side")),
        ("bisect", lambda repo: git(repo, "bisect", "start")),
        ("am", mail),
        ("unresolved conflict", stash),
    ],
)
def test_an_operation_in_progress(repo: Path, name: str, make: Callable[[Path], object]) -> None:
    opened = Repository.open(str(repo))
    assert operations.in_progress(opened) is None
    assert operations.conflict(opened) is None
    make(repo)
    found = operations.in_progress(opened) or operations.conflict(opened)
    assert found is not None
    assert found.name == name
    assert found.hints
    assert not any(word in hint for hint in found.hints for word in ("--abort", "--hard", "rm "))


def test_a_scan_tells_a_conflict_as_the_index_does(repo: Path) -> None:
    opened = Repository.open(str(repo))
    stash(repo)
    assert operations.conflict_in(opened.dirty()) == operations.conflict(opened) is not None


def test_a_touched_tree_is_clean(repo: Path) -> None:
    opened = Repository.open(str(repo))
    before = (repo / ".git/index").read_bytes()
    for file in (repo / "src").iterdir():
        os.utime(file, (1, 1))
    assert not opened.dirty()
    assert (repo / ".git/index").read_bytes() == before, "nothing is written before the answer"


def test_dirt_is_listed(repo: Path) -> None:
    (repo / "src/a").write_text("z\n")
    (repo / "src/b").unlink()
    (repo / "staged").write_text("s\n")
    git(repo, "add", "staged")
    (repo / "promised").write_text("s\n")
    git(repo, "add", "-N", "promised")
    (repo / "tmp").mkdir()
    (repo / "tmp/handoff.md").write_text("h\n")
    (repo / "x.log").write_text("ignored\n")
    (repo / os.fsdecode(b"caf\xe9\n")).write_text("u\n")
    dirt = Repository.open(str(repo)).dirty()
    assert dirt
    assert [(e.path, e.staged + e.unstaged) for e in dirt.tracked] == [
        (b"promised", ".A"),
        (b"src/a", ".M"),
        (b"src/b", ".D"),
        (b"staged", "A."),
    ]
    assert dirt.untracked == (b"caf\xe9\n", b"tmp/")


def test_a_persons_status_settings_change_nothing(repo: Path) -> None:
    for name, value in {
        "status.showUntrackedFiles": "no",
        "status.renames": "copies",
        "status.branch": "true",
        "status.showStash": "true",
        "status.relativePaths": "true",
    }.items():
        git(repo, "config", name, value)
    git(repo, "mv", "src/a", "src/c")
    (repo / "new").write_text("n\n")
    dirt = Repository.open(str(repo)).dirty()
    assert [entry.path for entry in dirt.tracked] == [b"src/a", b"src/c"]
    assert dirt.untracked == (b"new",)


def test_conflicts_are_dirt(repo: Path) -> None:
    stopped(repo, "merge", "side")
    (entry,) = Repository.open(str(repo)).dirty().tracked
    assert (entry.path, entry.unmerged, entry.untracked) == (b"src/a", True, False)


def test_a_dirty_submodule_is_dirt(repo: Path) -> None:
    git(repo, "clone", "-q", str(repo), "sub")
    git(repo, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    git(repo, "commit", "-qm", "sub")
    git(repo, "config", "diff.ignoreSubmodules", "all")
    opened = Repository.open(str(repo))
    assert not opened.dirty()
    (repo / "sub/src/a").write_text("dirt\n")
    (entry,) = opened.dirty().tracked
    assert (entry.path, entry.submodule) == (b"sub", ".M.")


def test_of_a_longer_name_put_into_head_only_the_beginning_was_read(repo: Path) -> None:
    """libgit2 asks for the size of a file before it opens it."""
    git(repo, "branch", "other/branch")
    opened = Repository.open(str(repo))
    refs, over = Refs(opened), threading.Event()
    names = ("refs/heads/main", "refs/heads/other/branch")

    def switch() -> None:
        place, n = repo / ".git/HEAD", 0
        while not over.is_set():
            (repo / ".git/HEAD.new").write_text(f"ref: {names[n % 2]}\n")
            (repo / ".git/HEAD.new").rename(place)
            n += 1

    switching = threading.Thread(target=switch)
    switching.start()
    try:
        tip = refs.read(names[0])
        for _ in range(3000):
            assert opened.head() in {(name, tip) for name in names}
            assert refs.read("HEAD") == tip
    finally:
        over.set()
        switching.join()
