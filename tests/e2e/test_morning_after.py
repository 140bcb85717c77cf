"""The morning after a bad night: one look at the report says what there is to know and to do."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import git
from tests.e2e.job import LIMIT, argv, batch, here, task, told, write
from tests.e2e.scene import environment

NIGHT = (
    "\n[budget]\nmax_tasks = 6\n",
    task("good-1", "echo 1 >src/one", 'check = "true"'),
    task("good-2", "echo 2 >src/two", 'blocked_by = ["good-1"]'),
    task("bad", "echo bad >src/bad", 'check = "echo 3 tests failed; exit 1"', "attempts = 1"),
    task("after-bad", "echo x >src/x", 'blocked_by = ["bad"]'),
    task("after-after", "echo y >src/y", 'blocked_by = ["after-bad", "good-1"]'),
    task("stray", "echo new >src/new; echo x >elsewhere", "attempts = 1"),
    task("slow", "echo half >src/half; echo so far; sleep 60", 'timeout = "1s"'),
    task("good-3", "echo 3 >src/three", 'check = ["true", "test -e src/three"]'),
    task("late", "echo late >src/late"),
)
WAITING = ("bad", "stray", "slow")


@pytest.fixture
def morning(repo: Path) -> Path:
    """Give a repository after that night."""
    write(repo, *NIGHT)
    batch(repo, "start", "--yes", status=1)
    return repo


def test_the_first_screen_says_all_that_counts(morning: Path) -> None:
    screen = here(morning, "report").out.splitlines()[:28]
    text = "\n".join(screen)
    found = re.search(r"tasks: 9 tasks: (.*?) state:", " ".join(text.split()))
    assert found
    numbers = [int(n) for n in re.findall(r"(?:^|, )(\d+) [a-z]", re.sub(r"\(.*?\)", "", found[1]))]
    assert sum(numbers) == 9
    for said in ("3 committed", "3 need a human", "2 skipped", "1 not run (1 budget)"):
        assert said in found[1]
    assert "state:     budget stopped\n" in text
    assert "the budget of 6 enrollments is used up" in text
    for name in WAITING:
        assert f"  {name}: " in text
        assert f"git batch show {name} --" in text
        assert f"git batch retry {name}" in text
    assert "git batch skip bad --dependents" in text


def test_every_task_is_explained(morning: Path) -> None:
    text = here(morning, "report").out
    assert "echo 3 tests failed; exit 1 (exit 1" in text
    assert "| 3 tests failed" in text
    assert "'elsewhere'" in text
    assert "timed out" in text
    assert "| so far" in text
    assert "dependency 'bad' parked" in text
    # Nothing is called good that nobody looked at.
    assert re.search(r"good-2 +committed, .*, no checks\n", text)
    assert re.search(r"good-3 +committed, .*, 2 checks passed\n", text)
    assert re.search(r"stray +scope refused, .*(no checks|not checked)\n", text)


def test_the_same_stands_in_json(morning: Path) -> None:
    said = told(morning, "report")
    assert said["version"] == 1
    assert (said["state"], said["outcome"]) == ("budget_stopped", "budget")
    assert Counter(entry["outcome"] for entry in said["tasks"]) == {
        "committed": 3,
        "check_failed": 1,
        "scope_refused": 1,
        "timed_out": 1,
        "skipped": 2,
        "not_run_budget": 1,
    }
    assert sum(said["counts"].values()) == 9
    assert said["next_commands"][-1] == "git batch resume --max-tasks +1"


def attempts(top: Path) -> list[tuple[str, dict[str, Any]]]:
    """Give every ended attempt with its task."""
    entries = told(top, "report")["tasks"]
    return [(entry["id"], attempt) for entry in entries for attempt in entry["history"]]


def test_kept_work_and_logs_are_there(morning: Path) -> None:
    kept = {name: attempt["ref"] for name, attempt in attempts(morning) if attempt["ref"]}
    assert set(kept) == set(WAITING)
    assert git(morning, "show", f"{kept['bad']}:src/bad") == "bad"
    assert git(morning, "show", f"{kept['slow']}:src/half") == "half"
    assert git(morning, "show", f"{kept['stray']}:elsewhere") == "x"
    logs = {name: attempt["log"] for name, attempt in attempts(morning) if attempt["log"]}
    assert set(logs) == {"bad", "slow"}, "those that printed something"
    for name, said in (("bad", "3 tests failed"), ("slow", "so far")):
        assert said in here(morning, *shlex.split(logs[name]["show"])[2:]).out
    assert git(morning, "status", "--porcelain", "-uall") == "?? batch.toml"


def test_each_command_that_is_named_works_as_it_stands(morning: Path) -> None:
    """Pasted into a shell, in the order of the report; what decides comes after what looks."""
    commands = told(morning, "report")["next_commands"]
    looks = [c for c in commands if c.startswith("git batch show")]
    retries = [f"git batch retry {name}" for name in WAITING]
    assert set(retries) < set(commands)
    chosen = [*looks, "git batch skip bad --dependents", *retries[1:]]
    chosen.append("git batch resume --max-tasks +1")
    for line in chosen:
        words = shlex.split(line)
        command = [*argv(*words[2:]), *(["--yes"] if words[2] == "resume" else [])]
        done = subprocess.run(
            command, cwd=morning, env=environment(), capture_output=True, text=True, timeout=LIMIT
        )
        assert done.returncode == (1 if words[2] == "resume" else 0), (line, done.stderr)


def test_the_report_is_the_same_later_and_elsewhere(morning: Path, tmp_path: Path) -> None:
    first = here(morning, "report").out
    git(morning, "gc", "-q", "--prune=now")
    assert here(morning, "report").out == first
    other = tmp_path / "other"
    git(morning, "worktree", "add", "-q", str(other), "main")
    assert here(other, "report").out == first
    assert (
        here(other, "show", "bad", "--output").out == here(morning, "show", "bad", "--output").out
    )
