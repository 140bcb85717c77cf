"""Lineage: recorded events x observed commits -> the named ways in which a branch is not whole.

Theory. A commit's id covers its tree, its message and, through its parent, everything before it.
So the record certifies a commit by holding its id, and below a certified commit nothing can have
changed. What is left to prove is that record and commits speak of the same: every task's commit
names its `settled` event, and that event gives the commit's message byte for byte, its tree and
its parent. Trailers are read to find that event, never as a proof.

Rules. Everything that is not certified, blessed or a recorded undo is a drift with a name, both
ids and a way out; drifts are listed in the order of the branch. Nothing here guesses: what can't
be seen is "unknown", which is the business of whoever looked (`repo.lineage`).

This module is on the path of the hooks, so it imports neither `events` nor `record`: they take half
of the time that a hook has (`claims` reads what is needed).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from git_batch.core.claims import Seen, Settled, rendered
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.standing import BatchStatus, StopReason
from git_batch.core.values import replace

Standing = Literal["whole", "drift", "unknown"]

BRANCH_MISSING = "branch missing"
FOREIGN = "foreign commits"
MOVED_BACK = "moved back"
REWRITTEN = "history rewritten"
UNREACHABLE = "recorded commit unreachable"
MISSING = "recorded commit missing"
MERGE = "merge commit"
FORGED = "forged trailers"
BEYOND = "beyond the record"
REPEATED = "repeated trailers"
CONTRADICTION = "record contradicts commit"
NO_RECEIPT = "receipt missing"
FALSE_RECEIPT = "receipt false"
NOT_IN_FORCE = "plan not in force"
OUT_OF_SCOPE = "out of scope"
RECORD_CHANGED = "record changed out of turn"
RECORD_DAMAGED = "record contradicts itself"
READERS = "trailers read differently"


class Drift(Struct, frozen=True):
    """One way in which a branch is not what the record says.

    Attributes:
        kind: its name, as in the `drift[].kind` of the JSON outputs.
        detail: what was found and what was expected, with both ids.
        commit: the first commit to look at.
        way_out: the next command.
        look: a command that shows what differs, where that is another one.
    """

    kind: str
    detail: str
    commit: Oid | None
    way_out: str
    look: str = ""

    @property
    def ways(self) -> tuple[str, ...]:
        """The commands that help, in the order of their use."""
        return tuple(command for command in (self.way_out, self.look) if command)

    @property
    def status(self) -> BatchStatus:
        """Where such a drift leaves the batch (semantics.md section 6)."""
        return BatchStatus.NEEDS_HUMAN if self.kind == FOREIGN else BatchStatus.FAILED

    @property
    def stop(self) -> StopReason:
        """Why the batch stops then."""
        return StopReason.FOREIGN_COMMITS if self.kind == FOREIGN else StopReason.LINEAGE_BROKEN


class Verdict(Struct, frozen=True):
    """What can be said about the commits from a base to a tip.

    Attributes:
        status: "unknown" is never "whole": `reason` says what could not be looked at.
        certified: the record was here, and every commit was compared with it.
        batch: None when no commit of a batch is among them.
        batch_status: by the record's newest event; None without a record.
        commits: how many were looked at; `tasks` of them are a task's and stand, `undone` were a
            task's and are taken back by others.
    """

    status: Standing
    drifts: tuple[Drift, ...] = ()
    batch: BatchId | None = None
    certified: bool = False
    batch_status: BatchStatus | None = None
    reason: str = ""
    commits: int = 0
    tasks: int = 0
    undone: int = 0


class Ledger(Struct, frozen=True):
    """What the record says of its branch, as of its newest event.

    Attributes:
        head: the branch tip that the record expects.
        plan: the digest of the plan in force.
        foreign: commits that a person blessed.
        receipts: the commits that the record certifies.
        undone: commits that take back a task's, each with the tasks.
        former: where the branch was before each recorded rebase.
        rebuilt: commits that a lost record was rebuilt from, on the word of their trailers.
        signed: the authorization in force says that it is signed.
        pending: the commit that is decided but not recorded yet: its event's id, and the event.
    """

    batch: BatchId
    branch: str
    base: Oid
    head: Oid
    plan: str
    status: BatchStatus
    receipts: Container[Oid]
    foreign: Container[Oid] = ()
    undone: Mapping[Oid, tuple[TaskId, ...]] = field(default_factory=dict)
    former: tuple[Oid, ...] = ()
    rebuilt: Container[Oid] = ()
    signed: bool = False
    pending: tuple[Oid, Settled] | None = None


def accepts(ledger: Ledger, commit: Oid) -> bool:
    """Tell whether the record knows a commit as part of its branch."""
    return (
        commit in ledger.receipts
        or commit in ledger.foreign
        or commit in ledger.undone
        or commit in ledger.rebuilt
    )


def taken_back(ledger: Ledger, line: Iterable[tuple[Oid, str | None]]) -> int:
    """Count the commits of tasks on a line that later ones take back.

    Args:
        line: commits, each with the task that it is of by the record.
    """
    standing: set[str] = set()
    count = 0
    for commit, task in line:
        gone = standing.intersection(ledger.undone.get(commit, ()))
        standing -= gone
        count += len(gone)
        if task is not None:
            standing.add(task)
    return count


def back_to(branch: str, head: Oid, tip: Oid) -> str:
    """Give the command that puts a branch back to its recorded head, wherever it is pasted.

    Git refuses it rather than lose a change that is not committed; what the branch held besides is
    kept by a branch of its own, that is named after it: it happens more than once, and a command
    that git refused is pasted again. That it was there is kept by git until then. Where another
    working tree has the branch, git does not switch to it: `by_way_of` is for whoever knows.

    Args:
        tip: where the branch is.
    """
    aside = f"git branch {word(f'{branch}-aside-{tip[:10]}')} ORIG_HEAD"
    return f"{switch_to(branch)}{_AND}git reset --keep {head}{_AND}{aside}"


_AND = " && "


def switch_to(branch: str, *options: str) -> str:
    """Give the command that checks a branch out, if no other working tree has it."""
    return " ".join(["git switch", *options, word(branch)])


def by_way_of(drift: Drift, way_to: Callable[[str], str]) -> Drift:
    """Have the way out of a drift reach its branch from where the reader stands.

    Args:
        way_to: gives the command for that, by the branch; asked only if there is one to reach.
    """
    import shlex

    first, _, rest = drift.way_out.partition(_AND)
    words = shlex.split(first)
    if not rest or first != switch_to(words[-1]):
        return drift
    return replace(drift, way_out=f"{way_to(words[-1])}{_AND}{rest}")


def to_foreign(status: BatchStatus, branch: str, head: Oid, tip: Oid, batch: str = "") -> str:
    """Give the command for a person's commits on top: an abandoned batch takes none any more."""
    if status is BatchStatus.ABANDONED:
        return back_to(branch, head, tip)
    return f"git batch bless {batch}".rstrip()


def compare(base: Oid, head: Oid, tip: Oid) -> str:
    """Give the command that compares what a branch holds with what is recorded."""
    return f"git range-diff {base} {head} {tip}"


def ways_out(ledger: Ledger, tip: Oid, back: bool, known: bool) -> tuple[str, ...]:
    """Give the commands that help with a branch that is not its recorded line.

    Args:
        back: the branch is whole once it is at its recorded head again.
        known: the recorded commits are here, so that one can go back to them, or compare.
    """
    if tip == ledger.head:
        return (f"git batch log {ledger.batch}",)
    if not known:
        return (f"git log {ledger.base}..{tip}",)
    look = compare(ledger.base, ledger.head, tip)
    return (back_to(ledger.branch, ledger.head, tip), look) if back else (look,)


def word(branch: str) -> str:
    """Write a branch's name so that a shell takes it as it is."""
    import shlex  # only where a branch is not whole; `status` and the hooks must be fast

    return shlex.quote(branch)


def before_rebase(
    branch: str, tip: Oid, head: Oid, base: Oid, former: Sequence[Oid]
) -> Drift | None:
    """Name a branch that is where it was before a recorded rebase; None if it is elsewhere.

    A run that died between the record and the branch leaves it there, and so may a person.
    """
    if tip not in former or tip == head:
        return None
    # As long as nothing stands on the new base, whoever opens the batch moves the branch there.
    way = "git batch resume" if head == base else back_to(branch, head, tip)
    said = f"branch '{branch}' is at {tip}, where it was before the batch was rebased onto {base}"
    return Drift(MOVED_BACK, f"{said}; the record expects {head}", tip, way)


def is_pending(ledger: Ledger, commit: Seen) -> bool:
    """Tell whether a commit is the decided one that the record does not hold yet."""
    if ledger.pending is None:
        return False
    event, decided = ledger.pending
    expected = ((ledger.head,), (decided.parent,), decided.tree, rendered(event, decided))
    return expected == (commit.parents, commit.parents, commit.tree, commit.message)
