"""The options that `start` and `resume` share, read in one place and given as one object."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

import click
from msgspec import Struct

from git_batch.app.requests import Bounds
from git_batch.cli.numbers import Count
from git_batch.core.duration import parse_duration, parse_time


class Moment(click.ParamType[float | datetime]):
    """A duration from now, or an RFC 3339 time."""

    name = "duration|time"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | datetime:
        """Read either form."""
        try:
            return parse_duration(value)
        except ValueError:
            pass
        try:
            return parse_time(value)
        except ValueError:
            self.fail(
                f"'{value}' is neither a duration such as '8h' nor a time such as "
                "'2026-01-31T07:00:00+01:00'",
                param,
                ctx,
            )


class Tasks(click.ParamType[tuple[bool, int]]):
    """A number of tasks in all, or `+N` for that many more."""

    name = "n|+n"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[bool, int]:
        """Read a count and whether it is relative."""
        digits = value.removeprefix("+")
        if not digits.isdecimal():
            self.fail(f"'{value}' is neither a number nor '+' and a number", param, ctx)
        return value.startswith("+"), int(digits)


class Asked(Struct, frozen=True):
    """What a person asks of a run: its bounds, to be confirmed unless they say yes beforehand."""

    bounds: Bounds
    yes: bool
    recheck: bool


def bound_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options to a command, which gets them as its argument `asked`."""

    @wraps(command)
    def gathered(*, yes: bool, recheck: bool, **given: Any) -> int:
        bounds = _bounds(**{name: given.pop(name) for name in _NAMES})
        return command(asked=Asked(bounds, yes, recheck), **given)

    options: Callable[..., int] = gathered
    for option in _OPTIONS:
        options = option(options)
    return options


def _bounds(max_tasks: tuple[bool, int] | None, **given: Any) -> Bounds:
    relative, number = max_tasks or (False, None)
    total, extra = (None, number) if relative else (number, None)
    return Bounds(max_tasks=total, extra_tasks=extra, **given)


_NAMES = ("max_tasks", "deadline", "expires", "qa_failures", "fail_fast", "claim", "sign")
_OPTIONS = (
    click.option("--qa-failures", type=Count(), metavar="N",
                 help="End the run after N failing checks in a row."),
    click.option("--expires", type=Moment(), help="Start no task after this."),
    click.option("--deadline", type=Moment(), help="Start no task after this."),
    click.option("--max-tasks", type=Tasks(), metavar="N",
                 help="Start at most N tasks in all; with resume also +N, that many more."),
    click.option("--sign", is_flag=True,
                 help="Sign the authorization with your git signing key."),
    click.option("--claim", metavar="REMOTE",
                 help="Claim each task on a remote, so that no other machine runs it."),
    click.option("--recheck", is_flag=True,
                 help="Run checks also where they have passed on the same tree."),
    click.option("-x", "--fail-fast", is_flag=True, help="End the run at the first park."),
    click.option("-y", "--yes", is_flag=True, help="Confirm without being asked."),
)  # fmt: skip
