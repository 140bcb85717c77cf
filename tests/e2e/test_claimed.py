"""Claims on a remote: taken from when they are asked for, gone when what they claim has ended."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from git_batch.core.ids import TaskId
from git_batch.core.model import InFlight
from git_batch.errors import GitError
from git_batch.repo.claims import RemoteClaims
from git_batch.run.committing import Committer
from tests.conftest import git
from tests.e2e.beside import beside, ended, opened
from tests.e2e.job import committed, task, told, write
from tests.e2e.near import near, record

ONE, TWO = task("one", "echo 1 >src/one"), task("two", "echo 2 >src/two")


@pytest.fixture
def bare(repo: Path) -> Path:
    """Give a remote called origin."""
    path = repo.parent / "origin.git"
    git(repo, "clone", "-q", "--bare", str(repo), str(path))
    git(repo, "remote", "add", "origin", str(path))
    return path


def claimed(bare: Path) -> list[str]:
    """List the tasks that are claimed on the remote."""
    found = git(bare, "for-each-ref", "--format=%(refname:lstrip=4)", "refs/batch/claims/demo")
    return found.split()


@pytest.fixture
def settled(repo: Path, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring a batch to where its first task is settled, and a further run has to commit it."""

    def fails(self: Committer, flight: InFlight) -> None:
        raise GitError("not now")

    write(repo, ONE, TWO)
    with monkeypatch.context() as patch:
        patch.setattr(Committer, "_publish_settled", fails)
        near(repo, "start", "--yes", "--claim", "origin", status=1)
    assert told(repo)["outcome"] == "commit_failed"
    assert claimed(bare) == ["one"], "it is still in flight"


@pytest.mark.usefixtures("settled")
def test_a_claim_stayed_for_ever_when_a_further_run_ended_the_task(repo: Path, bare: Path) -> None:
    near(repo, "resume", "--max-tasks", "1", "--yes", status=1)
    assert committed(repo) == ["one"]
    assert claimed(bare) == []


@pytest.mark.usefixtures("settled")
def test_a_claim_stayed_for_ever_when_the_batch_was_abandoned(repo: Path, bare: Path) -> None:
    near(repo, "abandon")
    assert claimed(bare) == []


@pytest.mark.usefixtures("settled")
def test_a_remote_that_is_gone_does_not_keep_a_batch_from_being_abandoned(
    repo: Path, bare: Path
) -> None:
    bare.rename(f"{bare}.gone")
    assert "can't ask 'origin' for claims" in near(repo, "abandon").err
    assert told(repo)["state"] == "abandoned"


def test_a_claim_that_a_kill_left_of_a_committed_task_is_let_go_at_the_end(
    repo: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, ONE)
    with monkeypatch.context() as patch:
        for method in ("release", "release_all"):
            patch.setattr(RemoteClaims, method, lambda *_: None)
        near(repo, "start", "--yes", "--claim", "origin")
    assert claimed(bare) == ["one"]
    near(repo, "resume")
    assert claimed(bare) == []


def test_a_task_was_free_for_others_before_its_commit_was_on_record(
    repo: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    release = RemoteClaims.release

    def watched(self: RemoteClaims, name: TaskId) -> None:
        seen.append(git(repo, "log", "-1", "--format=%s", record(repo)))
        release(self, name)

    monkeypatch.setattr(RemoteClaims, "release", watched)
    write(repo, ONE, task("two", "true", 'on_empty = "accept"'))
    near(repo, "start", "--yes", "--claim", "origin")
    assert seen == ["one: committed", "two: unchanged"]
    assert claimed(bare) == []


def test_claims_that_a_renewal_asked_for_were_not_taken_by_the_live_run(
    repo: Path, bare: Path
) -> None:
    gate, seen = repo.parent / "gate", repo.parent / "seen"
    os.mkfifo(gate)
    look = shlex.join(["git", "-C", str(bare), "for-each-ref", "refs/batch/claims"])
    write(
        repo,
        task("one", f"read x <{gate}; echo 1 >src/one"),
        task("two", f"{look} >{seen}; echo 2 >src/two"),
    )
    with beside(repo, "start", "--yes") as run:
        with opened(gate, run) as go:
            refused = near(repo, "resume", "--claim", "nowhere", "--yes", status=2)
            assert "there is no remote 'nowhere'" in refused.err
            near(repo, "resume", "--claim", "origin", "--yes")
            go.write("\n")
        ended(run, 0)
    assert "refs/batch/claims/demo/two" in seen.read_text()
    assert claimed(bare) == []


def test_a_remote_that_does_not_exist_is_no_renewal(repo: Path) -> None:
    write(repo, ONE, TWO)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    bounds = ("--max-tasks", "2", "--claim", "nowhere", "--yes")
    assert "there is no remote 'nowhere'" in near(repo, "resume", *bounds, status=2).err
    assert told(repo)["authorization"]["seq"] == 1
