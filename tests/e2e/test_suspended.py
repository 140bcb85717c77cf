"""A run that is suspended (SIGSTOP, a laptop's lid) and wakes up when others have gone on.

Reliability 21. Its locks are held as long as it lives, however long it sleeps, so nobody takes over
from it on this machine. Where its locks can't be seen (another machine, somebody removed them) it
finds out at its next compare-and-swap, and ends without having touched anything.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import git, until
from tests.e2e import scene as scenes
from tests.e2e.beside import beside, ended, opened
from tests.e2e.job import argv, committed, everything, outcomes, refs, task, write
from tests.e2e.near import near
from tests.e2e.scene import ROOT, Killer, Scene

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

PLAN = """\
version = 1
slug = "demo"
title = "Demo"

[[task]]
id = "one"
title = "One"
scope = ["src/**"]
run = 'echo one >src/one; echo x >>src/a'
check = 'test "$BATCH_ATTEMPT" -ge 2'
attempts = 2

[[task]]
id = "two"
title = "Two"
scope = ["src/**"]
run = 'echo two >>src/a; rm src/b'

[[task]]
id = "three"
title = "Three"
scope = ["src/**"]
run = 'echo bad >src/bad; rm src/tool; exit 3'
"""

TAKE_OVER = f"""
sleep 1.1
rm -f .git/batch/*.lock .git/batch/run.group
env -u GATE PYTHONPATH={shlex.quote(str(ROOT))} {shlex.join(argv("resume", "--yes"))} >../said 2>&1
echo $? >../status
cp -a . ../after
"""
"""As from a machine that sees nothing of the run; not in the same second, nor with its objects."""


def left(top: Path) -> object:
    """Give all that a run changes: refs, HEAD, index and files."""
    files = {name: f for name, f in everything(top).items() if not name.startswith(".git")}
    return refs(top), git(top, "ls-files", "-s"), files


def moves(steps: list[str]) -> list[tuple[str, int]]:
    """Name the steps at which something is about to be recorded or moved, with how often it was."""
    seen, found, begun = Counter[str](), list[tuple[str, int]](), False
    for step in steps:
        seen[step] += 1
        begun = begun or (step.startswith("swap refs/notes") and step.endswith("after"))
        # While a command runs it is the fence that looks after the refs.
        ours = step.startswith(("swap ", "commit object ")) and "command done" not in step
        if begun and ours and step.endswith("before"):
            found.append((step, seen[step]))
    return found


@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.long)])
def test_a_run_that_was_taken_over_from_stops_at_its_next_move_and_touches_nothing(
    killer: Killer, place: Path, every: int
) -> None:
    scene = scenes.make(place / "origin", PLAN)
    with scenes.copied(scene, place / "goal") as copy:
        points = moves(killer.run(copy, "start").steps)
    assert len(points) > 30
    assert "swap refs/heads/batch/demo: before" in dict(points)
    for step, nth in points[2::every]:
        with scenes.copied(scene, place / "trial") as copy:
            taken_over(killer, copy, step, nth)


def test_what_went_wrong_a_run_that_was_taken_over_from_kept_the_work_of_a_task_that_had_ended(
    killer: Killer, place: Path
) -> None:
    taken_over(killer, scenes.make(place / "one", PLAN), "swap refs/heads/batch/demo: before", 2)


@pytest.mark.parametrize(
    "nth", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 5))]
)
def test_what_went_wrong_a_run_that_was_taken_over_from_put_the_index_back_to_where_it_had_been(
    killer: Killer, place: Path, nth: int
) -> None:
    """Whoever had committed then would have taken back what the other run had committed."""
    scene = scenes.make(place / "one", PLAN)
    taken_over(killer, scene, "link batch/scan.index index.lock", nth)


def taken_over(killer: Killer, scene: Scene, step: str, nth: int) -> None:
    """Let a run sleep at a step until another one has come to the end of the batch."""
    act = {"step": step, "nth": nth, "command": TAKE_OVER}
    answer = killer.run(scene, "start", act=act)
    after = scene.folder / "after"
    assert (scene.folder / "status").read_text() == "1\n", (scene.folder / "said").read_text()
    assert [name for name, _, _ in Scene(scene.folder).series()] == ["one", "two"], (step, nth)
    assert answer.error, (step, nth)
    assert answer.error["type"] == "StaleError", (step, nth, answer.error)
    assert left(scene.top) == left(after), (step, nth)
    shutil.rmtree(after)


def test_nobody_takes_over_from_a_run_that_sleeps_on_the_same_machine(repo: Path) -> None:
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(repo, task("one", f"read x <{gate}; echo 1 >src/one"), task("two", "echo 2 >src/two"))
    with beside(repo, "start", "--yes") as run:
        with opened(gate, run) as go:
            os.kill(run.pid, signal.SIGSTOP)
            until(lambda: Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2][1] == "T")
            before = refs(repo)
            for command in (("resume",), ("resume", "--kill-orphans"), ("start", "--yes")):
                refused = near(repo, *command, status=3)
                assert f"is being run by process {run.pid} on" in refused.err
            near(repo, "status")
            assert refs(repo) == before
            os.kill(run.pid, signal.SIGCONT)
            go.write("\n")
        ended(run, 0)
    assert committed(repo) == ["one", "two"]


def test_a_claim_that_others_took_while_a_run_slept_stays_theirs(repo: Path) -> None:
    bare, gate = repo.parent / "origin.git", repo.parent / "gate"
    os.mkfifo(gate)
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    git(repo, "remote", "add", "origin", str(bare))
    other = repo.parent / "other"
    shutil.copytree(repo, other, symlinks=True)
    write(repo, task("one", f"read x <{gate}; echo 1 >src/one"), task("two", "echo 2 >src/two"))
    write(other, task("one", "echo 1 >src/one"), task("two", "echo 2 >src/two"))
    with beside(repo, "start", "--yes", "--claim", "origin") as run:
        with opened(gate, run) as go:
            os.kill(run.pid, signal.SIGSTOP)
            for name in git(bare, "for-each-ref", "--format=%(refname)", "refs/batch").split():
                git(bare, "update-ref", "-d", name)
            theirs = claim_of_others(other)
            os.kill(run.pid, signal.SIGCONT)
            go.write("\n")
        ended(run, 1)
    found = git(bare, "for-each-ref", "--format=%(refname) %(objectname)", "refs/batch")
    assert found.splitlines() == theirs
    assert committed(repo) == ["one"]
    assert outcomes(repo) == {"one": "committed", "two": "claimed_elsewhere"}


def claim_of_others(top: Path) -> list[str]:
    """Claim both tasks for another batch, and give the refs that say so."""
    near(top, "start", "--yes", "--max-tasks", "1", status=1)
    batch = git(top, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/notes/batch")
    claim = git(top, "rev-parse", "refs/batch/claims/demo/@")
    assert batch in git(top, "show", "-s", claim)
    names = [f"refs/batch/claims/demo/{name}" for name in ("one", "two")]
    git(top, "push", "-q", "origin", *(f"{claim}:{name}" for name in names))
    return [f"{name} {claim}" for name in names]
