from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from typing import NamedTuple

from git_batch.core import events as ev
from git_batch.core.attempt import Usage
from git_batch.core.ids import Oid
from git_batch.core.standing import BatchStatus, Outcome, StopReason, TaskStatus
from git_batch.views.common import Around, Kept, actions_of
from git_batch.views.escape import json_text
from git_batch.views.listing import Listed, list_json, list_text
from git_batch.views.status import status_json, status_text
from tests.views.states import ANN, BIDI, DIGEST, ESC, Story, morning, plan, task

KEYS = [
    *("version", "batch_id", "slug", "title", "branch", "base", "head", "plan_digest", "state"),
    *("outcome", "reason", "next_action", "live", "authorization", "budget", "counts", "tasks"),
    *("drift", "review"),
]
TASK_KEYS = [
    *("id", "title", "state", "outcome", "reason", "attempts", "commit", "blocked_by"),
    *("started_at", "ended_at", "usage"),
]


class Found(NamedTuple):
    kind: str
    detail: str
    commit: str | None
    way_out: str
    look: str = ""


FOREIGN = Found("foreign commits", f"branch is at {ESC}", "f" * 40, "git batch bless")


def text(story: Story, live: str | None = None, *drift: Found) -> str:
    now = story.now + timedelta(hours=4)
    return status_text(
        story.header, story.entry, live=live, around=Around(story.state.head, drift), now=now
    )


def test_the_keys_are_the_contract() -> None:
    story = morning()
    told = status_json(story.state, story.plan, live=False, around=Around(Oid("1" * 40), [FOREIGN]))
    assert list(told) == KEYS
    assert all(list(t) == TASK_KEYS for t in told["tasks"])
    assert list(told["authorization"]) == ["seq", "actor", "confirmed_at", "expires_at", "signed"]
    assert list(told["budget"]) == [
        "max_tasks", "enrolled", "deadline_at", "qa_failure_limit", "consecutive_qa_failures",
    ]  # fmt: skip
    assert list(told["counts"]) == [status.value for status in TaskStatus]
    assert list(told["drift"][0]) == ["kind", "detail", "commit"]
    assert json.loads(json_text(told)) == told


def test_the_values_of_a_morning() -> None:
    story = morning()
    told = status_json(story.state, story.plan, live=False, around=Around(None, ()))
    assert (told["version"], told["state"], told["outcome"]) == (1, "budget_stopped", "deadline")
    assert (told["head"], told["plan_digest"], told["live"]) == (None, DIGEST, False)
    assert told["next_action"] == "git batch resume"
    assert told["authorization"] == {
        "seq": 1,
        "actor": "Ann <ann@example.org>",
        "confirmed_at": "2030-01-31T20:00:00+00:00",
        "expires_at": None,
        "signed": False,
    }
    assert told["budget"]["enrolled"] == 6
    by_id = {t["id"]: t for t in told["tasks"]}
    assert [t["id"] for t in told["tasks"]] == [t.id for t in story.plan.tasks]
    assert by_id["c"]["attempts"] == 2
    assert by_id["c"]["usage"] == {"usd": 1.25, "input_tokens": 1000, "output_tokens": None}
    assert by_id["a"]["usage"] is None
    assert len(by_id["a"]["commit"]) == 40
    assert by_id["a"]["ended_at"] == "2030-01-31T20:05:00+00:00"
    assert by_id["park-scope"]["outcome"] == "scope_refused"
    assert by_id["behind-that"]["state"] == "skipped_blocked"
    assert by_id["behind-that"]["reason"] == "dependency 'park-check' parked"
    assert by_id["last"]["outcome"] == "not_run_deadline"


def test_a_review_is_named_with_its_time() -> None:
    story = Story(plan(task("a", review="human")))
    story.enroll("a")
    story.ran(b"src/a")
    story.checked()
    story.review(b"src/a")
    told = status_json(story.state, story.plan, live=False, around=Around(None, ()))
    assert told["review"] == {"task": "a", "since": "2030-01-31T20:04:00+00:00"}
    assert told["tasks"][0]["outcome"] == "review_pending"


def test_an_unauthorized_batch_has_no_authorization() -> None:
    story = Story(plan(task("a")))
    created = story.machine.replay((e.event, oid) for oid, e in story.entries[:1])
    assert created is not None
    told = status_json(created, story.plan, live=False, around=Around(None, ()))
    assert told["authorization"] is None
    assert told["budget"]["qa_failure_limit"] == 6


def test_the_text_says_the_morning_in_one_screen() -> None:
    shown = text(morning())
    assert shown.splitlines() == [
        "batch:         demo-abc123  A demo",
        f"branch:        batch/demo at {morning().state.head[:10]}, base bbbbbbbbbb",
        "state:         budget stopped (deadline), 4h ago",
        "reason:        the deadline 2030-02-01T04:00:00+00:00 has passed",
        "tasks:         9 tasks: 3 committed, 3 need a human, 2 skipped, 1 pending",
        "needs a human: 'park-check', 'park-scope', 'slow'",
        "authorized:    by Ann <ann@example.org> at 2030-01-31 20:00:00+00:00 (no. 1), no expiry",
        "deadline:      2030-02-01 04:00:00+00:00 (in 3h 31m)",
        "budget:        6 of 8 enrollments, 2 left; 1 of 6 failed checks in a row",
        "usage:         1.25 USD, 1000 input tokens, output tokens unknown",
        "next:          git batch resume",
    ]


def test_in_flight_live_and_dead() -> None:
    story = Story(plan(task("a")), expires_at=None)
    story.enroll("a")
    shown = text(story, "pid 7 on host, since 20:00")
    assert "state:      running, 4h ago" in shown
    assert "runner:     pid 7 on host, since 20:00" in shown
    assert "in flight:  'a', attempt 1, its command, since 2030-01-31 20:01:00+00:00" in shown
    assert "next:" not in shown
    dead = text(story)
    assert "not finished, and nobody is running it" in dead
    assert "its command was cut short" in dead
    assert dead.endswith("next:       git batch resume\n")


def test_an_expired_authorization_and_a_requested_stop_are_seen() -> None:
    story = Story(plan(task("a")), expires_at=morning().now + timedelta(hours=1))
    story.enroll("a")
    story.fold(ev.StopRequested(story.tick(), ANN))
    shown = text(story)
    assert "expired:    2030-01-31 21:29:00+00:00 (2h 33m ago)" in shown
    assert "stop:       asked for, after the task in flight" in shown


def test_drift_is_said_and_its_way_out_comes_first() -> None:
    shown = text(morning(), None, FOREIGN)
    assert "drift:         foreign commits: branch is at \\x1b[31mred" in shown
    assert shown.endswith("next:          git batch bless\n")


def test_who_needs_a_human_is_cut_at_twenty_and_the_total_is_said() -> None:
    story = Story(plan(*(task(f"t{n:02}") for n in range(25))))
    for n in range(25):
        story.fails(f"t{n:02}", Outcome.RUN_FAILED)
    assert "'t19' and 5 more" in text(story)
    assert "'t20'" not in text(story)
    story.decide(ev.Decision.RETRY, "t00")
    assert "24 tasks, see git batch report" in text(story)


def test_the_text_costs_the_same_for_ten_thousand_tasks() -> None:
    small, big = Story(plan(task("a"))), Story(plan(*(task(f"t{n}") for n in range(10_000))))
    assert len(text(big).splitlines()) == len(text(small).splitlines())


def test_hostile_words_act_on_no_terminal() -> None:
    story = Story(plan(task("a", title=ESC + BIDI), title=f"{ESC}\nnext: rm -rf /{BIDI}"))
    story.fails("a", Outcome.BLOCKED, f"{ESC}\nnext: evil{BIDI}\x9b")
    story.close(BatchStatus.NEEDS_HUMAN, StopReason.NEEDS_HUMAN, f"{ESC}\r\n{BIDI}", f"x{ESC}")
    shown = text(story, f"pid{ESC}", FOREIGN)
    assert not {"\x1b", "\u202e", "\x9b", "\r"} & set(shown)
    assert [line for line in shown.splitlines() if line.startswith("next")] == [
        "next:          git batch bless"
    ]


def test_usage_that_nobody_wrote_is_unknown() -> None:
    story = Story(plan(task("a")))
    story.enroll("a")
    assert "usage:      unknown" in text(story)
    story.ran(b"a", usage=Usage(output_tokens=7))
    assert "USD unknown, input tokens unknown, 7 output tokens" in text(story)


def test_the_list_has_one_line_per_batch() -> None:
    story, other = morning(), Story(plan(task("a"), title=f"{ESC}\nx"))
    batches = [
        Listed(story.header, story.entry, live=False),
        Listed(other.header, other.entry, live=True),
    ]
    assert list_text(batches) == (
        "demo-abc123  budget stopped (deadline); 9 tasks: 3 committed, 3 need a human, "
        "2 skipped, 1 pending; A demo\n"
        "demo-abc123  running; 1 task: 1 pending; \\x1b[31mred\\nx\n"
    )
    told = list_json(batches)
    assert [sum(b["counts"].values()) for b in told["batches"]] == [9, 1]
    assert list_text([]) == ""


def test_status_loads_nothing_heavy() -> None:
    script = (
        "import sys; import git_batch.views.status; "
        "print([m for m in ('pydantic', 'click', 'pygit2', 'json', 'html', 'shlex', 'subprocess')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_what_went_wrong_a_look_at_what_is_not_here_was_the_next_action() -> None:
    baseline = "git show refs/batch/demo-abc/logs:000/baseline/0"
    output, change = "git batch show a --output", "git batch show a --diff"

    def next_of(recorded: str, *refs: str) -> list[str]:
        below = [f"refs/batch/demo-abc/{ref}" for ref in refs]
        around = Around(None, kept=Kept(below, "logs" in refs))
        human, stop = BatchStatus.NEEDS_HUMAN, StopReason.NEEDS_HUMAN
        return actions_of(human, stop, recorded, live=False, around=around)

    assert next_of(baseline, "logs") == [baseline]
    assert next_of(baseline, "attempts/a/1") == ["git batch resume"]
    assert next_of(output, "logs") == [output]
    assert next_of(output, "attempts/a/1") == ["git batch show a"]
    assert next_of(change, "attempts/a/1") == [change]
    assert next_of(change, "logs", "attempts/ab/1") == ["git batch show a"]
    for other in ("git batch retry a -m 'ANSWER'", "git batch resume", "git status"):
        assert next_of(other) == [other]
