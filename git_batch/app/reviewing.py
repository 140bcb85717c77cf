"""`git batch review`: a person's verdict on the change that waits for one."""

from __future__ import annotations

from datetime import datetime

from git_batch.app.allowing import standing_text, stands
from git_batch.app.deciding import Deciding, Named, known_task
from git_batch.app.session import Session, called
from git_batch.core import events as ev
from git_batch.core.model import BatchState
from git_batch.core.standing import TaskStatus
from git_batch.errors import PreconditionError, UsageError
from git_batch.views.addressing import addressed


def review(
    session: Session, task: str, verdict: ev.Verdict, *, words: str, at: datetime
) -> BatchState:
    """Record a verdict; it names the change that it saw and is void for any other.

    Raises:
        PreconditionError: no review of the task is pending.
        UsageError: a rework or rejection without a word why.
    """
    if verdict is not ev.Verdict.ACCEPT and not words.strip():
        raise UsageError(f"say why, for whoever reads it next: --{verdict} -m WHY")
    named = Named.parse(task)
    with Deciding(session, named.batch, at) as journal:
        known = known_task(journal.machine.plan, named.task)
        record = journal.state.tasks.get(known)
        if record is None or record.status is not TaskStatus.IN_REVIEW or record.tree is None:
            raise PreconditionError(
                f"no review of '{known}' is pending: it {standing_text(stands(journal, known))}",
                addressed(f"git batch show {known}", called(session, journal.state.batch_id)),
            )
        if record.apply_only and verdict is ev.Verdict.ACCEPT:
            raise PreconditionError(
                f"'{known}' was accepted already; its commit comes next",
                addressed("git batch resume", called(session, journal.state.batch_id)),
            )
        who = session.idents().author
        return journal.append(ev.Reviewed(at, known, record.tree, verdict, who, words))
