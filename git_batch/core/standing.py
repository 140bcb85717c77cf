"""Where batches and tasks stand and how they end: the closed lists of semantics.md and product.md.

Statuses are adjectives, outcomes say how a task ended, stop reasons why a run did. Every list is
closed, so that totals always add up; what is not in one does not exist.
"""

from __future__ import annotations

from enum import StrEnum


class TaskStatus(StrEnum):
    """States of a task (semantics.md section 1)."""

    PENDING = "pending"
    ENROLLED = "enrolled"
    SETTLED = "settled"
    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    IN_REVIEW = "in_review"
    NEEDS_HUMAN = "needs_human"
    SKIPPED_BLOCKED = "skipped_blocked"
    DROPPED = "dropped"


class BatchStatus(StrEnum):
    """States of a batch (semantics.md section 1); `prepared` and `rejected` are never written."""

    PREPARED = "prepared"
    RUNNING = "running"
    NEEDS_HUMAN = "needs_human"
    BUDGET_STOPPED = "budget_stopped"
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    ABANDONED = "abandoned"


RESUMABLE = frozenset({BatchStatus.RUNNING, BatchStatus.NEEDS_HUMAN, BatchStatus.BUDGET_STOPPED})


class Phase(StrEnum):
    """Where the one task in flight stands."""

    READY = "ready"  # between two attempts, the working tree is as the branch tip
    RUNNING = "running"
    RAN = "ran"
    CHECKED = "checked"
    FAILED = "failed"  # an outcome is known, the work is not kept yet
    SETTLED = "settled"


class Outcome(StrEnum):
    """How a task ended: the closed list of product.md."""

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    EMPTY = "empty"
    CHECK_FAILED = "check_failed"
    CHECK_CHANGED_TREE = "check_changed_tree"
    RUN_FAILED = "run_failed"
    KILLED = "killed"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"
    SCOPE_REFUSED = "scope_refused"
    PROTECTED_CHANGED = "protected_changed"
    HOOK_REFUSED = "hook_refused"
    COMMIT_FAILED = "commit_failed"
    REVIEW_PENDING = "review_pending"
    REVIEW_REWORK = "review_rework"
    REVIEW_REJECTED = "review_rejected"
    REVIEW_CHANGED_TREE = "review_changed_tree"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    HISTORY_CHANGED = "history_changed"
    TAMPERED = "tampered"
    CLAIMED_ELSEWHERE = "claimed_elsewhere"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    UNDONE = "undone"
    NOT_RUN_BUDGET = "not_run_budget"
    NOT_RUN_DEADLINE = "not_run_deadline"
    NOT_RUN_EXPIRED = "not_run_expired"
    NOT_RUN_FAILURE_LIMIT = "not_run_failure_limit"
    NOT_RUN_STOPPED = "not_run_stopped"


IN_THE_CHANGE = frozenset(
    {
        Outcome.SCOPE_REFUSED,
        Outcome.PROTECTED_CHANGED,
        Outcome.CHECK_CHANGED_TREE,
        Outcome.REVIEW_PENDING,
        Outcome.REVIEW_REWORK,
        Outcome.REVIEW_REJECTED,
        Outcome.REVIEW_CHANGED_TREE,
    }
)
"""Outcomes whose reason is in what was changed rather than in what was printed."""

REWORKABLE = frozenset(
    {
        Outcome.CHECK_FAILED,
        Outcome.SCOPE_REFUSED,
        Outcome.PROTECTED_CHANGED,
        Outcome.HOOK_REFUSED,
    }
)
"""Outcomes that the same task may mend when it is told about them (semantics.md section 5)."""


FREE = frozenset({Outcome.INTERRUPTED, Outcome.STOPPED})
"""Outcomes of an attempt that do not use one up."""


class StopReason(StrEnum):
    """Why a batch is not running any more; stored with the transition."""

    COMPLETED = "completed"
    NEEDS_HUMAN = "needs_human"
    REVIEW_PENDING = "review_pending"
    FAIL_FAST = "fail_fast"
    BUDGET = "budget"
    DEADLINE = "deadline"
    EXPIRED = "expired"
    FAILURE_LIMIT = "failure_limit"
    STOP_REQUESTED = "stop_requested"
    NOT_NOW = "not_now"
    COMMIT_FAILED = "commit_failed"
    TAMPERED = "tampered"
    BASELINE_FAILED = "baseline_failed"
    FOREIGN_COMMITS = "foreign_commits"
    LINEAGE_BROKEN = "lineage_broken"
    ABANDONED = "abandoned"


def says_more(status: BatchStatus, why: StopReason | None) -> bool:
    """Tell whether a reason adds anything to the status that it led to."""
    return why is not None and not status.value.startswith(why.value)


NEEDS_AUTHORIZATION = frozenset(
    {
        StopReason.BUDGET,
        StopReason.DEADLINE,
        StopReason.EXPIRED,
        StopReason.FAILURE_LIMIT,
        StopReason.FAIL_FAST,
        StopReason.LINEAGE_BROKEN,
        StopReason.TAMPERED,
    }
)
"""Stops that only a newer authorization ends (semantics.md section 4)."""


class OnEmpty(StrEnum):
    """What a task that changed nothing means."""

    PARK = "park"
    ACCEPT = "accept"
