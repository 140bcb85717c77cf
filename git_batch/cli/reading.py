"""`git batch status` and `list`: they read, must start fast, and exit 0 if they could."""

from __future__ import annotations

import sys
import time
from datetime import datetime

import click

from git_batch.app import glances
from git_batch.app.glances import Glance
from git_batch.app.session import Session, now, open_session
from git_batch.cli.output import emit, json_option, out
from git_batch.errors import BatchError, ExitCode, GitError

_EVERY = 2.0


@click.command("status")
@click.argument("batch", required=False)
@json_option
@click.option("--watch", is_flag=True, help="Show it again every two seconds.")
def status_command(batch: str | None, as_json: bool, watch: bool) -> int:
    """Show where a batch stands, in one screen."""
    session = open_session()
    if as_json:
        emit(_status_json(session, batch))
        return ExitCode.OK
    while True:
        text = _status_text(session, batch)
        if watch and sys.stdout.isatty():
            click.clear()
        read = out(text)
        if not (watch and read):
            return ExitCode.OK
        time.sleep(_EVERY)


def _status_text(session: Session, batch: str | None) -> str:
    from git_batch.views.status import status_text

    found = glances.glance(session, batch)
    if found is None:
        return nothing(session)
    head, tip = found.summary.readable()
    return status_text(head, tip, live=_live(found), around=found.around, now=now())


def nothing(session: Session) -> str:
    """Say that there is no batch here, or that one is known from its commits only."""
    from git_batch.app.planning import first_step
    from git_batch.app.unrecorded import only_fetched, unrecorded
    from git_batch.views.verify import unrecorded_text

    left = unrecorded(session)
    if left is not None:
        return unrecorded_text(left)
    fetched = only_fetched(session, None)
    if fetched:
        return "\n".join(["no batch is here yet, only fetched:", *fetched])
    return f"no batch in this repository; begin with: {first_step(session.repo.layout.top)}"


def _live(found: Glance) -> str | None:
    holder = found.live
    if holder is None:
        return None
    return f"process {holder.pid} on {holder.host} since {_moment(holder.since)}"


def _moment(since: str) -> str:
    """Write a time from a lock file as all others are written; what is no time stays as it is."""
    from git_batch.views.common import moment

    try:
        return moment(datetime.fromisoformat(since))
    except ValueError:
        return since


def _status_json(session: Session, batch: str | None) -> dict[str, object]:
    from git_batch.app import queries  # each task is listed: that needs the whole record
    from git_batch.views.status import status_json

    found = queries.whole(session, batch)
    if found is None:
        from git_batch.app.unrecorded import unrecorded
        from git_batch.views.verify import unrecorded_json

        return unrecorded_json(unrecorded(session))
    return status_json(
        found.state,
        found.plan,
        live=found.live is not None,
        around=found.around,
    )


@click.command("list")
@json_option
def list_command(as_json: bool) -> int:
    """List the batches of this repository, the most recently active first."""
    from git_batch.app.queries import claimed
    from git_batch.views.listing import Listed, list_json, list_text

    session = open_session()
    found, held = glances.everything(session), claimed(session)
    claims = {what: claim for what, claim in held.items() if not isinstance(claim, GitError)}
    listed = [
        Listed(g.summary.header, g.summary.tip, g.live is not None)
        for g in found
        if g.summary.header is not None and g.summary.tip is not None
    ]
    if as_json:
        emit(list_json(listed, claims))
    else:
        if not found:
            out(nothing(session))
        if found or claims:
            out(list_text(listed, claims))
        for g in found:
            if g.summary.error:
                _tell(g.summary.error, f"{g.summary.batch_id}: ")
        for claim in held.values():
            if isinstance(claim, GitError):
                _tell(claim)
    return ExitCode.OK


def _tell(error: BatchError, what: str = "") -> None:
    """Say what can't be read as a part of an answer."""
    out(f"{what}{error.message}")
    for hint in error.hints:
        out(f"    {hint}")
