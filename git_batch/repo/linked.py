"""The other working trees of the repository."""

from __future__ import annotations

import os

from msgspec import Struct

from git_batch.core.lineage import Drift, by_way_of, switch_to
from git_batch.core.naming import shell_path
from git_batch.repo.git import Git


class Tree(Struct, frozen=True):
    """A working tree; `gone`: it was removed, or is on a disk that is not here."""

    path: str
    gone: bool


def elsewhere(git: Git, ref: str) -> Tree | None:
    """Find the other working tree that has a branch checked out, if this one does not."""
    if git.call(["symbolic-ref", "--quiet", "HEAD"]).stdout.rstrip(b"\n") == os.fsencode(ref):
        return None
    listed = os.fsdecode(git.run(["worktree", "list", "--porcelain", "-z"]))
    for block in listed.split("\0\0"):
        facts = dict(line.partition(" ")[::2] for line in block.split("\0"))
        if facts.get("branch") == ref:
            return Tree(facts["worktree"], not os.path.isdir(facts["worktree"]))
    return None


def way_to(branch: str, there: Tree | None) -> str:
    """Give the command after which one stands where a branch is checked out.

    Args:
        there: the other working tree that has it: git would refuse to switch.
    """
    if there is None:
        return switch_to(branch)
    if there.gone:
        return switch_to(branch, "--ignore-other-worktrees")
    return f"cd {shell_path(there.path)}"


def told_here(git: Git, drift: Drift) -> Drift:
    """Have a drift's way out work in this working tree, whichever has the branch."""
    return by_way_of(drift, lambda branch: way_to(branch, elsewhere(git, f"refs/heads/{branch}")))
