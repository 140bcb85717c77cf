"""Submodules: what a task changes inside one is in no commit here, so it is said and never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_batch.repo.git import Git
from git_batch.repo.repository import Repository
from tests.conftest import git
from tests.e2e.job import BRANCH, committed, outcomes, task, tasks, told, write
from tests.e2e.near import near, pasted, record


def with_submodule(repo: Path, template: Path) -> Path:
    """Add a submodule `mod`, commit it, and give its place."""
    origin = repo.parent / "mod.git"
    git(repo, "clone", "-q", "--bare", str(template), str(origin))
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(origin), "mod")
    git(repo, "commit", "-qm", "module")
    return repo / "mod"


# --- what is changed inside one -------------------------------------------------------------------


@pytest.mark.parametrize("what", ["tracked", "new"])
def test_what_went_wrong_a_change_inside_a_submodule_was_no_change_and_stayed(
    repo: Path, template: Path, what: str
) -> None:
    module = with_submodule(repo, template)
    file = "a" if what == "tracked" else "new"
    one = task("one", f"echo one >>mod/src/{file}", "attempts = 1", 'scope = ["mod"]')
    write(repo, one, task("two", 'test -z "$(git -C mod status -s)" && echo two >src/two'))
    near(repo, "start", "--yes", status=1)
    # The next task does not begin on what no commit has; nothing is lost, and a person is told.
    assert told(repo)["state"] == "needs_human"
    assert "changes inside these submodules" in told(repo)["reason"]
    assert told(repo)["reason"].endswith(": 'mod'")
    done = near(repo, "resume", status=3)
    assert "\tmod" in done.err
    assert tasks(repo)["one"]["outcome"] == "scope_refused"
    assert "inside submodule 'mod'" in tasks(repo)["one"]["reason"]
    assert tasks(repo)["two"]["attempts"] == 0
    assert (module / "src" / file).read_text().endswith("one\n")
    way = done.hints[0].partition("put them away: ")[2]
    pasted(repo, way)
    near(repo, "resume", status=1)
    assert outcomes(repo) == {"one": "scope_refused", "two": "committed"}
    assert git(module, "stash", "list")


def test_what_went_wrong_a_commit_lacked_what_its_task_changed_inside_a_submodule(
    repo: Path, template: Path
) -> None:
    module = with_submodule(repo, template)
    run = 'cp "$BATCH_FEEDBACK" src/x 2>&- || { echo x >src/x; echo x >>mod/src/a; }'
    write(repo, task("one", run))
    near(repo, "start", "--yes", status=1)
    assert committed(repo) == []
    git(module, "stash")
    # The second attempt was told why the first was refused.
    near(repo, "resume")
    assert outcomes(repo) == {"one": "committed"}
    assert "leave its files alone" in (repo / "src/x").read_text()


@pytest.mark.parametrize("who", ["check", "review"])
def test_what_went_wrong_a_check_could_change_files_inside_a_submodule(
    repo: Path, template: Path, who: str
) -> None:
    module = with_submodule(repo, template)
    does = f'"touch {module / "made"}"'
    plan = "check = [%s]" if who == "check" else "review = %s"
    write(repo, task("one", "echo 1 >src/one", plan % does, "attempts = 1"))
    near(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"one": f"{who}_changed_tree"}
    assert "'mod'" in tasks(repo)["one"]["reason"]


def test_what_went_wrong_a_hook_could_change_files_inside_a_submodule(
    repo: Path, template: Path
) -> None:
    with_submodule(repo, template)
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch mod/made\n")
    hook.chmod(0o755)
    write(repo, task("one", "echo 1 >src/one", "attempts = 1"))
    near(repo, "start", "--yes", status=1)
    assert "pre-commit hook: changed files inside submodule 'mod'" in tasks(repo)["one"]["reason"]


def test_a_baseline_that_changes_files_inside_a_submodule_is_told(
    repo: Path, template: Path
) -> None:
    with_submodule(repo, template)
    one = task("one", "echo 1 >src/one", 'check = ["touch mod/made"]')
    write(repo, "baseline = true\n", one)
    near(repo, "start", "--yes", status=1)
    assert "the checks changed 'mod'" in told(repo)["reason"]


def test_what_went_wrong_a_fix_inside_a_submodule_was_no_fix(repo: Path, template: Path) -> None:
    module = with_submodule(repo, template)
    write(repo, task("one", "false", "attempts = 1", 'scope = ["mod"]'))
    near(repo, "start", "--yes", status=1)
    (module / "src/a").write_text("mended\n")
    done = near(repo, "adopt", "one", status=3)
    assert "inside submodule 'mod'" in done.err
    assert "git -C mod stash -u" in done.hints[0]
    git(module, "commit", "-qam", "mended")
    near(repo, "adopt", "one")
    near(repo, "resume")
    assert git(repo, "rev-parse", "HEAD:mod") == git(module, "rev-parse", "HEAD")


# --- push -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [
        {"push.recurseSubmodules": "on-demand"},
        {"push.recurseSubmodules": "only"},
        {"submodule.recurse": "true"},
        {"submodule.recurse": "true", "push.recurseSubmodules": "on-demand"},
    ],
)
def test_what_went_wrong_no_push_where_git_pushes_submodules_along(
    repo: Path, template: Path, setting: dict[str, str]
) -> None:
    module, there = with_submodule(repo, template), repo.parent / "there.git"
    git(repo, "init", "-q", "--bare", str(there))
    git(repo, "remote", "add", "origin", str(there))
    git(repo, "push", "-q", "origin", "main")
    for key, value in setting.items():
        git(repo, "config", key, value)
    write(repo, task("one", "git -C mod commit -q --allow-empty -m more", 'scope = ["mod"]'))
    near(repo, "start", "--yes")
    # What it names of the submodule could be got by nobody yet.
    done = near(repo, "push", status=3)
    assert git(there, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert "git -C PATH push" in done.hints[1]
    git(module, "push", "-q", "origin", "HEAD:refs/heads/more")
    near(repo, "push")
    assert git(there, "rev-parse", BRANCH) == git(repo, "rev-parse", BRANCH)
    assert git(there, "rev-parse", record(repo)) == git(repo, "rev-parse", record(repo))
    near(repo, "fetch")


def test_a_person_who_does_not_have_submodules_looked_at_pushes_without(
    repo: Path, template: Path
) -> None:
    with_submodule(repo, template)
    git(repo, "init", "-q", "--bare", "../there.git")
    git(repo, "remote", "add", "origin", "../there.git")
    git(repo, "config", "submodule.recurse", "true")
    git(repo, "config", "push.recurseSubmodules", "no")
    write(repo, task("one", "git -C mod commit -q --allow-empty -m more", 'scope = ["mod"]'))
    near(repo, "start", "--yes")
    near(repo, "push")
    assert git(repo.parent / "there.git", "rev-parse", BRANCH) == git(repo, "rev-parse", BRANCH)


# --- which there are ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["--index-version=2", "--index-version=4", "--split-index"])
def test_git_is_asked_for_the_submodules_only_where_there_may_be_some(
    repo: Path, template: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repo, "update-index", kind)
    with monkeypatch.context() as patched:
        if kind != "--split-index":  # most of whose entries are in another file
            patched.delattr(Git, "run")
        assert Repository.open(str(repo)).submodules == ()
    with_submodule(repo, template)
    git(repo, "update-index", kind)
    assert Repository.open(str(repo)).submodules == (b"mod",)
    (repo / ".git/index").unlink()
    assert Repository.open(str(repo)).submodules == ()
