"""Install, uninstall and status: beside what is there, and the truth about what git runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from git_batch.hooks.install import CLIENT, SERVER
from tests.conftest import git
from tests.hooks.hosts import TELLS, active, call, contents, hooks, write_hook
from tests.hooks.pushing import no_tool

if TYPE_CHECKING:
    from collections.abc import Callable

ALL = dict.fromkeys(CLIENT, True)
NONE = dict.fromkeys(CLIENT, False)


def test_nothing_is_installed_at_first(repo: Path) -> None:
    assert "not installed" in hooks(repo, "status", status=3)
    assert active(repo) == NONE


def test_install_makes_all_active_and_can_be_repeated(repo: Path) -> None:
    hooks(repo, "install")
    assert active(repo) == ALL
    before = contents(repo / ".git/hooks")
    assert "installed already" in hooks(repo, "install")
    assert contents(repo / ".git/hooks") == before


def test_older_version_is_brought_up_to_date(repo: Path) -> None:
    write_hook(repo / ".git/hooks/pre-push")
    hooks(repo, "install")
    before = contents(repo / ".git/hooks")
    shim = repo / ".git/hooks/pre-push"
    shim.write_text(shim.read_text().replace("set -u", "set -eu"))
    (repo / ".git/hooks/git-batch.sh").write_text("python=/old\n")
    assert "brought up to date" in hooks(repo, "install")
    assert contents(repo / ".git/hooks") == before


def test_a_folder_that_is_no_utf8_made_the_status_of_hooks_no_json(
    repo: Path, tmp_path: Path
) -> None:
    folder = repo.rename(tmp_path / os.fsdecode(b"caf\xe9"))
    hooks(folder, "install")
    assert active(folder) == ALL
    assert f"'\"{tmp_path}/caf\\351/.git/hooks\"'" in hooks(folder, "status")


def plain(hook: Path) -> None:
    write_hook(hook)


def odd_mode(hook: Path) -> None:
    write_hook(hook, mode=0o4750)


def not_executable(hook: Path) -> None:
    write_hook(hook, mode=0o644)


def symlink(hook: Path) -> None:
    write_hook(hook.parent / "shared")
    hook.symlink_to("shared")


def dangling(hook: Path) -> None:
    hook.symlink_to("nowhere")


def no_shebang(hook: Path) -> None:
    write_hook(hook, TELLS.split("\n", 1)[1])


def empty(hook: Path) -> None:
    write_hook(hook, "")


@pytest.mark.parametrize(
    "there", [plain, odd_mode, not_executable, symlink, dangling, no_shebang, empty]
)
def test_uninstall_restores_byte_for_byte(repo: Path, there: Callable[[Path], None]) -> None:
    folder = repo / ".git/hooks"
    for name in ("pre-push", "post-rewrite", "pre-commit"):
        if not os.path.lexists(folder / name):
            there(folder / name)
    before = contents(folder)
    inodes = {p.name: p.lstat().st_ino for p in folder.iterdir()}
    hooks(repo, "install")
    assert active(repo) == ALL
    hooks(repo, "install")
    hooks(repo, "uninstall")
    assert contents(folder) == before
    assert {p.name: p.lstat().st_ino for p in folder.iterdir()} == inodes


def test_uninstall_where_nothing_is_installed_changes_nothing(repo: Path) -> None:
    write_hook(repo / ".git/hooks/pre-push")
    before = contents(repo / ".git/hooks")
    assert "not ours" in hooks(repo, "uninstall")
    assert contents(repo / ".git/hooks") == before


def test_hook_that_another_tool_put_over_ours_is_kept(repo: Path) -> None:
    """lefthook and husky write their hook over whatever is there."""
    folder = repo / ".git/hooks"
    write_hook(folder / "pre-push", "#!/bin/sh\necho first\n")
    hooks(repo, "install")
    write_hook(folder / "pre-push", "#!/bin/sh\necho second\n")
    assert active(repo) == {**ALL, "pre-push": False}
    hooks(repo, "install")
    assert active(repo) == ALL
    hooks(repo, "uninstall")
    assert "second" in (folder / "pre-push").read_text()
    assert "first" in (folder / "pre-push.before-batch.1").read_text()


def test_installation_that_was_killed_is_taken_up(repo: Path) -> None:
    folder = repo / ".git/hooks"
    write_hook(folder / "pre-push")
    before = contents(folder)
    os.link(folder / "pre-push", folder / "pre-push.before-batch")
    hooks(repo, "install")
    hooks(repo, "uninstall")
    assert contents(folder) == before


# --- where git looks ----------------------------------------------------------------------------


def test_linked_worktrees_share_the_hooks(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "tree", str(tmp_path / "a tree"))
    (tmp_path / "a tree/below").mkdir()
    hooks(tmp_path / "a tree/below", "install")
    assert active(repo) == active(tmp_path / "a tree") == ALL
    assert (repo / ".git/hooks/pre-push").is_file()


def test_hooks_folder_that_does_not_exist_is_made(repo: Path) -> None:
    (repo / ".git/hooks").rmdir()
    hooks(repo, "install")
    assert active(repo) == ALL


def husky(repo: Path) -> Path:
    """Do as husky does."""
    folder = repo / ".husky/_"
    write_hook(folder / "pre-push", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    (folder / "h").write_text(
        's=$(dirname "$(dirname "$0")")/$(basename "$0")\n[ -f "$s" ] || exit 0\nsh -e "$s" "$@"\n'
    )
    (folder / ".gitignore").write_text("*")
    git(repo, "config", "core.hooksPath", ".husky/_")
    return folder


def test_husky_goes_on_working(repo: Path, remote: Path, told: Path) -> None:
    husky(repo)
    (repo / ".husky/pre-push").write_text('echo "husky $1" >>"$TOLD"\n')
    hooks(repo, "install")
    assert active(repo) == ALL
    assert call(repo, "git", "push", "origin", "main").status == 0
    assert told.read_text() == "husky origin\n"
    assert git(repo, "status", "--porcelain", "-uall") == "?? .husky/pre-push"
    husky(repo)  # npm install
    assert active(repo)["pre-push"] is False


def test_husky_that_calls_ours_is_active(repo: Path) -> None:
    husky(repo)
    assert active(repo) == NONE
    (repo / ".husky/pre-push").write_text('git batch hooks run pre-push "$@"\n')
    assert active(repo) == {**NONE, "pre-push": True}


def test_lefthook_that_calls_ours_is_active(repo: Path) -> None:
    write_hook(repo / ".git/hooks/pre-push", '#!/bin/sh\ncall_lefthook run "pre-push" "$@"\n')
    assert active(repo) == NONE
    (repo / "lefthook.yml").write_text(
        "pre-push:\n  commands:\n    b:\n      run: git batch hooks run pre-push {1} {2}\n"
    )
    assert active(repo) == {**NONE, "pre-push": True}


def test_framework_that_calls_ours_is_active(repo: Path) -> None:
    write_hook(repo / ".git/hooks/pre-push", "#!/bin/sh\n# File generated by pre-commit\n")
    assert active(repo) == NONE
    (repo / ".pre-commit-config.yaml").write_text("repos: [{hooks: [{id: git-batch-push}]}]\n")
    assert active(repo) == {**NONE, "pre-push": True}


def test_missing_hooks_path_is_refused_and_explained(repo: Path) -> None:
    """Where `core.hooksPath` does not exist git runs no hook, and says nothing."""
    hooks(repo, "install")
    git(repo, "config", "core.hooksPath", ".husky/_")
    said = hooks(repo, "status", status=3)
    assert "core.hooksPath (local)" in said
    assert "'.husky/_', which does not exist" in said
    assert active(repo) == NONE
    assert "hint: " in hooks(repo, "install", status=3)
    assert not (repo / ".husky").exists()


def test_global_hooks_path_is_refused_and_explained(repo: Path, tmp_path: Path) -> None:
    theirs = write_hook(tmp_path / "theirs/pre-push")
    git(repo, "config", "--global", "core.hooksPath", str(theirs.parent))
    before = contents(theirs.parent)
    said = hooks(repo, "install", status=3)
    assert "core.hooksPath (global)" in said
    assert 'git batch hooks run pre-push "$@"' in said
    assert contents(theirs.parent) == before
    theirs.write_text(TELLS + 'git batch hooks run pre-push "$@"\n')
    assert active(repo) == {**NONE, "pre-push": True}


def test_tracked_hooks_path_is_refused(repo: Path) -> None:
    """Our files there would be changes of the working tree, and go to everybody."""
    write_hook(repo / "tools/hooks/pre-push")
    git(repo, "config", "core.hooksPath", "tools/hooks")
    assert "belong to the working tree" in hooks(repo, "install", status=3)
    assert [p.name for p in (repo / "tools/hooks").iterdir()] == ["pre-push"]


def test_hooks_of_another_hooks_path_are_taken_out_too(repo: Path) -> None:
    hooks(repo, "install")
    husky(repo)
    hooks(repo, "install")
    hooks(repo, "uninstall")
    assert list((repo / ".git/hooks").iterdir()) == []
    assert sorted(p.name for p in (repo / ".husky/_").iterdir()) == [".gitignore", "h", "pre-push"]


def test_hook_that_is_not_executable_is_not_active(repo: Path) -> None:
    hooks(repo, "install")
    (repo / ".git/hooks/pre-push").chmod(0o644)
    assert "not executable" in hooks(repo, "status", status=3)
    hooks(repo, "install")
    assert active(repo) == ALL


def test_hook_that_finds_no_tool_is_not_active(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks(repo, "install")
    no_tool(repo / ".git/hooks", monkeypatch)
    assert "does not find git-batch" in hooks(repo, "status", status=3)
    hooks(repo, "install")
    assert active(repo) == ALL


def test_status_never_runs_the_hook_of_somebody_else(repo: Path, told: Path) -> None:
    write_hook(repo / ".git/hooks/pre-push")
    hooks(repo, "status", status=3)
    assert not told.exists()


def test_server_hooks_in_a_bare_repository(remote: Path) -> None:
    assert active(remote) == dict.fromkeys(SERVER, False)
    hooks(remote, "install")
    assert active(remote) == dict.fromkeys(SERVER, True)
    hooks(remote, "uninstall")
    assert active(remote) == dict.fromkeys(SERVER, False)


def test_hook_of_gits_configuration_is_active(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From git 2.54 on `git hook list` names what `hook.<name>.event` configures."""
    real = shutil.which("git")
    fake = write_hook(
        tmp_path / "bin/git",
        f"""#!/bin/sh
        case "$*" in *'hook list pre-push') echo batch ;; *'hook list '*) exit 1 ;;
        *) exec {real} "$@" ;; esac
        """,
    )
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    git(repo, "config", "hook.batch.event", "pre-push")
    git(repo, "config", "hook.batch.command", "something else")
    assert active(repo) == NONE
    git(repo, "config", "hook.batch.command", "git batch hooks run pre-push")
    assert active(repo) == {**NONE, "pre-push": True}


def test_not_in_a_repository(tmp_path: Path) -> None:
    assert "not in a git repository" in hooks(tmp_path, "status", status=3)


# --- the shell files ----------------------------------------------------------------------------

SHELLS = Path(__file__).parents[2] / "hooks"
EVERY_SHELL = pytest.mark.parametrize("shell", sorted(SHELLS.iterdir()), ids=lambda p: p.name)


@EVERY_SHELL
def test_shell_files_are_read_by_posix_shells(shell: Path) -> None:
    assert subprocess.run(["sh", "-n", str(shell)]).returncode == 0
    text = shell.read_text()
    for word in ("[[", "function ", "local ", "<<<", "source ", "pipefail", "$'"):
        assert word not in text, word


def test_every_hook_has_its_shell_file() -> None:
    names = {*CLIENT, *SERVER}
    assert {p.name for p in SHELLS.iterdir()} == names | {"git-batch.sh"}
    assert {p.name for p in SHELLS.iterdir() if os.access(p, os.X_OK)} == names


@EVERY_SHELL
def test_shell_files_stay_short(shell: Path) -> None:
    lines = shell.read_text().splitlines()
    assert len(lines) <= (110 if shell.suffix else 26)
