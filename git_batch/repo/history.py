"""The whole history of a record: one event per commit, each read with all it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from git_batch.core import entries, record
from git_batch.core import events as ev
from git_batch.core.chain import is_event, newest_event
from git_batch.core.ids import Oid, TaskId
from git_batch.core.standing import Outcome
from git_batch.repo import commits
from git_batch.repo.repository import Repository

_BY_PERSONS = (ev.Decided, ev.Authorized, ev.StopRequested, ev.Reviewed)
_MOST = 1000


def event_oids(repo: Repository, tip: Oid) -> list[Oid]:
    """List the first-parent chain, oldest first."""
    chain: list[Oid] = []
    walk: Oid | None = tip
    while walk is not None:
        chain.append(walk)
        parents = commits.read(repo, walk).parents
        walk = parents[0] if parents else None
    return chain[::-1]


def history(repo: Repository, tip: Oid) -> list[tuple[Oid, entries.Entry]]:
    """Read every event, oldest first; commits of others are left out."""
    found = []
    for oid in event_oids(repo, tip):
        message = commits.read(repo, oid).message
        if is_event(message):
            found.append((oid, record.parse(message)))
    return found


Ends = dict[tuple[TaskId, int], tuple[Outcome, str]]
"""How attempts of tasks ended, and why, by their numbers."""


def reviews_ended(entries: Iterable[entries.Entry]) -> Ends:
    """Say how the attempts ended that waited for a person's review, as far as they did.

    An attempt's own record is of the time when its work was kept: it waits for a review.
    """
    waiting: dict[TaskId, int] = {}
    ended: Ends = {}
    for entry in entries:
        match entry.event:
            case ev.ReviewRequested() as asked:
                waiting[asked.task] = asked.attempt
            case ev.Reviewed() as said if said.task in waiting:
                ended[said.task, waiting.pop(said.task)] = _REVIEWED[said.verdict](said.summary)
            case ev.Decided(decision=ev.Decision.SKIP) as left:
                for task in waiting.keys() & set(left.tasks):
                    end = Outcome.REVIEW_PENDING, "taken out before it was reviewed"
                    ended[task, waiting.pop(task)] = end
    return ended


_REVIEWED: dict[ev.Verdict, Callable[[str], tuple[Outcome, str]]] = {
    ev.Verdict.ACCEPT: lambda why: (
        Outcome.REVIEW_PENDING,
        f"accepted: {why}" if why else "accepted",
    ),
    ev.Verdict.REWORK: lambda why: (Outcome.REVIEW_REWORK, why),
    ev.Verdict.REJECT: lambda why: (Outcome.REVIEW_REJECTED, why),
}


def last_runner(repo: Repository, tip: Oid) -> str:
    """Name the run that last drove a batch; empty if none did.

    What persons decided since is passed over: that was recorded by runs of its own.
    """
    oid = tip
    for _ in range(_MOST):
        event = newest_event(lambda name: commits.read(repo, name), oid)
        entry = record.parse(event.message)
        if not isinstance(entry.event, _BY_PERSONS):
            return entry.runner
        if not event.parents:
            break
        oid = event.parents[0]
    return ""
