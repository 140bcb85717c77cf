"""The console script.

git's names and messages are UTF-8 whatever the locale says. Where Python would take them for
something else (`LC_ALL=C` with `PYTHONUTF8=0`, a Latin-1 locale) it is started again in its UTF-8
mode: that can't be had afterwards, and a plan's text must reach its commands unharmed.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False  # as `typing` has it, which takes its time
if TYPE_CHECKING:
    from typing import NoReturn

    from git_batch.app.reader import PlanReader


def main() -> None:
    """Run `git batch` and end with its exit status."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    _open_streams()
    # Imports make many objects and no garbage; a run turns the collector on again.
    gc.disable()
    try:
        status = _answer()
    except KeyboardInterrupt:
        # The command line says so itself, once it is there. What comes after that is the second
        # one: git has the terminal's Ctrl-C as well, and passes it on to us.
        if "git_batch.cli.main" not in sys.modules:
            sys.stderr.write("interrupted\n")
        status = 130
    _end(status)


def _end(status: int) -> NoReturn:
    """End the process without taking apart what was imported: that takes some milliseconds.

    Nothing waits for the interpreter's own end: contexts are left, what was said is flushed.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever wrote has said so, if it could be said
            stream.flush()
    os._exit(status)


def _open_streams() -> None:
    """Have the three standard streams, as a daemon or a cron job may not.

    What else we open would get their numbers, and be written into.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _answer() -> int:
    if sys.argv[1:3] == ["hooks", "run"] and sys.argv[3:4] not in ([], ["-h"], ["--help"]):
        from git_batch.cli import hookrun  # a push waits: not even click

        return hookrun.main(sys.argv[3:])
    if sys.argv[1:2] != ["start"]:
        return _command()
    from git_batch.app.reader import PlanReader

    with PlanReader().begin() as reader:  # first of all: it imports beside us
        return _command(reader)


def _command(reader: PlanReader | None = None) -> int:
    from git_batch.cli import main

    return main.main(reader=reader)


if __name__ == "__main__":
    main()
