"""The transition tables: total, closed, and with nothing in them that can't happen."""

from __future__ import annotations

from itertools import product

import pytest

from git_batch.core import events as ev
from git_batch.core.standing import RESUMABLE, BatchStatus, Phase
from git_batch.core.transitions import BATCH, FLIGHT, IllegalTransition, step, trigger
from tests.core.diagram import mermaid
from tests.core.facts import every_trigger

PHASES: tuple[Phase | None, ...] = (None, *Phase)
EVENTS = every_trigger()
NEVER = {"closed:running", "closed:prepared", "closed:rejected", "closed:abandoned"}


def legal(status: BatchStatus, phase: Phase | None) -> dict[str, tuple[BatchStatus, Phase | None]]:
    """List what can follow from a state."""
    found = {}
    for event in EVENTS:
        try:
            found[trigger(event)] = step(status, phase, event)
        except IllegalTransition:
            continue
    return found


def reachable() -> set[tuple[BatchStatus, Phase | None]]:
    found: set[tuple[BatchStatus, Phase | None]] = set()
    todo: list[tuple[BatchStatus, Phase | None]] = [(BatchStatus.PREPARED, None)]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += legal(*here).values()
    return found


def test_every_state_and_event_has_a_row_in_both_tables_or_is_refused_by_name() -> None:
    for status, phase, event in product(BatchStatus, PHASES, EVENTS):
        name = trigger(event)
        in_both = (status, name) in BATCH and (phase, name) in FLIGHT
        if in_both:
            assert step(status, phase, event) == (BATCH[status, name], FLIGHT[phase, name])
        else:
            with pytest.raises(IllegalTransition, match=f"{name} can't follow from {status}/"):
                step(status, phase, event)


def test_every_event_has_its_place_in_both_tables_but_for_closings_that_are_none() -> None:
    names = {trigger(event) for event in EVENTS}
    assert {name for _, name in BATCH} == names - NEVER
    assert {name for _, name in FLIGHT} == names - NEVER


def test_triggers_tell_apart_what_leads_elsewhere() -> None:
    assert len({trigger(event) for event in EVENTS}) == len(EVENTS)
    assert len(EVENTS) == len(ev.KINDS) - 2 + len(BatchStatus) + len(ev.Decision)


def test_every_phase_and_every_recorded_status_can_be_reached() -> None:
    states = reachable()
    assert {phase for _, phase in states} == set(PHASES)
    assert {s for s, _ in states} == set(BatchStatus) - {BatchStatus.REJECTED}


def test_every_state_that_can_be_resumed_has_a_way_to_every_end() -> None:
    ends = {BatchStatus.COMPLETED, BatchStatus.ABANDONED, BatchStatus.FAILED}
    for start in reachable():
        if start[0] not in RESUMABLE:
            continue
        found, todo = set[BatchStatus](), [start]
        seen: set[tuple[BatchStatus, Phase | None]] = set()
        while todo:
            here = todo.pop()
            found.add(here[0])
            if here not in seen:
                seen.add(here)
                todo += legal(*here).values()
        assert ends <= found, start


def test_an_abandoned_batch_has_no_exit() -> None:
    assert not legal(BatchStatus.ABANDONED, None)
    assert not [row for row in BATCH if row[0] is BatchStatus.ABANDONED]


def test_a_completed_batch_changes_only_by_a_persons_blessing_undo_or_rebase() -> None:
    assert legal(BatchStatus.COMPLETED, None) == {
        "decided:bless": (BatchStatus.COMPLETED, None),
        "decided:undo": (BatchStatus.COMPLETED, None),
        "decided:redo": (BatchStatus.RUNNING, None),
        "decided:rebase": (BatchStatus.RUNNING, None),
    }


def test_a_failed_batch_goes_on_only_by_a_fresh_authorization_or_a_persons_decision() -> None:
    assert legal(BatchStatus.FAILED, None) == {
        "authorized": (BatchStatus.RUNNING, None),
        "decided:bless": (BatchStatus.NEEDS_HUMAN, None),
        "decided:rebase": (BatchStatus.RUNNING, None),
        "decided:abandon": (BatchStatus.ABANDONED, None),
    }


def test_a_batch_begins_with_created_and_nothing_else() -> None:
    assert legal(BatchStatus.PREPARED, None) == {"created": (BatchStatus.RUNNING, None)}
    assert [row for row in BATCH if row[1] == "created"] == [(BatchStatus.PREPARED, "created")]


def test_only_a_settled_task_is_committed_and_it_can_only_be_committed_or_given_back() -> None:
    assert [phase for phase, name in FLIGHT if name == "committed"] == [Phase.SETTLED]
    moves = {n for (p, n), to in FLIGHT.items() if p is Phase.SETTLED and to is not p}
    assert moves == {"committed", "interrupted", "decided:abandon"}


def test_no_base_is_left_while_a_task_is_in_flight() -> None:
    assert [phase for phase, name in FLIGHT if name == "decided:rebase"] == [None]


def test_a_batch_completes_only_with_nothing_in_flight() -> None:
    assert [phase for phase, name in FLIGHT if name == "closed:completed"] == [None]


def test_a_person_can_give_up_a_resumable_batch_whatever_is_in_flight() -> None:
    for status, phase in product(RESUMABLE, PHASES):
        assert legal(status, phase)["decided:abandon"] == (BatchStatus.ABANDONED, None)


def test_the_diagram_shows_every_status_and_every_move_between_two() -> None:
    text = mermaid()
    for status in {s for s, _ in reachable()} - {BatchStatus.PREPARED}:
        assert f" {status}" in text
    moves = {(a, b) for (a, _), b in BATCH.items() if a is not b}
    assert text.count("-->") == len(moves) + 1
    assert "[*] --> running: created" in text
    assert "abandoned --> [*]" in text
