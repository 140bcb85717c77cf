"""One task from close by, and the line that a run says about an event while it goes on."""

from __future__ import annotations

from typing import Any, NamedTuple

from git_batch.core import events as ev
from git_batch.core.attempt import Attempt
from git_batch.core.duration import format_duration
from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState, InFlight
from git_batch.core.naming import path_text
from git_batch.core.standing import BatchStatus, Outcome
from git_batch.views.commands import kept_work, output_of, task_commands
from git_batch.views.common import (
    GONE,
    VERSION,
    brief,
    counted,
    field,
    moment,
    names,
    short,
    usage_text,
    words,
)
from git_batch.views.escape import one_line, output_text, printable, shell_word
from git_batch.views.outline import Logs, check_end, checks_text, links_text, seconds
from git_batch.views.report import history_json
from git_batch.views.standing import Board, Standing
from git_batch.views.status import task_json

_COLUMN = 14


class Look(NamedTuple):
    """What a person asked to see of a task.

    Attributes:
        attempt: only this one.
        output: the kept output as well, of that attempt or the newest.
        diff: a diff as well, as git wrote it.
    """

    logs: Logs
    attempt: int | None = None
    output: bool = False
    diff: bytes | None = None

    def attempts(self, standing: Standing) -> list[Attempt]:
        """Give the attempts that were asked for, oldest first.

        Raises:
            KeyError: there is none of that number.
        """
        found = [a for a in standing.history if self.attempt in (None, a.n)]
        if self.attempt is not None and not found:
            raise KeyError(self.attempt)
        return found

    def kept_output(self, standing: Standing, attempt: Attempt) -> bytes | None:
        """Give what an attempt printed; None if nothing was kept, or it is not here."""
        return None if attempt.log is None else self.logs(standing.task.id, attempt.n)


def show_text(board: Board, task: TaskId, look: Look) -> str:
    """Show a task: how it stands, its attempts, and what a person can do.

    Raises:
        KeyError: the plan has no such task, or the task no such attempt.
    """
    standing = board.of(task)
    attempts = look.attempts(standing)
    lines = [f"{task}: {one_line(standing.task.title)}", *_head(board.state, standing)]
    for one in attempts:
        lines += ["", *_attempt(board, standing, one)]
    if look.output:
        no_output = ["output: none, as no attempt has ended"]
        lines += ["", *(_output(standing, attempts[-1], look) if attempts else no_output)]
    if look.diff is not None:
        lines += ["", output_text(look.diff).rstrip("\n") or "diff: no change is kept"]
    if standing.waits or not (look.output or look.diff is not None):
        read = board.addressed(f"git batch show {task}")  # as every form of it does
        found = [*kept_work(board, standing)[1:], *task_commands(board, standing)]
        commands = dict.fromkeys(command for _, command in found if command != read)
        lines += ["", "next:"] if commands else []
        lines += [f"  {one_line(command)}" for command in commands]
    return printable("\n".join(lines)) + "\n"


def show_json(board: Board, task: TaskId, look: Look) -> dict[str, Any]:
    """Give a task as the report does, with its own next commands; errors as of `show_text`.

    What is asked for is a key of its own: `output`, null where none is kept, and `diff`.
    """
    standing = board.of(task)
    attempts = look.attempts(standing)
    asked: dict[str, Any] = {}
    if look.output:
        log = look.kept_output(standing, attempts[-1]) if attempts else None
        asked["output"] = None if log is None else log.decode("utf-8", "replace")
    if look.diff is not None:
        asked["diff"] = look.diff.decode("utf-8", "replace")
    return {
        "version": VERSION,
        "batch_id": board.state.batch_id,
        "task": {**task_json(standing), "history": history_json(board, standing, attempts)},
        **asked,
        "next_commands": [command for _, command in task_commands(board, standing)],
    }


def _head(state: BatchState, standing: Standing) -> list[str]:
    task, outcome = standing.task, standing.outcome
    said = words(standing.state) if outcome is None else words(outcome)
    lines = field("batch", one_line(state.batch_id), 0, _COLUMN)
    lines += field("stands", said, 0, _COLUMN)
    if standing.reason:
        lines += field("reason", standing.reason, 0, _COLUMN)
    if standing.commit is not None:
        lines += field("commit", one_line(standing.commit), 0, _COLUMN)
    if standing.replays is not None:
        lines += field("replays", one_line(standing.replays), 0, _COLUMN)
    if task.blocked_by:
        lines += field("blocked by", names(task.blocked_by), 0, _COLUMN)
    lines += field("scope", "  ".join(map(one_line, task.scope)) or "nothing", 0, _COLUMN)
    lines += field("checks", checks_text(task, standing.last), 0, _COLUMN)
    if standing.started_at is not None:
        lines += field("enrolled", moment(standing.started_at), 0, _COLUMN)
    lines += field("attempts", str(standing.attempts), 0, _COLUMN)
    return [*lines, *field("usage", usage_text(standing.usage), 0, _COLUMN)]


def _attempt(board: Board, standing: Standing, attempt: Attempt) -> list[str]:
    ended = "" if attempt.exit_status is None else f", exit {attempt.exit_status}"
    took = format_duration(seconds(attempt))
    said = f"{words(attempt.outcome)}{ended}, {took}, {moment(attempt.started_at)}"
    lines = [f"attempt {attempt.n}: {said}"]
    if attempt.reason:
        lines += field("reason", attempt.reason, 2, _COLUMN)
    if attempt.usage.unread:
        lines += field("usage", f"can't be read: {attempt.usage.unread}", 2, _COLUMN)
    for check in attempt.checks:
        lines += field("check", f"{check.command} ({check_end(check)})", 2, _COLUMN)
    if attempt.changed_total:
        lines.append(f"  changed ({counted(attempt.changed_total, 'file')}):")
        lines += [f"    {path_text(path)}" for path in attempt.changed]
        more = attempt.changed_total - len(attempt.changed)
        lines += [f"    ... {counted(more, 'more file')}"] if more > 0 else []
    if attempt.links:
        lines += field("links", links_text(attempt), 2, _COLUMN)
    if attempt.ref is not None and not board.keeps(attempt):
        lines += field("kept", GONE, 2, _COLUMN)
    elif attempt.ref is not None:
        lines += field("kept", one_line(attempt.ref), 2, _COLUMN)
        lines += field("see it", f"git show --first-parent {shell_word(attempt.ref)}", 2, _COLUMN)
    if attempt.log is not None:
        there = board.has_output(attempt)
        show = output_of(board, standing, attempt.n) if there else GONE
        lines += field("output", f"{counted(attempt.log.size, 'byte')}, {show}", 2, _COLUMN)
    return lines


def _output(standing: Standing, attempt: Attempt, look: Look) -> list[str]:
    head = f"output of attempt {attempt.n}"
    if attempt.log is None:
        return [f"{head}: none was kept"]
    log = look.kept_output(standing, attempt)
    if log is None:
        return [f"{head}: {GONE}"]
    return [f"{head}:", output_text(log).rstrip("\n")]


def progress_line(event: ev.Event, state: BatchState) -> str | None:
    """Say an event in one short line, None if it is not worth one.

    Args:
        state: what the event led to.
    """
    said = _for_run(event, state)
    if said is not None:
        return one_line(said)
    task = getattr(event, "task", None)
    said = None if task is None else _for_task(event, state.in_flight)
    if said is None:
        return None
    a = state.agenda
    ended = (a.done | a.parked | a.review | a.dropped).bit_count()
    return one_line(f"[{ended + (state.in_flight is not None)}/{a.size}] {task}: {said}")


def _for_run(event: ev.Event, state: BatchState) -> str | None:
    match event:
        case ev.StopRequested():
            return f"stop requested by {event.actor.name}, after the task in flight"
        case ev.Closed():
            done = event.status is BatchStatus.COMPLETED
            return f"{'completed' if done else 'stopped'}: {event.reason}"
        case ev.Decided():
            tasks = f" for {names(event.tasks, 3)}" if event.tasks else ""
            return f"{event.decision}{tasks}, decided by {event.actor.name}"
        case ev.Authorized() if state.authorization is not None and event.authorization.seq > 1:
            return f"renewed by {event.authorization.actor.name}"
    return None


def _for_task(event: ev.Event, flight: InFlight | None) -> str | None:
    match event:
        case ev.Enrolled() | ev.AttemptStarted():
            return "started" if event.attempt == 1 else f"attempt {event.attempt} started"
        case ev.Ran():
            took = "" if flight is None else f" ({_took(event, flight)})"
            applied = flight is not None and flight.apply_only
            what = "its work is applied" if applied else "command done"
            return f"{what}, {counted(event.changed_total, 'file')} changed{took}"
        case ev.ChecksPassed():
            return _checks(event) if event.checks else None
        case ev.AttemptFailed() | ev.ChecksFailed():
            failure = event.failure
            if failure.outcome is Outcome.INTERRUPTED:
                return None  # `Interrupted` says it
            return f"{words(failure.outcome)}: {brief(failure.reason)}"
        case ev.Reworked():
            return "its work is kept, trying again" if event.ref else "trying again"
        case ev.Interrupted():
            return f"interrupted: {event.reason}"
        case ev.ReviewRequested():
            said = f" ({event.summary.splitlines()[0]})" if event.summary else ""
            return f"waits for a review{said}, git batch show {event.task} --diff"
        case ev.Reviewed():
            return f"review says {event.verdict}"
        case ev.Committed():
            return f"committed {short(event.commit)}"
        case ev.BecameUnchanged():
            return "nothing to change"
        case ev.Parked():
            return f"needs a human ({words(event.failure.outcome)})"
    return None


def _took(event: ev.Ran, flight: InFlight) -> str:
    return format_duration((event.at - flight.attempt_at).total_seconds())


def _checks(event: ev.ChecksPassed) -> str:
    noun = "check" if len(event.checks) == 1 else "checks"
    if all(check.reused for check in event.checks):
        return f"{noun} passed on the same tree before, not run again"
    took = format_duration(sum(check.seconds for check in event.checks))
    return f"{noun} passed ({took})"
