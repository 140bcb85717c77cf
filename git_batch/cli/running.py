"""`git batch start` and `git batch resume`."""

from __future__ import annotations

import click

from git_batch.app.reader import PlanReader
from git_batch.app.requests import Bounds, ResumeRequest, StartRequest
from git_batch.app.session import now, open_session, outside_of_tasks
from git_batch.cli.bounds import Asked, bound_options
from git_batch.cli.output import Printer


@click.command("start")
@click.argument("plan", required=False, type=click.Path())
@bound_options
@click.option("-n", "--dry-run", is_flag=True, help="Check everything, write nothing, run nothing.")
@click.option("--branch", metavar="B", help="The batch's branch; default batch/<slug>.")
@click.option("--base", metavar="REV", help="Where the branch begins; default HEAD.")
@click.option("--allow-untracked", is_flag=True,
              help="Accept untracked files that lie outside every scope.")  # fmt: skip
@click.pass_obj
def start_command(
    begun: PlanReader | None,
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
    session = open_session()
    reader = begun or PlanReader()
    request = StartRequest(plan, asked.bounds, branch, base, allow_untracked, asked.recheck)
    reader.ahead(session.repo.layout.top, plan, request.again(), once=asked.yes or dry_run)
    from git_batch.cli.starting import begin, dry  # while the plan is read

    if dry_run:
        return dry(session, request, reader)
    return begin(session, request, asked, reader)


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
    from git_batch.cli.resuming import go_on

    outside_of_tasks()
    if put_back and keep_changes:
        raise click.UsageError("'--put-back' and '--keep-changes' exclude each other")
    renew = asked.bounds != Bounds()
    request = ResumeRequest(batch, asked.bounds, kill_orphans, renew, plan, asked.recheck)
    take_up(".", Ways(put_back, keep_changes, request), now(), Printer().note)
    return go_on(open_session(), request, asked)
