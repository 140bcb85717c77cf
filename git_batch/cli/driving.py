"""What `git batch start` and `resume` do once their options are read: ask, run, say how it ended.

Apart from `running`, which asks for the plan before the rest is imported: see `app.reader`.
"""

from __future__ import annotations

from git_batch.app.reader import PlanReader
from git_batch.app.resuming import Renewal, ResumeRequest, resume
from git_batch.app.session import Session, now
from git_batch.app.starting import Outcome, Proposal, StartRequest, propose, start
from git_batch.cli.asking import ask
from git_batch.cli.bounds import Asked
from git_batch.cli.output import Printer, out
from git_batch.core.standing import BatchStatus
from git_batch.errors import ExitCode
from git_batch.run.context import Tools
from git_batch.run.interrupt import Interrupt
from git_batch.views.ending import ending_text
from git_batch.views.plan import confirmation_text


def dry(session: Session, request: StartRequest, reader: PlanReader) -> int:
    """Show what a start would ask a person to confirm."""
    out(_shown(propose(session, request, now(), reader)))
    out("this was a dry run: nothing was written, nothing was run")
    return ExitCode.OK


def begin(session: Session, request: StartRequest, asked: Asked, reader: PlanReader) -> int:
    """Have a new batch confirmed, run it, and give the exit status."""
    before = session.repo.symbolic_head()

    def confirm(proposal: Proposal) -> bool:
        out(_shown(proposal))
        return ask("Run this?", yes=asked.yes)

    interrupt = Interrupt()
    tools = Tools(interrupt, Printer(), now, asked.recheck)
    outcome = start(session, request, confirm, tools, reader)
    return _ended(outcome, interrupt, before)


def go_on(session: Session, request: ResumeRequest, asked: Asked) -> int:
    """Go on with a batch, with a fresh confirmation where one is needed; give the exit status."""

    def confirm(renewal: Renewal) -> bool:
        _show(renewal)
        return ask("Go on with this?", yes=asked.yes)

    with Interrupt().install() as interrupt:
        outcome = resume(session, request, confirm, Tools(interrupt, Printer(), now, asked.recheck))
    if outcome.live:
        out("renewed: the run that goes on takes it up before its next task")
        return ExitCode.OK
    return _ended(outcome, interrupt, None)


def _shown(proposal: Proposal) -> str:
    return confirmation_text(proposal.plan, proposal.authorization)


def _show(renewal: Renewal) -> None:
    """Show what is to be confirmed, and how it differs from what is in force."""
    from git_batch.views.plandiff import plandiff_text

    granted = renewal.authorization
    done, notes = renewal.left_out, renewal.notes
    out(confirmation_text(renewal.plan, granted, left_out=done, notes=notes))
    if renewal.diff is not None:
        before = (renewal.state.plan_digest, renewal.old)
        after = (granted.plan_digest, granted.budget)
        out(plandiff_text(renewal.diff, before, after, renewal.state))


def _ended(outcome: Outcome, interrupt: Interrupt, before: str | None) -> int:
    """Say how a run ended and give its exit status (product.md, Commands)."""
    state = outcome.state
    elsewhere = before is not None and before != f"refs/heads/{state.branch}"
    back = before.removeprefix("refs/heads/") if before is not None and elsewhere else None
    out(ending_text(state, outcome.plan, back=back))
    if state.status is BatchStatus.RUNNING and interrupt.signum is not None:
        return 128 + interrupt.signum
    return {
        BatchStatus.COMPLETED: ExitCode.OK,
        BatchStatus.FAILED: ExitCode.FAILED,
    }.get(state.status, ExitCode.STOPPED)
