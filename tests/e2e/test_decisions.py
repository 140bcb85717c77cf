"""A person's decisions after a park: retry, skip, adopt, undo, abandon, each as it is typed."""

from __future__ import annotations

import itertools
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from git_batch.core.attempt import DEATHS
from git_batch.errors import GitError
from git_batch.repo import index
from git_batch.repo.journal import Journal
from tests.conftest import git
from tests.e2e.job import BRANCH, committed, outcomes, refs, tasks, told, write
from tests.e2e.job import batch as alone
from tests.e2e.job import here as batch
from tests.e2e.job import task as entry
from tests.e2e.near import near, set_clock

GOOD = 'check = "grep -q good src/c"'


def parked(top: Path) -> None:
    """Bring a batch to a parked 'c' whose check wants another content; 'd' needs it."""
    write(
        top,
        entry("a", "echo one >src/one"),
        entry("c", "echo bad >src/c; echo kept >src/kept", GOOD, "attempts = 1"),
        entry("d", "cat src/c >src/d", 'blocked_by = ["c"]'),
    )
    batch(top, "start", "--yes", status=1)
    assert outcomes(top) == {"a": "committed", "c": "check_failed", "d": "skipped"}


def test_a_fix_in_the_working_tree_becomes_the_work_of_a_parked_task(repo: Path) -> None:
    parked(repo)
    (repo / "src/c").write_text("good\n")
    batch(repo, "adopt", "c", "-m", "mine")
    assert not (repo / "src/c").exists(), "kept, and put back until its commit is made"
    batch(repo, "resume")
    assert committed(repo) == ["a", "c", "d"]
    assert git(repo, "show", f"{BRANCH}:src/d") == "good"
    assert git(repo, "ls-tree", "-r", "--name-only", f"{BRANCH}~1").count("kept") == 0


def test_a_fix_is_checked_like_any_work(repo: Path) -> None:
    parked(repo)
    (repo / "src/c").write_text("still bad\n")
    batch(repo, "adopt", "c")
    batch(repo, "resume", status=1)
    assert outcomes(repo)["c"] == "check_failed"


def test_what_went_wrong_a_fix_could_not_be_replaced_before_it_was_committed(repo: Path) -> None:
    parked(repo)
    (repo / "src/c").write_text("good, nearly\n")
    batch(repo, "adopt", "c")
    [ref] = [name for name in refs(repo) if name.endswith("-adopted")]
    first = refs(repo)[ref]
    (repo / "src/c").write_text("good\n")
    (repo / "src/c2").write_text("more\n")
    refused = batch(repo, "resume", status=3)
    assert "or let them be the work of 'c': git batch adopt c" in refused.hints
    done = batch(repo, "adopt", "c", "-m", "mine")
    assert f"instead of the fix before, which is kept: git show --first-parent {first}" in done.err
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    assert git(repo, "rev-parse", f"{ref}^2") == first
    assert git(repo, "show", f"{first}:src/c") == "good, nearly"
    batch(repo, "resume")
    at = git(repo, "log", "--format=%H", "--grep=Batch-Task: c", BRANCH)
    assert git(repo, "show", f"{at}:src/c") == "good"
    assert git(repo, "show", f"{at}:src/c2") == "more"
    batch(repo, "verify")


def test_a_fix_takes_the_place_of_one_that_is_damaged_and_of_the_same_without_a_word(
    repo: Path,
) -> None:
    parked(repo)
    (repo / "src/c").write_text("good\n")
    batch(repo, "adopt", "c")
    [ref] = [name for name in refs(repo) if name.endswith("-adopted")]
    (repo / "src/c").write_text("good\n")
    assert "instead of" not in batch(repo, "adopt", "c").err
    assert git(repo, "show", f"{ref}:src/c") == "good"
    second = refs(repo)[ref]
    assert len(git(repo, "show", "-s", "--format=%P", second).split()) == 1
    (repo / f".git/objects/{second[:2]}/{second[2:]}").unlink()
    (repo / "src/c").write_text("good enough\n")
    assert "instead of" not in batch(repo, "adopt", "c").err
    batch(repo, "resume")
    assert git(repo, "show", f"{BRANCH}~1:src/c") == "good enough"
    git(repo, "fsck", "--strict")


def test_a_fix_outside_the_scope_is_refused_and_left_where_it_is(repo: Path) -> None:
    parked(repo)
    (repo / "README").write_text("stray\n")
    before = refs(repo)
    refused = batch(repo, "adopt", "c", status=3)
    assert "README" in refused.err
    assert (repo / "README").read_text() == "stray\n"
    assert refs(repo) == before


def test_adopting_nothing_is_refused(repo: Path) -> None:
    parked(repo)
    assert "no changes to adopt" in batch(repo, "adopt", "c", status=3).err


def test_kept_work_can_be_adopted_or_gone_on_from(repo: Path) -> None:
    write(
        repo,
        entry("c", 'echo "good $(cat src/c)" >src/c2; echo x >src/c', GOOD, "attempts = 1"),
        entry("e", "echo e >src/e; exit 1"),
    )
    batch(repo, "start", "--yes", status=1)
    batch(repo, "adopt", "e", "--attempt", "1")
    batch(repo, "resume", status=1)
    assert committed(repo) == ["e"]
    batch(repo, "retry", "c", "--from-attempt", "1")
    batch(repo, "resume", status=1)
    attempt = next(name for name in refs(repo) if "/attempts/c/2" in name)
    assert git(repo, "show", f"{attempt}:src/c2") == "good x", "it saw the kept src/c"
    assert "no work of attempt 9" in batch(repo, "retry", "c", "--from-attempt", "9", status=2).err


def interrupted(top: Path, how: str, status: int) -> None:
    """Bring a batch to a parked 'a' and to a 'b' whose first attempt ends its run."""
    once = f"[ -e .git/once ] || {{ : >.git/once; {how}; }}; echo whole >src/half"
    write(top, entry("a", "exit 1", "attempts = 1"), entry("b", once))
    alone(top, "start", "--yes", status=status)


def test_what_went_wrong_a_fix_took_another_tasks_half_done_work(repo: Path) -> None:
    interrupted(repo, "echo half >src/half; kill -9 $PPID; exit", -9)
    (repo / "src/fix").write_text("fix\n")
    before = refs(repo)
    refused = batch(repo, "adopt", "a", status=3)
    assert "'b' is in flight" in refused.err
    assert refs(repo) == before
    assert (repo / "src/fix").read_text() == "fix\n"
    (repo / "src/fix").rename(repo / ".git/fix")
    batch(repo, "resume", "--kill-orphans", status=1)
    (repo / ".git/fix").rename(repo / "src/fix")
    batch(repo, "adopt", "a")
    batch(repo, "resume")
    assert committed(repo) == ["b", "a"]
    assert git(repo, "diff", "--name-only", f"{BRANCH}~1", BRANCH) == "src/fix"


def test_between_two_attempts_of_another_task_a_fix_can_be_taken(repo: Path) -> None:
    interrupted(repo, "kill -TERM $PPID; sleep 9", 143)
    (repo / "src/fix").write_text("fix\n")
    batch(repo, "adopt", "a")
    batch(repo, "resume")
    assert sorted(committed(repo)) == ["a", "b"]


def test_what_went_wrong_a_task_that_kills_each_run_could_not_be_taken_out(repo: Path) -> None:
    """It was in flight whenever somebody could have, and to let it end killed the next run."""
    killer = "[ -e .git/well ] || { echo half >src/half; kill -9 $PPID; exit; }; echo x >src/x"
    write(repo, entry("a", killer), entry("b", "echo new >src/new"))
    alone(repo, "start", "--yes", status=-9)
    for _ in range(DEATHS - 1):
        refused = batch(repo, "skip", "a", status=3)
        assert "let it end first: git batch resume" in refused.hints
        alone(repo, "resume", "--kill-orphans", status=-9)
    stopped = batch(repo, "resume", "--kill-orphans", status=1)
    assert "needs a human (interrupted)" in stopped.err
    assert committed(repo) == ["b"]
    assert not (repo / "src/half").exists()
    shown = batch(repo, "show", "a").out
    assert "3 runs in a row ended before its attempt did" in shown
    assert [n for n in (1, 2, 3) if f"attempts/a/{n}" in " ".join(refs(repo))] == [1, 2, 3]
    (repo / ".git/well").touch()
    batch(repo, "retry", "a", "-m", "leave the runner alone")
    batch(repo, "resume")
    assert committed(repo) == ["b", "a"]


def test_what_went_wrong_a_fix_was_put_away_before_it_was_recorded(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(repo)
    (repo / "src/c").write_text("good\n")

    def full(*_: object, **__: object) -> None:
        raise GitError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", full)
        assert "no space" in batch(repo, "adopt", "c", status=None).err
    assert (repo / "src/c").read_text() == "good\n"
    batch(repo, "adopt", "c")
    batch(repo, "resume")
    assert committed(repo) == ["a", "c", "d"]


def test_what_is_recorded_of_a_fix_and_not_put_away_is_put_away_by_resume(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(repo)
    (repo / "src/c").write_text("good\n")
    (repo / "src/b").unlink()
    (repo / ".git/index.lock").touch()
    with monkeypatch.context() as patch:
        patch.setattr(index, "LOCK_WAIT", 0.1)
        assert "index.lock" in batch(repo, "adopt", "c", status=None).err
    (repo / ".git/index.lock").unlink()
    assert (repo / "src/b").exists()
    (repo / "src/c").write_text("good\n")  # as if it was killed when only half was put away
    (repo / "src/mine").write_text("mine\n")
    refused = batch(repo, "resume", status=3)
    assert "src/mine" in refused.err
    assert "src/c" not in refused.err
    (repo / "src/mine").unlink()
    assert "put back as the record says" in batch(repo, "resume").err
    assert committed(repo) == ["a", "c", "d"]
    assert git(repo, "diff", "--name-only", f"{BRANCH}~2", f"{BRANCH}~1").split() == [
        "src/b",
        "src/c",
    ]


def test_what_went_wrong_a_fix_that_did_not_apply_could_not_be_reached(repo: Path) -> None:
    write(
        repo,
        entry("c", "exit 1", "attempts = 1"),
        entry("e", "[ -e .git/go ] && echo e >src/a || exit 1", "attempts = 1"),
    )
    batch(repo, "start", "--yes", status=1)
    (repo / "src/a").write_text("fix\n")
    batch(repo, "adopt", "c")
    (repo / ".git/go").touch()
    batch(repo, "retry", "e")
    (repo / "src/a").write_text("theirs\n")
    git(repo, "commit", "-qam", "theirs")
    batch(repo, "bless")
    batch(repo, "resume", status=1)
    shown = batch(repo, "show", "c").out
    kept = next(name for name in refs(repo) if name.endswith("/attempts/c/2-adopted"))
    assert f"git show --first-parent {kept}" in shown
    assert git(repo, "show", f"{kept}:src/a") == "fix"
    batch(repo, "adopt", "c", "--attempt", "2")
    assert outcomes(repo)["c"] is None


def test_what_went_wrong_a_task_that_says_not_now_each_time_could_not_be_taken_out(
    repo: Path,
) -> None:
    write(
        repo,
        entry("one", "echo 1 >src/one"),
        entry("two", "exit 75"),
        entry("three", "echo 3 >src/three", 'blocked_by = ["two"]'),
        entry("four", "echo 4 >src/four"),
    )
    batch(repo, "start", "--yes", status=1)
    assert told(repo)["outcome"] == "not_now"
    refused = batch(repo, "retry", "two", status=3)
    assert refused.hints == [
        "let it end first: git batch resume",
        "or take it out: git batch skip two",
    ]
    batch(repo, "skip", "two", "--dependents", "-m", "the service is gone")
    batch(repo, "resume")
    assert outcomes(repo) == {
        "one": "committed",
        "two": "dropped",
        "three": "dropped",
        "four": "committed",
    }
    batch(repo, "verify")


def test_skipping_with_dependents_completes_the_batch(repo: Path) -> None:
    parked(repo)
    batch(repo, "skip", "c", "--dependents", "-m", "not worth it")
    batch(repo, "resume")
    assert outcomes(repo) == {"a": "committed", "c": "dropped", "d": "dropped"}
    assert told(repo)["state"] == "completed"


def test_skipping_alone_leaves_what_needs_it_waiting_and_says_how_to_go_on(repo: Path) -> None:
    parked(repo)
    batch(repo, "skip", "c")
    batch(repo, "resume", status=1)
    assert tasks(repo)["d"]["state"] == "skipped_blocked"
    assert "'c'" in tasks(repo)["d"]["reason"]
    batch(repo, "skip", "c", "--dependents")
    batch(repo, "resume")


def test_a_dropped_task_can_be_taken_in_again(repo: Path) -> None:
    parked(repo)
    batch(repo, "skip", "c")
    batch(repo, "retry", "c")
    batch(repo, "resume", status=1)
    assert outcomes(repo)["c"] == "check_failed"


@pytest.mark.parametrize("redo", [False, True])
def test_undoing_a_task_reverts_what_needs_it_first(repo: Path, redo: bool) -> None:
    write(
        repo,
        entry("a", "echo one >src/one"),
        entry("b", "echo two >>src/one", 'blocked_by = ["a"]'),
        entry("c", "echo c >src/c"),
    )
    batch(repo, "start", "--yes")
    batch(repo, "undo", "a", *(["--redo"] if redo else []), "-m", "no good")
    undone = git(repo, "log", "--format=%(trailers:key=Batch-Undo,valueonly)", f"main..{BRANCH}")
    assert undone.split() == ["a", "b"]
    assert not (repo / "src/one").exists()
    assert (repo / "src/c").exists()
    assert git(repo, "status", "--porcelain", "-uno") == ""
    if not redo:
        assert outcomes(repo) == {"a": "undone", "b": "undone", "c": "committed"}
        return
    batch(repo, "resume")
    assert outcomes(repo) == dict.fromkeys("abc", "committed")
    assert git(repo, "show", f"{BRANCH}:src/one") == "one\ntwo"


def test_an_undo_that_conflicts_changes_nothing(repo: Path) -> None:
    write(repo, entry("a", "echo one >src/one"), entry("c", "echo other >src/one"))
    batch(repo, "start", "--yes")
    before = refs(repo)
    refused = batch(repo, "undo", "a", status=3)
    assert "src/one" in refused.err
    assert refs(repo) == before
    assert git(repo, "status", "--porcelain", "-uno") == ""


@pytest.mark.parametrize("zone", ["+14:00", "-12:00"])
def test_what_went_wrong_an_undo_followed_the_clock_and_not_the_branch(
    repo: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """Set back by an hour, and shown in another offset, for each task that ends."""
    start = datetime.now(UTC)
    ticks = (start - timedelta(hours=n) for n in range(1000))
    zones = itertools.cycle([UTC, datetime.fromisoformat(f"2026-01-01T00:00:00{zone}").tzinfo])
    set_clock(monkeypatch, lambda: next(ticks).astimezone(next(zones)))
    write(
        repo,
        entry("one", "echo one >src/one"),
        entry("two", "echo two >>src/one", 'blocked_by = ["one"]'),
        entry("three", "echo three >>src/one", 'blocked_by = ["two"]'),
    )
    batch(repo, "start", "--yes")
    batch(repo, "undo", "one", "-m", "no good")
    form = "--format=%(trailers:key=Batch-Undo,valueonly)"
    assert git(repo, "log", form, f"main..{BRANCH}").split() == ["one", "two", "three"]
    batch(repo, "verify")


def test_what_went_wrong_a_task_that_was_taken_back_could_not_be_redone(repo: Path) -> None:
    write(repo, entry("one", "echo one >src/one"), entry("two", "echo two >src/two"))
    batch(repo, "start", "--yes")
    batch(repo, "undo", "one")
    tip = git(repo, "rev-parse", BRANCH)
    refused = batch(repo, "undo", "one", status=3)
    assert "'one' is dropped" in refused.err
    (command,) = [hint.partition(": ")[2] for hint in refused.hints]
    assert command == "git batch undo one --redo", "a completed batch has nothing to retry"
    batch(repo, *command.split()[2:])
    assert git(repo, "rev-parse", BRANCH) == tip
    assert tasks(repo)["one"]["state"] == "pending"
    batch(repo, "resume")
    batch(repo, "verify")
    assert outcomes(repo) == {"one": "committed", "two": "committed"}
    assert git(repo, "show", f"{BRANCH}:src/one") == "one"


def test_what_went_wrong_only_one_of_the_tasks_that_were_taken_back_together_was_redone(
    repo: Path,
) -> None:
    write(
        repo,
        entry("alone", "echo x >src/alone"),
        entry("one", "echo one >src/one"),
        entry("two", "echo two >src/two", 'blocked_by = ["one"]'),
        entry("three", "echo three >src/three", 'blocked_by = ["alone", "two"]'),
        entry("four", "echo four >src/four", 'blocked_by = ["one"]'),
    )
    near(repo, "start", "--yes")
    near(repo, "undo", "four")  # by itself, before: that stays so
    assert near(repo, "undo", "one").out.startswith("'one', 'two', 'three' were taken back")
    redone = near(repo, "undo", "one", "--redo").out.splitlines()
    assert redone[0].startswith("'one', 'two', 'three' will run again; ")
    stand = {name: entry["state"] for name, entry in tasks(repo).items()}
    assert stand == dict.fromkeys(("one", "two", "three"), "pending") | {
        "alone": "committed",
        "four": "dropped",
    }
    near(repo, "resume")
    near(repo, "verify")
    done = dict.fromkeys(("alone", "one", "two", "three"), "committed")
    assert outcomes(repo) == done | {"four": "undone"}


def test_of_a_task_that_was_taken_out_it_is_said_how_it_is_taken_in_again(repo: Path) -> None:
    parked(repo)
    batch(repo, "undo", "a")
    refused = batch(repo, "undo", "a", status=3)
    (command,) = [hint.partition(": ")[2] for hint in refused.hints]
    assert command == "git batch retry a"
    batch(repo, *command.split()[2:])
    batch(repo, "resume", status=1)
    assert outcomes(repo)["a"] == "committed"


def test_an_undo_that_was_cut_short_is_rolled_forward(repo: Path) -> None:
    write(repo, entry("a", "echo one >src/one"), entry("c", "echo c >src/c"))
    batch(repo, "start", "--yes")
    tip = git(repo, "rev-parse", BRANCH)
    batch(repo, "undo", "c", "--redo")
    new = git(repo, "rev-parse", BRANCH)
    git(repo, "reset", "-q", "--hard", tip)  # as if it died after recording, before anything moved
    batch(repo, "resume")
    assert git(repo, "rev-parse", f"{BRANCH}~1") == new
    assert outcomes(repo) == {"a": "committed", "c": "committed"}


def test_a_decision_that_does_not_fit_says_what_is_possible(repo: Path) -> None:
    parked(repo)
    assert "git batch show" in batch(repo, "retry", "a", status=3).err
    assert "is skipped, so" in batch(repo, "retry", "d", status=3).err
    assert "did you mean 'a'" in batch(repo, "skip", "aa", status=2).err


def test_abandoning_keeps_everything_and_frees_the_slug(repo: Path) -> None:
    parked(repo)
    kept = refs(repo)
    batch(repo, "abandon", "-m", "enough")
    now = refs(repo)
    assert {n: o for n, o in now.items() if "/attempts/" in n or n.endswith(BRANCH)} == {
        n: o for n, o in kept.items() if "/attempts/" in n or n.endswith(BRANCH)
    }
    assert told(repo)["state"] == "abandoned"
    batch(repo, "abandon", status=3)


@pytest.mark.parametrize(
    "command",
    [
        ("start", "--yes"),
        ("resume", "--yes"),
        ("retry", "c"),
        ("skip", "c"),
        ("adopt", "c"),
        ("undo", "a"),
        ("review", "c", "--accept"),
        ("stop",),
        ("abandon",),
    ],
)
def test_a_task_can_decide_nothing(repo: Path, command: tuple[str, ...]) -> None:
    parked(repo)
    before = refs(repo)
    refused = batch(repo, *command, status=3, env={"BATCH_TASK": "c"})
    assert "inside task 'c'" in refused.err
    assert refs(repo) == before


def test_two_machines_run_each_task_once(repo: Path, place: Path) -> None:
    bare, other = place / "origin.git", place / "other"
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    git(repo, "remote", "add", "origin", str(bare))
    git(place, "clone", "-q", str(bare), str(other))
    run = f"echo one >src/one; git -C '{bare}' for-each-ref refs/batch/claims >'{place}/seen'"
    write(repo, entry("a", run))
    ref = "refs/batch/claims/demo/b"
    write(other, entry("b", "echo b >src/b2", "attempts = 1"), entry("c", "echo c >src/c"))
    batch(repo, "start", "--yes", "--claim", "origin")
    assert "refs/batch/claims/demo/a" in (place / "seen").read_text()
    assert git(bare, "for-each-ref", "refs/batch/claims") == "", "let go when it was committed"
    theirs = git(repo, "commit-tree", f"{BRANCH}^{{tree}}", "-m", CLAIM)
    git(repo, "push", "-q", "origin", f"{theirs}:{ref}")
    batch(other, "start", "--yes", "--claim", "origin", status=1)
    assert outcomes(other) == {"b": "claimed_elsewhere", "c": "committed"}
    reason = tasks(other)["b"]["reason"]
    assert "batch demo-zzzzzz on host far-away since 2026-01-01" in reason
    assert git(bare, "for-each-ref", "--format=%(objectname)", ref) == theirs, "never stolen"


CLAIM = """\
claim demo-zzzzzz

Batch-Id: demo-zzzzzz
Batch-Task: b
Batch-Host: far-away
Batch-Worktree: /home/x/r
Batch-Since: 2026-01-01T00:00:00+00:00
"""


def test_a_remote_that_does_not_exist_is_refused_before_anything_is_written(repo: Path) -> None:
    write(repo, entry("a", "echo one >src/one"))
    before = refs(repo)
    assert "no remote 'nowhere'" in batch(repo, "start", "-y", "--claim", "nowhere", status=2).err
    assert refs(repo) == before


def test_the_slug_is_claimed_while_a_batch_is_not_over(repo: Path) -> None:
    parked(repo)
    assert told(repo, "list")["claims"][0]["on"] == "demo"
    assert "claim on 'demo'" in batch(repo, "list").out
    batch(repo, "skip", "c", "--dependents")
    batch(repo, "resume")
    assert told(repo, "list")["claims"] == []


def test_what_went_wrong_only_one_of_the_tasks_that_were_taken_was_named(repo: Path) -> None:
    write(
        repo,
        entry("base", "echo 1 >src/base"),
        entry("mid", "echo 2 >src/mid", 'blocked_by = ["base"]'),
        entry("top", "echo 3 >src/top", 'blocked_by = ["mid"]'),
        entry("bad", "exit 1"),
        entry("left", "true", 'blocked_by = ["bad"]'),
    )
    batch(repo, "start", "--yes", status=1)
    undone = batch(repo, "undo", "base").out
    assert undone.startswith("'base', 'mid', 'top' were taken back; 'batch/demo' is at ")
    skipped = batch(repo, "skip", "bad", "--dependents").out
    assert skipped.startswith("'bad', 'left' were taken out\n")
    nothing = batch(repo, "skip", "bad", "--dependents", status=3).err
    assert "'bad' was taken out before, and nothing is left behind it" in nothing


def test_what_went_wrong_who_forgot_words_for_a_retry_was_not_told_how_to_add_them(
    repo: Path,
) -> None:
    run = 'echo >src/one; grep -q more "$BATCH_FEEDBACK" && cat "$BATCH_FEEDBACK" >../told'
    write(repo, entry("a", run, "attempts = 1"))
    batch(repo, "start", "--yes", status=1)
    batch(repo, "retry", "a", "-m", "first words")
    done = batch(repo, "retry", "a", "-m", "more", status=3)
    more = "git batch skip a && git batch retry a -m more"
    assert done.hints == [
        "it runs by itself when its turn comes: git batch resume",
        f"to tell it more first: {more}",
    ]
    for command in more.split(" && "):
        batch(repo, *command.split()[2:])
    batch(repo, "resume")
    told_to = (repo.parent / "told").read_text()
    assert told_to.index("more") < told_to.index("first words")


def test_what_went_wrong_after_a_retry_a_persons_fix_was_taken_by_nothing(repo: Path) -> None:
    write(
        repo,
        entry("a", "echo ran >>../ran; exit 1", "attempts = 1"),
        entry("b", "exit 1", 'scope = ["other/**"]', "attempts = 1"),
        entry("c", "exit 1", "attempts = 1"),
    )
    batch(repo, "start", "--yes", status=1)
    batch(repo, "skip", "c")
    batch(repo, "retry", "a", "-m", "try harder")
    (repo / "src/one").write_text("mine\n")
    refused = batch(repo, "resume", status=3)
    assert "changes that no task made" in refused.err
    assert refused.hints[-1] == "or let them be the work of 'a': git batch adopt a"
    assert sum("git batch adopt" in hint for hint in refused.hints) == 1  # 'b' may not change it
    batch(repo, *refused.hints[-1].rpartition("git batch ")[2].split())
    batch(repo, "resume", status=1)
    assert outcomes(repo) == {"a": "committed", "b": "run_failed", "c": "dropped"}
    assert git(repo, "show", "HEAD:src/one") == "mine"
    assert (repo.parent / "ran").read_text() == "ran\n"


def test_a_task_that_never_ran_takes_no_fix(repo: Path) -> None:
    write(repo, entry("a", "exit 1", "attempts = 1"), entry("b", "echo b >src/b2"))
    batch(repo, "start", "--yes", "--fail-fast", status=1)
    (repo / "src/one").write_text("mine\n")
    assert "runs by itself" in batch(repo, "adopt", "b", status=3).err
    hints = batch(repo, "resume", status=3).hints
    assert hints[-1] == "or let them be the work of 'a': git batch adopt a"


def test_who_goes_on_from_kept_work_is_told_how_to_add_words_and_keep_it(repo: Path) -> None:
    write(repo, entry("a", "echo >>src/one; exit 1", "attempts = 2"))
    batch(repo, "start", "--yes", status=1)
    batch(repo, "retry", "a", "--from-attempt", "1")
    more = "to tell it more first: git batch skip a && git batch retry a"
    hints = batch(repo, "retry", "a", status=3).hints
    assert hints[1] == f"{more} -m 'TEXT' --from-attempt 1"
    words = "don't"
    hints = batch(repo, "retry", "a", "-m", words, status=3).hints
    assert hints[1] == f"{more} -m {shlex.quote(words)} --from-attempt 1"


def test_of_a_fix_that_is_not_applied_yet_nothing_runs_that_could_be_told_more(repo: Path) -> None:
    write(repo, entry("a", "exit 1", "attempts = 1"), entry("b", "echo b >src/b2"))
    batch(repo, "start", "--yes", status=1)
    (repo / "src/one").write_text("mine\n")
    batch(repo, "adopt", "a")
    assert len(batch(repo, "retry", "a", "-m", "more", status=3).hints) == 1


def test_what_went_wrong_a_retry_was_promised_that_waits_for_what_was_dropped(repo: Path) -> None:
    write(
        repo,
        entry("a", "echo a >src/one"),
        entry("b", "exit 1", 'blocked_by = ["a"]'),
        entry("c", "exit 1"),
    )
    batch(repo, "start", "--yes", status=1)
    batch(repo, "undo", "a")
    assert batch(repo, "retry", "b").out.startswith(
        "'b' will run again, once what it needs is done\n"
    )
    assert batch(repo, "retry", "c").out.startswith("'c' will run again\n")


def test_what_went_wrong_a_retry_in_a_batch_that_is_over_was_no_help(repo: Path) -> None:
    write(repo, entry("a", "echo a >src/one"), entry("b", "exit 1"))
    batch(repo, "start", "--yes", status=1)
    batch(repo, "skip", "b")
    batch(repo, "resume")
    for name in ("a", "b"):
        way = batch(repo, "retry", name, status=3).hints[0].partition(": ")[2]
        assert way == f"git batch undo {name} --redo"
        batch(repo, *way.split()[2:])
        assert outcomes(repo)[name] is None
        batch(repo, "skip", name)
        batch(repo, "resume")


def test_what_went_wrong_a_branch_was_said_to_stay_that_was_gone(repo: Path) -> None:
    parked(repo)
    git(repo, "switch", "-q", "main")
    git(repo, "branch", "-q", "-D", BRANCH)
    said = batch(repo, "abandon").out
    assert said.endswith(" was abandoned; all kept work stays\n")
