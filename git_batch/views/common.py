"""The words and small forms that all views share: times, counts, usage, commands, indentation.

Text from outside is escaped where it is put into a line. Text of several lines is only ever shown
with a gutter (`| `) before each line, so none of it can pass for a line of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from git_batch.core.actions import kept_part, without, without_kept
from git_batch.core.attempt import Usage
from git_batch.core.duration import format_duration
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import Command, InFlight
from git_batch.core.standing import BatchStatus, Outcome, StopReason, TaskStatus, says_more
from git_batch.views.escape import MORE, one_line, printable

VERSION = 1
"""Of all JSON that git-batch writes; keys are added to, never changed or taken away."""

NOT_RUN = "not_run"
"""The word for tasks that are pending and that a stop keeps from running."""

_WORDS: dict[str, str] = {
    TaskStatus.ENROLLED: "in flight",
    TaskStatus.NEEDS_HUMAN: "need a human",
    TaskStatus.SKIPPED_BLOCKED: "skipped",
}
_ORDER = (
    TaskStatus.COMMITTED,
    TaskStatus.UNCHANGED,
    TaskStatus.SETTLED,
    TaskStatus.ENROLLED,
    TaskStatus.NEEDS_HUMAN,
    TaskStatus.IN_REVIEW,
    TaskStatus.SKIPPED_BLOCKED,
    TaskStatus.DROPPED,
    NOT_RUN,
    TaskStatus.PENDING,
)


class Drift(Protocol):
    """A way in which the branch is not what the record says."""

    @property
    def kind(self) -> str:
        """Name it."""

    @property
    def detail(self) -> str:
        """Say what was found and what was expected."""

    @property
    def commit(self) -> str | None:
        """Give the first commit to look at."""

    @property
    def way_out(self) -> str:
        """Give the command that helps, empty if there is none."""

    @property
    def look(self) -> str:
        """Give the command that shows what differs, empty if there is no other one."""


GONE = "not here any more (pruned, or kept in another clone)"
"""What is said of kept work and kept output that the record names in vain."""


class Kept(NamedTuple):
    """What is still here of all that was kept: the refs of attempts, and whether the logs are."""

    refs: Collection[str]
    logs: bool


class Around(NamedTuple):
    """What is found around a record, as far as somebody looked.

    Attributes:
        head: where the branch is, None if it does not exist.
        drift: how that differs from what the record says.
        name: what commands have to call the batch, None where they need no name.
        kept: what is still here of kept work; None if nobody looked.
        reviewed: how attempts ended that were left for a review, by task and number.
    """

    head: Oid | None
    drift: Sequence[Drift] = ()
    name: str | None = None
    kept: Kept | None = None
    reviewed: Mapping[tuple[TaskId, int], tuple[Outcome, str]] = {}


def words(name: str) -> str:
    """Write a name of the contract in words: "check_failed" as "check failed"."""
    if name.startswith("not_run_"):
        return f"not run ({words(name.removeprefix('not_run_'))})"
    return name.replace("_", " ")


def state_word(state: str, n: int = 1) -> str:
    """Say a task's state, of one task or of several."""
    if n == 1 and state == TaskStatus.NEEDS_HUMAN:
        return "needs a human"
    return _WORDS.get(state, words(state))


def in_order(names: Iterable[str]) -> list[str]:
    """Sort states of tasks: what is done first, what has not begun last."""
    places: dict[str, int] = {name: place for place, name in enumerate(_ORDER)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def brief(text: str) -> str:
    """Give the first line of a text, and say that there is more; the whole stands elsewhere."""
    first, _, more = text.strip().partition("\n")
    return f"{first} {MORE}" if more else first


def counted(n: int, noun: str) -> str:
    """Say a number of things: "1 task", "2 tasks"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def counts_text(counts: Mapping[str, int], *, more: Mapping[str, str] | None = None) -> str:
    """Say how many tasks there are and in which states; the numbers add up.

    Args:
        more: what is said in brackets after a state.
    """
    total = counted(sum(counts.values()), "task")
    said = []
    for state in in_order(state for state, n in counts.items() if n):
        n = counts[state]
        extra = f" ({more[state]})" if more and more.get(state) else ""
        said.append(f"{n} {state_word(state, n)}{extra}")
    return f"{total}: {', '.join(said)}" if said else total


def stop_of(status: BatchStatus, stop: StopReason | None) -> StopReason | None:
    """Say why a batch ended; who abandons one gives no other reason."""
    return StopReason.ABANDONED if status is BatchStatus.ABANDONED else stop


def batch_text(status: BatchStatus, stop: StopReason | None, *, live: bool) -> str:
    """Say where a batch stands: its state, and why it is not running."""
    if status is BatchStatus.RUNNING:
        return "running" if live else "not finished, and nobody is running it"
    why = stop_of(status, stop)
    return f"{words(status)} ({words(str(why))})" if says_more(status, why) else words(status)


def stands_text(status: BatchStatus) -> str:
    """Say where a batch stands, as the rest of a sentence about it."""
    return "needs a human" if status is BatchStatus.NEEDS_HUMAN else f"is {words(status)}"


OF_THE_BRANCH = frozenset({StopReason.FOREIGN_COMMITS, StopReason.LINEAGE_BROKEN})
"""Stops whose reason is where the branch was."""


def actions_of(
    status: BatchStatus,
    stop: StopReason | None,
    recorded: str,
    *,
    live: bool,
    around: Around | None,
    flight: InFlight | None = None,
) -> list[str]:
    """Give the next commands: first what makes the branch whole, else the ways on.

    The record has one for every stop, a run that died has none. One that was about the branch is
    out of date as soon as the branch is where it belongs, and one that looks at what only the run's
    own clone keeps can't be done in another.
    """
    ways = [drift.way_out for drift in around.drift if drift.way_out] if around else []
    if ways or live:
        return ways
    whole = around is not None and not around.drift
    back = whole and stop in OF_THE_BRANCH and status is not BatchStatus.ABANDONED
    if status is BatchStatus.RUNNING or back:
        return ["git batch resume"]
    out = without(flight, stop)
    return [*([_possible(recorded, around)] if recorded else []), *([out] if out else [])]


def _possible(recorded: str, around: Around | None) -> str:
    """Give another command for one that looks at what is not here: pruned, or in another clone."""
    part, kept = kept_part(recorded), around.kept if around is not None else None
    if part is None or kept is None:
        return recorded
    here = any(ref.split("/", 3)[-1].startswith(part) for ref in kept.refs)
    return recorded if here else without_kept(recorded)


def branch_text(branch: str, recorded: Oid, base: Oid, around: Around | None) -> str:
    """Say where the branch of a batch is, and where it should be if that is elsewhere."""
    name, begins = one_line(branch), f"base {short(base)}"
    if around is None or (around.head == recorded):
        return f"{name} at {short(recorded)}, {begins}"
    if around.head is None:
        return f"{name} does not exist, recorded at {short(recorded)}, {begins}"
    meant = f", recorded at {short(recorded)}" if around.drift else ""
    return f"{name} at {short(around.head)}{meant}, {begins}"


def short(oid: str | None) -> str:
    """Abbreviate an object id."""
    return one_line(oid[:10]) if oid else "none"


def moment(at: datetime) -> str:
    """Write a time with its offset."""
    return at.isoformat(" ", "seconds")


def rfc3339(at: datetime | None) -> str | None:
    """Write a time for programs."""
    return None if at is None else at.isoformat()


def ago(at: datetime, now: datetime) -> str:
    """Say how long ago a time was, or in how long it will be."""
    seconds = (now - at).total_seconds()
    if seconds < 0:
        return f"in {format_duration(float(round(-seconds)))}"
    return f"{format_duration(float(round(seconds)))} ago"


def usage_text(usage: Usage) -> str:
    """Say what agents used; what nobody wrote is unknown, not nothing."""
    known = (usage.usd, usage.input_tokens, usage.output_tokens)
    if known == (None, None, None):
        return "unknown"
    usd = "USD unknown" if usage.usd is None else f"{usage.usd:.2f} USD"
    tokens = (
        f"{kind} tokens unknown" if n is None else f"{n} {kind} tokens"
        for kind, n in (("input", usage.input_tokens), ("output", usage.output_tokens))
    )
    return ", ".join((usd, *tokens))


def usage_json(usage: Usage) -> dict[str, float | int | None] | None:
    """Give what agents used, None if nobody wrote anything."""
    if not usage.said:
        return None
    return {
        "usd": usage.usd,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }


def command_text(command: Command) -> str:
    """Write a command as a person would type it; not escaped yet."""
    import shlex  # the text of `status` has no command, and must be fast

    return command if isinstance(command, str) else shlex.join(command)


def names(ids: Sequence[str], most: int = 20, total: int | None = None) -> str:
    """List names in single quotes, and how many are left out."""
    shown = ", ".join(f"'{one_line(i)}'" for i in ids[:most])
    more = (len(ids) if total is None else total) - min(len(ids), most)
    return shown if more <= 0 else f"{shown} and {more} more"


def rows(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Write labelled lines, their values in one column; the values are escaped already."""
    listed = list(pairs)
    column = max((len(label) for label, _ in listed), default=0) + 2
    return [f"{label + ':':<{column}}{value}" for label, value in listed]


def gutter(text: str, indent: int, *, most: int | None = None) -> list[str]:
    """Show a text of several lines, each behind a gutter; say how many are left out."""
    lines = printable(text).rstrip("\n").split("\n")
    shown = lines if most is None else lines[:most]
    result = [" " * indent + f"| {line}".rstrip() for line in shown]
    if len(shown) < len(lines):
        result.append(" " * indent + f"{MORE} {counted(len(lines) - len(shown), 'more line')}")
    return result


def field(label: str, text: str, indent: int, column: int) -> list[str]:
    """Write a labelled text: beside its label if it is one line, else below it with a gutter."""
    head = " " * indent + f"{label + ':':<{column - 1}} "
    if "\n" not in text.rstrip("\n"):
        return [(head + printable(text.rstrip("\n"))).rstrip()]
    return [head.rstrip(), *gutter(text, indent + 2)]


def oid_or_none(oid: Oid | None) -> str | None:
    """Give an object id for JSON."""
    return None if oid is None else str(oid)
