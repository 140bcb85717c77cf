"""Which git operation is half done here: a merge, a rebase, a conflict that nobody has resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

from git_batch.core.naming import few_paths
from git_batch.repo.repository import Dirt, Repository

_NAMED = 5


class Operation(Struct, frozen=True):
    """A git operation that is half done: its name, and how it is ended."""

    name: str
    hints: tuple[str, ...]


def places(git_dir: str) -> list[str]:
    """Name the files and folders by which git knows what is half done in a working tree."""
    return [os.path.join(git_dir, mark) for _, marks, _ in _OPERATIONS for mark in marks]


def in_progress(repo: Repository) -> Operation | None:
    """Name the merge, rebase, … that is half done, or None; a conflict alone is none."""
    for name, marks, hints in _OPERATIONS:
        if any(os.path.exists(os.path.join(repo.layout.git_dir, mark)) for mark in marks):
            return Operation(name, hints)
    return None


def conflict(repo: Repository) -> Operation | None:
    """Name a conflict that is not resolved, or None; without a scan of the working tree."""
    unmerged = repo.git.run(["ls-files", "--unmerged", "-z"])
    return _conflict(line.split(b"\t", 1)[1] for line in unmerged.split(b"\0") if line)


def conflict_in(dirt: Dirt) -> Operation | None:
    """Name a conflict that a scan has found, or None."""
    return _conflict(entry.path for entry in dirt.tracked if entry.unmerged)


def _conflict(paths: Iterable[bytes]) -> Operation | None:
    names = few_paths(sorted(set(paths)), _NAMED)
    if not names:
        return None
    return Operation("unresolved conflict", (f"resolve {names}, then 'git add' and 'git commit'",))


_OPERATIONS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "am",
        ("rebase-apply/applying",),
        ("finish it with 'git am --continue'; 'git status' shows the other ways",),
    ),
    (
        "rebase",
        ("rebase-merge", "rebase-apply"),
        ("finish it with 'git rebase --continue'; 'git status' shows the other ways",),
    ),
    (
        "merge",
        ("MERGE_HEAD",),
        ("finish it with 'git merge --continue'; 'git status' shows the other ways",),
    ),
    (
        "cherry-pick",
        ("CHERRY_PICK_HEAD",),
        ("finish it with 'git cherry-pick --continue'; 'git status' shows the other ways",),
    ),
    (
        "revert",
        ("REVERT_HEAD",),
        ("finish it with 'git revert --continue'; 'git status' shows the other ways",),
    ),
    (
        "sequence of picks or reverts",
        ("sequencer/todo",),
        ("'git status' shows how to finish it",),
    ),
    ("bisect", ("BISECT_LOG",), ("end it with 'git bisect reset'",)),
)
"""First match wins: a rebase that stopped at a pick has `CHERRY_PICK_HEAD` as well."""
