"""`git batch push`, `fetch` and `pull`."""

from __future__ import annotations

import click

from git_batch.app.session import Session, now, open_session
from git_batch.cli.output import Relay, out, told_session
from git_batch.errors import ExitCode
from git_batch.views import sharing as view
from git_batch.views.escape import one_line


@click.command("push")
@click.argument("remote", required=False)
@click.argument("batch", required=False)
@click.option("-n", "--dry-run", is_flag=True, help="Verify, and ask the remote, but send nothing.")
def push_command(remote: str | None, batch: str | None, dry_run: bool) -> int:
    """Send the branch of BATCH and its record to REMOTE, both or neither.

    The branch is verified first. REMOTE is the one that 'git push' would choose, if it is left out.
    """
    from git_batch.app.sharing import push

    done = push(open_session(), remote, batch, dry_run=dry_run, relay=Relay())
    out(view.pushed_text(done.batch, done.branch, done.head, done.remote, dry_run=dry_run))
    return ExitCode.OK


@click.command("fetch")
@click.argument("remote", required=False)
def fetch_command(remote: str | None) -> int:
    """Get the branches of REMOTE and copies of its records; nothing that is here changes."""
    from git_batch.app.sharing import fetch

    session = open_session()
    name, found = fetch(session, remote, relay=Relay())
    out(view.fetched_text(name, {each.batch: each.relation for each in found}))
    _tell_lost(session, name)
    return ExitCode.OK


@click.command("pull")
@click.argument("remote", required=False)
@click.argument("batch", required=False)
def pull_command(remote: str | None, batch: str | None) -> int:
    """Fetch, then bring BATCH here to where REMOTE has it: record, branch and clean files.

    Without BATCH: each batch that is here, and that of the current branch, or the only one that
    REMOTE has. What is here only ever goes forward. A record from elsewhere carries no authority:
    'git batch resume' asks first.
    """
    from git_batch.app.pulling import pull

    session = told_session()
    done = pull(session, remote, batch, at=now(), relay=Relay())
    taken = [(each.batch, each.branch, each.head, each.changed) for each in done.taken]
    out(view.pulled_text(done.remote, taken, done.left))
    _tell_lost(session, done.remote)
    return ExitCode.OK


def _tell_lost(session: Session, remote: str) -> None:
    """Say of the current branch that the record which it needs is not at a remote either."""
    from git_batch.app.unrecorded import still_lost

    for line in still_lost(session, remote):
        out(one_line(line))
