"""How a run ended: said to a person, and as an exit status (product.md, Commands)."""

from __future__ import annotations

from git_batch.app.starting import Outcome
from git_batch.cli.output import out
from git_batch.core.standing import BatchStatus
from git_batch.errors import ExitCode
from git_batch.run.interrupt import Interrupt
from git_batch.views.ending import ending_text
from git_batch.views.escape import shell_word


def _back(before: str | None, branch: str) -> str | None:
    """Give what `git switch` takes, in a shell, to go back; None if that is where we are."""
    if before is None or before == f"refs/heads/{branch}":
        return None
    name = before.removeprefix("refs/heads/")
    return shell_word(name) if name != before else f"--detach {before}"


def ended(outcome: Outcome, interrupt: Interrupt, before: str | None) -> int:
    """Say how a run ended and give its exit status.

    Args:
        before: the branch that HEAD named before the run, or the commit if it was detached.
    """
    state = outcome.state
    back = _back(before, state.branch)
    text = ending_text(state, outcome.plan, back=back, around=outcome.around)
    out(text, in_vain=OSError)  # it has ended as it has
    if state.status is BatchStatus.RUNNING and interrupt.signum is not None:
        return 128 + interrupt.signum
    return {
        BatchStatus.COMPLETED: ExitCode.OK,
        BatchStatus.FAILED: ExitCode.FAILED,
    }.get(state.status, ExitCode.STOPPED)
