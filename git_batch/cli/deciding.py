"""`git batch retry`, `skip`, `stop` and `abandon`."""

from __future__ import annotations

import click

from git_batch.app import deciding
from git_batch.app.session import now, open_session
from git_batch.cli.following import go_on, were
from git_batch.cli.numbers import Count
from git_batch.cli.output import out, told_session
from git_batch.errors import ExitCode


@click.command("retry")
@click.argument("task")
@click.option("-m", "--message", default="", metavar="TEXT", help="Words for the next attempt.")
@click.option("--from-attempt", type=Count(), metavar="N",
              help="Begin with the kept work of attempt N.")  # fmt: skip
def retry_command(task: str, message: str, from_attempt: int | None) -> int:
    """Let a parked TASK run again; `git batch resume` then does it."""
    session = told_session()
    done = deciding.retry(session, task, words=message, from_attempt=from_attempt, at=now())
    out(f"'{task}' will run again" + (", once what it needs is done" if done.skipped else ""))
    go_on(session, done.state)
    return ExitCode.OK


@click.command("skip")
@click.argument("task")
@click.option("--dependents", is_flag=True, help="Also take out every task that needs it.")
@click.option("-m", "--message", default="", metavar="WHY", help="Why, for the record.")
def skip_command(task: str, dependents: bool, message: str) -> int:
    """Take TASK out of the batch."""
    session = told_session()
    done = deciding.skip(session, task, words=message, dependents=dependents, at=now())
    out(f"{were(done.tasks)} taken out")
    go_on(session, done.state, *([f"git batch skip {done.tasks[0]} --dependents"] * done.stuck))
    return ExitCode.OK


@click.command("stop")
@click.argument("batch", required=False)
def stop_command(batch: str | None) -> int:
    """Ask a live run to stop after the task in flight."""
    out(f"asked '{deciding.stop(open_session(), batch, at=now())}' to stop after its task")
    return ExitCode.OK


@click.command("abandon")
@click.argument("batch", required=False)
@click.option("-m", "--message", default="", metavar="WHY", help="Why, for the record.")
def abandon_command(batch: str | None, message: str) -> int:
    """End a batch for good; its commits, its record and all kept work stay."""
    session = told_session()
    state = deciding.abandon(session, batch, words=message, at=now())
    there = session.refs.read(f"refs/heads/{state.branch}") is not None
    stay = f"its branch '{state.branch}' and all kept work stay" if there else "all kept work stays"
    out(f"'{state.batch_id}' was abandoned; {stay}")
    return ExitCode.OK
