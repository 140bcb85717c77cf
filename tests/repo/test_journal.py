"""The record in a real repository: what git sees, what a crash leaves, who else may write."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pygit2
import pytest

from git_batch.core import effects as fx
from git_batch.core import entries, record
from git_batch.core import events as ev
from git_batch.core.chain import is_event
from git_batch.core.claims import Seen
from git_batch.core.ids import Oid, TaskId
from git_batch.core.kinds import TREE_CHANGING
from git_batch.core.model import Budget
from git_batch.core.standing import BatchStatus, Outcome, Phase
from git_batch.core.values import replace
from git_batch.errors import RecordError, StaleError
from git_batch.repo import commits, recordread
from git_batch.repo.history import event_oids, history
from tests.chance import random_budget, random_decision, random_plan, random_script
from tests.conftest import git
from tests.repo.recorded import BATCH, REF, WHO, RecordedWorld
from tests.world import PERSON, Crashed, Script, essence, plan, task

CHAIN = plan(task("a"), task("b", "a"))


def drive_to(world: RecordedWorld, kind: type, nth: int = 1) -> fx.Effect:
    """Start and drive until the nth effect of a kind is decided."""
    world.start()
    while True:
        effect = world.machine.decide(world.current)
        if isinstance(effect, kind):
            nth -= 1
            if not nth:
                return effect
        world.append(world.perform(effect))


def events_of(world: RecordedWorld) -> list[tuple[Oid, entries.Entry]]:
    return history(world.repo, world.tip_of_record)


# Reading it with stock git.


def test_git_notes_shows_the_receipt_of_a_commit_and_the_header_of_the_base(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    state = world.run()
    commit = state.tasks[TaskId("a")].commit
    assert commit is not None
    receipt = git(repo, "notes", f"--ref=batch/{BATCH}", "show", commit)
    assert f'certifies = "{commit}"' in receipt
    header = git(repo, "notes", f"--ref=batch/{BATCH}", "show", state.base)
    assert f'batch_id = "{BATCH}"' in header
    assert 'status = "completed"' in header
    logged = git(repo, "log", "-1", "--notes=batch/*", commit)
    assert f"Notes (batch/{BATCH}):" in logged
    assert "certifies" in logged


def test_git_log_of_the_record_tells_the_events_in_order(repo: Path) -> None:
    RecordedWorld(repo, plan(task("a"))).run()
    told = git(repo, "log", "--first-parent", "--reverse", "--format=%s", REF)
    assert told.splitlines() == [
        f"created {BATCH}",
        "authorized by A Person (1)",
        "a: enrolled",
        "a: command done",
        "a: checks passed",
        "a: settled",
        "a: committed",
        "closed: completed",
    ]


def test_the_repository_is_sound_to_git(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN, Script({"b": (Outcome.CHECK_FAILED, Outcome.BLOCKED)}))
    world.run()
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""


def test_first_parents_are_events_only_and_second_parents_base_and_commits(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    world.run()
    chain = event_oids(world.repo, world.tip_of_record)
    facts = [commits.read(world.repo, oid) for oid in chain]
    assert all(is_event(fact.message) for fact in facts)
    seconds = {
        record.parse(fact.message).event: fact.parents[1:] for fact in facts if fact.parents[1:]
    }
    assert facts[0].parents == ()
    for event, second in seconds.items():
        match event:
            case ev.Authorized():
                assert second == (world.base,)
            case ev.Committed():
                assert second == (event.commit,)
            case _:
                pytest.fail(f"{event} has a second parent")
    assert len(seconds) == 3


def test_base_commits_settled_and_reviewed_trees_survive_gc_without_any_branch(
    repo: Path,
) -> None:
    made = plan(task("r", review="human"), task("a"), task("b"))
    world = RecordedWorld(repo, made)
    drive_to(world, fx.Commit, nth=2)
    world.publish()
    flight = world.current.in_flight
    assert flight is not None
    assert flight.tree is not None
    reviewed = world.current.tasks[TaskId("r")]
    assert reviewed.tree is not None
    git(repo, "checkout", "-q", "--detach")
    git(repo, "branch", "-D", "main")
    git(repo, "checkout", "-q", "--orphan", "other")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    for kept in (world.base, world.tip, flight.tree, reviewed.tree):
        git(repo, "cat-file", "-e", kept)
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
    assert world.load().state == world.current


# The tree.


def test_the_tree_has_header_plan_and_notes_with_one_level_of_fan_out_and_nothing_else(
    repo: Path,
) -> None:
    world = RecordedWorld(repo, CHAIN)
    state = world.run()
    names = git(repo, "ls-tree", "-r", "--name-only", REF).splitlines()
    plan_blobs = git(repo, "ls-tree", "-r", "--format=%(objectname)", REF, "plan/").splitlines()
    keys = [*plan_blobs, state.base, *(r.commit or "" for r in state.tasks.values())]
    assert set(names) == {
        "batch.toml",
        "plan.toml",
        "plan/000/a.toml",
        "plan/000/b.toml",
        *(f"{key[:2]}/{key[2:]}" for key in keys),
    }
    assert git(repo, "rev-parse", f"{REF}:batch.toml") == git(
        repo, "notes", f"--ref=batch/{BATCH}", "list", state.base
    )


def test_only_events_that_may_change_the_tree_change_it(repo: Path) -> None:
    ends = {"a": (Outcome.CHECK_FAILED, Outcome.SCOPE_REFUSED), "b": (Outcome.STOPPED,)}
    made = plan(task("a"), task("b"), task("c", review="human"))
    world = RecordedWorld(repo, made, Script(ends), Budget(max_wait=1e6))
    world.run()
    world.review("c", ev.Verdict.ACCEPT)
    world.resume()
    before: pygit2.Oid | None = None
    changed, seen = set[str](), set[str]()
    for oid, entry in events_of(world):
        kind = ev.KINDS[type(entry.event)]
        seen.add(kind)
        if before is not None and world.tree_at(oid).id != before:
            changed.add(kind)
        before = world.tree_at(oid).id
    assert changed <= TREE_CHANGING
    assert {"ran", "checked", "rework", "enrolled", "attempt_started"} <= seen - changed


def test_the_settled_tree_is_in_the_record_from_settled_to_committed_and_no_longer(
    repo: Path,
) -> None:
    world = RecordedWorld(repo, CHAIN)
    world.run()
    for oid, entry in events_of(world):
        tree = world.tree_at(oid)
        assert ("settled" in tree) == isinstance(entry.event, ev.Settled)
        if isinstance(entry.event, ev.Settled):
            assert str(tree["settled"].id) == entry.event.tree


@pytest.mark.parametrize("how", ["abandoned", "moved"])
def test_the_settled_tree_is_let_go_when_it_is_not_to_be_committed(repo: Path, how: str) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.Commit)
    if how == "abandoned":
        world.decide(ev.Decision.ABANDON)
    else:
        world.tip = Oid("f" * 40)
        world.append(world.perform(world.machine.decide(world.current)))
    assert "settled" not in world.tree_at(world.tip_of_record)
    assert world.load().state == world.current


@pytest.mark.parametrize("verdict", list(ev.Verdict))
def test_the_reviewed_tree_is_in_the_record_while_it_may_still_be_committed(
    repo: Path, verdict: ev.Verdict
) -> None:
    world = RecordedWorld(repo, plan(task("a", review="human")))
    world.run()
    reviewed = world.current.tasks[TaskId("a")]
    kept = world.tree_at(world.tip_of_record)["review/a/tree"]
    assert str(kept.id) == reviewed.tree
    assert git(repo, "cat-file", "blob", f"{REF}:review/a/parent") == world.base
    world.review("a", verdict)
    held = "review" in world.tree_at(world.tip_of_record)
    assert held == (verdict is ev.Verdict.ACCEPT)
    world.resume()
    assert "review" not in world.tree_at(world.tip_of_record)


def test_an_abandoned_task_that_was_tried_before_has_its_note_written(repo: Path) -> None:
    made = plan(task("a", attempts=1), task("b"))
    world = RecordedWorld(repo, made, Script({"a": (Outcome.BLOCKED,), "b": (Outcome.BLOCKED,)}))
    world.run()
    world.decide(ev.Decision.RETRY, "a")
    world.append(world.perform(world.machine.decide(world.current)))
    world.decide(ev.Decision.ABANDON)
    state = world.load().state
    assert state == world.current
    assert state.tasks[TaskId("a")].outcome is Outcome.STOPPED


# Reading it back.


@pytest.mark.parametrize("seed", range(6))
def test_the_newest_event_gives_the_state_that_the_replay_gives_after_every_event(
    repo: Path, seed: int
) -> None:
    dice = random.Random(seed)
    made = random_plan(dice, 5)
    script, budget = random_script(dice, made), random_budget(dice)
    world = RecordedWorld(repo, made, script, budget)
    read = 0

    def same(_: object) -> None:
        nonlocal read
        if world.journal.tip == world.refs.read(REF):
            state = world.load().state
            assert state == replace(world.journal.state, stale=False, status=state.status)
            assert state == world.machine.replay(
                (entry.event, oid) for oid, entry in events_of(world)
            )
            read += 1

    record_event = world.record

    def recorded(event: ev.Event) -> tuple[object, Oid]:
        answer = record_event(event)
        world.journal.publish()
        same(None)
        return answer

    world.record = recorded  # type: ignore[assignment, method-assign]
    world.run()
    for _ in range(2):
        if random_decision(dice, world):
            world.resume()
    assert read >= len(world.log) - 1


def test_deferred_events_are_seen_by_others_once_they_are_published(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.RunChecks)
    before = world.load().state
    assert before.in_flight is not None
    assert before.in_flight.phase is Phase.RUNNING
    assert world.current.in_flight is not None
    assert world.current.in_flight.phase is Phase.RAN
    world.journal.publish()
    assert world.load().state == world.current


def test_nothing_is_written_before_the_authorization(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    assert world.refs.read(REF) is None
    created = ev.Created(world.now(), BATCH, "batch", "A", "batch/batch", world.base, world.digest)
    world.journal.append(created)
    assert world.refs.read(REF) is None


@pytest.mark.parametrize("cut", range(3, 16))
def test_a_run_that_is_killed_after_any_event_comes_to_the_same_end(repo: Path, cut: int) -> None:
    ends = Script({"a": (Outcome.CHECK_FAILED,)})
    world = RecordedWorld(repo, plan(task("a"), task("b")), ends)
    world.crash_after = cut
    with pytest.raises(Crashed):
        world.run()
    world.crash()
    world.resume()
    assert world.current.status is BatchStatus.COMPLETED
    assert sorted(name for name, _ in world.commits.values()) == ["a", "b"]
    state = world.load().state
    assert essence(state) == essence(world.current)
    assert state.head == world.tip
    walk = git(repo, "rev-list", "--first-parent", f"{world.base}..{world.tip}").splitlines()
    assert walk == [state.tasks[TaskId(t)].commit for t in "ba"]


def test_reading_costs_the_same_whatever_the_number_of_events(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = RecordedWorld(
        repo, plan(task("a", attempts=99), task("b")), budget=Budget(max_wait=9e9)
    )
    drive_to(world, fx.RunTask)
    real, reads = commits.read, 0

    def counted(*args: object) -> Seen:
        nonlocal reads
        reads += 1
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(commits, "read", counted)
    world.load()
    few = reads
    world.script = Script({"a": (Outcome.SCOPE_REFUSED,) * 60})
    world.drive()
    assert len(world.log) > 150
    reads = 0
    world.load()
    assert reads == few == 1


# Who else writes to it.


@pytest.mark.parametrize(
    "command", [("append", "-m", "mine"), ("add", "-f", "-m", "mine"), ("remove",)], ids=str
)
def test_what_a_persons_git_notes_put_on_top_is_seen_and_put_right_by_the_next_event(
    repo: Path, command: tuple[str, ...]
) -> None:
    world = RecordedWorld(repo, plan(task("a"), task("b")))
    drive_to(world, fx.Enroll, nth=2)
    world.publish()
    commit = world.current.tasks[TaskId("a")].commit
    assert commit is not None
    notes = ("notes", f"--ref=batch/{BATCH}")
    receipt = git(repo, *notes, "show", commit)
    git(repo, *notes, *command, commit)
    theirs = world.tip_of_record
    at, _, state = recordread.read(world.repo, world.refs, BATCH)
    assert at.ref_tip == theirs != at.oid
    assert state == world.current
    world.drive()
    assert world.current.status is BatchStatus.COMPLETED
    assert git(repo, *notes, "show", commit) == receipt
    assert theirs in event_oids(world.repo, world.tip_of_record)
    assert "mine" not in git(repo, "ls-tree", "-r", REF)
    at = recordread.read(world.repo, world.refs, BATCH)[0]
    assert at.ref_tip == at.oid


def test_a_note_that_a_person_added_before_a_resume_is_put_right_by_its_first_event(
    repo: Path,
) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.RunTask)
    for _ in range(3):
        git(repo, "notes", f"--ref=batch/{BATCH}", "append", "-m", "x", "HEAD")
    world.crash()
    world.resume()
    assert world.load().state.status is BatchStatus.COMPLETED
    header = git(repo, "notes", f"--ref=batch/{BATCH}", "show", world.base)
    assert "\nx" not in header


def test_a_stop_that_another_process_asks_for_is_folded_in_before_what_was_not_published(
    repo: Path,
) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.RunChecks)
    world.load().append(ev.StopRequested(world.now(), PERSON))
    state = world.drive()
    assert (state.status, len(state.tasks)) == (BatchStatus.BUDGET_STOPPED, 1)
    kinds = [ev.KINDS[type(entry.event)] for _, entry in events_of(world)]
    assert kinds[2:6] == ["enrolled", "stop_requested", "ran", "checked"]
    steps = [entry.step for _, entry in events_of(world)]
    assert steps == list(range(1, len(steps) + 1))
    assert world.load().state == state


def test_an_event_that_was_foreseen_is_recorded_as_any_other(repo: Path) -> None:
    """Also its tree, and the state that others read; nobody sees it before."""
    world = RecordedWorld(repo, CHAIN)
    effect = drive_to(world, fx.Commit)
    event = world.perform(effect)
    before, tip = world.journal.state, world.tip_of_record
    world.journal.foresee(event)
    assert (world.journal.state, world.journal.tip) == (before, tip)
    assert world.tip_of_record == tip
    written = len(list((repo / ".git/objects").rglob("*")))
    state, oid = world.record(event)
    assert len(list((repo / ".git/objects").rglob("*"))) == written
    world.journal.publish()
    assert world.load().state == state
    assert [o for o, _ in events_of(world)][-2:] == [tip, oid]
    assert "settled" not in world.tree_at(oid)
    git(repo, "fsck", "--strict")


def test_an_event_that_was_foreseen_and_did_not_come_leaves_no_trace(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    effect = drive_to(world, fx.Commit)
    tip = world.journal.tip
    world.journal.foresee(world.perform(effect))
    world.tip = Oid("f" * 40)  # somebody moves the branch before the commit gets there
    world.append(world.perform(effect))
    [*_, (parent, _), (_, entry)] = events_of(world)
    assert (parent, type(entry.event)) == (tip, ev.Interrupted)
    assert "settled" not in world.tree_at(world.tip_of_record)
    assert world.load().state == world.current
    git(repo, "fsck", "--strict")


def test_an_event_is_written_anew_if_others_wrote_after_it_was_foreseen(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    effect = drive_to(world, fx.Commit)
    event = world.perform(effect)
    world.journal.foresee(event)
    world.load().append(ev.StopRequested(world.now(), PERSON))
    world.journal.refresh()
    world.append(event)
    state = world.drive()
    kinds = [ev.KINDS[type(entry.event)] for _, entry in events_of(world)]
    assert kinds[-4:] == ["settled", "stop_requested", "committed", "closed"]
    assert world.load().state == state


def test_a_commit_names_the_settled_event_that_is_in_the_record_even_if_others_wrote_before_it(
    repo: Path,
) -> None:
    world = RecordedWorld(repo, plan(task("a")))
    drive_to(world, fx.Commit)
    world.load().append(ev.StopRequested(world.now(), PERSON))
    world.drive()
    [(oid, _)] = [(o, e) for o, e in events_of(world) if isinstance(e.event, ev.Settled)]
    message = commits.read(world.repo, world.tip).message
    assert f"Batch-Record: {oid}".encode() in message


def test_a_renewal_by_another_process_is_taken_over(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN, budget=Budget(max_tasks=1))
    drive_to(world, fx.RunTask)
    other = world.load()
    old = other.state.authorization
    assert old is not None
    other.append(ev.Authorized(world.now(), replace(old, seq=2, budget=Budget())))
    world.state = world.journal.refresh()
    assert world.current.authorization is not None
    assert world.current.authorization.seq == 2
    assert world.drive().status is BatchStatus.COMPLETED
    assert world.load().state == world.current


def test_a_wish_to_stop_does_not_hide_that_nobody_works_on_what_is_in_flight(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.RunTask)
    world.crash()
    world.take_up()
    world.load().append(ev.StopRequested(world.now(), PERSON))
    world.state = world.journal.refresh()
    assert isinstance(world.machine.decide(world.current), fx.KeepWork)


def test_another_runner_on_the_same_record_is_refused_and_overwrites_nothing(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.Enroll)
    other = world.load()
    effect = world.machine.decide(world.current)
    other.append(world.perform(effect))
    theirs = world.tip_of_record
    with pytest.raises(StaleError, match="another process works on"):
        world.append(world.perform(effect))
    assert world.tip_of_record == theirs


def test_a_plan_that_another_process_changed_meanwhile_is_refused(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.Enroll)
    other = world.load()
    old = other.state.authorization
    assert old is not None
    longer = plan(*CHAIN.tasks, task("c"))
    digest = RecordedWorld(repo, longer).digest
    other.renew_plan(longer)
    other.append(ev.Authorized(world.now(), replace(old, seq=2, plan_digest=digest)))
    with pytest.raises(StaleError, match="another process renewed"):
        world.journal.refresh()


def test_a_changed_plan_keeps_the_notes_of_tasks_that_stay_and_is_in_force(repo: Path) -> None:
    world = RecordedWorld(repo, plan(task("a"), task("b"), task("c")), budget=Budget(max_tasks=2))
    world.script = Script({"b": (Outcome.BLOCKED,)})
    world.run()
    changed = plan(task("a"), task("c", attempts=5), task("d", "c"))
    digest = RecordedWorld(repo, changed).digest
    old = world.current.authorization
    assert old is not None
    world.journal.renew_plan(changed)
    renewal = replace(old, seq=2, plan_digest=digest, budget=Budget())
    world.state = world.journal.append(ev.Authorized(world.now(), renewal))
    loaded = world.load()
    assert loaded.state == world.current
    assert loaded.machine.plan == changed
    assert set(loaded.state.tasks) == {"a"}
    world.machine = loaded.machine
    world.drive()
    assert world.load().state.status is BatchStatus.COMPLETED
    notes = git(repo, "notes", f"--ref=batch/{BATCH}", "list").splitlines()
    assert len(notes) == 3 + 3 + 1  # tasks, receipts, header: none of the task that was left out
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""


def test_a_plan_change_that_somebody_interferes_with_is_written_again_whole(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.Enroll)
    longer = plan(*CHAIN.tasks, task("c"))
    old = world.current.authorization
    assert old is not None
    digest = RecordedWorld(repo, longer).digest
    other = world.load()
    world.journal.renew_plan(longer)
    other.append(ev.StopRequested(world.now(), PERSON))
    renewal = replace(old, seq=2, plan_digest=digest)
    world.state = world.journal.append(ev.Authorized(world.now(), renewal))
    loaded = world.load()
    assert loaded.machine.plan == longer
    assert loaded.state == world.current
    assert loaded.state.stop_requested, "a renewal does not take back what somebody asked for"


def test_a_renewal_that_came_second_took_back_what_the_first_had_granted(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.RunTask)
    world.publish()
    old = world.current.authorization
    assert old is not None
    first, second = world.load(), world.load()
    first.append(ev.Authorized(world.now(), replace(old, seq=2, budget=Budget(max_tasks=1))))
    with pytest.raises(StaleError, match="another process renewed"):
        second.append(ev.Authorized(world.now(), replace(old, seq=2, fail_fast=True)))
    state = world.load().state
    assert state.authorization is not None
    assert state.authorization.budget == Budget(max_tasks=1)


@pytest.mark.parametrize("how", ["deleted", "set back"])
def test_a_record_that_was_deleted_or_set_back_is_never_written_anew(repo: Path, how: str) -> None:
    world = RecordedWorld(repo, CHAIN)
    drive_to(world, fx.RunTask)
    if how == "deleted":
        git(repo, "update-ref", "-d", REF)
    else:
        git(repo, "update-ref", REF, f"{REF}~1")
    left = world.refs.read(REF)
    with pytest.raises(StaleError, match=r"removed|set back"):
        world.append(ev.StopRequested(world.now(), PERSON))
    assert world.refs.read(REF) == left


def test_a_second_batch_of_the_same_name_is_never_written_over_the_first(repo: Path) -> None:
    RecordedWorld(repo, CHAIN).run()
    second = RecordedWorld(repo, CHAIN)
    with pytest.raises(StaleError, match="made by another run"):
        second.start()


# What can't be read.


def test_a_missing_record_is_said_to_be_missing(repo: Path) -> None:
    with pytest.raises(RecordError, match=f"there is no record of batch '{BATCH}' here"):
        RecordedWorld(repo, CHAIN).load()


def test_a_ref_without_any_event_of_ours_is_refused(repo: Path) -> None:
    git(repo, "notes", f"--ref=batch/{BATCH}", "add", "-m", "x", "HEAD")
    with pytest.raises(RecordError, match="no event of git-batch is on the record's ref"):
        RecordedWorld(repo, CHAIN).load()


def rewritten(world: RecordedWorld, change: bytes, to: bytes) -> None:
    """Put a changed copy of the newest event in its place."""
    facts = commits.read(world.repo, world.tip_of_record)
    assert change in facts.message
    fake = commits.make(
        world.repo,
        tree=facts.tree,
        parents=list(facts.parents),
        message=facts.message.replace(change, to),
        who=WHO,
        at=world.now(),
    )
    git(world.repo.layout.top, "update-ref", REF, fake)


@pytest.mark.parametrize(
    ("change", "to", "said"),
    [
        (b"Batch-Format: 1", b"Batch-Format: 7", "has format 7"),
        (b"\n[totals]", b"\n[sums]", "can't be read"),
        (b"committed = 2", b"committed = 1", "count the tasks differently"),
    ],
)
def test_a_newest_event_that_is_not_what_we_write_is_refused(
    repo: Path, change: bytes, to: bytes, said: str
) -> None:
    world = RecordedWorld(repo, CHAIN)
    world.run()
    rewritten(world, change, to)
    with pytest.raises(RecordError, match=said):
        world.load()


@pytest.mark.parametrize("path", ["batch.toml", "plan.toml", "plan"])
def test_a_record_whose_tree_lacks_a_part_is_refused(repo: Path, path: str) -> None:
    world = RecordedWorld(repo, CHAIN)
    world.run()
    facts = commits.read(world.repo, world.tip_of_record)
    builder = world.repo.objects.TreeBuilder(world.tree_at(world.tip_of_record))
    builder.remove(path)
    fake = commits.make(
        world.repo,
        tree=Oid(str(builder.write())),
        parents=[world.tip_of_record],
        message=facts.message,
        who=WHO,
        at=world.now(),
    )
    git(repo, "update-ref", REF, fake)
    with pytest.raises(RecordError, match=re.escape(f"'{path}' is missing")):
        world.load()


def test_a_plan_that_is_not_the_one_that_was_confirmed_is_refused(repo: Path) -> None:
    world = RecordedWorld(repo, CHAIN)
    world.run()
    facts = commits.read(world.repo, world.tip_of_record)
    blob = world.repo.objects.create_blob(b"format = 1\n")
    builder = world.repo.objects.TreeBuilder(world.tree_at(world.tip_of_record))
    builder.insert("plan.toml", blob, 0o100644)
    fake = commits.make(
        world.repo,
        tree=Oid(str(builder.write())),
        parents=[world.tip_of_record],
        message=facts.message,
        who=WHO,
        at=world.now(),
    )
    git(repo, "update-ref", REF, fake)
    with pytest.raises(RecordError, match="is not the one it names"):
        world.load()
