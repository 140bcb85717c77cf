"""Printing: answers to stdout, progress to stderr, everything through the one escape function.

Whoever reads may go away (`git batch log | head`). That is their business: what runs goes on and
ends with the exit status that it would have had.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from git_batch.views.escape import json_text, printable, relayed_text

if TYPE_CHECKING:  # reading commands have no use for them, and must start fast
    from git_batch.app.session import Session
    from git_batch.core.events import Event
    from git_batch.core.model import BatchState

F = TypeVar("F", bound=Callable[..., object])


def json_option(command: F) -> F:
    """Add `--json` to a reading command."""
    option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    return option(command)


def told_session() -> Session:
    """Open the repository here; what is noted on the way is said on stderr."""
    from git_batch.app.session import open_session

    return open_session(note=Printer().note)


def out(text: str, *, in_vain: type[OSError] = BrokenPipeError) -> bool:
    """Print an answer for people; tell whether somebody still reads.

    Args:
        in_vain: the error after which nobody is told anything any more.
    """
    return _write(sys.stdout, printable(text.rstrip("\n")) + "\n", in_vain=in_vain)


def plain(text: str) -> None:
    """Print a file that is ours as it is."""
    _write(sys.stdout, text)


def emit(value: dict[str, Any]) -> None:
    """Print an answer for programs: one JSON object, ASCII only, so any locale will do."""
    _write(sys.stdout, json_text(value) + "\n")


def _write(stream: Any, text: str, *, in_vain: type[OSError] = BrokenPipeError) -> bool:
    """Write text whatever the locale says: UTF-8 if it can't be told otherwise."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    data = text.encode(encoding, "backslashreplace")
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode(encoding))
        return True
    try:
        stream.flush()
        buffer.write(data)
        buffer.flush()
    except in_vain:
        # A later flush, at the latest that of the interpreter at its end, must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


class Printer:
    """Says on stderr what goes on in a run."""

    def event(self, event: Event, state: BatchState) -> None:
        """Print a line for an event worth one."""
        from git_batch.views.show import progress_line

        line = progress_line(event, state)
        if line is not None:
            self.note(line)

    def note(self, text: str) -> None:
        """Print a line; a run goes on though its terminal is gone, or its log's disk is full."""
        _write(sys.stderr, printable(text) + "\n", in_vain=OSError)


class Relay:
    """Passes on to stderr what git says as it comes: what a remote says is in it.

    Attributes:
        terminal: whether a person sees it at a terminal.
    """

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def __call__(self, said: bytes) -> None:
        """Print a piece; an empty one is the end."""
        text = self._decoder.decode(said, final=not said)
        _write(sys.stderr, relayed_text(text, redraws=self.terminal), in_vain=OSError)
