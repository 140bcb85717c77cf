"""Repositories in every state that a batch can be in: each is made once, by real runs, and copied.

A run takes a tenth of a second and a copy a millisecond, so what costs here is paid by the first
test that asks for a state.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.conftest import git
from tests.e2e.job import batch, here, task, write
from tests.e2e.near import PASSED, while_it_passes

TASKS = (
    task("done", "echo one >src/one", 'check = "true"'),
    task("stuck", "echo why; exit 3"),
    task("behind", "echo two >src/two", 'blocked_by = ["stuck"]'),
    task("same", "true", 'on_empty = "accept"'),
    task("stray", "echo x >README", "attempts = 1"),
)
STATES = (
    "none", "completed", "needs_human", "budget", "expired", "limit", "review", "crashed",
    "foreign", "failed", "abandoned", "decided",
)  # fmt: skip


def needs_human(top: Path) -> None:
    write(top, *TASKS)
    here(top, "start", "--yes", status=1)


def completed(top: Path) -> None:
    write(top, TASKS[0])
    here(top, "start", "--yes")


def budget(top: Path) -> None:
    write(top, *TASKS)
    here(top, "start", "--yes", "--max-tasks", "1", status=1)


def expired(top: Path) -> None:
    write(top, *TASKS)
    with while_it_passes(top):
        here(top, "start", "--yes", "--expires", PASSED, status=1)


def limit(top: Path) -> None:
    write(top, task("bad", "echo >src/x", 'check = "false"'), TASKS[0])
    here(top, "start", "--yes", "--qa-failures", "2", status=1)


def review(top: Path) -> None:
    write(top, task("seen", "echo one >src/one", 'review = "human"'))
    here(top, "start", "--yes", status=1)


def crashed(top: Path) -> None:
    """A task kills the run that it belongs to: nobody is left to write anything."""
    write(
        top,
        TASKS[0],
        task("killer", "echo half >src/half; test $BATCH_ATTEMPT -gt 1 || kill -9 $PPID"),
        TASKS[1],
    )
    batch(top, "start", "--yes", status=-9)


def foreign(top: Path) -> None:
    budget(top)
    git(top, "commit", "-q", "--allow-empty", "-m", "mine")
    here(top, "resume", "--yes", "--max-tasks", "9", status=1)


def failed(top: Path) -> None:
    budget(top)
    git(top, "reset", "-q", "--hard", "HEAD~1")
    here(top, "resume", "--yes", "--max-tasks", "9", status=4)


def abandoned(top: Path) -> None:
    needs_human(top)
    here(top, "abandon", "-m", "enough")


def decided(top: Path) -> None:
    needs_human(top)
    here(top, "retry", "stuck", "-m", "try harder")
    here(top, "skip", "stray")


_MAKE: dict[str, Callable[[Path], None]] = {
    f.__name__: f
    for f in (
        needs_human, completed, budget, expired, limit, review, crashed, foreign, failed, abandoned,
        decided,
    )
}  # fmt: skip


class Shelf:
    """Keeps a repository in each state that was asked for."""

    def __init__(self, folder: Path, template: Path) -> None:
        self._folder, self._template = folder, template

    def copy(self, state: str, to: Path) -> Path:
        """Copy a repository in a state; made if it is not here yet."""
        kept = self._folder / state
        if not kept.exists():
            shutil.copytree(self._template, kept, symlinks=True)
            if state != "none":
                _MAKE[state](kept)
            # One pack instead of a hundred folders: three quarters of what a copy costs.
            git(kept, "repack", "-adq")
            for folder in kept.glob(".git/objects/??"):
                if not any(folder.iterdir()):
                    folder.rmdir()
        shutil.copytree(kept, to, symlinks=True)
        return to
