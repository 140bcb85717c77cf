"""The group, its lazily imported commands, and the one place where errors are printed.

A command is imported when it is used: the readers and the hooks must not pay for what checks a
plan. Nothing here or below prints a traceback; a bug is saved to a file and said in one line.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from git_batch import __version__
from git_batch.errors import SYSTEM_FAULTS, BatchError, ExitCode, MachineError
from git_batch.views.escape import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from git_batch.app.reader import PlanReader

COMMANDS: dict[str, tuple[str, str]] = {
    "new": ("planfiles", "write a commented plan to begin with"),
    "check": ("planfiles", "validate a plan and show what would run"),
    "schema": ("planfiles", "print the JSON Schema of the plan format"),
    "start": ("running", "confirm a plan, make its branch, run it"),
    "resume": ("running", "go on after a crash, an interruption, a decision or a stop"),
    "status": ("reading", "show where a batch stands, in one screen"),
    "list": ("reading", "list the batches of this repository"),
    "report": ("reporting", "show the morning report of a batch"),
    "log": ("reporting", "list every transition of a batch"),
    "show": ("reporting", "show attempts, output and diff of one task"),
    "find": ("lineage", "print the commit of a task, or the task of a commit"),
    "verify": ("lineage", "say whether a branch is what the record of its batch says"),
    "retry": ("deciding", "run a parked task again"),
    "skip": ("deciding", "take a task out of the batch"),
    "review": ("verdicts", "give the verdict on a change that waits for one"),
    "adopt": ("verdicts", "take your fix, or kept work, as a parked task's work"),
    "undo": ("verdicts", "revert a committed task and what needs it"),
    "rebase": ("verdicts", "move a batch to another base and replay its commits there"),
    "bless": ("lineage", "record the commits that you put on top as foreign"),
    "recover": ("lineage", "bring back the record of a batch that was lost"),
    "push": ("sharing", "send a batch to a remote: its branch and its record, both or neither"),
    "fetch": ("sharing", "get a remote's branches and copies of its records"),
    "pull": ("sharing", "fetch, then bring a batch here to where the remote has it"),
    "stop": ("deciding", "ask a live run to stop after the task in flight"),
    "abandon": ("deciding", "end a batch for good, keeping everything"),
    "prune": ("pruning", "drop kept attempts and logs of batches that are over"),
    "hooks": ("hooks", "have git refuse a batch branch that is not what its record says"),
    "completion": ("misc", "print shell completion code"),
}
"""Name of each command, the module of this package that holds it, and its line in the help."""

COMPLETE = "_GIT_BATCH_COMPLETE"
"""The variable by which completion code asks what could come next."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command that is asked for."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"git_batch.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest name for one that does not exist."""
        typed = not ctx.resilient_parsing  # else a shell asks, which no error must reach
        if typed and args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"there is no command '{args[0]}'{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete the commands from the table, without importing any."""
        from click.shell_completion import CompletionItem

        found: list[CompletionItem[str]] = [
            CompletionItem(name, help=short)
            for name, (_, short) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="git-batch")
def cli() -> None:
    """Run a plan of dependent changes unattended, one checked commit per task."""


def main(args: Sequence[str] | None = None, reader: PlanReader | None = None) -> int:
    """Run the command line and give its exit status; never raises.

    Args:
        args: instead of the process's own.
        reader: reads the plan of a start.
    """
    try:
        result: Any = cli.main(
            args=list(args) if args is not None else None,
            prog_name="git batch",
            complete_var=COMPLETE,
            standalone_mode=False,
            obj=reader,
        )
        sys.stdout.flush()
        return int(result) if isinstance(result, int) else ExitCode.OK
    except BatchError as error:
        return say(error)
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; a later flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except OSError as error:
        return say(MachineError.of(error)) if error.errno in SYSTEM_FAULTS else bug(error)
    except Exception as error:  # the last line of defence: the bug is saved and said
        return bug(error)


def say(error: BatchError) -> int:
    """Print an error and its hints in git's style, and give its exit status."""
    print(f"error: {printable(error.message)}", file=sys.stderr)
    for hint in error.hints:
        print(f"hint: {printable(hint)}", file=sys.stderr)
    return error.exit_code


def bug(error: Exception) -> int:
    """Save what happened, say so in one line, and give the exit status."""
    import tempfile  # only here: every command would pay for these
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="git-batch-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exc(file=file)
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    print(f"error: a bug in git-batch: {printable(said)}", file=sys.stderr)
    print(f"hint: what happened is in '{file.name}'; please report it", file=sys.stderr)
    print("hint: nothing that was recorded is lost: git batch resume", file=sys.stderr)
    return ExitCode.BUG
