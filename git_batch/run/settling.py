"""From checked work to a decided commit: the person's hooks, the message, the tree.

Hooks see the message without our trailers, as a person's own commit would be, and the working tree
as the task left it, all of it staged. Each runs once, as for `git commit`; how often a hook is
asked altogether is the number of attempts.

* What pre-commit changes, staged or not, is part of the commit: it is compared with the scope
  again and checked again. Where it left a file different in the index and in the working tree,
  `git commit` would commit what nobody checked, so that is refused.
* The message hooks may change the message and nothing else.
* A hook that refuses, hangs or is refused is an outcome with its output; it is never bypassed.
* A hook that commits or switches branches is put right like a command that does (`fence`).
"""

from __future__ import annotations

from pathlib import Path

from git_batch.core import template, trailers
from git_batch.core.attempt import Failure, Usage
from git_batch.core.events import AttemptFailed, Settled
from git_batch.core.ids import Oid
from git_batch.core.model import InFlight, Task
from git_batch.core.naming import few_paths
from git_batch.core.standing import Outcome
from git_batch.errors import GitError, PreconditionError
from git_batch.repo import clienthooks, setaside
from git_batch.repo.trees import diff, paths_of
from git_batch.repo.wholefile import write_anew
from git_batch.run.commands import FEEDBACK, limits
from git_batch.run.context import RunContext
from git_batch.run.process import How
from git_batch.run.saying import heard, last_of
from git_batch.run.scopecheck import refuse
from git_batch.run.tasks import KEEP, TaskRunner, UnfitError, unfit


class _StopError(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class Settler:
    """Decides the commit of the attempt in flight."""

    def __init__(self, context: RunContext, tasks: TaskRunner) -> None:
        self._c = context
        self._tasks = tasks
        self._hooks = clienthooks.find(context.repo)

    def settle(self, task: Task, flight: InFlight) -> Settled | AttemptFailed:
        """Run the hooks and give the commit's tree, parent and message."""
        assert flight.tree is not None
        tree, message = flight.tree, self._message(task, flight)
        try:
            if clienthooks.PRE_COMMIT in self._hooks:
                tree = self._pre_commit(task, flight, tree)
            message = self._message_hooks(task, flight, tree, message)
            full = self._with_ours(task, message)
        except _StopError as stop:
            log = self._tasks.keep_log(flight, at_once=True)
            return AttemptFailed(
                self._c.now(), flight.task, flight.attempt, stop.failure, None, log, Usage()
            )
        changed = diff(self._c.repo.objects, self._c.repo.tree_of(flight.parent), tree)
        return Settled(
            at=self._c.now(),
            task=task.id,
            attempt=flight.attempt,
            tree=tree,
            parent=flight.parent,
            message=full,
            changed=tuple(paths_of(changed[:KEEP])),
            changed_total=len(changed),
        )

    def after_commit(self, task: Task) -> None:
        """Run post-commit if there is one, once; that it fails changes nothing.

        Raises:
            PreconditionError: it changed files, which the next task must not be blamed for.
        """
        c = self._c
        if clienthooks.POST_COMMIT not in self._hooks:
            return
        c.journal.publish()
        before = c.repo.dirty()
        failed, said = self._run(clienthooks.POST_COMMIT, task, c.repo.layout.index)
        if failed:
            c.tools.progress.note(f"{task.id}: the post-commit hook failed: {last_of(said)}")
        left = c.repo.dirty()
        if any(c.scanner.is_excluded(entry.path) for entry in left.tracked):
            c.scanner.take_back()
            left = c.repo.dirty()
        changed = {*left.untracked, *(e.path for e in left.tracked)}
        changed -= {*before.untracked, *(e.path for e in before.tracked)}
        if changed:
            raise PreconditionError(
                f"the post-commit hook changed {few_paths(sorted(changed))}",
                *setaside.ways(c.repo, changed, "git batch resume"),
            )

    def _message(self, task: Task, flight: InFlight) -> bytes:
        if flight.replays is not None and flight.message:
            return flight.message  # the whole of it, as it was
        planned = template.render_message(task, {"attempt": str(flight.attempt)}) or ""
        said = flight.message.decode("utf-8", "replace") if flight.message else ""
        return trailers.compose(task.title, said or planned)

    def _with_ours(self, task: Task, message: bytes) -> bytes:
        """Append our trailers; refused if git would then not read exactly these."""
        state = self._c.state
        ours = [
            (trailers.BATCH_ID, state.batch_id),
            (trailers.TASK, task.id),
            (trailers.PLAN, state.plan_digest),
        ]
        full = trailers.with_trailers(message, ours)
        if any(hook in self._hooks for hook in clienthooks.MESSAGE):
            parse = ["interpret-trailers", "--parse"]
            lines = self._c.repo.git.run(parse, input=full).decode("utf-8", "replace").splitlines()
            found = [tuple(line.split(": ", 1)) for line in lines if line.startswith("Batch-")]
            if found != ours or trailers.ours(full) != dict(ours):
                raise _StopError(_refused("commit-msg", "trailers after its text are not read"))
        return full

    def _pre_commit(self, task: Task, flight: InFlight, tree: Oid) -> Oid:
        c, hook = self._c, clienthooks.PRE_COMMIT
        self._ask(hook, task, flight)
        new = self._tree_after(hook, tree)
        if new == tree:
            return tree
        changes = diff(c.repo.objects, tree, new)
        whole = diff(c.repo.objects, c.repo.tree_of(flight.parent), new)
        named = few_paths(paths_of(changes))
        stray = unfit(c.scanner.problems) or refuse(task, whole)
        if stray is not None:
            raise _StopError(_by_hook(stray))
        if not whole:
            raise _StopError(_refused(hook, "it undid the whole change"))
        # A person took adopted work as it is; a commit that is replayed may have had no review.
        only_replayed = flight.replays is not None and task.review == "none"
        if flight.reviewed or (flight.apply_only and not only_replayed):
            raise _StopError(_refused(hook, f"it changed {named}, which was reviewed before"))
        again = "; checked again" if task.checks else ""
        c.tools.progress.note(f"{task.id}: the {hook} hook changed {named}{again}")
        failed = self._tasks.check_again(task, flight, new)
        if failed is not None:
            why = f"after the {hook} hook changed {named}: {failed.reason}"
            raise _StopError(Failure(failed.outcome, why, failed.feedback))
        return new

    def _tree_after(self, hook: str, tree: Oid) -> Oid:
        """Read what a hook left; index and working tree must agree on what it staged."""
        c = self._c
        try:
            staged = c.scanner.staged()
        except GitError as error:
            raise _StopError(_refused(hook, f"it left an unusable index: {error}")) from None
        try:
            new = self._tasks.scan()
        except UnfitError as error:
            raise _StopError(error.failure) from None
        inside = self._tasks.inside()
        if inside is not None:
            raise _StopError(_by_hook(inside, hook))
        touched = set(paths_of(diff(c.repo.objects, tree, staged)))
        torn = [p for p in paths_of(diff(c.repo.objects, staged, new)) if p in touched]
        theirs = [p for p in torn if c.scanner.is_excluded(p)]
        if theirs:
            said = f"it staged {few_paths(theirs)}, which is yours and untracked"
            raise _StopError(_refused(hook, f"{said}; list it in '.git/info/exclude'"))
        if torn:
            said = f"it left {few_paths(torn)} different in the index and in the working tree"
            raise _StopError(_refused(hook, said))
        return new

    def _message_hooks(self, task: Task, flight: InFlight, tree: Oid, message: bytes) -> bytes:
        """Let the hooks edit the message; forged trailers of ours are refused."""
        steps = [(clienthooks.PREPARE, ("message",)), (clienthooks.COMMIT_MSG, ())]
        present = [(name, args) for name, args in steps if name in self._hooks]
        if not present:
            return message
        path = Path(self._c.repo.layout.git_dir) / "COMMIT_EDITMSG"
        write_anew(str(path), message, 0o666)
        edited = message
        for name, args in present:
            self._ask(name, task, flight, str(path), *args)
            edited = self._edited(name, path)
            if self._tree_after(name, tree) != tree:
                raise _StopError(_refused(name, "it changed files; only pre-commit may do that"))
        return edited

    def _edited(self, hook: str, path: Path) -> bytes:
        """Read the message that a hook left, as `git commit` would clean it up."""
        try:
            edited = self._c.repo.git.run(["stripspace"], input=path.read_bytes())
            text = edited.decode("utf-8")
        except FileNotFoundError:
            raise _StopError(_refused(hook, "it removed the message")) from None
        except UnicodeDecodeError:
            raise _StopError(_refused(hook, "the message it left is not UTF-8")) from None
        if not text.strip() or "\0" in text:
            wrong = "has a NUL in it" if text.strip() else "is empty"
            raise _StopError(_refused(hook, f"the message it left {wrong}"))
        if any(key.lower().startswith("batch-") for key, _ in trailers.block(edited)):
            raise _StopError(_refused(hook, "it wrote a 'Batch-' trailer, which is ours"))
        return edited

    def _ask(self, hook: str, task: Task, flight: InFlight, *args: str) -> None:
        """Run a hook that may refuse."""
        failed, said = self._run(hook, task, self._c.scanner.private, *args)
        if failed:
            raise _StopError(_refused(hook, said))
        moved = self._tasks.moved(flight)
        if moved is not None:
            raise _StopError(_by_hook(moved, hook))

    def _run(self, hook: str, task: Task, index: str, *args: str) -> tuple[bool, str]:
        """Run a hook; say whether it failed, and what it printed or how it ended."""
        c = self._c
        env = self._hooks.environment(index, c.who.environment(), c.now())
        argv = self._hooks.argv(hook, *args)
        ended, piece = self._tasks.commands.execute(f"hook {hook}", argv, env, limits(task))
        if ended.how is How.INTERRUPTED and hook != clienthooks.POST_COMMIT:
            raise _StopError(Failure(Outcome.INTERRUPTED, "interrupted"))
        said = heard(piece, FEEDBACK)
        if ended.how is How.EXITED:
            return ended.status != 0, said or piece.ending
        return True, f"{said}\n{piece.ending}".strip()


def _refused(hook: str, said: str) -> Failure:
    return Failure(
        Outcome.HOOK_REFUSED,
        f"the {hook} hook refused the commit: {last_of(said)}",
        f"The repository's {hook} hook refused the commit:\n\n{said}",
    )


def _by_hook(failure: Failure, hook: str = clienthooks.PRE_COMMIT) -> Failure:
    return Failure(
        failure.outcome,
        f"the {hook} hook: {failure.reason}",
        f"The {hook} hook did what it may not.\n\n{failure.feedback}",
    )
