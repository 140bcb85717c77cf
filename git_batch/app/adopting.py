"""`git batch adopt`: a person's fix, or kept work, becomes a parked task's work.

So does it of a task that is to run again by a person's decision: until it begins they may decide
otherwise, rather than have it fail once more; and give it another fix than the one they gave it
before, which stays reachable from the newer one.

The fix is what the working tree holds on top of the batch branch. It is compared with the task's
scope at once, kept under a ref, recorded, and only then put away; `resume` does that if it could
not be done, and applies the fix like accepted work: scope, checks, hooks, one commit.
"""

from __future__ import annotations

from datetime import datetime

from git_batch.app import preconditions
from git_batch.app.allowing import kept_work, must_be_allowed
from git_batch.app.deciding import Deciding, Named, decide, known_task
from git_batch.app.following import must_not_drift
from git_batch.app.readiness import between_attempts
from git_batch.app.requests import written
from git_batch.app.session import Session, called
from git_batch.core import events as ev
from git_batch.core import trailers
from git_batch.core.ids import Oid, TaskId
from git_batch.core.machine import next_attempt
from git_batch.core.model import BatchState, TaskRecord, accepted
from git_batch.core.naming import path_text
from git_batch.core.scope import literal_paths
from git_batch.errors import GitError, PreconditionError
from git_batch.repo import attempts, commits, setaside, submodules
from git_batch.repo.journal import Journal
from git_batch.repo.restore import restore
from git_batch.repo.trees import diff
from git_batch.repo.worktree import Scanner
from git_batch.run.applying import Work
from git_batch.run.scopecheck import refuse
from git_batch.run.tasks import changed_inside
from git_batch.views.addressing import addressed


def adopt(
    session: Session, task: str, *, attempt: int | None, words: str, at: datetime
) -> BatchState:
    """Take a fix in the working tree, or the kept work of an attempt, as the task's work."""
    named = Named.parse(task)
    with Deciding(session, named.batch, at) as journal:
        known = known_task(journal.machine.plan, named.task)
        must_be_allowed(session, journal, [known], ev.Decision.ADOPT)
        if attempt is not None:
            work, base = kept_work(session, journal.state.batch_id, known, attempt)
            said = _said(session, journal.state.tasks[known], attempt)
            return _adopt(session, journal, known, words, at, Work(work, base, said))
        return _from_working_tree(session, journal, known, words, at)


def _from_working_tree(
    session: Session, journal: Journal, task: TaskId, words: str, at: datetime
) -> BatchState:
    state = journal.state
    _nothing_half_done(state)
    preconditions.on_branch(
        session, state.branch, f"a fix is taken from the tip of '{state.branch}'"
    )
    must_not_drift(session, state)
    scanner = Scanner(session.repo, accepted(state.authorization))
    tip = session.repo.tree_of(state.head)
    scanner.begin(tip)
    tree = scanner.scan(also=literal_paths(journal.machine.task(task).scope))
    _nothing_inside(session, task, submodules.changed_inside(session.repo, scanner.private))
    _must_fit(session, journal, task, words, tip, tree)
    before = _keep(session, journal, task, tree, at)
    said = _said(session, state.tasks[task], None)
    state = _adopt(session, journal, task, words, at, Work(tree, state.head, said))
    if before is not None:
        session.note(f"instead of the fix before, which is kept: git show --first-parent {before}")
    for path in restore(scanner, tip, tree).left:
        session.note(f"'{path_text(path)}' changed while the fix was taken; it stays as it is now")
    return state


def _nothing_half_done(state: BatchState) -> None:
    """Refuse while the files hold another task's work: nobody can tell what of them is the fix."""
    flight = state.in_flight
    if flight is not None and not between_attempts(state):
        raise PreconditionError(
            f"'{flight.task}' is in flight, so what is in the working tree may be its work",
            "move your fix elsewhere; what is there is kept as that task's when it goes on",
            f"let it end first: git batch resume {state.batch_id}",
        )


def _adopt(
    session: Session, journal: Journal, task: TaskId, words: str, at: datetime, work: Work
) -> BatchState:
    return decide(
        session,
        journal,
        ev.Decision.ADOPT,
        [task],
        words,
        at,
        work=work.tree,
        work_base=work.base,
        work_message=work.message,
    )


def _said(session: Session, record: TaskRecord, attempt: int | None) -> bytes:
    """Find what was said of adopted work: by the commit that it stands for, or by its attempt."""
    if record.replays is not None:
        return trailers.body(commits.read(session.repo, record.replays).message)
    return next((a.message for a in record.history if a.n == attempt), b"")


def _nothing_inside(session: Session, task: TaskId, modules: list[bytes]) -> None:
    """Refuse a fix of which a part is inside submodules, where no commit here can hold it."""
    inside = changed_inside(modules)
    if inside is not None:
        away = setaside.away(session.repo, set(modules), session.repo.dirty())
        raise PreconditionError(
            f"the fix can't be the work of '{task}': it {inside.reason}",
            f"commit inside the submodule, so that its HEAD moves, or {away}",
        )


def _must_fit(
    session: Session, journal: Journal, task: TaskId, words: str, tip: Oid, tree: Oid
) -> None:
    """Refuse a fix that is none, or that leaves the task's scope; nothing was changed yet."""
    changes = diff(session.repo.objects, tip, tree)
    if not changes:
        again = written(("git batch adopt", task), [("-m", words or None)], ["--attempt N"])
        way = addressed(again, called(session, journal.state.batch_id))
        raise PreconditionError(
            "the working tree has no changes to adopt",
            f"edit the files for '{task}' first, or take kept work: {way}",
        )
    failure = refuse(journal.machine.task(task), changes)
    if failure is not None:
        raise PreconditionError(
            f"the fix can't be the work of '{task}': it {failure.reason}",
            "move that elsewhere first, or let the task change it: git batch resume --plan FILE",
        )


def _keep(session: Session, journal: Journal, task: TaskId, tree: Oid, at: datetime) -> Oid | None:
    """Keep a fix under its ref, on top of another one that was there before; give that one."""
    state = journal.state
    number = next_attempt(state.tasks.get(task))
    ref = attempts.adopted_ref(state.batch_id, task, number)
    old = session.refs.read(ref)
    before = _other_fix(session, old, tree) if old is not None else None
    made = attempts.commit_work(
        session.repo,
        tree=tree,
        parents=[state.head, *([before] if before is not None else [])],
        title=f"{task}: a person's fix for {state.batch_id}",
        who=session.idents(),
        at=at,
    )
    session.refs.swap(ref, old, made, f"{task}: adopted")
    return before


def _other_fix(session: Session, old: Oid, tree: Oid) -> Oid | None:
    """Give a kept fix if it is another one: the same is what a killed `adopt` kept already."""
    try:
        return old if commits.read(session.repo, old).tree != tree else None
    except GitError:
        return None  # missing or damaged: nothing of it can be kept
