"""Kept work and kept output: local refs, one per kept attempt and one for all logs of a batch.

An attempt that did not become a commit is kept as one: its tree is what the working tree held, its
first parent the tip it began on, further parents the commits that the task made itself, or the fix
that a person gave it before. Logs lie in one tree per batch, so that ten thousand tasks do not make
ten thousand refs. Neither is pushed.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from git_batch.core.chain import kept_below
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.errors import GitError
from git_batch.repo import commits
from git_batch.repo.libgit2 import FileMode
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from git_batch.repo.trees import lookup, read_blob
from git_batch.repo.treewrite import Changes, write_blob, write_paths

OFTEN = timedelta(seconds=5)
"""How often the logs of tasks that went well are made reachable."""

SHARD = 100
"""Tasks per folder of the logs' tree."""


def attempt_ref(batch: BatchId, task: TaskId, n: int) -> str:
    """Name the ref that keeps an attempt's work."""
    return f"{kept_below(batch)}attempts/{task}/{n}"


def adopted_ref(batch: BatchId, task: TaskId, n: int) -> str:
    """Name the ref that keeps what a person gave an attempt as its work."""
    return f"{attempt_ref(batch, task, n)}-adopted"


def parse_ref(batch: BatchId, name: str) -> tuple[TaskId, int] | None:
    """Read task and number from a ref that `attempt_ref` named, or one beside it (`<n>-…`)."""
    task, slash, last = name.removeprefix(f"{kept_below(batch)}attempts/").rpartition("/")
    number = last.split("-", 1)[0]
    return (TaskId(task), int(number)) if slash and number.isdecimal() else None


def logs_ref(batch: BatchId) -> str:
    """Name the ref that keeps a batch's logs."""
    return f"{kept_below(batch)}logs"


def log_path(place: int, task: TaskId, n: int) -> str:
    """Name an attempt's log in the logs' tree; `place` is the task's place in the plan."""
    return f"{place // SHARD:03d}/{task}/{n}"


def keep(
    repo: Repository,
    refs: Refs,
    ref: str,
    *,
    tree: Oid,
    parents: list[Oid],
    title: str,
    who: commits.Idents,
    at: datetime,
) -> None:
    """Keep a tree under a ref that does not exist yet."""
    oid = commit_work(repo, tree=tree, parents=parents, title=title, who=who, at=at)
    refs.swap(ref, None, oid, title)


def commit_work(
    repo: Repository,
    *,
    tree: Oid,
    parents: list[Oid],
    title: str,
    who: commits.Idents,
    at: datetime,
) -> Oid:
    """Make the commit that keeps some work."""
    message = f"{title}\n".encode()
    return commits.make(repo, tree=tree, parents=parents, message=message, who=who, at=at)


class LogStore:
    """The logs of one batch; written to the object store at once, to the ref by `publish`."""

    def __init__(self, repo: Repository, refs: Refs, batch: BatchId, who: commits.Idents) -> None:
        self._repo, self._refs, self._who = repo, refs, who
        self._ref = logs_ref(batch)
        self._waiting: Changes = {}
        self._published = datetime.min.replace(tzinfo=UTC)

    def put(self, place: int, task: TaskId, n: int, text: bytes) -> None:
        """Keep an attempt's log; an empty one is none."""
        if text:
            oid = write_blob(self._repo, text)
            self._waiting[log_path(place, task, n)] = (oid, FileMode.BLOB)

    def publish(self, at: datetime, *, at_once: bool = True) -> None:
        """Move the ref to all that was put, unless that was done less than `OFTEN` ago.

        What is damaged of the logs before is left out, and what a `git gc --prune=now` took while
        nothing named it: no run stops for them.
        """
        if not self._waiting or (not at_once and at - self._published < OFTEN):
            return
        old = self._refs.read(self._ref)
        base = None
        with suppress(GitError):
            base = commits.read(self._repo, old).tree if old else None
        tree = write_paths(self._repo, base, self._waiting, pass_damaged=True)
        new = commits.make(
            self._repo,
            tree=tree,
            parents=[],
            message=b"logs of attempts\n",
            who=self._who,
            at=at,
        )
        self._refs.swap(self._ref, old, new, "logs")
        self._waiting = {}
        self._published = at


def read_log(
    repo: Repository, refs: Refs, batch: BatchId, place: int, task: TaskId, n: int
) -> bytes | None:
    """Read an attempt's log that was published; None if it is not here.

    Raises:
        GitError: it is here, but damaged.
    """
    tip = refs.read(logs_ref(batch))
    if tip is None:
        return None
    path = log_path(place, task, n).encode()
    found = lookup(repo.objects, commits.read(repo, tip).tree, path)
    return None if found is None else read_blob(repo.objects, found[1])
