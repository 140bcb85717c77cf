"""The person's own commit hooks, run as `git commit` would run them.

pre-commit, prepare-commit-msg and commit-msg run before the commit is decided, post-commit once
after it is recorded. They are found by git (`core.hooksPath` included) and run by `git hook run`,
with an environment of their own: none of our hardening reaches them, the private index is their
`GIT_INDEX_FILE`, and no editor can open. Which hooks exist is looked up once per run; without any
a commit costs nothing more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from git_batch.repo.git import clean_environment
from git_batch.repo.repository import Repository

PRE_COMMIT, PREPARE, COMMIT_MSG, POST_COMMIT = (
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
)


@dataclass(frozen=True, slots=True)
class ClientHooks:
    """Which of the person's commit hooks exist, and where."""

    directory: str
    names: frozenset[str]

    def argv(self, name: str, *args: str) -> tuple[str, ...]:
        """Give the command that runs a hook with git's own rules."""
        return ("git", "hook", "run", "--ignore-missing", name, "--", *args)


def find(repo: Repository) -> ClientHooks:
    """Look up the hooks that git would run here."""
    directory = os.path.join(
        repo.layout.top, _configured(repo) or f"{repo.layout.common_dir}/hooks"
    )
    names = frozenset(
        name
        for name in (PRE_COMMIT, PREPARE, COMMIT_MSG, POST_COMMIT)
        if os.access(os.path.join(directory, name), os.X_OK) and Path(directory, name).is_file()
    )
    return ClientHooks(directory, names)


def _configured(repo: Repository) -> str | None:
    """Give the person's `core.hooksPath`; our own override has scope "command"."""
    asked = ["config", "--type=path", "--show-scope", "-z", "--get-all", "core.hooksPath"]
    words = repo.git.call(asked).stdout.split(b"\0")
    theirs = [v for scope, v in zip(words[::2], words[1::2], strict=False) if scope != b"command"]
    return os.fsdecode(theirs[-1]) if theirs else None


def environment(index: str, who: Mapping[str, str]) -> dict[str, str]:
    """Give the whole environment of a hook, as `git commit` would."""
    return {
        **clean_environment(os.environ),
        **who,
        "GIT_INDEX_FILE": index,
        "GIT_EDITOR": ":",
        "GIT_PREFIX": "",
    }
