"""The other working trees of the repository."""

from __future__ import annotations

import os

from git_batch.repo.repository import Repository


def elsewhere(repo: Repository, ref: str) -> str | None:
    """Name the other working tree that has a branch checked out, if one has."""
    listed = os.fsdecode(repo.git.run(["worktree", "list", "--porcelain", "-z"]))
    for block in listed.split("\0\0"):
        facts = dict(line.partition(" ")[::2] for line in block.split("\0"))
        if facts.get("branch") == ref and facts["worktree"] != repo.layout.top:
            return facts["worktree"]
    return None
