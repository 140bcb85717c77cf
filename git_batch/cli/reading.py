"""`git batch status`, `list`, `report`, `log` and `show`: they read, and exit 0 if they could."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from git_batch.app import queries
from git_batch.app.queries import Glance, Whole
from git_batch.app.session import Session, now, open_session
from git_batch.cli.output import emit, json_option, out
from git_batch.core.entries import Entry, Header
from git_batch.errors import ExitCode, PreconditionError, RecordError, UsageError
from git_batch.views.escape import json_text

NOTHING = "no batch in this repository; begin with: git batch new"
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

    found = queries.glance(session, batch)
    if found is None:
        return _nothing(session)
    head, entry = _readable(found)
    return status_text(head, entry, live=_live(found), drift=found.drift, now=now())


def _nothing(session: Session) -> str:
    """Say that there is no batch here, or that one is known from its commits only."""
    from git_batch.app.unrecorded import unrecorded
    from git_batch.views.verify import unrecorded_text

    left = unrecorded(session)
    return NOTHING if left is None else unrecorded_text(left)


def _readable(found: Glance) -> tuple[Header, Entry]:
    summary = found.summary
    if summary.newest is None or summary.header is None:
        raise RecordError(
            f"the record of '{summary.batch_id}' can't be read: {summary.error}",
            "git batch recover brings it back from what is left",
        )
    return summary.header, summary.newest.entry


def _live(found: Glance | Whole) -> str | None:
    holder = found.live
    if holder is None:
        return None
    return f"process {holder.pid} on {holder.host} since {holder.since}"


def _status_json(session: Session, batch: str | None) -> dict[str, object]:
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
        head_commit=found.head,
        drift=found.drift,
    )


@click.command("list")
@json_option
def list_command(as_json: bool) -> int:
    """List the batches of this repository, the most recently active first."""
    from git_batch.views.listing import Listed, list_json, list_text

    session = open_session()
    found, claims = queries.everything(session), queries.claimed(session)
    listed = [
        Listed(g.summary.header, g.summary.newest.entry, g.live is not None)
        for g in found
        if g.summary.header is not None and g.summary.newest is not None
    ]
    if as_json:
        emit(list_json(listed, claims))
    else:
        out(list_text(listed, claims) if found or claims else NOTHING)
        for g in found:
            if g.summary.error:
                out(f"{g.summary.batch_id}: can't be read: {g.summary.error}")
    return ExitCode.OK


@click.command("report")
@click.argument("batch", required=False)
@json_option
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json", "html"]),
              default="text", show_default=True, help="What it is written as.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead.")
def report_command(batch: str | None, as_json: bool, form: str, output: str | None) -> int:
    """Show the morning report: what was done, what needs a person, and the commands for it."""
    session = open_session()
    found = queries.whole(session, batch)
    if as_json or form == "json":
        from git_batch.views.report import report_json

        value: dict[str, object] = {"version": 1, "batch_id": None}
        if found is not None:
            value = report_json(
                found.state,
                found.plan,
                live=found.live is not None,
                head_commit=found.head,
                drift=found.drift,
            )
        text = json_text(value)
    else:
        text = _report(found, form) if found is not None else _nothing(session)
    if output is None:
        out(text)
        return ExitCode.OK
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"can't write '{output}': {error.strerror or error}") from None
    return ExitCode.OK


def _report(found: Whole, form: str) -> str:
    from git_batch.views import html, markdown, report

    write = {
        "text": report.report_text,
        "markdown": markdown.report_markdown,
        "html": html.report_html,
    }[form]
    return write(found.state, found.plan, logs=found.logs, live=found.live is not None)


@click.command("log")
@click.argument("batch", required=False)
@click.option("--task", metavar="T", help="Only what concerns one task.")
@json_option
def log_command(batch: str | None, task: str | None, as_json: bool) -> int:
    """List every transition of a batch: when, what, who."""
    from git_batch.core.ids import TaskId
    from git_batch.views.log import log_json, log_lines

    session = open_session()
    if queries.glance(session, batch) is None:
        emit({"version": 1, "events": []}) if as_json else out(_nothing(session))
        return ExitCode.OK
    entries = queries.events(session, batch)
    wanted = TaskId(task) if task else None
    emit(log_json(entries, task=wanted)) if as_json else out(log_lines(entries, task=wanted))
    return ExitCode.OK


@click.command("show")
@click.argument("task")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Only attempt N.")
@click.option("--output", is_flag=True, help="Also what it printed.")
@click.option("--diff", is_flag=True, help="Also what it changed.")
@json_option
def show_command(task: str, attempt: int | None, output: bool, diff: bool, as_json: bool) -> int:
    """Show the attempts of TASK, its checks, output and diff, its commit or its kept work."""
    from git_batch.app.deciding import Named, known_task
    from git_batch.views.show import show_json, show_text

    session, named = open_session(), Named.parse(task)
    found = queries.whole(session, named.batch)
    if found is None:
        raise PreconditionError(_nothing(session))
    wanted, live = known_task(found.plan, named.task), found.live is not None
    if as_json:
        emit(show_json(found.state, found.plan, wanted, live=live))
        return ExitCode.OK
    change = queries.task_diff(session, found.state, wanted, attempt) if diff else None
    try:
        text = show_text(
            found.state,
            found.plan,
            wanted,
            live=live,
            logs=found.logs,
            attempt=attempt,
            output=output,
            diff=change,
        )
    except KeyError:
        raise UsageError(f"'{wanted}' has no attempt {attempt}") from None
    out(text)
    return ExitCode.OK
