"""The main job with real processes: plan, confirmation, one checked commit per task, report."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import (
    BRANCH,
    batch,
    committed,
    everything,
    outcomes,
    refs,
    task,
    tasks,
    told,
    write,
)


def trailers(top: Path, rev: str) -> list[tuple[str, str]]:
    """Read the trailers of a commit with the program that git has for it."""
    message = subprocess.run(
        ["git", "log", "-1", "--format=%B", rev], cwd=top, stdout=subprocess.PIPE, check=True
    ).stdout
    parsed = git(top, "interpret-trailers", "--parse", input=message)
    return [(key, value) for key, value in (line.split(": ", 1) for line in parsed.splitlines())]


# --- the good end ---------------------------------------------------------------------------------


def test_a_plan_becomes_one_commit_a_task(repo: Path) -> None:
    write(
        repo,
        task("later", "cat src/new >>src/b", 'blocked_by = ["new"]', 'check = "grep -q one src/b"'),
        task("new", "echo one >src/new", 'message = "Why: because.\\nMore: text."'),
        task("tool", "chmod +x src/a; rm src/b", 'blocked_by = ["later"]'),
    )
    base = git(repo, "rev-parse", "main")
    done = batch(repo, "start", "--yes")
    assert committed(repo) == ["new", "later", "tool"]
    assert git(repo, "log", "--reverse", "--format=%s", f"main..{BRANCH}").splitlines() == [
        "Do new",
        "Do later",
        "Do tool",
    ]
    assert git(repo, "rev-parse", f"{BRANCH}~3") == base == git(repo, "rev-parse", "main")
    assert git(repo, "diff", "--name-status", f"{BRANCH}~1", BRANCH) == "M\tsrc/a\nD\tsrc/b"
    # The index and the working tree are where the branch is, and the person stays on it.
    assert git(repo, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    assert "next:   git log --oneline" in done.out
    assert done.out.rstrip().endswith("back:   git switch main")
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""


def test_the_trailers_are_the_last_block_and_name_record_and_plan(repo: Path) -> None:
    write(repo, task("a", "echo one >src/new", 'message = "Body."'), task("b", "rm src/b"))
    batch(repo, "start", "-y")
    said = told(repo)
    record = f"refs/notes/batch/{said['batch_id']}"
    events = git(repo, "log", "--first-parent", "--format=%H %s", record).splitlines()
    settled = {words.split(" ")[1]: words.split(" ")[0] for words in events if "settled" in words}
    for name, rev in (("a", f"{BRANCH}~1"), ("b", BRANCH)):
        assert trailers(repo, rev) == [
            ("Batch-Id", said["batch_id"]),
            ("Batch-Task", name),
            ("Batch-Plan", said["plan_digest"]),
            ("Batch-Record", settled[f"{name}:"]),
        ]
    body = git(repo, "log", "-1", "--format=%B", f"{BRANCH}~1")
    assert body.startswith("Do a\n\nBody.\n\nBatch-Id: ")
    # Stock git shows the record beside the commits.
    assert "task = " in git(repo, "log", "-1", f"--notes={record}", "--format=%N", BRANCH)


def test_report_status_log_and_show_agree(repo: Path) -> None:
    write(repo, task("a", "echo one >src/new", 'check = ["true", "test -e src/new"]'))
    batch(repo, "start", "-y")
    tip = git(repo, "rev-parse", BRANCH)
    status, report = told(repo), json.loads(batch(repo, "report", "--json").out)
    assert status["state"] == report["state"] == "completed"
    assert status["head"] == status["tasks"][0]["commit"] == tip
    (attempt,) = report["tasks"][0]["history"]
    assert (attempt["n"], attempt["outcome"], attempt["exit_status"]) == (1, "committed", 0)
    assert [check["outcome"] for check in attempt["checks"]] == ["passed", "passed"]
    assert attempt["changed_paths"] == ["src/new"]
    assert "1 committed" in batch(repo, "report").out
    events = told(repo, "log")["events"]
    assert [event["event"] for event in events][:3] == ["created", "authorized", "enrolled"]
    assert "+one" in batch(repo, "show", "a", "--diff").out


def test_a_completed_batch_is_told_again_and_nothing_is_written(repo: Path) -> None:
    write(repo, task("a", "echo one >src/new"))
    batch(repo, "start", "-y")
    before = refs(repo)
    assert "completed" in batch(repo, "resume").out
    assert refs(repo) == before


def test_a_task_that_changes_nothing_is_parked_or_accepted(repo: Path) -> None:
    write(
        repo,
        task("fine", "true", 'on_empty = "accept"'),
        task("odd", "true"),
        task("next", "echo one >src/new", 'blocked_by = ["fine"]'),
    )
    batch(repo, "start", "-y", status=1)
    assert outcomes(repo) == {"fine": "unchanged", "odd": "empty", "next": "committed"}


# --- parks, skips, what goes on -------------------------------------------------------------------

FIVE = (
    task("a", "echo a >src/new-a", 'check = "false"', "attempts = 1"),
    task("b", "echo b >src/new-b", 'blocked_by = ["a"]'),
    task("c", "echo c >src/new-c", 'blocked_by = ["b"]'),
    task("d", "echo d >src/new-d"),
    task("e", "echo e >src/new-e", 'blocked_by = ["b", "d"]'),
)


def test_a_park_skips_all_that_needs_it_and_the_rest_goes_on(repo: Path) -> None:
    write(repo, *FIVE)
    done = batch(repo, "start", "-y", status=1)
    assert committed(repo) == ["d"]
    said = told(repo, "report")
    by_id = {entry["id"]: entry for entry in said["tasks"]}
    assert by_id["a"]["state"] == "needs_human"
    for name in "bce":
        assert by_id[name]["state"] == "skipped_blocked"
        assert by_id[name]["outcome"] == "skipped"
        assert by_id[name]["reason"] == "dependency 'a' parked"
    assert sum(said["counts"].values()) == 5
    assert "5 tasks: 1 committed, 1 needs a human, 3 skipped" in done.out
    assert (said["state"], said["outcome"]) == ("needs_human", "needs_human")


def test_kept_work_is_a_commit_and_the_working_tree_is_put_back(repo: Path) -> None:
    write(repo, task("a", "echo new >src/new; echo x >>src/a; rm src/b", 'check = "false"'))
    batch(repo, "start", "-y", status=1)
    assert git(repo, "status", "--porcelain", "-uall") == "?? batch.toml"
    said = told(repo, "report")
    history = said["tasks"][0]["history"]
    assert [attempt["outcome"] for attempt in history] == ["check_failed", "check_failed"]
    for n, attempt in enumerate(history, 1):
        assert attempt["ref"] == f"refs/batch/{said['batch_id']}/attempts/a/{n}"
        assert git(repo, "show", f"{attempt['ref']}:src/new") == "new"
        assert git(repo, "show", f"{attempt['ref']}:src/a") == "a\nx"
    assert git(repo, "stash", "list") == ""


def test_after_a_person_decided_only_what_was_left_runs(repo: Path, tmp_path: Path) -> None:
    counts = tmp_path / "count"
    count = 'echo $BATCH_TASK >>"$COUNT"; '
    write(
        repo,
        task("a", f'{count}test -n "$BATCH_FEEDBACK" && echo a >src/new-a'),
        task("b", f"{count}echo b >src/new-b", 'blocked_by = ["a"]'),
        task("c", f"{count}echo c >src/new-c"),
    )
    env = {"COUNT": str(counts)}
    batch(repo, "start", "-y", status=1, env=env)
    assert counts.read_text().split() == ["a", "c"]
    first = git(repo, "rev-parse", BRANCH)
    batch(repo, "retry", "a", "-m", "please do")
    batch(repo, "resume", env=env)
    assert counts.read_text().split() == ["a", "c", "a", "b"]
    assert committed(repo) == ["c", "a", "b"]
    assert git(repo, "rev-parse", f"{BRANCH}~2") == first


def test_a_skipped_task_leaves_and_its_dependents_with_it_if_asked(repo: Path) -> None:
    write(repo, *FIVE)
    batch(repo, "start", "-y", status=1)
    batch(repo, "skip", "a", "--dependents", "-m", "not now")
    batch(repo, "resume")
    assert outcomes(repo) == dict.fromkeys("abce", "dropped") | {"d": "committed"}


def test_skip_alone_leaves_its_dependents_waiting(repo: Path) -> None:
    write(repo, *FIVE)
    batch(repo, "start", "-y", status=1)
    batch(repo, "skip", "a")
    done = batch(repo, "resume", status=1)
    assert outcomes(repo)["b"] == "skipped"
    assert "was taken out" in done.out


def test_retry_from_kept_work_begins_with_it(repo: Path) -> None:
    run = "if [ -e src/half ]; then echo whole >src/whole; else echo half >src/half; exit 3; fi"
    write(repo, task("a", run))
    batch(repo, "start", "-y", status=1)
    batch(repo, "retry", "a", "--from-attempt", "1")
    batch(repo, "resume")
    names = git(repo, "diff", "--name-only", "main", BRANCH).splitlines()
    assert names == ["src/half", "src/whole"]


@pytest.mark.parametrize("way", ["option", "plan"])
def test_fail_fast_ends_the_run_at_the_first_park(repo: Path, way: str) -> None:
    plan = write(repo, *FIVE)
    if way == "plan":
        plan.write_text("fail_fast = true\n" + plan.read_text())
    batch(repo, "start", "-y", *(["-x"] if way == "option" else []), status=1)
    assert committed(repo) == []
    said = told(repo)
    assert (said["state"], said["outcome"]) == ("needs_human", "fail_fast")
    assert outcomes(repo)["d"] == "not_run_stopped"


OUTCOMES = [
    ("run_failed", "echo why; exit 7", "exited with 7: why"),
    ("killed", "kill -9 $$", "signal 9"),
    ("timed_out", "sleep 60", "timed out after 1s"),
    ("stalled", "sleep 60", "no output for 1s"),
    ("blocked", 'echo "which one?" >"$BATCH_BLOCKED"', "which one?"),
    ("blocked", "echo ask me; exit 125", "ask me"),
    ("empty", "true", "changed nothing"),
    ("scope_refused", "echo x >stray", "'stray'"),
    ("protected_changed", "echo x >src/kept", "'src/kept'"),
    ("run_failed", "no-such-program-anywhere", "exited with 127"),
]


@pytest.mark.parametrize(("outcome", "run", "reason"), OUTCOMES)
def test_each_failure_has_an_outcome_of_its_own(
    repo: Path, outcome: str, run: str, reason: str
) -> None:
    more = ["attempts = 1", 'protect = ["src/kept"]']
    more += {"timed_out": ['timeout = "1s"'], "stalled": ['idle_timeout = "1s"']}.get(outcome, [])
    write(repo, task("a", run, *more), task("b", "echo b >src/new-b"))
    batch(repo, "start", "-y", status=1)
    found = tasks(repo)["a"]
    assert (found["state"], found["outcome"]) == ("needs_human", outcome)
    assert reason in found["reason"]
    assert committed(repo) == ["b"]
    assert git(repo, "status", "--porcelain", "-uall") == "?? batch.toml"


def test_a_check_that_changes_the_tree_is_no_passed_check(repo: Path) -> None:
    write(repo, task("a", "echo a >src/new", 'check = "echo more >>src/new"', "attempts = 1"))
    batch(repo, "start", "-y", status=1)
    assert outcomes(repo) == {"a": "check_changed_tree"}


# --- rework and limits ----------------------------------------------------------------------------


def test_a_failed_check_is_told_to_the_next_attempt(repo: Path) -> None:
    run = 'if [ -n "$BATCH_FEEDBACK" ]; then cp "$BATCH_FEEDBACK" src/told; fi; echo x >src/x'
    write(repo, task("a", run, 'check = "echo no told file; test -e src/told"'))
    batch(repo, "start", "-y")
    text = git(repo, "show", f"{BRANCH}:src/told")
    assert "no told file" in text
    assert "exited with 1" in text
    assert tasks(repo)["a"]["attempts"] == 2


def test_a_stray_path_is_told_to_the_next_attempt(repo: Path) -> None:
    run = 'if [ -n "$BATCH_FEEDBACK" ]; then cp "$BATCH_FEEDBACK" src/told; else echo >stray; fi'
    write(repo, task("a", run))
    batch(repo, "start", "-y")
    assert "stray" in git(repo, "show", f"{BRANCH}:src/told")


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_task_is_tried_as_often_as_the_plan_says(repo: Path, attempts: int) -> None:
    write(repo, task("a", "echo x >src/x", 'check = "false"', f"attempts = {attempts}"))
    batch(repo, "start", "-y", status=1)
    assert tasks(repo)["a"]["attempts"] == attempts


@pytest.mark.parametrize("way", ["option", "plan"])
def test_the_run_ends_at_so_many_failed_checks_in_a_row(repo: Path, way: str) -> None:
    failing = 'check = "false"'
    limit = "\n[budget]\nqa_failure_limit = 2\n" if way == "plan" else ""
    write(repo, limit, *(task(n, f"echo {n} >src/{n}n", failing, "attempts = 1") for n in "uvw"))
    batch(repo, "start", "-y", *(["--qa-failures", "2"] if way == "option" else []), status=1)
    assert outcomes(repo) == {
        "u": "check_failed",
        "v": "check_failed",
        "w": "not_run_failure_limit",
    }
    said = told(repo)
    assert said["outcome"] == "failure_limit"
    assert said["budget"]["consecutive_qa_failures"] == 2
    # Only a fresh confirmation leads on, and it sets the count to 0.
    refused = batch(repo, "resume", status=3)
    assert "--yes" in refused.err
    batch(repo, "resume", "--yes", status=1)
    assert outcomes(repo)["w"] == "check_failed"


def test_a_commit_sets_the_count_of_failures_to_nought(repo: Path) -> None:
    bad = [task(n, f"echo >src/{n}n", 'check = "false"', "attempts = 1") for n in "uvw"]
    good = [task(f"g{n}", f"echo >src/g{n}") for n in "12"]
    write(repo, bad[0], good[0], bad[1], good[1], bad[2])
    batch(repo, "start", "-y", "--qa-failures", "2", status=1)
    assert committed(repo) == ["g1", "g2"]
    assert outcomes(repo)["w"] == "check_failed"


def test_a_budget_stops_and_more_of_it_goes_on(repo: Path) -> None:
    write(repo, *(task(n, f"echo >src/{n}n") for n in "uvwx"))
    done = batch(repo, "start", "-y", "--max-tasks", "1", status=1)
    assert "git batch resume --max-tasks +3" in done.out
    assert committed(repo) == ["u"]
    assert outcomes(repo)["v"] == "not_run_budget"
    said = told(repo)
    assert (said["state"], said["outcome"]) == ("budget_stopped", "budget")
    assert said["budget"]["max_tasks"] == said["budget"]["enrolled"] == 1
    refused = batch(repo, "resume", "--max-tasks", "+2", status=3)
    assert "there is no terminal to ask on" in refused.err
    assert told(repo) == said, "nothing was written"
    batch(repo, "resume", "--max-tasks", "+2", "--yes", status=1)
    assert committed(repo) == ["u", "v", "w"]
    again = told(repo)
    assert again["budget"]["max_tasks"] == 3
    assert again["batch_id"] == said["batch_id"]
    assert again["authorization"]["seq"] == 2
    batch(repo, "resume", "--max-tasks", "9", "--yes")
    assert committed(repo) == ["u", "v", "w", "x"]


@pytest.mark.parametrize(
    ("option", "outcome"), [("--deadline", "deadline"), ("--expires", "expired")]
)
def test_after_its_time_no_task_starts_and_the_one_in_flight_ends(
    repo: Path, option: str, outcome: str
) -> None:
    write(repo, task("u", "sleep 1.3; echo >src/un"), task("v", "echo >src/vn"))
    batch(repo, "start", "-y", option, "1s", status=1)
    assert committed(repo) == ["u"]
    assert outcomes(repo)["v"] == f"not_run_{outcome}"
    assert told(repo)["outcome"] == outcome
    batch(repo, "resume", status=3)
    batch(repo, "resume", "--yes", option, "1h")
    assert committed(repo) == ["u", "v"]


def test_an_expiry_that_has_passed_runs_nothing(repo: Path) -> None:
    write(repo, task("u", "echo >src/un"))
    done = batch(repo, "start", "-y", "--expires", "2020-01-01T00:00:00Z", status=3)
    assert "nothing would run: the authorization expired at 2020-01-01" in done.err
    assert told(repo)["batch_id"] is None


def test_not_now_stops_and_uses_no_attempt(repo: Path, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    run = f"test -e {flag} || exit 75; echo >src/un"
    write(repo, task("u", run, "attempts = 1"))
    batch(repo, "start", "-y", status=1)
    assert told(repo)["outcome"] == "not_now"
    flag.touch()
    batch(repo, "resume")
    assert committed(repo) == ["u"]


# --- dry run --------------------------------------------------------------------------------------


def test_a_dry_run_shows_all_and_writes_nothing(repo: Path) -> None:
    write(repo, *FIVE)
    before = everything(repo)
    done = batch(repo, "start", "--dry-run")
    for name in "abcde":
        assert f"echo {name} >src/new-{name}" in done.out
    assert re.search("dry run: nothing was written", done.out)
    assert everything(repo) == before
