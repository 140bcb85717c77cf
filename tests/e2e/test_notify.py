"""Somebody is told at the first park and at every kind of end; that never changes the end."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from git_batch.core.events import Event
from git_batch.errors import GitError, PreconditionError
from git_batch.repo import durability
from git_batch.run import notify
from git_batch.run.performer import Performer
from tests.conftest import git
from tests.e2e.beside import beside, ended
from tests.e2e.job import argv, committed, outcomes, task, told, write
from tests.e2e.near import PASSED, near, said, while_it_passes

HOOK = """
echo "$1 $2" >>"$HOME/told"
env | grep ^BATCH_ >"$HOME/env-$1"
cat >"$HOME/report-$1"
"""
NOTIFY = f"\n[notify]\ncommand = '''{HOOK}'''\n"
GOOD = task("a", "echo a >src/one")
BAD = task("b", "echo b >src/two", 'check = "echo no; exit 7"', "attempts = 1")
WORSE = task("c", "exit 1")


def heard(home: Path) -> list[str]:
    path = home / "told"
    return path.read_text().splitlines() if path.exists() else []


def facts(home: Path, event: str) -> dict[str, str]:
    lines = (home / f"env-{event}").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def report(home: Path, event: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / f"report-{event}").read_text())
    return found


def test_the_first_park_and_the_end_are_told_with_facts_and_report(repo: Path, home: Path) -> None:
    write(repo, NOTIFY, GOOD, BAD, WORSE)
    near(repo, "start", "--yes", status=1)
    assert heard(home) == ["park check_failed", "end needs_human"]
    at_park, at_end = facts(home, "park"), facts(home, "end")
    assert at_park["BATCH_PARKED"] == "b"
    assert "exited with 7" in at_park["BATCH_REASON"]
    assert at_park["BATCH_STATE"] == "running"
    assert at_end["BATCH_STATE"] == "needs_human"
    assert at_end["BATCH_COUNT_COMMITTED"] == "1"
    assert at_end["BATCH_COUNT_NEEDS_HUMAN"] == "2"
    assert at_end["BATCH_COUNT_PENDING"] == "0"
    assert at_end["BATCH_REASON"] == told(repo)["reason"]
    assert at_end["BATCH_ID"] == told(repo)["batch_id"]
    assert "BATCH_TASK" not in at_end
    assert report(home, "park")["live"]
    assert report(home, "end") == told(repo, "report")


@pytest.mark.parametrize(
    ("parts", "options", "status", "outcome"),
    [
        ((GOOD,), (), 0, "completed"),
        ((BAD,), (), 1, "needs_human"),
        ((BAD, GOOD), ("-x",), 1, "fail_fast"),
        ((GOOD, WORSE), ("--max-tasks", "1"), 1, "budget"),
        ((GOOD,), ("--deadline", PASSED), 1, "deadline"),
        ((GOOD,), ("--expires", PASSED), 1, "expired"),
        ((BAD, GOOD), ("--qa-failures", "1"), 1, "failure_limit"),
        ((task("a", "exit 75"),), (), 1, "not_now"),
        ((task("a", "echo a >src/one", 'review = "human"'),), (), 1, "review_pending"),
    ],
)
def test_every_kind_of_end_is_told(
    repo: Path,
    home: Path,
    parts: tuple[str, ...],
    options: tuple[str, ...],
    status: int,
    outcome: str,
) -> None:
    write(repo, NOTIFY, *parts)
    with while_it_passes(repo) if PASSED in options else nullcontext():
        near(repo, "start", "--yes", *options, status=status)
    assert heard(home)[-1] == f"end {outcome}"
    assert sum(line.startswith("end") for line in heard(home)) == 1
    assert report(home, "end")["outcome"] == outcome


def test_foreign_commits_and_a_rewritten_branch_are_told(repo: Path, home: Path) -> None:
    write(repo, NOTIFY, GOOD, WORSE)
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "c")
    git(repo, "commit", "-q", "--allow-empty", "-m", "mine")
    near(repo, "resume", status=1)
    assert heard(home)[-1] == "end foreign_commits"
    git(repo, "update-ref", "refs/heads/batch/demo", "main")
    git(repo, "read-tree", "-u", "--reset", "HEAD")
    near(repo, "resume", status=4)
    assert heard(home)[-1] == "end lineage_broken"
    assert facts(home, "end")["BATCH_STATE"] == "failed"
    assert report(home, "end")["drift"]


def test_an_interrupted_run_is_told(repo: Path, home: Path) -> None:
    write(repo, NOTIFY, task("a", "echo >ready; sleep 30", 'scope = ["**"]'))
    with beside(repo, "start", "--yes") as run:
        while run.poll() is None and not (repo / "ready").exists():
            time.sleep(0.02)
        run.terminate()
        ended(run, 143)
    assert heard(home) == ["end interrupted"]
    assert facts(home, "end")["BATCH_STATE"] == "running"
    assert facts(home, "end")["BATCH_COUNT_ENROLLED"] == "1"


def test_a_run_that_can_not_go_on_is_told(
    repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Performer, effect: object) -> Event:
        raise PreconditionError("somebody is in the way")

    monkeypatch.setattr(Performer, "_settle", refuse)
    write(repo, NOTIFY, GOOD)
    done = near(repo, "start", "--yes", status=3)
    assert "somebody is in the way" in done.err
    assert heard(home) == ["end error"]
    assert facts(home, "end")["BATCH_REASON"] == "somebody is in the way"


def test_a_commit_that_a_failing_disk_may_have_lost_was_told_as_made(
    repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier = durability.barrier

    def fails(directory: str) -> None:
        heads = git(repo, "for-each-ref", "--format=%(objectname)", "refs/heads").split()
        if len(set(heads)) > 1:  # the batch's branch has moved on from main
            raise GitError("could not write to disk: Input/output error")
        barrier(directory)

    write(repo, NOTIFY, GOOD)
    with monkeypatch.context() as patch:
        patch.setattr(durability, "barrier", fails)
        near(repo, "start", "--yes", status=1)
    assert heard(home) == ["end error"]
    assert facts(home, "end")["BATCH_STATE"] == "running"
    assert facts(home, "end")["BATCH_COUNT_COMMITTED"] == "0"
    [only] = report(home, "end")["tasks"]
    assert (only["state"], only["commit"]) == ("settled", None)
    near(repo, "resume")
    assert committed(repo) == ["a"]


def test_what_never_began_is_not_told(repo: Path, home: Path) -> None:
    write(repo, NOTIFY, GOOD)
    (repo / "src/a").write_text("dirty\n")
    near(repo, "start", "--yes", status=3)
    git(repo, "checkout", "-q", "src/a")
    near(repo, "start", status=3)
    assert heard(home) == []
    near(repo, "start", "--yes")
    near(repo, "resume")  # says once more how it ended
    assert heard(home) == ["end completed"]


@pytest.mark.parametrize("in_plan", [False, True])
def test_git_s_configuration_names_a_command_as_well(repo: Path, home: Path, in_plan: bool) -> None:
    git(repo, "config", "batch.notify", 'echo "config $1 $2" >>"$HOME/told"')
    write(repo, *([NOTIFY] if in_plan else []), GOOD)
    near(repo, "start", "--yes")
    expected = ["end completed"] if in_plan else []
    assert heard(home) == [*expected, "config end completed"]


def test_a_command_that_a_task_configures_is_not_called(repo: Path, home: Path) -> None:
    plant = "git config batch.notify 'echo planted >>$HOME/told'; echo a >src/one"
    write(repo, task("a", plant))
    near(repo, "start", "--yes", status=1)
    assert outcomes(repo)["a"] == "tampered"
    assert heard(home) == []


def test_a_list_is_called_as_it_is(repo: Path, home: Path) -> None:
    script = home / "tell"
    script.write_text('#!/bin/sh\necho "$# $BATCH_EVENT" >>"$HOME/told"\n')
    script.chmod(0o755)
    write(repo, f'\n[notify]\ncommand = ["{script}", "one"]\n', GOOD)
    near(repo, "start", "--yes")
    assert heard(home) == ["1 end"]


@pytest.mark.parametrize(
    ("command", "said_of_it"),
    [
        ('"echo oh; exit 3"', "the notify command failed, exit 3: oh"),
        ('"kill -9 $$"', "the notify command failed, killed by signal 9"),
        ('["no-such-program-here"]', "the notify command failed, could not be started"),
        ('"sleep 600"', "the notify command failed, timed out"),
        ('"trap : TERM; sleep 600 & wait; sleep 600"', "the notify command failed, timed out"),
        ('"sleep 600 & exit 0"', None),
    ],
)
@pytest.mark.parametrize(("parts", "status"), [((GOOD,), 0), ((BAD,), 1)])
def test_its_failure_or_hang_changes_nothing(
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    said_of_it: str | None,
    parts: tuple[str, ...],
    status: int,
) -> None:
    monkeypatch.setattr(notify, "LIMIT", 0.3)
    monkeypatch.setattr(notify, "_GRACE", 0.2)
    write(repo, f"\n[notify]\ncommand = {command}\n", *parts)
    began = time.monotonic()
    done = near(repo, "start", "--yes", status=status)
    assert time.monotonic() - began < 15
    assert (said_of_it or "") in done.err
    assert ("notify command failed" in done.err) == (said_of_it is not None)
    assert committed(repo) == (["a"] if status == 0 else [])


def test_the_locks_are_free_when_the_end_is_told(repo: Path, home: Path) -> None:
    look = " ".join(argv("status", "--json"))
    write(repo, f"\n[notify]\ncommand = '''{look} >\"$HOME/seen\"'''\n", GOOD)
    near(repo, "start", "--yes")
    assert json.loads((home / "seen").read_text())["live"] is False


def test_it_can_decide_nothing(repo: Path, home: Path) -> None:
    again = " ".join(argv("resume", "--yes"))
    write(repo, f"\n[notify]\ncommand = '''{again} 2>\"$HOME/said\"'''\n", WORSE)
    done = near(repo, "start", "--yes", status=1)
    assert "can't start, renew or decide anything" in (home / "said").read_text()
    assert "exit 3" in said(done)
    assert os.environ["HOME"] == str(home)
