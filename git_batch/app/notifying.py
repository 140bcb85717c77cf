"""One run of a batch as a person hears of it: the loop, and whoever is told about its end.

`Bell` is entered before the run locks are taken, so that it rings when they are free again: what
is told then is over, and a person who comes at once is not refused. A run that never began (it was
refused, or the batch has ended already) is not told.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from git_batch.app.claiming import let_go
from git_batch.app.glances import kept_here
from git_batch.app.session import Session
from git_batch.core.agenda import counts
from git_batch.core.chain import ref_name
from git_batch.core.events import Event, Parked
from git_batch.core.model import BatchState
from git_batch.core.standing import BatchStatus
from git_batch.core.values import replace
from git_batch.errors import BatchError
from git_batch.repo import trust
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.run.context import RunContext, Tools
from git_batch.run.driver import drive
from git_batch.run.lineage import drift_here
from git_batch.run.notify import Notifier
from git_batch.views.common import Around
from git_batch.views.escape import json_text
from git_batch.views.report import report_json


class Bell:
    """Drives a batch, and tells of its first park and of its end."""

    def __init__(self, session: Session, tools: Tools) -> None:
        self._session, self._tools = session, tools
        self._journal: Journal | None = None
        self._state: BatchState | None = None
        self._notifier: Notifier | None = None
        self._parked = False

    def __enter__(self) -> Self:
        return self

    def drive(self, journal: Journal, who: Idents, runner: str) -> BatchState:
        """Run the loop until it stops; let go of what the batch claims if it is over.

        Raises:
            BatchError: the repository is not in a state to go on.
        """
        repo = self._session.repo
        self._journal = journal
        # Read before the first task could write to git's configuration.
        asked = (journal.machine.plan.notify, repo.config.notify())
        commands = [command for command in asked if command]
        self._notifier = Notifier(commands, Path(repo.layout.top), runner, self._tools)
        tools = replace(self._tools, progress=self)
        try:
            with RunContext(repo, self._session.refs, journal, who, runner, tools) as context:
                self._state = drive(context)
                # While the kernel moves us out of the run's group.
                let_go(self._session, self._state, self._tools.progress.note)
        except BaseException:
            with suppress(OSError):  # what went wrong is the better reason
                self._remember(journal)
            raise
        self._remember(journal)
        return self._state

    def _remember(self, journal: Journal) -> None:
        state = journal.recorded
        trust.seen(self._session.repo, state.batch_id, journal.step, state.authorization)

    def event(self, event: Event, state: BatchState) -> None:
        """Pass on an event; the first park is told at once, so that somebody can look at it."""
        self._tools.progress.event(event, state)
        if isinstance(event, Parked) and not self._parked:
            self._parked = True
            self._tell("park", event.failure.outcome.value, event.failure.reason, state, event.task)

    def note(self, text: str) -> None:
        """Pass on a note."""
        self._tools.progress.note(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._journal is None:
            return
        # What could not be published may never have been: nobody is told of it.
        state = self._state or self._journal.recorded
        reason = state.reason
        if error is not None:
            outcome = "error"
            reason = error.message if isinstance(error, BatchError) else repr(error)
        elif state.status is BatchStatus.RUNNING:
            outcome, reason = "interrupted", "the run was interrupted"
        else:
            outcome = state.stop.value if state.stop else state.status.value
        self._tell("end", outcome, reason, state)

    def _tell(
        self, event: str, outcome: str, reason: str, state: BatchState, task: str = ""
    ) -> None:
        assert self._journal is not None
        if self._notifier is None or not self._notifier.wanted:
            return
        facts = {
            "BATCH_ID": state.batch_id,
            "BATCH_SLUG": state.slug,
            "BATCH_BRANCH": state.branch,
            "BATCH_STATE": state.status.value,
            "BATCH_REASON": reason,
        }
        for status, n in counts(state).items():
            facts[f"BATCH_COUNT_{status.value.upper()}"] = str(n)
        if task:
            facts["BATCH_PARKED"] = task  # not BATCH_TASK, which means to be inside of one
        self._notifier.tell(event, outcome, facts, self._report(state, live=event == "park"))

    def _report(self, state: BatchState, *, live: bool) -> str:
        assert self._journal is not None
        # Only where somebody is told; a run has no other use for what the record is read by.
        from git_batch.app.queries import reviews_ended

        session, plan = self._session, self._journal.machine.plan
        ended = reviews_ended(session, state, session.refs.read(ref_name(state.batch_id)))
        found = around(session, state)._replace(reviewed=ended)
        return json_text(report_json(state, plan, live=live, around=found))


def around(session: Session, state: BatchState) -> Around:
    """Look where a batch's branch is, against its record, and what is here of kept work."""
    head = session.refs.read(f"refs/heads/{state.branch}")
    drift = drift_here(session.repo, session.refs, state)
    kept = kept_here(session, state.batch_id)
    return Around(head, (drift,) if drift is not None else (), kept=kept)
