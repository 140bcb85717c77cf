"""One attempt of one task: run it, look at what it left, check that.

The scan after the command gives the tree that everything later speaks of; the scan after the
checks proves that they left it alone. There is no other scan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from git_batch.core.attempt import CheckResult, Failure, LogRef, Usage
from git_batch.core.events import AttemptFailed, ChecksFailed, ChecksPassed, Ran
from git_batch.core.ids import Oid
from git_batch.core.machine import accepts_empty
from git_batch.core.model import Command, InFlight, Task
from git_batch.core.naming import few_lines, few_paths, path_text
from git_batch.core.scope import literal_paths
from git_batch.core.standing import Outcome
from git_batch.errors import GitError
from git_batch.repo import submodules
from git_batch.repo.trees import diff, paths_of
from git_batch.run.applying import Work, apply_work, work_of
from git_batch.run.attemptlog import reference
from git_batch.run.checkcache import CheckCache
from git_batch.run.claiming import TaskClaims
from git_batch.run.commands import Commands, check_failure, failure_of, result_of
from git_batch.run.context import RunContext
from git_batch.run.fence import Fence
from git_batch.run.scopecheck import refuse

KEEP = 100
"""Changed paths that an event lists; the total is always said."""


T = TypeVar("T")


class UnfitError(Exception):
    """git can't take what is in the working tree, though it could if it took it unfiltered."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class TaskRunner:
    """Runs commands and checks of the attempt in flight."""

    def __init__(self, context: RunContext, claims: TaskClaims) -> None:
        self._c = context
        self.commands = Commands(context)
        self._fence = Fence(context)
        self._cache = CheckCache(recheck=context.tools.recheck)
        self._claims = claims
        self._told_unread: set[str] = set()

    def run(self, task: Task, flight: InFlight) -> Ran | AttemptFailed:
        """Run the task's command and compare what it left with the scope."""
        c = self._c
        base = c.repo.tree_of(flight.parent)
        work = work_of(c.repo, flight)
        failure = self._begin(task, flight, base, work)
        if failure is not None:
            return self._failed(flight, failure, None, Usage())
        failure, status, usage = self._command(task, flight)
        if failure is not None:
            return self._failed(flight, failure, status, usage)
        try:
            tree = self.scan(also=literal_paths(task.scope))
        except UnfitError as error:
            return self._failed(flight, error.failure, status, usage)
        changes = diff(c.repo.objects, base, tree)
        failure = unfit(c.scanner.problems) or self.inside() or refuse(task, changes)
        # Work that only is applied was somebody's change: if the tip has it, it is done.
        if failure is None and not (changes or flight.apply_only or accepts_empty(task)):
            failure = Failure(Outcome.EMPTY, "the command changed nothing")
        if failure is not None:
            return self._failed(flight, failure, status, usage)
        return Ran(
            at=c.now(),
            task=task.id,
            attempt=flight.attempt,
            tree=tree,
            changed=tuple(paths_of(changes[:KEEP])),
            changed_total=len(changes),
            log=None if task.checks else self.keep_log(flight),
            usage=usage,
            message=work.message if work and flight.apply_only else c.files.body(),
            links=tuple(change.path for change in changes if change.is_symlink)[:KEEP],
        )

    def _begin(self, task: Task, flight: InFlight, base: Oid, work: Work | None) -> Failure | None:
        """Claim the task and put the working tree to where its command begins."""
        c = self._c
        c.log.begin()
        c.files.begin(task, flight)
        c.scanner.raw = False
        c.scanner.begin(base)
        failure = self._claims.take(flight.task)
        if failure is None and work is not None:
            failure = apply_work(c, flight, work)
            c.scanner.begin(base)
        return failure

    def _command(self, task: Task, flight: InFlight) -> tuple[Failure | None, int | None, Usage]:
        """Run the command between two looks at the fence; work that is only applied has none."""
        if flight.apply_only:
            return None, None, Usage()
        self._fence.raise_(flight)
        ended, piece = self.commands.task(task, flight)
        usage = self._c.files.used(task)
        self._tell_unread(task, usage.unread)
        breach = self._fence.breach(flight)
        return breach or failure_of(self._c, task, ended, piece), ended.status, usage

    def _tell_unread(self, task: Task, why: str) -> None:
        """Say that what a command used stays unknown, though it wrote something; once a run."""
        if why and why not in self._told_unread:
            self._told_unread.add(why)
            said = f"what '{task.id}' wrote to $BATCH_USAGE can't be read: {why}"
            self._c.tools.progress.note(f"{said}; that counts as unknown")

    def check(self, task: Task, flight: InFlight) -> ChecksPassed | ChecksFailed | AttemptFailed:
        """Run the task's checks in order, to the first that does not pass."""
        assert flight.tree is not None
        # The fence was looked at when the command ended, and nothing but ours has run since.
        results, failure = self._check_all(task, flight, flight.tree, noted=True)
        now = self._c.now()
        if failure is None:
            log = self.keep_log(flight)
            return ChecksPassed(now, task.id, flight.attempt, results, log)
        if failure.outcome is Outcome.INTERRUPTED:
            return self._failed(flight, failure, flight.exit_status, Usage())
        log = self.keep_log(flight, at_once=True)
        return ChecksFailed(now, task.id, flight.attempt, failure, results, log)

    def scan(self, also: Sequence[bytes] = ()) -> Oid:
        """Take the working tree as `git add` would.

        Raises:
            UnfitError: a filter, an encoding or a rule about line ends refuses a file.
            GitError: git fails without those as well, so it is not the files' fault.
        """
        return self._fitting(lambda: self._c.scanner.scan(also))

    def changed_since(self, tree: Oid) -> list[bytes]:
        """List what was changed since the scan that gave `tree`; errors as of `scan`."""
        changes = self._fitting(lambda: self._c.scanner.changed_by_checks(tree))
        return paths_of(changes) or self._inside()

    def inside(self) -> Failure | None:
        """Say which submodules were changed inside, where no commit of ours can hold it."""
        return changed_inside(self._inside())

    def _inside(self) -> list[bytes]:
        return submodules.changed_inside(self._c.repo, self._c.scanner.private)

    def _fitting(self, look: Callable[[], T]) -> T:
        """Look at the working tree; tell what git refuses to take from what git can't do.

        What fails once only is not the files' fault: the disk was full for a moment.
        """
        with suppress(GitError):
            return look()
        try:
            return look()
        except GitError as error:
            self._c.scanner.raw = True
            look()
            said = self._c.files.hide(error.message)  # a filter may have said it
            reason = f"git can't take what is in the working tree: {said}"
            feedback = f"{reason}\n\nThe work is kept as it was, unfiltered."
            raise UnfitError(Failure(Outcome.COMMIT_FAILED, reason, feedback)) from None

    def scan_to_keep(self) -> Oid:
        """Take the working tree, unfiltered if it must be, so that nothing of it is lost."""
        scanner = self._c.scanner
        scanner.raw = False
        try:
            return scanner.scan()
        except GitError:
            scanner.raw = True  # and stays so while its paths are put back
            return scanner.scan()

    def moved(self, flight: InFlight) -> Failure | None:
        """Put right what a hook did to branch, HEAD and the person's index.

        Returns:
            What it did to branch or HEAD, if that was not simply committing.
        """
        c = self._c
        c.scanner.take_back()
        if c.repo.symbolic_head() == c.branch and c.refs.read(c.branch) == flight.parent:
            return None
        return self._fence.breach(flight)

    def check_again(self, task: Task, flight: InFlight, tree: Oid) -> Failure | None:
        """Run the checks on a tree that a hook changed."""
        return self._check_all(task, flight, tree)[1]

    def _check_all(
        self, task: Task, flight: InFlight, tree: Oid, *, noted: bool = False
    ) -> tuple[tuple[CheckResult, ...], Failure | None]:
        results: list[CheckResult] = []
        if not task.checks:
            return (), None
        reused = self._cache.passed(self._c.state, task, tree)
        if reused is not None:
            for result in reused:
                self._c.log.add(result.command).ending = "not run: it has passed on this tree"
            return reused, None
        failure = None
        self._fence.raise_(flight, noted=noted)
        for command in task.checks:
            ended, piece = self.commands.check(task, flight, command)
            results.append(result_of(ended, piece))
            failure = check_failure(ended, piece)
            if failure is not None:
                break
        failure = self._fence.breach(flight) or failure
        if failure is not None:
            return tuple(results), failure
        try:
            changes = self.changed_since(tree)
        except UnfitError as error:
            return tuple(results), error.failure
        if changes:
            outcome = Outcome.CHECK_CHANGED_TREE
            return tuple(results), changed_tree(changes, "checks", outcome)
        return self._cache.note(task, tree, tuple(results)), None

    def check_base(self, task: Task, flight: InFlight, command: Command) -> Failure | None:
        """Run one check on what no task has changed yet; None if it passed."""
        self._c.files.begin(task, flight)
        self._fence.raise_(flight)
        ended, piece = self.commands.check(task, flight, command)
        return self._fence.breach(flight) or check_failure(ended, piece)

    def begin_review(self, flight: InFlight) -> None:
        """Have the fence stand around a review command as around a check."""
        self._fence.raise_(flight, noted=True)

    def end_review(self, flight: InFlight) -> Failure | None:
        """Put right what a review command moved; say so if it moved anything."""
        return self._fence.breach(flight)

    def aftermath(self, flight: InFlight) -> list[str]:
        """Say what was found when the run that began the attempt had been killed."""
        return self._fence.aftermath(flight)

    def close(self) -> None:
        """Leave nothing of the fence on disk that an orderly end has no use for."""
        self._fence.lower()

    def keep_log(self, flight: InFlight, *, at_once: bool = False) -> LogRef | None:
        """Keep the attempt's output; say how it can be found again.

        At once, by its ref, if the attempt has failed: its log is what a person needs then, and
        an event must not name what a crash could lose.
        """
        text = self._c.log.text()
        place = self._c.machine.graph.index[flight.task]
        self._c.logs.put(place, flight.task, flight.attempt, text)
        if at_once:
            self._c.logs.publish(self._c.now())
        return reference(text)

    def _failed(
        self, flight: InFlight, failure: Failure, status: int | None, usage: Usage
    ) -> AttemptFailed:
        log = self.keep_log(flight, at_once=True)
        return AttemptFailed(
            self._c.now(), flight.task, flight.attempt, failure, status, log, usage
        )


def _listed(paths: Sequence[bytes]) -> tuple[str, str]:
    """Name the first paths in a sentence, and those that are kept one a line."""
    return few_paths(paths), few_lines([path_text(p) for p in paths], KEEP, indent="")


def unfit(paths: Sequence[bytes]) -> Failure | None:
    """Say that git left paths out; None if there are none."""
    if not paths:
        return None
    named, listing = _listed(paths)
    text = f"left what git can't take: {named}"
    return Failure(Outcome.SCOPE_REFUSED, text, f"git can't take these paths:\n\n{listing}")


def changed_inside(paths: Sequence[bytes]) -> Failure | None:
    """Say that submodules hold more than the commit that they are at; None if there are none."""
    if not paths:
        return None
    named, listing = _listed(paths)
    which = f"submodule {named}" if len(paths) == 1 else f"submodules {named}"
    return Failure(
        Outcome.SCOPE_REFUSED,
        f"changed files inside {which}, which a commit here can't hold",
        "A commit of this repository holds only which commit a submodule is at. Commit inside the "
        "submodule, so that its HEAD moves, or leave its files alone. These have changes that are "
        f"not committed in them:\n\n{listing}",
    )


def changed_tree(paths: list[bytes], who: str, outcome: Outcome) -> Failure:
    """Say that checks or a review did not leave the tree as it was."""
    named, listing = _listed(paths)
    return Failure(
        outcome,
        f"the {who} changed {named}; what only looks must leave the tree as it was",
        f"The {who} changed these paths:\n\n{listing}",
    )
