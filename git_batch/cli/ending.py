"""How a run ended: said to a person, and as an exit status (product.md, Commands)."""

from __future__ import annotations

from git_batch.app.starting import Outcome
from git_batch.cli.output import out
from git_batch.core.standing import BatchStatus
from git_batch.errors import ExitCode
from git_batch.run.interrupt import Interrupt
from git_batch.views.ending import ending_text


def ended(outcome: Outcome, interrupt: Interrupt, before: str | None) -> int:
    """Say how a run ended and give its exit status.

    Args:
        before: the branch that HEAD named before the run.
    """
    state = outcome.state
    elsewhere = before is not None and before != f"refs/heads/{state.branch}"
    back = before.removeprefix("refs/heads/") if before is not None and elsewhere else None
    out(ending_text(state, outcome.plan, back=back), in_vain=OSError)  # it has ended as it has
    if state.status is BatchStatus.RUNNING and interrupt.signum is not None:
        return 128 + interrupt.signum
    return {
        BatchStatus.COMPLETED: ExitCode.OK,
        BatchStatus.FAILED: ExitCode.FAILED,
    }.get(state.status, ExitCode.STOPPED)
