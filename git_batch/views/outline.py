"""What the report says, before it is text, Markdown or HTML.

The morning report is read once, by somebody who was not there. So first come the numbers, which
add up to the number of tasks, why the run stopped, and each task that needs a person with the
exact commands; then every task, grouped by how it ended. What was not checked is said to be so:
nothing here turns "nobody looked" into "fine".

All text of an outline is raw: plans, output and other people's records wrote it. Each renderer
escapes for its own medium.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from git_batch.core.attempt import Attempt, CheckResult, Usage
from git_batch.core.duration import format_duration
from git_batch.core.ids import TaskId
from git_batch.core.model import Task, holds
from git_batch.core.naming import few_of, path_text
from git_batch.core.standing import Outcome, TaskStatus
from git_batch.views.commands import Labelled, kept_work, list_next, output_of, task_commands
from git_batch.views.common import (
    GONE,
    NOT_RUN,
    batch_text,
    branch_text,
    command_text,
    counted,
    counts_text,
    in_order,
    moment,
    short,
    state_word,
    usage_text,
    words,
)
from git_batch.views.escape import MORE, output_text
from git_batch.views.standing import Board, Standing

Logs = Callable[[TaskId, int], bytes | None]
"""Gives the kept output of a task's attempt, None if it is not here."""

TAIL = 10
"""Lines of output that a report shows of a failure."""

LONGEST = 500
"""Characters that a report shows of a line of output."""

_LISTED = 30
"""Lines of what a task was told about its stray paths."""

_SUCCESS = frozenset({Outcome.COMMITTED, Outcome.UNCHANGED})
_TOLD = frozenset({Outcome.SCOPE_REFUSED, Outcome.PROTECTED_CHANGED, Outcome.CHECK_CHANGED_TREE})
"""Outcomes that a list of paths explains, rather than output."""

_PASSED = "passed"


class Item(NamedTuple):
    """One task of the report.

    Attributes:
        word: how it ended, or where it stands.
        facts: commit, files, time, attempts, checks: short, each for itself.
        details: labelled texts; one may have several lines.
        tail_of: what `tail`, the last lines of output, is the output of; empty if none is shown.
    """

    task: str
    title: str
    word: str
    reason: str
    facts: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    tail_of: str
    tail: tuple[str, ...]
    commands: tuple[Labelled, ...]


class Outline(NamedTuple):
    """The report: facts of the batch, what needs a person, then all tasks in groups."""

    batch: str
    title: str
    facts: tuple[tuple[str, str], ...]
    needs: tuple[Item, ...]
    groups: tuple[tuple[str, tuple[Item, ...]], ...]
    following: tuple[str, ...]


def outline(board: Board, logs: Logs) -> Outline:
    """Put together what the report says."""
    standings = list(board)
    named = {s.place: _item(board, s, logs) for s in standings}
    by_word: dict[str, list[Item]] = {}
    for standing in standings:
        by_word.setdefault(shown_state(standing), []).append(named[standing.place])
    groups = (
        (f"{state_word(word, len(by_word[word]))} ({len(by_word[word])})", tuple(by_word[word]))
        for word in in_order(by_word)
    )
    needs = tuple(named[s.place] for s in standings if s.waits)
    mine = {command for item in needs for _, command in item.commands}
    return Outline(
        batch=board.state.batch_id,
        title=board.state.title,
        facts=tuple(_facts(board, standings)),
        needs=needs,
        groups=tuple(groups),
        following=tuple(c for c in list_next(board) if c not in mine),
    )


def shown_state(standing: Standing) -> str:
    """Give the state under which the report counts a task: a stop divides the pending ones."""
    stopped = standing.state is TaskStatus.PENDING and standing.outcome is not None
    return NOT_RUN if stopped else standing.state.value


def counts_line(standings: list[Standing]) -> str:
    """Say the numbers, with the outcomes of what needs a person or did not run."""
    counts = Counter(shown_state(s) for s in standings)
    more = {}
    for word in (TaskStatus.NEEDS_HUMAN.value, TaskStatus.DROPPED.value, NOT_RUN):
        outcomes = Counter(s.outcome for s in standings if shown_state(s) == word)
        more[word] = ", ".join(
            f"{n} {words(outcome.value.removeprefix('not_run_'))}"
            for outcome, n in outcomes.items()
            if outcome is not None and outcome.value != word
        )
    return counts_text(counts, more=more)


def _facts(board: Board, standings: list[Standing]) -> list[tuple[str, str]]:
    state = board.state
    ended = batch_text(state.status, state.stop, live=board.live)
    history = [attempt for s in standings for attempt in s.history]
    busy = sum(seconds(attempt) for attempt in history)
    whole = format_duration((state.updated_at - state.created_at).total_seconds())
    facts = [
        ("tasks", counts_line(standings)),
        ("state", ended),
        *([("reason", state.reason)] if state.reason else []),
        ("branch", branch_text(state.branch, state.head, state.base, board.around)),
        *(("drift", f"{drift.kind}: {drift.detail}") for drift in board.drift),
        (
            "time",
            f"{moment(state.created_at)} to {moment(state.updated_at)} ({whole}); "
            f"{counted(len(history), 'attempt')} took {format_duration(busy)}",
        ),
        ("usage", _usage(state.usage, history)),
        *(("not read", said) for said in _unread(standings)),
    ]
    if state.authorization is not None:
        a = state.authorization
        expiry = "no expiry" if a.expires_at is None else f"until {moment(a.expires_at)}"
        void = "" if holds(a, state.former) else "; not since it was rebased"
        facts.append(("confirmed", f"by {a.actor} at {moment(a.confirmed_at)}, {expiry}{void}"))
    for line in state.former:
        facts.append(("rebased", f"from {short(line.base)}, where it was at {short(line.head)}"))
    if state.foreign:
        facts.append(("foreign", f"{counted(len(state.foreign), 'blessed commit')} on the branch"))
    return facts


def _usage(usage: Usage, history: list[Attempt]) -> str:
    said = usage_text(usage)
    wrote = sum(attempt.usage.said for attempt in history)
    if not usage.said or wrote == len(history):
        return said
    return f"{said} (unknown for {len(history) - wrote} of {counted(len(history), 'attempt')})"


def _unread(standings: list[Standing]) -> Iterator[str]:
    """Say of which usage nothing is known although it was written: of the newest, and how often."""
    found = [(s.task.id, a) for s in standings for a in s.history if a.usage.unread]
    if found:
        task, newest = max(found, key=lambda each: each[1].ended_at)
        more = f"; of {counted(len(found) - 1, 'other attempt')} likewise" if found[1:] else ""
        where = f"what '{task}' wrote to $BATCH_USAGE in attempt {newest.n}"
        yield f"{where}: {newest.usage.unread}{more}"


def _item(board: Board, standing: Standing, logs: Logs) -> Item:
    said = standing.outcome
    tail_of, tail = _tail(standing, logs)
    commands = task_commands(board, standing) if standing.waits else []
    details = [*_details(standing), *kept_work(board, standing)]
    if board.has_output(standing.last) and (tail_of or standing.waits):
        details.append(("log", output_of(board, standing)))
    return Item(
        task=standing.task.id,
        title=standing.task.title,
        word=state_word(standing.state) if said is None else words(said),
        reason=standing.reason,
        facts=tuple(task_facts(standing)),
        details=tuple(details),
        tail_of=tail_of,
        tail=tuple(tail),
        commands=tuple(commands),
    )


def task_facts(standing: Standing) -> list[str]:
    """Give the short facts of a task; a task that never ran has none."""
    if not standing.attempts:
        return []
    last = standing.last
    facts = [short(standing.commit)] if standing.commit else []
    if last is not None:
        facts += [
            counted(last.changed_total, "file"),
            format_duration(sum(seconds(attempt) for attempt in standing.history)),
        ]
    facts.append(counted(standing.attempts, "attempt"))
    return [*facts, checks_text(standing.task, last)]


def checks_text(task: Task, attempt: Attempt | None) -> str:
    """Say what is known of the checks of an attempt; never more than what was run."""
    done = attempt.checks if attempt is not None else ()
    passed = sum(check.outcome == _PASSED for check in done)
    if not done:
        return "not checked" if task.checks else "no checks"
    if passed == len(done) >= len(task.checks):
        return f"{counted(passed, 'check')} passed"
    return f"{passed} of {max(len(task.checks), len(done))} checks passed"


def failed_check(attempt: Attempt | None) -> CheckResult | None:
    """Give the check that an attempt did not pass, None if there is none."""
    done = attempt.checks if attempt is not None else ()
    return next((check for check in done if check.outcome != _PASSED), None)


def check_end(check: CheckResult) -> str:
    """Say how a check ended and how long it took."""
    ended = check.outcome if check.status is None else f"exit {check.status}"
    if check.outcome == _PASSED:
        ended = _PASSED
    if check.reused:
        return f"{words(ended)}, reused"
    return f"{words(ended)}, {format_duration(check.seconds)}"


def links_text(attempt: Attempt) -> str:
    """Name the symbolic links among what an attempt's command changed."""
    return few_of([path_text(link) for link in attempt.links], _LISTED)


def seconds(attempt: Attempt) -> float:
    """Give how long an attempt took."""
    return (attempt.ended_at - attempt.started_at).total_seconds()


def _details(standing: Standing) -> list[tuple[str, str]]:
    found = []
    if standing.last is not None and standing.last.links:
        found.append(("symbolic links", links_text(standing.last)))
    check = failed_check(standing.last)
    if standing.waits and check is not None:
        found.append(("failed check", f"{check.command} ({check_end(check)})"))
    if standing.waits and standing.outcome in _TOLD and standing.feedback:
        lines = standing.feedback.split("\n")
        cut = [f"{MORE} {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
        found.append(("paths", "\n".join([*lines[:_LISTED], *cut])))
    return found


def _tail(standing: Standing, logs: Logs) -> tuple[str, list[str]]:
    """Give the last output of a failed attempt: of its failed check, else of its command."""
    last = standing.last
    parked = standing.state is TaskStatus.NEEDS_HUMAN
    if last is None or not parked or last.outcome in _SUCCESS or standing.outcome in _TOLD:
        return "", []
    log = logs(standing.task.id, last.n) if last.log is not None else b""
    if log is None:
        return "last output", [f"({GONE})"]
    check = failed_check(last)
    command = command_text(standing.task.run) if check is None else check.command
    lines = tail_lines(log, command, TAIL)
    if not lines:
        return ("last output", ["(no output)"]) if last.log is None else ("", [])
    return "last output", lines


def tail_lines(log: bytes, command: str, most: int) -> list[str]:
    """Give the last lines of what a command printed, from the log of its attempt.

    The log holds one piece per command, headed by `$ COMMAND`. What follows the command's piece
    (a hook's output) belongs to the end as well; a command that printed such a head by itself
    only shortens its own tail.
    """
    head = f"$ {command}\n".encode("utf-8", "replace")
    at = log.rfind(b"\n" + head)
    if at >= 0:
        log = log[at + 1 + len(head) :]
    elif log.startswith(head):
        log = log[len(head) :]
    text = output_text(log[-65536:]).rstrip("\n")
    return [line[:LONGEST] for line in text.split("\n")[-most:]] if text.strip() else []
