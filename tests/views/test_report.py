from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from git_batch.core import events as ev
from git_batch.core.ids import TaskId
from git_batch.core.model import Budget
from git_batch.core.standing import BatchStatus, Outcome, StopReason
from git_batch.views.commands import next_commands
from git_batch.views.common import Around
from git_batch.views.escape import json_text
from git_batch.views.html import report_html
from git_batch.views.markdown import code, fenced, report_markdown
from git_batch.views.outline import tail_lines
from git_batch.views.report import report_json, report_text
from tests.views.states import BIDI, CHECK, ESC, Story, logs, morning, plan, task

ATTEMPTS = "refs/batch/demo-abc123/attempts"


def report(story: Story, *, live: bool = False, width: int = 80) -> str:
    return report_text(story.state, story.plan, logs=logs, live=live, width=width)


def hostile() -> Story:
    words = f"{ESC}{BIDI}\n## x\n<script>alert(1)</script> `` [a](http://b) @me | \x9b"
    story = Story(plan(task("a", title=words), task("b", "a", title=words), title=words))
    paths = b"caf\xe9.txt", "\u202e\n.txt".encode(), b"p" * 300
    story.enroll("a")
    story.ran(*paths)
    story.checked(CHECK)
    story.park(*paths)
    story.close(BatchStatus.NEEDS_HUMAN, StopReason.NEEDS_HUMAN, words, words)
    return story


def test_the_first_screen() -> None:
    assert report(morning()).splitlines()[:33] == [
        "demo-abc123: A demo",
        "",
        "tasks:     9 tasks: 3 committed, 3 need a human (1 check failed, 1 scope",
        "           refused, 1 timed out), 2 skipped, 1 not run (1 deadline)",
        "state:     budget stopped (deadline)",
        "reason:    the deadline 2030-02-01T04:00:00+00:00 has passed",
        f"branch:    batch/demo at {morning().state.head[:10]}, base bbbbbbbbbb",
        "time:      2030-01-31 20:00:00+00:00 to 2030-01-31 20:29:00+00:00 (29m); 7",
        "           attempts took 21m",
        "usage:     1.25 USD, 1000 input tokens, output tokens unknown (unknown for 6 of",
        "           7 attempts)",
        "confirmed: by Ann <ann@example.org> at 2030-01-31 20:00:00+00:00, no expiry",
        "",
        "needs a human (3):",
        "  park-check: check failed: check 'pytest -q' exited with 1",
        "    look:                git batch show park-check --output",
        "    try again:           git batch retry park-check",
        "    go on from its work: git batch retry park-check --from-attempt 1",
        "    leave it out:        git batch skip park-check --dependents",
        "  park-scope: scope refused: changed 'README': outside",
        "    look:                git batch show park-scope --diff",
        "    try again:           git batch retry park-scope",
        "    go on from its work: git batch retry park-scope --from-attempt 1",
        "    leave it out:        git batch skip park-scope",
        "  slow: timed out: the command was ended: timed out",
        "    look:         git batch show slow --output",
        "    try again:    git batch retry slow",
        "    leave it out: git batch skip slow",
        "",
        "then:",
        "    git batch resume",
        "",
        "committed (3):",
    ]


def test_every_task_is_told() -> None:
    shown = report(morning())
    assert ", 2 files, 4m, 1 attempt, 1 check passed" in shown
    assert ", 1 file, 7m, 2 attempts, 1 check passed" in shown
    assert "failed check: pytest -q (exit 1, 2.5s)" in shown
    assert f"kept:         {ATTEMPTS}/park-check/1" in shown
    assert f"see it:       git show --first-parent {ATTEMPTS}/park-check/1" in shown
    assert "log:          git batch show park-check --output" in shown
    assert "      | FAILED caf\\xe9 \\x1b]0;owned\\x07\n      | E assert\n" in shown
    assert "      | new: \\x1b[31mred\\u202eevil" in shown
    assert "behind-that  skipped: dependency 'park-check' parked" in shown
    assert "last  not run (deadline): the deadline 2030-02-01T04:00:00+00:00 has passed" in shown


def test_nothing_that_was_not_checked_is_called_checked() -> None:
    story = Story(plan(task("a", checks=()), task("b"), task("c", checks=("x", CHECK))))
    story.done("a", b"src/a")
    story.fails("b", Outcome.RUN_FAILED)
    story.fails("c", Outcome.CHECK_FAILED, "", b"src/c")
    lines = report(story).splitlines()
    assert next(line for line in lines if line.startswith("  a  ")).endswith("1 attempt, no checks")
    assert next(line for line in lines if line.startswith("  b  ")).endswith("not checked")
    assert next(line for line in lines if line.startswith("  c  ")).endswith("1 of 2 checks passed")


def test_a_log_that_is_not_here_is_said_to_be_missing() -> None:
    story = morning()
    shown = report_text(story.state, story.plan, logs=lambda *_: None, live=False)
    assert "(not here any more (pruned, or kept in another clone))" in shown


def test_the_blocked_words_of_a_task_are_shown_whole() -> None:
    story = Story(plan(task("a")))
    story.fails("a", Outcome.BLOCKED, f"which one?\n  b: committed\n{ESC}")
    shown = report(story)
    assert (
        "    reason:\n      | which one?\n      |   b: committed\n      | \\x1b[31mred\n" in shown
    )
    assert "    try again:    git batch retry a -m 'ANSWER'" in shown


def test_a_review_shows_its_verdicts() -> None:
    story = Story(plan(task("a", review="human")))
    story.enroll("a")
    story.ran(b"src/a")
    story.checked()
    story.review(b"src/a")
    story.close_as_decided()
    assert next_commands(story.state, story.plan) == [
        "git batch show a --diff",
        "git batch review a --accept",
        "git batch review a --rework -m 'WHY'",
        "git batch review a --reject -m 'WHY'",
        "git batch resume",
    ]


def test_a_used_up_budget_is_renewed_for_what_is_left() -> None:
    story = Story(plan(task("a"), task("b"), task("c"), budget=Budget(max_tasks=1)))
    story.done("a", b"src/a")
    story.close(BatchStatus.BUDGET_STOPPED, StopReason.BUDGET, "used up", "git batch resume")
    assert next_commands(story.state, story.plan) == ["git batch resume --max-tasks +2"]


@pytest.mark.parametrize(
    ("status", "stop", "expected"),
    [
        (
            BatchStatus.COMPLETED,
            StopReason.COMPLETED,
            ["git log --oneline bbbbbbbbbb..batch/demo"],
        ),
        (BatchStatus.FAILED, StopReason.LINEAGE_BROKEN, ["git log x", "git batch verify"]),
        (BatchStatus.NEEDS_HUMAN, StopReason.FOREIGN_COMMITS, ["git log x", "git batch resume"]),
    ],
)
def test_what_comes_next(status: BatchStatus, stop: StopReason, expected: list[str]) -> None:
    story = Story(plan(task("a")))
    story.done("a", b"src/a")
    story.close(status, stop, "so", "git log x")
    assert next_commands(story.state, story.plan) == expected


def test_a_live_or_ended_batch_offers_no_decision() -> None:
    story = Story(plan(task("a"), task("b")))
    story.fails("a", Outcome.RUN_FAILED)
    assert next_commands(story.state, story.plan, live=True) == [
        "git batch status --watch",
        "git batch show a --output",
    ]
    story.decide(ev.Decision.ABANDON)
    assert next_commands(story.state, story.plan) == ["git batch show a --output"]


def test_a_ref_from_a_record_is_quoted_for_the_shell() -> None:
    story = Story(plan(task("a")))
    story.enroll("a")
    story.failed(Outcome.RUN_FAILED)
    assert story.state.in_flight is not None
    assert story.state.in_flight.failure is not None
    failure = story.state.in_flight.failure
    story.fold(ev.Parked(story.tick(), TaskId("a"), 1, failure, "", "r;rm -rf ~\n", (), 0))
    assert "git show --first-parent 'r;rm -rf ~\\n'" in report(story)


def test_json_has_the_history_and_the_next_commands() -> None:
    story = morning()
    told = report_json(story.state, story.plan, live=False, around=Around(None, ()))
    assert json.loads(json_text(told)) == told
    c = next(t for t in told["tasks"] if t["id"] == "c")
    assert [h["outcome"] for h in c["history"]] == ["check_failed", "committed"]
    first = c["history"][0]
    expected = {"command": CHECK, "outcome": "failed", "status": 1, "seconds": 2.5}
    assert first["checks"] == [{**expected, "reused": False}]
    assert first["changed_paths"] == ["src/a"]
    assert first["ref"] == f"{ATTEMPTS}/c/1"
    assert first["log"]["show"] == "git batch show c --output --attempt 1"
    needed = ["n", "outcome", "started_at", "ended_at", "exit_status", "checks", "changed_paths"]
    assert set(first) >= {*needed, "ref", "log"}
    assert told["next_commands"][-1] == "git batch resume"


def test_paths_stay_whole_in_json() -> None:
    story = hostile()
    told = report_json(story.state, story.plan, live=False, around=Around(None, ()))
    assert told["tasks"][0]["history"][0]["changed_paths"] == [
        '"caf\\351.txt"',
        '"\\342\\200\\256\\n.txt"',
        "p" * 300,
    ]


def test_hostile_words_act_nowhere() -> None:
    story = hostile()
    text = report(story)
    markdown = report_markdown(story.state, story.plan, logs=logs, live=False)
    html = report_html(story.state, story.plan, logs=logs, live=False)
    for shown in (text, markdown, html):
        assert not {"\x1b", "\u202e", "\x9b", "\r", "\x07"} & set(shown)
        shown.encode("utf-8")
    assert "\n## x" not in text
    assert "\n## x" not in markdown
    assert "<script" not in html


def test_what_may_be_copied_is_never_cut() -> None:
    shown = report(morning(), width=20)
    assert "go on from its work: git batch retry park-check --from-attempt 1\n" in shown
    assert f"git show --first-parent {ATTEMPTS}/park-check/1" in shown


def test_markdown_fences_are_longer_than_what_they_hold() -> None:
    assert code("a ``b` c") == "```a ``b` c```"
    assert code("`a`") == "`` `a` ``"
    assert code("") == ""
    assert fenced(["````", "x\ny"]) == ["`````text", "````", "x", "y", "`````"]
    assert fenced([]) == ["```text", "```"]


class Balance(HTMLParser):
    """Sees that each element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("make", [morning, hostile])
def test_the_page_is_whole_and_loads_nothing(make: Callable[[], Story]) -> None:
    story = make()
    page = report_html(story.state, story.plan, logs=logs, live=False)
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert not parser.seen & {"script", "img", "link", "iframe", "a", "form"}
    assert 'lang="en"' in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_the_tail_is_that_of_the_failed_command() -> None:
    log = b"$ make\nnoise\n$ false\n[exit 1]\n"
    assert tail_lines(log, "false", 10) == ["[exit 1]"]
    assert tail_lines(log, "make", 2) == ["$ false", "[exit 1]"]
    assert tail_lines(log, "other", 1) == ["[exit 1]"]
    assert tail_lines(b"$ a\nb\n" + b"x" * 100_000, "a", 3) == ["x" * 500]
    assert tail_lines(b"", "a", 3) == []
