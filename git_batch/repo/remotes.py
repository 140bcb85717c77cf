"""Which remote is meant, and records that travel: out with their branch, in as tracking copies.

git does the work, attached to the person's terminal (`Git.attached`). Branch and record go in one
atomic push, by the ids that were verified, so that what arrives is a pair even while a run goes on.
What comes in is never put in the place of what is here: it is a copy beside it.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import Protocol

from git_batch.core.chain import RECORDS, TRACKING, ref_name
from git_batch.core.ids import BatchId, Oid
from git_batch.errors import PreconditionError, UsageError
from git_batch.repo.git import Git
from git_batch.repo.objects import is_ancestor


class Relay(Protocol):
    """Passes on what git says, and what it repeats of what a remote says.

    Attributes:
        terminal: a person sees it at a terminal, where git shows its progress.
    """

    terminal: bool

    def __call__(self, said: bytes) -> None:
        """Pass on a piece; an empty one is the end."""


class Relation(Enum):
    """How a remote's record stands to the one that is here."""

    NEW = "new"
    SAME = "same"
    BEHIND = "behind"
    AHEAD = "ahead"
    DIVERGED = "diverged"


def chosen(git: Git, branch: str | None, asked: str | None, *, push: bool) -> str:
    """Name the remote that is meant, as git would choose it for a branch.

    Args:
        branch: its short name; None if there is none.
        asked: what the person named; for a push it may be a location.

    Raises:
        UsageError: there is no remote of that name.
        PreconditionError: nothing tells which one is meant.
    """
    names = known(git)
    if asked is not None:
        if asked in names or (push and ("/" in asked or ":" in asked)):
            return asked
        here = ", ".join(f"'{name}'" for name in names) or "none"
        raise UsageError(f"there is no remote '{asked}'", f"remotes here: {here}")
    if branch is not None:
        form = f"--format=%({'push' if push else 'upstream'}:remotename)"
        said = git.run(["for-each-ref", form, f"refs/heads/{branch}"]).decode("utf-8", "replace")
        if said.strip() in names:
            return said.strip()
    if "origin" in names:
        return "origin"
    if len(names) == 1:
        return names[0]
    if not names:
        raise PreconditionError("there is no remote here", "git remote add origin URL")
    raise PreconditionError(
        "which remote is meant? " + ", ".join(f"'{name}'" for name in names),
        "name it, or set one for all branches: git config remote.pushDefault NAME",
    )


def known(git: Git) -> list[str]:
    """Name the remotes of this repository."""
    return git.run(["remote"]).decode("utf-8", "replace").split()


def location(git: Git, remote: str, top: str) -> str:
    """Say where a remote is, so that it can be cloned from anywhere."""
    url = git.run(["remote", "get-url", remote]).decode("utf-8", "surrogateescape").strip()
    return os.path.normpath(os.path.join(top, url)) if url.startswith(("./", "../")) else url


def asks_of_submodules(git: Git) -> bool:
    """Say whether a person's pushes look at submodules, as git's documentation has it.

    Where theirs would send the submodules' commits along (`on-demand`), or nothing else (`only`),
    ours can't: git would have each submodule push the same refs, which it does not have. So ours
    only sees to it that no commit of a submodule is missing (`check`).
    """
    said = git.call(["config", "--get", "push.recurseSubmodules"]).stdout.strip()
    return said in _LOOK if said else git.flag("submodule.recurse")


_LOOK = (b"check", b"on-demand", b"only")


def push(git: Git, remote: str, branch: str, head: Oid, batch: BatchId, record: Oid, *,
         dry_run: bool, relay: Relay) -> bool:  # fmt: skip
    """Send a branch and its record together; whether the remote took them."""
    options = ["--atomic", *(["--dry-run"] if dry_run else []), *_progress(relay)]
    options.append(f"--recurse-submodules={'check' if asks_of_submodules(git) else 'no'}")
    pair = [f"{head}:refs/heads/{branch}", f"{record}:{ref_name(batch)}"]
    # git would advise to integrate what the remote has, by a merge or a rebase: that is drift.
    quiet = ["-c", "advice.pushUpdateRejected=false"]
    return git.attached([*quiet, "push", *options, remote, *pair], relay) == 0


def fetch(git: Git, remote: str, relay: Relay) -> bool:
    """Get a remote's branches as configured, and copies of its records; whether that worked."""
    configured = git.call(["config", "--get-all", f"remote.{remote}.fetch"]).stdout
    own = f"+{RECORDS}*:{TRACKING}{remote}/*"
    refspecs = [*configured.decode("utf-8", "surrogateescape").splitlines(), own]
    options = ["--no-write-fetch-head", *_progress(relay)]
    return git.attached(["fetch", *options, remote, *refspecs], relay) == 0


def _progress(relay: Relay) -> list[str]:
    """Have git show its progress where it would if it saw the terminal itself."""
    return ["--progress"] if relay.terminal else []


def relation(git: Git, here: Oid | None, there: Oid) -> Relation:
    """Compare the record here with a remote's.

    Raises:
        GitError: that can't be told, since an object is missing.
    """
    if here is None:
        return Relation.NEW
    if here == there:
        return Relation.SAME
    if is_ancestor(git, here, there):
        return Relation.BEHIND
    return Relation.AHEAD if is_ancestor(git, there, here) else Relation.DIVERGED
