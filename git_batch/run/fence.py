"""What a task may not do to the repository itself: its configuration, hooks, refs, history.

The comparison comes before any git command of ours, and only reads: what a task planted would be
run by the very next one. Then, in this order: files are put back, this batch's refs are put back,
its branch and HEAD are put back. What the task made of them is kept, and named.

A task's own commits, in a straight line on top of the expected tip, are its work: they are kept by
a ref and the one commit is made from the working tree. Any other move of the branch, or of HEAD,
is `history_changed`. All else is `tampered`; nothing else is started then, unless everything could
be put back or had only been added. What looks like a task's doing and may have been a person's
(a commit on another branch in another working tree) is in `refmoves`.

What is known before a command is on disk as well (`repo/fencefile`): if the runner is killed before
it has compared, whoever takes the run up does that first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from git_batch.core.attempt import Failure
from git_batch.core.ids import Oid
from git_batch.core.model import InFlight, accepted
from git_batch.core.naming import few, few_facts
from git_batch.core.scope import Scope
from git_batch.core.standing import Outcome
from git_batch.errors import GitError
from git_batch.repo import attempts, commits, fencefile, trust
from git_batch.repo.fence import PutBack, Watch, named, put_right
from git_batch.repo.fencefile import Armed, FenceFile
from git_batch.repo.locks import run_locks
from git_batch.repo.reflist import Moves, RefList, is_value, place_of
from git_batch.repo.scratch import Scratch
from git_batch.run.context import RunContext
from git_batch.run.refmoves import GRAVE, Grade, Move, RefJudge

OWN_MOST = 10_000
"""How many commits of a task are walked to see that they stand on the expected tip."""

_LISTED = 20
_ROUNDS = 3
_ADVICE = (
    "Do not commit, amend, reset, rebase, switch branches or push, and leave the repository's "
    "configuration, hooks, branches and tags alone: only change files."
)


class Fence:
    """Compares the repository before and after a command."""

    def __init__(self, context: RunContext) -> None:
        self._c = context
        self._watch = Watch(context.repo)
        self._file = FenceFile(context.repo.layout)
        self._refs = RefList(context.repo.layout)
        self._judge = RefJudge(context)
        repo, batch = context.repo, context.state.batch_id
        locks = run_locks(repo, batch)
        self._scratch = Scratch(repo, locks, trust.place(repo, batch))
        self._up = self._refs_saved = False

    def raise_(self, flight: InFlight, *, noted: bool = False) -> None:
        """Note how things stand before a command, on disk as well, and whose command it is.

        Args:
            noted: how they stand is known: nothing but ours has run since they were compared.
        """
        if not (noted and self._up):
            self._note()
        self._file.arm(self._armed(flight))
        self._scratch.note()

    def lower(self) -> None:
        """Forget on disk how things stood, unless a command ran that nothing was compared after."""
        self._file.lower()

    def _note(self) -> None:
        self._up = True
        self._watch.note()
        self._watch.save(self._file)
        moved = self._refs.note()
        if not self._refs_saved or any(map(self._judge.is_persons, moved)):
            values = self._refs.values().items()
            self._file.save_refs({n: v for n, v in values if self._judge.is_persons(n)})
            self._refs_saved = True
        self._judge.note()

    def aftermath(self, flight: InFlight) -> list[str]:
        """Say what was put right when this attempt's run had been killed, and which refs moved.

        A person may have moved them since, as they do every day: so they are only told, and what
        a ref named is kept by one of ours unless it leads there still.
        """
        c = self._c
        found = fencefile.told(c.repo.layout)
        here = (c.state.batch_id, flight.task, flight.attempt)
        if found is None or (found.batch, found.task, found.attempt) != here:
            return []
        self._refs.note()
        known, now = fencefile.load_refs(c.repo.layout), self._refs.values()
        moved: Moves = {n: (old, now.get(n)) for n, old in known.items() if now.get(n) != old}
        moves = [m for m in self._judge.judge(moved, flight) if m.grade is Grade.MOVED]
        for move in moves:
            assert move.old is not None
            reached = move.new is not None and self._judge.descends(move.new, move.old)
            if not reached and not move.old.startswith("ref:"):
                self._keep(flight, [Oid(move.old)], "moved")
        told = few_facts([str(move) for move in moves], _LISTED)
        if told:
            c.tools.progress.note(f"since the command of '{flight.task}' began: {told}")
        return [*([found.said] if found.said else []), *([f"since then {told}"] if told else [])]

    def _armed(self, flight: InFlight) -> Armed:
        c = self._c
        return Armed(
            batch=c.state.batch_id,
            task=flight.task,
            attempt=flight.attempt,
            runner=c.runner,
            branch=c.branch,
            scope=c.machine.task(flight.task).scope,
            untracked=tuple(map(os.fsdecode, accepted(c.state.authorization))),
        )

    def breach(self, flight: InFlight) -> Failure | None:
        """Put right what a command moved; say so if it was not simply committing."""
        if not self._up:
            return self._failure([], [], self._history(flight))
        found = self._compare(flight)
        self._file.disarm()
        return found

    def _compare(self, flight: InFlight) -> Failure | None:
        c = self._c
        self._watch.still_there()
        ours, lost = self._scratch.spoilt()
        if ours:
            self._scratch.renew(ours, self._watch.set_aside)
            self._refs_saved = False
        files = [*self._mend_files(), *self._put_back(flight)]
        moved = self._refs.moved()
        files += self._mend_pipes(moved)
        moves = self._judge.judge(moved, flight)
        mended = self._mend(moves, moved.get(c.branch, (None, None))[1])
        c.scanner.take_back()
        self._tell([move for move in moves if move.grade is Grade.TOLD])
        moves = [move for move in moves if move.grade not in (Grade.TOLD, Grade.BESIDE)]
        for move in moves:
            self._secure(move, flight)
        history = self._history(flight) or mended
        if files or moves or ours:
            self._note()
        return self._failure(files, moves, history, ours, lost=lost)

    def _mend_files(self) -> list[PutBack]:
        """Put back the files that git and we read next, where what is there now can't be read."""
        done = [self._watch.mend_index()] if self._scratch.index_spoilt() else []
        packed = self._refs.mend_packed(self._watch.set_aside)
        return [*done, *([put_right(*packed)] if packed else [])]

    def _mend_pipes(self, moved: Moves) -> list[PutBack]:
        """Remove pipes from among the refs; what a ref was is told by its move, if it was one."""
        layout, pipes = self._c.repo.layout, self._refs.pipes
        for name in pipes:
            self._watch.mend_ref(name)
        return [put_right(place_of(layout, name)) for name in pipes if name not in moved]

    def _put_back(self, flight: InFlight) -> list[PutBack]:
        """Put the watched files back; hooks in the task's scope are its work and stay."""
        scope = Scope(self._c.machine.task(flight.task).scope)
        done: dict[str, PutBack] = {}
        for _ in range(_ROUNDS):  # a folder in its place again may lack what was in it
            hooks = ((path, self._watch.hook_in_tree(path)) for path in self._watch.changed())
            paths = [path for path, hook in hooks if hook is None or not scope.match(hook)]
            fresh = [path for path in paths if path not in done]
            if not fresh:
                break
            done |= {file.path: file for file in self._watch.put_back(fresh)}
        return list(done.values())

    def _mend(self, moves: Iterable[Move], branch: str | None) -> str | None:
        """See that HEAD, the branch and this batch's refs can be read; say if HEAD couldn't."""
        c = self._c
        unreadable = self._watch.mend_head(c.branch)
        broken = [move.name for move in moves if move.grade is Grade.OURS and _is_broken(move.new)]
        for name in [*broken, *([c.branch] if _is_broken(branch) else [])]:
            self._watch.mend_ref(name)
        return "the command left a HEAD that git can't read; it is put back" if unreadable else None

    def _tell(self, moves: Sequence[Move]) -> None:
        if moves:
            more = f", and {len(moves) - 1} more refs moved" if moves[1:] else ""
            self._c.tools.progress.note(f"meanwhile: {moves[0]}{more}")

    def _secure(self, move: Move, flight: InFlight) -> None:
        """Keep what a ref named before; put it back where it is this batch's own."""
        if move.grade is Grade.OURS:
            if move.new is not None and not _is_broken(move.new):
                self._keep(flight, [Oid(move.new)], "written")
            self._put_ref_back(move)
        elif move.grade is Grade.MOVED and move.old and not move.old.startswith("ref:"):
            self._keep(flight, [Oid(move.old)], "moved")

    def _put_ref_back(self, move: Move) -> None:
        refs, name = self._c.refs, move.name
        known = refs.own.get(name) or (Oid(move.old) if move.old else None)
        now = refs.read(name)
        if known is not None and now != known:
            refs.swap(name, now, known, "put back")
        elif known is None and now is not None:
            refs.delete(name, now)

    def _history(self, flight: InFlight) -> str | None:
        """Put branch and HEAD back; say what else than committing was done to them."""
        c = self._c
        head, tip = c.repo.symbolic_head(), c.refs.read(c.branch)
        if head == c.branch and tip == flight.parent:
            return None
        detached = c.refs.read("HEAD")
        moved = [oid for oid in (tip, detached if head != c.branch else None) if oid]
        own = head == c.branch and tip is not None and self._stands_on(tip, flight.parent)
        self._keep(flight, [oid for oid in moved if oid != flight.parent], "commits")
        if tip != flight.parent:
            c.refs.swap(c.branch, tip, flight.parent, f"{flight.task}: commits taken apart")
        if head != c.branch:
            c.refs.point(c.branch, f"{flight.task}: HEAD put back")
        if own:
            return None
        where = head or (f"detached at {detached}" if detached else "nothing")
        if tip == flight.parent:
            return f"the command moved HEAD from '{c.branch}' to {where}, at {detached}"
        to = tip or "nothing"
        return f"the command moved '{c.branch}' from {flight.parent} to {to}, HEAD to {where}"

    def _keep(self, flight: InFlight, oids: Sequence[Oid], what: str) -> None:
        """Keep commits by refs beside the attempt's, each under a name that is free."""
        c = self._c
        ref = attempts.attempt_ref(c.state.batch_id, flight.task, flight.attempt)
        for oid in dict.fromkeys(oids):
            n, name = 0, f"{ref}-{what}"
            while (there := c.refs.read(name)) not in (None, oid):
                n += 1
                name = f"{ref}-{what}-{n}"
            if there is None and commits.exists(c.repo, oid):
                c.refs.swap(name, None, oid, f"{flight.task}: {what} kept")

    def _stands_on(self, tip: Oid, base: Oid) -> bool:
        """Tell whether a tip is a straight line of commits on top of another commit."""
        for _ in range(OWN_MOST):
            if tip == base:
                return True
            try:
                facts = commits.read(self._c.repo, tip)
            except GitError:
                return False
            if len(facts.parents) != 1:
                return False
            tip = facts.parents[0]
        return False

    def _failure(
        self,
        files: Sequence[PutBack],
        moves: Sequence[Move],
        history: str | None,
        ours: Sequence[str] = (),
        *,
        lost: bool = False,
    ) -> Failure | None:
        made = [str(move) for move in moves if move.grade is Grade.MADE]
        top = self._c.repo.layout.top
        bad = [file.told(top) for file in files]
        bad += [_spoilt([named(path, top) for path in ours])] if ours else []
        loudest = sorted(moves, key=lambda move: move.grade is not Grade.PUSHED)
        bad += [str(move) for move in loudest if move.grade is not Grade.MADE]
        if history is not None and not bad:
            return Failure(Outcome.HISTORY_CHANGED, "; ".join([history, *made]), _ADVICE)
        lines = [*([history] if history else []), *bad, *made]
        if not lines:
            return None
        reason = few_facts(lines, _LISTED)
        halts = not all(f.done or f.added for f in files) or any(m.grade in GRAVE for m in moves)
        halts = halts or lost
        return Failure(Outcome.TAMPERED, reason, f"{_ADVICE}\n\n{reason}", halts)


def _is_broken(value: str | None) -> bool:
    return value is not None and not is_value(value)


def _spoilt(names: Sequence[str]) -> str:
    """Say which files of ours a command changed."""
    return f"files of git-batch's own were changed, and are made anew: {few(names)}"
