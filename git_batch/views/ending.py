"""What a run says when it ends: where the batch stands, why, and what a person can do next.

One look for each task that needs a person, and the report: what there is to decide stands there,
beside the reasons, rather than in a list of commands that nobody can choose from.
"""

from __future__ import annotations

from git_batch.core.agenda import counts
from git_batch.core.model import BatchState, Plan
from git_batch.core.standing import BatchStatus, StopReason
from git_batch.views.commands import for_batch, look
from git_batch.views.common import OF_THE_BRANCH, Around, batch_text, counts_text, rows
from git_batch.views.escape import MORE, one_line
from git_batch.views.standing import Board

LOOKS = 5
"""Tasks that are named with a command; the report has them all."""

_DECIDE = frozenset(
    {
        StopReason.NEEDS_HUMAN,
        StopReason.REVIEW_PENDING,
        StopReason.FAIL_FAST,
        StopReason.FAILURE_LIMIT,
    }
)
"""Ends that a person's decisions about tasks lead on from."""


def ending_text(
    state: BatchState, plan: Plan, *, back: str | None = None, around: Around | None = None
) -> str:
    """Say how a run ended.

    Args:
        back: what `git switch` takes, in a shell, to go back where it began on another branch.
        around: what is found around the record, None where its reason says so.
    """
    totals = {status.value: n for status, n in counts(state).items() if n}
    lines = [
        ("batch", f"{state.batch_id}  {batch_text(state.status, state.stop, live=False)}"),
        ("tasks", counts_text(totals)),
    ]
    if state.reason:
        lines.append(("reason", one_line(state.reason)))
    board = Board(state, plan, live=False, around=around)
    lines += [("drift", f"{one_line(d.kind)}: {one_line(d.detail)}") for d in board.drift]
    lines += [("next", line) for line in _next(state, board)]
    if back is not None:
        lines.append(("back", f"git switch {back}"))
    return "\n".join(rows(lines))


def _next(state: BatchState, board: Board) -> list[str]:
    looks = [look(board, standing) for standing in board if standing.waits]
    lines = looks[:LOOKS]
    if len(looks) > LOOKS:
        lines.append(f"{MORE} and {len(looks) - LOOKS} more")
    if board.drift or state.stop in OF_THE_BRANCH:  # nothing goes on before the branch is whole
        lines = []
    # Where tasks wait for a decision, going on comes after it.
    first = lines and state.status is BatchStatus.NEEDS_HUMAN and state.stop in _DECIDE
    following = [] if first else for_batch(board)
    return list(dict.fromkeys([*lines, *following, "git batch report"]))
