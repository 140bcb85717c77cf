"""Reviews: by a person later, by a command at once; a verdict is for one change only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, committed, outcomes, refs, tasks, told, write
from tests.e2e.job import here as batch
from tests.e2e.job import task as entry

HUMAN = 'review = "human"'


def reviewed(top: Path, *more: str) -> None:
    """Bring a batch to a pending review of 'a'; 'b' needs it, 'c' does not."""
    write(
        top,
        entry("a", "echo one >src/one; echo changed >>src/a", HUMAN),
        entry("b", "cat src/one >src/b2", 'blocked_by = ["a"]'),
        entry("c", "echo c >src/c", *more),
    )
    batch(top, "start", "--yes", status=1)


def test_a_pending_review_keeps_the_work_and_lets_independent_tasks_go_on(repo: Path) -> None:
    reviewed(repo)
    assert outcomes(repo) == {"a": "review_pending", "b": "not_run_stopped", "c": "committed"}
    assert committed(repo) == ["c"]
    status = told(repo)
    assert (status["state"], status["outcome"]) == ("needs_human", "review_pending")
    assert status["review"]["task"] == "a"
    assert not (repo / "src/one").exists()
    assert (repo / "src/a").read_text() == "a\n"
    kept = next(name for name in refs(repo) if "/attempts/a/1" in name)
    assert git(repo, "show", f"{kept}:src/one") == "one"
    assert "+one" in batch(repo, "show", "a", "--diff").out


def test_an_accepted_change_is_committed_on_a_tip_that_has_moved(repo: Path) -> None:
    reviewed(repo, 'check = "test -e src/c"')
    batch(repo, "review", "a", "--accept", "-m", "fine")
    done = batch(repo, "resume")
    assert committed(repo) == ["c", "a", "b"]
    assert git(repo, "show", f"{BRANCH}:src/b2") == "one"
    assert "attempt" in done.err
    assert git(repo, "status", "--porcelain", "-uno") == ""


def test_the_checks_run_again_on_the_moved_tip_and_may_refuse_an_accepted_change(
    repo: Path,
) -> None:
    write(
        repo,
        entry("a", "echo one >src/one", HUMAN, 'check = "test ! -e src/c"', "attempts = 1"),
        entry("c", "echo c >src/c"),
    )
    batch(repo, "start", "--yes", status=1)
    batch(repo, "review", "a", "--accept")
    batch(repo, "resume", status=1)
    assert outcomes(repo)["a"] == "check_failed"
    assert committed(repo) == ["c"]


def test_an_accepted_change_that_conflicts_with_later_commits_is_parked_with_the_paths(
    repo: Path,
) -> None:
    write(
        repo,
        entry("a", "echo mine >src/a", HUMAN),
        entry("c", "echo theirs >src/a"),
    )
    batch(repo, "start", "--yes", status=1)
    batch(repo, "review", "a", "--accept")
    batch(repo, "resume", status=1)
    told_of_it = tasks(repo)["a"]
    assert told_of_it["state"] == "needs_human"
    assert "does not apply" in told_of_it["reason"]
    assert (repo / "src/a").read_text() == "theirs\n"


def test_rework_parks_with_the_words_and_a_retry_is_told_them(repo: Path) -> None:
    write(
        repo,
        entry("a", 'echo x >>src/a; cat "${BATCH_FEEDBACK:-/dev/null}" >src/told', HUMAN),
    )
    batch(repo, "start", "--yes", status=1)
    refused = batch(repo, "review", "a", "--rework", status=2)
    assert "say why" in refused.err
    batch(repo, "review", "a", "--rework", "-m", "more tests please")
    assert outcomes(repo) == {"a": "review_rework"}
    assert tasks(repo)["a"]["reason"] == "more tests please"
    batch(repo, "retry", "a")
    batch(repo, "resume", status=1)
    batch(repo, "review", "a", "--accept")
    batch(repo, "resume")
    assert "more tests please" in git(repo, "show", f"{BRANCH}:src/told")


def test_a_rejected_change_parks_and_its_dependents_are_skipped(repo: Path) -> None:
    reviewed(repo)
    batch(repo, "review", "a", "--reject", "-m", "not like this")
    assert outcomes(repo)["a"] == "review_rejected"
    assert tasks(repo)["b"]["state"] == "skipped_blocked"


def test_a_verdict_without_a_pending_review_is_refused_with_what_is_so(repo: Path) -> None:
    reviewed(repo)
    assert "is committed" in batch(repo, "review", "c", "--accept", status=3).err
    batch(repo, "review", "a", "--accept")
    assert "already" in batch(repo, "review", "a", "--accept", status=3).err
    assert "no task 'zz'" in batch(repo, "review", "zz", "--accept", status=2).err


def test_a_pending_review_survives_the_loss_of_its_local_ref(repo: Path) -> None:
    """Another clone has the record, not the attempts; the record keeps the change alive."""
    reviewed(repo)
    for name in refs(repo):
        if "/attempts/" in name:
            git(repo, "update-ref", "-d", name)
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    batch(repo, "review", "a", "--accept")
    batch(repo, "resume")
    assert committed(repo) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("true", "committed"),
        ('grep -q "+one" "$BATCH_DIFF"', "committed"),
        ("echo please more tests; exit 1", "review_rework"),
        ("exit 125", "review_pending"),
        ("echo left >src/left", "review_changed_tree"),
        ("exit 7", "run_failed"),
    ],
)
def test_a_command_reviewer_is_taken_at_its_exit_status(
    repo: Path, command: str, outcome: str
) -> None:
    write(repo, entry("a", "echo one >src/one", f"review = '''{command}'''"))
    batch(repo, "start", "--yes", status=0 if outcome == "committed" else 1)
    assert outcomes(repo) == {"a": outcome}
    assert git(repo, "status", "--porcelain", "-uno") == ""
    if outcome == "review_rework":
        assert "please more tests" in tasks(repo)["a"]["reason"]


def test_what_went_wrong_a_review_that_handed_over_could_not_be_read(repo: Path) -> None:
    why = "echo 'touches the parser'; echo 'look at line 7'; exit 125"
    write(repo, entry("a", "echo one >src/one; echo made it", f'review = "{why}"'))
    ended = batch(repo, "start", "--yes", status=1)
    assert "waits for a review (touches the parser), git batch show a --diff" in ended.err
    assert tasks(repo)["a"]["reason"] == "waits for a review: touches the parser"
    assert "touches the parser" in batch(repo, "report").out
    assert "touches the parser" in batch(repo, "log").out
    shown = batch(repo, "show", "a", "--output").out
    assert "made it\n" in shown
    assert "touches the parser\nlook at line 7\n" in shown


def test_what_went_wrong_nobody_could_read_why_a_review_accepted(repo: Path) -> None:
    write(repo, entry("a", "echo one >src/one", 'review = "echo small and clear"'))
    batch(repo, "start", "--yes")
    assert "small and clear" in batch(repo, "show", "a", "--output").out
    assert "small and clear" in batch(repo, "log").out


@pytest.mark.parametrize(
    ("said", "outcome", "why"),
    [
        (["review", "a", "--rework", "-m", "not so"], "review_rework", "not so"),
        (["review", "a", "--reject", "-m", "never"], "review_rejected", "never"),
        (["review", "a", "--accept"], "review_pending", "accepted"),
        (["skip", "a"], "review_pending", "taken out before it was reviewed"),
    ],
    ids=["rework", "reject", "accept", "skip"],
)
def test_what_went_wrong_an_attempt_waited_for_ever_for_a_review_that_had_been(
    repo: Path, said: list[str], outcome: str, why: str
) -> None:
    reviewed(repo)
    batch(repo, *said)

    def first() -> tuple[str, str]:
        shown = batch(repo, "show", "a", "--attempt", "1").out.partition("attempt 1: ")[2]
        assert f"reason:       {why}\n" in shown
        assert "waits for a review" not in shown
        attempt = told(repo, "show", "a")["task"]["history"][0]
        assert attempt == tasks(repo, "report")["a"]["history"][0]
        return attempt["outcome"], attempt["reason"]

    assert first() == (outcome, why)
    if said[0] == "review":
        if "--accept" not in said:
            batch(repo, "retry", "a")
        batch(repo, "resume", status=None)
        assert first() == (outcome, why)
