"""Shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from git_batch.cli.output import plain


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print shell completion code for `git-batch`; evaluate it in the shell's start-up file."""
    from git_batch.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    plain(kind(cli, {}, "git-batch", "_GIT_BATCH_COMPLETE").source())
