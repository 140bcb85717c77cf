"""Whether a command runs, or ran, after which nothing was compared: for who must start fast.

The file that says so is `fencefile`'s.
"""

from __future__ import annotations

import os

from git_batch.repo.repository import Layout

ARMED = "fence.armed"


def is_armed(layout: Layout) -> bool:
    """Say whether a command was started here that nothing was compared after."""
    return os.path.lexists(os.path.join(layout.scratch, ARMED))
