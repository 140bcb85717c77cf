"""The commands that help a person with what the record says: a look at a task, and the way on.

They name tasks only; which batch they have to name is for views (`views.addressing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from git_batch.core.admission import reached
from git_batch.core.agenda import counts
from git_batch.core.attempt import Attempt
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, InFlight
from git_batch.core.standing import IN_THE_CHANGE, Outcome, StopReason, TaskStatus

_ELSEWHERE = frozenset({Outcome.HISTORY_CHANGED, Outcome.TAMPERED})
"""Outcomes that are explained neither by the change nor by what was printed."""

_BOUNDS = frozenset({StopReason.BUDGET, StopReason.DEADLINE, StopReason.EXPIRED})


def look_at(
    task: TaskId, outcome: Outcome | None, *, output: bool, replayed: Oid | None = None
) -> str:
    """Give the command that shows why a task stands where it does.

    Args:
        output: something that it printed is kept.
        replayed: the commit that could not be replayed; it is all that is kept, and the record
            holds it wherever it is.
    """
    if replayed is not None:
        return f"git show {replayed}"
    if outcome in IN_THE_CHANGE:
        return f"git batch show {task} --diff"
    if not output or outcome in _ELSEWHERE:
        return f"git batch show {task}"
    return f"git batch show {task} --output"


def not_replayed(replays: Oid | None, last: Attempt | None) -> Oid | None:
    """Give the commit of a former base that a task's newest attempt has left nothing of."""
    return replays if last is not None and last.ref is None else None


def kept_part(command: str) -> str | None:
    """Say what such a look needs of what is never pushed: "logs", or `attempts/TASK/`."""
    words = command.split(" ")
    if command.startswith("git show refs/batch/") or words[4:] == ["--output"]:
        return "logs"
    return f"attempts/{words[3]}/" if words[4:] == ["--diff"] else None


def without_kept(command: str) -> str:
    """Give what helps where that is not here: what the record says, or another try."""
    words = command.split(" ")
    return " ".join(words[:4]) if words[1:3] == ["batch", "show"] else "git batch resume"


def next_action(task: TaskId, outcome: Outcome, *, output: bool) -> str:
    """Say which command helps a person with a parked task; `output` as of `look_at`."""
    if outcome is Outcome.BLOCKED:
        return f"git batch retry {task} -m 'ANSWER'"
    return look_at(task, outcome, output=output)


def without(flight: InFlight | None, stop: StopReason | None) -> str | None:
    """Give the command that leaves out the task which a batch waits for; None if it is no such."""
    if flight is None or stop is not StopReason.NOT_NOW:
        return None
    return f"git batch skip {flight.task}"


def way_on(state: BatchState, stop: StopReason | None) -> str:
    """Say how a batch goes on after a stop: each bound that is used up has to be raised.

    What was given as a time from the confirmation is so again from the next one.
    """
    a, agenda = state.authorization, state.agenda
    paid_for = agenda.accepted or agenda.replays or state.in_flight is not None
    if a is None or not (stop in _BOUNDS or (agenda.ready and not paid_for)):
        return "git batch resume"  # what comes next costs nothing
    again = {StopReason.EXPIRED}
    if not isinstance(a.budget.deadline, datetime):
        again.add(StopReason.DEADLINE)
    found = reached(a, state.updated_at, state.enrolled, state.usage)
    options = [bound.option for bound in found if bound.reason not in again]
    return " ".join(["git batch resume", *raising(state, options)])


def raising(state: BatchState, options: Sequence[str]) -> list[str]:
    """Give the options of `resume` that raise bounds, by as many tasks as are to come."""
    more = f"+{max(counts(state)[TaskStatus.PENDING], 1)}"
    return [option.format(more=more) for option in options]
