"""One try of a task, and what is known of it: its end, its checks, its log, what it used."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from git_batch.core.ids import Oid
from git_batch.core.standing import Outcome

KEEP_PATHS = 100
"""How many changed paths an attempt's record lists; the total is always said."""

N = TypeVar("N", int, float)


DIED = "the run ended before the attempt did"
"""How the reason begins of an attempt that was cut short by nobody who could record it."""

DEATHS = 3
"""How many runs in a row may end so with one task before it is a person's to look at."""


class LogRef(Struct, frozen=True):
    """A kept log: its full size in bytes and the sha256 of what is kept of it."""

    size: int
    sha256: str


class CheckResult(Struct, frozen=True):
    """One check's end; `status` is None when it did not exit by itself.

    Attributes:
        tree: what was checked, and `key` what was run on it: the same again need not be run again.
        reused: it was not run, an earlier result of the same on the same tree stands for it.
    """

    command: str
    outcome: str
    status: int | None
    seconds: float
    tree: Oid | None = None
    key: str = ""
    reused: bool = False


class Usage(Struct, frozen=True):
    """What an agent says it used; None means that it did not say.

    Attributes:
        usd_unsaid: how many of the attempts summed up here were an agent's that did not say the
            money; `tokens_unsaid` likewise, neither number of tokens.
        unread: why something of what was written can't be read; of several attempts the newest.
    """

    usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd_unsaid: int = 0
    tokens_unsaid: int = 0
    unread: str = ""

    @property
    def said(self) -> bool:
        """Whether anything is known."""
        return (self.usd, self.input_tokens, self.output_tokens) != (None, None, None)

    def plus(self, other: Usage) -> Usage:
        """Add two usages; unknown and known is the known part."""
        return Usage(
            _sum(self.usd, other.usd),
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            self.usd_unsaid + other.usd_unsaid,
            self.tokens_unsaid + other.tokens_unsaid,
            other.unread or self.unread,
        )


def _sum(a: N | None, b: N | None) -> N | None:
    return b if a is None else a if b is None else a + b


class Attempt(Struct, frozen=True):
    """One ended try of a task.

    Attributes:
        links: the symbolic links among what its command changed.
        message: what it said for the body of a commit that it did not come to.
    """

    n: int
    outcome: Outcome
    started_at: datetime
    ended_at: datetime
    exit_status: int | None = None
    reason: str = ""
    checks: tuple[CheckResult, ...] = ()
    changed: tuple[bytes, ...] = ()
    changed_total: int = 0
    ref: str | None = None
    log: LogRef | None = None
    usage: Usage = Usage()
    links: tuple[bytes, ...] = ()
    message: bytes = b""


class Failure(Struct, frozen=True):
    """A known bad end of an attempt, with what a person or the next attempt should know.

    Attributes:
        halts: nothing else may start before a person has looked at it.
    """

    outcome: Outcome
    reason: str
    feedback: str = ""
    halts: bool = False
