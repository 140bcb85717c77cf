"""The man page, made from the commands themselves, so it can't say anything else than they do.

`git batch --help` is answered by git, which asks for the page `git-batch(1)`. The page is generated
before it is needed, `python -m git_batch.cli.manpage >git_batch/_data/git-batch.1` (`make docs`),
kept in the repository and installed by the wheel; a test compares it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator

import click

from git_batch import __version__
from git_batch.cli.main import COMMANDS, cli

EXIT_STATUSES = (
    ("0", "completed, or a reading command could answer; 'no batch here' is an answer"),
    ("1", "stopped and resumable: needs a human, budget, deadline, expiry, pending review"),
    ("2", "usage or plan error"),
    ("3", "refused, nothing was written: dirty tree, wrong branch, live run, nobody confirmed"),
    ("4", "failed: the branch is not what the record says"),
    ("70", "a bug in git-batch; what was recorded stays valid"),
    ("129", "the terminal was closed; resumable"),
    ("130", "interrupted by Ctrl-C; resumable"),
    ("143", "ended by SIGTERM; resumable"),
)
"""Of `start` and `resume`."""

_ENVIRONMENT = (
    ("BATCH_ID, BATCH_SLUG, BATCH_TASK, BATCH_ATTEMPT", "which batch, task and attempt this is"),
    ("BATCH_ROOT, BATCH_SCOPE", "the top of the working tree; what may change, one pattern a line"),
    ("BATCH_VAR_NAME", "the value of a matrix"),
    ("BATCH_PROMPT", "a file: the rendered prompt, if there is one"),
    ("BATCH_FEEDBACK", "a file, from the second attempt on: what went wrong, a person's words"),
    ("BATCH_DIFF", "a file, for a review command: the change that it judges"),
    ("BATCH_MESSAGE", "a file to write: the body of the commit"),
    ("BATCH_USAGE", 'a file to write: {"usd": 1.25, "input_tokens": 10, "output_tokens": 20}'),
    ("BATCH_BLOCKED", "a file to write: why a person must decide; so does exit status 125"),
)

_STORED = """\
refs/heads/batch/SLUG is the branch, with one commit a task. refs/notes/batch/BATCH\\-ID is the
record: its history has one commit a transition, its tree is read by git notes. Work of failed
attempts is kept below refs/batch/BATCH\\-ID/attempts/, their output in refs/batch/BATCH\\-ID/logs.
"""


def manpage() -> str:
    """Write the page in the man macros."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH GIT\\-BATCH 1 "" "git\\-batch {__version__}" "git\\-batch manual"'
    yield from (".SH NAME", f"git\\-batch \\- {_text(_first(cli))}")
    yield from (".SH SYNOPSIS", ".B git batch", ".I COMMAND", "[options] [arguments]")
    yield from (".SH DESCRIPTION", _text(_DESCRIPTION))
    yield ".SH COMMANDS"
    root = root_context()
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None
        yield from _command(command, f"git batch {name}", root)
    yield ".SH EXIT STATUS"
    yield from _definitions(EXIT_STATUSES)
    yield from (".SH ENVIRONMENT", "What the command of a task, and its checks, are given:")
    yield from _definitions(_ENVIRONMENT)
    yield from (".SH FILES", _STORED.strip())
    yield from (".SH SEE ALSO", ".BR git (1),", ".BR git\\-notes (1),")
    yield ".BR git\\-interpret\\-trailers (1)"


_DESCRIPTION = """\
A plan is a list of dependent tasks. Each task is a command: an AI coding agent with a prompt, a
codemod, a linter that fixes. git batch runs them one at a time, unattended, and makes one commit of
each that stays in its scope and passes its checks, on a branch of its own. What fails is kept and
explained. It can be killed at any moment and resumed.
"""


def root_context() -> click.Context:
    """Make what the contexts of all commands inherit from.

    click makes a command's help option once, from the first context that asks; one without these
    settings would take `-h` from it for the rest of the process.
    """
    return click.Context(cli, info_name="git batch", **cli.context_settings)


def _command(command: click.Command, path: str, above: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=path, parent=above)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f".SS {_text(usage)}"
    for n, paragraph in enumerate(_paragraphs(command)):
        yield from ([] if n == 0 else [".PP"])
        yield _text(paragraph)
    options = [p for p in command.params if isinstance(p, click.Option)]
    records = [option.get_help_record(context) for option in options]
    yield from _definitions(record for record in records if record is not None)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if not below.hidden:
                yield from _command(below, f"{path} {name}", context)


def _definitions(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, said in pairs:
        yield from (".TP", f".B {_text(term)}", _text(said) or "\\&")


def _paragraphs(command: click.Command) -> list[str]:
    text = inspect.cleandoc(command.help or "").split("\f", 1)[0]
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _first(command: click.Command) -> str:
    first = _paragraphs(command)[0].rstrip(".")
    return first[0].lower() + first[1:]


def _text(text: str) -> str:
    """Escape a text, one line of input a line; nothing in it can be a request."""
    lines = text.strip().replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in lines)


if __name__ == "__main__":
    sys.stdout.write(manpage())
