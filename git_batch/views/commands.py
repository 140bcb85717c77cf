"""The exact commands that help a person with a batch and its tasks, in the order of their use.

First look, then decide, then go on. Nothing here destroys work, and every command can be pasted
into a shell as it is: ids are plain words by the plan's rules, all else is quoted. A label says
what a command is for. Only commands that exist are named: what can't be done yet is no help.
"""

from __future__ import annotations

from git_batch.core.actions import look_at, not_replayed, way_on, without
from git_batch.core.model import BatchState, Plan
from git_batch.core.standing import (
    RESUMABLE,
    BatchStatus,
    Outcome,
    StopReason,
    TaskStatus,
)
from git_batch.views.common import GONE, actions_of
from git_batch.views.escape import one_line, shell_word
from git_batch.views.standing import Board, Standing

Labelled = tuple[str, str]

_DONE = (TaskStatus.COMMITTED, TaskStatus.UNCHANGED)

_BEFORE_THEIR_EYES = "git batch report"
"""What whoever reads these commands is reading."""


def task_commands(board: Board, standing: Standing) -> list[Labelled]:
    """Give the commands for one task that waits for a person; only a look at any other."""
    found = _for_task(board, standing)
    return [(label, board.addressed(command)) for label, command in found]


def _for_task(board: Board, standing: Standing) -> list[Labelled]:
    first = [("look", _look(board, standing))]
    if board.live or board.state.status not in RESUMABLE:
        return first
    out = without(board.state.in_flight, board.state.stop)
    if out is not None and standing.state is TaskStatus.ENROLLED:
        return [*first, ("try again", "git batch resume"), ("leave it out", out)]
    if not standing.waits:
        return first
    task = standing.task.id
    if standing.state is TaskStatus.IN_REVIEW:
        return [
            *first,
            ("accept", f"git batch review {task} --accept"),
            ("ask for more", f"git batch review {task} --rework -m 'WHY'"),
            ("reject", f"git batch review {task} --reject -m 'WHY'"),
        ]
    answer = " -m 'ANSWER'" if standing.outcome is Outcome.BLOCKED else ""
    found = [*first, ("try again", f"git batch retry {task}{answer}")]
    last = standing.last
    if last is not None and board.keeps(last):
        found.append(("go on from its work", f"git batch retry {task} --from-attempt {last.n}"))
    return [*found, ("leave it out", _leave_out(board, standing))]


def _leave_out(board: Board, standing: Standing) -> str:
    dependents = " --dependents" if board.skips(standing.place) else ""
    return f"git batch skip {standing.task.id}{dependents}"


def kept_work(board: Board, standing: Standing) -> list[Labelled]:
    """Give the ref that keeps the newest attempt's work, and the command that shows it."""
    last = standing.last
    if standing.state in _DONE or last is None:
        return []
    if last.ref is None:
        old = not_replayed(standing.replays, last)
        return [("kept", old), ("see it", f"git show {old}")] if old is not None else []
    if not board.keeps(last):
        return [("kept", GONE)]
    # An attempt's first parent is the tip it began on; it has more if the task made commits.
    return [
        ("kept", one_line(last.ref)),
        ("see it", f"git show --first-parent {shell_word(last.ref)}"),
    ]


def next_commands(state: BatchState, plan: Plan, *, live: bool = False) -> list[str]:
    """Give what a person can do next, most useful first, each once."""
    return list_next(Board(state, plan, live=live))


def list_next(board: Board) -> list[str]:
    """Give what a person can do next, from a board that exists already."""
    found = [board.addressed("git batch status --watch")] if board.live else []
    for standing in board:
        if standing.waits:
            found += [command for _, command in task_commands(board, standing)]
    found += for_batch(board)
    return list(dict.fromkeys(found))


def look(board: Board, standing: Standing) -> str:
    """Give the command that shows why a task stands where it does."""
    return board.addressed(_look(board, standing))


def output_of(board: Board, standing: Standing, attempt: int | None = None) -> str:
    """Give the command that shows what a task printed, in its newest attempt or in another."""
    which = "" if attempt is None else f" --attempt {attempt}"
    return board.addressed(f"git batch show {standing.task.id} --output{which}")


def _look(board: Board, standing: Standing) -> str:
    last = standing.last
    if last is not None and last.ref is not None and not board.keeps(last):
        return f"git batch show {standing.task.id}"
    output = board.has_output(last)
    left = standing.state not in _DONE
    replayed = not_replayed(standing.replays, last) if left else None
    return look_at(standing.task.id, standing.outcome, output=output, replayed=replayed)


def for_batch(board: Board) -> list[str]:
    """Give what helps with the batch as a whole, whatever its tasks need."""
    return [board.addressed(command) for command in _for_batch(board)]


def _for_batch(board: Board) -> list[str]:
    state, around = board.state, board.around
    if board.live:
        return []
    ways = actions_of(
        state.status,
        state.stop,
        state.next_action,
        live=False,
        around=around,
        flight=state.in_flight,
    )
    # It may come from another clone's record; whatever it is, it is one line.
    first = [one_line(way) for way in ways if way != _BEFORE_THEIR_EYES]
    looks = [drift.look for drift in board.drift if drift.look]
    wrong = [*first, *looks] if board.drift else []
    if state.status is BatchStatus.COMPLETED:
        there = around is None or around.head is not None
        log = f"git log --oneline {state.base[:10]}..{shell_word(state.branch)}"
        return [*wrong, *([log] if there else [])]
    if state.status is BatchStatus.ABANDONED:
        return wrong
    if state.status not in RESUMABLE:
        return [*(wrong or first), "git batch verify"]
    return [*wrong, *_going_on(board, first)]


def _going_on(board: Board, first: list[str]) -> list[str]:
    """Say how a batch goes on that can; with a used-up budget only with more of it."""
    way = way_on(board.state, board.state.stop)
    if board.state.stop in (StopReason.BUDGET, StopReason.DEADLINE, StopReason.EXPIRED):
        return [way]  # without more of it, nothing would run
    return list(dict.fromkeys([*first, way]))
