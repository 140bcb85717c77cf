"""Whether a command runs, or ran, after which nothing was compared: for who must start fast.

The file that says so is `fencefile`'s. Each working tree has its own, but configuration and hooks
are shared, so that of the others counts where a run was killed there. A run that is at work there
compares by itself, and puts back: its command is nothing to anybody here.
"""

from __future__ import annotations

import os

from git_batch.repo.othertrees import git_dirs
from git_batch.repo.repository import Layout

ARMED = "fence.armed"


def is_armed(layout: Layout) -> bool:
    """Say whether a command was started here that nothing was compared after."""
    return os.path.lexists(os.path.join(layout.scratch, ARMED))


def is_suspect(layout: Layout) -> bool:
    """Say whether a task may have planted something, here or in another working tree."""
    return is_armed(layout) or bool(killed_elsewhere(layout))


def killed_elsewhere(layout: Layout) -> list[Layout]:
    """List the other working trees where a run was killed during a command that is not seen to.

    Of each only the git directory is known: where its files are is for `fencefile.load` to say.
    """
    others = (Layout("", one, layout.common_dir, "sha1") for one in sorted(git_dirs(layout)))
    return [other for other in others if was_killed(other)]


def was_killed(layout: Layout) -> bool:
    """Say whether a command was started there that nothing was, or will be, compared after."""
    if not is_armed(layout):
        return False
    from git_batch.repo.locks import live_in  # rarely needed

    # Asked again: a run that ended in between has compared.
    return live_in(layout) is None and is_armed(layout)
