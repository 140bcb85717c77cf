"""What a run says when it ends: where the batch stands, why, and what a person can do next."""

from __future__ import annotations

from git_batch.core.machine import counts
from git_batch.core.model import BatchState, Plan
from git_batch.views.commands import next_commands
from git_batch.views.common import batch_text, counts_text, rows
from git_batch.views.escape import one_line


def ending_text(state: BatchState, plan: Plan, *, back: str | None = None) -> str:
    """Say how a run ended.

    Args:
        back: the branch that was checked out before it began, if it was another one.
    """
    totals = {status.value: n for status, n in counts(state).items() if n}
    lines = [
        ("batch", f"{state.batch_id}  {batch_text(state.status, state.stop, live=False)}"),
        ("tasks", counts_text(totals)),
    ]
    if state.reason:
        lines.append(("reason", one_line(state.reason)))
    lines += [("next", command) for command in next_commands(state, plan)]
    if back is not None:
        lines.append(("back", f"git switch {one_line(back)}"))
    return "\n".join(rows(lines))
