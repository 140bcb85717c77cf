"""What `git batch resume` does once its options are read: go on, after a question where due."""

from __future__ import annotations

from git_batch.app.requests import ResumeRequest
from git_batch.app.resuming import Renewal, resume
from git_batch.app.session import Session, now
from git_batch.cli.asking import ask
from git_batch.cli.bounds import Asked
from git_batch.cli.ending import ended
from git_batch.cli.output import Printer, out
from git_batch.core.model import BatchState
from git_batch.errors import ExitCode
from git_batch.run.context import Tools
from git_batch.run.interrupt import Interrupt
from git_batch.views.plan import confirmation_text


def go_on(session: Session, request: ResumeRequest, asked: Asked) -> int:
    """Go on with a batch, with a fresh confirmation where one is needed; give the exit status."""

    def confirm(renewal: Renewal) -> bool:
        _show(renewal)
        return ask("Go on with this?", yes=asked.yes)

    with Interrupt().install() as interrupt:
        outcome = resume(
            session, request, confirm, Tools(interrupt, Printer(), now, request.recheck)
        )
    if outcome.live:
        return _told_live(outcome.state)
    return ended(outcome, interrupt, None)


def _told_live(state: BatchState) -> int:
    """Say what a renewal means to the run that goes on; a stop that was asked for stays so."""
    if state.stop_requested:
        out("renewed; the run was asked to stop, so it still ends after its task")
        out(f"go on then: git batch resume {state.batch_id}")
    else:
        out("renewed: the run that goes on takes it up before its next task")
    return ExitCode.OK


def _show(renewal: Renewal) -> None:
    """Show what is to be confirmed, and how it differs from what is in force."""
    from git_batch.views.plandiff import plandiff_text

    granted = renewal.authorization
    coming, notes = renewal.outlook, renewal.notes
    here, state = renewal.here, renewal.state
    out(confirmation_text(renewal.plan, granted, coming, before=state, seen=here, notes=notes))
    if renewal.diff is not None:
        before = (renewal.state.plan_digest, renewal.old)
        after = (granted.plan_digest, granted.budget)
        out(plandiff_text(renewal.diff, before, after, renewal.state))
