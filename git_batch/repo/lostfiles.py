"""Files of git's that can't be read, out of its way: what is in them may still tell something."""

from __future__ import annotations

import os

from git_batch.repo.repository import Repository


def set_aside(repo: Repository, path: str) -> str | None:
    """Move a file that can't be read out of the way; say where it is now, None if it is gone."""
    folder = os.path.join(repo.layout.common_dir, "batch", "unreadable")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    aside = next(
        place
        for n in range(1, 10_000)
        if not os.path.lexists(place := os.path.join(folder, f"{os.path.basename(path)}.{n}"))
    )
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return None
    return aside
