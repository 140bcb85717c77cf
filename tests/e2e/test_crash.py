"""kill -9 at every durable step, and resume: the same end, each task committed exactly once."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import scene as scenes
from tests.e2e.scene import Answer, Killer, Scene, Undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and SIGKILL")

NO_BATCH = "there is no batch in this repository"
FAST: dict[str, str] = {}
SLOW = {"SLOW": "1"}
"""Every command is taken to be slow: then the record is published while it runs."""


@pytest.fixture
def killers() -> Iterator[list[Killer]]:
    """Give two harnesses, for the two processors that a small machine has."""
    with Killer() as one, Killer() as other:
        yield [one, other]


def expected(
    killer: Killer, scene: Scene, folder: Path, mode: Mapping[str, str] = FAST
) -> Undisturbed:
    """Run a copy to its end."""
    with scenes.copied(scene, folder) as copy:
        return scenes.undisturbed(killer, copy, env=mode)


class Trial:
    """One copy of the repository, killed and taken up again."""

    def __init__(
        self, killer: Killer, scene: Scene, goal: Undisturbed, mode: Mapping[str, str]
    ) -> None:
        self._killer, self.scene, self._goal, self._mode = killer, scene, goal, mode
        self.kills = 0
        self._work: set[str] = set()
        self.told: list[str] = []

    def go(self, kill: int | None = None) -> Answer:
        """Resume, or start if there is nothing to resume; perhaps to be killed."""
        more: dict[str, Any] = {"kill": kill, "kill_orphans": True, "env": self._mode}
        action = "resume" if self.told else "start"
        answer = self._killer.run(self.scene, action, **more)
        if answer.error and answer.error["message"] == NO_BATCH:
            assert set(self.scene.refs()) <= {"refs/heads/main", scenes.CLAIM}
            answer = self._killer.run(self.scene, "start", **more)
        self.told.append(f"{answer.steps[-1]} ({len(answer.steps)})" if answer.steps else "-")
        if answer.killed:
            self.kills += 1
            self._work |= set(self.scene.work().values())
        return answer

    def check(self, last: Answer) -> None:
        """Compare what came of it with the undisturbed run."""
        scene, goal = self.scene, self._goal
        assert last.state, last.error
        scenes.whole(scene, last)
        assert last.state["status"] == goal.status
        assert scenes.outcomes(last) == goal.outcomes
        assert scene.series() == goal.series
        assert last.state["enrolled"] == len(goal.outcomes), "a crash was counted as an enrollment"
        assert scenes.scratch(scene) == goal.files
        interrupted = 0
        for task in last.state["tasks"].values():
            ends = [a["outcome"] for a in task["attempts"]]
            assert ends[-1] == task["outcome"]
            interrupted += ends.count("interrupted")
            assert set(ends[:-1]) <= {"interrupted", "check_failed"}
            assert ends.count("check_failed") <= 1
        assert interrupted <= self.kills
        objects = scene.git("rev-list", "--objects", "--no-object-names", "--all").split()
        assert self._work <= set(objects), "half-done work is lost"
        before = scene.refs()
        again = self._killer.run(scene, "resume", env=self._mode)
        assert again.state == last.state
        assert again.events == []
        assert scene.refs() == before


def in_parallel(
    killers: list[Killer], act: Callable[[Killer, int], None], points: Iterable[int]
) -> None:
    """Do something for each point; all that failed are told."""
    free: SimpleQueue[Killer] = SimpleQueue()
    for killer in killers:
        free.put(killer)
    failures: list[str] = []

    def one(point: int) -> None:
        killer = free.get()
        try:
            act(killer, point)
        except (AssertionError, subprocess.CalledProcessError) as error:
            failures.append(str(error))
        finally:
            free.put(killer)

    with ThreadPoolExecutor(len(killers)) as pool:
        list(pool.map(one, points))
    assert not failures, f"{len(failures)} failed:\n" + "\n\n".join(sorted(failures)[:20])


def kill_and_resume(
    killers: list[Killer],
    scene: Scene,
    goal: Undisturbed,
    folder: Path,
    points: Iterable[int],
    *,
    seed: int | None = None,
    then: Callable[[Scene], object] = lambda scene: None,
    mode: Mapping[str, str] = FAST,
) -> int:
    """Kill at each point, with a seed once more during the resume, and check what comes of it.

    Args:
        then: is done after the first kill.

    Returns:
        How many resumes were killed, too.
    """
    second = 0

    def act(killer: Killer, n: int) -> None:
        nonlocal second
        with scenes.copied(scene, folder / str(n)) as copy:
            trial = Trial(killer, copy, goal, mode)
            try:
                answer = trial.go(n)
                assert answer.killed, "it was to be killed"
                then(copy)
                if seed is not None:
                    left = len(goal.steps) - n + 40
                    answer = trial.go(random.Random(f"{seed}/{n}").randint(1, left))
                    second += answer.killed
                if answer.killed:
                    answer = trial.go()
                trial.check(answer)
            except (AssertionError, subprocess.CalledProcessError) as error:
                steps = " -> ".join(trial.told)
                raise AssertionError(f"{copy.folder}: {steps}\n{error}") from error

    in_parallel(killers, act, points)
    return second


def test_killed_at_some_steps_a_batch_comes_to_the_same_end(
    killers: list[Killer], scene: Scene, place: Path
) -> None:
    goal = expected(killers[0], scene, place / "goal")
    assert goal.outcomes == {
        "new": "committed",
        "twice": "committed",
        "shapes": "committed",
        "stuck": "run_failed",
    }
    points = range(3, len(goal.steps) + 1, 17)
    kill_and_resume(killers, scene, goal, place, points)


def test_killed_at_any_step_of_the_fences_files_it_comes_to_the_same_end(
    killers: list[Killer], scene: Scene, place: Path
) -> None:
    goal = expected(killers[0], scene, place / "goal")
    points = [n for n, name in enumerate(goal.steps, 1) if "batch/fence." in name]
    first = [goal.steps[n - 1].replace("batch/fence.", "") for n in points[:6]]
    assert first == [
        "open state.new",
        "rename state.new state",
        "open refs.new",
        "rename refs.new refs",
        "open armed",
        "remove armed",
    ]
    kill_and_resume(killers, scene, goal, place, points, seed=1)


def test_killed_again_during_the_resume_it_comes_to_the_same_end(
    killers: list[Killer], scene: Scene, place: Path
) -> None:
    goal = expected(killers[0], scene, place / "goal", mode=SLOW)
    points = range(7, len(goal.steps) + 1, 41)
    second = kill_and_resume(killers, scene, goal, place, points, seed=1, mode=SLOW)
    assert second > len(points) // 2


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
def test_killed_while_a_staged_plan_is_taken_out_of_the_index_it_comes_to_the_same_end(
    killers: list[Killer], place: Path, every: int
) -> None:
    single = scenes.PLAN.split("[[task]]")
    staging = single[1].replace("echo one >src/one", "echo one >src/one; git add -A")
    baseline = single[0] + "baseline = true\n"
    check = "check = '[ -e .git/done ] || { git add -A; : >.git/done; }'\n"
    scene = scenes.make(place / "origin", "[[task]]".join([baseline, staging + check]))
    goal = expected(killers[0], scene, place / "goal")
    assert (goal.status, goal.outcomes) == ("completed", {"new": "committed"})
    first = goal.point("command ended")
    taken = [n for n, name in enumerate(goal.steps, 1) if "paths." in name or "--force" in name]
    assert len(taken) > 10
    kill_and_resume(killers, scene, goal, place, range(first, taken[-1] + 4, every))


def collect_garbage(scene: Scene) -> None:
    """Drop all that nothing names, at once; a lock that the crash left may be in the way."""
    subprocess.run(
        ["git", "gc", "--quiet", "--prune=now"], cwd=scene.top, stderr=subprocess.DEVNULL
    )


def test_what_a_killed_run_left_in_the_temporary_folder_goes_with_the_next_run(
    killers: list[Killer], scene: Scene, place: Path
) -> None:
    goal = expected(killers[0], scene, place / "goal")
    with scenes.copied(scene, place / "killed") as copy:
        other = copy.temporary / "git-batch-0123456789abcdef-x"
        other.mkdir(parents=True)
        trial = Trial(killers[0], copy, goal, FAST)
        assert trial.go(len(goal.steps) // 2).killed
        assert len(list(copy.temporary.iterdir())) == 2
        trial.check(trial.go())
        assert list(copy.temporary.iterdir()) == [other], "that of another working tree stays"


def test_garbage_collected_after_a_kill_holds_nothing_that_is_needed(
    killers: list[Killer], scene: Scene, place: Path
) -> None:
    goal = expected(killers[0], scene, place / "goal")
    points = range(11, len(goal.steps) + 1, 67)
    # Before the index is set, and between that and the move of the branch.
    points_of_a_commit = [goal.point("link batch/scan.index index.lock", 1)]
    points_of_a_commit += [goal.point("swap refs/heads/batch/demo: before", 2)]
    kill_and_resume(
        killers, scene, goal, place, {*points, *points_of_a_commit}, then=collect_garbage
    )


def test_killed_at_steps_of_its_end_a_batch_is_complete_and_lets_go_of_its_slug(
    killers: list[Killer], place: Path
) -> None:
    single = scenes.PLAN.split("[[task]]")
    scene = scenes.make(place / "origin", "[[task]]".join(single[:2]))
    goal = expected(killers[0], scene, place / "goal")
    assert (goal.status, goal.outcomes) == ("completed", {"new": "committed"})
    first = goal.point("swap refs/heads/batch/demo: after", 2)
    kill_and_resume(killers, scene, goal, place, range(first, len(goal.steps) + 1, 2))


def stopped(killer: Killer, scene: Scene) -> Scene:
    """Run the batch to its end, and let its base move on."""
    assert killer.run(scene, "start", env=FAST).state
    scene.git("switch", "-q", "main")
    (scene.top / "upstream").write_text("moved\n")
    scene.git("add", "upstream")
    scene.git("commit", "-qm", "upstream")
    scene.git("switch", "-q", "batch/demo")
    return scene


def test_what_went_wrong_a_test_that_copied_was_taken_for_a_run_by_what_others_started(
    scene: Scene, place: Path
) -> None:
    opened: list[str] = []
    listening = True

    def note(event: str, args: tuple[Any, ...]) -> None:
        if listening and event == "open":
            opened.append(str(args[0]))

    (scene.top / ".git/batch").mkdir()
    (scene.top / ".git/batch/run.lock").touch()
    sys.addaudithook(note)  # there is no way to take it back
    with scenes.copied(scene, place / "copy") as copy:
        listening = False
        assert (copy.top / ".git/batch/run.lock").exists()
    assert not [path for path in opened if path.endswith("run.lock")]


@pytest.mark.parametrize("decision", ["rebase", "undo"])
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_decision_that_moves_the_branch_is_made_once_wherever_it_is_killed(
    killers: list[Killer], scene: Scene, place: Path, decision: str, every: int
) -> None:
    stopped(killers[0], scene)
    more: dict[str, Any] = {"task": "new", "env": FAST}
    with scenes.copied(scene, place / "goal") as copy:
        steps = killers[0].run(copy, decision, **more).steps
        goal = killers[0].run(copy, "resume", env=FAST)
        series = copy.series()
    assert len(steps) > 10

    def act(killer: Killer, n: int) -> None:
        with scenes.copied(scene, place / str(n)) as copy:
            assert killer.run(copy, decision, kill=n, **more).killed
            again = killer.run(copy, decision, **more)
            # Either it had not been recorded, or it is told that it was.
            said = again.error["message"] if again.error else ""
            assert again.state or "already" in said or "not possible" in said, again
            last = killer.run(copy, "resume", env=FAST)
            assert last.state
            scenes.whole(copy, last)
            assert scenes.outcomes(last) == scenes.outcomes(goal)
            assert copy.series() == series
            (record,) = (name for name in copy.refs() if name.startswith("refs/notes/batch/"))
            events = copy.git("log", "--format=%s", "--first-parent", record)
            assert events.count(f"{decision} decided by") == 1

    # While a ref is being moved its lock is there: the kill that was most often wrong.
    locked = {n for n, step in enumerate(steps, 1) if step.startswith("swap ")}
    in_parallel(killers, act, sorted({*range(1, len(steps) + 1, every), *locked}))


@pytest.mark.long
def test_garbage_collected_after_each_kill(
    killers: list[Killer], scene: Scene, place: Path
) -> None:
    goal = expected(killers[0], scene, place / "goal")
    points = range(1, len(goal.steps) + 1, 2)
    kill_and_resume(killers, scene, goal, place, points, then=collect_garbage)


@pytest.mark.long
@pytest.mark.parametrize("mode", [FAST, SLOW], ids=["fast", "slow"])
@pytest.mark.parametrize("seed", [None, 1], ids=["once", "twice"])
def test_killed_at_every_step(
    killers: list[Killer],
    scene: Scene,
    place: Path,
    mode: dict[str, str],
    seed: int | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    goal = expected(killers[0], scene, place / "goal", mode)
    points = range(1, len(goal.steps) + 1)
    second = kill_and_resume(killers, scene, goal, place, points, seed=seed, mode=mode)
    with capsys.disabled():
        print(f"\n{len(points)} kills, {second} second kills: 0 lost, 0 duplicated, 0 corrupt")
