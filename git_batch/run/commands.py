"""Running a task's command and its checks, and what their ends mean.

The meaning of an exit status is product.md's: 0 done, 125 a person must decide, 75 not now. Every
other end has an outcome of its own, so that a time-out is never mistaken for a failing check.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from git_batch.core.attempt import CheckResult, Failure
from git_batch.core.duration import format_duration
from git_batch.core.model import Command, InFlight, Task
from git_batch.core.standing import Outcome
from git_batch.core.template import render_command
from git_batch.run.attemptlog import Piece
from git_batch.run.context import RunContext
from git_batch.run.output import excerpt
from git_batch.run.process import Ended, How, Limits, run
from git_batch.run.saying import heard, last_line

BLOCKED_STATUS, NOT_NOW_STATUS = 125, 75
FEEDBACK = 8192
"""Bytes of output that are told to the next attempt."""

_HOWS = {
    How.KILLED: Outcome.KILLED,
    How.TIMED_OUT: Outcome.TIMED_OUT,
    How.STALLED: Outcome.STALLED,
    How.NOT_FOUND: Outcome.RUN_FAILED,
    How.INTERRUPTED: Outcome.INTERRUPTED,
}


def shown(task: Task, command: Command) -> str:
    """Write a command as a person would type it, with the values that are known beforehand."""
    if isinstance(command, str):
        return command
    return shlex.join(render_command(task, {}, command))


class Commands:
    """Starts the commands of the attempt in flight."""

    def __init__(self, context: RunContext) -> None:
        self._c = context

    def task(self, task: Task, flight: InFlight) -> tuple[Ended, Piece]:
        """Run the task's command to its end."""
        files = self._c.files
        stdin = files.prompt if task.stdin == "prompt" and files.prompt.exists() else None
        return self.execute(
            shown(task, task.run),
            files.command(task, flight),
            files.environment(task, flight),
            limits(task),
            stdin=stdin,
        )

    def check(self, task: Task, flight: InFlight, command: Command) -> tuple[Ended, Piece]:
        """Run one check to its end."""
        files = self._c.files
        return self.execute(
            shown(task, command),
            files.check(task, flight, command),
            files.environment(task, flight),
            limits(task),
        )

    def execute(
        self,
        title: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        limits: Limits,
        *,
        stdin: Path | None = None,
    ) -> tuple[Ended, Piece]:
        """Run any command of the attempt; its output becomes a piece of the attempt's log."""
        c = self._c
        c.group.inside()
        piece = c.log.add(title, env)
        ended = run(
            argv,
            cwd=c.top,
            env=env,
            stdin=stdin,
            log=piece.path,
            limits=limits,
            interrupt=c.tools.interrupt,
            lock_fd=c.lock.fd,
            marker=c.runner,
            on_started=c.journal.write,
            on_slow=self._publish,
        )
        told = [ending(ended)]
        for left in ended.leftovers:
            c.tools.progress.note(f"ended what '{title}' left running: {left.pid} {left.command}")
            told.append(f"left running, ended: {left.pid} {left.command}")
        if ended.log_error:
            c.tools.progress.note(f"not all that '{title}' printed is kept: {ended.log_error}")
            told.append(f"not all that it printed is kept: {ended.log_error}")
        piece.ending = "; ".join(filter(None, told))
        return ended, piece

    def _publish(self) -> None:
        """Show others what was deferred, once a command turns out to be slow."""
        c = self._c
        if c.state.in_flight and c.state.in_flight.log:  # a hook runs: the record names that log
            c.logs.publish(c.now())
        c.journal.publish()


def limits(task: Task) -> Limits:
    """Give the limits of each of a task's commands."""
    return Limits(timeout=task.timeout, idle_timeout=task.idle_timeout)


def ending(ended: Ended) -> str:
    """Say how a command ended; empty for a plain success."""
    match ended.how:
        case How.EXITED:
            return f"exit {ended.status}" if ended.status else ""
        case How.KILLED:
            return f"killed by signal {ended.signal}"
        case How.TIMED_OUT:
            return f"timed out after {format_duration(ended.limit or 0)}"
        case How.STALLED:
            return f"no output for {format_duration(ended.limit or 0)}"
        case How.INTERRUPTED:
            return "interrupted"
    return f"could not be started: {ended.reason}"


def failure_of(context: RunContext, task: Task, ended: Ended, piece: Piece) -> Failure | None:
    """Say what the end of a task's command means; None if it is done."""
    blocked = context.files.blocked_by()
    if ended.how is not How.EXITED:
        outcome = _HOWS[ended.how]
        return Failure(outcome, _reason("the command", ended))
    if blocked or ended.status == BLOCKED_STATUS:
        said = blocked or last_line(piece) or "the command says that it can't be done (exit 125)"
        return Failure(Outcome.BLOCKED, said)
    if ended.status == NOT_NOW_STATUS or (ended.status and _says_not_now(task, piece)):
        return Failure(Outcome.STOPPED, "the command says 'not now'")
    if ended.status:
        last = last_line(piece)
        told = f": {last}" if last else ""
        return Failure(Outcome.RUN_FAILED, f"the command exited with {ended.status}{told}")
    return None


def _says_not_now(task: Task, piece: Piece) -> bool:
    if not task.not_now:
        return False
    text = excerpt(piece.path, 64 * 1024).decode("utf-8", "replace")
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in task.not_now)


def check_failure(ended: Ended, piece: Piece) -> Failure | None:
    """Say what the end of a check means; None if it passed."""
    if ended.how is How.EXITED and ended.status == 0:
        return None
    if ended.how is How.INTERRUPTED:
        return Failure(Outcome.INTERRUPTED, "interrupted")
    output = heard(piece, FEEDBACK)
    reason = _reason(f"check '{piece.title}'", ended)
    feedback = f"{reason}\n\n{output}".strip()
    return Failure(Outcome.CHECK_FAILED, reason, feedback)


def result_of(ended: Ended, piece: Piece) -> CheckResult:
    """Write a check's end for the record."""
    passed = ended.how is How.EXITED and ended.status == 0
    outcome = "passed" if passed else "failed" if ended.how is How.EXITED else ended.how.value
    return CheckResult(piece.title, outcome, ended.status, round(ended.seconds, 3))


def _reason(what: str, ended: Ended) -> str:
    if ended.how is How.EXITED:
        return f"{what} exited with {ended.status}"
    if ended.how is How.NOT_FOUND:
        return f"{what} could not be started: {ended.reason}"
    return f"{what} was ended: {ending(ended)}"
