"""Hooks in words: what was done to each, and whether git runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from git_batch.core.naming import path_text
from git_batch.views.common import VERSION, rows
from git_batch.views.escape import one_line


class Place(Protocol):
    """Where git looks for hooks."""

    @property
    def directory(self) -> str:
        """The directory."""

    @property
    def configured(self) -> str | None:
        """The value of `core.hooksPath`."""

    @property
    def scope(self) -> str:
        """Which configuration sets it."""


class Hook(Protocol):
    """How one hook stands."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def active(self) -> bool:
        """Whether git runs it."""

    @property
    def reason(self) -> str:
        """Why not, or by what."""


class Standing(Protocol):
    """How all of them stand."""

    @property
    def place(self) -> Place:
        """Where git looks."""

    @property
    def hooks(self) -> Sequence[Hook]:
        """Each of ours."""


def put_text(done: Mapping[str, Enum]) -> str:
    """Say what was done to each hook."""
    if not done:
        return "no hook of git-batch is there"
    return "\n".join(rows((name, str(what.value)) for name, what in done.items()))


def place_text(place: Place) -> str:
    """Say where git looks for hooks."""
    set_by = f" (core.hooksPath, {place.scope})" if place.configured is not None else ""
    return f"git looks for hooks in '{path_text(place.directory)}'{set_by}"


def hooks_text(standing: Standing) -> str:
    """Say whether git runs each hook."""
    said = []
    for hook in standing.hooks:
        state = "active" if hook.active else "not active"
        said.append((hook.name, f"{state}: {one_line(hook.reason)}" if hook.reason else state))
    lines = [place_text(standing.place), *rows(said)]
    if not all(hook.active for hook in standing.hooks):
        lines.append("put them in place: git batch hooks install")
    return "\n".join(lines)


def hooks_json(standing: Standing) -> dict[str, Any]:
    """Say the same for programs."""
    return {
        "version": VERSION,
        "directory": standing.place.directory,
        "core_hooks_path": standing.place.configured,
        "scope": standing.place.scope or None,
        "hooks": [
            {"name": h.name, "active": h.active, "reason": h.reason or None} for h in standing.hooks
        ],
    }
