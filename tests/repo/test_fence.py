"""The watch over what git runs, and the list of refs: what they notice, cost, and put back."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_batch.errors import GitError
from git_batch.repo import reflist
from git_batch.repo.fence import Watch
from git_batch.repo.known import KEPT_MOST
from git_batch.repo.reflist import RefList
from git_batch.repo.repository import Repository
from tests.conftest import git


def watch(repo: Path) -> Watch:
    found = Watch(Repository.open(str(repo)))
    found.note()
    return found


def listed(repo: Path) -> RefList:
    found = RefList(Repository.open(str(repo)).layout)
    found.note()
    return found


def names(repo: Path, found: list[str]) -> list[str]:
    return [os.path.relpath(path, repo) for path in found]


def test_nothing_changed_is_nothing(repo: Path) -> None:
    found = watch(repo)
    assert found.changed() == []
    os.utime(repo / ".git/config")
    (repo / ".git/config").touch()
    assert found.changed() == []


EDITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "config": (lambda g: git(g.parent, "config", "a.b", "c"), ".git/config"),
    "worktree config": (lambda g: (g / "config.worktree").touch(), ".git/config.worktree"),
    "attributes": (lambda g: (g / "info/attributes").write_text("x"), ".git/info/attributes"),
    "exclude": (lambda g: (g / "info/exclude").write_text("x"), ".git/info/exclude"),
    "hook": (lambda g: (g / "hooks/pre-push").touch(), ".git/hooks/pre-push"),
    "folder of hooks": (lambda g: (g / "hooks/d").mkdir(), ".git/hooks/d"),
    "working trees": (lambda g: (g / "worktrees/x").mkdir(parents=True), ".git/worktrees/x"),
}


@pytest.mark.parametrize(("edit", "name"), EDITS.values(), ids=EDITS)
def test_a_change_is_noticed_and_forgotten_once_it_is_noted(
    repo: Path, edit: Callable[[Path], object], name: str
) -> None:
    found = watch(repo)
    edit(repo / ".git")
    assert names(repo, found.changed()) == [name]
    found.note()
    assert found.changed() == []


def test_a_sample_is_no_hook(repo: Path) -> None:
    found = watch(repo)
    (repo / ".git/hooks/pre-commit.sample").write_text("#!/bin/sh\n")
    assert found.changed() == []


def test_an_edit_in_place_within_the_same_tick_is_noticed(repo: Path) -> None:
    config = repo / ".git/config"
    for _ in range(20):
        found = watch(repo)
        before, times = config.read_bytes(), config.stat()
        with config.open("r+b") as file:
            file.write(before[:1].swapcase() + before[1:].swapcase())
        os.utime(config, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert names(repo, found.changed()) == [".git/config"]
        config.write_bytes(before)


def test_whatever_is_included_is_watched_also_if_it_comes_to_be_later(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    (repo / ".git/more").write_text("[include]\n\tpath = deeper\n")
    git(repo, "config", "include.path", "more")
    git(repo, "config", "--global", "include.path", str(tmp_path / "absent"))
    git(repo, "config", "includeIf.onbranch:no.path", "~/later")
    found = watch(repo)
    (repo / ".git/deeper").write_text("[a]\n\tb = c\n")
    (tmp_path / "absent").write_text("[a]\n\tb = c\n")
    (home / "later").write_text("[a]\n\tb = c\n")
    expected = [str(repo / ".git/deeper"), str(tmp_path / "absent"), str(home / "later")]
    assert found.changed() == sorted(expected)


def test_what_a_link_leads_to_is_watched(repo: Path, home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / ".gitconfig").rename(home / "dotfiles/config")
    (home / ".gitconfig").symlink_to("dotfiles/config")
    found = watch(repo)
    git(repo, "config", "--global", "a.b", "c")
    assert found.changed() == [str(home / "dotfiles/config")]


@pytest.mark.parametrize("size", [10, KEPT_MOST, KEPT_MOST + 1])
def test_a_file_is_put_back_with_content_and_mode_unless_it_is_huge(repo: Path, size: int) -> None:
    hook = repo / ".git/hooks/pre-push"
    hook.write_bytes(b"x" * size)
    hook.chmod(0o750)
    found = watch(repo)
    hook.write_bytes(b"evil")
    hook.chmod(0o600)
    (back,) = found.put_back(found.changed())
    assert back.done == (size <= KEPT_MOST)
    if back.done:
        assert hook.read_bytes() == b"x" * size
        assert hook.stat().st_mode & 0o777 == 0o750
        assert back.kept is not None
        assert Path(back.kept).read_bytes() == b"evil"
        assert found.changed() == []
    else:
        assert hook.read_bytes() == b"evil"


def test_nothing_is_written_through_a_link(repo: Path, tmp_path: Path) -> None:
    (repo / ".git/info/exclude").write_text("mine\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    found = watch(repo)
    (repo / ".git/info").rename(repo / ".git/away")
    (repo / ".git/info").symlink_to(outside)
    found.put_back(found.changed())
    assert list(outside.iterdir()) == []
    assert (repo / ".git/info/exclude").read_text() == "mine\n"
    assert not (repo / ".git/info").is_symlink()


def test_what_lies_outside_is_left_and_git_gets_what_was_there(repo: Path, home: Path) -> None:
    git(repo, "config", "--global", "alias.x", 'a "b"\\c\n\td')
    git(repo, "config", "--global", "url.git@host:.insteadOf", "https://host/")
    opened = Repository.open(str(repo))
    found = Watch(opened)
    found.note()
    before = opened.git.run(["config", "--list", "-z"])
    git(repo, "config", "--global", "core.fsmonitor", "evil")
    (back,) = found.put_back(found.changed())
    assert not back.done
    assert "evil" in (home / ".gitconfig").read_text()
    assert opened.git.run(["config", "--list", "-z"]) == before


def test_without_a_git_directory_there_is_nothing_to_put_back_into(repo: Path) -> None:
    found = watch(repo)
    (repo / ".git").rename(repo / "gone")
    with pytest.raises(GitError, match="no git directory"):
        found.still_there()


# --- refs -----------------------------------------------------------------------------------------


def moved(repo: Path, act: Callable[[], object]) -> reflist.Moves:
    found = listed(repo)
    act()
    return found.moved()


def test_every_kind_of_move_is_listed_with_both_values(repo: Path) -> None:
    old = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", "gone")
    git(repo, "branch", "packed")
    git(repo, "pack-refs", "--all")
    git(repo, "branch", "loose")
    found = listed(repo)
    git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    new = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", "-q", "-D", "gone")
    git(repo, "branch", "-q", "-f", "packed", new)
    (repo / ".git/refs/heads/loose").write_text(f"{new}\n")
    git(repo, "tag", "made")
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    expected: reflist.Moves = {
        "refs/heads/main": (old, new),
        "refs/heads/gone": (old, None),
        "refs/heads/packed": (old, new),
        "refs/heads/loose": (old, new),
        "refs/tags/made": (None, new),
        "refs/remotes/origin/HEAD": (None, "ref: refs/remotes/origin/main"),
    }
    assert found.moved() == expected
    assert found.moved() == expected
    found.note()
    assert found.moved() == {}


def test_packing_moves_nothing(repo: Path) -> None:
    git(repo, "branch", "other")
    assert moved(repo, lambda: git(repo, "pack-refs", "--all")) == {}
    assert moved(repo, lambda: git(repo, "gc", "-q")) == {}


def test_a_move_in_place_within_the_same_tick_is_noticed(repo: Path) -> None:
    path = repo / ".git/refs/heads/main"
    for text in ("1" * 40, "2" * 40, "3" * 40):
        found, times = listed(repo), path.stat()
        with path.open("r+") as file:
            file.write(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert found.moved()["refs/heads/main"][1] == text


def test_what_went_wrong_in_a_file_system_that_tells_whole_seconds_a_second_change_was_missed(
    repo: Path,
) -> None:
    """A file that was changed at 10.9 says 10.0, also when it is changed again at 10.99."""
    state, second = (repo / ".git/refs").stat(), 1_000_000_000

    def changed(at: int) -> os.stat_result:
        values: Any = state.__reduce__()[1]
        return os.stat_result(values[0], {**values[1], "st_ctime_ns": at})

    now = 1_000 * second
    assert reflist.is_racy(changed(now), now + second)
    assert reflist.is_racy(changed(now), now + 2 * second)
    assert not reflist.is_racy(changed(now), now + 3 * second)
    assert not reflist.is_racy(changed(now + 1), now + second)
    assert reflist.is_racy(changed(now + 1), now)


def _forged(refs: Path) -> None:
    """Make a ref, and set the times of its folder to what they were."""
    was = (refs / "heads/deep").stat()
    (refs / "heads/deep/forged").write_text("1" * 40)
    os.utime(refs / "heads/deep", ns=(was.st_atime_ns, was.st_mtime_ns))


def _linked(refs: Path) -> None:
    """Put a link in the place of a folder: what it leads to are no refs of ours."""
    (refs / "heads/deep").rename(refs.parent / "deep")
    (refs / "heads/deep").symlink_to(refs.parent / "deep")


def _replaced(refs: Path) -> None:
    (refs / "heads/deep").rename(refs / "heads/d")
    (refs / "heads/deep").mkdir()


def _emptied(refs: Path) -> None:
    refs.rename(refs.parent / "other")
    refs.mkdir()


COMES_AND_GOES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "beside another": (
        lambda refs: (refs / "heads/deep/new").write_text("1" * 40),
        {"refs/heads/deep/new"},
    ),
    "forged times": (_forged, {"refs/heads/deep/forged"}),
    "in a new folder": (
        lambda refs: git(refs.parent.parent, "update-ref", "refs/x/y/z", "HEAD"),
        {"refs/x/y/z"},
    ),
    "removed": (lambda refs: (refs / "heads/deep/old").unlink(), {"refs/heads/deep/old"}),
    "with its folder": (lambda refs: shutil.rmtree(refs / "heads/deep"), {"refs/heads/deep/old"}),
    "another folder in its place": (_replaced, {"refs/heads/deep/old", "refs/heads/d/old"}),
    "link in its place": (_linked, {"refs/heads/deep/old"}),
    "all of them": (_emptied, {"refs/heads/main", "refs/heads/deep/old"}),
}


@pytest.mark.parametrize(("edit", "names"), COMES_AND_GOES.values(), ids=COMES_AND_GOES)
def test_a_ref_that_comes_or_goes_is_noticed_in_folders_that_were_as_they_are_for_long(
    repo: Path, edit: Callable[[Path], object], names: set[str]
) -> None:
    git(repo, "branch", "deep/old")
    time.sleep(reflist.RACY / 1e9)
    found = listed(repo)
    assert found.moved() == {}
    edit(repo / ".git/refs")
    assert set(found.moved()) == names


def test_what_went_wrong_a_ref_that_is_a_link_moved_unseen_with_the_file_it_leads_to(
    repo: Path,
) -> None:
    (repo / ".git/aside").write_text("1" * 40)
    (repo / ".git/refs/heads/link").symlink_to(repo / ".git/aside")
    time.sleep(reflist.RACY / 1e9)
    found = listed(repo)
    (repo / ".git/aside").write_text("2" * 40)
    assert found.moved() == {"refs/heads/link": ("1" * 40, "2" * 40)}


def test_folders_that_are_as_they_were_are_not_listed_again(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repo, "branch", "deep/old")
    time.sleep(reflist.RACY / 1e9)
    found = listed(repo)

    def refused(folder: str) -> object:
        raise AssertionError(f"'{folder}' was listed again")

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        assert found.moved() == {}


def test_a_working_tree_has_refs_of_its_own(repo: Path, tmp_path: Path) -> None:
    side = tmp_path / "side"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    here, there = listed(side), listed(repo)
    git(side, "update-ref", "refs/worktree/x", "HEAD")
    git(repo, "update-ref", "refs/worktree/y", "HEAD")
    git(side, "update-ref", "refs/heads/z", "HEAD")
    assert set(here.moved()) == {"refs/worktree/x", "refs/heads/z"}
    assert set(there.moved()) == {"refs/worktree/y", "refs/heads/z"}


def test_twenty_thousand_refs_cost_next_to_nothing_once_they_are_packed(repo: Path) -> None:
    oid = git(repo, "rev-parse", "HEAD")
    lines = "".join(f"create refs/heads/x/{n} {oid}\n" for n in range(20_000))
    subprocess.run(["git", "update-ref", "--stdin"], cwd=repo, input=lines.encode(), check=True)
    git(repo, "pack-refs", "--all")
    time.sleep(reflist.RACY / 1e9)
    found = listed(repo)
    begun = time.process_time()
    for _ in range(10):
        found.note()
        assert found.moved() == {}
    assert time.process_time() - begun < 0.1
    git(repo, "branch", "-q", "-D", "x/7")
    begun = time.process_time()
    assert found.moved() == {"refs/heads/x/7": (oid, None)}
    assert time.process_time() - begun < 0.2
