"""Bounds of a run: what counts, what is stopped and what is not, and how that is told."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.beside import beside, ended, until
from tests.e2e.job import argv, committed, outcomes, refs, task, told, write
from tests.e2e.near import near, said, set_clock

FAIL = 'check = "false"'


def budget(**values: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(["", "[budget]", *lines, ""])


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = datetime(2030, 1, 1, tzinfo=UTC)
        set_clock(monkeypatch, lambda: self.at)


def four(repo: Path) -> None:
    write(repo, *(task(name, f"echo {name} >src/{name}{name}") for name in "abcd"))


# max_tasks.


def test_max_tasks_counts_enrollments_whatever_becomes_of_them(repo: Path) -> None:
    write(
        repo,
        budget(max_tasks=3),
        task("a", "echo a >src/one"),
        task("b", "exit 1"),
        task("c", "echo c >src/c; echo attempt >>../attempts", FAIL, "attempts = 3"),
        task("d", "echo d >src/d"),
    )
    near(repo, "start", "--yes", status=1)
    status = told(repo, "report")
    assert status["budget"]["enrolled"] == status["budget"]["max_tasks"] == 3
    assert (repo.parent / "attempts").read_text() == "attempt\n" * 3
    assert (status["state"], status["outcome"]) == ("budget_stopped", "budget")
    assert status["reason"] == "the budget of 3 enrollments is used up"
    d = next(entry for entry in status["tasks"] if entry["id"] == "d")
    assert (d["outcome"], d["reason"]) == ("not_run_budget", status["reason"])
    assert outcomes(repo) == {
        "a": "committed",
        "b": "run_failed",
        "c": "check_failed",
        "d": "not_run_budget",
    }


def test_a_task_that_is_enrolled_again_counts_again(repo: Path) -> None:
    write(repo, budget(max_tasks=2), task("a", "exit 1"), task("b", "echo b >src/two"))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    near(repo, "resume", status=1)
    assert told(repo)["outcome"] == "budget"
    near(repo, "resume", "--yes", "--max-tasks", "3", status=1)
    assert told(repo)["budget"]["enrolled"] == 3


def test_what_is_all_done_is_complete_whatever_the_budget(repo: Path) -> None:
    four(repo)
    near(repo, "start", "--yes", "--max-tasks", "4")
    assert told(repo)["state"] == "completed"


@pytest.mark.parametrize("number", ["+2", "4"])
def test_more_tasks_are_granted_as_a_total_or_on_top(repo: Path, number: str) -> None:
    four(repo)
    near(repo, "start", "--yes", "--max-tasks", "2", status=1)
    first = told(repo)
    near(repo, "resume", "--yes", "--max-tasks", number)
    after = told(repo)
    assert after["batch_id"] == first["batch_id"]
    assert after["budget"]["max_tasks"] == 4
    assert committed(repo) == ["a", "b", "c", "d"]
    assert [t["commit"] for t in after["tasks"]][:2] == [t["commit"] for t in first["tasks"]][:2]


@pytest.mark.parametrize("bounds", [(), ("--max-tasks", "1"), ("--max-tasks", "+0")])
def test_a_confirmation_that_grants_nothing_is_refused_with_the_way(
    repo: Path, bounds: tuple[str, ...]
) -> None:
    four(repo)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    assert told(repo)["next_action"] == "git batch resume --max-tasks +3"
    done = near(repo, "resume", "--yes", *bounds, status=3)
    assert done.hints == [told(repo)["next_action"]]
    assert told(repo)["authorization"]["seq"] == 1


# Deadline and expiry.


@pytest.mark.parametrize(
    ("option", "outcome"), [("--deadline", "deadline"), ("--expires", "expired")]
)
def test_what_is_in_flight_is_finished_and_nothing_starts_after_the_end(
    repo: Path, monkeypatch: pytest.MonkeyPatch, option: str, outcome: str
) -> None:
    """Also with a second attempt, which is no enrollment."""
    clock = Clock(monkeypatch)
    mark = repo.parent / "mark"
    write(
        repo,
        task(
            "a",
            "echo $BATCH_ATTEMPT >src/one",
            f'check = "test $BATCH_ATTEMPT = 2 || ! touch {mark}"',
        ),
        task("b", "echo b >src/two"),
    )

    def ticking() -> datetime:
        return clock.at + (timedelta(hours=2) if mark.exists() else timedelta())

    set_clock(monkeypatch, ticking)
    near(repo, "start", "--yes", option, "1h", status=1)
    status = told(repo)
    assert (status["state"], status["outcome"]) == ("budget_stopped", outcome)
    assert outcomes(repo) == {"a": "committed", "b": f"not_run_{outcome}"}
    assert "2030-01-01T01:00:00" in status["reason"]


@pytest.mark.parametrize(
    ("bounds", "said", "hint"),
    [
        (("--expires", "2020-01-01T00:00:00Z"), "expired at 2020-01-01T00:00:00", "--expires 8h"),
        (("--deadline", "2020-01-01T00:00:00Z"), "deadline 2020-01-01T00:00:00", "--deadline 8h"),
        (("--max-tasks", "0"), "the budget of 0 enrollments", "--max-tasks N"),
    ],
)
@pytest.mark.parametrize("how", ["--yes", "--dry-run"])
def test_what_went_wrong_a_batch_began_whose_bounds_were_reached_before_it(
    repo: Path, bounds: tuple[str, ...], said: str, hint: str, how: str
) -> None:
    four(repo)
    before = refs(repo)
    done = near(repo, "start", how, *bounds, status=3)
    assert done.err.startswith("error: nothing would run: ")
    assert said in done.err
    assert done.hints == [f"git batch start {hint}"]
    assert refs(repo) == before


def test_what_went_wrong_after_a_deadline_had_passed_the_next_action_was_refused(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    mark = repo.parent / "mark"
    write(repo, task("a", f"echo a >src/one; touch {mark}"), task("b", "echo b >src/two"))
    late = clock.at + timedelta(hours=2)
    set_clock(monkeypatch, lambda: late if mark.exists() else clock.at)
    near(repo, "start", "--yes", "--deadline", "2030-01-01T01:00:00Z", status=1)
    action = told(repo)["next_action"]
    assert action == "git batch resume --deadline 8h"
    assert "git batch resume" not in told(repo, "report")["next_commands"]
    near(repo, *action.split()[2:], "--yes")
    assert committed(repo) == ["a", "b"]


ENDED = "2030-01-01T01:00:00Z"


@pytest.fixture
def ended_twice(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a batch that was stopped by its deadline when its budget of tasks was used up."""
    clock = Clock(monkeypatch)
    mark = repo.parent / "mark"
    late = clock.at + timedelta(hours=2)
    set_clock(monkeypatch, lambda: late if mark.exists() else clock.at)
    write(repo, task("a", f"echo a >src/one; touch {mark}"), task("b", "echo b >src/two"))
    near(repo, "start", "--yes", "--max-tasks", "1", "--deadline", ENDED, status=1)
    assert told(repo)["outcome"] == "deadline"
    return repo


def test_what_went_wrong_a_second_bound_stopped_what_the_next_action_began(
    ended_twice: Path,
) -> None:
    action = told(ended_twice)["next_action"]
    assert action == "git batch resume --deadline 8h --max-tasks +1"
    assert told(ended_twice, "report")["next_commands"] == [action]
    assert f"next:       {action}\n" in near(ended_twice, "status").out
    near(ended_twice, *action.split()[2:], "--yes")
    assert committed(ended_twice) == ["a", "b"]


@pytest.mark.parametrize("given", [(), ("--max-tasks", "+1"), ("--deadline", "8h")])
def test_what_went_wrong_the_way_around_one_bound_led_into_the_other(
    ended_twice: Path, given: tuple[str, ...]
) -> None:
    done = near(ended_twice, "resume", "--yes", *given, status=3)
    assert done.hints == ["git batch resume --deadline 8h --max-tasks +1"]
    assert ("deadline" in done.err.splitlines()[0]) == ("--deadline" not in given)
    assert ("enrollment" in done.err.splitlines()[0]) == ("--max-tasks" not in given)
    done = near(ended_twice, "resume", "--yes", "--max-tasks", "+1", "--plan", "batch.toml")
    assert committed(ended_twice) == ["a", "b"]  # a plan without a deadline has none


def test_what_went_wrong_a_changed_plan_was_left_out_of_the_way_around_its_bound(
    ended_twice: Path,
) -> None:
    plan = ended_twice / "batch.toml"
    plan.write_text(plan.read_text() + budget(max_tasks=1))
    done = near(ended_twice, "resume", "--yes", "--plan", "batch.toml", status=3)
    assert done.hints == ["git batch resume --max-tasks +1 --plan batch.toml"]


def test_what_went_wrong_a_start_was_told_of_one_bound_at_a_time(repo: Path) -> None:
    four(repo)
    bounds = ("--deadline", "2020-01-01T00:00:00Z", "--max-tasks", "0")
    done = near(repo, "start", "--yes", *bounds, status=3)
    assert done.hints == ["git batch start --deadline 8h --max-tasks N"]


def test_a_real_end_stops_a_real_run(repo: Path) -> None:
    write(repo, *(task(n, f"sleep 0.7; echo {n} >src/{n}{n}") for n in "abcd"))
    near(repo, "start", "--yes", "--expires", "1s", status=1)
    found = outcomes(repo)
    assert list(found.values()) in (
        ["committed"] * 1 + ["not_run_expired"] * 3,
        ["committed"] * 2 + ["not_run_expired"] * 2,
    )


@pytest.mark.parametrize("option", ["--deadline", "--expires"])
def test_a_clock_that_is_set_back_extends_nothing(
    repo: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    clock = Clock(monkeypatch)
    mark = repo.parent / "mark"
    write(repo, task("a", f"echo a >src/one; touch {mark}"), task("b", "echo b >src/two"))
    late, early = clock.at + timedelta(hours=2), clock.at - timedelta(days=30)
    times = iter([late, late])  # after the command: its end, then its commit; then it is set back

    def ticking() -> datetime:
        return next(times, early) if mark.exists() else clock.at

    set_clock(monkeypatch, ticking)
    near(repo, "start", "--yes", option, "1h", status=1)
    assert committed(repo) == ["a"]
    for _ in range(2):  # a resume at that earlier time needs a confirmation, too
        refused = near(repo, "resume", status=3)
        assert "nobody confirmed" in refused.err or "nothing would run" in refused.err
    assert committed(repo) == ["a"]


# Failing checks.


def test_failing_checks_in_a_row_end_the_run_as_a_broken_environment(repo: Path) -> None:
    write(
        repo,
        budget(qa_failure_limit=2),
        *(task(n, f"echo {n} >src/{n}{n}", FAIL, "attempts = 1") for n in "abc"),
    )
    near(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {
        "a": "check_failed",
        "b": "check_failed",
        "c": "not_run_failure_limit",
    }
    status = told(repo)
    assert (status["outcome"], status["budget"]["consecutive_qa_failures"]) == ("failure_limit", 2)
    # A fresh confirmation counts anew.
    near(repo, "resume", status=3)
    near(repo, "resume", "--yes", status=1)
    assert outcomes(repo)["c"] == "check_failed"


def test_the_limit_ends_a_task_before_its_attempts_are_used_up(repo: Path) -> None:
    write(repo, task("a", "echo a >src/one; echo x >>../tries", FAIL, "attempts = 9"))
    near(repo, "start", "--yes", "--qa-failures", "3", status=1)
    assert (repo.parent / "tries").read_text() == "x\n" * 3


def test_a_settled_task_and_an_interruption_do_not_count(repo: Path) -> None:
    checks = {"a": "false", "b": "true", "c": "false", "d": "true"}
    write(
        repo,
        budget(qa_failure_limit=2),
        *(
            task(n, f"echo {n} >src/{n}{n}", f'check = "{c}"', "attempts = 1")
            for n, c in checks.items()
        ),
    )
    near(repo, "start", "--yes", status=1)
    assert told(repo)["outcome"] == "needs_human"
    assert outcomes(repo)["d"] == "committed"


# What agents use.


def agents(repo: Path, usage: str, **bounds: object) -> None:
    script = f"echo x >src/$BATCH_TASK$BATCH_TASK; printf '%s' '{usage}' >$BATCH_USAGE"
    robot = f'\n[agent.robot]\nrun = ["sh", "-c", {json.dumps(script)}]\n'
    entry = (
        '\n[[task]]\nid = "{}"\ntitle = "T"\nscope = ["src/**"]\nagent = "robot"\nprompt = "x"\n'
    )
    write(repo, budget(**bounds), robot, *(entry.format(n) for n in "ab"))


@pytest.mark.parametrize(
    ("usage", "bounds", "reason"),
    [
        ({"usd": 1.5}, {"max_usd": 1.0}, "the budget of 1 USD is used up: 1.5 USD were used"),
        (
            {"input_tokens": 7, "output_tokens": 3},
            {"max_tokens": 9},
            "of 9 tokens is used up: 10 were used",
        ),
        ({"usd": 0.5}, {"max_usd": 1.0}, None),
        ({"usd": 0.5}, {"max_usd": 1.0, "unknown_usage": "stop"}, None),
        ({}, {"max_usd": 1.0}, None),
        ({}, {"unknown_usage": "stop"}, None),
        (
            {"input_tokens": 1},
            {"max_usd": 1.0, "unknown_usage": "stop"},
            "it is unknown what is left",
        ),
        ({"usd": 0.1}, {"max_tokens": 9, "unknown_usage": "stop"}, "did not say what it used"),
    ],
)
def test_what_agents_say_they_use_is_a_bound_and_what_they_do_not_say_only_if_asked(
    repo: Path, usage: dict[str, float], bounds: dict[str, object], reason: str | None
) -> None:
    agents(repo, json.dumps(usage), **bounds)
    near(repo, "start", "--yes", status=1 if reason else 0)
    status = told(repo)
    assert committed(repo) == (["a"] if reason else ["a", "b"])
    if reason:
        assert reason in status["reason"]
        assert outcomes(repo)["b"] == "not_run_budget"
        refused = near(repo, "resume", "--yes", status=3)
        assert refused.hints == ["raise the bound in the plan: git batch resume --plan PLAN"]
        assert status["next_action"] == "git batch resume --plan PLAN"


def test_what_nobody_said_is_unknown(repo: Path) -> None:
    agents(repo, "{}", max_usd=1.0)
    near(repo, "start", "--yes")
    assert {entry["usage"] for entry in told(repo)["tasks"]} == {None}
    assert "unknown" in near(repo, "report").out


def test_a_bound_on_usage_is_raised_by_the_plan(repo: Path) -> None:
    agents(repo, '{"usd": 1.5}', max_usd=1.0)
    near(repo, "start", "--yes", status=1)
    agents(repo, '{"usd": 1.5}', max_usd=2.0)
    shown = near(repo, "resume", "--plan", "batch.toml", "--yes")
    assert "~ the budget's max_usd: 1.0 -> 2.0" in shown.out
    assert committed(repo) == ["a", "b"]


# Not now.


def test_not_now_waits_and_tries_again_without_using_up_an_attempt(repo: Path) -> None:
    write(
        repo,
        budget(max_wait="1s"),
        task(
            "a",
            "echo x >>../tries; test $(wc -l <../tries) = 2 || exit 75; echo a >src/one",
            "attempts = 1",
        ),
    )
    began = time.monotonic()
    done = near(repo, "start", "--yes")
    assert time.monotonic() - began > 1
    assert "'a' says 'not now': waiting 1s, until 20" in done.err
    assert told(repo)["budget"]["enrolled"] == 1
    assert [h["outcome"] for h in told(repo, "report")["tasks"][0]["history"]] == [
        "stopped",
        "committed",
    ]


@pytest.mark.parametrize("how", ["exit 75", "echo Rate  Limit reached; exit 1"])
def test_not_now_stops_when_there_is_no_time_to_wait_and_goes_on_later(
    repo: Path, how: str
) -> None:
    script = f"echo x >>../tries; test $(wc -l <../tries) -gt 2 || {{ {how}; }}; echo a >src/one"
    write(
        repo,
        f'\n[agent.robot]\nrun = ["sh", "-c", {json.dumps(script)}]\nnot_now = [\'rate *limit\']\n',
        '\n[[task]]\nid = "a"\ntitle = "A"\nscope = ["src/**"]\nagent = "robot"\nprompt = "x"\n',
        task("b", "echo b >src/two"),
    )
    for _ in range(2):
        near(
            repo,
            *(("resume",) if (repo.parent / "tries").exists() else ("start", "--yes")),
            status=1,
        )
        status = told(repo)
        assert (status["state"], status["outcome"]) == ("budget_stopped", "not_now")
        assert "'a' says 'not now'" in status["reason"]
    near(repo, "resume")
    assert committed(repo) == ["a", "b"]
    assert told(repo)["authorization"]["seq"] == 1


def test_what_went_wrong_nothing_led_on_without_a_task_that_says_not_now_for_ever(
    repo: Path,
) -> None:
    a = task("a", "exit 75")
    write(repo, budget(max_wait="0s"), a, task("b", "echo b >src/two"))
    ended = near(repo, "start", "--yes", status=1)
    ways = ["git batch resume", "git batch skip a"]
    for out in (ended.out, near(repo, "status").out):
        lines = [line.removeprefix("next:").strip() for line in out.splitlines() if "next:" in line]
        assert lines[:2] == ways
    assert told(repo)["next_action"] == ways[0]
    assert told(repo, "report")["next_commands"] == ways
    assert told(repo, "show", "a")["next_commands"][-2:] == ways
    near(repo, "skip", "a")
    near(repo, "resume")
    assert committed(repo) == ["b"]


@pytest.mark.parametrize("by", ["signal", "stop", "renewal"])
def test_a_wait_ends_early_when_there_is_a_reason(repo: Path, by: str) -> None:
    write(repo, budget(max_wait="1h"), task("a", "echo x >>../tries; exit 75"))
    with beside(repo, "start", "--yes") as run:
        until(run, "waiting 1m, until")
        record = git(repo, "for-each-ref", "--format=%(contents:subject)", "refs/notes/batch/")
        assert record == "a: interrupted", "what was recorded is published before the wait"
        if by == "stop":
            near(repo, "stop")
        elif by == "renewal":
            done = near(repo, "resume", "--yes", "--max-tasks", "5")
            assert "renewed: the run that goes on" in done.out
            until(run, "waiting 1m, until")
            assert (repo.parent / "tries").read_text() == "x\n" * 2
        if by != "stop":
            run.terminate()
        ended(run, 1 if by == "stop" else 143)
    assert told(repo)["outcome"] == ("stop_requested" if by == "stop" else None)
    assert told(repo)["tasks"][0]["state"] == "enrolled"


def test_the_command_cannot_extend_what_it_may_use(repo: Path) -> None:
    inner = " ".join(argv("resume", "--yes", "--max-tasks", "99"))
    write(repo, task("a", f"{inner}; echo a >src/one"), task("b", "echo b >src/two"))
    done = near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    assert "renewed" not in said(done)
    assert told(repo)["budget"]["max_tasks"] == 1
    assert os.environ.get("BATCH_TASK") is None
