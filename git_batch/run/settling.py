"""From checked work to a decided commit: the person's hooks, the message, the tree.

Hooks see the message without our trailers, as a person's own commit would be, and the working tree
as the task left it. What they change, staged or not, is part of the commit: it is scanned again,
compared with the scope again, and checked again, a bounded number of times. A hook that refuses is
an outcome with its output; it is never bypassed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from git_batch.core import template, trailers
from git_batch.core.events import AttemptFailed, Settled
from git_batch.core.model import Failure, InFlight, Oid, Outcome, Task, Usage
from git_batch.repo import clienthooks
from git_batch.repo.trees import diff, paths_of
from git_batch.run.commands import FEEDBACK
from git_batch.run.context import RunContext
from git_batch.run.output import excerpt
from git_batch.run.process import How, Limits
from git_batch.run.scopecheck import refuse
from git_batch.run.tasks import KEEP, TaskRunner

ROUNDS = 3
"""How often pre-commit may change the tree before it counts as refusing."""

_LIMITS = Limits(timeout=3600.0)


@dataclass(frozen=True, slots=True)
class _StopError(Exception):
    failure: Failure


class Settler:
    """Decides the commit of the attempt in flight."""

    def __init__(self, context: RunContext, tasks: TaskRunner) -> None:
        self._c = context
        self._tasks = tasks
        self._hooks = clienthooks.find(context.repo)

    @property
    def post_commit(self) -> bool:
        """Whether a post-commit hook is to be run."""
        return clienthooks.POST_COMMIT in self._hooks.names

    def settle(self, task: Task, flight: InFlight) -> Settled | AttemptFailed:
        """Run the hooks and give the commit's tree, parent and message."""
        assert flight.tree is not None
        tree, message = flight.tree, self._message(task, flight)
        try:
            if self._hooks.names - {clienthooks.POST_COMMIT}:
                tree = self._pre_commit(task, flight, tree)
                message = self._message_hooks(message)
        except _StopError as stop:
            log = self._tasks.keep_log(flight)
            return AttemptFailed(
                self._c.now(), flight.task, flight.attempt, stop.failure, None, log, Usage()
            )
        changed = diff(self._c.repo.objects, self._c.repo.tree_of(flight.parent), tree)
        state = self._c.state
        full = trailers.with_trailers(
            message,
            [
                (trailers.BATCH_ID, state.batch_id),
                (trailers.TASK, task.id),
                (trailers.PLAN, state.plan_digest),
            ],
        )
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

    def after_commit(self) -> None:
        """Run post-commit, once, whatever comes of it."""
        _, said = self._run(clienthooks.POST_COMMIT)
        if said:
            self._c.tools.progress.note(f"post-commit hook: {said}")

    def _message(self, task: Task, flight: InFlight) -> bytes:
        planned = template.render_message(task, {"attempt": str(flight.attempt)}) or ""
        said = flight.message.decode("utf-8", "replace") if flight.message else ""
        return trailers.compose(task.title, said or planned)

    def _pre_commit(self, task: Task, flight: InFlight, tree: Oid) -> Oid:
        if clienthooks.PRE_COMMIT not in self._hooks.names:
            return tree
        for _ in range(ROUNDS):
            refused, said = self._run(clienthooks.PRE_COMMIT)
            if refused:
                raise _StopError(_refused(clienthooks.PRE_COMMIT, said))
            new = self._c.scanner.scan()
            if new == tree:
                return tree
            base = self._c.repo.tree_of(flight.parent)
            stray = refuse(task, diff(self._c.repo.objects, base, new))
            if stray is not None:
                raise _StopError(_by_hook(stray))
            tree = new
            failed = self._tasks.check_again(task, flight, tree)
            if failed is not None:
                raise _StopError(failed)
        raise _StopError(
            _refused(clienthooks.PRE_COMMIT, "it changes the files again on every run")
        )

    def _message_hooks(self, message: bytes) -> bytes:
        """Let the hooks edit the message; forged trailers of ours are refused."""
        path = Path(self._c.repo.layout.git_dir) / "COMMIT_EDITMSG"
        steps = [(clienthooks.PREPARE, ("message",)), (clienthooks.COMMIT_MSG, ())]
        present = [(n, a) for n, a in steps if n in self._hooks.names]
        if not present:
            return message
        path.write_bytes(message)
        for name, args in present:
            refused, said = self._run(name, str(path), *args)
            if refused:
                raise _StopError(_refused(name, said))
        edited = self._c.repo.git.run(["stripspace"], input=path.read_bytes())
        if not edited.strip():
            raise _StopError(_refused("commit-msg", "it left no message"))
        if any(key.startswith("Batch-") for key, _ in trailers.block(edited)):
            raise _StopError(_refused("commit-msg", "it wrote a 'Batch-' trailer, which is ours"))
        return edited

    def _run(self, name: str, *args: str) -> tuple[bool, str]:
        c = self._c
        env = clienthooks.environment(c.scanner.private, c.who.environment())
        argv = self._hooks.argv(name, *args)
        ended, piece = self._tasks.commands.execute(f"hook {name}", argv, env, _LIMITS)
        if ended.how is How.INTERRUPTED and name != clienthooks.POST_COMMIT:
            raise _StopError(Failure(Outcome.INTERRUPTED, "interrupted"))
        said = excerpt(piece.path, FEEDBACK).decode("utf-8", "replace").strip()
        return not (ended.how is How.EXITED and ended.status == 0), said or piece.ending


def _refused(name: str, said: str) -> Failure:
    last = said.rsplit("\n", 1)[-1][:200]
    return Failure(
        Outcome.HOOK_REFUSED,
        f"the {name} hook refused the commit: {last}",
        f"The repository's {name} hook refused the commit:\n\n{said}",
    )


def _by_hook(failure: Failure) -> Failure:
    return Failure(
        failure.outcome,
        f"the pre-commit hook {failure.reason}",
        f"The pre-commit hook changed files that it may not.\n\n{failure.feedback}",
    )
