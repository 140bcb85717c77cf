"""What the moves of refs mean, by literal moves; the rest of the fence is tested end to end."""

from __future__ import annotations

import fcntl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import Actor, InFlight
from git_batch.core.standing import Phase
from git_batch.core.values import replace
from git_batch.repo.commits import Idents
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from git_batch.run.context import RunContext
from git_batch.run.refmoves import GRAVE, Grade, Move, RefJudge
from tests.conftest import git
from tests.e2e.job import task, write
from tests.e2e.near import near

BATCH = BatchId("demo-abc123")
NOW = datetime(2090, 1, 1, tzinfo=UTC)


class Setting:
    """A judge over a repository with a batch that nobody runs."""

    def __init__(self, repo: Path) -> None:
        opened = Repository.open(str(repo))
        self.repo, self.refs = repo, Refs(opened)
        (repo / ".git/batch").mkdir()
        me = Actor("T", "t@x")
        context = SimpleNamespace(
            repo=opened,
            refs=self.refs,
            branch="refs/heads/batch/demo",
            who=Idents(me, me),
            state=SimpleNamespace(
                batch_id=BATCH, tasks={}, base=Oid(git(repo, "rev-parse", "HEAD"))
            ),
        )
        git(repo, "commit", "-q", "--allow-empty", "-m", "the task before")
        self.judge = RefJudge(cast(RunContext, context))
        head = Oid(git(repo, "rev-parse", "HEAD"))
        self.flight = InFlight(
            TaskId("t"), 1, Phase.RUNNING, NOW, NOW, NOW, parent=head, enrolled=head
        )

    def commit(self, *args: str) -> str:
        tree = git(self.repo, "rev-parse", "HEAD^{tree}")
        return git(self.repo, *args, "commit-tree", "-m", "x", "-p", "HEAD", tree)

    def grade(self, name: str, old: str | None, new: str | None, **others: Any) -> Grade:
        moves = {name: (old, new), **others.get("beside", {})}
        found = {move.name: move.grade for move in self.judge.judge(moves, self.flight)}
        return found[name]


@pytest.fixture
def setting(repo: Path) -> Setting:
    return Setting(repo)


A, B = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("name", "old", "new", "grade"),
    [
        ("refs/heads/x", None, A, Grade.MADE),
        ("refs/heads/x", A, B, Grade.MOVED),
        ("refs/heads/x", A, None, Grade.MOVED),
        ("refs/tags/x", None, A, Grade.MADE),
        ("refs/tags/x", A, None, Grade.MOVED),
        ("refs/stash", None, A, Grade.MADE),
        ("refs/stash", A, B, Grade.MOVED),
        ("refs/replace/" + A, None, B, Grade.MOVED),
        ("refs/notes/batch/other-abc123", A, B, Grade.MOVED),
        ("refs/batch/claims/demo/t", A, None, Grade.MOVED),
        (f"refs/notes/batch/{BATCH}", A, None, Grade.OURS),
        (f"refs/batch/{BATCH}/attempts/t/1", A, None, Grade.OURS),
        ("refs/remotes/origin/x", None, A, Grade.TOLD),
        ("refs/remotes/origin/x", A, None, Grade.TOLD),
        ("refs/remotes/origin/HEAD", None, "ref: refs/remotes/origin/x", Grade.TOLD),
        ("refs/prefetch/remotes/origin/x", A, B, Grade.TOLD),
        ("refs/batch/remotes/origin/other-abc123", A, B, Grade.TOLD),
        ("refs/bisect/bad", None, A, Grade.TOLD),
        ("refs/notes/commits", None, A, Grade.TOLD),
        ("refs/notes/commits", A, B, Grade.MOVED),
        ("refs/checkpoints/x", None, A, Grade.TOLD),
        ("refs/checkpoints/x", A, None, Grade.MOVED),
    ],
)
def test_each_kind_of_move_has_its_grade(
    setting: Setting, name: str, old: str | None, new: str | None, grade: Grade
) -> None:
    assert setting.grade(name, old, new) is grade


def test_a_tag_that_comes_with_a_fetch_is_told(setting: Setting) -> None:
    fetched = {"refs/remotes/origin/main": (None, A)}
    assert setting.grade("refs/tags/v1", None, B, beside=fetched) is Grade.TOLD
    own = setting.flight.parent
    assert setting.grade("refs/tags/v1", None, own, beside=fetched) is Grade.MADE


def test_a_tracking_ref_at_our_own_commits_is_a_push(setting: Setting) -> None:
    name = "refs/remotes/origin/main"
    assert setting.grade(name, None, setting.flight.parent) is Grade.PUSHED
    now = replace(setting.flight, attempt_at=NOW - timedelta(days=30_000))
    setting.flight = now
    assert setting.grade(name, None, setting.commit()) is Grade.PUSHED
    assert setting.grade(name, None, setting.commit("-c", "user.email=o@x")) is Grade.TOLD
    base = git(setting.repo, "rev-parse", "HEAD~")
    assert setting.grade(name, None, base) is Grade.TOLD
    setting.flight = replace(setting.flight, parent=Oid(base))
    assert setting.grade(name, None, base) is Grade.TOLD


def test_notes_that_only_grow_are_told(setting: Setting) -> None:
    old = git(setting.repo, "rev-parse", "HEAD")
    assert setting.grade("refs/notes/ai", old, setting.commit()) is Grade.TOLD
    assert setting.grade("refs/notes/ai", setting.commit(), old) is Grade.MOVED


def test_what_this_run_moved_itself_is_known_by_its_value(setting: Setting) -> None:
    name = f"refs/batch/{BATCH}/logs"
    new = Oid(git(setting.repo, "rev-parse", "HEAD"))
    setting.refs.swap(name, None, new, "test")
    assert setting.judge.judge({name: (None, new)}, setting.flight) == []
    assert setting.grade(name, None, A) is Grade.OURS
    setting.refs.delete_all({name: new})
    assert setting.judge.judge({name: (new, None)}, setting.flight) == []


def test_the_batch_branch_is_not_judged_here(setting: Setting) -> None:
    assert setting.judge.judge({"refs/heads/batch/demo": (A, B)}, setting.flight) == []


def test_every_move_says_both_values() -> None:
    for grade in Grade:
        assert A in str(Move("refs/heads/x", A, B, grade))
        assert B in str(Move("refs/heads/x", A, B, grade))
    assert {Grade.MOVED, Grade.PUSHED, Grade.OURS} == GRAVE


OTHER = BatchId("other-abc123")


def feign(setting: Setting) -> None:
    """Let the lock of a batch that nobody works on seem to have been taken, as a task can."""
    setting.judge.note()
    (setting.repo / f".git/batch/{OTHER}.lock").write_text("{}")


def recorded(setting: Setting, branch: str) -> str:
    """Write a record of another batch, as a task can forge it."""
    top, ref = setting.repo, f"refs/notes/batch/{OTHER}"
    near(top, "start", "--yes", str(write(top, task("x", "true"))), status=None)
    own = git(top, "for-each-ref", "--format=%(refname)", "refs/notes/batch")

    def forged(text: str) -> str:
        text = text.replace(own.rpartition("/")[2], OTHER).replace("batch/demo", branch)
        return text.replace('slug = "demo"', 'slug = "other"') + "\n"

    header = stored(top, "blob", forged(git(top, "show", f"{own}:batch.toml")))
    tree = git(top, "ls-tree", own).replace(git(top, "rev-parse", f"{own}:batch.toml"), header)
    lines = forged(git(top, "cat-file", "commit", own)).split("\n")
    lines[0] = f"tree {run_git(top, 'mktree', input=tree)}"
    oid = stored(top, "commit", "\n".join(lines))
    git(top, "update-ref", ref, oid)
    return oid


def stored(top: Path, kind: str, text: str) -> str:
    return run_git(top, "hash-object", "-w", "-t", kind, "--stdin", "--literally", input=text)


def run_git(top: Path, *args: str, input: str) -> str:
    command = ["git", *args]
    done = subprocess.run(command, cwd=top, input=input, text=True, capture_output=True, check=True)
    return done.stdout.strip()


def test_what_went_wrong_a_lock_that_was_only_touched_let_another_record_be_rewritten(
    setting: Setting,
) -> None:
    feign(setting)
    assert setting.grade(f"refs/notes/batch/{OTHER}", A, B) is Grade.MOVED
    feign(setting)
    assert setting.grade(f"refs/notes/batch/{OTHER}", A, None) is Grade.MOVED
    feign(setting)
    head, more = git(setting.repo, "rev-parse", "HEAD"), setting.commit()
    assert setting.grade(f"refs/notes/batch/{OTHER}", head, more) is Grade.TOLD


def test_what_went_wrong_a_forged_record_let_any_branch_be_moved(setting: Setting) -> None:
    forged = recorded(setting, "main")
    feign(setting)
    beside = {f"refs/notes/batch/{OTHER}": (None, forged)}
    assert setting.grade("refs/heads/main", A, B, beside=beside) is Grade.MOVED
    feign(setting)
    assert setting.grade("refs/heads/main", None, B, beside=beside) is Grade.TOLD


def test_what_is_held_by_another_runner_is_its_own(setting: Setting) -> None:
    setting.judge.note()
    with (setting.repo / f".git/batch/{OTHER}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert setting.grade(f"refs/notes/batch/{OTHER}", A, B) is Grade.BESIDE
