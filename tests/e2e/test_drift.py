"""A person moves the batch branch, or checks out something else, while a batch runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e import scene as scenes
from tests.e2e.scene import Answer, Killer, Scene

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes are made for Linux")

BETWEEN = {"step": "swap refs/heads/batch/demo: after", "nth": 2}
"""A step after a task's commit, before the branch is looked at for the next task."""

BEFORE_SWAP = "swap refs/heads/batch/demo: before"
"""The last step before the branch is moved; the first one makes the branch."""

COMMIT = "git commit -q --allow-empty -m mine"
AMEND = "git commit -q --allow-empty --amend -m hijack"
RESET = "git update-ref refs/heads/batch/demo main"


def record(scene: Scene) -> str:
    """Name the record's newest commit."""
    return next(oid for ref, oid in scene.refs().items() if ref.startswith("refs/notes/"))


def told_again(killer: Killer, scene: Scene) -> None:
    """Check that a further resume is refused and writes nothing."""
    before = scene.refs()
    answer = killer.run(scene, "resume")
    assert answer.error, answer
    assert scene.refs() == before


def goes_on(killer: Killer, scene: Scene, *, confirmed: bool) -> Answer:
    """Resume to the end; the branch was put back, the three good tasks are committed once."""
    answer = killer.run(scene, "resume", kill_orphans=True)
    assert answer.state, answer
    scenes.whole(scene, answer)
    assert [task for task, _, _ in scene.series()] == ["new", "twice", "shapes"]
    assert bool(answer.asked) == confirmed
    assert answer.state["seq"] == (2 if confirmed else 1)
    return answer


def test_commits_on_top_stop_the_batch_before_the_next_task(killer: Killer, scene: Scene) -> None:
    answer = killer.run(scene, "start", act={**BETWEEN, "command": COMMIT})
    state = answer.state
    assert state, answer
    assert (state["status"], state["stop"]) == ("needs_human", "foreign_commits")
    tip = scene.git("rev-parse", "batch/demo")
    assert scene.git("log", "-1", "--format=%s", tip) == "mine"
    assert scene.git("rev-parse", "batch/demo^") == state["head"]
    assert tip in state["reason"]
    assert state["head"] in state["reason"]
    assert answer.events[-1] == "closed"
    # Again: nothing has changed, so nothing is written.
    before = scene.refs()
    again = killer.run(scene, "resume")
    assert (again.state, again.events, again.asked) == (state, [], [])
    assert scene.refs() == before
    # Put back: the batch goes on, and its standing authorization with it.
    scene.git("reset", "-q", "--keep", state["head"])
    goes_on(killer, scene, confirmed=False)


@pytest.mark.parametrize(("command", "how"), [(AMEND, "was rewritten"), (RESET, "was set back")])
def test_a_moved_branch_fails_the_batch_once_and_putting_it_back_mends_it(
    killer: Killer, scene: Scene, command: str, how: str
) -> None:
    answer = killer.run(scene, "start", act={**BETWEEN, "command": command})
    state = answer.state
    assert state, answer
    assert (state["status"], state["stop"]) == ("failed", "lineage_broken")
    tip = scene.git("rev-parse", "batch/demo")
    assert tip != state["head"]
    for said in (tip, state["head"], how):
        assert said in state["reason"]
    assert answer.events.count("closed") == 1
    told_again(killer, scene)
    scene.git("update-ref", "refs/heads/batch/demo", state["head"])
    goes_on(killer, scene, confirmed=True)


@pytest.mark.parametrize(
    ("command", "status", "stop"),
    [
        (COMMIT, "needs_human", "foreign_commits"),
        (AMEND, "failed", "lineage_broken"),
        (RESET, "failed", "lineage_broken"),
    ],
)
def test_a_branch_that_moves_right_before_the_swap_is_not_overwritten(
    killer: Killer, scene: Scene, command: str, status: str, stop: str
) -> None:
    act = {"step": BEFORE_SWAP, "nth": 3, "command": f"{command}; git rev-parse HEAD >../tip"}
    answer = killer.run(scene, "start", act=act)
    state = answer.state
    assert state, answer
    assert (state["status"], state["stop"]) == (status, stop)
    tip = scene.git("rev-parse", "batch/demo")
    assert tip == (scene.folder / "tip").read_text().strip()
    assert tip in state["reason"]
    assert state["head"] in state["reason"]
    last = state["history"][-1]
    assert (state["in_flight"], last["outcome"], state["used"]) == ("twice", "interrupted", 1)
    assert scene.git("show", f"{last['ref']}:src/a") == "a\nhalf\none"


@pytest.mark.parametrize(("command", "kept"), [(COMMIT, "mine"), (AMEND, "hijack")])
def test_what_was_committed_while_a_command_ran_is_kept_by_a_ref(
    killer: Killer, scene: Scene, command: str, kept: str
) -> None:
    """The command may have done it; so it is taken apart, but nothing is lost."""
    act = {"step": "command in the middle", "nth": 2, "command": command}
    answer = killer.run(scene, "start", act=act)
    assert answer.state, answer
    before = scene.git("rev-parse", "batch/demo")
    assert answer.state["head"] == before
    subjects = scene.git("log", "--format=%s", "--glob=refs/batch").splitlines()
    assert kept in subjects
    assert kept not in [subject for _, _, subject in scene.series()]
    assert scene.git("status", "--porcelain", "-uall") == "?? batch.toml"
    assert answer.state["tasks"]["shapes"]["outcome"] == "committed"


@pytest.mark.parametrize("command", ["git switch -q --detach", "git switch -q main"])
def test_another_checkout_is_refused_and_nothing_is_written(
    killer: Killer, scene: Scene, command: str
) -> None:
    answer = killer.run(scene, "start", act={**BETWEEN, "command": command})
    assert answer.error, answer
    assert answer.error["type"] == "PreconditionError"
    assert "git switch batch/demo" in answer.error["hints"]
    assert answer.events[-1] == "committed"
    head = scene.git("rev-parse", "HEAD")
    told_again(killer, scene)
    assert scene.git("rev-parse", "HEAD") == head
    scene.git("switch", "-q", "batch/demo")
    goes_on(killer, scene, confirmed=False)


def test_a_removed_branch_fails_the_batch_and_is_not_made_anew(
    killer: Killer, scene: Scene
) -> None:
    act = {**BETWEEN, "command": "git update-ref -d refs/heads/batch/demo"}
    answer = killer.run(scene, "start", act=act)
    state = answer.state
    assert state, answer
    assert (state["status"], state["stop"]) == ("failed", "lineage_broken")
    assert state["head"] in state["reason"]
    assert "refs/heads/batch/demo" not in scene.refs()
    told_again(killer, scene)
    # The record keeps the commit alive.
    scene.git("gc", "-q", "--prune=now")
    scene.git("update-ref", "refs/heads/batch/demo", state["head"])
    goes_on(killer, scene, confirmed=True)
