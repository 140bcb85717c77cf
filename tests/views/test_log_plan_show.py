from __future__ import annotations

import json
from datetime import timedelta

import pytest

from git_batch.core import events as ev
from git_batch.core.ids import TaskId
from git_batch.core.model import Authorization, Budget, Plan
from git_batch.core.outlook import Outlook
from git_batch.core.planfile import parse_plan
from git_batch.core.standing import BatchStatus, OnEmpty, Outcome, StopReason
from git_batch.views.log import log_json, log_lines
from git_batch.views.plan import confirmation_text, plan_json, plan_text, run_order
from git_batch.views.show import Look, progress_line, show_json, show_text
from git_batch.views.standing import Board
from tests.views.states import (
    ANN,
    BASE,
    BIDI,
    CHECK,
    DIGEST,
    ESC,
    START,
    Story,
    logs,
    morning,
    plan,
    task,
)


def test_the_log_has_a_line_for_each_transition() -> None:
    story = morning()
    story.decide(ev.Decision.RETRY, "slow", why=f"more time{ESC}\nx")
    lines = log_lines(story.entries).splitlines()
    assert len(lines) == len(story.entries)
    assert lines[0].endswith("created demo-abc123  [host/1]")
    assert lines[1].endswith("authorized by Ann (1)  [Ann <ann@example.org>]")
    assert lines[-1].startswith("2030-01-31 20:30:00+00:00  31  ")
    assert lines[-1].endswith(
        "slow: retry decided by Ann: more time\\x1b[31mred\\nx  [Ann <ann@example.org>]"
    )
    assert "check_failed): check 'pytest -q' exited with 1  [host/1]" in "\n".join(lines)


def test_the_log_of_one_task() -> None:
    story = morning()
    story.decide(ev.Decision.RETRY, "slow")
    told = log_json(story.entries, task=TaskId("slow"))
    assert [e["event"] for e in told["events"]] == ["enrolled", "ran", "parked", "decided"]
    assert [e["outcome"] for e in told["events"]] == [None, "timed_out", "timed_out", None]
    assert told["events"][-1]["who"] == "Ann <ann@example.org>"
    assert len(log_lines(story.entries, task=TaskId("slow")).splitlines()) == 4


def rich() -> Plan:
    return plan(
        task(
            "ask",
            "first",
            run=("claude", "-p", "--model", "{model}", "a b", "{prompt_file}"),
            agent="claude",
            model="opus",
            stdin="prompt",
            prompt="".join(f"line {n} of {{pkg}}\n" for n in range(20)),
            variables=(("pkg", "net"),),
            env=(("MODE", "strict"),),
            protect=("tests/**",),
            review="git diff --check",
            checks=(CHECK, ("python", "-c", "print('x')")),
            message="Long\ntext of {pkg}, {attempt}",
            on_empty=OnEmpty.ACCEPT,
            idle_timeout=300.0,
        ),
        task("first", checks=(), review="human"),
        notify="notify-send done",
        baseline=True,
        budget=Budget(max_tasks=20, deadline=28800.0, max_wait=60.0, max_usd=5.0, max_tokens=9),
    )


def squeezed(text: str) -> str:
    """Forget how wide the column of labels is."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def test_the_order_is_that_of_the_run() -> None:
    assert run_order(rich()) == (1, 0)
    assert plan_json(rich(), DIGEST)["order"] == ["first", "ask"]


def test_a_plan_shows_everything_that_would_run() -> None:
    shown = plan_text(rich(), DIGEST, skipped_files=[b"caf\xe9"])
    for expected in (
        f"digest:       {DIGEST}",
        "baseline:     all checks run on the base first",
        "notify (sh):  notify-send done",
        "deadline:     8h from the confirmation",
        'untracked, in no commit (1):\n  "caf\\351"',
        "2 tasks, in this order:\n1. first: Do first",
        "   run (sh):    make first",
        "   check:       none",
        "   review:      by a human",
        "2. ask: Do ask\n   after:       first\n",
        "   run:         claude -p --model opus 'a b' '{prompt_file}'",
        "   agent:       claude (opus)",
        "   prompt:      289 bytes, on standard input\n     | line 0 of net\n",
        "     | line 5 of net\n     ... 14 more lines\n",
        "   check (sh):  pytest -q\n   check:       python -c 'print('\"'\"'x'\"'\"')'",
        "   protect:     tests/**",
        "   review (sh): git diff --check",
        "   env:         MODE=strict",
        "   value:       pkg=net",
        "   message:\n     | Long\n     | text of net, {attempt}\n",
        "   limits:      1h a command, 2 attempts, 5m without output, may change nothing",
    ):
        assert squeezed(expected) in squeezed(shown), expected
    assert "line 19 of net" in plan_text(rich(), DIGEST, whole_prompts=True)


def test_limits_that_all_share_are_said_once() -> None:
    shown = plan_text(plan(task("a"), task("b")), DIGEST)
    assert shown.count("1h a command") == 1
    assert "limits:     1h a command, 2 attempts, for each task" in shown


@pytest.mark.parametrize("key", ["run", "check", "review"])
@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("echo {x} > f{x}", '"$BATCH_VAR_X"'),
        ("run {id}", '"$BATCH_TASK"'),
        ("claude -p {prompt}", '"$(cat "$BATCH_PROMPT")"'),
        ("echo ${x} {{x}} {a,b} $0", None),
        ("awk '{print $1} {y}' {} +", None),
        (["echo", "{x}"], None),
    ],
)
def test_what_went_wrong_names_in_shell_strings_stayed_and_nothing_said_so(
    key: str, text: str | list[str], instead: str | None
) -> None:
    value = [text] if key == "check" else text  # a list of checks
    keys = {"run": "true", "check": "true", "review": "true"} | {key: value}
    head = 'version = 1\nslug = "s"\n[[task]]\nid = "t-{x}"\ntitle = "T"\nscope = ["**"]\n'
    toml = head + 'matrix = { x = ["1", "2", "3"] }\n'
    toml += "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items())
    read = parse_plan(toml.encode(), name="p", read_intent=lambda _: b"")
    shown = plan_text(read, "sha256:0")
    warned = [line for line in shown.splitlines() if line.startswith("warning: ")]
    told = plan_json(read, "sha256:0")["warnings"]
    if instead is None:
        assert warned == told == []
        return
    assert len(warned) == 1
    assert f"is not replaced in a shell string ('{key}' of 't-1' and 2 more tasks)" in warned[0]
    assert f"; use {instead}, or a list of arguments" in warned[0]
    assert told == [warned[0].removeprefix("warning: ")]
    granted = Authorization(1, ANN, START, "sha256:0", "batch/s", BASE, "n", Budget())
    asked = confirmation_text(read, granted)
    assert warned[0] in asked.splitlines()


def test_no_text_can_pass_for_another_task() -> None:
    fake = f"true\n2. good: Fine\n   run (sh):    make{ESC}{BIDI}"
    evil = plan(task("a", run=fake, title=fake, env=(("X", fake),), prompt=fake, message=fake))
    shown = plan_text(evil, DIGEST)
    assert [line for line in shown.splitlines() if line.startswith("2. ")] == []
    assert [line for line in shown.splitlines() if line.startswith("   run (sh):")] == [
        "   run (sh):"
    ]
    assert not {"\x1b", "\u202e"} & set(shown)


def test_the_confirmation_names_its_bounds() -> None:
    proposed = Authorization(
        seq=2,
        actor=ANN,
        confirmed_at=START,
        plan_digest=DIGEST,
        branch=f"batch/{ESC}",
        base=BASE,
        nonce="n",
        budget=Budget(max_tasks=3),
        fail_fast=True,
        deadline_at=START + timedelta(hours=8),
        expires_at=START + timedelta(days=1),
        untracked=(b"notes.txt",),
    )
    warnings = ["the configuration has changed\x1b"]
    shown = confirmation_text(rich(), proposed, Outlook((0,), done=(1,)), notes=warnings)
    for expected in (
        f"branch:     batch/\\x1b[31mred, from {BASE}",
        f"digest: {DIGEST}",
        "confirmed: by Ann <ann@example.org> (no. 2)",
        "on failure: the run ends",
        "budget:     3 enrollments",
        "deadline:   2030-02-01 04:00:00+00:00",
        "expires:    2030-02-01 20:00:00+00:00",
        "untracked, in no commit (1):\n  notes.txt",
        "note: the configuration has changed\\x1b",
        "1 task will run, in this order:\n1. ask: Do ask\n",
        "done, will not run (1): first",
    ):
        assert squeezed(expected) in squeezed(shown), expected


def test_ten_thousand_tasks_are_ordered_in_time() -> None:
    tasks = [task(f"t{n}", *([f"t{n - 1}"] if n % 3 else [])) for n in range(10_000)]
    assert run_order(plan(*tasks)) == tuple(range(10_000))


def board(story: Story) -> Board:
    return Board(story.state, story.plan, live=False)


def test_a_task_from_close_by() -> None:
    story = morning()
    shown = show_text(board(story), TaskId("c"), Look(logs))
    assert shown.startswith("c: Do c\n")
    assert "attempt 1: check failed, exit 0, 3m, 2030-01-31 20:10:00+00:00\n" in shown
    assert "  changed (1 file):\n    src/a\n" in shown
    assert "attempt 2: committed, exit 0, 4m" in shown
    assert f"commit:       {story.state.tasks[TaskId('c')].commit}\n" in shown
    one = show_text(board(story), TaskId("c"), Look(logs, attempt=2))
    assert "attempt 1:" not in one
    with pytest.raises(KeyError):
        show_text(board(story), TaskId("c"), Look(logs, attempt=3))
    with pytest.raises(KeyError):
        show_text(board(story), TaskId("nobody"), Look(logs))


def test_output_and_diff_are_shown_without_acting() -> None:
    story = morning()
    name = TaskId("park-check")
    shown = show_text(board(story), name, Look(logs, output=True))
    assert "output of attempt 1:\n$ make park-check\nline 0\n" in shown
    assert "\\x1b]0;owned\\x07" in shown
    diff = b"+\x1b[2Jcaf\xe9\n"
    shown = show_text(board(story), name, Look(logs, diff=diff))
    assert shown.partition("\nnext:\n")[0].endswith("+\\x1b[2Jcaf\\xe9\n")
    gone = show_text(board(story), name, Look(lambda *_: None, output=True))
    assert gone.partition("\nnext:\n")[0].endswith(
        "output of attempt 1: not here any more (pruned, or kept in another clone)\n"
    )


def test_a_task_as_json_has_its_history() -> None:
    story = morning()
    told = show_json(board(story), TaskId("slow"), Look(logs))
    assert told["task"]["history"][0]["outcome"] == "timed_out"
    assert told["next_commands"][0] == "git batch show slow --output"


def progress(story: Story) -> list[str]:
    state, lines = None, []
    for oid, entry in story.entries:
        state = story.machine.evolve(state, entry.event, oid)
        line = progress_line(entry.event, state)
        if line is not None:
            lines.append(line)
    return lines


def test_progress_counts_the_tasks() -> None:
    lines = progress(morning())
    assert lines[:4] == [
        "[1/9] a: started",
        "[1/9] a: command done, 2 files changed (1m)",
        "[1/9] a: check passed (1.2s)",
        f"[1/9] a: committed {morning().state.tasks[TaskId('a')].commit}"[: len(lines[3])],
    ]
    assert "[3/9] c: its work is kept, trying again" in lines
    assert "[3/9] c: attempt 2 started" in lines
    assert "[4/9] park-check: needs a human (check failed)" in lines
    assert lines[-1] == "stopped: the deadline 2030-02-01T04:00:00+00:00 has passed"


def test_progress_claims_no_check_that_there_was_not() -> None:
    story = Story(plan(task("b", checks=())))
    story.done("b", b"src/b")
    assert not [line for line in progress(story) if "passed" in line]


def test_progress_of_an_interruption_a_review_and_decisions() -> None:
    story = Story(plan(task("a", review="human"), task("b")))
    story.enroll("a")
    story.fold(ev.StopRequested(story.tick(), ANN))
    story.failed(Outcome.INTERRUPTED)
    story.interrupt()
    story.fold(ev.AttemptStarted(story.tick(), TaskId("a"), 2, story.state.head))
    story.ran(b"src/a")
    story.checked()
    story.review(b"src/a")
    story.fails("b", Outcome.RUN_FAILED, f"x{ESC}\ny")
    story.decide(ev.Decision.SKIP, "b")
    story.close(BatchStatus.NEEDS_HUMAN, StopReason.REVIEW_PENDING, "'a' waits for a review")
    lines = progress(story)
    for expected in (
        "stop requested by Ann, after the task in flight",
        "[1/2] a: interrupted: Ctrl-C",
        "[1/2] a: waits for a review, git batch show a --diff",
        "[2/2] b: run failed: x\\x1b[31mred ...",
        "skip for 'b', decided by Ann",
        "stopped: 'a' waits for a review",
    ):
        assert expected in lines, expected
