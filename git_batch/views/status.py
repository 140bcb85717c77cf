"""Where a batch stands, in one screen, and as JSON.

The text needs the record's header and its newest event only, so it costs the same for three tasks
and for ten thousand: the event repeats the totals and the task in flight. The JSON lists every
task and takes the whole state.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from git_batch.core.agenda import counts
from git_batch.core.duration import format_duration
from git_batch.core.model import Authorization, BatchState, InFlight, Plan, holds
from git_batch.core.standing import Phase, TaskStatus
from git_batch.views.addressing import addressed
from git_batch.views.common import (
    VERSION,
    Around,
    actions_of,
    ago,
    batch_text,
    branch_text,
    counted,
    counts_text,
    moment,
    names,
    oid_or_none,
    rfc3339,
    rows,
    short,
    stop_of,
    usage_json,
    usage_text,
    words,
)
from git_batch.views.escape import one_line

if TYPE_CHECKING:
    from git_batch.core.tip import Header, Tip, Totals
    from git_batch.views.standing import Board, Standing

NAMED = 20
"""Tasks that are named; the record lists as many."""

_PHASES = {
    Phase.READY: "between two attempts",
    Phase.RUNNING: "its command",
    Phase.RAN: "its command is done",
    Phase.CHECKED: "its checks are done",
    Phase.FAILED: "it failed",
    Phase.SETTLED: "about to be committed",
}


def status_text(head: Header, tip: Tip, *, live: str | None, around: Around, now: datetime) -> str:
    """Say where a batch stands, from header and newest event alone.

    Args:
        live: who runs it now (process, host, since), None if nobody does.
    """
    totals = tip.totals
    stands = batch_text(totals.status, totals.stop, live=live is not None)
    lines = [
        ("batch", f"{one_line(head.batch_id)}  {one_line(head.title)}".rstrip()),
        ("branch", branch_text(head.branch, totals.head, head.base, around)),
        ("state", f"{stands}, {ago(totals.updated_at, now)}"),
    ]
    if live is not None:
        lines.append(("runner", one_line(live)))
    if totals.reason:
        lines.append(("reason", one_line(totals.reason)))
    lines.append(("tasks", counts_text(totals.counts)))
    if tip.in_flight is not None:
        lines.append(("in flight", _flight_text(tip.in_flight, live is not None, now)))
    lines += _needs(totals, around)
    lines += _authority(head, totals, now)
    lines += [("drift", f"{one_line(d.kind)}: {one_line(d.detail)}") for d in around.drift]
    if totals.stop_requested:
        lines.append(("stop", "asked for, after the task in flight"))
    ways = actions_of(
        totals.status,
        totals.stop,
        totals.next_action,
        live=live is not None,
        around=around,
        flight=tip.in_flight,
    )
    lines += [("next", one_line(addressed(way, around.name))) for way in ways]
    lines += [("look", one_line(d.look)) for d in around.drift if d.look]
    return "\n".join(rows(lines)) + "\n"


def _flight_text(flight: InFlight, live: bool, now: datetime) -> str:
    since = f"since {moment(flight.since)} ({ago(flight.since, now)})"
    phase = _PHASES[flight.phase]
    if flight.phase is Phase.FAILED and flight.failure is not None:
        phase = f"{phase}: {words(flight.failure.outcome)}"
    if not live and flight.phase is Phase.RUNNING:
        phase = "its command was cut short"
    return f"'{one_line(flight.task)}', attempt {flight.attempt}, {phase}, {since}"


def _needs(totals: Totals, around: Around) -> list[tuple[str, str]]:
    """Say which tasks need a person; only stops and parks list their ids."""
    if not totals.needs_total:
        return []
    if not totals.needs:
        report = one_line(addressed("git batch report", around.name))
        return [("needs a human", f"{counted(totals.needs_total, 'task')}, see {report}")]
    return [("needs a human", names(totals.needs, NAMED, totals.needs_total))]


def _authority(head: Header, totals: Totals, now: datetime) -> list[tuple[str, str]]:
    a = head.authorization
    if a is None:
        return [("authorized", "not yet")]
    if not holds(a, head.former):
        return [("authorized", f"not since it was rebased onto {short(head.base)}")]
    signed = ", signed" if a.signed else ""
    who = f"by {one_line(str(a.actor))} at {moment(a.confirmed_at)} (no. {a.seq}{signed})"
    found = [("authorized", who if a.expires_at else f"{who}, no expiry")]
    if a.expires_at is not None:
        verb = "expired" if now >= a.expires_at else "expires"
        found.append((verb, f"{moment(a.expires_at)} ({ago(a.expires_at, now)})"))
    if a.deadline_at is not None:
        found.append(("deadline", f"{moment(a.deadline_at)} ({ago(a.deadline_at, now)})"))
    return [*found, ("budget", _budget_text(a, totals)), ("usage", _spent_text(a, totals))]


def _budget_text(a: Authorization, totals: Totals) -> str:
    limit, used = a.budget.max_tasks, totals.enrolled
    if limit is None:
        said = [f"{counted(used, 'enrollment')}, no limit"]
    else:
        said = [f"{used} of {counted(limit, 'enrollment')}, {max(limit - used, 0)} left"]
    said.append(
        f"{totals.consecutive_failures} of {a.budget.qa_failure_limit} failed checks in a row"
    )
    if a.budget.max_wait:
        said.append(f"waits up to {format_duration(a.budget.max_wait)}")
    return "; ".join(said)


def _spent_text(a: Authorization, totals: Totals) -> str:
    said = usage_text(totals.usage)
    if a.budget.max_usd is not None:
        said += f"; limit {a.budget.max_usd:.2f} USD"
    if a.budget.max_tokens is not None:
        said += f"; limit {a.budget.max_tokens} tokens"
    return said


def status_json(
    state: BatchState,
    plan: Plan,
    *,
    live: bool,
    around: Around,
) -> dict[str, Any]:
    """Give where a batch and each of its tasks stand; the keys are a contract."""
    from git_batch.views.standing import Board  # the text does without, and must be fast

    return board_json(Board(state, plan, live=live, around=around))


def board_json(board: Board) -> dict[str, Any]:
    """Give the status of a board that exists already."""
    state, around = board.state, board.around or Around(None)
    standings = list(board)
    stop = stop_of(state.status, state.stop)
    ways = actions_of(state.status, state.stop, state.next_action, live=board.live, around=around)
    return {
        "version": VERSION,
        "batch_id": state.batch_id,
        "slug": state.slug,
        "title": state.title,
        "branch": state.branch,
        "base": state.base,
        "head": around.head,
        "plan_digest": state.plan_digest,
        "state": state.status.value,
        "outcome": None if stop is None else stop.value,
        "reason": state.reason or None,
        "next_action": board.addressed(ways[0]) if ways else None,
        "live": board.live,
        "authorization": _authorization_json(state),
        "budget": _budget_json(state, board.plan),
        "counts": {status.value: n for status, n in counts(state).items()},
        "tasks": [task_json(standing) for standing in standings],
        "drift": [{"kind": d.kind, "detail": d.detail, "commit": d.commit} for d in around.drift],
        "review": _review_json(standings),
    }


def task_json(standing: Standing) -> dict[str, Any]:
    """Give one task."""
    return {
        "id": standing.task.id,
        "title": standing.task.title,
        "state": standing.state.value,
        "outcome": None if standing.outcome is None else standing.outcome.value,
        "reason": standing.reason or None,
        "attempts": standing.attempts,
        "commit": oid_or_none(standing.commit),
        "blocked_by": list(standing.task.blocked_by),
        "started_at": rfc3339(standing.started_at),
        "ended_at": rfc3339(standing.ended_at),
        "usage": usage_json(standing.usage),
    }


def _authorization_json(state: BatchState) -> dict[str, Any] | None:
    a = state.authorization
    if a is None or not holds(a, state.former):
        return None
    return {
        "seq": a.seq,
        "actor": str(a.actor),
        "confirmed_at": rfc3339(a.confirmed_at),
        "expires_at": rfc3339(a.expires_at),
        "signed": a.signed,
    }


def _budget_json(state: BatchState, plan: Plan) -> dict[str, Any]:
    a = state.authorization
    budget = plan.budget if a is None else a.budget
    return {
        "max_tasks": budget.max_tasks,
        "enrolled": state.enrolled,
        "deadline_at": None if a is None else rfc3339(a.deadline_at),
        "qa_failure_limit": budget.qa_failure_limit,
        "consecutive_qa_failures": state.consecutive_failures,
    }


def _review_json(standings: Sequence[Standing]) -> dict[str, Any] | None:
    """Give the review that waits longest in the plan's order."""
    for standing in standings:
        if standing.waits and standing.state is TaskStatus.IN_REVIEW:
            return {"task": standing.task.id, "since": rfc3339(standing.ended_at)}
    return None
