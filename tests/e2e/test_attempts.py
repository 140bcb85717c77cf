"""An attempt that did not become a commit is kept whole, and exactly its paths are put back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import argv, committed, here, outcomes, refs, task, tasks, told, write
from tests.e2e.near import near
from tests.e2e.scene import environment

WORK = "echo x >>src/a; echo new >src/new; rm src/b; printf '\\377' >src/raw; ln -s a src/l; "
GO_ON = task("next", "echo n >src/next")


def attempts(repo: Path) -> dict[str, str]:
    """Give the refs of kept work, named as in the report: task/number."""
    return {n.split("/attempts/")[1]: n for n in refs(repo) if "/attempts/" in n}


def put_back(repo: Path, *ours: str) -> None:
    """Check that the working tree is as the tip, and that nothing was stashed."""
    left = git(repo, "status", "--porcelain", "-uall").splitlines()
    assert sorted(left) == sorted(f"?? {name}" for name in ("batch.toml", *ours))
    assert git(repo, "stash", "list") == ""
    assert (repo / "src/a").read_text() == "a\n"
    assert (repo / "src/b").read_text() == "b\n"


ENDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "check": (WORK, ('check = "false"',), "check_failed"),
    "exit": (f"{WORK} exit 3", (), "run_failed"),
    "killed": (f"{WORK} kill -9 $$", (), "killed"),
    "time": (f"{WORK} sleep 60", ('timeout = "1s"',), "timed_out"),
    "silence": (f"{WORK} sleep 60", ('idle_timeout = "1s"',), "stalled"),
    "scope": (f"{WORK} echo >stray", (), "scope_refused"),
    "protected": (WORK, ('protect = ["src/a"]',), "protected_changed"),
    "blocked": (f"{WORK} exit 125", (), "blocked"),
    "check's change": (WORK, ('check = "echo c >src/check"',), "check_changed_tree"),
    "config": (f"{WORK} git config a.b c", (), "tampered"),
    "history": (f"{WORK} git checkout -q --detach", (), "history_changed"),
}


@pytest.mark.parametrize(("run", "more", "outcome"), ENDS.values(), ids=ENDS)
def test_whatever_ends_an_attempt_its_work_survives_and_so_do_my_files(
    repo: Path, run: str, more: tuple[str, ...], outcome: str
) -> None:
    (repo / "notes.txt").write_text("mine\n")
    (repo / "x.log").write_text("ignored\n")
    (repo / "build").mkdir()
    (repo / "build/out").write_text("ignored, too\n")
    write(repo, task("t1", run, "attempts = 1", *more), GO_ON)
    here(repo, "start", "--yes", "--allow-untracked", status=1)
    assert outcomes(repo) == {"t1": outcome, "next": "committed"}
    entry = tasks(repo, "report")["t1"]["history"][-1]
    ref = entry["ref"]
    assert attempts(repo)["t1/1"] == ref
    assert git(repo, "show", f"{ref}:src/new") == "new"
    assert git(repo, "show", f"{ref}:src/a") == "a\nx"
    assert git(repo, "ls-tree", "-r", "--name-only", ref).splitlines().count("src/b") == 0
    assert git(repo, "ls-tree", ref, "src/l").startswith("120000")
    assert "notes.txt" not in git(repo, "ls-tree", "-r", "--name-only", ref)
    put_back(repo, "notes.txt")
    assert (repo / "notes.txt").read_text() == "mine\n"
    assert (repo / "x.log").read_text() == "ignored\n"
    assert (repo / "build/out").read_text() == "ignored, too\n"
    assert committed(repo) == ["next"]
    assert git(repo, "rev-parse", f"{ref}^") == git(repo, "rev-parse", "main")


def test_the_report_names_the_ref_and_the_command_that_brings_it_back(repo: Path) -> None:
    write(repo, task("t1", WORK, 'check = "false"', "attempts = 1"))
    here(repo, "start", "--yes", status=1)
    report = here(repo, "report").out
    assert attempts(repo)["t1/1"] in report
    assert "git batch retry t1 --from-attempt 1" in report
    shown = here(repo, "show", "t1", "--attempt", "1", "--diff").out
    assert "+new" in shown
    assert "+x" in shown


def test_every_attempt_of_a_reworked_task_is_kept_by_its_number(repo: Path) -> None:
    run = 'echo "$BATCH_ATTEMPT" >src/new'
    write(repo, task("t1", run, 'check = "test $BATCH_ATTEMPT = 3"', "attempts = 3"))
    here(repo, "start", "--yes")
    assert set(attempts(repo)) == {"t1/1", "t1/2"}
    assert [git(repo, "show", f"{ref}:src/new") for ref in attempts(repo).values()] == ["1", "2"]


def test_an_attempt_has_the_tasks_own_commits_as_a_further_parent(repo: Path) -> None:
    run = "echo 1 >src/1; git add -A src; git commit -qm own; echo 2 >src/2; exit 1"
    write(repo, task("t1", run))
    here(repo, "start", "--yes", status=1)
    ref = attempts(repo)["t1/1"]
    assert git(repo, "log", "-1", "--format=%s", f"{ref}^2") == "own"
    assert git(repo, "ls-tree", "--name-only", ref, "src/").split() == [
        "src/1", "src/2", "src/a", "src/b"
    ]  # fmt: skip
    put_back(repo)


def test_a_repository_made_by_a_task_is_moved_aside_and_named(repo: Path) -> None:
    run = (
        "git init -q src/sub; echo x >src/sub/f; git -C src/sub add f; git -C src/sub commit -qm x"
    )
    write(repo, task("t1", run, "attempts = 1"))
    said = here(repo, "start", "--yes", status=1)
    assert "moved aside: 'src/sub'" in said.err
    (kept,) = (repo / ".git/batch/kept").glob("*/sub")
    assert (kept / "f").read_text() == "x\n"
    assert git(kept, "log", "--format=%s") == "x"
    put_back(repo)


@pytest.mark.parametrize(
    "way", [("retry", "t1", "--from-attempt", "1"), ("adopt", "t1", "--attempt", "1")]
)
def test_what_went_wrong_kept_work_with_a_repository_in_it_ended_the_run(
    repo: Path, way: tuple[str, ...]
) -> None:
    run = "git init -q src/sub; git -C src/sub commit -qm x --allow-empty; echo x >src/new"
    write(repo, task("t1", run, "attempts = 1"), task("t2", "echo x >src/t2"))
    here(repo, "start", "--yes", status=1)
    here(repo, *way)
    said = here(repo, "resume", status=1)
    assert "in the way" not in said.err
    assert outcomes(repo) == {"t1": "run_failed", "t2": "committed"}
    assert "it has a nested git repository, 'src/sub'" in tasks(repo)["t1"]["reason"]
    put_back(repo)
    here(repo, "retry", "t1")
    here(repo, "resume", status=1)
    assert outcomes(repo)["t1"] == "scope_refused"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_attempt_is_kept_and_the_task_runs_again(
    repo: Path, number: signal.Signals
) -> None:
    write(repo, task("t1", f"{WORK} test -e ../go || sleep 60", "attempts = 1"))
    with subprocess.Popen(argv("start", "--yes"), cwd=repo, env=environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:  # fmt: skip
        wait(lambda: os.path.lexists(repo / "src/l"))
        run.send_signal(number)
        assert run.wait(30) == 128 + number
    ref = attempts(repo)["t1/1"]
    assert git(repo, "show", f"{ref}:src/new") == "new"
    put_back(repo)
    (repo.parent / "go").touch()
    here(repo, "resume")
    assert committed(repo) == ["t1"]
    assert attempts(repo)["t1/1"] == ref


def wait(until: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not until():
        assert time.monotonic() < limit
        time.sleep(0.05)


# --- prune ----------------------------------------------------------------------------------------


def finished(repo: Path) -> str:
    """Make a batch that is over, with kept attempts."""
    run = 'echo "$BATCH_ATTEMPT" >src/$BATCH_TASK; echo said'
    checks = ('check = "test $BATCH_ATTEMPT = 3"', "attempts = 3")
    write(repo, task("t1", run, *checks), task("t2", run, *checks))
    here(repo, "start", "--yes")
    return str(told(repo)["batch_id"])


def test_prune_drops_attempts_and_logs_of_what_is_over_and_nothing_else(repo: Path) -> None:
    name = finished(repo)
    before = refs(repo)
    assert set(attempts(repo)) == {"t1/1", "t1/2", "t2/1", "t2/2"}
    said = here(repo, "prune", "--yes")
    assert f"{name}: 4 kept attempts and the logs" in said.out
    gone = {n for n in before if n.startswith(f"refs/batch/{name}/")}
    assert gone
    assert refs(repo) == {n: v for n, v in before.items() if n not in gone}
    assert "pruned" in here(repo, "show", "t1", "--output").out
    here(repo, "show", "t1", "--diff")
    here(repo, "show", "t1", "--diff", "--attempt", "1", status=2)
    here(repo, "report")
    assert here(repo, "prune", "--yes").out == "nothing to drop\n"


def test_prune_may_keep_the_newest_attempt_of_each_task(repo: Path) -> None:
    name = finished(repo)
    here(repo, "prune", "--yes", "--keep-latest", name)
    assert set(attempts(repo)) == {"t1/2", "t2/2"}
    assert f"refs/batch/{name}/logs" in refs(repo)


def test_prune_asks_first(repo: Path) -> None:
    finished(repo)
    before = refs(repo)
    said = here(repo, "prune", status=3)
    assert "--yes" in said.err
    assert refs(repo) == before


def test_prune_leaves_what_can_still_go_on(repo: Path) -> None:
    write(repo, task("t1", WORK, 'check = "false"', "attempts = 1"))
    here(repo, "start", "--yes", status=1)
    before = refs(repo)
    assert here(repo, "prune", "--yes").out == "nothing to drop\n"
    assert "is not over" in here(repo, "prune", "--yes", "demo", status=3).err
    assert refs(repo) == before
    here(repo, "abandon")
    here(repo, "prune", "--yes", "demo")
    assert attempts(repo) == {}


def test_prune_is_refused_inside_a_task_and_while_a_batch_runs(repo: Path) -> None:
    finished(repo)
    git(repo, "switch", "-q", "main")
    run = f"{sys.executable} -m git_batch prune --yes; echo $? >src/status; "
    run += f"env -u BATCH_TASK {sys.executable} -m git_batch prune --yes; echo $? >>src/status"
    plan = write(repo, task("t1", run))
    plan.write_text(plan.read_text().replace("demo", "other"))
    kept = attempts(repo)
    here(repo, "start", "--yes", env={"PYTHONPATH": environment()["PYTHONPATH"]})
    assert git(repo, "show", "batch/other:src/status") == "3\n3"
    assert attempts(repo) == kept


def test_what_went_wrong_what_was_pruned_was_still_offered(repo: Path) -> None:
    checks = ('check = "test $BATCH_ATTEMPT = 3"', "attempts = 3")
    seen = 'review = "human"'
    parts = [task("good", "echo $BATCH_ATTEMPT >src/good", *checks)]
    parts += [task("bad", "echo 1 >src/bad; exit 1"), task("stray", "echo 1 >stray")]
    write(repo, *parts, task("seen", "echo 1 >src/seen", seen))
    here(repo, "start", "--yes", status=1)
    here(repo, "abandon")
    here(repo, "prune", "--yes")
    shown = here(repo, "report").out
    for name in ("good", "bad", "stray", "seen"):
        shown += here(repo, "show", name).out
    assert "not here any more (pruned, or kept in another clone)" in shown
    for gone in ("git show --first-parent", "--output", "refs/batch/", "seen --diff"):
        assert gone not in shown
    told_of = told(repo, "report")
    for entry in told_of["tasks"]:
        assert [(a["ref"], a["gone"]) for a in entry["history"] if a["ref"]] == []
        assert {a["log"]["show"] for a in entry["history"] if a["log"]} <= {None}
    commands = [c for c in told_of["next_commands"] if c.startswith("git batch")]
    assert commands
    for command in commands:
        here(repo, *command.split()[2:])


def test_what_was_kept_is_offered_until_it_is_pruned(repo: Path) -> None:
    name = finished(repo)
    here(repo, "prune", "--yes", "--keep-latest", name)
    shown = here(repo, "show", "t1").out
    assert shown.count(f"git show --first-parent refs/batch/{name}/attempts/t1/2") == 1
    assert shown.count("not here any more") == 1
    history = told(repo, "report")["tasks"][0]["history"]
    assert [a["gone"] for a in history] == [True, False, False]


def test_what_went_wrong_logs_that_a_task_collected_as_garbage_left_a_ref_that_git_could_not_read(
    repo: Path,
) -> None:
    """`git gc` failed from then on: `fatal: unable to read` the log that was not yet named."""
    names = ("one", "two")
    write(
        repo,
        *(task(name, f"echo says {name}; echo 1 >src/{name}") for name in names),
        task("tidy", "echo says tidy; git gc -q --prune=now; echo 1 >src/tidy"),
    )
    near(repo, "start", "--yes")
    assert committed(repo) == [*names, "tidy"]
    git(repo, "fsck", "--strict")
    git(repo, "gc", "-q", "--prune=now")
    near(repo, "report")
    near(repo, "verify")
