"""The morning report as text and as JSON; `outline` knows what it says, this how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from git_batch.core.attempt import Attempt, CheckResult
from git_batch.core.model import BatchState, Plan
from git_batch.core.naming import path_text
from git_batch.views.commands import list_next, next_commands, output_of
from git_batch.views.common import Around, brief, field, rfc3339, rows
from git_batch.views.escape import one_line, printable
from git_batch.views.outline import Item, Logs, Outline, outline
from git_batch.views.standing import Board, Standing
from git_batch.views.status import board_json

__all__ = ["history_json", "next_commands", "report_json", "report_text"]

_COLUMN = 14


def report_text(
    state: BatchState,
    plan: Plan,
    *,
    logs: Logs,
    live: bool,
    around: Around | None = None,
    width: int = 80,
) -> str:
    """Write the report for a terminal: numbers and what needs a person first, then every task.

    Args:
        width: characters in a line; what a person may have to copy is never cut.
    """
    said = outline(Board(state, plan, live=live, around=around), logs)
    lines = [f"{one_line(said.batch)}: {one_line(said.title)}", ""]
    for line in rows((label, one_line(text)) for label, text in said.facts):
        lines += wrapped(line, width)
    lines += _needs(said, width)
    for heading, items in said.groups:
        lines += ["", f"{heading}:"]
        column = min(max(len(item.task) for item in items), 32)
        for item in items:
            lines += _item(item, column)
    return printable("\n".join(lines)) + "\n"


def wrapped(line: str, width: int) -> list[str]:
    """Break a labelled line at spaces, further lines below its value; long words stay whole."""
    at = line.index(":") + 1
    hang = at + len(line[at:]) - len(line[at:].lstrip())
    lines, current = [], line[:hang]
    for word in line[hang:].split(" "):
        if len(current) > hang and len(current) + len(word) >= width:
            lines.append(current.rstrip())
            current = " " * hang
        current += f"{word} "
    return [*lines, current.rstrip()]


def _needs(said: Outline, width: int) -> list[str]:
    lines = []
    if said.needs:
        lines += ["", f"needs a human ({len(said.needs)}):"]
    for item in said.needs:
        lines.append(one_line(f"  {item.task}: {item.word}: {brief(item.reason)}", width))
        column = max(len(label) for label, _ in item.commands) + 2
        for label, command in item.commands:
            lines.append(f"    {label + ':':<{column}}{one_line(command)}")
    if said.following:
        lines += ["", "then:" if said.needs else "next:"]
        lines += [f"    {one_line(command)}" for command in said.following]
    return lines


def _item(item: Item, column: int) -> list[str]:
    # Whoever never ran has nothing to tell but why.
    brief = not item.facts and "\n" not in item.reason
    facts = ", ".join((item.word, *item.facts))
    if brief and item.reason:
        facts = f"{facts}: {item.reason}"
    lines = [f"  {item.task:<{column}}  {one_line(facts)}"]
    if item.reason and not brief:
        lines += field("reason", item.reason, 4, _COLUMN)
    for label, text in item.details:
        lines += field(label, text, 4, _COLUMN)
    if item.tail:
        lines.append(f"    {item.tail_of}:")
        lines += [f"      | {one_line(line)}".rstrip() for line in item.tail]
    return lines


def report_json(
    state: BatchState,
    plan: Plan,
    *,
    live: bool,
    around: Around,
) -> dict[str, Any]:
    """Give the status, each task's attempts besides, and the next commands."""
    board = Board(state, plan, live=live, around=around)
    result = board_json(board)
    for standing, task in zip(board, result["tasks"], strict=True):
        task["history"] = history_json(board, standing, standing.history)
    result["next_commands"] = list_next(board)
    return result


def history_json(
    board: Board, standing: Standing, attempts: Sequence[Attempt]
) -> list[dict[str, Any]]:
    """Give attempts of a task that have ended."""
    return [_attempt_json(board, standing, attempt) for attempt in attempts]


def _attempt_json(board: Board, standing: Standing, attempt: Attempt) -> dict[str, Any]:
    there = board.has_output(attempt)
    show = output_of(board, standing, attempt.n) if there else None
    gone = (attempt.ref is not None and not board.keeps(attempt)) or (
        attempt.log is not None and not there
    )
    log = attempt.log
    return {
        "n": attempt.n,
        "outcome": attempt.outcome.value,
        "started_at": rfc3339(attempt.started_at),
        "ended_at": rfc3339(attempt.ended_at),
        "exit_status": attempt.exit_status,
        "reason": attempt.reason or None,
        "checks": [_check_json(check) for check in attempt.checks],
        "changed_paths": [path_text(path) for path in attempt.changed],
        "changed_total": attempt.changed_total,
        "links": [path_text(path) for path in attempt.links],
        "ref": attempt.ref if board.keeps(attempt) else None,
        "log": log and {"size": log.size, "sha256": log.sha256, "show": show},
        "gone": gone,
    }


def _check_json(check: CheckResult) -> dict[str, Any]:
    return {
        "command": check.command,
        "outcome": check.outcome,
        "status": check.status,
        "seconds": check.seconds,
        "reused": check.reused,
    }
