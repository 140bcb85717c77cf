"""Real pushes to a bare repository, with the client's hooks, with the server's, with both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from git_batch.hooks.install import CLIENT
from tests.conftest import git
from tests.e2e.job import BRANCH, argv, batch, task, write
from tests.e2e.scene import environment
from tests.hooks.hosts import Done, active, call, hooks
from tests.hooks.pushing import (
    EVERY_DRIFT,
    amended_with_trailers,
    copy_of,
    extra_commit,
    finished,
    no_tool,
    passed,
    push,
    record,
    refs,
    refused,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

NOWHERE = "/nowhere/python"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository with a finished batch, and its remote."""
    return finished(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def top(made: Path, place: Path) -> Path:
    """Give a copy of it, with the client's hooks."""
    return copy_of(made, place)


# --- whole --------------------------------------------------------------------------------------


def test_whole_branch_passes_and_says_how_its_record_travels(top: Path) -> None:
    done = push(top)
    passed(done)
    assert f"hint: git batch push origin {record(top).rpartition('/')[2]}" in done.said
    passed(push(top, record(top)))
    assert record(top.parent / "origin.git") == record(top)


def test_record_that_goes_along_needs_no_hint(top: Path) -> None:
    done = push(top, "--atomic", BRANCH, record(top))
    passed(done)
    assert "hint: " not in done.said


@pytest.mark.parametrize("folder", ["src/below", "../a tree"])
def test_push_from_elsewhere(top: Path, folder: str) -> None:
    if folder.startswith(".."):
        git(top, "worktree", "add", "-q", "-b", "tree", folder, "main")
    where = (top / folder).resolve()
    passed(call(where, "git", "push", str(top.parent / "origin.git"), BRANCH))
    git(top, "commit", "-q", "--amend", "-m", "other")
    refused(call(where, "git", "push", "-f", str(top.parent / "origin.git"), BRANCH), "batch/demo")


def test_push_by_git_dir_from_outside(top: Path) -> None:
    env = {"GIT_DIR": str(top / ".git"), "GIT_WORK_TREE": str(top)}
    url = str(top.parent / "origin.git")
    passed(call(top.parent, "git", "push", url, BRANCH, env=env))
    git(top, "commit", "-q", "--amend", "-m", "other")
    refused(call(top.parent, "git", "push", "-f", url, BRANCH, env=env))


# --- drift --------------------------------------------------------------------------------------


@EVERY_DRIFT
def test_drift_is_refused(top: Path, drift: Callable[[Path], None]) -> None:
    drift(top)
    before = refs(top.parent / "origin.git")
    refused(push(top), BRANCH)
    assert refs(top.parent / "origin.git") == before


def test_drift_under_another_name_is_refused(top: Path) -> None:
    amended_with_trailers(top)
    refused(push(top, f"{BRANCH}:refs/heads/other"))
    refused(push(top, "HEAD:refs/heads/other"))


def test_one_bad_branch_refuses_the_push(top: Path) -> None:
    extra_commit(top)
    refused(push(top, "main:other", BRANCH))
    assert "refs/heads/other" not in refs(top.parent / "origin.git")


def test_the_pushed_commit_is_judged_not_the_branch(top: Path) -> None:
    whole = git(top, "rev-parse", BRANCH)
    extra_commit(top)
    passed(push(top, f"{whole}:refs/heads/{BRANCH}"))
    refused(push(top, f"{BRANCH}:refs/heads/other-name"))


# --- not concerned ------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [True, False])
def test_deletions_tags_and_other_branches_pass(
    top: Path, monkeypatch: pytest.MonkeyPatch, tool: bool
) -> None:
    passed(push(top))
    extra_commit(top)
    if not tool:
        no_tool(top / ".git/hooks", monkeypatch)
    git(top, "tag", "-a", "-m", "v1", "v1")
    passed(push(top, "v1", "main:other"))
    passed(push(top, f":{BRANCH}", ":other", ":v1"))
    assert set(refs(top.parent / "origin.git")) == {"refs/heads/main"}


def test_branch_of_a_batch_is_refused_without_the_tool(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_tool(top / ".git/hooks", monkeypatch)
    done = call(top, "git", "push", "origin", BRANCH)
    assert done.status == 1
    assert "could not be run" in done.said
    assert "hint: install it" in done.said


def test_main_that_merged_a_batch_passes(top: Path) -> None:
    git(top, "switch", "-q", "main")
    git(top, "merge", "-q", "--no-ff", "--no-edit", BRANCH)
    done = push(top, "main")
    passed(done)
    assert "hint: " not in done.said
    git(top, "commit", "-q", "--allow-empty", "-m", "work goes on")
    passed(push(top, "main"))


def test_main_that_squashed_a_batch_passes(top: Path) -> None:
    """A squash names the batch and all its tasks, and is no commit of it."""
    tasks = "".join(f"Batch-Task: t{n}\n" for n in (1, 2, 3))
    name = record(top).rpartition("/")[2]
    git(top, "switch", "-q", "main")
    git(top, "merge", "-q", "--squash", BRANCH)
    git(top, "commit", "-q", "-m", f"All of it\n\nBatch-Id: {name}\n{tasks}")
    passed(push(top, "main"))


def test_copy_of_a_tasks_commit_elsewhere_is_refused_with_a_way_out(top: Path) -> None:
    git(top, "switch", "-q", "-c", "release", "main")
    git(top, "commit", "-q", "--allow-empty", "-m", "release")
    git(top, "cherry-pick", BRANCH)
    refused(push(top, "release"), "leave the 'Batch-' trailers out")
    git(top, "commit", "-q", "--amend", "-m", "Do t3")
    passed(push(top, "release"))


def test_main_that_was_moved_forward_over_a_batch_passes(top: Path) -> None:
    git(top, "switch", "-q", "main")
    git(top, "merge", "-q", "--ff-only", BRANCH)
    passed(push(top, "main"))
    git(top, "commit", "-q", "--allow-empty", "-m", "work goes on")
    passed(push(top, "main"))


# --- without the record -------------------------------------------------------------------------


@pytest.fixture
def clone(top: Path) -> Path:
    """Clone the remote with its branch, without the record, with hooks."""
    passed(push(top))
    clone = top.parent / "clone"
    git(top.parent, "clone", "-q", "-b", BRANCH, "origin.git", str(clone))
    hooks(clone, "install")
    return clone


def test_branch_without_its_record_here_says_that_it_was_not_verified(clone: Path) -> None:
    """A record of another batch is here, so the hook looks at all."""
    git(clone, "update-ref", "refs/notes/batch/other-abc123", "HEAD")
    done = push(clone, f"{BRANCH}:refs/heads/copy")
    assert done.status == 0
    assert "warning: 'copy' was not verified" in done.said
    assert "hint: " in done.said


# --- failed batches, live batches, rewrites -----------------------------------------------------


def test_branch_of_a_failed_batch_is_refused(top: Path) -> None:
    tip = git(top, "rev-parse", BRANCH)
    write(top, task("one", "echo 1 >src/x"), task("two", "echo 2 >src/y"))
    text = (top / "batch.toml").read_text()
    (top / "batch.toml").write_text(text.replace('slug = "demo"', 'slug = "next"'))
    batch(top, "start", "--yes", "--max-tasks", "1", status=1)
    git(top, "commit", "-q", "--amend", "-m", "other")
    batch(top, "resume", "--yes", "--max-tasks", "2", status=4)
    refused(push(top, "batch/next"))
    git(top, "reset", "-q", "--keep", "HEAD@{1}")
    refused(push(top, "batch/next"), "has failed", "git batch status")
    assert git(top, "rev-parse", BRANCH) == tip


# --- managers -----------------------------------------------------------------------------------


def test_pre_commit_framework_gives_its_environment(top: Path) -> None:
    """It reads standard input itself, and starts the entry of `.pre-commit-hooks.yaml`."""
    run = [*argv("hooks", "run", "pre-push")]
    zeros = "0" * 40

    def framed(tip: str) -> Done:
        env = environment() | {
            "PRE_COMMIT_FROM_REF": zeros,
            "PRE_COMMIT_TO_REF": git(top, "rev-parse", tip),
            "PRE_COMMIT_LOCAL_BRANCH": f"refs/heads/{tip}",
            "PRE_COMMIT_REMOTE_BRANCH": f"refs/heads/{tip}",
            "PRE_COMMIT_REMOTE_NAME": "origin",
            "PRE_COMMIT_REMOTE_URL": "../origin.git",
        }
        return call(top, *run, env=env)

    assert framed("main") == Done(0, "")
    assert "hint: git batch push origin demo-" in framed(BRANCH).said
    extra_commit(top)
    assert framed(BRANCH).status == 3


def test_entry_of_the_framework_is_our_command() -> None:
    text = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    assert "- id: git-batch-push\n" in text
    assert "entry: git-batch hooks run pre-push\n" in text
    assert "stages: [pre-push]\n" in text


def test_unknown_hook_is_a_usage_error(top: Path) -> None:
    assert call(top, *argv("hooks", "run", "pre-pull"), env=environment()).status == 2


def test_hooks_are_active(top: Path) -> None:
    assert active(top) == dict.fromkeys(CLIENT, True)
