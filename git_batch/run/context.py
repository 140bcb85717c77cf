"""What one run works with: opened once, handed to the performer, closed at the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from git_batch.core.machine import Machine
from git_batch.core.model import BatchState, accepted
from git_batch.repo.attempts import LogStore
from git_batch.repo.commits import Idents
from git_batch.repo.journal import Journal
from git_batch.repo.locks import HOST, TreeLock
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from git_batch.repo.stalelocks import wait_for
from git_batch.repo.worktree import Scanner
from git_batch.run.attemptlog import AttemptLog
from git_batch.run.files import TaskFiles
from git_batch.run.group import RunGroup
from git_batch.run.interrupt import Interrupt
from git_batch.run.progress import Progress


def new_runner() -> str:
    """Name this run: the host, and a nonce that no other run has."""
    return f"{HOST}/{secrets.token_hex(6)}"


class Tools(Struct, frozen=True):
    """What a run is given from outside, so that tests can give something else."""

    interrupt: Interrupt
    progress: Progress
    clock: Callable[[], datetime]
    recheck: bool = False  # run checks also where they have passed on the same tree


class RunContext:
    """The open run of one batch."""

    def __init__(
        self,
        repo: Repository,
        refs: Refs,
        journal: Journal,
        who: Idents,
        runner: str,
        tools: Tools,
    ) -> None:
        state = journal.state
        self.repo, self.refs, self.journal = repo, refs, journal
        self.who, self.runner, self.tools = who, runner, tools
        self.branch = f"refs/heads/{state.branch}"
        untracked = accepted(state.authorization)
        self.scanner = Scanner(repo, untracked)
        wait_for(self.scanner.private, opened=True)
        # Whatever comes first, an index lock that a crash of ours left must not be in its way.
        self.scanner.person.recover(self.scanner.private)
        self.files = TaskFiles(state, self.machine.plan, repo.layout.top)
        self.log = AttemptLog(Path(repo.scratch) / "output")
        self.logs = LogStore(repo, refs, state.batch_id, who)
        self.lock = TreeLock(repo)
        self.group = RunGroup(repo.scratch)
        self.top = Path(repo.layout.top)

    @property
    def machine(self) -> Machine:
        """The rules of the plan in force."""
        return self.journal.machine

    @property
    def state(self) -> BatchState:
        """The batch as of its newest event."""
        return self.journal.state

    def now(self) -> datetime:
        """Read the clock."""
        return self.tools.clock()

    def __enter__(self) -> Self:
        self.group.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.files.close()
        self.lock.close()
        self.group.__exit__(kind, error, tb)

    def absolute(self, path: bytes) -> str:
        """Name a path of the repository for the operating system."""
        return os.path.join(self.repo.layout.top, os.fsdecode(path))
