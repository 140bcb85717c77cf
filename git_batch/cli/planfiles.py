"""`git batch new`, `check` and `schema`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from git_batch.cli.output import emit, out, plain
from git_batch.errors import ExitCode
from git_batch.views.escape import shell_word


@click.command("new")
@click.argument("slug", required=False)
@click.option(
    "-o", "--output", metavar="FILE", help="Where to write; '-' prints. Default batch.toml."
)
def new_command(slug: str | None, output: str | None) -> int:
    """Write a commented plan to begin with; nothing is ever overwritten."""
    from git_batch.app.newplan import new_plan, write_new
    from git_batch.app.session import top_or_here

    top = top_or_here()
    text = new_plan(slug, top)
    if output == "-":
        plain(text)
        return ExitCode.OK
    path = output or "batch.toml"
    write_new(text, path)
    out(f"wrote '{path}'")
    named = output or not Path(top).samefile(".")  # only at the top it is found by itself
    out("see what it means: git batch check" + (f" {shell_word(path)}" if named else ""))
    return ExitCode.OK


@click.command("check")
@click.argument("plan", required=False, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check_command(plan: str | None, as_json: bool) -> int:
    """Validate a plan; show its order, its digest and all that would run."""
    from git_batch.app.planning import find_plan, load_plan
    from git_batch.app.session import top_or_here
    from git_batch.views.plan import plan_json, plan_text

    loaded = load_plan(find_plan(top_or_here(), plan, "git batch check"))
    if as_json:
        emit(plan_json(loaded.plan, loaded.digest))
    else:
        out(plan_text(loaded.plan, loaded.digest))
    return ExitCode.OK


@click.command("schema")
def schema_command() -> int:
    """Print the JSON Schema of the plan format, for editors."""
    from git_batch.core.planmodel import schema

    plain(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n")
    return ExitCode.OK
