"""`git batch start` and `git batch resume`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from git_batch.app.session import now, open_session, outside_of_tasks
from git_batch.app.starting import Bounds, Outcome, Proposal, StartRequest, propose, start
from git_batch.cli.bounds import Asked, bound_options
from git_batch.cli.output import Printer, out
from git_batch.core.standing import BatchStatus
from git_batch.errors import ExitCode, PreconditionError
from git_batch.run.context import Tools
from git_batch.run.interrupt import Interrupt, asking
from git_batch.views.ending import ending_text
from git_batch.views.plan import confirmation_text

if TYPE_CHECKING:
    from git_batch.app.resuming import Renewal


@click.command("start")
@click.argument("plan", required=False, type=click.Path())
@bound_options
@click.option("-n", "--dry-run", is_flag=True, help="Check everything, write nothing, run nothing.")
@click.option("--branch", metavar="B", help="The batch's branch; default batch/<slug>.")
@click.option("--base", metavar="REV", help="Where the branch begins; default HEAD.")
@click.option("--allow-untracked", is_flag=True,
              help="Accept untracked files that lie outside every scope.")  # fmt: skip
def start_command(
    plan: str | None,
    asked: Asked,
    dry_run: bool,
    branch: str | None,
    base: str | None,
    allow_untracked: bool,
) -> int:
    """Confirm a plan, make its branch, and run it to its end.

    PLAN is the plan file; left out it is 'batch.toml' at the top level, else the only
    '.batch/*.toml'.
    """
    outside_of_tasks()
    if asked.bounds.extra_tasks is not None:
        raise click.UsageError("'--max-tasks +N' goes with 'git batch resume'")
    request = StartRequest(plan, asked.bounds, branch, base, allow_untracked)
    session = open_session()
    before = session.repo.symbolic_head()
    if dry_run:
        out(_shown(propose(session, request, now())))
        out("this was a dry run: nothing was written, nothing was run")
        return ExitCode.OK

    def confirm(proposal: Proposal) -> bool:
        out(_shown(proposal))
        return ask("Run this?", yes=asked.yes)

    with Interrupt().install() as interrupt:
        outcome = start(session, request, confirm, Tools(interrupt, Printer(), now, asked.recheck))
    return ended(outcome, interrupt, before)


def _shown(proposal: Proposal) -> str:
    return confirmation_text(proposal.plan, proposal.authorization)


@click.command("resume")
@click.argument("batch", required=False)
@bound_options
@click.option("--kill-orphans", is_flag=True,
              help="End processes that an earlier run left alive.")  # fmt: skip
@click.option(
    "--put-back",
    is_flag=True,
    help="Put back git's configuration and hooks as they were before a killed run.",
)
@click.option(
    "--keep-changes", is_flag=True, help="Take what they are since a killed run as your own."
)
@click.option("--plan", metavar="FILE", type=click.Path(),
              help="Go on with a changed plan: what differs is shown and confirmed.")  # fmt: skip
def resume_command(
    batch: str | None,
    asked: Asked,
    kill_orphans: bool,
    put_back: bool,
    keep_changes: bool,
    plan: str | None,
) -> int:
    """Go on with a batch after a crash, an interruption, a decision or a stop.

    While the authorization holds nothing is asked. After a budget, deadline, expiry or failure
    limit, with new bounds or a changed plan, and where nobody has confirmed the batch in this
    repository, a person confirms again. A batch that is being run can be given new bounds, too.
    """
    from git_batch.app.aftermath import Ways, take_up
    from git_batch.app.resuming import ResumeRequest, resume

    outside_of_tasks()
    renew = asked.bounds != Bounds()
    request = ResumeRequest(batch, asked.bounds, kill_orphans, renew, plan)
    if put_back and keep_changes:
        raise click.UsageError("'--put-back' and '--keep-changes' exclude each other")
    take_up(".", Ways(put_back, keep_changes, kill_orphans), now(), Printer().note)
    session = open_session()

    def confirm(renewal: Renewal) -> bool:
        _show(renewal)
        return ask("Go on with this?", yes=asked.yes)

    with Interrupt().install() as interrupt:
        outcome = resume(session, request, confirm, Tools(interrupt, Printer(), now, asked.recheck))
    if outcome.live:
        out("renewed: the run that goes on takes it up before its next task")
        return ExitCode.OK
    return ended(outcome, interrupt, None)


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


def ask(question: str, *, yes: bool) -> bool:
    """Have a person confirm.

    Returns:
        Whether they were asked; not with `yes`.

    Raises:
        PreconditionError: they did not, or there is nobody to ask.
    """
    if yes:
        return False
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PreconditionError(
            "nobody confirmed: there is no terminal to ask on", "confirm beforehand with '--yes'"
        )
    with asking():
        agreed = _agreed(question)
    if not agreed:
        raise PreconditionError("not confirmed, so nothing was written")
    return True


def _agreed(question: str) -> bool:
    """Ask until the answer is a yes or a no; the end of the input is a no."""
    while True:
        try:
            answer = input(f"{question} [y/N]: ").strip().casefold()
        except EOFError:
            out("")
            return False
        except UnicodeDecodeError:
            answer = "?"
        if answer in ("", "n", "no", "y", "yes"):
            return answer.startswith("y")
        out("please answer with y or n")


def ended(outcome: Outcome, interrupt: Interrupt, before: str | None) -> int:
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
