"""How a person puts files away that are in a batch's way, and nothing but those.

A plain `git stash -u` would take along what nobody minds: the plan, files that were accepted.
Whatever is named is a command that works from the directory where the person is.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Set

from git_batch.repo.repository import Dirt, Repository

_NAMED = 10
_MAGIC = frozenset("*?[\\")


def ways(repo: Repository, paths: Iterable[bytes], then: str | None = None) -> tuple[str, ...]:
    """Say what a person can do about paths that are in the way, as hints.

    Args:
        then: the command that goes on afterwards.
    """
    command = _command(repo, set(paths), repo.dirty())
    away = "move them out of the way" if command is None else f"put them away: {command}"
    way = f"commit them elsewhere, or {away}"
    return (way,) if then is None else (way, f"then go on: {then}")


def unstaging(repo: Repository, paths: Iterable[bytes]) -> str:
    """Say how files are taken out of the index again that were only added, as a hint."""
    named = shlex.join(_shown([_pathspec(repo.layout.top, path) for path in sorted(paths)]))
    return f"leave untracked what was accepted so: git reset --quiet -- {named}"


def _command(repo: Repository, paths: Set[bytes], dirt: Dirt) -> str | None:
    """Give the command that stashes just these; None if git would not, as it ignores one."""
    tracked = paths & {entry.path for entry in dirt.tracked}
    others = sorted(paths - tracked)
    if not others:
        return "git stash"
    folders = tuple(path for path in dirt.untracked if path.endswith(b"/"))
    if not all(path in dirt.untracked or path.startswith(folders) for path in others):
        return None
    named = [_pathspec(repo.layout.top, path) for path in others]
    apart = f"git stash push -u -- {shlex.join(_shown(named))}"
    return f"git stash && {apart}" if tracked else apart


def _shown(named: list[str]) -> list[str]:
    typed = len(named) <= _NAMED and all(name.isprintable() for name in named)
    return named if typed else ["PATH..."]  # what they are stands above


def _pathspec(top: str, path: bytes) -> str:
    """Name a path as it is called from here."""
    name = os.path.relpath(os.path.join(os.path.realpath(top), os.fsdecode(path)))
    return f":(literal){name}" if name.startswith(":") or _MAGIC & set(name) else name
