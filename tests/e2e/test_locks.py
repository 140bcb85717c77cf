"""Locks of dead runs, of others, and of live ones; and processes that outlived their run."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e import scene as scenes
from tests.e2e.beside import beside, ended
from tests.e2e.scene import Answer, Killer, Scene, Undisturbed

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

WAITING = """\
version = 1
slug = "demo"
title = "Demo"

[[task]]
id = "first"
title = "One"
scope = ["src/**"]
run = "echo 1 >src/one"

[[task]]
id = "long"
title = "Two"
scope = ["src/**"]
run = '''
echo run >>"$COUNT"
echo half >src/two
if ! [ -e "$GO" ]; then
    eval "$FIRST"
    : >src/ready
    while ! [ -e "$GO" ]; do sleep 0.01; done
fi
rm -f src/ready
echo whole >src/two
'''
"""
"""Its second task waits for a file, after whatever `FIRST` says; `COUNT` counts its runs."""


@pytest.fixture
def waiting(place: Path) -> Scene:
    """Give a repository with a task that waits."""
    return scenes.make(place / "waiting", WAITING)


COMMITTED = ("swap refs/heads/batch/demo: after", 4)
"""The third task's commit is on the branch, which was made before, and not yet in the record."""


def surroundings(scene: Scene, first: str = "") -> dict[str, str]:
    """Give what the plan that waits needs."""
    folder = scene.folder
    return {"COUNT": str(folder / "count"), "GO": str(folder / "go"), "FIRST": first}


def no_harm(answer: Answer) -> None:
    """Check that no hint tells a person to destroy something."""
    assert answer.error
    for hint in answer.error["hints"]:
        assert not {"rm", "clean", "--hard", "-f", "--force"} & set(hint.split())


def stopped_at(killer: Killer, scene: Scene, step: str, nth: int = 1) -> Undisturbed:
    """Run a copy to its end, then kill the run at a step."""
    with scenes.copied(scene, scene.folder.with_name("goal")) as copy:
        goal = scenes.undisturbed(killer, copy)
    assert killer.run(scene, "start", kill=goal.point(step, nth)).killed
    return goal


def ours(scene: Scene) -> list[str]:
    """Name our refs, one that there is not yet among them."""
    here = [ref for ref in scene.refs() if ref != "refs/heads/main"]
    batch = next(ref for ref in here if ref.startswith("refs/notes/")).rpartition("/")[2]
    return [*here, f"refs/batch/{batch}/attempts/stuck/1"]


@pytest.mark.parametrize("content", ["empty", "old", "new", "garbage"])
def test_a_lock_that_a_crash_left_on_a_ref_of_ours_is_removed_and_told(
    killer: Killer, scene: Scene, content: str
) -> None:
    goal = stopped_at(killer, scene, *COMMITTED)
    refs = scene.refs()
    other = scene.git("rev-parse", "main")
    names = ours(scene)
    assert len(names) == 6  # claim, attempt, logs, branch, record, and an attempt to come
    for name in names:
        text = {"empty": "", "old": f"{refs.get(name, other)}\n", "new": f"{other}\n"}
        lock = scene.top / ".git" / f"{name}.lock"
        lock.parent.mkdir(exist_ok=True)
        lock.write_text(text.get(content, "\0garbage"))
    answer = killer.run(scene, "resume")
    for name in names:
        assert len([n for n in answer.notes if f"'{name}'" in n and "lock" in n]) == 1
    scenes.whole(scene, answer)
    assert scenes.outcomes(answer) == goal.outcomes
    assert scene.series() == goal.series


def test_a_lock_that_somebody_holds_is_waited_for_then_named_and_left(
    killer: Killer, scene: Scene
) -> None:
    stopped_at(killer, scene, *COMMITTED)
    before = scene.refs()
    record = next(ref for ref in before if ref.startswith("refs/notes/"))
    lock = scene.top / ".git" / f"{record}.lock"
    with lock.open("w") as file:
        file.write("mine")
        file.flush()
        began = time.monotonic()
        answer = killer.run(scene, "resume", wait=0.3)
        assert time.monotonic() - began > 0.3
    assert answer.error
    assert answer.error["type"] == "LockedError"
    assert str(lock) in answer.error["message"]
    assert re.search(r"exists, \d seconds old", answer.error["message"])
    assert f"process {os.getpid()} " in " ".join(answer.error["hints"])
    no_harm(answer)
    assert lock.read_text() == "mine"
    assert scene.refs() == before
    # Nobody holds it any more: now it is what a crash leaves.
    answer = killer.run(scene, "resume")
    assert [note for note in answer.notes if record in note], answer
    scenes.whole(scene, answer)


def test_a_lock_on_the_branch_is_left_to_a_git_that_may_have_made_it(
    killer: Killer, scene: Scene
) -> None:
    goal = stopped_at(killer, scene, "commit object 'shapes: settled': after")
    lock = scene.top / ".git/refs/heads/batch/demo.lock"
    with subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=scene.top, stdin=subprocess.PIPE
    ) as somebody:
        lock.touch()
        answer = killer.run(scene, "resume", wait=0.3)
        assert answer.state, answer
        assert (answer.state["status"], answer.state["stop"]) == ("needs_human", "commit_failed")
        assert str(lock) in answer.state["reason"]
        assert lock.exists()
        assert not [note for note in answer.notes if "lock" in note]
        assert somebody.stdin
        somebody.stdin.close()
    answer = killer.run(scene, "resume")
    assert [note for note in answer.notes if "refs/heads/batch/demo" in note]
    scenes.whole(scene, answer)
    assert scene.series() == goal.series


@pytest.mark.parametrize("name", ["index", "HEAD"])
def test_a_start_waits_for_the_lock_of_others_then_names_it(
    killer: Killer, scene: Scene, name: str
) -> None:
    lock = scene.top / ".git" / f"{name}.lock"
    lock.write_text("somebody's")
    answer = killer.run(scene, "start", wait=0.3)
    assert answer.error
    assert answer.error["type"] == "LockedError"
    assert str(lock) in answer.error["message"]
    assert re.search(r"exists, \d seconds old", answer.error["message"])
    assert "no process has it open" in " ".join(answer.error["hints"])
    no_harm(answer)
    assert lock.read_text() == "somebody's"
    assert scene.git("symbolic-ref", "HEAD") == "refs/heads/main"
    lock.unlink()
    answer = killer.run(scene, "resume")
    scenes.whole(scene, answer)
    assert [task for task, _, _ in scene.series()] == ["new", "twice", "shapes"]


def test_a_lock_on_the_index_stops_a_commit_and_the_task_stays_settled(
    killer: Killer, scene: Scene
) -> None:
    lock = scene.top / ".git/index.lock"
    step = "commit object 'Add one': before"
    act = {"step": step, "command": f"echo mine >{lock}"}
    answer = killer.run(scene, "start", act=act, wait=0.3)
    assert answer.state, answer
    assert (answer.state["status"], answer.state["stop"]) == ("needs_human", "commit_failed")
    assert answer.state["in_flight"] == "new"
    assert str(lock) in answer.state["reason"]
    assert lock.read_text() == "mine\n"
    assert scene.series() == []
    lock.unlink()
    answer = killer.run(scene, "resume")
    scenes.whole(scene, answer)
    assert [task for task, _, _ in scene.series()] == ["new", "twice", "shapes"]
    assert answer.state
    assert answer.state["tasks"]["new"]["attempts"][-1]["n"] == 1, "it was run again"


def test_a_lock_on_packed_refs_is_in_nobodys_way_and_stays(killer: Killer, scene: Scene) -> None:
    scene.git("pack-refs", "--all")
    lock = scene.top / ".git/packed-refs.lock"
    lock.write_text("somebody's")
    answer = killer.run(scene, "start", wait=0.3)
    assert answer.state, answer
    assert answer.state["status"] == "needs_human"
    assert answer.state["tasks"]["stuck"]["outcome"] == "run_failed"
    assert lock.read_text() == "somebody's"


def test_a_git_of_a_killed_run_that_is_still_at_work_is_waited_for(
    killer: Killer, scene: Scene
) -> None:
    """It writes the very index that the resumed run would use."""
    stopped_at(killer, scene, "git add --all: killed as well")
    lock = scene.top / ".git/batch/scan.index.lock"
    before = scene.refs()
    with lock.open("w"):
        answer = killer.run(scene, "resume", wait=0.3)
        assert answer.error
        assert answer.error["type"] == "LockedError"
        assert str(lock) in answer.error["message"]
        assert f"process {os.getpid()} " in " ".join(answer.error["hints"])
        assert lock.exists()
        assert scene.refs() == before
    answer = killer.run(scene, "resume")
    scenes.whole(scene, answer)
    assert [task for task, _, _ in scene.series()] == ["new", "twice", "shapes"]


def race(killers: list[Killer], scene: Scene, action: str) -> list[Answer]:
    """Have all act at once; the task that waits is let go when all but one have ended."""
    env = surroundings(scene)
    with ThreadPoolExecutor(len(killers)) as pool:
        runs = [pool.submit(k.run, scene, action, env=env) for k in killers]
        scenes.eventually(
            lambda: sum(run.done() for run in runs) >= len(runs) - 1, "all but one are refused"
        )
        Path(env["GO"]).touch()
        return [run.result() for run in runs]


def one_of_all(
    killers: list[Killer], origin: Scene, place: Path, rounds: int, action: str = "start"
) -> None:
    """Check that of those who act at once exactly one runs, and the others name it."""
    for n in range(rounds):
        with scenes.copied(origin, place / f"race{n}") as copy:
            answers = race(killers, copy, action)
            won = [a for a in answers if a.state]
            assert len(won) == 1
            assert won[0].state
            assert won[0].state["status"] == "completed"
            for lost in answers:
                if lost is won[0]:
                    continue
                assert lost.error
                assert lost.error["type"] == "LockedError", lost.error
                batch = won[0].state["batch"]
                said = (
                    f"batch '{batch}' is being run by process {won[0].pid} on {os.uname().nodename}"
                )
                assert lost.error["message"].startswith(f"{said} since 2")
                no_harm(lost)
            scenes.whole(copy, won[0])
            assert [task for task, _, _ in copy.series()] == ["first", "long"]
            assert (copy.folder / "count").read_text() == "run\n", "a task ran twice"


@pytest.mark.parametrize("action", ["start", "resume"])
@pytest.mark.parametrize("rounds", [2, pytest.param(500, marks=pytest.mark.long)])
def test_of_eight_that_act_at_once_one_runs_and_the_others_name_it(
    waiting: Scene, place: Path, action: str, rounds: int
) -> None:
    with ExitStack() as stack:
        killers = [stack.enter_context(Killer()) for _ in range(8)]
        if action == "resume":
            act = {"step": "commit object 'first: committed': after", "command": "kill -9 $PPID"}
            assert killers[0].run(waiting, "start", env=surroundings(waiting), act=act).killed
        one_of_all(killers, waiting, place, rounds, action)


def test_of_eight_commands_at_once_one_goes_on_and_seven_are_refused_with_its_name(
    waiting: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in surroundings(waiting).items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        starts = [beside(waiting.top, "start", "--yes") for _ in range(8)]
        runs = [stack.enter_context(start) for start in starts]
        scenes.eventually(lambda: sum(r.poll() is not None for r in runs) == 7, "all but one end")
        (winner,) = (run for run in runs if run.poll() is None)
        Path(os.environ["GO"]).touch()
        ended(winner, 0)
        for run in runs:
            if run is not winner:
                told = ended(run, 3)
                assert f"is being run by process {winner.pid} on {os.uname().nodename}" in told
    assert [task for task, _, _ in waiting.series()] == ["first", "long"]
    assert (waiting.folder / "count").read_text() == "run\n", "a task ran twice"


def test_who_only_looks_at_a_run_lock_is_not_taken_for_a_runner(
    killer: Killer, scene: Scene
) -> None:
    folder = scene.top / ".git/batch"
    folder.mkdir()
    with (folder / "run.lock").open("w") as looking, ThreadPoolExecutor(1) as pool:
        fcntl.flock(looking, fcntl.LOCK_SH)
        run = pool.submit(killer.run, scene, "start")
        time.sleep(0.3)
        fcntl.flock(looking, fcntl.LOCK_UN)
        assert run.result().state, run.result()


def test_a_resume_beside_a_live_run_is_refused_until_that_is_killed(
    killer: Killer, waiting: Scene
) -> None:
    env = surroundings(waiting)
    run = scenes.live(waiting, "start", env)
    scenes.eventually((waiting.top / "src/ready").exists, "the task runs")
    before = waiting.refs()
    for action in ("resume", "start"):
        answer = killer.run(waiting, action, env=env)
        assert answer.error
        assert answer.error["type"] == "LockedError"
        assert f"process {run.pid} on" in answer.error["message"]
        no_harm(answer)
    assert waiting.refs() == before
    os.kill(run.pid, signal.SIGKILL)
    assert run.answer().killed
    Path(env["GO"]).touch()
    answer = killer.run(waiting, "resume", env=env, kill_orphans=True)
    scenes.whole(waiting, answer)


def test_what_outlived_a_killed_run_is_named_and_ended_only_if_asked_for(
    killer: Killer, waiting: Scene
) -> None:
    """Case 3: the first task is not run again, half-done work is kept, each is committed once."""
    pids = waiting.folder / "pids"
    first = f'sleep 300 & echo $! >"{pids}"; setsid sleep 300 & echo $! >>"{pids}"'
    env = surroundings(waiting, first)
    run = scenes.live(waiting, "start", env)
    scenes.eventually((waiting.top / "src/ready").exists, "the task runs")
    os.kill(run.pid, signal.SIGKILL)
    assert run.answer().killed
    orphans = [int(pid) for pid in pids.read_text().split()]
    assert len(orphans) == 2
    first_task = waiting.series()
    before = waiting.refs()

    answer = killer.run(waiting, "resume", env=env)
    assert answer.error
    for pid in orphans:
        assert f"{pid}  sleep 300" in answer.error["message"]
    assert "--kill-orphans" in " ".join(answer.error["hints"])
    assert waiting.refs() == before
    assert all(_alive(pid) for pid in orphans)

    Path(env["GO"]).touch()
    answer = killer.run(waiting, "resume", env=env, kill_orphans=True)
    assert not any(_alive(pid) for pid in orphans)
    scenes.whole(waiting, answer)
    assert answer.state
    assert answer.state["status"] == "completed"
    assert waiting.series()[: len(first_task)] == first_task
    assert [task for task, _, _ in waiting.series()] == ["first", "long"]
    assert Path(env["COUNT"]).read_text() == "run\nrun\n"
    ends = [(a["n"], a["outcome"]) for a in answer.state["tasks"]["long"]["attempts"]]
    assert ends == [(1, "interrupted"), (2, "committed")]
    kept = answer.state["tasks"]["long"]["attempts"][0]["ref"]
    assert waiting.git("show", f"{kept}:src/two") in ("half", "whole")


def _alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_keeps_the_work_and_goes_on_where_it_was(
    killer: Killer, waiting: Scene, wish: signal.Signals
) -> None:
    env = surroundings(waiting)
    run = scenes.live(waiting, "start", env)
    scenes.eventually((waiting.top / "src/ready").exists, "the task runs")
    os.kill(run.pid, wish)
    answer = run.answer()
    assert answer.exit == 0
    assert answer.signal == wish
    state = answer.state
    assert state
    assert (state["status"], state["in_flight"], state["used"]) == ("running", "long", 0)
    assert [(a["n"], a["outcome"]) for a in state["history"]] == [(1, "interrupted")]
    kept = state["history"][0]["ref"]
    assert waiting.git("show", f"{kept}:src/two") == "half"
    assert waiting.git("status", "--porcelain", "-uall") == "?? batch.toml"

    Path(env["GO"]).touch()
    answer = killer.run(waiting, "resume", env=env)
    scenes.whole(waiting, answer)
    assert answer.state
    assert answer.state["status"] == "completed"
    assert answer.state["enrolled"] == 2
    assert answer.asked == [], "an interruption needs no new confirmation"
    assert [task for task, _, _ in waiting.series()] == ["first", "long"]


def test_a_second_interrupt_does_not_wait_for_a_stubborn_command(waiting: Scene) -> None:
    env = surroundings(waiting, "trap '' TERM INT HUP")
    run = scenes.live(waiting, "start", env)
    scenes.eventually((waiting.top / "src/ready").exists, "the task runs")
    os.kill(run.pid, signal.SIGINT)
    time.sleep(0.5)
    assert run.process.poll() is None, "it was to be stubborn"
    began = time.monotonic()
    os.kill(run.pid, signal.SIGINT)
    answer = run.answer()
    assert time.monotonic() - began < 5  # the grace time is 10 s
    assert answer.state
    assert [a["outcome"] for a in answer.state["history"]] == ["interrupted"]
    assert waiting.git("status", "--porcelain", "-uall") == "?? batch.toml"
