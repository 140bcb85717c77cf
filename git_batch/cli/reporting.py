"""`git batch report`, `log` and `show`: they read whole records, and exit 0 if they could."""

from __future__ import annotations

from pathlib import Path

import click

from git_batch.app import queries
from git_batch.app.glances import glance
from git_batch.app.queries import Whole
from git_batch.app.session import no_batch, open_session
from git_batch.cli.numbers import Count
from git_batch.cli.output import emit, json_option, out
from git_batch.cli.reading import nothing
from git_batch.errors import ExitCode, UsageError
from git_batch.views.escape import json_text


@click.command("report")
@click.argument("batch", required=False)
@json_option
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json", "html"]),
              default="text", show_default=True, help="What it is written as.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write to a file; '-' prints.")
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
                around=found.around,
            )
        text = json_text(value)
    else:
        text = _report(found, form) if found is not None else nothing(session)
    if output in (None, "-"):
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
    live = found.live is not None
    return write(found.state, found.plan, logs=found.logs, live=live, around=found.around)


@click.command("log")
@click.argument("batch", required=False)
@click.option("--task", metavar="TASK", help="Only what concerns one task; also BATCH:TASK.")
@json_option
def log_command(batch: str | None, task: str | None, as_json: bool) -> int:
    """List every transition of a batch: when, what, who."""
    from git_batch.app.deciding import Named
    from git_batch.views.log import log_json, log_lines

    session, named = open_session(), Named.parse(task) if task else None
    if named is not None and named.batch is not None:
        if batch not in (None, named.batch):
            raise click.UsageError(f"'{batch}' and '--task {task}' name two batches")
        batch = named.batch
    if glance(session, batch) is None:
        emit({"version": 1, "events": []}) if as_json else out(nothing(session))
        return ExitCode.OK
    entries = queries.events(session, batch)
    wanted = queries.known_in(session, batch, entries, named.task) if named else None
    emit(log_json(entries, task=wanted)) if as_json else out(log_lines(entries, task=wanted))
    return ExitCode.OK


@click.command("show")
@click.argument("task")
@click.option("--attempt", type=Count(), metavar="N", help="Only attempt N.")
@click.option("--output", is_flag=True, help="Also what it printed.")
@click.option("--diff", is_flag=True, help="Also what it changed.")
@json_option
def show_command(task: str, attempt: int | None, output: bool, diff: bool, as_json: bool) -> int:
    """Show the attempts of TASK, its checks, output and diff, its commit or its kept work."""
    from git_batch.app.deciding import Named, known_task
    from git_batch.views.addressing import addressed
    from git_batch.views.show import Look, show_json, show_text
    from git_batch.views.standing import Board

    session, named = open_session(), Named.parse(task)
    found = queries.whole(session, named.batch)
    if found is None:
        raise no_batch(session)
    wanted = known_task(found.plan, named.task)
    change = queries.task_diff(session, found.state, wanted, attempt) if diff else None
    around, look = found.around, Look(found.logs, attempt, output, change)
    board = Board(found.state, found.plan, live=found.live is not None, around=around)
    try:
        emit(show_json(board, wanted, look)) if as_json else out(show_text(board, wanted, look))
    except KeyError:
        way = addressed(f"git batch show {wanted}", around.name)
        raise UsageError(
            f"'{wanted}' has no attempt {attempt} that has ended", f"those it has: {way}"
        ) from None
    return ExitCode.OK
