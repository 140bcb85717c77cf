"""A record made anew from commits: what trailers prove becomes events, and nothing else does.

Trailers prove which task a commit says it is of, in which order, under which plan's digest. They
don't prove that checks passed, that scopes were kept, who confirmed the batch, or what became of
tasks without a commit. So the new record has no `settled` event and no receipt: its tasks are
committed by a decision to recover, commits of no task become foreign ones, and there is no
authorization, so that a person has to give one before anything runs.

Without the plan its place is taken by a stand-in (`is_stand_in`) that knows the committed tasks
only; no batch can go on with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from git_batch.core import events as ev
from git_batch.core.claims import Seen, claim_of, undo_of
from git_batch.core.ids import BatchId, Oid, TaskId, slug_of
from git_batch.core.lineage import word
from git_batch.core.model import Actor, Plan, Task
from git_batch.core.standing import BatchStatus, StopReason

WHY = "rebuilt from the trailers of its commit"
UNPROVEN = "scopes, checks, reviews, and who confirmed the batch"
_STAND_IN = "rebuilt from trailers; the plan is not known"


class Remains(Struct, frozen=True):
    """What is left of a batch on its branch.

    Attributes:
        tasks: those whose commit stands, in the order of the branch.
        others: commits that are of no task, or of one that was taken back.
        undone: tasks that were taken back.
        plan: the digest that the newest task's commit names.
    """

    batch: BatchId
    base: Oid
    tip: Oid
    tasks: tuple[tuple[TaskId, Seen], ...]
    others: tuple[Oid, ...]
    undone: tuple[TaskId, ...]
    plan: str


def remains(batch: BatchId, base: Oid, seen: Sequence[Seen]) -> Remains:
    """Sort the commits of a batch by what they say they are."""
    tasks: dict[str, Seen] = {}
    undone: dict[str, None] = {}
    others: list[Oid] = []
    plan = ""
    for commit in seen:
        claim, _ = claim_of(commit.message)
        undo = undo_of(commit.message)
        if claim is None:
            others.append(commit.oid)
            if undo in tasks:
                others.append(tasks.pop(undo).oid)
                undone[undo] = None
            continue
        tasks[claim.task] = commit
        undone.pop(claim.task, None)
        plan = claim.plan
    order = {c.oid: i for i, c in enumerate(seen)}
    return Remains(
        batch,
        base,
        seen[-1].oid if seen else base,
        tuple((TaskId(t), c) for t, c in tasks.items()),
        tuple(sorted(others, key=order.__getitem__)),
        tuple(TaskId(t) for t in undone),
        plan,
    )


def stand_in(left: Remains) -> Plan:
    """Make a plan of the tasks that have a commit; there is nothing in it to run."""
    slug = slug_of(left.batch)
    tasks = tuple(
        Task(task, _subject(commit), (), ("false",), attempts=1) for task, commit in left.tasks
    )
    return Plan(slug, _STAND_IN, tasks)


def is_stand_in(plan: Plan) -> bool:
    """Tell whether a plan only stands for one that was lost."""
    return plan.title == _STAND_IN and not any(task.scope for task in plan.tasks)


def _subject(commit: Seen) -> str:
    first = commit.message.split(b"\n", 1)[0].decode("utf-8", "replace")
    return first[:200] or commit.oid


def rebuild(
    left: Remains, plan: Plan, digest: str, branch: str, actor: Actor, at: datetime
) -> list[ev.Event]:
    """Give the events of the new record.

    Args:
        plan: the batch's own, whose digest the commits name, or the stand-in.
    """
    known = {task.id for task in plan.tasks}
    tasks = [(t, c.oid) for t, c in left.tasks if t in known]
    events: list[ev.Event] = [
        ev.Created(at, left.batch, plan.slug, plan.title, branch, left.base, digest),
        ev.Decided(
            at,
            ev.Decision.RECOVER,
            actor,
            tuple(t for t, _ in tasks),
            WHY,
            tuple(c for _, c in tasks),
            left.tip,
        ),
    ]
    if left.others:
        why = "carries no trailers of a task; taken as it was found"
        events.append(
            ev.Decided(at, ev.Decision.BLESS, actor, (), why, left.others, left.tip),
        )
    out = tuple(t for t in left.undone if t in known)
    if out:
        events.append(ev.Decided(at, ev.Decision.SKIP, actor, out, "was taken back"))
    return [*events, _closed(left, plan, branch, at)]


def _closed(left: Remains, plan: Plan, branch: str, at: datetime) -> ev.Closed:
    """Leave it to a person: to give the plan, or to go on with it."""
    action = f"git batch recover {word(branch)} --plan FILE"
    if not is_stand_in(plan):
        action = f"git batch resume {left.batch}"
    why = f"the record was rebuilt from the commits' trailers; not proven: {UNPROVEN}"
    return ev.Closed(at, BatchStatus.NEEDS_HUMAN, StopReason.NEEDS_HUMAN, why, action)
