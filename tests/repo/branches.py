"""A recorded world with a branch: trees, messages and commits as a real run makes them.

And the hands of somebody who rewrites it: commits as plain values that can be changed and written
again, with everything above them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core import trailers
from git_batch.core.ids import Oid, TaskId
from git_batch.core.lineage import Verdict
from git_batch.core.model import Budget, Plan
from git_batch.core.values import replace
from git_batch.repo import commits
from git_batch.repo.lineage import verdict
from git_batch.repo.treewrite import write_paths
from tests.conftest import git
from tests.repo.recorded import BATCH, REF, WHO, RecordedWorld
from tests.world import Script

BRANCH = "refs/heads/batch/batch"


class BranchWorld(RecordedWorld):
    """A recorded world whose task `x` changes `src/x`, and whose branch is a ref."""

    def __init__(
        self,
        path: Path,
        made: Plan,
        script: Script | None = None,
        budget: Budget | None = None,
        body: Callable[[TaskId], str] = lambda task: "",
    ) -> None:
        super().__init__(path, made, script, budget)
        self.path, self.body = path, body

    def make_tree(self, name: TaskId, n: int) -> Oid:
        return self.tree_with(self.current.head, f"src/{name}", f"{name} {n} {len(self.log)}\n")

    def tree_with(self, commit: Oid, path: str, text: str) -> Oid:
        """Change one file of a commit's tree."""
        return write_paths(self.repo, self.repo.tree_of(commit), {path: text.encode()})

    def perform(self, effect: fx.Effect) -> ev.Event:
        event = super().perform(effect)
        if not isinstance(event, ev.Settled):
            return event
        message = trailers.with_trailers(
            trailers.compose(f"Do {event.task}", self.body(event.task)),
            [
                (trailers.BATCH_ID, BATCH),
                (trailers.TASK, event.task),
                (trailers.PLAN, self.current.plan_digest),
            ],
        )
        return replace(event, message=message)

    def add(self, message: str, path: str = "by-hand") -> Oid:
        """Put a commit on top, as a person would."""
        tree = self.tree_with(self.tip, path, f"{message} {self.tip}\n")
        self.tip = commits.make(
            self.repo,
            tree=tree,
            parents=[self.tip],
            message=message.encode(),
            who=WHO,
            at=self.now(),
        )
        return self.tip

    def bless(self) -> None:
        """Put commits on top and have them recorded as foreign."""
        made = tuple(self.add(f"by hand {i}") for i in range(2))
        self.decide(ev.Decision.BLESS, commits=made, head=self.tip)

    def undo(self, decision: ev.Decision, names: Sequence[TaskId]) -> None:
        """Take tasks back, the latest first, each by a commit of its own."""
        made = [
            self.add(f"Revert {n}\n\nBatch-Id: {BATCH}\nBatch-Undo: {n}\n", f"src/{n}")
            for n in reversed(names)
        ]
        self.decide(decision, *reversed(names), commits=tuple(made), head=self.tip)

    def look(self, *, live: bool = False) -> Verdict:
        """Compare the branch with the record, both as they are on disk."""
        return verdict(
            self.repo.git,
            tip=self.tip,
            batch=BATCH,
            record_tip=self.refs.read(REF),
            live=live,
            audit=10**9,
        )


class Raw(Struct, frozen=True):
    """A commit as its object is; `more` are header lines after the committer."""

    tree: str
    parents: tuple[str, ...]
    author: str
    committer: str
    message: str
    more: str = ""

    @classmethod
    def read(cls, repo: Path, oid: str) -> Raw:
        """Read a commit without further headers."""
        head, _, message = git_bytes(repo, "cat-file", "commit", oid).partition("\n\n")
        lines = [line.split(" ", 1) for line in head.split("\n")]
        of = {key: value for key, value in lines if key != "parent"}
        parents = tuple(value for key, value in lines if key == "parent")
        return cls(of["tree"], parents, of["author"], of["committer"], message)

    def write(self, repo: Path) -> str:
        """Write it, whatever git thinks of it."""
        lines = [f"tree {self.tree}", *(f"parent {p}" for p in self.parents)]
        lines += [f"author {self.author}", f"committer {self.committer}"]
        text = "\n".join(lines) + f"\n{self.more}\n{self.message}"
        done = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
            cwd=repo,
            input=text.encode("utf-8", "surrogateescape"),
            stdout=subprocess.PIPE,
            check=True,
        )
        return done.stdout.decode().strip()


def git_bytes(repo: Path, *args: str) -> str:
    """Run git and keep every byte of its output."""
    done = subprocess.run(["git", *args], cwd=repo, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def line(repo: Path, base: str, tip: str) -> list[Raw]:
    """Read the commits from a base to a tip, oldest first."""
    oids = git(repo, "rev-list", "--reverse", "--first-parent", tip, f"^{base}").split()
    return [Raw.read(repo, oid) for oid in oids]


def stack(repo: Path, base: str, raws: Sequence[Raw]) -> str:
    """Write commits one on the other; parents after the first stay as they are."""
    tip = base
    for raw in raws:
        tip = replace(raw, parents=(tip, *raw.parents[1:])).write(repo)
    return tip
