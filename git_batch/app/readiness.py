"""Before a batch goes on: its files are where its record says, or can be brought there.

What is known of the files depends on the record alone. While nothing is in flight, and between two
attempts, they are as the branch's tip; once a task is settled they are as its commit will be. What
differs from that was done by a person, or by whatever else works here, and is refused: the run
would take it for a task's work. In the middle of an attempt nobody can tell, and all that differs
is kept as the attempt's.

Files may also *lag behind*: somebody put a settled task's work away (`git stash`, `git checkout`),
or a crash came before they followed. Those still are as they were before, so nothing can be lost
of them, and they are brought to where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from git_batch.app import preconditions
from git_batch.app.session import Session
from git_batch.core.codec import quote
from git_batch.core.ids import Oid
from git_batch.core.model import BatchState
from git_batch.core.standing import Phase
from git_batch.repo.repository import Dirt
from git_batch.repo.restore import restore
from git_batch.repo.trees import diff
from git_batch.repo.worktree import Scanner
from git_batch.run.lineage import is_made

_NAMED = 5

Note = Callable[[str], None]


def refuse_unknown(session: Session, state: BatchState, excluded: Sequence[bytes]) -> None:
    """Refuse what no task has changed, where the files have to be as the branch's tip.

    Args:
        excluded: untracked paths of the person's.

    Raises:
        PreconditionError: there is something; it is named.
    """
    if between_attempts(state):
        preconditions.refuse_dirt(preconditions.still_clean(session, excluded))


def between_attempts(state: BatchState) -> bool:
    """Tell whether no task's work is in the files."""
    return state.in_flight is None or state.in_flight.phase is Phase.READY


def settle_files(
    session: Session, state: BatchState, excluded: Sequence[bytes], note: Note
) -> None:
    """See that the files are as a settled task's commit; put back what lags behind.

    Where somebody moved the branch the commit has no place any more: the run keeps the work.

    Args:
        excluded: untracked paths of the person's.

    Raises:
        PreconditionError: something else was changed; it is named.
    """
    flight = state.in_flight
    if flight is None or flight.phase is not Phase.SETTLED:
        return
    assert flight.tree is not None
    tip = session.refs.read(f"refs/heads/{state.branch}")
    if tip == flight.parent:
        bring(session, excluded, flight.tree, session.repo.tree_of(flight.parent), note)
    elif is_made(session.repo, flight, tip):
        bring(session, excluded, flight.tree, flight.tree, note)


def bring(session: Session, excluded: Sequence[bytes], tree: Oid, before: Oid, note: Note) -> None:
    """Bring files to a tree if all that differ from it are as in the tree `before`.

    Raises:
        PreconditionError: one is as in neither; nothing was changed.
    """
    scanner, objects = Scanner(session.repo, excluded), session.repo.objects
    behind = {(c.path, c.new_mode, c.new_oid) for c in diff(objects, tree, before)}
    scanner.begin(tree)
    found = diff(objects, tree, scanner.scan())
    unknown = [c.path for c in found if (c.path, c.new_mode, c.new_oid) not in behind]
    preconditions.refuse_dirt(Dirt((), (*unknown, *scanner.problems)))
    if not found:
        return
    done = restore(scanner, tree, before, attempt=False)
    preconditions.refuse_dirt(Dirt((), tuple(done.left)))
    named = ", ".join(f"'{quote(c.path)}'" for c in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    note(f"put back as the record says: {named}{more}")
