"""Mutated plans, events, notes and trailers: read, or refused with a name, and nothing else.

Reliability 37, of the parsers alone: no other error, none that does not say where or which key, and
no input that takes two seconds. Under commands, and with configurations: `tests/e2e/test_mutated`.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import pytest

from git_batch.core import canonical, claims, reading, record, trailers
from git_batch.core.claims import Seen
from git_batch.core.ids import Oid, TaskId
from git_batch.core.planfile import parse_plan
from git_batch.errors import PlanError, RecordError
from tests.core.test_planfile import BROKEN, GOOD, read_intent
from tests.core.test_record import RUN, render
from tests.mutation import mutated
from tests.trailer_corpus import TEXTS, written

TIME = 2.0
PLAN = canonical.to_toml(RUN.machine.plan)
STATE = RUN.current
A = TaskId("a")


def plan(data: bytes) -> None:
    parsed = parse_plan(data, name="batch.toml", read_intent=read_intent)
    canonical.from_toml(canonical.to_toml(parsed), parsed.intents)


def stored(data: bytes) -> None:
    canonical.from_toml(data, RUN.machine.plan.intents)


def event(data: bytes) -> None:
    seen = Seen(Oid("0" * 40), Oid("0" * 40), (), data)
    try:
        reading.parse_tip(seen)
    finally:
        record.parse(data)


def trailer(data: bytes) -> None:
    trailers.ours(data)
    trailers.body(data)
    trailers.with_trailers(data, [("Batch-Id", "x")])
    for read in (claims.claim_of, claims.pretends, claims.settled, claims.undo_of):
        read(data)


def refusal(parse: Callable[[bytes], object], data: bytes) -> list[str]:
    """Give the lines of the error that a parser refuses something with; none if it does not."""
    try:
        parse(data)
    except (PlanError, RecordError) as error:
        return error.message.split("\n")
    return []


WHERE = r"line \d+|end of document|position \d+|^[\w.]+: |: [\w.]+: |'[\w-]+'"
NAMES: dict[Callable[[bytes], object], tuple[list[bytes], str]] = {
    plan: (
        [path.read_bytes() for path in GOOD + BROKEN if path.stem != "matrix-big"],
        r"batch\.toml:\d+: |batch\.toml: '\w+' is missing|batch\.toml: and \d+ more problems",
    ),
    stored: ([PLAN], rf"the stored plan.*({WHERE}|unknown format|wait for each other)"),
    event: ([render(made) for made in RUN.events], rf"^an event of the record .*({WHERE})"),
    reading.parse_header: ([record.header(STATE)], rf"^the header of the record .*({WHERE})"),
    record.parse_note: (
        [record.note(A, STATE.tasks[A])],
        rf"^a task's note of the record .*({WHERE})",
    ),
    record.parse_receipt: ([record.receipt(STATE, A)], rf"^a receipt of the record .*({WHERE})"),
    trailer: ([*map(written, TEXTS.values()), *map(render, RUN.events)], "^$"),
}
"""Of each parser: good input, and what each line of its errors must say."""

ALSO = r"|its trailers are not whole|format \d+, this git-batch reads up to"


@pytest.mark.parametrize("parse", NAMES, ids=lambda parse: parse.__name__)
@pytest.mark.parametrize("rounds", [300, pytest.param(100_000, marks=pytest.mark.long)])
def test_what_is_mutated_is_read_or_refused_by_name_in_time(
    parse: Callable[[bytes], object], rounds: int
) -> None:
    good, names = NAMES[parse]
    refused = 0
    for n in range(rounds):
        dice = random.Random(f"{parse.__name__} {n}")
        data = mutated(dice.choice(good), dice)
        began = time.perf_counter()
        said = refusal(parse, data)
        assert time.perf_counter() - began < TIME, (n, data)
        refused += bool(said)
        assert all(re.search(names + ALSO, line) for line in said), (n, said)
    assert parse is trailer or rounds / 4 < refused < rounds
