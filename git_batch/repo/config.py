"""The person's git configuration, as far as git-batch reads it: one function for each key.

It is read by one call of git (`Repository.config`), before any command of a task could have changed
it. What our own calls of git are told (`-c`) is not the person's and is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from git_batch.repo.git import Git

_RUNS_CODE = re.compile(
    r"""core\.(hookspath | fsmonitor | sshcommand | askpass | editor | pager | gitproxy)
    | credential\.(.*\.)?helper
    | diff\.external | diff\..*\.(command | textconv)
    | merge\..*\.driver
    | filter\..*\.(clean | smudge | process)
    | gpg\.program | gpg\..*\.program | gpg\.ssh\.defaultkeycommand
    | uploadpack\.packobjectshook | remote\..*\.(uploadpack | receivepack | vcs)""",
    re.VERBOSE,
)
"""Keys, in git's lower case, whose value git runs as a command or looks for commands in."""


class Config(Struct, frozen=True):
    """All of the configuration: key and value in git's order, so that the last one counts."""

    entries: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, git: Git) -> Config:
        """Read it; without any configuration at all it is empty."""
        out = git.call(["config", "--list", "--null", "--show-scope"]).stdout
        words = out.split(b"\0")
        return cls(tuple(_entries(words)))

    def last(self, key: str) -> str | None:
        """Give the value that counts for a key in git's lower case; None if it is not set."""
        found = [value for name, value in self.entries if name == key]
        return found[-1] if found else None

    def has(self, key: str) -> bool:
        """Say whether a key in git's lower case is set: what git need not be asked for is not."""
        return any(name == key for name, _ in self.entries)

    def notify(self) -> str | None:
        """Give `batch.notify`: what /bin/sh runs at the first park and at the end of a run."""
        return self.last("batch.notify") or None

    def running_code(self) -> tuple[tuple[str, str], ...]:
        """Give what makes git run commands; a key that is set twice comes twice."""
        return tuple((k, v) for k, v in self.entries if _RUNS_CODE.fullmatch(k))


def _entries(words: list[bytes]) -> Iterator[tuple[str, str]]:
    for scope, entry in zip(words[::2], words[1::2], strict=False):
        key, _, value = entry.partition(b"\n")  # a key without a value is true
        if scope != b"command":
            yield os.fsdecode(key), os.fsdecode(value)
