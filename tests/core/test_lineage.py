"""The comparison on literal commits, and the fast readers against the careful ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core import canonical, claims, codec, record, trailers
from git_batch.core import events as ev
from git_batch.core import lineage as kinds
from git_batch.core.claims import Seen, Settled, claim_of, rendered
from git_batch.core.comparison import Comparison
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.core.lineage import Drift, Ledger
from git_batch.core.model import Plan
from git_batch.core.planscopes import Bounds, scopes, stray
from git_batch.core.rebuilding import is_stand_in, rebuild, remains, stand_in
from git_batch.core.standing import BatchStatus, Phase
from git_batch.core.transitions import IllegalTransition, step
from git_batch.core.unrecorded import ByTrailers, by_trailers
from git_batch.core.values import replace
from git_batch.errors import RecordError
from tests.core.facts import HOSTILE_BYTES, values
from tests.core.test_canonical import plans
from tests.trailer_corpus import TEXTS, written
from tests.world import PERSON, World, oid, plan, task

BATCH = BatchId("batch-abc123")
BASE = oid("base")
DIGEST = "sha256:" + "0" * 64


def message(name: str, batch: str = BATCH) -> bytes:
    """Write a task's message without its last trailer."""
    pairs = [(trailers.BATCH_ID, batch), (trailers.TASK, name), (trailers.PLAN, DIGEST)]
    return trailers.with_trailers(trailers.compose(f"Do {name}", ""), pairs)


def decided(name: str, parent: Oid) -> Settled:
    return Settled(name, oid("tree", name), parent, message(name))


class Branch:
    """Commits of tasks one on the other, and the events that decided them."""

    def __init__(self, names: str = "abc") -> None:
        self.seen: list[Seen] = []
        self.events: dict[Oid, Settled | None] = {}
        tip = BASE
        for name in names:
            event, made = oid("event", name), decided(name, tip)
            self.events[event] = made
            tip = oid("commit", name)
            self.seen.append(Seen(tip, made.tree, (made.parent,), rendered(event, made)))

    @property
    def tip(self) -> Oid:
        return self.seen[-1].oid if self.seen else BASE

    def ledger(self, **more: object) -> Ledger:
        made = Ledger(
            BATCH, "batch/batch", BASE, self.tip, DIGEST, BatchStatus.COMPLETED,
            frozenset(c.oid for c in self.seen),
        )  # fmt: skip
        return replace(made, **more)  # type: ignore[arg-type]


def plain(name: str, parent: Oid, text: str = "by hand\n") -> Seen:
    return Seen(oid(name), oid("tree", name), (parent,), text.encode())


def told(
    branch: Branch, seen: Sequence[Seen], ledger: Ledger | None = None, **more: bool
) -> list[str]:
    """Compare commits with a branch's record and name what is wrong."""
    return [d.kind for d in compare(branch, seen, ledger, **more)]


def compare(
    branch: Branch, seen: Sequence[Seen], ledger: Ledger | None = None, **more: bool
) -> Sequence[Drift]:
    return Comparison(
        ledger or branch.ledger(),
        seen,
        branch.seen,
        branch.events,
        claims=[claim_of(c.message)[0] for c in seen],
        tip=seen[-1].oid if seen else BASE,
        base=BASE,
        **more,
    ).drifts


def test_a_branch_that_is_as_recorded_is_whole() -> None:
    branch = Branch()
    assert told(branch, branch.seen) == []
    assert told(Branch(""), []) == []


def test_a_commit_whose_event_says_something_else_contradicts_the_record() -> None:
    branch = Branch()
    event = oid("event", "b")
    right = branch.events[event]
    assert right is not None
    for wrong in (
        right._replace(task="c"),
        right._replace(tree=oid("other")),
        right._replace(parent=oid("other")),
        right._replace(message=right.message + b"More: words\n"),
        None,
    ):
        branch.events[event] = wrong
        (drift,) = compare(branch, branch.seen)
        assert (drift.kind, drift.commit) == (kinds.CONTRADICTION, oid("commit", "b"))


def test_two_commits_of_one_task_are_told_unless_the_first_was_taken_back() -> None:
    branch = Branch("a")
    event = oid("event", "again")
    made = decided("a", oid("undo"))
    undo = plain("undo", branch.tip, f"Revert\n\nBatch-Id: {BATCH}\nBatch-Undo: a\n")
    again = Seen(oid("again"), made.tree, (undo.oid,), rendered(event, made))
    branch.events[event] = made
    seen = [*branch.seen, undo, again]
    known = frozenset({branch.tip, again.oid})
    ledger = branch.ledger(receipts=known, head=again.oid, undone={undo.oid: (TaskId("a"),)})
    assert told(branch, seen, ledger) == []
    without = [*branch.seen, again._replace(parents=(branch.tip,))]
    branch.events[event] = made._replace(parent=branch.tip)
    assert told(branch, without, replace(ledger, undone={})) == [kinds.REPEATED]


def test_what_is_settled_and_not_recorded_yet_belongs_to_the_branch() -> None:
    branch = Branch("ab")
    ledger = branch.ledger(
        head=oid("commit", "a"),
        receipts=frozenset({oid("commit", "a")}),
        pending=(oid("event", "b"), branch.events[oid("event", "b")]),
    )
    assert told(branch, branch.seen, ledger) == []
    other = branch.seen[1]._replace(tree=oid("other"))
    assert told(branch, [branch.seen[0], other], ledger) != []


def test_blessed_commits_are_accepted_and_exactly_those() -> None:
    branch = Branch()
    one, two = plain("one", branch.tip), plain("two", oid("one"))
    blessed = branch.ledger(foreign=frozenset({one.oid}), head=one.oid)
    assert told(branch, [*branch.seen, one], blessed) == []
    (drift,) = compare(branch, [*branch.seen, one, two], blessed)
    assert (drift.kind, drift.commit, drift.status) == (
        kinds.FOREIGN, two.oid, BatchStatus.NEEDS_HUMAN,
    )  # fmt: skip


def test_a_commit_on_top_that_pretends_is_no_foreign_one() -> None:
    branch = Branch()
    copy = branch.seen[0]._replace(oid=oid("copy"), parents=(branch.tip,))
    assert told(branch, [*branch.seen, copy]) == [kinds.REPEATED]
    forged = plain("forged", branch.tip, "x\n\nBatch-Task: a\n")
    assert told(branch, [*branch.seen, forged]) == [kinds.FORGED]
    other = "x\n\nBatch-Id: other-7k2m9q\nBatch-Undo: a\n"
    assert told(branch, [*branch.seen, plain("other", branch.tip, other)]) == [kinds.FORGED]
    merge = plain("merge", branch.tip)._replace(parents=(branch.tip, BASE))
    assert told(branch, [*branch.seen, merge]) == [kinds.MERGE]


def test_what_went_wrong_commits_after_the_end_of_an_older_record_were_called_forged() -> None:
    older, branch = Branch("a"), Branch("abc")
    assert told(older, branch.seen) == [kinds.BEYOND] * 2
    message = f"Revert\n\nBatch-Id: {older.ledger().batch}\nBatch-Undo: c\n"
    undo = plain("undo", branch.tip, message)
    found = compare(older, [*branch.seen, undo])
    assert [d.kind for d in found] == [kinds.BEYOND] * 3
    assert "takes back 'c'" in found[-1].detail
    assert all(d.status is BatchStatus.FAILED for d in found), "it is refused as before"


@pytest.mark.parametrize("phase", list(Phase))
def test_commits_on_top_can_be_blessed_while_a_task_is_in_flight_but_not_once_it_is_settled(
    phase: Phase,
) -> None:
    """A person who commits while a task runs leaves it in flight; its next attempt begins there."""
    event = ev.Decided(datetime(2025, 1, 1, tzinfo=UTC), ev.Decision.BLESS, PERSON)
    if phase is Phase.SETTLED:
        with pytest.raises(IllegalTransition):
            step(BatchStatus.NEEDS_HUMAN, phase, event)
    else:
        assert step(BatchStatus.NEEDS_HUMAN, phase, event) == (BatchStatus.RUNNING, phase)


def test_without_the_recorded_commits_it_is_said_that_they_are_missing() -> None:
    branch = Branch()
    lone = Comparison(
        branch.ledger(), branch.seen[:1], None, branch.events,
        claims=[claim_of(branch.seen[0].message)[0]], tip=branch.seen[0].oid, base=BASE,
    )  # fmt: skip
    assert [d.kind for d in lone.drifts] == [kinds.MISSING]


def test_of_a_range_and_of_a_live_batch_the_end_is_not_compared() -> None:
    branch = Branch()
    assert told(branch, branch.seen[:2]) == [kinds.MOVED_BACK]
    assert told(branch, branch.seen[:2], ends=False) == []
    assert told(branch, branch.seen[:2], live=True) == []


def test_trailers_alone_are_compared_with_each_other() -> None:
    seen = Branch().seen
    found = by_trailers([*seen, plain("x", seen[-1].oid)])
    assert found == ByTrailers(BATCH, (), ("a", "b", "c"), 0, (oid("x"),))
    twice = by_trailers([*seen, seen[0]])
    assert [d.kind for d in twice.drifts] == [kinds.REPEATED]
    other = seen[1]._replace(message=seen[1].message.replace(b"batch-abc", b"other-abc"))
    assert [d.kind for d in by_trailers([seen[0], other]).drifts] == [kinds.FORGED]
    undo = plain("undo", seen[-1].oid, f"Revert\n\nBatch-Id: {BATCH}\nBatch-Undo: a\n")
    assert by_trailers([*seen, undo, seen[0]]).drifts == ()


def test_what_went_wrong_a_commit_that_was_taken_back_was_counted_as_a_task() -> None:
    seen = Branch().seen
    undo = plain("undo", seen[-1].oid, f"Revert\n\nBatch-Id: {BATCH}\nBatch-Undo: a\n")
    told = by_trailers([*seen, undo])
    assert (told.tasks, told.undone) == (("b", "c"), 1)
    again = by_trailers([*seen, undo, seen[0]])
    assert (again.tasks, again.undone) == (("b", "c", "a"), 1)
    # In a range that has only what takes back, nothing of it is a task's.
    assert (by_trailers([undo]).tasks, by_trailers([undo]).undone) == ((), 0)


# Fast readers against careful ones.


@pytest.mark.parametrize("name", list(TEXTS))
def test_a_claim_is_read_as_the_trailers_are(name: str) -> None:
    text = written(TEXTS[name])
    found, is_plain = claim_of(text)
    careful = trailers.ours(text)
    assert found is not None
    assert careful == dict(zip(trailers.KEYS, found, strict=True))
    assert is_plain or re.search(rb"(?m)^[ \t]*Batch-|^  ---|>8|^  -", text, re.IGNORECASE), text


def test_trailers_that_a_hook_added_leave_a_message_plain() -> None:
    """Or each such commit would cost two processes."""
    text = b""
    for others in ("Signed-off-by: Ä <a@x>\n", "Change-Id: I1\nSigned-off-by: A <a@x>\n"):
        text = b"Do a\n\n" + others.encode() + message("a").split(b"\n\n", 1)[1]
        text += f"Batch-Record: {oid('e')}\n".encode()
        found, is_plain = claim_of(text)
        assert is_plain
        assert found == tuple((trailers.ours(text) or {}).values())
    for others in ("Batch-Undo: a\n", "batch-x: y\n", "words\n", "Key:\n", " folded\n"):
        assert not claim_of(b"Do a\n\n" + others.encode() + text[text.index(b"Batch-Id") :])[1]


EDITS = st.sampled_from(
    [b"Batch-Task: x\n", b"\n", b"---\n", b"Signed-off-by: A <a@x>\n", b" more\n", b"\r", b"# x\n",
     b"Batch-Id:\n", b"words\n", b"\x00", b"Batch-Undo: a\n"]
)  # fmt: skip


@given(st.lists(st.tuples(st.floats(0, 1), EDITS), max_size=3), st.sampled_from(list(TEXTS)))
def test_a_claim_is_never_more_than_the_trailers_say(
    edits: list[tuple[float, bytes]], name: str
) -> None:
    text = written(TEXTS[name])
    for where, what in edits:
        at = int(where * len(text))
        text = text[:at] + what + text[at:]
    found, is_plain = claim_of(text)
    careful = trailers.ours(text)
    if found is not None:
        assert careful is not None
        assert [careful[key] for key in trailers.KEYS] == list(found)
        assert not is_plain or careful == dict(zip(trailers.KEYS, found, strict=True))


@given(values(ev.Settled), st.sampled_from([b"Do it\n\nKey: v\n", *HOSTILE_BYTES]))
def test_a_settled_event_is_read_as_the_codec_reads_it(event: ev.Settled, text: bytes) -> None:
    event = replace(event, tree=oid("t"), parent=oid("p"), task=TaskId("a"), message=text)
    world = World(plan(task("a")))
    world.start()
    raw = record.render(event, world.current, world.machine.graph, 3, "host/run")
    parsed = record.parse(raw).event
    assert isinstance(parsed, ev.Settled)
    slow = not text or codec.quote(text).startswith('"')
    expected = (parsed.task, parsed.tree, parsed.parent, parsed.message)
    assert claims.settled(raw) == (None if slow else expected)


def test_a_usual_settled_event_takes_the_fast_way() -> None:
    world = World(plan(task("a")))
    world.start()
    at = datetime(2025, 1, 1, tzinfo=UTC)
    for text in (message("a"), 'Ünï\tcode \\ "\n\nBatch-Task: a\n'.encode()):
        event = ev.Settled(at, TaskId("a"), 1, oid("t"), oid("p"), text, (b"f",), 1)
        raw = record.render(event, world.current, world.machine.graph, 3, "host/run")
        assert claims.settled(raw) == ("a", oid("t"), oid("p"), text)
    other = ev.Enrolled(at, TaskId("a"), 1, oid("p"), "host/run")
    assert claims.settled(record.render(other, world.current, world.machine.graph, 3, "r")) is None


PROMPTS = ['"""\n[[task]]\nid = "x"\nscope = ["**"]\n', "\n\n[[task]]\n", '\\"""', "\n'"]


@given(plans())
def test_scopes_are_read_as_the_whole_plan_is(made: Plan) -> None:
    hostile = (replace(t, prompt=PROMPTS[i % 4]) for i, t in enumerate(made.tasks))
    for one in (made, replace(made, tasks=tuple(hostile))):
        expected = {t.id: Bounds(t.scope, t.protect) for t in one.tasks}
        assert scopes(canonical.to_toml(one)) == expected


@pytest.mark.parametrize("toml", [b"", b"\xff", b"format = 1\n[[task]]\nscope = 3\n", b"task = 1"])
def test_what_is_no_plan_has_no_scopes(toml: bytes) -> None:
    with pytest.raises(RecordError):
        scopes(toml)


def test_what_a_task_may_not_touch_is_named_with_the_reason() -> None:
    bounds = Bounds(("src/**",), ("src/p",))
    paths = [(b"src/a", False), (b"b", False), (b"src/p", False), (b"src/sub", True)]
    assert dict(stray(bounds, paths)) == {
        b"b": "outside the scope", b"src/p": "protected", b"src/sub": "a nested git repository",
    }  # fmt: skip


# Rebuilding.


def test_a_rebuilt_record_knows_the_commits_and_waits_for_a_person() -> None:
    seen = Branch("abc").seen
    extra = plain("extra", seen[-1].oid)
    undo = plain("undo", extra.oid, f"Revert\n\nBatch-Id: {BATCH}\nBatch-Undo: b\n")
    left = remains(BATCH, BASE, [*seen, extra, undo])
    assert [t for t, _ in left.tasks] == ["a", "c"]
    assert left.others == (oid("commit", "b"), oid("extra"), oid("undo"))
    assert (left.undone, left.plan, left.tip) == (("b",), DIGEST, oid("undo"))
    at = datetime(2025, 1, 1, tzinfo=UTC)
    made = plan(*(task(n) for n in "abcd"))
    world = World(made)
    for event in rebuild(left, made, DIGEST, "batch/batch", PERSON, at):
        world.append(event)
    state = world.current
    assert (state.status, state.head, state.authorization) == (
        BatchStatus.NEEDS_HUMAN, oid("undo"), None,
    )  # fmt: skip
    assert {t: (r.status.value, r.commit) for t, r in state.tasks.items()} == {
        "a": ("committed", oid("commit", "a")),
        "b": ("dropped", None),
        "c": ("committed", oid("commit", "c")),
    }
    assert "not proven" in state.reason


def test_a_stand_in_for_a_lost_plan_is_told_from_a_plan() -> None:
    left = remains(BATCH, BASE, Branch().seen)
    made = stand_in(left)
    assert is_stand_in(made)
    again = canonical.from_toml(canonical.to_toml(made), {})
    assert is_stand_in(again)
    assert not is_stand_in(plan(task("a")))
