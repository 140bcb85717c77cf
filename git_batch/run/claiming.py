"""Claims on a remote around each task: taken before its command, let go once it has ended.

A remote that can't be asked is "not now", never "free". A claim that is somebody else's parks the
task with whose it is; ours from before a crash is adopted (`repo.claims`). Who sees that a claim is
gone takes the task for ended, so its end is published first.
"""

from __future__ import annotations

from git_batch.core import events as ev
from git_batch.core.attempt import Failure
from git_batch.core.ids import TaskId
from git_batch.core.model import BatchState
from git_batch.core.standing import Outcome
from git_batch.errors import GitError
from git_batch.repo.claims import RemoteClaims
from git_batch.repo.repository import Repository
from git_batch.run.context import RunContext

_ENDS = ev.Committed | ev.BecameUnchanged | ev.Parked | ev.ReviewRequested | ev.Interrupted


class TaskClaims:
    """Takes and lets go of the claims of one run; does nothing where none are asked for."""

    def __init__(self, context: RunContext) -> None:
        self._c = context
        self._known: dict[str, RemoteClaims] = {}

    def take(self, task: TaskId) -> Failure | None:
        """Claim a task; say why it can't be run here."""
        remote = self._remote()
        if remote is None:
            return None
        try:
            other = remote.take(task, self._c.who, self._c.now())
        except GitError as error:
            return Failure(Outcome.STOPPED, error.message)
        if other is None:
            return None
        return Failure(Outcome.CLAIMED_ELSEWHERE, f"claim held by {other}")

    def after(self, event: ev.Event) -> None:
        """Let go of the claim of a task that has ended, whichever run took it."""
        if self._remote() is None or not isinstance(event, _ENDS):
            return
        self._c.journal.publish()
        for remote in self._known.values():
            try:
                remote.release(event.task)
            except GitError as error:
                self._c.tools.progress.note(error.message)

    def _remote(self) -> RemoteClaims | None:
        """Give the claims on the remote that is asked for now: a renewal may name another one."""
        remote = remote_claims(self._c.repo, self._c.state)
        if remote is None:
            return None
        return self._known.setdefault(remote.remote, remote)


def remote_claims(repo: Repository, state: BatchState) -> RemoteClaims | None:
    """Give a batch's claims on the remote that its authorization names; None if it names none."""
    name = state.authorization.claim if state.authorization else None
    return RemoteClaims(repo, name, state.slug, state.batch_id) if name else None
