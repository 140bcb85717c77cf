"""Making and reading the commits of tasks.

A task's commit has an explicit parent, a tree that is known, and the dates of its `settled`
event, so that making it again after a crash gives the same object (unless it is signed). What
git alone can do is left to git: signing goes through `git commit-tree -S`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

import pygit2
from pygit2.enums import ObjectType

from git_batch.core.model import Actor, Oid
from git_batch.errors import GitError
from git_batch.repo.repository import Repository


@dataclass(frozen=True, slots=True)
class Idents:
    """Who a commit is by; git tells them from its configuration and the environment."""

    author: Actor
    committer: Actor

    def environment(self) -> dict[str, str]:
        """Name them for git and for hooks, as git itself does."""
        return {
            "GIT_AUTHOR_NAME": self.author.name,
            "GIT_AUTHOR_EMAIL": self.author.email,
            "GIT_COMMITTER_NAME": self.committer.name,
            "GIT_COMMITTER_EMAIL": self.committer.email,
        }


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What lineage needs to know of a commit."""

    oid: Oid
    parents: tuple[Oid, ...]
    tree: Oid
    message: bytes


def signature(actor: Actor, at: datetime) -> pygit2.Signature:
    """Write a person and a time as git does."""
    offset = at.utcoffset()
    minutes = int(offset.total_seconds() // 60) if offset else 0
    return pygit2.Signature(actor.name, actor.email, int(at.timestamp()), minutes)


def make(
    repo: Repository,
    *,
    tree: Oid,
    parents: list[Oid],
    message: bytes,
    who: Idents,
    at: datetime,
    sign: bool = False,
) -> Oid:
    """Write a commit object and see that it can be read back; no ref moves.

    Raises:
        GitError: it could not be written or signed.
    """
    if sign:
        return _signed(repo, tree=tree, parents=parents, message=message, who=who, at=at)
    try:
        made = repo.objects.create_commit(
            None,
            signature(who.author, at),
            signature(who.committer, at),
            message,
            pygit2.Oid(hex=tree),
            [pygit2.Oid(hex=p) for p in parents],
        )
    except (pygit2.GitError, OSError, ValueError, KeyError) as error:
        raise GitError(f"could not write a commit: {error}") from None
    # libgit2 1.9 reports success for a commit that it did not write (full disk, read-only).
    if made not in repo.objects.odb:
        raise GitError("could not write a commit: is the disk full or read-only?")
    return Oid(str(made))


def _signed(
    repo: Repository, *, tree: Oid, parents: list[Oid], message: bytes, who: Idents, at: datetime
) -> Oid:
    stamp = f"{int(at.timestamp())} {at.strftime('%z') or '+0000'}"
    env = {**who.environment(), "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
    args = ["commit-tree", "-S", tree]
    for parent in parents:
        args += ["-p", parent]
    out = repo.git.run([*args, "-F", "-"], input=message, env=env)
    return Oid(out.decode("ascii").strip())


def read(repo: Repository, oid: Oid) -> CommitFacts:
    """Read a commit.

    Raises:
        GitError: it is missing, unreadable or not a commit.
    """
    try:
        found = repo.objects[pygit2.Oid(hex=oid)]
    except (KeyError, ValueError, pygit2.GitError, OSError) as error:
        raise GitError(f"commit {oid} can't be read: {error}") from None
    if found.type != ObjectType.COMMIT:
        raise GitError(f"{oid} is not a commit")
    commit = cast(pygit2.Commit, found)
    return CommitFacts(
        oid=oid,
        parents=tuple(Oid(str(p)) for p in commit.parent_ids),
        tree=Oid(str(commit.tree_id)),
        message=commit.raw_message,
    )
