"""`git batch prune`."""

from __future__ import annotations

import click

from git_batch.app.session import open_session
from git_batch.cli.asking import ask
from git_batch.cli.output import out
from git_batch.errors import ExitCode


@click.command("prune")
@click.argument("batch", required=False)
@click.option("--keep-latest", is_flag=True,
              help="Leave the newest kept attempt of each task, and the logs.")  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="Confirm without being asked.")
def prune_command(batch: str | None, keep_latest: bool, yes: bool) -> int:
    """Drop the kept attempts and the logs of BATCH, or of every batch that is over.

    Its record, branch and commits stay.
    """
    from git_batch.app.pruning import prunable, prune

    session = open_session()
    items = prunable(session, batch, keep_latest=keep_latest)
    if not items:
        out("nothing to drop")
        return ExitCode.OK
    for item in items:
        noun = "attempt" if item.attempts == 1 else "attempts"
        out(f"{item.batch}: {item.attempts} kept {noun}" + (" and the logs" if item.logs else ""))
    ask("Drop these?", yes=yes)
    prune(session, items)
    out("dropped")
    return ExitCode.OK
