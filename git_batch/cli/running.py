"""`git batch start` and `git batch resume`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime

import click

from git_batch.app.session import now, open_session, outside_of_tasks
from git_batch.app.starting import Bounds, Outcome, Proposal, StartRequest, propose, start
from git_batch.cli.output import Printer, out
from git_batch.core.duration import parse_duration, parse_time
from git_batch.core.standing import BatchStatus
from git_batch.errors import ExitCode, PreconditionError
from git_batch.run.context import Tools
from git_batch.run.interrupt import Interrupt, asking
from git_batch.views.ending import ending_text
from git_batch.views.plan import confirmation_text


class Moment(click.ParamType[float | datetime]):
    """A duration from now, or an RFC 3339 time."""

    name = "duration|time"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | datetime:
        """Read either form."""
        try:
            return parse_duration(value)
        except ValueError:
            pass
        try:
            return parse_time(value)
        except ValueError:
            self.fail(
                f"'{value}' is neither a duration such as '8h' nor a time such as "
                "'2026-01-31T07:00:00+01:00'",
                param,
                ctx,
            )


class Tasks(click.ParamType[tuple[bool, int]]):
    """A number of tasks in all, or `+N` for that many more."""

    name = "n|+n"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[bool, int]:
        """Read a count and whether it is relative."""
        digits = value.removeprefix("+")
        if not digits.isdecimal():
            self.fail(f"'{value}' is neither a number nor '+' and a number", param, ctx)
        return value.startswith("+"), int(digits)


def _bounds(
    max_tasks: tuple[bool, int] | None,
    deadline: float | datetime | None,
    expires: float | datetime | None,
    qa_failures: int | None,
    fail_fast: bool,
    claim: str | None,
    sign: bool,
) -> Bounds:
    relative, number = max_tasks or (False, None)
    return Bounds(
        max_tasks=None if relative else number,
        extra_tasks=number if relative else None,
        deadline=deadline,
        expires=expires,
        qa_failures=qa_failures,
        fail_fast=fail_fast,
        claim=claim,
        sign=sign,
    )


def _bound_options(command: Callable[..., int]) -> Callable[..., int]:
    for option in (
        click.option("--qa-failures", type=click.IntRange(min=1), metavar="N",
                     help="End the run after N failing checks in a row."),
        click.option("--expires", type=Moment(), help="Start no task after this."),
        click.option("--deadline", type=Moment(), help="Start no task after this."),
        click.option("--max-tasks", type=Tasks(), metavar="N",
                     help="Start at most N tasks in all; with resume also +N, that many more."),
        click.option("--sign", is_flag=True,
                     help="Sign the authorization with your git signing key."),
        click.option("--claim", metavar="REMOTE",
                     help="Claim each task on a remote, so that no other machine runs it."),
        click.option("--recheck", is_flag=True,
                     help="Run checks also where they have passed on the same tree."),
        click.option("-x", "--fail-fast", is_flag=True, help="End the run at the first park."),
        click.option("-y", "--yes", is_flag=True, help="Confirm without being asked."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("start")
@click.argument("plan", required=False, type=click.Path())
@_bound_options
@click.option("-n", "--dry-run", is_flag=True, help="Check everything, write nothing, run nothing.")
@click.option("--branch", metavar="B", help="The batch's branch; default batch/<slug>.")
@click.option("--base", metavar="REV", help="Where the branch begins; default HEAD.")
@click.option("--allow-untracked", is_flag=True,
              help="Accept untracked files that lie outside every scope.")  # fmt: skip
def start_command(
    plan: str | None,
    yes: bool,
    fail_fast: bool,
    max_tasks: tuple[bool, int] | None,
    deadline: float | datetime | None,
    expires: float | datetime | None,
    qa_failures: int | None,
    dry_run: bool,
    branch: str | None,
    base: str | None,
    allow_untracked: bool,
    claim: str | None,
    sign: bool,
    recheck: bool,
) -> int:
    """Confirm a plan, make its branch, and run it to its end.

    PLAN is the plan file; left out it is 'batch.toml' at the top level, else the only
    '.batch/*.toml'.
    """
    outside_of_tasks()
    if max_tasks is not None and max_tasks[0]:
        raise click.UsageError("'--max-tasks +N' goes with 'git batch resume'")
    bounds = _bounds(max_tasks, deadline, expires, qa_failures, fail_fast, claim, sign)
    request = StartRequest(plan, bounds, branch, base, allow_untracked)
    session = open_session()
    before = session.repo.symbolic_head()
    if dry_run:
        out(_shown(propose(session, request, now())))
        out("this was a dry run: nothing was written, nothing was run")
        return ExitCode.OK

    def confirm(proposal: Proposal) -> None:
        out(_shown(proposal))
        ask("Run this?", yes=yes)

    with Interrupt().install() as interrupt:
        outcome = start(session, request, confirm, Tools(interrupt, Printer(), now, recheck))
    return ended(outcome, interrupt, before)


def _shown(proposal: Proposal) -> str:
    return confirmation_text(proposal.plan, proposal.authorization)


@click.command("resume")
@click.argument("batch", required=False)
@_bound_options
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
    yes: bool,
    fail_fast: bool,
    max_tasks: tuple[bool, int] | None,
    deadline: float | datetime | None,
    expires: float | datetime | None,
    qa_failures: int | None,
    kill_orphans: bool,
    put_back: bool,
    keep_changes: bool,
    plan: str | None,
    claim: str | None,
    sign: bool,
    recheck: bool,
) -> int:
    """Go on with a batch after a crash, an interruption, a decision or a stop.

    While the authorization holds nothing is asked. After a budget, deadline, expiry or failure
    limit, with new bounds or a changed plan, and where nobody has confirmed the batch in this
    repository, a person confirms again. A batch that is being run can be given new bounds, too.
    """
    from git_batch.app.aftermath import Ways, take_up
    from git_batch.app.resuming import Renewal, ResumeRequest, resume
    from git_batch.views.plandiff import plandiff_text

    outside_of_tasks()
    bounds = _bounds(max_tasks, deadline, expires, qa_failures, fail_fast, claim, sign)
    request = ResumeRequest(batch, bounds, kill_orphans, bounds != Bounds(), plan)
    if put_back and keep_changes:
        raise click.UsageError("'--put-back' and '--keep-changes' exclude each other")
    take_up(".", Ways(put_back, keep_changes, kill_orphans), now(), Printer().note)
    session = open_session()

    def confirm(renewal: Renewal) -> None:
        granted = renewal.authorization
        done, notes = renewal.left_out, renewal.notes
        out(confirmation_text(renewal.plan, granted, left_out=done, notes=notes))
        if renewal.diff is not None:
            old, new = renewal.state.plan_digest, granted.plan_digest
            before, after = (old, renewal.old), (new, granted.budget)
            out(plandiff_text(renewal.diff, before, after, renewal.state))
        ask("Go on with this?", yes=yes)

    with Interrupt().install() as interrupt:
        outcome = resume(session, request, confirm, Tools(interrupt, Printer(), now, recheck))
    if outcome.live:
        out("renewed: the run that goes on takes it up before its next task")
        return ExitCode.OK
    return ended(outcome, interrupt, None)


def ask(question: str, *, yes: bool) -> None:
    """Have a person confirm.

    Raises:
        PreconditionError: they did not, or there is nobody to ask.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PreconditionError(
            "nobody confirmed: there is no terminal to ask on", "confirm beforehand with '--yes'"
        )
    with asking():
        agreed = _agreed(question)
    if not agreed:
        raise PreconditionError("not confirmed, so nothing was written")


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
