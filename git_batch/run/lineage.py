"""The branch against the record: has somebody moved it, and is what was decided made already?"""

from __future__ import annotations

from git_batch.core import trailers
from git_batch.core.ids import Oid
from git_batch.core.lineage import FOREIGN, Drift
from git_batch.core.model import BatchState, InFlight
from git_batch.core.tip import Header
from git_batch.core.tips import is_settled, tips_differ
from git_batch.repo import commits
from git_batch.repo.linked import told_here
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository


def drift_of(
    repo: Repository,
    refs: Refs,
    batch: BatchState | Header,
    head: Oid,
    flight: InFlight | None,
) -> Drift | None:
    """Compare a branch's tip with the head that the record expects; errors as of `tips_differ`."""
    tip = refs.read(f"refs/heads/{batch.branch}")
    return tips_differ(lambda oid: commits.read(repo, oid), batch, tip, head, flight)


def drift_here(repo: Repository, refs: Refs, state: BatchState) -> Drift | None:
    """Compare as `drift_of`, for a person: the way out works where they stand."""
    drift = drift_of(repo, refs, state, state.head, state.in_flight)
    return told_here(repo.git, drift) if drift else None


def ground_of(repo: Repository, refs: Refs, state: BatchState) -> Oid:
    """Name the commit that the files stand on: what a person put on top is in them, too."""
    found = drift_of(repo, refs, state, state.head, state.in_flight)
    if found is None or found.kind != FOREIGN or found.commit is None:
        return state.head
    checked_out = repo.symbolic_head() == f"refs/heads/{state.branch}"
    return found.commit if checked_out else state.head


def is_made(repo: Repository, flight: InFlight | None, tip: Oid | None) -> bool:
    """Tell whether a branch's tip is the settled commit to the last byte, made before a crash."""
    if flight is None or tip is None or tip == flight.parent:
        return False
    facts = commits.read(repo, tip)
    return is_settled(lambda _: facts, flight, tip) and facts.message == message_of(flight)


def message_of(flight: InFlight) -> bytes:
    """Give the whole message of the settled commit: its last trailer names the event."""
    assert flight.settled
    assert flight.message
    return trailers.with_trailers(flight.message, [(trailers.RECORD, flight.settled)])
