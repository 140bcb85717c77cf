"""How a person puts files away that are in a batch's way, and nothing but those.

A plain `git stash -u` would take along what nobody minds: the plan, files that were accepted.
Whatever is named is a command that works from the directory where the person is.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Set

from git_batch.repo.repository import Dirt, Repository
from git_batch.repo.status import Entry

_NAMED = 10
_MAGIC = frozenset("*?[\\")


def ways(repo: Repository, paths: Iterable[bytes], then: str | None = None) -> tuple[str, ...]:
    """Say what a person can do about paths that are in the way, as hints.

    Args:
        then: the command that goes on afterwards.
    """
    way = f"commit them elsewhere, or {away(repo, set(paths), repo.dirty())}"
    return (way,) if then is None else (way, f"then go on: {then}")


def away(repo: Repository, paths: Set[bytes], dirt: Dirt) -> str:
    """Say how paths are put away, as the end of a hint."""
    command = _command(repo, paths, dirt)
    return "move them out of the way" if command is None else f"put them away: {command}"


def unstaging(repo: Repository, paths: Iterable[bytes]) -> str:
    """Say how files are taken out of the index again that were only added, as a hint."""
    named = shlex.join(_shown([_pathspec(repo.layout.top, path) for path in sorted(paths)]))
    return f"leave untracked what was accepted so: git reset --quiet -- {named}"


def _command(repo: Repository, paths: Set[bytes], dirt: Dirt) -> str | None:
    """Give the command that stashes just these; None if git would not.

    It refuses what it ignores, and all on a branch that has no commit.
    """
    if repo.git.commit_named("HEAD") is None:
        return None
    tracked = [entry for entry in dirt.tracked if entry.path in paths]
    modules = [entry for entry in tracked if entry.submodule is not None and entry.staged == "."]
    others = sorted(paths - {entry.path for entry in tracked})
    folders = tuple(path for path in dirt.untracked if path.endswith(b"/"))
    if not all(path in dirt.untracked or path.startswith(folders) for path in others):
        return None
    steps = [step for entry in modules for step in _in_module(repo, entry)]
    if len(tracked) > len(modules):
        steps.insert(0, "git stash")
    if others:
        named = [_pathspec(repo.layout.top, path) for path in others]
        steps.append(f"git stash push -u -- {shlex.join(_shown(named))}")
    return " && ".join(steps) or "git stash"


def _in_module(repo: Repository, entry: Entry) -> Iterator[str]:
    """Give what brings a submodule to what is recorded of it: a stash does not look into one."""
    assert entry.submodule is not None
    (place,) = _shown([_relative(repo.layout.top, entry.path)])
    if entry.changed_inside:
        yield f"git -C {shlex.quote(place)} stash -u"
    if "C" in entry.submodule:
        yield f"git -C {shlex.quote(place)} checkout -q --detach {entry.oid}"


def _shown(named: list[str]) -> list[str]:
    typed = len(named) <= _NAMED and all(name.isprintable() for name in named)
    return named if typed else ["PATH..."]  # what they are stands above


def _pathspec(top: str, path: bytes) -> str:
    """Name a path as it is called from here, to git."""
    name = _relative(top, path)
    return f":(literal){name}" if name.startswith(":") or _MAGIC & set(name) else name


def _relative(top: str, path: bytes) -> str:
    return os.path.relpath(os.path.join(os.path.realpath(top), os.fsdecode(path)))
