"""A process that writes the record of a batch of its own, and other refs, as fast as it can.

It begins when it is told to, and says the ids of its events when they are all published.
"""

from __future__ import annotations

import sys
from pathlib import Path

from git_batch.core import events as ev
from git_batch.core.ids import BatchId, Oid
from git_batch.core.model import BatchState
from tests.repo.recorded import RecordedWorld
from tests.world import plan, task


class Writer(RecordedWorld):
    """A world in which each commit is told by a ref that is made, moved and deleted again."""

    def record(self, event: ev.Event) -> tuple[BatchState, Oid]:
        state, oid = super().record(event)
        if isinstance(event, ev.Committed):
            name = f"refs/batch/{self.batch}/attempts/{event.task}/1"
            self.refs.swap(name, None, self.base, "made")
            self.refs.swap(name, self.base, event.commit, "moved")
            self.refs.delete(name, event.commit)
        return state, oid


def main(path: str, batch: str, events: int) -> None:
    """Write so many events, or a few more."""
    world = Writer(Path(path), plan(*(task(f"t{i}") for i in range(events // 5))))
    world.batch = BatchId(batch)
    print("ready", flush=True)
    sys.stdin.readline()
    world.run()
    world.publish()
    print(" ".join(oid for _, oid in world.log))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
