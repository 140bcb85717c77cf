"""Where git looks for hooks here, and whether it really runs ours: by asking git.

`core.hooksPath` decides, wherever it is set; a relative one counts from where the hook runs, so
each working tree may have another one. Our usual calls of git switch hooks off, these do not.
"""

from __future__ import annotations

import os
import re
import secrets

from msgspec import Struct

from git_batch.errors import UsageError
from git_batch.repo.git import Git
from git_batch.repo.here import here
from git_batch.repo.repository import Repository

PROBE = "GIT_BATCH_PROBE"
"""Set in its environment, an installed hook prints the value and does nothing else."""


class HookPlace(Struct, frozen=True):
    """The directory in which git looks for hooks.

    Attributes:
        default: where they would be without `core.hooksPath`; shared by all working trees.
        configured: the value of `core.hooksPath`, None if it is not set.
        scope: which configuration sets it: "system", "global", "local" or "worktree".
        tracked: it lies in the working tree and git does not ignore what is put there.
        bare: there is no working tree, so this is a server's repository.
    """

    directory: str
    default: str
    configured: str | None
    scope: str
    tracked: bool
    bare: bool

    @property
    def of_this_repository(self) -> bool:
        """Whether it belongs to this repository alone."""
        return self.configured is None or self.scope in ("local", "worktree")


class HookHost:
    """A repository, bare or not, whose hooks are looked at or changed."""

    def __init__(self, start: str = ".") -> None:
        self._git, self.top, self._common, self.bare = _found(here(start))

    def place(self) -> HookPlace:
        """Find the directory in which git looks for hooks."""
        asked = ["rev-parse", "--path-format=absolute", "--git-path", "hooks"]
        directory = os.path.normpath(os.fsdecode(self._git.run(asked).rstrip(b"\n")))
        asked = ["config", "--show-scope", "-z", "--get-all", "core.hooksPath"]
        words = os.fsdecode(self._git.call(asked).stdout).split("\0")
        configured, scope = (words[-2], words[-3]) if len(words) > 2 else (None, "")
        default = os.path.join(self._common, "hooks")
        return HookPlace(
            directory, default, configured, scope, self._is_tracked(directory), self.bare
        )

    def answers(self, name: str) -> bool:
        """Have git run a hook of ours, which only says that it was run.

        A hook of somebody else must not be asked: it would do its work.
        """
        token = secrets.token_hex(8)
        asked = ["hook", "run", "--ignore-missing", name]
        found = self._git.call(asked, env={PROBE: token})
        return f"git-batch {name} {token}".encode() in found.stdout + found.stderr

    def configured(self, name: str) -> bool:
        """Tell whether git runs us for an event by `hook.<name>.command` (git 2.54)."""
        listed = self._git.call(["hook", "list", name])
        names = os.fsdecode(listed.stdout).splitlines() if listed.status == 0 else []
        for key in names:
            got = self._git.call(["config", "--get", f"hook.{key}.command"])
            if calls_us(os.fsdecode(got.stdout), name):
                return True
        return False

    def _is_tracked(self, directory: str) -> bool:
        inside = not self.bare and os.path.commonpath([self.top, directory]) == self.top
        if not inside or os.path.commonpath([self._common, directory]) == self._common:
            return False
        asked = ["check-ignore", "-q", f"{directory}/pre-push"]
        # It takes paths, not patterns, and refuses to be told so.
        return self._git.call(asked, env={"GIT_LITERAL_PATHSPECS": "0"}).status != 0


def calls_us(text: str, name: str) -> bool:
    """Tell whether a script or configuration has a command that runs one of our hooks."""
    return re.search(rf"git[- ]batch hooks run {re.escape(name)}\b", text) is not None


def _found(start: str) -> tuple[Git, str, str, bool]:
    """Open a repository with its hooks on; the directory decides which one."""
    if not os.path.isdir(start):
        raise UsageError(f"'{start}' is not a directory")
    asked = ["rev-parse", "--is-bare-repository", "--path-format=absolute", "--git-dir"]
    answer = os.fsdecode(Git(None, start).call([*asked, "--git-common-dir"]).stdout).splitlines()
    if len(answer) == 3 and answer[0] == "true":
        return Git(answer[1], answer[1], bare=True, hooks=True), answer[1], answer[2], True
    layout = Repository.open(start).layout
    return Git(layout.git_dir, layout.top, hooks=True), layout.top, layout.common_dir, False
