"""Claims: a ref that must not exist; whose it is stands in it, here and on a remote."""

from __future__ import annotations

import multiprocessing
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from git_batch.core.ids import BatchId, TaskId
from git_batch.core.model import Actor
from git_batch.errors import GitError, PreconditionError
from git_batch.repo import claims
from git_batch.repo.claims import Claim
from git_batch.repo.commits import Idents
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from tests.conftest import git

WHO = Idents(Actor("T", "t@x"), Actor("T", "t@x"))
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = AT.replace(year=AT.year + 1)
ONE, TWO = BatchId("demo-aaaaaa"), BatchId("demo-bbbbbb")
REF = "refs/batch/claims/demo/@"


def opened(top: Path) -> tuple[Repository, Refs]:
    repo = Repository.open(str(top))
    return repo, Refs(repo)


def record(refs: Refs, batch: BatchId) -> None:
    """Let a batch have a record, whatever is in it."""
    tip = refs.read("HEAD")
    assert tip
    refs.swap(f"refs/notes/batch/{batch}", None, tip, "test")


def test_a_claim_says_whose_it_is_where_and_since_when(repo: Path) -> None:
    r, refs = opened(repo)
    claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    (claim,) = claims.listed(r, refs).values()
    assert isinstance(claim, Claim)
    assert (claim.batch, claim.task, claim.worktree) == (ONE, "@", str(repo))
    assert claim.since == AT.isoformat()
    assert claim.host == os.uname().nodename


def test_a_claim_of_the_same_batch_is_adopted(repo: Path) -> None:
    r, refs = opened(repo)
    claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    before = refs.read(REF)
    claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    assert refs.read(REF) == before


def test_a_foreign_claim_is_refused_by_name_and_never_stolen(repo: Path) -> None:
    r, refs = opened(repo)
    claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    record(refs, ONE)
    before = refs.read(REF)
    with pytest.raises(PreconditionError, match=str(ONE)) as refused:
        claims.take(r, refs, "demo", TWO, who=WHO, at=AT)
    assert any("abandon" in hint for hint in refused.value.hints)
    claims.release(r, refs, "demo", TWO)
    assert refs.read(REF) == before


def test_a_claim_of_a_start_that_recorded_nothing_is_taken_over(repo: Path) -> None:
    r, refs = opened(repo)
    claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    claims.take(r, refs, "demo", TWO, who=WHO, at=AT)
    (claim,) = claims.listed(r, refs).values()
    assert isinstance(claim, Claim)
    assert claim.batch == TWO


def test_what_went_wrong_a_claim_that_is_damaged_was_nobodys_for_ever(repo: Path) -> None:
    r, refs = opened(repo)
    claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    record(refs, ONE)
    held = refs.read(REF)
    assert held is not None
    path = repo / ".git/objects" / held[:2] / held[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(PreconditionError, match=f"may be that of batch '{ONE}'"):
        claims.take(r, refs, "demo", TWO, who=WHO, at=AT)
    claims.release(r, refs, "demo", ONE)
    assert refs.read(REF) == held
    claims.take(r, refs, "demo", ONE, who=WHO, at=LATER)
    (claim,) = claims.listed(r, refs).values()
    assert isinstance(claim, Claim)
    assert claim.batch == ONE


def test_a_claim_from_another_host_is_never_taken_over(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r, refs = opened(repo)
    with monkeypatch.context() as patch:
        patch.setattr("git_batch.repo.claims.HOST", "elsewhere")
        claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    with pytest.raises(PreconditionError, match="elsewhere"):
        claims.take(r, refs, "demo", TWO, who=WHO, at=AT)


def test_letting_go_frees_the_slug(repo: Path) -> None:
    r, refs = opened(repo)
    claims.take(r, refs, "demo", ONE, who=WHO, at=AT)
    claims.release(r, refs, "demo", ONE)
    claims.release(r, refs, "demo", ONE)
    assert refs.read(REF) is None


def _try(top: str, batch: str, gate: str) -> bool:
    r, refs = opened(Path(top))
    record(refs, BatchId(batch))
    while not Path(gate).exists():
        pass
    try:
        claims.take(r, refs, "demo", BatchId(batch), who=WHO, at=AT)
    except PreconditionError:
        return False
    return True


def test_of_several_at_once_exactly_one_has_the_claim(repo: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        jobs = [pool.apply_async(_try, (str(repo), f"demo-{n:06d}", str(gate))) for n in range(4)]
        gate.touch()
        assert sum(job.get(timeout=30) for job in jobs) == 1


@pytest.fixture
def machines(repo: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Give two clones of one bare remote called origin."""
    bare = tmp_path / "origin.git"
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(bare), str(other))
    git(repo, "remote", "add", "origin", str(bare))
    return repo, other


def test_two_machines_cannot_claim_the_same_task(machines: tuple[Path, Path]) -> None:
    here, there = (
        claims.RemoteClaims(opened(top)[0], "origin", "demo", batch)
        for top, batch in zip(machines, (ONE, TWO), strict=True)
    )
    task = TaskId("t1")
    assert here.take(task, WHO, AT) is None
    other = there.take(task, WHO, AT)
    assert other is not None
    assert other.batch == ONE
    assert "since" in str(other)
    there.release(task)
    assert there.take(task, WHO, AT) is not None, "only its holder lets go"
    here.release(task)
    assert there.take(task, WHO, AT) is None


def test_our_own_claim_on_a_remote_is_adopted_after_a_crash(machines: tuple[Path, Path]) -> None:
    repo = opened(machines[0])[0]
    first = claims.RemoteClaims(repo, "origin", "demo", ONE)
    assert first.take(TaskId("t1"), WHO, AT) is None
    again = claims.RemoteClaims(repo, "origin", "demo", ONE)
    assert again.take(TaskId("t1"), WHO, AT) is None
    again.release(TaskId("t1"))
    assert git(machines[0], "ls-remote", "origin", "refs/batch/claims/*") == ""


def test_a_claim_that_another_run_of_the_batch_took_was_never_let_go(
    machines: tuple[Path, Path],
) -> None:
    repo, other = (opened(top)[0] for top in machines)
    task, theirs = TaskId("t1"), TaskId("t2")
    assert claims.RemoteClaims(repo, "origin", "demo", ONE).take(task, WHO, AT) is None
    assert claims.RemoteClaims(other, "origin", "demo", TWO).take(theirs, WHO, AT) is None
    again = claims.RemoteClaims(repo, "origin", "demo", ONE)
    for name in (task, theirs):
        again.release(name)
    left = git(machines[0], "ls-remote", "origin", "refs/batch/claims/*").split()
    assert left[1::2] == ["refs/batch/claims/demo/t2"]


def test_all_claims_of_a_batch_are_let_go_and_nothing_else(machines: tuple[Path, Path]) -> None:
    repo, other = (opened(top)[0] for top in machines)
    here = claims.RemoteClaims(repo, "origin", "demo", ONE)
    for name in ("t1", "t2"):
        assert here.take(TaskId(name), WHO, AT) is None
    there = claims.RemoteClaims(other, "origin", "demo", TWO)
    assert there.take(TaskId("t3"), WHO, AT) is None
    elsewhere = claims.RemoteClaims(repo, "origin", "demon", ONE)
    assert elsewhere.take(TaskId("t1"), WHO, AT) is None
    git(machines[0], "push", "-q", "origin", "main:refs/batch/claims/demo/no-claim")
    claims.RemoteClaims(repo, "origin", "demo", ONE).release_all()
    left = git(machines[0], "ls-remote", "origin", "refs/batch/claims/*").split()
    names = [ref.removeprefix("refs/batch/claims/") for ref in left[1::2]]
    assert names == ["demo/no-claim", "demo/t3", "demon/t1"]
    assert not (machines[0] / ".git/FETCH_HEAD").exists(), "that is the person's"


def test_a_remote_that_cannot_be_asked_never_counts_as_free(repo: Path, tmp_path: Path) -> None:
    git(repo, "remote", "add", "origin", str(tmp_path / "nowhere"))
    claim = claims.RemoteClaims(opened(repo)[0], "origin", "demo", ONE)
    with pytest.raises(GitError, match="origin"):
        claim.take(TaskId("t1"), WHO, AT)
