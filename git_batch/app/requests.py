"""What a person asks of `start` and `resume`, and how the same is asked once more.

Who is refused for one option should not have to put the others together again: the command that is
hinted at repeats what was given, with the option that has to be another one in its place. Left out
is what was done already or is no part of the wish: `--yes`, which agreed to something else, a dry
run, and what `resume` did to leftovers before it was refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from git_batch.core.duration import write_duration
from git_batch.core.values import replace

Value = str | int | float | bool | datetime | None
Option = tuple[str, Value]
"""An option and what was given for it; False and None if it was not."""


class Bounds(Struct, frozen=True):
    """What a confirmation may set on top of the plan's own budget; None leaves the plan's."""

    max_tasks: int | None = None
    extra_tasks: int | None = None
    deadline: float | datetime | None = None
    expires: float | datetime | None = None
    qa_failures: int | None = None
    fail_fast: bool = False
    claim: str | None = None
    sign: bool = False

    def given(self) -> tuple[Option, ...]:
        """Give them as options."""
        more = None if self.extra_tasks is None else f"+{self.extra_tasks}"
        return (
            ("--max-tasks", self.max_tasks if more is None else more),
            ("--deadline", self.deadline),
            ("--expires", self.expires),
            ("--qa-failures", self.qa_failures),
            ("--fail-fast", self.fail_fast),
            ("--claim", self.claim),
            ("--sign", self.sign),
        )


class StartRequest(Struct, frozen=True):
    """The options of `git batch start`."""

    plan: str | None = None
    bounds: Bounds = Bounds()
    branch: str | None = None
    base: str | None = None
    allow_untracked: bool = False
    recheck: bool = False

    def again(self, *instead: str) -> str:
        """Write the command once more, with options as they have to be instead."""
        options: tuple[Option, ...] = (
            ("--branch", self.branch),
            ("--base", self.base),
            ("--allow-untracked", self.allow_untracked),
            *self.bounds.given(),
            ("--recheck", self.recheck),
        )
        return written(("git batch start", self.plan), options, instead)


class ResumeRequest(Struct, frozen=True):
    """The options of `git batch resume`.

    Attributes:
        plan: the file of a changed plan.
        program: how we are started, as hints write it.
    """

    batch: str | None = None
    bounds: Bounds = Bounds()
    kill_orphans: bool = False
    renew: bool = False
    plan: str | None = None
    recheck: bool = False
    program: str = "git batch"

    def again(self, *instead: str) -> str:
        """Write the command once more; `instead` as of `StartRequest.again`."""
        options = (("--plan", self.plan), *self.bounds.given(), ("--recheck", self.recheck))
        return written((f"{self.program} resume", self.batch), options, instead)

    def as_start(self, *instead: str) -> str:
        """Write the command that starts its plan as a batch of its own; `instead` as of `again`."""
        bounds = replace(self.bounds, extra_tasks=None)  # a new batch has none to add to
        return StartRequest(self.plan, bounds, recheck=self.recheck).again(*instead)


def written(
    command: tuple[str, str | None], options: Iterable[Option], instead: Sequence[str] = ()
) -> str:
    """Write a command for a shell.

    Args:
        command: its name, and the argument it was given.
        options: what was given besides.
        instead: options as they have to be, in place of those; for a shell already.
    """
    name, argument = command
    words = [name, *([] if argument is None else [shlex.quote(argument)]), *instead]
    others = {option.split(" ", 1)[0] for option in instead}
    for option, value in options:
        if option not in others and value is not None and value is not False:
            words += [option] if value is True else [option, shlex.quote(_text(value))]
    return " ".join(words)


def _text(value: str | float | datetime) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return write_duration(value) if isinstance(value, float) else str(value)
