"""The runner: bound to one repository, deaf to the environment, and it says what failed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from git_batch.errors import GitError
from git_batch.repo import patience
from git_batch.repo.git import LOCAL_VARIABLES, QUARANTINE, Git, clean_environment, without_git
from tests.conftest import git


@pytest.fixture
def runner(repo: Path) -> Git:
    return Git(str(repo / ".git"), str(repo))


def test_the_list_of_variables_covers_the_git_at_hand(repo: Path) -> None:
    assert set(git(repo, "rev-parse", "--local-env-vars").split()) <= LOCAL_VARIABLES


def test_output_is_bytes_and_input_is_fed(runner: Git) -> None:
    oid = runner.run(["hash-object", "-w", "--stdin"], input=b"\xff\0").strip()
    assert runner.run(["cat-file", "blob", oid]) == b"\xff\0"


@pytest.mark.parametrize("memory", [True, False])
def test_what_went_wrong_a_git_with_input_was_not_waited_for(
    runner: Git, monkeypatch: pytest.MonkeyPatch, memory: bool
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.1)
    if not memory:
        monkeypatch.delattr(os, "memfd_create")
    much = b"x" * (1 << 20)  # more than a pipe holds, and nothing of it is read at first
    slow = ["-c", "alias.slow=!sleep 0.5; cat", "slow"]
    assert runner.run(slow, input=much) == much
    with pytest.raises(GitError, match=r"no answer within 0\.2 seconds"):
        runner.run(slow, input=much, timeout=0.2)


def test_without_input_standard_input_is_empty(runner: Git) -> None:
    assert runner.run(["hash-object", "--stdin"]) == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"


def test_a_failure_names_the_command_and_what_git_said(runner: Git) -> None:
    with pytest.raises(GitError) as caught:
        runner.run(["-c", "a.b=c", "cat-file", "-p", "nothing"])
    assert (
        caught.value.message == "'git cat-file -p nothing' failed: Not a valid object name nothing"
    )


def test_expected_statuses_are_no_failure(runner: Git) -> None:
    assert runner.run(["config", "no.thing"], ok=(0, 1)) == b""
    assert runner.run(["config", "no.thing"], check=False) == b""
    with pytest.raises(GitError, match="exit status 1"):
        runner.run(["config", "no.thing"])


def test_a_signal_is_named(runner: Git) -> None:
    with pytest.raises(GitError, match="killed by signal 9"):
        runner.run(["-c", "alias.die=!kill -9 $PPID", "die"])


def test_no_git_on_path(repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="'git' not found"):
        Git(None, str(repo))


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="can't run 'git version'"):
        Git(None, str(tmp_path / "gone")).run(["version"])


def test_the_callers_variables_do_not_reach_git(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in LOCAL_VARIABLES | {"GIT_ICASE_PATHSPECS", "GIT_EXTERNAL_DIFF"}:
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "Mallory")
    runner = Git(str(repo / ".git"), str(repo))
    assert runner.run(["config", "user.name"]) == b"T\n"
    assert runner.run(["rev-parse", "--show-toplevel"]).decode().strip() == str(repo)
    assert runner.run(["ls-files"]) == b".gitignore\nsrc/a\nsrc/b\n"


def test_identity_of_the_environment_is_kept(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada")
    said = Git(str(repo / ".git"), str(repo)).run(["var", "GIT_AUTHOR_IDENT"])
    assert said.startswith(b"Ada <t@x> ")


def test_names_are_literal(repo: Path, runner: Git) -> None:
    (repo / "*").write_text("star\n")
    assert runner.run(["ls-files", "--others", "-z", "--", "*"]) == b"*\0"
    assert runner.run(["ls-files", "-z", "--", ":/"]) == b""


def test_configured_programs_do_not_run(repo: Path, runner: Git, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.editor"):
        git(repo, "config", name, str(trap))
    for name in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        (repo / ".git/hooks" / name).symlink_to(trap)
    (repo / "src/a").write_text("changed\n")
    runner.run(["status"])
    runner.run(["diff", "--no-ext-diff"])
    runner.run(["update-index", "src/a"])
    runner.run(["update-ref", "refs/heads/x", "HEAD"])
    assert not (tmp_path / "sprung").exists()


def test_a_bare_repository_and_its_quarantine(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare")
    bare = str(tmp_path / "bare")
    assert Git(bare, bare, bare=True).run(["rev-parse", "--is-bare-repository"]) == b"true\n"
    kept = without_git(dict.fromkeys(LOCAL_VARIABLES | QUARANTINE, "x"), QUARANTINE)
    assert set(kept) == QUARANTINE


def test_terminal_signals_do_not_reach_git(runner: Git) -> None:
    session = runner.run(["-c", "alias.s=!ps -o sid= -p $$", "s"])
    assert int(session) != os.getsid(0)


def test_a_tasks_environment(repo: Path, tmp_path: Path) -> None:
    dirty = {
        **dict.fromkeys(LOCAL_VARIABLES, "/elsewhere"),
        "GIT_EXEC_PATH": "/elsewhere",
        "GIT_EDITOR": "vi",
        "EDITOR": "vi",
        "GIT_CONFIG_KEY_0": "a.b",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_ASKPASS": "/bin/askpass",
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
    }
    env = clean_environment(dirty)
    assert not LOCAL_VARIABLES & set(env)
    assert "GIT_EXEC_PATH" not in env
    assert "GIT_CONFIG_KEY_0" not in env
    assert env["GIT_AUTHOR_NAME"] == "Ada"
    assert (env["GIT_ASKPASS"], env["SSH_ASKPASS"], env["GIT_TERMINAL_PROMPT"]) == ("", "", "0")
    refused = subprocess.run(
        ["git", "commit", "--allow-empty"], cwd=repo, env=env, capture_output=True, check=False
    )
    assert refused.returncode == 1, "an editor was opened, or the commit made without one"
    assert b"problem with the editor 'false'" in refused.stderr
    paged = subprocess.run(["git", "-p", "log"], cwd=repo, env=env, capture_output=True, check=True)
    assert b"base" in paged.stdout
