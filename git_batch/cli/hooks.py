"""`git batch hooks`: install, uninstall, status, and `run`, which hook managers call."""

from __future__ import annotations

import click

from git_batch.app import hooking
from git_batch.cli.output import emit, out
from git_batch.errors import ExitCode
from git_batch.views.hooks import hooks_json, hooks_text, place_text, put_text

_server = click.option("--server", is_flag=True, help="The hooks that a server runs on a push.")


@click.group("hooks")
def hooks_command() -> None:
    """Have git refuse a batch branch that is not what its record says."""


@hooks_command.command("install", short_help="put the hooks beside what is there")
@_server
def install_command(server: bool) -> int:
    """Put the hooks beside what is there; a hook of yours keeps running."""
    standing, done = hooking.put_in(server=server)
    out(put_text(done))
    out(hooks_text(standing))
    active = all(hook.active for hook in standing.hooks)
    return ExitCode.OK if active else ExitCode.REFUSED


@hooks_command.command("uninstall", short_help="take them out, what was there is back")
def uninstall_command() -> int:
    """Take the hooks out; what was there before is put back as it was."""
    place, done = hooking.take_out()
    out(place_text(place))
    out(put_text(done))
    return ExitCode.OK


@hooks_command.command("status", short_help="ask git whether it runs them")
@_server
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status_command(server: bool, as_json: bool) -> int:
    """Say whether git runs each hook, by asking it; exit status 3 if it does not run one."""
    standing = hooking.look(server=server)
    emit(hooks_json(standing)) if as_json else out(hooks_text(standing))
    active = all(hook.active for hook in standing.hooks)
    return ExitCode.OK if active else ExitCode.REFUSED


@hooks_command.command(
    "run",
    short_help="do what a hook does, for hook managers",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("name")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run_command(name: str, args: tuple[str, ...]) -> int:
    """Do what hook NAME does: for hook managers, with its arguments and standard input."""
    from git_batch.cli.hookrun import main

    return main([name, *args])
