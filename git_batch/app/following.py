"""Files, index and branch follow where a recorded decision put the head (undo, rebase).

The record comes first, since it keeps the commits alive, the branch last. A crash in between is
rolled forward by whoever opens the batch next: the record says where the branch has to be, and the
branch is still where it was before, which nothing but such a crash (or a person who put it back
there) explains.
"""

from __future__ import annotations

from collections.abc import Sequence

from git_batch.app import preconditions
from git_batch.app.session import Session, called
from git_batch.core import trailers
from git_batch.core.chain import ref_name
from git_batch.core.ids import Oid
from git_batch.core.lineage import BEYOND, FOREIGN, back_to
from git_batch.core.model import BatchState, accepted
from git_batch.core.naming import few_paths
from git_batch.core.values import replace
from git_batch.errors import DriftError, PreconditionError
from git_batch.repo import commits, lineage
from git_batch.repo.linked import told_here
from git_batch.repo.occupied import occupied
from git_batch.repo.restore import restore
from git_batch.repo.worktree import Scanner
from git_batch.run.lineage import drift_here, drift_of
from git_batch.views.addressing import addressed


def must_not_drift(session: Session, state: BatchState) -> None:
    """See that the branch is where the record ends.

    Raises:
        PreconditionError: it is not; by the name of the drift.
    """
    drift = drift_here(session.repo, session.refs, state)
    if drift is not None:
        way = addressed(drift.way_out, called(session, state.batch_id))
        raise PreconditionError(f"{drift.kind}: {drift.detail}", way)


def must_not_be_behind(session: Session, state: BatchState) -> None:
    """See that the branch holds nothing that a newer record than the one here may have made.

    A record that goes on from where it stands parts from the newer one, and none takes the other
    over again.

    Raises:
        DriftError: it does; nothing was written.
    """
    drift = drift_of(session.repo, session.refs, state, state.head, state.in_flight)
    if drift is None or drift.kind != FOREIGN or drift.commit is None:
        return
    git, here = session.repo.git, session.refs.read(ref_name(state.batch_id))
    found = lineage.verdict(git, tip=drift.commit, batch=state.batch_id, record_tip=here)
    for beyond in found.drifts:
        if beyond.kind == BEYOND:
            back = replace(beyond, way_out=back_to(state.branch, state.head, drift.commit))
            raise DriftError(
                f"{beyond.kind}: {beyond.detail}",
                beyond.way_out,
                f"or, if they are forged, put them aside: {told_here(git, back).way_out}",
            )


def must_be_ready(session: Session, state: BatchState) -> None:
    """See that branch and files can follow: checked out, where the record ends, nothing changed.

    Raises:
        PreconditionError: that is not so, by the name of the drift if there is one; nothing was
            written.
    """
    preconditions.no_operation(session)
    must_not_drift(session, state)
    preconditions.on_branch(session, state.branch, f"this changes the files of '{state.branch}'")
    excluded = accepted(state.authorization)
    preconditions.refuse_dirt(session, preconditions.still_clean(session, excluded), excluded)


def nothing_in_the_way(session: Session, old: Oid, new: Oid) -> None:
    """See that no file that git ignores, or that was accepted, has to make room for a commit's.

    Raises:
        PreconditionError: one would; nothing was written.
    """
    tree_of = session.repo.tree_of
    found = occupied(session.repo, tree_of(old), tree_of(new))
    if found:
        raise PreconditionError(
            f"files that git does not track are in the way of {new[:12]}: {few_paths(found, 5)}",
            "move them elsewhere first",
        )


def follow(session: Session, state: BatchState) -> None:
    """Bring files, index and branch to the recorded head, if a decision has put it there."""
    name = f"refs/heads/{state.branch}"
    tip = session.refs.read(name)
    if tip is None or tip == state.head or session.repo.symbolic_head() != name:
        return
    if not (_rebased(state, tip) or _undone(session, state, tip)):
        return
    bring(session, state.branch, tip, state.head, accepted(state.authorization))


def bring(session: Session, branch: str, old: Oid, new: Oid, excluded: Sequence[bytes]) -> None:
    """Bring files, index and then the branch, which is checked out, from one commit to another.

    Args:
        excluded: untracked paths of the person's.
    """
    tree_of = session.repo.tree_of
    restore(Scanner(session.repo, excluded), tree_of(new), tree_of(old), attempt=False)
    session.refs.swap(f"refs/heads/{branch}", old, new, "follow the record")


def _rebased(state: BatchState, tip: Oid) -> bool:
    """Tell whether a branch is where it was before a rebase since which nothing was committed."""
    return bool(state.former) and tip == state.former[-1].head and state.head == state.base


def _undone(session: Session, state: BatchState, tip: Oid) -> bool:
    """Tell whether nothing but commits of undos lies between a branch's tip and the head."""
    oid = state.head
    while oid != tip:
        facts = commits.read(session.repo, oid)
        if trailers.UNDO not in (trailers.ours(facts.message) or {}) or len(facts.parents) != 1:
            return False
        oid = facts.parents[0]
    return True
