"""A person works in the tree while a batch stands still: nothing of theirs becomes a task's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from git_batch.repo import index
from tests.conftest import git
from tests.e2e import scene as scenes
from tests.e2e.job import (
    BRANCH,
    HEAD,
    Done,
    batch,
    committed,
    here,
    outcomes,
    refs,
    task,
    tasks,
    told,
    write,
)
from tests.e2e.scene import Killer, Scene

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and SIGKILL")

LOCKED = """check = '[ -e .git/once ] || { : >.git/once; : >.git/index.lock; }'"""
"""Has the index locked when the task's commit is to be made for the first time."""

ONE = "echo one >>src/a; echo new >src/one; rm src/b"
TWO = task("two", "echo two >src/two")


def stopped_settled(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring a batch to a task that is settled and could not be committed."""
    write(top, task("one", ONE, LOCKED), TWO)
    with monkeypatch.context() as patch:
        patch.setattr(index, "LOCK_WAIT", 0.1)
        assert "index.lock" in here(top, "start", "--yes", status=1).err
    (top / ".git/index.lock").unlink()
    assert tasks(top)["one"]["state"] == "settled"


def whole(top: Path) -> None:
    """Check that each task's commit holds exactly its own work, of its first attempt."""
    assert committed(top) == ["one", "two"]
    assert git(top, "diff", "--name-only", f"{BRANCH}~1", BRANCH) == "src/two"
    changed = git(top, "diff", "--name-only", "main", f"{BRANCH}~1").split()
    assert changed == ["src/a", "src/b", "src/one"]
    here(top, "verify")
    assert [entry["attempts"] for entry in tasks(top).values()] == [1, 1]


def refused(top: Path, *named: str) -> Done:
    """Resume, which is refused and changes nothing of the branch; exactly these are named."""
    tip = git(top, "rev-parse", BRANCH)
    done = here(top, "resume", status=3)
    assert sorted(line[1:] for line in done.err.splitlines() if line[0] == "\t") == sorted(named)
    assert git(top, "rev-parse", BRANCH) == tip
    return done


def put_away(top: Path, done: Done) -> None:
    """Do what a refusal says can be done."""
    (way,) = [hint.partition("put them away: ")[2] for hint in done.hints if "put them" in hint]
    subprocess.run(way, shell=True, cwd=top, check=True, capture_output=True)


def test_what_went_wrong_between_two_attempts_edits_became_a_tasks_commit(repo: Path) -> None:
    stop = f"[ -e .git/once ] || {{ : >.git/once; kill -TERM $PPID; sleep 9; }}; {ONE}"
    write(repo, task("one", stop), TWO)
    batch(repo, "start", "--yes", status=143)
    (repo / "src/mine").write_text("mine\n")
    (repo / "src/a").write_text("mine\n")
    put_away(repo, refused(repo, "src/a", "src/mine"))
    here(repo, "resume")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "diff", "--name-only", f"{BRANCH}~1", BRANCH) == "src/two"
    assert git(repo, "show", f"{BRANCH}:src/a") == "a\none"


def test_what_went_wrong_a_settled_task_was_reverted_by_the_next_ones_commit(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_settled(repo, monkeypatch)
    git(repo, "checkout", "-q", "--", "src")
    (repo / "src/one").unlink()
    said = here(repo, "resume").err
    assert "put back as the record says: 'src/a', 'src/b', 'src/one'" in said
    whole(repo)
    assert git(repo, "status", "--porcelain", "-uno") == ""


def test_what_went_wrong_edits_beside_a_settled_task_became_the_next_ones(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_settled(repo, monkeypatch)
    (repo / "src/mine").write_text("mine\n")
    (repo / ".gitignore").write_text("*.log\nbuild/\n*.mine\n")
    (repo / "src/a").write_text("mine\n")
    put_away(repo, refused(repo, ".gitignore", "src/a", "src/mine"))
    here(repo, "resume")
    whole(repo)


def test_what_a_settled_task_left_is_not_taken_for_a_persons(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "note").write_text("accepted when the batch was confirmed\n")
    write(repo, task("one", f"{ONE}; echo x >src/x.log", LOCKED), TWO)
    with monkeypatch.context() as patch:
        patch.setattr(index, "LOCK_WAIT", 0.1)
        here(repo, "start", "--yes", "--allow-untracked", status=1)
    (repo / ".git/index.lock").unlink()
    (repo / "note").write_text("mine\n")
    (repo / "batch.toml").write_text("mine")
    here(repo, "resume")
    whole(repo)
    assert (repo / "note").read_text() == "mine\n"


def test_what_is_to_be_made_is_in_nobodys_way_if_a_person_put_the_same_there(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_settled(repo, monkeypatch)
    (repo / "src/b").write_text("b\n")
    (repo / "src/one").write_text("another\n")
    put_away(repo, refused(repo, "src/one"))
    here(repo, "resume")
    whole(repo)


@pytest.fixture
def unrecorded(killer: Killer, place: Path) -> Scene:
    """Give a repository whose run was killed when it had made a commit and not recorded it."""
    plan = HEAD + task("one", ONE) + TWO
    scene = scenes.make(place / "scene", plan)
    with scenes.copied(scene, place / "goal") as copy:
        goal = scenes.undisturbed(killer, copy)
    step = goal.point("swap refs/heads/batch/demo: after", 2)
    assert killer.run(scene, "start", kill=step).killed
    assert committed(scene.top) == ["one"]
    assert tasks(scene.top)["one"]["state"] == "settled"
    assert scene.git("status", "--porcelain") == "?? batch.toml"
    return scene


@LINUX
def test_what_went_wrong_edits_after_a_commit_that_was_not_recorded_became_the_next_ones(
    unrecorded: Scene,
) -> None:
    top = unrecorded.top
    (top / "src/mine").write_text("mine\n")
    (top / "src/one").unlink()
    put_away(top, refused(top, "src/mine", "src/one"))
    here(top, "resume")
    whole(top)


@LINUX
def test_what_went_wrong_abandoning_made_a_commit_that_was_not_recorded_a_forgery(
    unrecorded: Scene,
) -> None:
    top = unrecorded.top
    here(top, "abandon", "-m", "enough")
    here(top, "verify")
    assert told(top)["state"] == "abandoned"
    assert outcomes(top) == {"one": "committed", "two": "not_run_stopped"}
    assert tasks(top)["one"]["commit"] == git(top, "rev-parse", BRANCH)


def foreign(top: Path, *more: str) -> None:
    """Resume, which stops at a person's commit on top; the work is kept and in nobody's way."""
    assert "git batch bless" in here(top, "resume", *more, status=1).out
    assert git(top, "status", "--porcelain") == "?? batch.toml"


def test_what_went_wrong_a_displaced_settled_task_was_applied_twice(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_settled(repo, monkeypatch)
    (repo / "mine").write_text("mine\n")
    git(repo, "add", "mine")
    git(repo, "commit", "-qm", "mine")
    foreign(repo)
    here(repo, "bless", "-m", "mine")
    here(repo, "resume")
    here(repo, "verify")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "show", f"{BRANCH}:src/a") == "a\none"
    assert git(repo, "show", f"{BRANCH}:mine") == "mine"


def test_what_a_person_has_on_their_branch_stays_where_a_settled_task_is_displaced(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_settled(repo, monkeypatch)
    (repo / "src/a").write_text("theirs\n")
    git(repo, "commit", "-qm", "theirs", "src/a")
    (repo / "src/one").write_text("not committed\n")
    assert "git batch bless" in here(repo, "resume", status=1).out
    assert git(repo, "status", "--porcelain").split("\n") == ["?? batch.toml", "?? src/one"]
    assert (repo / "src/a").read_text() == "theirs\n"
    here(repo, "bless", "-m", "mine")
    refused(repo, "src/one")


def test_what_went_wrong_a_commit_on_top_of_a_killed_attempt_was_reverted(repo: Path) -> None:
    killed = f"[ -e .git/once ] || {{ : >.git/once; {ONE}; kill -9 $PPID; sleep 1; exit; }}; {ONE}"
    write(repo, task("one", killed), TWO)
    batch(repo, "start", "--yes", status=-9)
    (repo / "src/mine").write_text("mine\n")
    git(repo, "add", "src/mine")
    git(repo, "commit", "-qm", "mine")
    foreign(repo, "--kill-orphans")
    here(repo, "bless", "-m", "mine")
    here(repo, "resume")
    here(repo, "verify")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "show", f"{BRANCH}:src/mine") == "mine"
    assert git(repo, "show", f"{BRANCH}:src/a") == "a\none"
    kept = next(name for name in refs(repo) if name.endswith("/attempts/one/1"))
    assert git(repo, "diff", "--name-only", f"{kept}^", kept).split() == [
        "src/a",
        "src/b",
        "src/one",
    ]
