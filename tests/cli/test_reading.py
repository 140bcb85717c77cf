"""Commands that read: they answer in every state, exit with 0, and their JSON is a contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.states import STATES
from tests.conftest import git
from tests.e2e.job import everything, here, told

STATUS = [
    "version", "batch_id", "slug", "title", "branch", "base", "head", "plan_digest", "state",
    "outcome", "reason", "next_action", "live", "authorization", "budget", "counts", "tasks",
    "drift", "review",
]  # fmt: skip
AUTHORIZATION = ["seq", "actor", "confirmed_at", "expires_at", "signed"]
BUDGET = ["max_tasks", "enrolled", "deadline_at", "qa_failure_limit", "consecutive_qa_failures"]
TASK = [
    "id", "title", "state", "outcome", "reason", "attempts", "commit", "blocked_by", "started_at",
    "ended_at", "usage",
]  # fmt: skip
HISTORY = {
    "n", "outcome", "started_at", "ended_at", "exit_status", "checks", "changed_paths", "ref",
    "log",
}  # fmt: skip
OUTCOMES = {
    "committed",
    "unchanged",
    "empty",
    "check_failed",
    "check_changed_tree",
    "run_failed",
    "killed",
    "timed_out",
    "stalled",
    "scope_refused",
    "protected_changed",
    "hook_refused",
    "commit_failed",
    "review_pending",
    "review_rework",
    "review_rejected",
    "review_changed_tree",
    "blocked",
    "stopped",
    "interrupted",
    "history_changed",
    "tampered",
    "claimed_elsewhere",
    "skipped",
    "dropped",
    "undone",
    "not_run_budget",
    "not_run_deadline",
    "not_run_expired",
    "not_run_failure_limit",
    "not_run_stopped",
}
"""The closed list of product.md."""
WITH_BATCH = [state for state in STATES if state != "none"]
EXPECTED: dict[str, tuple[str, str | None, dict[str, str | None]]] = {
    "completed": ("completed", "completed", {"done": "committed"}),
    "needs_human": (
        "needs_human",
        "needs_human",
        {
            "done": "committed",
            "stuck": "run_failed",
            "behind": "skipped",
            "same": "unchanged",
            "stray": "scope_refused",
        },
    ),
    "budget": ("budget_stopped", "budget", {"done": "committed", "stuck": "not_run_budget"}),
    "expired": ("budget_stopped", "expired", {"done": "not_run_expired"}),
    "limit": (
        "needs_human",
        "failure_limit",
        {"bad": "check_failed", "done": "not_run_failure_limit"},
    ),
    "review": ("needs_human", "review_pending", {"seen": "review_pending"}),
    "crashed": ("running", None, {"done": "committed", "killer": "interrupted", "stuck": None}),
    "foreign": ("needs_human", "foreign_commits", {"done": "committed"}),
    "failed": ("failed", "lineage_broken", {}),
    "abandoned": ("abandoned", "abandoned", {"stuck": "run_failed"}),
    "decided": ("running", None, {"stuck": None, "stray": "dropped"}),
}


@pytest.mark.parametrize("state", WITH_BATCH)
def test_status_json_has_exactly_the_keys_of_the_contract(in_state: Make, state: str) -> None:
    said = told(in_state(state))
    assert list(said) == STATUS
    assert said["version"] == 1
    assert list(said["authorization"]) == AUTHORIZATION
    assert list(said["budget"]) == BUDGET
    for entry in said["tasks"]:
        assert list(entry) == TASK
        assert type(entry["attempts"]) is int
        assert entry["outcome"] is None or entry["outcome"] in OUTCOMES
    assert sum(said["counts"].values()) == len(said["tasks"])
    assert type(said["live"]) is bool
    for drift in said["drift"]:
        assert list(drift) == ["kind", "detail", "commit"]


@pytest.mark.parametrize("state", WITH_BATCH)
def test_status_json_says_where_the_batch_stands(in_state: Make, state: str) -> None:
    said = told(in_state(state))
    status, outcome, outcomes = EXPECTED[state]
    assert (said["state"], said["outcome"]) == (status, outcome)
    found = {entry["id"]: entry["outcome"] for entry in said["tasks"]}
    assert {name: found[name] for name in outcomes} == outcomes
    assert (said["review"] is not None) == (state == "review")
    assert bool(said["drift"]) == (state in ("foreign", "failed"))


@pytest.mark.parametrize("state", WITH_BATCH)
def test_report_json_is_the_status_with_history_and_commands(in_state: Make, state: str) -> None:
    top = in_state(state)
    report, status = told(top, "report"), told(top)
    assert list(report) == [*STATUS, "next_commands"]
    for entry in report["tasks"]:
        history = entry.pop("history")
        assert [attempt["n"] for attempt in history] == list(range(1, len(history) + 1))
        for attempt in history:
            assert set(attempt) >= HISTORY
            assert attempt["outcome"] in OUTCOMES
    del report["next_commands"]
    assert report == status


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "args",
    [
        ("status",),
        ("list",),
        ("report",),
        ("report", "--format", "markdown"),
        ("report", "--format", "html"),
        ("report", "--format", "json"),
        ("log",),
        ("status", "--json"),
        ("list", "--json"),
        ("report", "--json"),
        ("log", "--json"),
        ("log", "--task", "done"),
    ],
)
def test_every_reader_answers_in_every_state(
    in_state: Make, state: str, args: tuple[str, ...]
) -> None:
    top = in_state(state)
    before = everything(top)
    unknown = args[-1] == "done" and state == "review"  # which has no task of that name
    done = here(top, *args, status=2 if unknown else 0)
    if unknown:
        return
    assert done.out.strip() or args[0] == "log"
    assert done.err == ""
    if "json" in args[-1]:
        assert json.loads(done.out)["version"] == 1
        assert done.out.isascii()
    assert everything(top) == before, "who reads, writes nothing"


@pytest.mark.parametrize("state", WITH_BATCH)
@pytest.mark.parametrize("args", [(), ("--output",), ("--diff",), ("--json",), ("--attempt", "1")])
def test_every_task_can_be_shown_in_every_state(
    in_state: Make, state: str, args: tuple[str, ...]
) -> None:
    top = in_state(state)
    for entry in told(top)["tasks"]:
        none = "--attempt" in args and not history(top, entry["id"])
        done = here(top, "show", entry["id"], *args, status=2 if none else 0)
        if args == ("--json",):
            said = json.loads(done.out)
            assert list(said) == ["version", "batch_id", "task", "next_commands"]
            assert list(said["task"]) == [*TASK, "history"]


def history(top: Path, name: str) -> list[dict[str, Any]]:
    """Give the ended attempts of a task."""
    entries = told(top, "report")["tasks"]
    found: list[dict[str, Any]] = next(e for e in entries if e["id"] == name)["history"]
    return found


def test_no_batch_is_an_answer(in_state: Make) -> None:
    top = in_state("none")
    for command in ("status", "report", "log", "list"):
        assert here(top, command).out == "no batch in this repository; begin with: git batch new\n"
    for command in ("status", "report"):
        assert told(top, command) == {"version": 1, "batch_id": None}
    assert told(top, "list")["batches"] == []
    assert told(top, "log") == {"version": 1, "events": []}


@pytest.mark.parametrize("command", ["status", "report", "log"])
def test_a_batch_is_named_by_id_slug_or_branch(in_state: Make, command: str) -> None:
    top = in_state("completed")
    whole = here(top, command, "--json").out
    for name in (told(top)["batch_id"], "demo", "batch/demo"):
        assert here(top, command, name, "--json").out == whole
    done = here(top, command, "other", status=2)
    assert done.err.startswith("error: there is no batch 'other' here\nhint: batches here: 'demo-")


def test_a_task_is_named_alone_or_with_its_batch(in_state: Make) -> None:
    top = in_state("needs_human")
    said = here(top, "show", "stuck").out
    for name in ("demo:stuck", f"{told(top)['batch_id']}:stuck"):
        assert here(top, "show", name).out == said
    done = here(top, "show", "stcuk", status=2)
    assert done.hints == ["did you mean 'stuck'?"]
    assert here(top, "show", "other:stuck", status=2).err


def test_the_batch_of_the_branch_is_meant_else_the_unfinished_one(in_state: Make) -> None:
    top = in_state("completed")
    first = told(top)["batch_id"]
    plan = (top / "batch.toml").read_text().replace('"demo"', '"more"').replace("true", "false")
    (top / "batch.toml").write_text(plan.replace("src/one", "src/more"))
    here(top, "start", "--yes", status=1)
    second = told(top)["batch_id"]
    assert second.startswith("more-")
    git(top, "switch", "-q", "batch/demo")
    assert told(top)["batch_id"] == first
    git(top, "switch", "-q", "main")
    assert told(top)["batch_id"] == second
    assert [b["batch_id"] for b in told(top, "list")["batches"]] == [second, first]


@pytest.mark.parametrize("form", ["text", "markdown", "json", "html"])
def test_a_report_goes_to_a_file(in_state: Make, tmp_path: Path, form: str) -> None:
    top, path = in_state("needs_human"), tmp_path / "report"
    done = here(top, "report", "--format", form, "-o", str(path))
    assert done.out == ""
    assert "stuck" in path.read_text()
    refused = here(top, "report", "-o", str(tmp_path / "no/where"), status=2)
    assert refused.err.startswith("error: can't write")


def test_the_log_names_each_transition_and_who_made_it(in_state: Make) -> None:
    top = in_state("decided")
    events = told(top, "log")["events"]
    assert [event["step"] for event in events] == list(range(1, len(events) + 1))
    decided = [event for event in events if event["event"] == "decided"]
    assert [(event["tasks"], event["who"]) for event in decided] == [
        (["stuck"], "T <t@x>"),
        (["stray"], "T <t@x>"),
    ]
    assert decided[0]["reason"] == "try harder"
    shown = here(top, "log", "--task", "stray").out
    assert "stray" in shown
    assert "done: committed" not in shown


def test_a_dead_run_is_told_from_a_live_one(in_state: Make) -> None:
    top = in_state("crashed")
    shown = here(top, "status").out
    assert "not finished, and nobody is running it" in shown
    assert "'killer', attempt 1, its command was cut short" in shown
    assert shown.endswith("next:       git batch resume\n")


def test_what_went_wrong_show_as_json_left_out_without_a_word_what_was_asked_for(
    in_state: Make,
) -> None:
    top = in_state("needs_human")
    task = next(e["id"] for e in told(top, "report")["tasks"] if e["history"])
    shown = json.loads(here(top, "show", task, "--json", "--output", "--diff").out)
    assert shown["diff"] in here(top, "show", task, "--diff").out
    assert shown["diff"].startswith("diff --git ")
    assert shown["output"] is None or shown["output"] in here(top, "show", task, "--output").out
    assert not {"output", "diff"} & json.loads(here(top, "show", task, "--json").out).keys()
    for form in ((), ("--json",)):
        refused = here(top, "show", task, "--attempt", "99", *form, status=2)
        assert f"'{task}' has no attempt 99 that has ended" in refused.err
        assert refused.hints == [f"those it has: git batch show {task}"]
    only = json.loads(here(top, "show", task, "--attempt", "1", "--json").out)
    assert [a["n"] for a in only["task"]["history"]] == [1]


def test_what_went_wrong_show_said_nothing_of_output_and_change_that_there_are_not(
    in_state: Make,
) -> None:
    top = in_state("needs_human")
    task = next(e["id"] for e in told(top, "report")["tasks"] if not e["history"])
    said = here(top, "show", task, "--output", "--diff").out
    assert "\noutput: none, as no attempt has ended\n\ndiff: no change is kept\n" in said


@pytest.mark.parametrize("plan", ["batch.toml", ".batch/a.toml"])
def test_what_went_wrong_a_plan_was_to_be_made_where_one_was(in_state: Make, plan: str) -> None:
    top = in_state("none")
    for path in top.glob("*.toml"):
        path.unlink()
    assert here(top, "resume", status=3).hints == ["begin with: git batch new"]
    (top / plan).parent.mkdir(exist_ok=True)
    (top / plan).write_text("")
    for command in ("status", "report", "log", "list"):
        assert here(top, command).out.endswith("; begin with: git batch start\n")
    for words in (("resume",), ("retry", "a"), ("push",), ("show", "a")):
        assert here(top, *words, status=3).hints == ["begin with: git batch start"]
