"""The person's own commit hooks, run as `git commit` would run them.

pre-commit, prepare-commit-msg and commit-msg run before the commit is decided, post-commit once
after it is recorded. They are found where git finds them (`core.hooksPath` included) and run by
`git hook run`, with an environment of their own: none of our hardening reaches them, the private
index is their `GIT_INDEX_FILE`, and no editor can open. Where hooks lie is looked up once per run;
whether one is there is looked up each time, since a folder of hooks may be part of the working
tree. Without any a commit costs four looks at a directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from git_batch.repo.git import clean_environment
from git_batch.repo.repository import Repository

PRE_COMMIT, PREPARE, COMMIT_MSG, POST_COMMIT = (
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
)
MESSAGE = (PREPARE, COMMIT_MSG)
"""Those that may edit the message."""


class ClientHooks(Struct, frozen=True):
    """The person's commit hooks: where they lie, and how they are run."""

    git: str
    directory: str
    bound: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        """Say whether git would run this hook now."""
        path = os.path.join(self.directory, name)
        return os.access(path, os.X_OK) and Path(path).is_file()

    def argv(self, name: str, *args: str) -> tuple[str, ...]:
        """Give the command that runs a hook with git's own rules."""
        return (self.git, "hook", "run", "--ignore-missing", name, "--", *args)

    def environment(self, index: str, who: Mapping[str, str], at: datetime) -> dict[str, str]:
        """Give the whole environment of a hook, as `git commit` would.

        Args:
            index: absolute path of the index that the commit is made from.
            who: author and committer, as variables.
        """
        return {
            **clean_environment(os.environ),
            **self.bound,
            **who,
            "GIT_AUTHOR_DATE": f"@{int(at.timestamp())} {at.strftime('%z') or '+0000'}",
            "GIT_INDEX_FILE": index,
            "GIT_EDITOR": ":",
            "GIT_PREFIX": "",
        }


def find(repo: Repository) -> ClientHooks:
    """Look up where git would look for hooks here."""
    directory = os.path.join(
        repo.layout.top, _configured(repo) or f"{repo.layout.common_dir}/hooks"
    )
    return ClientHooks(repo.git.executable, directory, _bound(repo))


def _bound(repo: Repository) -> dict[str, str]:
    """Name the repository to a hook where its directory alone does not, as git does.

    That is so in linked worktrees and submodules, and where the git directory is elsewhere.
    """
    layout = repo.layout
    dot = os.path.join(layout.top, ".git")
    if os.path.isdir(dot) and os.path.realpath(dot) == os.path.realpath(layout.git_dir):
        return {}
    if os.path.isfile(dot):
        return {"GIT_DIR": layout.git_dir}
    return {"GIT_DIR": layout.git_dir, "GIT_WORK_TREE": layout.top}


def _configured(repo: Repository) -> str | None:
    """Give the person's `core.hooksPath`; our own override has scope "command"."""
    if not repo.config.has("core.hookspath"):
        return None
    asked = ["config", "--type=path", "--show-scope", "-z", "--get-all", "core.hooksPath"]
    words = repo.git.call(asked).stdout.split(b"\0")
    theirs = [v for scope, v in zip(words[::2], words[1::2], strict=False) if scope != b"command"]
    return os.fsdecode(theirs[-1]) if theirs else None
