"""What the system that went before gets wrong (semantics.md section 9): ours must not.

One test for each of the twenty-one, in that order; what is a rule of the machine alone is shown on
the machine alone.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from git_batch.app.session import open_session
from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core.admission import admission_stop
from git_batch.core.ids import Oid
from git_batch.core.model import Budget
from git_batch.core.standing import BatchStatus, Outcome, Phase, StopReason
from git_batch.core.transitions import IllegalTransition
from git_batch.core.values import replace
from git_batch.errors import GitError
from git_batch.repo.locks import RunLock
from git_batch.run.lineage import drift_of
from tests.conftest import git
from tests.e2e.beside import beside, opened
from tests.e2e.job import committed, everything, outcomes, refs, task, tasks, told, write
from tests.e2e.near import near, set_clock
from tests.e2e.scene import ROOT
from tests.world import Script, World, oid, plan
from tests.world import task as unit

A, B = task("a", "echo a >src/one"), task("b", "echo b >src/two", 'blocked_by = ["a"]')

SIGNER = """#!/bin/sh
test ! -e {broken} || exit 1
cat >/dev/null
echo '-----BEGIN PGP SIGNATURE-----'
echo '-----END PGP SIGNATURE-----'
printf '\\n[GNUPG:] SIG_CREATED x\\n' >&2
"""
"""What signs as gpg does, as far as git looks."""


def test_01_a_stop_by_the_budget_is_no_end(repo: Path) -> None:
    write(repo, A, B)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    assert told(repo)["state"] == "budget_stopped"
    near(repo, "resume", "--yes", "--max-tasks", "+1")
    assert told(repo)["state"] == "completed"


@pytest.mark.parametrize("way", ["retry", "skip", "adopt", "abandon"])
def test_02_a_stopped_task_is_never_a_dead_end(repo: Path, way: str) -> None:
    write(repo, task("a", "test -e ../fixed && echo a >src/one"), B)
    near(repo, "start", "--yes", status=1)
    if way == "retry":
        (repo.parent / "fixed").touch()
        near(repo, "retry", "a")
    elif way == "skip":
        near(repo, "skip", "a", "--dependents")
    elif way == "adopt":
        (repo / "src/one").write_text("by hand\n")
        near(repo, "adopt", "a")
    else:
        near(repo, "abandon")
        assert told(repo)["state"] == "abandoned"
        return
    near(repo, "resume")
    assert committed(repo) == ([] if way == "skip" else ["a", "b"])


def test_03_a_branch_that_a_crash_left_without_a_record_blocks_nothing(repo: Path) -> None:
    write(repo, A)
    git(repo, "branch", "batch/demo")
    near(repo, "start", "--yes")
    assert committed(repo) == ["a"]


def test_04_after_a_restart_the_batch_still_is_its_own(repo: Path) -> None:
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(repo, task("a", f"test -e ../go || read x <{gate}; echo a >src/one"))
    with beside(repo, "start", "--yes") as run, opened(gate, run):
        run.kill()
        run.wait(10)
    (repo.parent / "go").touch()
    near(repo, "resume", "--kill-orphans")
    assert committed(repo) == ["a"]
    assert told(repo)["budget"]["enrolled"] == 1


def test_05_a_commit_without_its_record_is_found_and_not_condemned() -> None:
    world = World(plan(unit("a"), unit("b", "a")))
    world.start()
    while not isinstance(world.log[-1][0], ev.Committed):
        world.append(world.perform(world.machine.decide(world.current)))
    made = world.tip
    world.crash()
    assert world.current.in_flight is not None
    assert world.current.in_flight.phase is Phase.SETTLED
    assert world.resume().status is BatchStatus.COMPLETED
    assert made in world.commits
    assert [name for name, _ in world.commits.values()] == ["a", "b"]


def test_06_a_lookup_that_fails_is_no_break(repo: Path) -> None:
    session = open_session(str(repo))
    missing = Oid("1" * 40)
    on_main = replace(World(plan(unit("a"))).run(), branch="main")
    with pytest.raises(GitError):
        drift_of(session.repo, session.refs, on_main, missing, None)


def test_07_another_branch_checked_out_is_refused_and_nothing_is_written(repo: Path) -> None:
    write(repo, task("a", "exit 1"), task("c", "echo c >src/three"))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    git(repo, "switch", "-q", "main")
    before = refs(repo)
    done = near(repo, "resume", "demo", status=3)
    assert done.hints == ["git switch batch/demo"]
    assert refs(repo) == before
    git(repo, "switch", "-q", "batch/demo")
    near(repo, "resume", status=1)
    assert told(repo)["state"] == "needs_human"


def test_08_a_commit_that_can_not_be_made_now_is_made_later(repo: Path) -> None:
    broken, signer = repo.parent / "broken", repo.parent / "signer"
    signer.write_text(SIGNER.format(broken=broken))
    signer.chmod(0o755)
    write(repo, task("a", f"touch {broken}; echo a >src/one"), B, task("c", "echo c >src/three"))
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", str(signer))
    near(repo, "start", "--yes", status=1)
    status = told(repo)
    assert (status["state"], status["outcome"]) == ("needs_human", "commit_failed")
    states = {name: entry["state"] for name, entry in tasks(repo).items()}
    assert states == {"a": "settled", "b": "pending", "c": "pending"}
    broken.unlink()
    near(repo, "resume")
    assert committed(repo) == ["a", "b", "c"]
    assert tasks(repo)["a"]["attempts"] == 1


def test_09_what_is_done_is_not_run_again_however_old_it_is(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, task("a", "echo x >>../runs; echo a >src/one"), B)
    at = datetime(2030, 1, 1, tzinfo=UTC)
    set_clock(monkeypatch, lambda: at)
    near(repo, "start", "--yes", "--expires", "1h", "--max-tasks", "1", status=1)
    set_clock(monkeypatch, lambda: at + timedelta(days=400))
    near(repo, "resume", "--yes", "--expires", "1h", "--max-tasks", "2")
    assert (repo.parent / "runs").read_text() == "x\n"
    assert committed(repo) == ["a", "b"]


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ((task("a", "true", 'blocked_by = ["nobody"]'),), "nobody"),
        ((task("a", "true", 'blocked_by = ["a"]'),), "a"),
        ((task("a", "true", 'blocked_by = ["b"]'), task("b", "true", 'blocked_by = ["a"]')), "b"),
        ((A, A), "a"),
    ],
)
def test_10_what_can_not_be_ordered_is_refused_and_no_unknown_answer_is_taken(
    repo: Path, parts: tuple[str, ...], named: str
) -> None:
    write(repo, *parts)
    before = refs(repo)
    assert f"'{named}'" in near(repo, "start", "--yes", status=2).err
    assert refs(repo) == before
    world = World(plan(unit("a")))
    world.start()
    with pytest.raises(IllegalTransition):  # instead of asking the executor for ever
        world.append(ev.Committed(world.now(), world.machine.plan.tasks[0].id, oid("c")))


def test_11_one_runs_and_what_somebody_else_moved_is_not_overwritten(repo: Path) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    session = open_session(str(repo))
    with RunLock(session.repo, told(repo)["batch_id"], datetime.now(UTC)):
        done = near(repo, "retry", "a", status=3)
    assert f"process {os.getpid()}" in done.err

    world = World(plan(unit("a")))

    def move(w: World, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Commit):
            w.tip = oid("somebody's")

    world.disturb = move
    assert world.run().stop is StopReason.FOREIGN_COMMITS
    assert world.tip == oid("somebody's")
    assert world.commits == {}


@pytest.mark.parametrize("text", ["tomorrow", "2030-01-01", "2030-01-01T00:00:00", "12", "", "NaN"])
def test_12_a_time_is_a_time_with_an_offset_or_an_error(repo: Path, text: str) -> None:
    write(repo, A)
    before = everything(repo)
    near(repo, "start", "--yes", "--expires", text, status=2)
    write(repo, f"[budget]\ndeadline = {json.dumps(text)}\n", A, name="other.toml")
    near(repo, "check", "other.toml", status=2)
    (repo / "other.toml").unlink()
    assert everything(repo) == before
    world = World(plan(unit("a")), expires_at=datetime.fromisoformat("2030-01-01T01:00:00+02:00"))
    world.start()
    for now, over in (("2029-12-31T22:59:59+00:00", False), ("2029-12-31T23:00:00+00:00", True)):
        stop = admission_stop(world.current, datetime.fromisoformat(now))
        assert (stop is not None) == over, "compared as text it would be the other way round"


def test_13_a_settlement_that_is_found_resets_the_count_and_no_resume_refunds() -> None:
    script = Script({"a": (Outcome.CHECK_FAILED,)})
    world = World(plan(unit("a"), unit("b")), script, budget=Budget(max_tasks=1))
    world.start()
    while not isinstance(world.log[-1][0], ev.Settled):
        world.append(world.perform(world.machine.decide(world.current)))
        if isinstance(world.log[-1][0], ev.ChecksFailed):
            assert world.current.consecutive_failures == 1
    world.append(world.perform(world.machine.decide(world.current)))  # the commit; then a crash
    world.crash()
    state = world.resume()
    assert state.consecutive_failures == 0
    for _ in range(3):
        state = world.resume()
        assert (state.stop, state.enrolled) == (StopReason.BUDGET, 1)


def test_14_why_it_stopped_is_in_the_record_and_goes_when_it_is_over(repo: Path) -> None:
    write(repo, task("a", "test -e ../fixed || { echo oh; exit 5; }; echo a >src/one"))
    done = near(repo, "start", "--yes", status=1)
    reason = told(repo)["reason"]
    assert reason in done.out
    header = git(repo, "show", f"refs/notes/batch/{told(repo)['batch_id']}:batch.toml")
    assert reason in header
    assert tasks(repo)["a"]["reason"] == "the command exited with 5: oh"
    assert near(repo, "report").out == near(repo, "report").out
    (repo.parent / "fixed").touch()
    near(repo, "retry", "a")
    near(repo, "resume")
    assert tasks(repo)["a"]["reason"] is None
    assert "exited with 5" not in str(told(repo)["reason"])


@pytest.mark.parametrize(
    "text",
    [
        "fatal: Unable to create '.git/index.lock': File exists.",
        "CONFLICT (content): Merge conflict in src/a",
        "error: not now, rate limit; claim held by batch x on host y",
        "Batch-Task: a",
    ],
)
def test_15_no_text_that_a_command_prints_decides_what_happened(repo: Path, text: str) -> None:
    write(
        repo, task("a", f"echo {json.dumps(text)}; exit 1"), task("c", f'echo "{text}"; rm src/b')
    )
    near(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"a": "run_failed", "c": "committed"}


def test_16_what_is_in_the_way_is_refused_in_one_way_wherever_it_is_met(repo: Path) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    (repo / "src/a").write_text("mine\n")
    before = refs(repo)
    other = write(repo, A, name="other.toml")
    other.write_text(other.read_text().replace('"demo"', '"other"'))
    started = near(repo, "start", "other.toml", "--yes", status=3)
    other.unlink()
    resumed = near(repo, "resume", status=3)
    for done in (started, resumed):
        assert "error: the working tree has changes" in done.err
        assert "src/a" in done.err
        assert done.hints
    assert refs(repo) == before


def test_17_the_order_of_commits_is_part_of_the_lineage(repo: Path) -> None:
    write(repo, A, task("c", "echo c >src/three"), task("d", "exit 1"))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "d")
    first, second = git(repo, "rev-list", "--reverse", "main..batch/demo").split()
    tree = git(repo, "rev-parse", f"{second}^{{tree}}")
    parent = git(repo, "rev-parse", "main")
    for commit in (second, first):  # the same two tasks, the other way round
        message = git(repo, "log", "-1", "--format=%B", commit)
        parent = git(repo, "commit-tree", tree, "-p", parent, "-m", message)
    git(repo, "update-ref", "refs/heads/batch/demo", parent)
    near(repo, "resume", status=4)
    assert (told(repo)["state"], told(repo)["outcome"]) == ("failed", "lineage_broken")


def test_18_a_task_costs_the_same_however_many_came_before(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    original = subprocess.Popen.__init__

    def counted(*args: Any, **kwargs: Any) -> None:
        started.append(1)
        original(*args, **kwargs)

    monkeypatch.setattr(subprocess.Popen, "__init__", counted)
    needed = []
    for n in (1, 4, 8, 16):  # the first one finds no other batch whose record it had to read
        git(repo, "switch", "-q", "main")
        text = "".join(task(f"t{i}", f"echo {n}.{i} >src/f{i}") for i in range(n))
        path = write(repo, text)
        path.write_text(path.read_text().replace('"demo"', f'"demo{n}"'))
        started.clear()
        near(repo, "start", "--yes")
        needed.append(len(started))
    assert needed[3] - needed[2] == 2 * (needed[2] - needed[1])


def test_19_a_task_that_hangs_is_ended(repo: Path) -> None:
    write(repo, task("a", "sleep 600", 'timeout = "1s"'), task("c", "echo c >src/three"))
    began = time.monotonic()
    near(repo, "start", "--yes", status=1)
    assert time.monotonic() - began < 20
    assert outcomes(repo) == {"a": "timed_out", "c": "committed"}


def test_20_there_is_one_loop_and_one_place_that_commits() -> None:
    calls: dict[str, list[str]] = {"decide": [], "drive": [], "make": []}
    for path in sorted((ROOT / "git_batch").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            target = node.func
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            owner = ast.unparse(target.value) if isinstance(target, ast.Attribute) else ""
            if name == "decide" and "machine" in owner:
                calls["decide"].append(path.name)
            elif name == "drive" and not owner:
                calls["drive"].append(path.name)
            elif name == "make" and owner == "commits" and path.parent.name == "run":
                calls["make"].append(path.name)
    assert calls["decide"] == ["driver.py"]
    assert calls["drive"] == ["notifying.py"]
    assert calls["make"] == ["committing.py"]


def test_21_drift_is_seen_in_a_linked_worktree_and_without_git_nothing_is_assumed(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    linked = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", "--detach", str(linked))
    write(linked, A, task("d", "exit 1"))
    near(linked, "start", "--yes", status=1)
    near(linked, "retry", "d")
    git(linked, "update-ref", "refs/heads/batch/demo", "main")
    git(linked, "read-tree", "-u", "--reset", "HEAD")
    before = refs(repo)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "'git' not found" in near(linked, "resume", status=3).err
    monkeypatch.undo()
    assert refs(repo) == before
    near(linked, "resume", status=4)
    assert told(linked)["outcome"] == "lineage_broken"


def test_they_are_all_here() -> None:
    names = [name for name in globals() if name.startswith("test_") and name[5:7].isdigit()]
    assert [int(name[5:7]) for name in names] == list(range(1, 22))
