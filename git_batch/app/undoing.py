"""`git batch undo`: take committed tasks back by commits that revert them.

The task and everything committed that needs it are reverted, the latest first, each by one commit
with a `Batch-Undo` trailer. All of them are made in memory before anything moves; a conflict
changes nothing. Then the record says what will be; files, index and branch follow (`following`).

What was taken back by one decision is redone by one, at once or later.
"""

from __future__ import annotations

from datetime import datetime

from git_batch.app.allowing import must_be_allowed
from git_batch.app.branchline import committed_tasks
from git_batch.app.deciding import Deciding, Named, Taken, known_task
from git_batch.app.following import follow, must_be_ready
from git_batch.app.session import Session
from git_batch.core import events as ev
from git_batch.core import trailers
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import TaskRecord
from git_batch.core.naming import few_paths
from git_batch.errors import PreconditionError
from git_batch.repo import commits
from git_batch.repo.journal import Journal
from git_batch.repo.merging import merge_trees


def undo(session: Session, task: str, *, redo: bool, words: str, at: datetime) -> Taken:
    """Revert a committed task with its committed dependents.

    Args:
        redo: the tasks become pending again instead of dropped; also one that was dropped before,
            with what was dropped with it.

    Raises:
        PreconditionError: the working tree is not clean, or a revert conflicts; nothing changed.
    """
    named = Named.parse(task)
    decision = ev.Decision.REDO if redo else ev.Decision.UNDO
    with Deciding(session, named.batch, at) as journal:
        known = known_task(journal.machine.plan, named.task)
        follow(session, journal.state)
        must_be_allowed(session, journal, [known], decision)
        must_be_ready(session, journal.state)
        tasks = _with_dependents(session, journal, known)
        reverts = _make(session, journal, tasks, at)
        if known not in tasks:  # dropped before, so there is nothing to revert; now to be redone
            tasks += reversed(_gone_with(journal, known))
        who, head = session.idents().author, reverts[-1] if reverts else None
        state = journal.append(
            ev.Decided(at, decision, who, tuple(tasks), words, tuple(reverts), head)
        )
        follow(session, state)
        return Taken(state, tuple(reversed(tasks)))


def _gone_with(journal: Journal, task: TaskId) -> list[TaskId]:
    """List a task that was dropped, and what needs it and was dropped by the same decision."""
    graph, tasks = journal.machine.graph, journal.state.tasks
    behind = (graph.ids[i] for i in sorted(graph.closure(graph.index[task])))
    gone = _end(tasks[task])  # all that one decision drops ends in one way at one time
    return [task, *(t for t in behind if t in tasks and _end(tasks[t]) == gone)]


def _end(record: TaskRecord) -> tuple[object, ...]:
    return record.status, record.outcome, record.ended_at


def _with_dependents(session: Session, journal: Journal, task: TaskId) -> list[TaskId]:
    """List the task and what needs it, as far as committed, the latest commit first."""
    graph = journal.machine.graph
    wanted = {task, *(graph.ids[i] for i in graph.closure(graph.index[task]))}
    return [t for t in reversed(committed_tasks(session, journal.state)) if t in wanted]


def _make(session: Session, journal: Journal, tasks: list[TaskId], at: datetime) -> list[Oid]:
    state, made = journal.state, []
    tip = state.head
    for task in tasks:
        commit = state.tasks[task].commit
        assert commit is not None
        facts = commits.read(session.repo, commit)
        before = commits.read(session.repo, facts.parents[0]).tree
        now = commits.read(session.repo, tip).tree
        merged = merge_trees(session.repo, base=facts.tree, ours=now, theirs=before)
        if merged.tree is None:
            names = few_paths(merged.conflicts, 5)
            raise PreconditionError(
                f"'{task}' can't be taken back: later commits changed {names} as well",
                "take those tasks back first, or revert by hand and bless: git batch bless",
            )
        title = journal.machine.task(task).title
        body = f"This reverts commit {commit}."
        message = trailers.with_trailers(
            trailers.compose(f'Revert "{title}"', body),
            [(trailers.BATCH_ID, state.batch_id), (trailers.UNDO, task)],
        )
        tip = commits.make(
            session.repo,
            tree=merged.tree,
            parents=[tip],
            message=message,
            who=session.idents(),
            at=at,
            sign=session.repo.signs_commits(),
        )
        made.append(tip)
    return made
