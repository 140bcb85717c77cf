"""What a run says while it goes on; the loop and the performer only know this interface."""

from __future__ import annotations

from typing import Protocol

from git_batch.core.events import Event
from git_batch.core.model import BatchState


class Progress(Protocol):
    """Is told of every event and of what a person should notice at once."""

    def event(self, event: Event, state: BatchState) -> None:
        """Tell an event that was recorded, with the state it led to."""

    def note(self, text: str) -> None:
        """Tell something that is no event; the text may hold anything and is not escaped yet."""


class Silent:
    """Says nothing."""

    def event(self, event: Event, state: BatchState) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
