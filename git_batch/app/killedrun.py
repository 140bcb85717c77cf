"""A run that was killed while a command ran: whose command, and which files are not as they were.

The comparison only reads, and can be made from any working tree of the repository.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from git_batch.core.ids import BATCH_ID
from git_batch.core.naming import few_lines
from git_batch.core.scope import Scope
from git_batch.repo.fence import Watch, named
from git_batch.repo.fencefile import Armed

LISTED = 20
"""How many paths are named."""


class KilledRun(Struct, frozen=True):
    """A run that was killed while a command ran."""

    armed: Armed
    watch: Watch

    def changed(self) -> list[str]:
        """List the watched paths that are not as they were, folders before what is in them.

        Hooks in the task's scope are its work.
        """
        scope = Scope(self.armed.scope)
        found = [path for path in self.watch.changed() if not self.watch.is_linked_tree(path)]
        hooks = {path: self.watch.hook_in_tree(path) for path in found}
        return [p for p in found if (hook := hooks[p]) is None or not scope.match(hook)]

    @property
    def batch(self) -> str | None:
        """The batch that it is of; None if that was not written to its end."""
        armed = self.armed
        return armed.batch if armed.task and BATCH_ID.match(armed.batch) else None

    @property
    def whose(self) -> str:
        """Whose command it was, in words."""
        return f"'{self.armed.task}' of batch '{self.batch}'" if self.batch else "a task"

    def listing(self, found: Sequence[str], top: str) -> str:
        """Name paths with what became of them, each on a line, as of the top of a working tree."""
        lines = [f"{named(path, top)} ({self.watch.change(path)})" for path in found]
        return few_lines(lines, LISTED)
