"""Printing: answers to stdout, progress to stderr, everything through the one escape function."""

from __future__ import annotations

import sys
from typing import Any

from git_batch.core.events import Event
from git_batch.core.model import BatchState
from git_batch.views.escape import json_text, printable


def out(text: str) -> None:
    """Print an answer for people."""
    _write(sys.stdout, printable(text.rstrip("\n")) + "\n")


def emit(value: dict[str, Any]) -> None:
    """Print an answer for programs: one JSON object, ASCII only, so any locale will do."""
    _write(sys.stdout, json_text(value))


def _write(stream: Any, text: str) -> None:
    """Write text whatever the locale says: UTF-8 if it can't be told otherwise."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    data = text.encode(encoding, "backslashreplace")
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode(encoding))
    else:
        stream.flush()
        buffer.write(data)
        buffer.flush()


class Printer:
    """Says on stderr what goes on in a run."""

    def event(self, event: Event, state: BatchState) -> None:
        """Print a line for an event worth one."""
        from git_batch.views.show import progress_line

        line = progress_line(event, state)
        if line is not None:
            self.note(line)

    def note(self, text: str) -> None:
        """Print a line."""
        _write(sys.stderr, printable(text) + "\n")
