"""What of the documentation is made from the program: the man page, and README's two tables.

`python -m tests.docs` (`make docs`) writes it; `tests/test_house.py` compares it.
"""

from __future__ import annotations

from pathlib import Path

import click

from git_batch.cli.main import COMMANDS, cli
from git_batch.cli.manpage import EXIT_STATUSES, manpage, root_context

TOP = Path(__file__).resolve().parent.parent
README = TOP / "README.md"
PAGE = TOP / "git_batch" / "_data" / "git-batch.1"


def between(text: str, name: str, new: str) -> str:
    """Put a text between the two marks of a name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{new}\n{end}{after}"


def commands() -> str:
    """Write the table of commands."""
    lines = ["| command | does |", "|---|---|"]
    root = root_context()
    for name, (_, short) in COMMANDS.items():
        command = cli.get_command(root, name)
        assert command is not None
        pieces = command.collect_usage_pieces(click.Context(command, parent=root))
        usage = " ".join(["git batch", name, *(p for p in pieces if p != "[OPTIONS]")])
        lines.append(f"| `{usage.replace('|', chr(92) + '|')}` | {short} |")
    return "\n".join(lines) + "\n"


def statuses() -> str:
    """Write the table of exit statuses."""
    lines = ["| status | of `start` and `resume` |", "|---|---|"]
    return "\n".join([*lines, *(f"| {n} | {said} |" for n, said in EXIT_STATUSES)]) + "\n"


def readme() -> str:
    """Write README anew, as it should be."""
    text = README.read_text(encoding="utf-8")
    return between(between(text, "commands", commands()), "exit statuses", statuses())


if __name__ == "__main__":
    README.write_text(readme(), encoding="utf-8")
    PAGE.write_text(manpage(), encoding="utf-8")
