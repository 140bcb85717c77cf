"""Events as commit messages, and the state at the newest one, without any repository."""

from __future__ import annotations

import contextlib
import random
import re
import string
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from git_batch.core import entries, reading, record, trailers
from git_batch.core import events as ev
from git_batch.core.attempt import Failure
from git_batch.core.chain import is_event
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, InFlight, TaskRecord
from git_batch.core.standing import Outcome, TaskStatus
from git_batch.core.values import replace
from git_batch.errors import RecordError
from tests.core.facts import HOSTILE_TEXTS, values
from tests.core.test_machine import ends
from tests.core.test_properties import make, person_goes_on, seeds
from tests.tries import tries
from tests.world import PERSON, START, World, plan, task

HEADERS = (ev.Created, ev.Authorized, ev.Decided, ev.Closed)


def one_run() -> World:
    world = World(plan(task("a", attempts=2), task("b", "a")), ends(a=[Outcome.CHECK_FAILED]))
    world.run()
    return world


RUN = one_run()
GRAPH = RUN.machine.graph


def render(event: ev.Event, state: BatchState | None = None) -> bytes:
    return record.render(event, state or RUN.current, GRAPH, 7, "host/run")


SETTLED = render(next(e for e in RUN.events if isinstance(e, ev.Settled)))


@pytest.mark.parametrize("kind", list(ev.KINDS), ids=lambda kind: kind.__name__)
def test_every_event_survives_its_commit_message(kind: type[ev.Event]) -> None:
    @tries(8)
    @given(values(kind))
    def check(event: ev.Event) -> None:
        message = render(event)
        entry = record.parse(message)
        assert (entry.step, entry.event, entry.in_flight) == (7, event, None)
        filtered_by_others(message, event)

    check()


@tries(15)
@given(values(InFlight))
def test_the_task_in_flight_survives_every_commit_message(flight: InFlight) -> None:
    message = render(RUN.events[0], replace(RUN.current, in_flight=flight))
    assert record.parse(message).in_flight == flight


def filtered_by_others(message: bytes, event: ev.Event) -> None:
    """See that what other tools filter by is one block, with nothing in it from elsewhere."""
    assert is_event(message)
    block = trailers.block(message)
    assert [key for key, _ in block][:3] == ["Batch-Format", "Batch-Event", "Batch-Step"]
    assert block[0][1] == "1"
    assert block[1][1] == ev.KINDS[type(event)]
    assert len({key for key, _ in block}) == len(block)


@pytest.mark.parametrize("name", [*HOSTILE_TEXTS, "two\nlines", "two\n\nparagraphs"])
def test_the_subject_is_one_line_whatever_a_person_is_called(name: str) -> None:
    event = ev.StopRequested(START, replace(PERSON, name=name))
    message = render(event)
    subject, gap, _ = message.decode().partition("\n\n")
    assert gap
    assert "\n" not in subject
    assert subject.startswith("stop requested by")
    assert record.parse(message).event == event


def test_the_subject_says_the_event_to_people() -> None:
    failure = Failure(Outcome.BLOCKED, "needs a key")
    a = TaskId("a")
    many = tuple(TaskId(t) for t in "abcd")
    said: dict[ev.Event, str] = {
        ev.Decided(
            START, ev.Decision.SKIP, PERSON, many
        ): "a, b, c and 1 more: skip decided by A Person",
        ev.Decided(START, ev.Decision.BLESS, PERSON): "batch: bless decided by A Person",
        ev.Parked(START, a, 1, failure, "", None, (), 0): "a: parked (blocked)",
        ev.Committed(START, a, Oid("c")): "a: committed",
        ev.Reviewed(START, a, Oid("t"), ev.Verdict.REWORK, PERSON, ""): "a: review says rework",
    }
    for event, words in said.items():
        assert record.subject(event) == words
    authorized = next(e for e in RUN.events if isinstance(e, ev.Authorized))
    assert record.subject(authorized) == "authorized by A Person (1)"


def test_trailers_name_task_attempt_and_what_was_settled() -> None:
    event = record.parse(SETTLED).event
    assert isinstance(event, ev.Settled)
    assert dict(trailers.block(SETTLED)) == {
        "Batch-Format": "1",
        "Batch-Event": "settled",
        "Batch-Step": "7",
        "Batch-Task": event.task,
        "Batch-Attempt": str(event.attempt),
        "Batch-Parent": event.parent,
        "Batch-Tree": event.tree,
        "Batch-Runner": "host/run",
    }


class Notes:
    """Header and notes as the record's tree holds them, and the state that they give back."""

    def __init__(self, world: World) -> None:
        self.world, self.steps = world, 0
        self.header = b""
        self.notes: dict[TaskId, tuple[TaskRecord, bytes]] = {}
        world.watch = self.see

    def see(self, state: BatchState) -> None:
        event, _ = self.world.log[-1]
        if isinstance(event, HEADERS):
            self.header = record.header(state)
        for name, task_record in state.tasks.items():
            if name not in self.notes or self.notes[name][0] != task_record:
                self.notes[name] = (task_record, record.note(name, task_record))
        graph, self.steps = self.world.machine.graph, self.steps + 1
        entry = record.parse(record.render(event, state, graph, self.steps, "host/run"))
        read = {
            note.task: note.record
            for note in (record.parse_note(blob) for _, blob in self.notes.values())
        }
        restored = record.restore(entry, reading.parse_header(self.header), read, graph)
        assert restored == replace(state, stale=False)
        assert entry.event == event


@tries(8)
@given(seeds)
def test_the_newest_event_header_and_notes_give_the_state_that_all_events_give(seed: int) -> None:
    dice, world = make(seed, 7)
    notes = Notes(world)
    world.run()
    person_goes_on(dice, world)
    assert notes.steps == len(world.log)


def test_the_newest_event_gives_back_a_batch_that_was_abandoned_in_flight() -> None:
    world = World(plan(task("a"), task("b")))
    notes = Notes(world)
    world.start()
    for _ in range(4):
        world.append(world.perform(world.machine.decide(world.current)))
    world.decide(ev.Decision.ABANDON)
    assert notes.steps == 7


def restored(
    change: Callable[[entries.Entry], entries.Entry] = lambda entry: entry,
    **tasks: TaskRecord,
) -> BatchState:
    head = reading.parse_header(record.header(RUN.current))
    entry = change(record.parse(render(RUN.events[-1])))
    held = dict(RUN.current.tasks) | {TaskId(name): value for name, value in tasks.items()}
    return record.restore(entry, head, held, GRAPH)


def test_notes_that_count_otherwise_than_the_newest_event_are_a_contradiction() -> None:
    assert restored() == RUN.current
    other = replace(RUN.current.tasks[TaskId("b")], status=TaskStatus.PENDING)
    with pytest.raises(RecordError, match="count the tasks differently"):
        restored(b=other)


def test_a_task_that_the_plan_does_not_have_is_a_contradiction() -> None:
    with pytest.raises(RecordError, match="'x', which its plan does not have"):
        restored(x=RUN.current.tasks[TaskId("a")])

    def fly(entry: entries.Entry) -> entries.Entry:
        world = World(plan(task("y")))
        world.start()
        world.append(world.perform(world.machine.decide(world.current)))
        return replace(entry, in_flight=world.current.in_flight)

    with pytest.raises(RecordError, match="'y', which its plan does not have"):
        restored(fly)


@pytest.mark.parametrize("version", ["2", "10", "999999999"])
def test_an_event_of_a_newer_format_is_refused_by_name(version: str) -> None:
    newer = SETTLED.replace(b"Batch-Format: 1", b"Batch-Format: " + version.encode())
    with pytest.raises(RecordError, match=f"has format {version}, .* reads up to 1") as caught:
        record.parse(newer)
    assert caught.value.hints == ("install a newer git-batch-runner",)


def test_a_header_of_a_newer_format_is_refused_by_name() -> None:
    newer = record.header(RUN.current).replace(b"format = 1", b"format = 2\nunheard = 1")
    with pytest.raises(RecordError, match="has format 2"):
        reading.parse_header(newer.replace(b"batch_id", b"batch_name"))


@pytest.mark.parametrize("version", ["", "0", "-1", "²", "1.0", "9" * 5000, "one"])
def test_a_format_that_is_no_number_of_ours_is_refused(version: str) -> None:
    with pytest.raises(RecordError):
        record.parse(SETTLED.replace(b"Batch-Format: 1", f"Batch-Format: {version}".encode()))


@pytest.mark.parametrize("step", ["x", "+7", "9" * 5000])
def test_what_went_wrong_a_step_that_is_no_number_was_refused_without_its_name(step: str) -> None:
    with pytest.raises(RecordError, match="'Batch-Step' is not a number"):
        record.parse(SETTLED.replace(b"Batch-Step: 7", f"Batch-Step: {step}".encode()))


def parses_or_refuses(message: bytes) -> entries.Entry | None:
    with contextlib.suppress(RecordError):
        return record.parse(message)
    return None


def test_a_message_that_is_cut_anywhere_is_refused_or_still_whole() -> None:
    whole = record.parse(SETTLED)
    for length in range(len(SETTLED)):
        entry = parses_or_refuses(SETTLED[:length])
        if entry is not None:  # it lacks no more than trailers that repeat what its body says
            assert (entry.event, entry.totals) == (whole.event, whole.totals)
            assert length > SETTLED.index(b"Batch-Step")


@tries(120)
@given(seeds)
def test_a_mutated_message_is_read_or_refused_and_nothing_else(seed: int) -> None:
    dice = random.Random(seed)
    message = bytearray(render(dice.choice(RUN.events)))
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(message))
        piece = dice.choice([b"", b"\xff", b"\n\n", b'"', b"[", b"9" * 30, b"=", b"\0", b"1e999"])
        cut = dice.choice([0, 1, 1, 5, 40])
        message[at : at + cut] = piece
    parses_or_refuses(bytes(message))


@tries(50)
@given(st.binary(max_size=80), st.sampled_from([reading.parse_header, record.parse_note]))
def test_any_bytes_are_read_as_a_note_or_refused_and_nothing_else(
    blob: bytes, parse: Callable[[bytes], object]
) -> None:
    with pytest.raises(RecordError):
        parse(blob)
    with pytest.raises(RecordError):
        record.parse_receipt(blob)


@pytest.mark.parametrize(
    "blob", [b"[" * 5000, b"a = " + b"[" * 5000, b"\xff", b"a = 1\na = 2"], ids=range(4)
)
def test_toml_that_breaks_parsers_is_refused(blob: bytes) -> None:
    with pytest.raises(RecordError, match="is not TOML"):
        record.parse_note(blob)


def test_what_went_wrong_a_number_that_is_too_long_was_told_in_the_words_of_python() -> None:
    with pytest.raises(RecordError) as refused:
        record.parse_note(b'task = "a"\nn = ' + b"9" * 5000)
    assert str(refused.value) == (
        "a task's note of the record is not TOML: "
        "a number has too many digits (at line 2, column 5)"
    )


def test_what_went_wrong_any_text_was_taken_for_the_id_of_an_object() -> None:
    named = re.search(rb'head = "([0-9a-f]{40})"', SETTLED)
    assert named
    with pytest.raises(RecordError, match="head: '--all' is not an object id"):
        record.parse(SETTLED.replace(named[1], b"--all"))


def test_what_went_wrong_a_value_that_is_too_long_filled_the_screen() -> None:
    with pytest.raises(RecordError) as refused:
        record.parse(re.sub(rb'(?m)^status = ".*"', b'status = "%s"' % (b"x" * 9000), SETTLED))
    assert len(str(refused.value)) < 200


@given(st.text(string.printable))
def test_a_persons_own_commit_on_the_same_ref_is_none_of_our_events(text: str) -> None:
    assume("Batch-Format" not in text)
    assert not is_event(text.encode())
    with pytest.raises(RecordError, match="its trailers are not whole"):
        record.parse(text.encode())


def test_a_receipt_certifies_the_commit_with_its_checks() -> None:
    receipt = record.parse_receipt(record.receipt(RUN.current, TaskId("a")))
    held = RUN.current.tasks[TaskId("a")]
    assert (receipt.batch, receipt.task) == (RUN.current.batch_id, "a")
    assert (receipt.certifies, receipt.tree) == (held.commit, held.tree)
    assert receipt.attempts == 2
    assert [check.outcome for check in receipt.checks] == ["passed"]


def test_a_closed_event_lists_at_most_twenty_tasks_that_need_a_person_and_their_number() -> None:
    made = plan(*(task(f"t{i}") for i in range(25)))
    world = World(made, ends(**{f"t{i}": [Outcome.BLOCKED] for i in range(25)}))
    state = world.run()
    message = record.render(world.events[-1], state, world.machine.graph, 1, "host/run")
    totals = record.parse(message).totals
    assert totals.needs == tuple(f"t{i}" for i in range(record.NAMED))
    assert totals.needs_total == 25
    assert totals.counts == {"needs_human": 25}
    other = record.render(RUN.events[0], state, world.machine.graph, 1, "host/run")
    assert record.parse(other).totals.needs == ()


def test_the_body_of_an_event_is_toml_between_subject_and_trailers() -> None:
    text = SETTLED.decode()
    assert re.match(r"[ab]: settled\n\n\[event\]\n", text)
    assert "\n[totals]\n" in text
    assert "\n\nBatch-Format: 1\nBatch-Event: settled\n" in text
