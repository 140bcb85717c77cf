"""Ask a person at the terminal whether something is to be done."""

from __future__ import annotations

import select
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
    with ended_at_once() as interrupted:
        agreed = _agreed(question, interrupted)
    if not agreed:
        raise PreconditionError("not confirmed, so nothing was written")
    return True


def _agreed(question: str, interrupted: int) -> bool:
    """Ask until the answer is a yes or a no; the end of the input is a no."""
    while True:
        # The terminal gives whole lines. To read at once would miss a signal that comes before.
        print(f"{question} [y/N]: ", end="", flush=True)
        select.select([sys.stdin, interrupted], [], [])
        line = sys.stdin.buffer.readline().decode("utf-8", "replace")
        if not line:
            out("")
            return False
        answer = line.strip().casefold()
        if answer in ("", "n", "no", "y", "yes"):
            return answer.startswith("y")
        out("please answer with y or n")
