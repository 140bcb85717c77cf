"""The fake world of the core, with a real repository and a real journal behind it."""

from __future__ import annotations

import os
from pathlib import Path

import pygit2

from git_batch.core import canonical
from git_batch.core import events as ev
from git_batch.core.chain import ref_name
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.model import Actor, BatchState, Budget, InFlight, Plan
from git_batch.repo import commits
from git_batch.repo.journal import Journal
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from tests.world import Script, World

BATCH = BatchId("batch-abc123")
REF = ref_name(BATCH)
WHO = commits.Idents(Actor("T", "t@x"), Actor("T", "t@x"))


class RecordedWorld(World):
    """A world whose events, trees and commits are objects of a repository."""

    def __init__(
        self, path: Path, made: Plan, script: Script | None = None, budget: Budget | None = None
    ) -> None:
        self.repo = Repository.open(os.fspath(path))
        self.refs = Refs(self.repo)
        base = self.refs.read("HEAD")
        assert base is not None
        digest = canonical.digest(canonical.to_toml(made))
        super().__init__(made, script, budget=budget, base=base, digest=digest)
        self.journal = Journal.create(self.repo, self.refs, made, who=WHO, runner="host/run")

    def record(self, event: ev.Event) -> tuple[BatchState, Oid]:
        state = self.journal.append(event)
        self.journal.write()
        assert self.journal.tip is not None
        return state, self.journal.tip

    def publish(self) -> None:
        super().publish()
        self.journal.publish()
        self.state = self.journal.state

    def make_base(self) -> Oid:
        return commits.make(
            self.repo,
            tree=self.make_tree(TaskId("base"), len(self.log)),
            parents=[self.base],
            message=b"moved\n",
            who=WHO,
            at=self.now(),
        )

    def make_tree(self, name: TaskId, n: int) -> Oid:
        objects = self.repo.objects
        builder = objects.TreeBuilder()
        builder.insert("f", objects.create_blob(f"{name} {n}\n".encode()), 0o100644)
        return Oid(str(builder.write()))

    def make_commit(self, flight: InFlight) -> Oid:
        assert flight.tree
        assert flight.message
        return commits.make(
            self.repo,
            tree=flight.tree,
            parents=[flight.parent],
            message=flight.message + f"Batch-Record: {flight.settled}\n".encode(),
            who=WHO,
            at=flight.since,
        )

    def load(self) -> Journal:
        """Open the record as another process would."""
        return Journal.load(self.repo, self.refs, BATCH, who=WHO, runner="host/other")

    def crash(self) -> None:
        self.journal = self.load()
        self.state = self.journal.state
        del self.log[self.published :]

    def take_up(self) -> None:
        self.journal.take_up(self.now())
        self.state = self.journal.state

    @property
    def tip_of_record(self) -> Oid:
        """The commit that the record's ref names."""
        tip = self.refs.read(REF)
        assert tip is not None
        return tip

    def tree_at(self, oid: Oid) -> pygit2.Tree:
        """The record's tree at one of its events."""
        return self.repo.objects[oid].peel(pygit2.Tree)
