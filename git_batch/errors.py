"""Errors by who must act, and the exit statuses of product.md.

A failed *task* is an outcome and never an exception. What is raised is for the caller
(`UsageError`), the plan's author (`PlanError`), whoever looks after the working tree or the
repository (`PreconditionError`), a reader of a broken lineage (`DriftError`), or it says that git
or the record can't be trusted (`GitError`, `RecordError`). Everything else is a bug.

Messages follow git: lower case, no full stop, names in single quotes; `hints` are printed after
it, one `hint:` line each, and never contain a command that destroys work.
"""

from __future__ import annotations

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit statuses of `git batch` (product.md, Commands)."""

    OK = 0
    STOPPED = 1
    USAGE = 2
    REFUSED = 3
    FAILED = 4
    BUG = 70
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class BatchError(Exception):
    """What a person has to know and act on; never shown as a traceback.

    Args:
        message: what failed first, then why, in git's style.
        hints: what to do about it, one sentence or command each.
    """

    exit_code = ExitCode.REFUSED

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.message = message
        self.hints = hints


class UsageError(BatchError):
    """The command line asks for something that does not exist or fit."""

    exit_code = ExitCode.USAGE


class PlanError(BatchError):
    """The plan file can't be used as it is."""

    exit_code = ExitCode.USAGE


class PreconditionError(BatchError):
    """The repository, the working tree or the batch is not in a state that allows this."""


class LockedError(PreconditionError):
    """Another process holds a lock that this needs."""


class StaleError(PreconditionError):
    """A ref moved between reading and writing it; whoever asked must read again and decide."""


class MachineError(BatchError):
    """A run could not go on: the disk, git or the system failed it. What is recorded holds."""

    exit_code = ExitCode.STOPPED

    def __init__(self, what: str, *hints: str) -> None:
        mended = "nothing that was recorded is lost; when this is mended: git batch resume"
        super().__init__(f"can't go on: {what}", *hints, mended)

    @classmethod
    def of(cls, error: OSError) -> MachineError:
        """Say what the system would not do, and with which file."""
        name = error.filename
        if isinstance(name, bytes):
            name = name.decode("utf-8", "backslashreplace")
        return cls(f"{error.strerror or error}" + (f": '{name}'" if name else ""))


SYSTEM_FAULTS = frozenset(
    {
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EROFS,
    }
)
"""What a system call may fail with wherever it is made: never a bug of ours."""


FSCK = "what else is damaged: git fsck"
"""The hint where an object is damaged: what is left of it is for git to tell."""


class DriftError(BatchError):
    """The batch branch is not what the record says."""

    exit_code = ExitCode.FAILED


class RecordError(BatchError):
    """The record of a batch is missing, unreadable or contradicts itself."""


class GitError(BatchError):
    """git or libgit2 failed at something that should have worked."""
