"""The git directories of a repository's other working trees, by a look into a folder or two.

They lie in `worktrees/` of the directory that all share, which is the main one's own
(gitrepository-layout(5)). A linked one says in a file which directory it shares; where it lies says
so, too, and no task can write that: both count.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git_batch.repo.repository import Layout

WORKTREES = "worktrees"
"""The folder that has an entry, its git directory, for each linked working tree."""


def git_dirs(layout: Layout) -> set[str]:
    """Name the git directories of the other working trees; some may be none, or gone."""
    own, mains = layout.git_dir, {layout.common_dir}
    if own != layout.common_dir:
        mains.add(shared_by_place(own))
    return {*mains, *(one for main in mains for one in entries(main))} - {own}


def shared_by_place(own: str) -> str:
    """Name the directory that a working tree shares, by where its own git directory lies."""
    main, folder = os.path.split(os.path.dirname(own))
    return main if folder == WORKTREES else own


def entries(main: str) -> list[str]:
    """List the git directories of the linked working trees; none if they can't be listed."""
    folder = os.path.join(main, WORKTREES)
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []
