"""What a task may have planted when its run was killed: found before any git command could run it.

A run that is killed while a command runs leaves on disk how things stood before (`fencefile`).
Whoever works on the files next compares first, by plain reads: `resume` before it asks git anything
at all, so that a configuration which git can't even read is found as well; and everything that
takes the run lock and then has git read the working tree, under that lock. So do `push`, `fetch`,
`pull`, `hooks` where it tries them, and `verify` before a signature is looked at, since the
configuration says by what program. What asks git only for objects and refs (`status`, `report`,
`show`, `prune`, `recover`, `abandon`, …) runs nothing that can be planted, and is not kept from it:
its git asks no other repository then, as it would of itself for an object that is missing. What a
run that was killed in another working tree left is looked at as well (`elsewhere`): after what was
left here, since what is put back here may be what was not as it was there.

* Nothing differs: nothing is said.
* Something differs: the task did it, or a person after the crash; nobody can tell. So nothing is
  put back by itself and nothing is taken over by itself: the command is refused, and a person says
  `--put-back` or `--keep-changes`. What is put back is told in the reason of the attempt.
* Processes of that run that still live may plant at any time, so they have to end first.

One thing comes before all of this: called as `git batch` on a terminal, git itself runs what it
finds as `pager.batch` in the configuration before it starts us. Called as `git-batch` it doesn't.

As within a run (`run.fence`), lines of `branch.*` don't count, hooks in the scope of the task are
its work, what lies outside the repository is named and left, and what takes another thing's place
is moved into `kept/`. A working tree that was linked meanwhile runs nothing and isn't looked at.
Refs are moved by persons every day: which of theirs moved is only told, by the run (`run.fence`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from git_batch.app import elsewhere
from git_batch.app.killedrun import LISTED, KilledRun
from git_batch.app.requests import ResumeRequest
from git_batch.core.ids import Oid
from git_batch.core.naming import few, few_facts, few_lines, few_paths
from git_batch.core.values import replace
from git_batch.errors import PreconditionError
from git_batch.repo import fencefile
from git_batch.repo.armed import is_armed
from git_batch.repo.fence import PutBack, Watch, named
from git_batch.repo.here import here
from git_batch.repo.locks import RunLock, live, tree_lock
from git_batch.repo.repository import Repository
from git_batch.repo.stalelocks import LOCK_WAIT
from git_batch.repo.unopened import layout_above, program
from git_batch.repo.worktree import Scanner
from git_batch.run import descendants, group

_ROUNDS = 3
"""A folder that is in its place again may lack what was in it."""

_ORPHAN_GRACE = 5.0
_ORPHAN_ROUNDS = 20
"""How often what `--kill-orphans` ends may turn out to have left children."""

_PAUSE = 0.05

Note = Callable[[str], None]


class Ways(Struct, frozen=True):
    """What a person decides about changes that nobody can tell whose they are.

    Attributes:
        asked: what they ask besides, to be asked again once that is decided; whether what is left
            of the run is to be ended, too.
    """

    put_back: bool = False
    keep_changes: bool = False
    asked: ResumeRequest = ResumeRequest()

    def again(self, *decided: str, batch: str | None = None) -> str:
        """Write the command that decides something as well; `batch` if they name none."""
        named = self.asked if self.asked.batch or not batch else replace(self.asked, batch=batch)
        return named.again(*decided)

    def again_without_orphans(self) -> str:
        """Write the command that first ends what lives; what is decided is still to be done."""
        given = (("--put-back", self.put_back), ("--keep-changes", self.keep_changes))
        return self.again("--kill-orphans", *(option for option, said in given if said))


def take_up(start: str, ways: Ways, at: datetime, note: Note) -> None:
    """See what a killed run left here before git is asked anything; do as a person decided.

    Raises:
        PreconditionError: something is not as it was, or a process of that run is alive.
        LockedError: somebody began to work here meanwhile.
    """
    layout = layout_above(here(start), os.environ)
    if layout is None or not is_armed(layout) or live(Repository(layout)):
        return
    try:
        layout = fencefile.load(layout).layout
    except fencefile.UnusableError:
        return  # told once the repository is open
    repo = Repository(layout)
    ways = replace(ways, asked=replace(ways.asked, program=program(repo)))
    with RunLock(repo, None, at):
        settle(repo, note, ways)


def settle(repo: Repository, note: Note, ways: Ways = Ways()) -> None:
    """See that what a killed run left is as it was; to be called under the run lock.

    Raises:
        PreconditionError: as of `take_up`.
    """
    try:
        case = _case(repo, ways)
    except fencefile.UnusableError as error:
        note(
            "a run was killed while a command ran; whether that changed git's configuration or "
            f"hooks can't be told: of what was noted before, {error}"
        )
        case = None
    if case is not None:
        if ways.put_back:
            case.put_back(note)
        left = case.differing()
        if left and not ways.keep_changes:
            raise case.refusal(left, ways)
        if left:
            case.keep(left, note)
        # Also where there is nothing: of whose attempt it was, the run tells which refs moved.
        case.tell(case.take_back(), note)
    fencefile.settle(repo.layout)
    elsewhere.refuse(repo)
    repo.git.go_out()


def refuse(repo: Repository) -> None:
    """Refuse what `settle` would; it stays for `settle` to forget that all is well.

    Raises:
        PreconditionError: as of `take_up`.
    """
    _refuse_here(repo)
    elsewhere.refuse(repo)


def refuse_unless_live(repo: Repository) -> None:
    """Refuse what `refuse` does; of a run that is at work here nothing: it compares by itself.

    Raises:
        PreconditionError: as of `take_up`.
    """
    if not live(repo):
        _refuse_here(repo)
    elsewhere.refuse(repo)


def _refuse_here(repo: Repository) -> None:
    try:
        case = _case(repo, Ways())
    except fencefile.UnusableError:
        return
    left = case.differing() if case else []
    if case and left:
        raise case.refusal(left, Ways())


def may_be_planted(repo: Repository) -> bool:
    """Say whether git might run here what a task planted, a live run's or a killed one's."""
    return _may_be_planted_here(repo) or elsewhere.is_planted(repo)


def _may_be_planted_here(repo: Repository) -> bool:
    if live(repo):
        return is_armed(repo.layout)
    try:
        case = _case(repo, Ways())
    except fencefile.UnusableError:
        return False
    except PreconditionError:
        return True
    return case is not None and bool(case.differing())


def no_orphans(lock: Path, mark: str, ways: Ways) -> None:
    """Refuse while a process of an earlier run lives, or end it if that was asked for.

    A process that closed the lock it inherited is still found by the mark of the run it is of.

    Raises:
        PreconditionError: there is one; it is named.
    """
    kill = ways.asked.kill_orphans
    alive = _living(lock, mark, patience=0 if kill else LOCK_WAIT)
    for _ in range(_ORPHAN_ROUNDS if kill else 0):
        # Who dies may leave children that nobody could tell were of this run before.
        if not alive or descendants.end(alive, _ORPHAN_GRACE):
            break
        alive = _living(lock, mark, patience=0)
    if alive:
        named = few_lines([f"{left.pid}  {left.command}" for left in alive], LISTED)
        raise PreconditionError(
            f"processes of an earlier run are still alive:\n{named}",
            f"wait until they end, or end them: {ways.again_without_orphans()}",
        )


def _living(lock: Path, mark: str, *, patience: float) -> list[descendants.Leftover]:
    """List what a run left; a git of its own, which only its group tells, soon ends by itself.

    Args:
        patience: seconds for that.
    """
    limit = time.monotonic() + patience
    while (members := group.members(str(lock.parent))) and time.monotonic() < limit:
        found = descendants.living(lock, mark, members)
        if len(found) == len(descendants.living(lock, mark)):
            return found
        time.sleep(_PAUSE)
    return descendants.living(lock, mark, members)


class _Case(KilledRun, frozen=True):
    """A run that was killed here."""

    repo: Repository

    def differing(self) -> list[str]:
        """List the paths that are not as they were, folders before what is in them."""
        found = self.changed()
        if self.armed.branch and self.watch.head_is_broken():
            found.append(os.path.join(self.repo.layout.git_dir, "HEAD"))
        if self._index_differs():
            found.append(self.repo.layout.index)
        return found

    @property
    def _accepted(self) -> tuple[bytes, ...]:
        return tuple(map(os.fsencode, self.armed.untracked))

    def _index_differs(self) -> bool:
        return self.watch.index_is_broken() or self.watch.index_leads_on(self._accepted)

    def put_back(self, note: Note) -> None:
        """Put back what is ours to put back; tell it."""
        self.watch.still_there()
        said, done = list[str](), dict[str, PutBack]()
        if self.armed.branch and self.watch.mend_head(self.armed.branch):
            said.append("HEAD could not be read and is put back")
        if self._index_differs():
            said.append(self.watch.mend_index().told(self.repo.layout.top))
        for _ in range(_ROUNDS):
            fresh = [path for path in self.differing() if path not in done]
            if not fresh:
                break
            done |= {file.path: file for file in self.watch.put_back(fresh)}
        said += [f.told(self.repo.layout.top) for f in done.values() if f.done]
        self.tell(said, note)

    def keep(self, found: Sequence[str], note: Note) -> None:
        """Take what is there as the person's; tell it."""
        copies = self.watch.copy_known(found)
        where = f"; what they were is in '{self._shown(copies)}'" if copies else ""
        named = few([self._shown(path) for path in found], LISTED)
        self.tell([f"a person kept as they are: {named}{where}"], note)

    def take_back(self) -> list[str]:
        """Take out of the person's index what the command staged and may not; say so.

        Where it had committed as well, what is in that commit is for a person to decide.
        """
        asked = self.repo.git.call(["rev-parse", "--quiet", "--verify", "HEAD^{tree}"])
        if asked.status or self.watch.index_is_broken():
            return []
        scanner = Scanner(self.repo, self._accepted)
        scanner.person.recover(scanner.private)
        found = scanner.take_back(Oid(asked.stdout.decode().strip()))
        why = "staged though accepted as untracked, so taken out of the index again"
        return [f"{why}: {few_paths(found, LISTED)}"] if found else []

    def refusal(self, found: Sequence[str], ways: Ways) -> PreconditionError:
        """Name what differs, and the ways out."""
        copies = self.watch.copy_known(found)
        resume = partial(ways.again, batch=self.batch)
        return PreconditionError(
            f"a run was killed while {self.whose} ran, and since then these are not what they "
            f"were; git may run what stands in them:\n{self.listing(found, self.repo.layout.top)}",
            *([f"what they were is in '{self._shown(copies)}'"] if copies else []),
            *self._back(found, resume),
            f"or take what is there now as yours: {resume('--keep-changes')}",
        )

    def _back(self, found: Sequence[str], resume: Callable[..., str]) -> Iterator[str]:
        ours = [path for path in found if self.watch.can_put_back(path)]
        if ours:
            yield f"put them back, and keep what is there now beside: {resume('--put-back')}"
        if len(ours) < len(found):
            rest = "the rest" if ours else "them"
            why = "being outside of the repository or too large"
            yield f"put {rest} back by hand, {why}: {resume()}"

    def tell(self, said: Sequence[str], note: Note) -> None:
        """Say it, and leave it for the reason of the attempt."""
        for line in said:
            note(line)
        armed = self.armed
        before = fencefile.told(self.repo.layout)
        same = before and (before.task, before.attempt) == (armed.task, armed.attempt)
        earlier = [before.said] if before and same and before.said else []
        text = "; ".join([*earlier, *([few_facts(said, LISTED)] if said else [])])
        found = fencefile.Found(armed.batch, armed.task, armed.attempt, text)
        fencefile.tell(self.repo.layout, found)

    def _shown(self, path: str) -> str:
        return named(path, self.repo.layout.top)


def _case(repo: Repository, ways: Ways) -> _Case | None:
    """Open the case of a killed run; None if there is none.

    Raises:
        UnusableError: there is nothing to compare with.
        PreconditionError: a process of it is alive.
    """
    armed = fencefile.armed(repo.layout)
    if armed is None:
        return None
    no_orphans(Path(tree_lock(repo)), armed.runner, ways)
    standing = fencefile.load(repo.layout)
    # Where things are is what was noted: the configuration may say otherwise by now.
    there = Repository(standing.layout)
    return _Case(armed, Watch(there, standing), there)
