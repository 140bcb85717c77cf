"""Checks before the first task, and checks that need not be run again."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.beside import beside, ended
from tests.e2e.job import committed, outcomes, task, tasks, told, write
from tests.e2e.near import PASSED, near, while_it_passes

BASELINE = "baseline = true\n"


def counting(name: str, then: str = "true") -> str:
    """Write a check that leaves a line each time it runs."""
    return f"echo {name} >>../ran; {then}"


def ran(repo: Path) -> list[str]:
    path = repo.parent / "ran"
    return path.read_text().splitlines() if path.exists() else []


# Baseline.


def test_every_distinct_check_runs_once_on_the_base_before_the_first_task(repo: Path) -> None:
    write(
        repo,
        BASELINE,
        task(
            "a",
            "echo run >>../ran; echo a >src/one",
            f'check = ["{counting("x")}", "{counting("y")}"]',
        ),
        task("b", "echo b >src/two", f'check = "{counting("x")}"'),
    )
    done = near(repo, "start", "--yes")
    assert "running 2 checks on the base" in done.err
    assert ran(repo) == ["x", "y", "run", "x", "y", "x"]
    assert committed(repo) == ["a", "b"]


def test_without_it_nothing_runs_on_the_base(repo: Path) -> None:
    write(repo, task("a", "echo run >>../ran; echo a >src/one", f'check = "{counting("x")}"'))
    near(repo, "start", "--yes")
    assert ran(repo) == ["run", "x"]


def test_a_check_that_differs_by_what_a_task_gives_it_is_another(repo: Path) -> None:
    matrix = 'matrix = { pkg = ["net", "db"] }'
    write(
        repo,
        BASELINE,
        task(
            "m-{pkg}",
            "echo x >src/$BATCH_VAR_PKG",
            matrix,
            'check = "echo $BATCH_VAR_PKG >>../ran"',
        ),
    )
    near(repo, "start", "--yes")
    assert ran(repo)[:2] == ["net", "db"]


def test_a_check_that_fails_on_the_base_ends_the_run_before_any_task(repo: Path) -> None:
    write(
        repo,
        BASELINE,
        task("a", "echo run >>../ran; echo a >src/one", 'check = "echo the reason; exit 4"'),
        task("b", "echo b >src/two"),
    )
    near(repo, "start", "--yes", status=1)
    status = told(repo)
    assert (status["state"], status["outcome"]) == ("needs_human", "baseline_failed")
    assert status["budget"]["enrolled"] == 0
    assert "on the base, before any task" in status["reason"]
    assert "exited with 4" in status["reason"]
    assert "the reason" in status["reason"]
    assert ran(repo) == []
    assert set(outcomes(repo).values()) == {"not_run_stopped"}
    shown = subprocess.run(
        ["sh", "-c", status["next_action"]], cwd=repo, stdout=subprocess.PIPE, check=True, text=True
    )
    assert "the reason" in shown.stdout
    assert status["next_action"] in near(repo, "report").out


def test_a_failed_baseline_is_tried_again_by_resume(repo: Path) -> None:
    write(
        repo,
        BASELINE,
        task("a", "echo a >src/one", f'check = "{counting("x", "test -e ../fixed")}"'),
    )
    for tries in (1, 2):
        near(repo, *(("start", "--yes") if tries == 1 else ("resume",)), status=1)
        assert len(ran(repo)) == tries
    (repo.parent / "fixed").touch()
    near(repo, "resume")
    assert committed(repo) == ["a"]
    assert told(repo)["authorization"]["seq"] == 1


def test_a_baseline_is_not_run_when_nothing_may_start(repo: Path) -> None:
    write(repo, BASELINE, task("a", "echo a >src/one", f'check = "{counting("x")}"'))
    with while_it_passes(repo):
        near(repo, "start", "--yes", "--expires", PASSED, status=1)
    assert ran(repo) == []


def test_a_baseline_is_not_run_again_once_a_task_was_started(repo: Path) -> None:
    write(repo, BASELINE, task("a", "exit 1", f'check = "{counting("x")}"'))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    near(repo, "resume", status=1)
    assert ran(repo) == ["x"]


def test_a_check_that_changes_the_tree_fails_the_baseline(repo: Path) -> None:
    write(repo, BASELINE, task("a", "echo a >src/one", 'check = "echo x >src/a"'))
    near(repo, "start", "--yes", status=1)
    assert "the checks changed 'src/a'" in told(repo)["reason"]
    assert "src/a" in near(repo, "resume", status=3).err


@pytest.mark.parametrize("check", ["echo x >src/new", "echo the reason; echo x >src/new"])
def test_what_went_wrong_a_silent_baseline_was_shown_by_a_log_that_was_none(
    repo: Path, check: str
) -> None:
    write(repo, BASELINE, task("a", "echo a >src/one", f'check = "{check}"'))
    near(repo, "start", "--yes", status=1)
    look = told(repo)["next_action"]
    shown = subprocess.run(
        ["sh", "-c", look], cwd=repo, stdout=subprocess.PIPE, check=True, text=True
    )
    assert ("the reason" if "reason" in check else "src/new") in shown.stdout


def test_an_interrupted_baseline_is_run_again(repo: Path) -> None:
    write(
        repo,
        BASELINE,
        task("a", "echo a >src/one", f'check = "{counting("x", "test -e ../go || sleep 30")}"'),
    )
    with beside(repo, "start", "--yes") as run:
        while run.poll() is None and not ran(repo):
            time.sleep(0.02)
        run.terminate()
        ended(run, 143)
    status = told(repo)
    assert (status["state"], status["budget"]["enrolled"]) == ("running", 0)
    (repo.parent / "go").touch()
    near(repo, "resume")
    assert committed(repo) == ["a"]


# Reuse.


def reused(repo: Path, name: str) -> list[list[bool]]:
    history = tasks(repo, "report")[name]["history"]
    return [[check["reused"] for check in attempt["checks"]] for attempt in history]


def refusing_hook(repo: Path) -> None:
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntest -e ../allowed\n")
    hook.chmod(0o755)


def test_work_that_is_tried_again_unchanged_is_not_checked_again(repo: Path) -> None:
    refusing_hook(repo)
    two = f'check = ["{counting("x")}", "{counting("y")}"]'
    write(repo, task("a", "echo a >src/one", two, "attempts = 1"))
    near(repo, "start", "--yes", status=1)
    assert (outcomes(repo)["a"], ran(repo)) == ("hook_refused", ["x", "y"])
    (repo.parent / "allowed").touch()
    near(repo, "retry", "a")
    done = near(repo, "resume")
    assert ran(repo) == ["x", "y"]
    assert committed(repo) == ["a"]
    assert reused(repo, "a") == [[False, False], [True, True]]
    assert "checks passed on the same tree before, not run again" in done.err
    assert "(passed, reused)" in near(repo, "show", "a").out


def test_within_one_run_as_well(repo: Path) -> None:
    refusing_hook(repo)
    write(repo, task("a", "echo a >src/one", f'check = "{counting("x")}"', "attempts = 3"))
    near(repo, "start", "--yes", status=1)
    assert reused(repo, "a") == [[False], [True], [True]]
    assert ran(repo) == ["x"]


def test_recheck_runs_them_anyway(repo: Path) -> None:
    refusing_hook(repo)
    write(repo, task("a", "echo a >src/one", f'check = "{counting("x")}"', "attempts = 2"))
    near(repo, "start", "--yes", "--recheck", status=1)
    assert ran(repo) == ["x", "x"]
    near(repo, "retry", "a")
    near(repo, "resume", "--recheck", status=1)
    assert ran(repo) == ["x"] * 4


@pytest.mark.parametrize(
    ("run", "checks"),
    [
        ("echo $BATCH_ATTEMPT >src/one", '["CHECK"]'),  # another tree
        ("echo a >src/one", '["CHECK; test $BATCH_ATTEMPT -gt 0"]'),  # it looks at the attempt
        ("echo a >src/one", '[["sh", "-c", "CHECK; test {attempt} -gt 0"]]'),
        ("echo a >src/one", '["CHECK; cat $BATCH_FEEDBACK; true"]'),
    ],
)
def test_what_is_not_the_same_is_checked_again(repo: Path, run: str, checks: str) -> None:
    refusing_hook(repo)
    write(repo, task("a", run, f"check = {checks.replace('CHECK', counting('x'))}", "attempts = 2"))
    near(repo, "start", "--yes", status=1)
    assert ran(repo) == ["x", "x"]


def test_another_check_of_a_changed_plan_is_run(repo: Path) -> None:
    refusing_hook(repo)
    write(repo, task("a", "echo a >src/one", f'check = "{counting("x")}"', "attempts = 1"))
    near(repo, "start", "--yes", status=1)
    (repo.parent / "allowed").touch()
    near(repo, "retry", "a")
    write(repo, task("a", "echo a >src/one", f'check = "{counting("y")}"', "attempts = 1"))
    near(repo, "resume", "--plan", "batch.toml", "--yes")
    assert ran(repo) == ["x", "y"]


def test_only_what_passed_as_a_whole_is_reused(repo: Path) -> None:
    """The second check may need what the first one built, so they are run together."""
    second = counting("y", "test -e ../fixed")
    write(
        repo,
        task("a", "echo a >src/one", f'check = ["{counting("x")}", "{second}"]', "attempts = 1"),
    )
    near(repo, "start", "--yes", status=1)
    (repo.parent / "fixed").touch()
    near(repo, "retry", "a", "--from-attempt", "1")
    near(repo, "resume")
    assert ran(repo) == ["x", "y", "x", "y"]


def test_checks_that_changed_the_tree_have_not_passed(repo: Path) -> None:
    change = "test -e ../fixed || echo x >src/a"
    write(repo, task("a", "echo a >src/one", f'check = "{counting("x", change)}"', "attempts = 1"))
    near(repo, "start", "--yes", status=1)
    assert outcomes(repo)["a"] == "check_changed_tree"
    (repo.parent / "fixed").touch()
    near(repo, "retry", "a")
    near(repo, "resume")
    assert ran(repo) == ["x", "x"]


def test_the_result_is_in_the_record_with_what_it_is_for(repo: Path) -> None:
    write(repo, task("a", "echo a >src/one", f'check = "{counting("x")}"'))
    near(repo, "start", "--yes")
    commit = git(repo, "rev-parse", "batch/demo")
    receipt = git(repo, "notes", f"--ref=batch/{told(repo)['batch_id']}", "show", commit)
    assert f'tree = "{git(repo, "rev-parse", "batch/demo^{tree}")}"' in receipt
    assert "key = " in receipt
    assert shlex.quote("passed") in receipt
