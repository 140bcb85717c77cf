"""Ask a person at the terminal whether something is to be done."""

from __future__ import annotations

import sys

from git_batch.cli.output import out
from git_batch.errors import PreconditionError
from git_batch.run.interrupt import ended_at_once


def ask(question: str, *, yes: bool) -> bool:
    """Have a person confirm.

    Returns:
        Whether they were asked; not with `yes`.

    Raises:
        PreconditionError: they did not, or there is nobody to ask.
    """
    if yes:
        return False
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PreconditionError(
            "nobody confirmed: there is no terminal to ask on", "confirm beforehand with '--yes'"
        )
    with ended_at_once():
        agreed = _agreed(question)
    if not agreed:
        raise PreconditionError("not confirmed, so nothing was written")
    return True


def _agreed(question: str) -> bool:
    """Ask until the answer is a yes or a no; the end of the input is a no."""
    while True:
        try:
            answer = input(f"{question} [y/N]: ").strip().casefold()
        except EOFError:
            out("")
            return False
        except UnicodeDecodeError:
            answer = "?"
        if answer in ("", "n", "no", "y", "yes"):
            return answer.startswith("y")
        out("please answer with y or n")
