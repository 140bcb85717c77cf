"""Before a batch goes on: its files are where its record says, or can be brought there.

What is known of the files depends on the record alone. While nothing is in flight, and between two
attempts, they are as the branch's tip; once a task is settled they are as its commit will be. What
differs from that was done by a person, or by whatever else works here, and is refused: the run
would take it for a task's work. In the middle of an attempt nobody can tell, and all that differs
is kept as the attempt's.

Files may also *lag behind*: somebody put a settled task's work away (`git stash`, `git checkout`),
or a crash came after a person's fix was recorded as a task's work and before it was put away. What
is in those is kept elsewhere, so nothing can be lost of them, and they are brought to where they
belong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from git_batch.app import preconditions
from git_batch.app.session import Session, called
from git_batch.core.decisions import allowed
from git_batch.core.events import Decision
from git_batch.core.ids import Oid
from git_batch.core.model import BatchState, Plan
from git_batch.core.naming import few_paths
from git_batch.core.planscopes import Bounds, stray
from git_batch.core.standing import Phase, TaskStatus
from git_batch.core.transitions import BATCH
from git_batch.repo.repository import Dirt
from git_batch.repo.restore import restore
from git_batch.repo.trees import diff
from git_batch.repo.worktree import Scanner
from git_batch.run.lineage import is_made
from git_batch.views.addressing import addressed

_NAMED = 5

Note = Callable[[str], None]


def refuse_unknown(
    session: Session, plan: Plan, state: BatchState, excluded: Sequence[bytes], note: Note
) -> None:
    """Refuse what no task has changed, where the files have to be as the branch's tip.

    Args:
        excluded: untracked paths of the person's.

    Raises:
        PreconditionError: there is something; it is named.
    """
    if not between_attempts(state):
        return
    dirt = preconditions.still_clean(session, excluded)
    if not dirt:
        return
    ways = tuple(islice(_as_fix(session, plan, state, dirt), _NAMED))
    adopted = _adopted(session, state)
    if adopted:
        bring(session, excluded, session.repo.tree_of(state.head), adopted, note, *ways)
        dirt = preconditions.still_clean(session, excluded)
    preconditions.refuse_dirt(session, dirt, excluded, *ways)


def _as_fix(session: Session, plan: Plan, state: BatchState, dirt: Dirt) -> Iterator[str]:
    """Say whose work a person's changes could be, as hints."""
    stands = (state.status, f"decided:{Decision.ADOPT}") in BATCH and _is_at_head(session, state)
    if not stands or any(entry.changed_inside for entry in dirt.tracked):
        return
    paths = [(path, False) for path in (*(e.path for e in dirt.tracked), *dirt.untracked)]
    for task in plan.tasks:
        fits = allowed(state, task.id, Decision.ADOPT)
        if fits and not any(stray(Bounds(task.scope, task.protect), paths)):
            way = addressed(f"git batch adopt {task.id}", called(session, state.batch_id))
            yield f"or let them be the work of '{task.id}': {way}"


def _is_at_head(session: Session, state: BatchState) -> bool:
    """Tell whether the files are of the branch, and that is where its record says."""
    name = f"refs/heads/{state.branch}"
    return session.repo.symbolic_head() == name and session.refs.read(name) == state.head


def _adopted(session: Session, state: BatchState) -> list[Oid]:
    """List the fixes that are recorded as tasks' work and may be in the files still."""
    if not _is_at_head(session, state):
        return []
    waiting = [r for r in state.tasks.values() if r.status is TaskStatus.PENDING and r.apply_only]
    return [r.work for r in waiting if r.work is not None and r.work_base == state.head]


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
        bring(session, excluded, flight.tree, [session.repo.tree_of(flight.parent)], note)
    elif is_made(session.repo, flight, tip):
        bring(session, excluded, flight.tree, [flight.tree], note)


def bring(
    session: Session,
    excluded: Sequence[bytes],
    tree: Oid,
    known: Sequence[Oid],
    note: Note,
    *ways: str,
) -> None:
    """Bring files to a tree if all that differ from it are as in one of those they may be at.

    Args:
        known: trees that are kept elsewhere, at least one.
        ways: what else a person can do with what is as in none of them, as hints.

    Raises:
        PreconditionError: some are as in none of them; nothing was changed.
    """
    scanner, objects = Scanner(session.repo, excluded), session.repo.objects
    scanner.begin(tree)
    found = diff(objects, tree, scanner.scan())
    unknown = {at: set(found).difference(diff(objects, tree, at)) for at in known}
    before = min(known, key=lambda at: len(unknown[at]))
    strange = sorted(change.path for change in unknown[before])
    preconditions.refuse_dirt(session, Dirt((), (*strange, *scanner.problems)), (), *ways)
    if not found:
        return
    done = restore(scanner, tree, before, attempt=False)
    preconditions.refuse_dirt(session, Dirt((), tuple(done.left)))
    note(f"put back as the record says: {few_paths([c.path for c in found], _NAMED)}")
