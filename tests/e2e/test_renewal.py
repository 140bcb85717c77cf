"""One command renews a batch: it keeps its id and its commits, whatever else changes."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from git_batch.core import canonical
from tests.conftest import git
from tests.e2e.beside import beside, ended, opened
from tests.e2e.job import batch, committed, outcomes, refs, task, tasks, told, write
from tests.e2e.near import PASSED, near, said, set_clock, while_it_passes

ONE = task("t1", "echo 1 >src/one")
BAD = task("t2", "echo 2 >src/two", 'check = "false"', "attempts = 1")
GOOD = task("t2", "echo 2 >src/two", 'check = "true"', "attempts = 1")
THREE = task("t3", "echo 3 >src/three", 'blocked_by = ["t2"]')
FOUR = task("t4", "echo 4 >src/four")


def stopped(repo: Path) -> None:
    """A batch whose t1 is done, t2 parked, t3 skipped."""
    write(repo, ONE, BAD, THREE)
    near(repo, "start", "--yes", status=1)


def plan_of(repo: Path) -> list[str]:
    return [entry["id"] for entry in told(repo)["tasks"]]


# Bounds.


def test_what_is_not_named_stays_as_it_was_granted(repo: Path) -> None:
    write(repo, ONE, FOUR, task("t5", "echo 5 >src/five"))
    end = "2099-01-01T00:00:00+00:00"
    given = ("--max-tasks", "1", "--deadline", end, "--expires", end, "--qa-failures", "4", "-x")
    near(repo, "start", "--yes", *given, status=1)
    near(repo, "resume", "--yes", "--max-tasks", "+1", status=1)
    header = git(repo, "show", f"refs/notes/batch/{told(repo)['batch_id']}:batch.toml")
    granted = header.split("[authorization]")[1]
    for line in (
        "seq = 2",
        "max_tasks = 2",
        "qa_failure_limit = 4",
        "fail_fast = true",
        "expires_at = 2099-01-01 00:00:00+00:00",
        "deadline_at = 2099-01-01 00:00:00+00:00",
    ):
        assert line in granted


def test_an_expired_authorization_is_renewed_for_as_long_again(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    set_clock(monkeypatch, lambda: at)
    write(repo, ONE, FOUR)
    near(repo, "start", "--yes", "--expires", "1h", "--max-tasks", "1", status=1)
    set_clock(monkeypatch, lambda: at + timedelta(hours=5))
    near(repo, "resume", "--yes", "--max-tasks", "+1")
    assert told(repo)["authorization"]["expires_at"] == "2030-01-01T06:00:00+00:00"


def test_a_deadline_at_a_time_that_has_passed_must_be_given_anew(repo: Path) -> None:
    write(repo, ONE, FOUR)
    with while_it_passes(repo):
        near(repo, "start", "--yes", "--deadline", PASSED, status=1)
    assert near(repo, "resume", "--yes", status=3).hints == ["git batch resume --deadline 8h"]
    near(repo, "resume", "--yes", "--deadline", "8h")
    assert committed(repo) == ["t1", "t4"]


def test_a_shorter_expiry_is_taken_as_given_and_parks_nothing(repo: Path) -> None:
    stopped(repo)
    near(repo, "retry", "t2")
    end = (datetime.now(UTC) + timedelta(hours=1)).isoformat("T", "seconds")
    near(repo, "resume", "--yes", "--expires", "9h", status=1)
    near(repo, "resume", "--yes", "--expires", end, status=1)
    assert told(repo)["authorization"]["expires_at"].startswith(end[:19])
    assert outcomes(repo) == {"t1": "committed", "t2": "check_failed", "t3": "skipped"}


def test_branch_and_base_never_change(repo: Path) -> None:
    stopped(repo)
    before = told(repo)
    near(repo, "retry", "t2")
    near(repo, "resume", "--yes", "--max-tasks", "9", status=1)
    after = told(repo)
    for key in ("batch_id", "base", "branch", "plan_digest", "head"):
        assert after[key] == before[key]


def test_a_batch_that_is_being_run_can_be_renewed(repo: Path) -> None:
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(
        repo, task("t1", f"read x <{gate}; echo 1 >src/one"), FOUR, task("t5", "echo 5 >src/five")
    )
    with beside(repo, "start", "--yes", "--max-tasks", "1") as run:
        with opened(gate, run) as go:
            done = near(repo, "resume", "--yes", "--max-tasks", "2")
            assert "renewed: the run that goes on takes it up" in done.out
            go.write("\n")
        ended(run, 1)
    status = told(repo)
    assert (status["authorization"]["seq"], status["budget"]["enrolled"]) == (2, 2)
    assert committed(repo) == ["t1", "t4"]
    near(repo, "resume", "--yes", "--max-tasks", "+1")


def test_a_batch_that_is_being_run_does_not_get_another_plan(repo: Path) -> None:
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(repo, task("t1", f"read x <{gate}; echo 1 >src/one"))
    with beside(repo, "start", "--yes") as run:
        with opened(gate, run) as go:
            refused = near(repo, "resume", "--yes", "--plan", "batch.toml", status=3)
            assert f"process {run.pid}" in refused.err
            go.write("\n")
        ended(run, 0)


# A changed plan.


def test_a_changed_plan_is_shown_task_by_task_and_runs(repo: Path) -> None:
    stopped(repo)
    old = told(repo)["plan_digest"]
    near(repo, "retry", "t2")
    wider = THREE.replace('["src/**"]', '["src/**", "doc/**"]')
    write(repo, FOUR, ONE, GOOD, wider)
    done = near(repo, "resume", "--plan", "batch.toml", "--yes")
    new = told(repo)["plan_digest"]
    assert old != new
    shown = done.out.split("the plan changes:\n")[1].splitlines()[:5]
    assert shown == [
        f"  from {old}",
        f"  to   {new}",
        "  + t4: added",
        "  ~ t2: changed (check)",
        "  ~ t3: changed (scope)",
    ]
    assert committed(repo) == ["t1", "t4", "t2", "t3"]
    assert plan_of(repo) == ["t4", "t1", "t2", "t3"]
    form = "--format=%(trailers:key=Batch-Plan,valueonly,separator=)"
    digests = git(repo, "log", "--reverse", form, "main..batch/demo").split("\n")
    assert digests == [old, new, new, new], "the digest that was in force when it settled"


def test_a_changed_plan_needs_a_confirmation(repo: Path) -> None:
    stopped(repo)
    write(repo, ONE, GOOD, THREE)
    before = refs(repo)
    done = near(repo, "resume", "--plan", "batch.toml", status=3)
    assert "nobody confirmed" in done.err
    assert "~ t2: changed (check)" in done.out
    assert refs(repo) == before


def test_a_parked_task_that_changes_stays_parked_until_a_person_says_so(repo: Path) -> None:
    stopped(repo)
    write(repo, ONE, GOOD, THREE)
    done = near(repo, "resume", "--plan", "batch.toml", "--yes", status=1)
    assert "~ t2: changed (check); still needs a human until 'git batch retry t2'" in done.out
    assert tasks(repo)["t2"]["attempts"] == 1
    near(repo, "retry", "t2")
    near(repo, "resume")
    assert committed(repo) == ["t1", "t2", "t3"]


def test_what_was_parked_or_skipped_may_go(repo: Path) -> None:
    stopped(repo)
    near(repo, "skip", "t3")
    write(repo, ONE, FOUR)
    near(repo, "resume", "--plan", "batch.toml", "--yes")
    status = told(repo)
    assert [entry["id"] for entry in status["tasks"]] == ["t1", "t4"]
    assert sum(status["counts"].values()) == 2
    assert "t2: parked (check_failed)" in near(repo, "log").out


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ((ONE.replace("echo 1", "echo 11"), GOOD, THREE), "'t1' changed (run)"),
        ((ONE.replace("src/**", "doc/**"), GOOD, THREE), "'t1' changed (scope)"),
        ((ONE.replace("Do t1", "Did t1"), GOOD, THREE), "'t1' changed (title)"),
        ((GOOD, THREE), "'t1' removed"),
    ],
)
def test_what_is_done_may_neither_change_nor_go(
    repo: Path, parts: tuple[str, ...], named: str
) -> None:
    stopped(repo)
    path = write(repo, *parts)
    before = refs(repo)
    done = near(repo, "resume", "--plan", "batch.toml", "--yes", status=3)
    assert named in done.err
    assert told(repo)["plan_digest"] in done.err
    assert "is sha256:" in done.err
    assert refs(repo) == before
    assert path.exists()


def test_what_is_in_flight_may_not_change(repo: Path) -> None:
    write(repo, task("t1", "echo 1 >src/one; exit 75"), FOUR)
    near(repo, "start", "--yes", status=1)
    write(repo, task("t1", "echo 1 >src/one"), FOUR)
    assert (
        "'t1' changed (run)" in near(repo, "resume", "--plan", "batch.toml", "--yes", status=3).err
    )
    write(repo, task("t1", "echo 1 >src/one; exit 75"))
    near(repo, "resume", "--plan", "batch.toml", "--yes", status=1)


def test_the_plan_of_another_slug_is_refused(repo: Path) -> None:
    stopped(repo)
    path = write(repo, ONE)
    path.write_text(path.read_text().replace('slug = "demo"', 'slug = "other"'))
    done = near(repo, "resume", "--plan", "batch.toml", "--yes", status=2)
    assert "is the plan of 'other'" in done.err


def test_a_broken_plan_is_refused_and_changes_nothing(repo: Path) -> None:
    stopped(repo)
    before = refs(repo)
    write(repo, ONE, 'chek = "x"\n')
    done = near(repo, "resume", "--plan", "batch.toml", "--yes", status=2)
    assert "chek" in done.err
    assert refs(repo) == before


def test_a_completed_batch_does_not_get_another_plan(repo: Path) -> None:
    write(repo, ONE)
    near(repo, "start", "--yes")
    write(repo, ONE, FOUR)
    done = near(repo, "resume", "--plan", "batch.toml", "--yes", status=3)
    assert "its plan can't change any more" in done.err


def test_what_went_wrong_what_is_new_was_to_be_started_on_the_completed_batchs_branch(
    repo: Path,
) -> None:
    write(repo, ONE)
    near(repo, "start", "--yes")
    write(repo, FOUR)
    done = near(repo, "resume", "--plan", "batch.toml", "--yes", status=3)
    [way] = [hint.partition(": ")[2] for hint in done.hints]
    assert way == "git batch start batch.toml --branch NAME"
    near(repo, *way.replace("NAME", "next").split()[2:], "--yes")
    assert git(repo, "log", "-1", "--format=%(trailers:key=Batch-Task,valueonly)", "next")


def test_a_new_plan_and_its_prompts_may_be_untracked_and_enter_no_commit(repo: Path) -> None:
    stopped(repo)
    near(repo, "retry", "t2")
    (repo / "other.md").write_text("Do it.\n")
    agent = '\n[agent.a]\nrun = ["sh", "-c", "echo 9 >src/nine"]\n'
    entry = '\n[[task]]\nid = "t9"\ntitle = "T"\nscope = ["**"]\nagent = "a"\nintent = "other.md"\n'
    write(repo, agent, ONE, GOOD, THREE, entry, name="changed.toml")
    near(repo, "resume", "--plan", "changed.toml", "--yes")
    files = git(repo, "ls-tree", "-r", "--name-only", "batch/demo").splitlines()
    assert "src/nine" in files
    assert not {"other.md", "changed.toml", "batch.toml"} & {*files}


def test_the_new_plan_is_in_the_record_under_its_own_digest(repo: Path) -> None:
    stopped(repo)
    write(repo, ONE, GOOD, FOUR)
    near(repo, "resume", "--plan", "batch.toml", "--yes", status=1)
    name = f"refs/notes/batch/{told(repo)['batch_id']}"
    stored = subprocess.run(
        ["git", "show", f"{name}:plan.toml"], cwd=repo, stdout=subprocess.PIPE, check=True
    ).stdout
    assert canonical.digest(stored) == told(repo)["plan_digest"]
    entries = git(repo, "ls-tree", "-r", "--name-only", f"{name}:plan").splitlines()
    assert entries == ["000/t1.toml", "000/t2.toml", "000/t4.toml"]


# A plan file that was edited.


def test_an_edited_plan_file_has_no_effect_and_is_told(repo: Path) -> None:
    stopped(repo)
    old = told(repo)["plan_digest"]
    near(repo, "retry", "t2")
    write(repo, FOUR, ONE, GOOD, THREE)
    done = near(repo, "resume", status=1)
    assert "'batch.toml' was edited since: 't4' added, 't2' changed" in done.err
    assert old in done.err
    assert "git batch resume --plan batch.toml" in done.err
    assert told(repo)["plan_digest"] == old
    assert tasks(repo)["t2"]["outcome"] == "check_failed"
    assert committed(repo) == ["t1"]


@pytest.mark.parametrize("text", ["version = 1\n", "not toml ["])
def test_a_plan_file_that_is_no_plan_any_more_is_told(repo: Path, text: str) -> None:
    stopped(repo)
    near(repo, "retry", "t2")
    (repo / "batch.toml").write_text(text)
    assert "was edited and is no plan now" in near(repo, "resume", status=1).err


def test_a_plan_file_that_is_gone_or_only_looks_different_is_not_told(repo: Path) -> None:
    stopped(repo)
    path = repo / "batch.toml"
    near(repo, "retry", "t2")
    path.write_text(path.read_text() + "\n# a comment\n")
    assert "edited" not in said(near(repo, "resume", status=1))
    near(repo, "retry", "t2")
    path.unlink()
    assert "edited" not in said(near(repo, "resume", status=1))


def test_a_prompt_that_was_edited_is_told(repo: Path) -> None:
    agent = '\n[agent.a]\nrun = ["sh", "-c", "exit 1"]\n'
    entry = '\n[[task]]\nid = "p"\ntitle = "T"\nscope = ["**"]\nagent = "a"\nintent = "p.md"\n'
    (repo / "p.md").write_text("Do it.\n")
    write(repo, agent, entry)
    near(repo, "start", "--yes", status=1)
    (repo / "p.md").write_text("Do it well.\n")
    near(repo, "retry", "p")
    assert "'p' changed" in near(repo, "resume", status=1).err


def test_a_task_that_edits_the_plan_file_changes_nothing_and_is_out_of_its_scope(
    repo: Path,
) -> None:
    """Tracked, so that git sees it; an untracked plan never enters an attempt at all."""
    write(repo, task("t1", "echo '# mine' >>batch.toml; echo 1 >src/one"), FOUR)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "plan")
    batch(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"t1": "scope_refused", "t4": "committed"}
    assert git(repo, "status", "--porcelain") == ""


# What a person consents to.


def test_what_went_wrong_tasks_that_will_not_run_were_said_to_run(repo: Path) -> None:
    write(
        repo,
        task("done", "echo 1 >src/done"),
        task("parked", "exit 1"),
        task("behind", "echo 2 >src/behind", 'blocked_by = ["parked"]'),
        task("seen", "echo 3 >src/seen", 'review = "human"'),
        task("out", "echo 4 >src/out"),
        task("later", "echo 5 >src/later"),
    )
    near(repo, "start", "--yes", "--max-tasks", "3", status=1)
    near(repo, "skip", "out")
    shown = near(repo, "resume", "--max-tasks", "+3", status=3).out
    assert "1 task will run, in this order:\n1. later: Do later\n" in shown
    waiting = shown[shown.index("3 tasks will not run unless a person decides so:") :]
    assert "1. parked: Do parked\n   stands:      needs a human\n" in waiting
    assert "2. behind: Do behind\n   stands:      skipped\n" in waiting
    assert "3. seen: Do seen\n   stands:      in review\n" in waiting
    assert "1 task will not run, taken out by a person:\n1. out: Do out\n" in waiting
    assert "echo 4 >src/out" in waiting  # they may take it in again
    assert shown.endswith("done, will not run (1): done\n")


def test_that_nothing_will_run_is_said_plainly(repo: Path) -> None:
    write(repo, task("parked", "exit 1"))
    near(repo, "start", "--yes", status=1)
    shown = near(repo, "resume", "--max-tasks", "+3", status=3).out
    assert "nothing will run: everything that is left waits for a person" in shown
    assert "will run, in this order" not in shown
