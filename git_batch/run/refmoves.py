"""What it means that a ref moved while a command ran.

Nobody signs a move of a ref, so a task's move looks like a person's. What can be told apart is:

* what this run moved itself (the record, logs, kept attempts): by the value that it set;
* what others move who work on another batch, in another working tree (its runner, a decision, a
  pull): they hold that batch's run lock, or held it when the command began. Where that lock only
  seems to have been taken in between, which a task can feign, what goes forward is told;
* a `git fetch`, by a person or an editor: it moves tracking refs to what others have made, and may
  bring tags. A tracking ref that comes to where this batch or the task's own commits are is a push.

The rest is named with both ids. A branch, tag or other ref that was moved or deleted is left as it
is, what it named is kept by a ref, and the run stops: nobody but a person can say whether the task
or another person did it. A ref that came to be harms nobody: it is named, and the run goes on. The
refs of this batch are put back. A push to a bare URL leaves no trace in the repository.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from git_batch.core import record
from git_batch.core.chain import RECORDS, TRACKING, kept_below, ref_name
from git_batch.core.events import Authorized, StopRequested
from git_batch.core.ids import BatchId, Oid, slug_of
from git_batch.core.model import InFlight
from git_batch.errors import GitError, RecordError
from git_batch.repo import batches, commits
from git_batch.repo.claims import claims_on
from git_batch.repo.locks import OtherRuns
from git_batch.repo.reflist import Moves
from git_batch.run.context import RunContext

_WALK = 1000
_CLOCK = 1.0
_REMOTES = ("refs/remotes/", "refs/prefetch/", TRACKING)
_GITS_OWN = ("refs/bisect/", "refs/rewritten/", "refs/worktree/")
_ONLY_PERSONS = ("refs/heads/", "refs/tags/", "refs/stash", "refs/replace/")
_PERSONS = (*_ONLY_PERSONS, "refs/batch/", RECORDS)


class Grade(Enum):
    """How bad a move is."""

    BESIDE = "beside"
    TOLD = "told"
    MADE = "made"
    MOVED = "moved"
    PUSHED = "pushed"
    OURS = "ours"


GRAVE = frozenset({Grade.MOVED, Grade.PUSHED, Grade.OURS})
"""Moves after which nothing else is started."""


class Move(Struct, frozen=True):
    """A ref that moved, from and to which value, and what that means."""

    name: str
    old: str | None
    new: str | None
    grade: Grade

    def __str__(self) -> str:
        if self.grade is Grade.PUSHED:
            return f"pushed: {self.name} is at {self.new} now, before at {self.old or 'nothing'}"
        if self.old is None:
            return f"{self.name} was created, at {self.new}"
        if self.new is None:
            return f"{self.name} was deleted, it was at {self.old}"
        return f"{self.name} was moved from {self.old} to {self.new}"


class RefJudge:
    """Says what moves of refs mean; one for a run."""

    def __init__(self, context: RunContext) -> None:
        self._c = context
        self._record = ref_name(context.state.batch_id)
        self._namespace = kept_below(context.state.batch_id)
        self._alive: set[BatchId] = set()
        self._others = OtherRuns(context.repo)
        self._tolerated: set[str] = set()
        self._beside: set[str | None] = set()

    def is_persons(self, name: str) -> bool:
        """Tell whether a ref is one that only a person moves, and not this batch's branch."""
        return name.startswith(_ONLY_PERSONS) and name != self._c.branch

    def descends(self, value: str, base: str) -> bool:
        """Say whether `base` is on the first-parent line of a commit, not too far down."""
        try:
            oid = Oid(value)
            for _ in range(_WALK):
                if oid == base:
                    return True
                oid = commits.read(self._c.repo, oid).parents[0]
        except (GitError, IndexError):
            return False
        return False

    def note(self) -> None:
        """Note which other batches are being worked on."""
        self._alive = self._others.look()[0] - {self._c.state.batch_id}

    def judge(self, moves: Moves, flight: InFlight) -> list[Move]:
        """Grade the moves that this run did not make; the batch branch is not among them."""
        c = self._c
        own = c.refs.own
        foreign = {
            name: move
            for name, move in moves.items()
            if name != c.branch and not (name in own and own[name] == move[1])
        }
        if not foreign:
            return []
        theirs = self._of_other_batches(foreign)
        self._beside |= {foreign[name][1] for name in theirs if name.startswith("refs/heads/")}
        fetched = any(name.startswith(_REMOTES) for name in foreign)
        return [
            Move(
                name,
                old,
                new,
                theirs.get(name) or self._grade(name, old, new, flight, fetched=fetched),
            )
            for name, (old, new) in sorted(foreign.items())
        ]

    def _grade(
        self, name: str, old: str | None, new: str | None, flight: InFlight, *, fetched: bool
    ) -> Grade:
        if name == self._record:
            return Grade.BESIDE if self._only_beside(old, new) else Grade.OURS
        if name.startswith(self._namespace):
            return Grade.OURS
        if name.startswith(_REMOTES):
            return Grade.PUSHED if new is not None and self._is_ours(new, flight) else Grade.TOLD
        if name.startswith(_GITS_OWN):
            return Grade.TOLD
        if name.startswith("refs/tags/") and old is None and fetched and new is not None:
            return Grade.MADE if self._is_ours(new, flight) else Grade.TOLD
        if not name.startswith(_PERSONS):
            return self._grade_unknown(name, old, new)
        made = old is None and not name.startswith("refs/replace/")
        return Grade.MADE if made else Grade.MOVED

    def _grade_unknown(self, name: str, old: str | None, new: str | None) -> Grade:
        """Let tools keep what is theirs below names of their own, as long as nothing is lost."""
        if old is None:
            self._tolerated.add(name)
        forward = old is not None and new is not None and self.descends(new, old)
        return Grade.TOLD if forward or name in self._tolerated else Grade.MOVED

    def _is_ours(self, value: str, flight: InFlight) -> bool:
        """Say whether a value is a commit of this batch, or one that the task made.

        The base is neither, which people push with their own branch; nor is what the branch of
        another batch came to meanwhile.

        What a task commits is on the branch or at HEAD afterwards, or has at least our name and a
        time that is not before the task's. A commit that a fetch brings has none of these.
        """
        c = self._c
        facts = commits.peeled(c.repo, value)
        if facts is None:
            return False
        oid, by, at = facts
        if oid == c.state.base or oid in self._beside:
            return False
        if oid == flight.parent or oid in {task.commit for task in c.state.tasks.values()}:
            return True
        if not self.descends(oid, flight.parent):
            return False
        tips = (c.refs.read(c.branch), c.refs.read("HEAD"))
        if any(tip is not None and self.descends(tip, oid) for tip in tips):
            return True
        return by == c.who.committer.email and at >= flight.attempt_at.timestamp() - _CLOCK

    def _only_beside(self, old: str | None, tip: str | None) -> bool:
        """Say whether only what another process may append was put on the record."""
        c = self._c
        ours = c.refs.own.get(self._record, old)
        try:
            while tip is not None and tip != ours:
                facts = commits.read(c.repo, Oid(tip))
                event = record.parse(facts.message).event
                if not isinstance(event, Authorized | StopRequested) or not facts.parents:
                    return False
                tip = facts.parents[0]
        except (GitError, RecordError):
            return False
        return tip is not None

    def _of_other_batches(self, moves: Moves) -> dict[str, Grade]:
        """Grade what was moved by who works on another batch, or seems to have meanwhile."""
        before = self._alive
        held, taken = self._others.look()
        self._alive = held - {self._c.state.batch_id}
        found: dict[str, Grade] = {}
        for batch in taken - before - {self._c.state.batch_id}:
            name = f"{RECORDS}{batch}"
            old, new = moves.get(name, (None, None))
            names = self._of_batch(batch, moves, old)
            if old is not None and not (new is not None and self.descends(new, old)):
                names.discard(name)
            if old is None and new is not None:  # begun meanwhile, so its branch is new as well
                names = {name for name in names if moves[name][0] is None}
            found |= dict.fromkeys(names, Grade.TOLD)
        for batch in before | self._alive:
            found |= dict.fromkeys(self._of_batch(batch, moves, None), Grade.BESIDE)
        return found

    def _of_batch(self, batch: BatchId, moves: Moves, at: str | None) -> set[str]:
        """List the moved refs that are a batch's.

        Args:
            at: an event of its record that tells its branch; None takes the newest.
        """
        theirs = [f"{RECORDS}{batch}", kept_below(batch), claims_on(slug_of(batch))]
        branch = self._branch_of(batch, at)
        theirs += [f"refs/heads/{branch}"] if branch else []
        return {
            name
            for name in moves
            if any(name == ref or (ref[-1] == "/" and name.startswith(ref)) for ref in theirs)
        }

    def _branch_of(self, batch: BatchId, at: str | None) -> str | None:
        repo = self._c.repo
        found = batches.at(repo.git, batch, Oid(at)) if at else batches.find(repo, batch)
        return found.header.branch if found and found.header else None
