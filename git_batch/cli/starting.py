"""What `git batch start` does once its options are read: ask, run, say how it ended.

Apart from `running`, which asks for the plan before the rest is imported: see `app.reader`.
"""

from __future__ import annotations

from git_batch.app.reader import PlanReader
from git_batch.app.requests import StartRequest
from git_batch.app.session import Session, now
from git_batch.app.starting import Proposal, propose, start
from git_batch.cli.asking import ask
from git_batch.cli.bounds import Asked
from git_batch.cli.ending import ended
from git_batch.cli.output import Printer, out
from git_batch.errors import ExitCode
from git_batch.run.context import Tools
from git_batch.run.interrupt import Interrupt
from git_batch.views.plan import confirmation_text


def dry(session: Session, request: StartRequest, reader: PlanReader) -> int:
    """Show what a start would ask a person to confirm."""
    out(_shown(propose(session, request, now(), reader)))
    out("this was a dry run: nothing was written, nothing was run")
    return ExitCode.OK


def begin(session: Session, request: StartRequest, asked: Asked, reader: PlanReader) -> int:
    """Have a new batch confirmed, run it, and give the exit status."""
    before = session.repo.symbolic_head() or session.refs.read("HEAD")

    def confirm(proposal: Proposal) -> bool:
        out(_shown(proposal))
        return ask("Run this?", yes=asked.yes)

    interrupt = Interrupt()
    tools = Tools(interrupt, Printer(), now, request.recheck)
    outcome = start(session, request, confirm, tools, reader)
    return ended(outcome, interrupt, before)


def _shown(proposal: Proposal) -> str:
    return confirmation_text(proposal.plan, proposal.authorization)
