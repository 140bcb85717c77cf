"""A task that changes what git runs, or refs that are not its own, is found out, and runs nothing.

Whatever is planted leaves a mark when it is run. The marks are looked for after the whole batch,
so "never executed" holds for every git command of ours, whatever came of the task.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, committed, here, outcomes, refs, task, tasks, write
from tests.e2e.plants import PLANTS, is_undone, settings

GO_ON = task("next", "echo n >src/next")


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a file that whatever is planted makes; tasks know it as $MARK."""
    path = tmp_path / "mark"
    monkeypatch.setenv("MARK", str(path))
    return path


@pytest.fixture
def origin(repo: Path, tmp_path: Path) -> Path:
    """Give the repository a remote to push to."""
    path = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", str(path))
    git(repo, "remote", "add", "origin", str(path))
    git(repo, "push", "-q", "origin", "main")
    return path


def reason(repo: Path, name: str = "bad") -> str:
    return str(tasks(repo)[name]["reason"])


def stop(repo: Path) -> str:
    out = git(repo, "log", "-1", "--format=%s", "--glob=refs/notes/batch/*")
    return out.rsplit("(", 1)[-1].rstrip(")")


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_what_a_task_plants_is_never_executed_and_is_put_back(
    repo: Path, mark: Path, plant: str
) -> None:
    hook = repo / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    before = settings(repo)
    write(repo, task("bad", f"echo c >src/c; {plant}", 'check = "true"'), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert not mark.exists()
    assert settings(repo) == before
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}
    assert committed(repo) == ["next"]
    assert is_undone(reason(repo))
    here(repo, "report")
    here(repo, "show", "bad", "--diff")
    git(repo, "fsck", "--strict")
    assert not mark.exists()
    batch = told_batch(repo)
    assert git(repo, "show", f"refs/batch/{batch}/attempts/bad/1:src/c") == "c"
    assert not (repo / "src/c").exists()


def told_batch(repo: Path) -> str:
    return git(repo, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/notes/batch/")


def test_what_the_task_made_of_a_file_is_kept_and_named(repo: Path) -> None:
    write(repo, task("bad", "echo c >src/c; git config core.editor evil"))
    here(repo, "start", "--yes", status=1)
    (kept,) = (repo / ".git/batch/kept").glob("*/config")
    assert "evil" in kept.read_text()
    assert str(kept.relative_to(repo)) in reason(repo)
    assert ".git/config" in reason(repo)


@pytest.mark.parametrize(
    "when", ["check", "failing check", "failing command", "timed out", "review"]
)
def test_planting_is_noticed_whatever_plants_and_however_it_ends(
    repo: Path, mark: Path, when: str
) -> None:
    plant = 'git config core.fsmonitor "touch $MARK; false"'
    ways = {
        "check": ("echo c >src/c", f"check = {json.dumps(plant)}"),
        "failing check": ("echo c >src/c", f"check = {json.dumps(plant + '; exit 1')}"),
        "failing command": (f"echo c >src/c; {plant}; exit 3",),
        "review": ("echo c >src/c", f"review = {json.dumps(['sh', '-c', plant])}"),
        "timed out": (f"echo c >src/c; {plant}; sleep 30", 'timeout = "1s"'),
    }
    write(repo, task("bad", *ways[when]), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert not mark.exists()
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}
    assert git(repo, "config", "--local", "--list").count("fsmonitor") == 0


def test_a_repository_in_the_scope_runs_nothing_of_its_own(repo: Path, mark: Path) -> None:
    plant = (
        "git init -q src/sub; cd src/sub; echo '* filter=evil' >.gitattributes; echo x >f; "
        'git add .; git commit -qm s; git config core.fsmonitor "touch $MARK; false"; '
        'git config filter.evil.clean "touch $MARK; cat"; echo y >f; cd ../..'
    )
    write(repo, task("bad", f"{plant}; git add -f src", 'check = "true"'), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "scope_refused", "next": "committed"}
    assert not mark.exists()


@pytest.mark.parametrize("absorbed", [True, False])
def test_nothing_planted_in_a_submodule_runs(
    repo: Path, tmp_path: Path, mark: Path, absorbed: bool
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    (other / "f").write_text("f\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "f")
    if absorbed:
        git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other))
    else:
        git(repo, "clone", "-q", str(other), "other")
        git(repo, "-c", "advice.addEmbeddedRepo=false", "add", "other")
    git(repo, "commit", "-qm", "module")
    plant = 'git -C other config core.fsmonitor "touch $MARK; false"; echo x >>other/f'
    write(repo, task("bad", f"echo c >src/c; {plant}", 'check = "true"'), GO_ON)
    here(repo, "start", "--yes", status=1)
    git(repo / "other", "stash", "--quiet")  # what it left in there is in the next task's way
    here(repo, "resume", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}
    assert not mark.exists()
    assert (other / "f").read_text() == "f\n"


def test_the_persons_own_configuration_is_not_touched_nor_used(
    repo: Path, home: Path, mark: Path
) -> None:
    plant = 'git config --global core.fsmonitor "touch $MARK; false"'
    write(repo, task("bad", f"echo c >src/c; {plant}"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert not mark.exists()
    assert outcomes(repo) == {"bad": "tampered", "next": "not_run_stopped"}
    assert "fsmonitor" in (home / ".gitconfig").read_text()
    assert "left as it is" in reason(repo)
    assert "(tampered)" in git(repo, "log", "-1", "--format=%s", "--glob=refs/notes/batch/*")


def test_a_line_that_only_concerns_a_branch_is_no_tampering(repo: Path) -> None:
    # An editor that is open meanwhile writes such lines whenever a branch is checked out.
    run = 'echo c >src/c; git config "branch.$BATCH_TASK.vscode-merge-base" origin/main'
    write(repo, task("fine", run), GO_ON)
    here(repo, "start", "--yes")
    assert git(repo, "config", "branch.fine.vscode-merge-base") == "origin/main"


def test_writing_the_same_again_is_no_tampering(repo: Path) -> None:
    git(repo, "config", "core.hooksPath", ".husky")
    (repo / ".git/hooks/pre-push").write_text("x\n")
    run = (
        "echo c >src/c; git config core.hooksPath .husky; echo x >.git/hooks/pre-push;"
        "cp .git/config src/x; mv src/x .git/config"
    )
    write(repo, task("fine", run), GO_ON)
    here(repo, "start", "--yes")
    assert committed(repo) == ["fine", "next"]


def test_hooks_in_the_working_tree_are_a_tasks_work_where_its_scope_says_so(
    repo: Path, mark: Path
) -> None:
    (repo / "hooks").mkdir()
    (repo / "hooks/pre-commit").write_text("#!/bin/sh\n")
    (repo / "hooks/pre-commit").chmod(0o755)
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "hooks")
    git(repo, "config", "core.hooksPath", "hooks")
    edit = 'echo "touch $MARK" >>hooks/pre-commit; echo c >src/c'
    write(repo, task("bad", edit), task("good", "echo >>hooks/pre-commit", 'scope = ["hooks/**"]'))
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "good": "committed"}
    assert not mark.exists()


# --- refs -----------------------------------------------------------------------------------------


def heads(repo: Path) -> dict[str, str]:
    return {n: v for n, v in refs(repo).items() if not n.startswith(("refs/batch", "refs/notes"))}


MADE = {
    "branch": "git branch mine",
    "tag": "git tag mine",
    "annotated tag": "git tag -a -m x mine",
    "stash": "echo z >>src/b; git stash -q",
    "working tree": 'git worktree add -q "$MARK" HEAD',
}


@pytest.mark.parametrize("move", MADE.values(), ids=MADE)
def test_what_a_task_adds_is_named_and_the_next_task_goes_on(
    repo: Path, mark: Path, move: str
) -> None:
    write(repo, task("bad", f"{move}; echo c >src/c"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}
    assert "created" in reason(repo) or "added" in reason(repo)
    assert committed(repo) == ["next"]


MOVED: dict[str, tuple[str, str]] = {
    "branch moved": ("git branch -q -f other HEAD", "refs/heads/other"),
    "branch deleted": ("git branch -q -D other", "refs/heads/other"),
    "tag moved": ("git tag -f v1 HEAD", "refs/tags/v1"),
    "tag deleted": ("git tag -d v1", "refs/tags/v1"),
    "written in place": ("git rev-parse HEAD >.git/refs/heads/other", "refs/heads/other"),
    "garbage": ("echo garbage >.git/refs/heads/other", "refs/heads/other"),
    "packed": ("git pack-refs --all; git branch -q -f other HEAD", "refs/heads/other"),
    "packed by hand": (
        "git pack-refs --all; sed -i '/other/d' .git/packed-refs",
        "refs/heads/other",
    ),
    "the person's stash": ("git stash drop -q", "refs/stash"),
    "replaced object": ("git replace HEAD other", "refs/replace/"),
}


@pytest.mark.parametrize(("move", "name"), MOVED.values(), ids=MOVED)
def test_a_ref_of_somebody_else_that_moved_stops_the_run_and_is_left(
    repo: Path, move: str, name: str
) -> None:
    (repo / "src/b").write_text("stashed\n")
    git(repo, "stash", "-q")
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    for args in (("branch", "other", "HEAD~1"), ("tag", "v1", "HEAD~1")):
        git(repo, *args)
    before = heads(repo).get(name)
    write(repo, task("bad", f"echo c >src/c; {move}"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "not_run_stopped"}
    assert name in reason(repo)
    if before is not None:
        assert before in reason(repo)
        kept = f"refs/batch/{told_batch(repo)}/attempts/bad/1-moved"
        assert git(repo, "rev-parse", kept) == before
    assert committed(repo) == []


def test_after_such_a_stop_a_person_confirms_anew_and_the_rest_is_done(repo: Path) -> None:
    git(repo, "branch", "other")
    write(repo, task("bad", "echo c >src/c; git commit -q --allow-empty -m x; "
                     "git branch -q -f other HEAD"), GO_ON)  # fmt: skip
    here(repo, "start", "--yes", status=1)
    here(repo, "resume", status=3)
    here(repo, "resume", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}


def test_a_push_is_reported_loudly(repo: Path, origin: Path) -> None:
    write(
        repo,
        task("first", "echo 1 >src/1"),
        task("bad", "echo c >src/c; git push -q origin HEAD:main", 'blocked_by = ["first"]'),
        GO_ON,
    )
    said = here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"first": "committed", "bad": "tampered", "next": "not_run_stopped"}
    assert "pushed: refs/remotes/origin/main" in reason(repo)
    assert "pushed" in said.err
    assert git(origin, "rev-parse", "main") in reason(repo)


def test_pushing_the_tasks_own_commit_is_seen_as_well(repo: Path, origin: Path) -> None:
    run = (
        "echo c >src/c; git commit -qam x; git add -A; git commit -qm y; git push -q origin HEAD:up"
    )
    write(repo, task("bad", run), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo)["bad"] == "tampered"
    assert "pushed: refs/remotes/origin/up" in reason(repo)


def test_what_went_wrong_a_push_of_the_base_stopped_a_run(repo: Path, origin: Path) -> None:
    """Somebody pushes their branch from another terminal while the first task runs."""
    write(repo, task("fine", "echo c >src/c; git push -q origin main main:mine"), GO_ON)
    said = here(repo, "start", "--yes")
    assert committed(repo) == ["fine", "next"]
    assert git(origin, "rev-parse", "mine") == git(repo, "rev-parse", "main")
    assert "meanwhile: refs/remotes/origin/mine was created" in said.err


def test_a_fetch_meanwhile_is_no_tampering(repo: Path, origin: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(origin), str(other))
    git(other, "-c", "user.email=o@x", "commit", "-q", "--allow-empty", "-m", "somebody else's")
    git(other, "tag", "v9")
    git(other, "push", "-q", "origin", "HEAD:main", "HEAD:more", "v9")
    write(repo, task("fine", "echo c >src/c; git fetch -q origin"), GO_ON)
    said = here(repo, "start", "--yes")
    assert committed(repo) == ["fine", "next"]
    assert git(repo, "rev-parse", "v9") == git(origin, "rev-parse", "main")
    assert "meanwhile: refs/remotes/origin/main was moved" in said.err


def test_refs_that_tools_keep_below_names_of_their_own_are_no_tampering(repo: Path) -> None:
    run = "echo c >src/c; git update-ref refs/checkpoints/$BATCH_TASK HEAD"
    write(
        repo, task("fine", run), task("also", f"{run}; git update-ref refs/checkpoints/fine HEAD")
    )
    here(repo, "start", "--yes", status=1)  # `also` changes nothing more
    assert outcomes(repo) == {"fine": "committed", "also": "empty"}


FORGERIES = {
    "deleted": "git update-ref -d $REF",
    "set back": "git update-ref $REF $REF~1",
    "garbage": "echo garbage >.git/$REF",
    "a note": "git notes --ref=$REF add -f -m forged HEAD",
    "another commit": "git update-ref $REF HEAD",
    "an event": 'git update-ref $REF $(git cat-file commit $REF | sed "s/^parent .*//" | '
    "git hash-object -t commit -w --stdin --literally)",
    "kept work": "git update-ref refs/batch/${REF#refs/notes/batch/}/attempts/x/1 HEAD",
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_task_that_writes_the_record_is_found_out_and_undone(repo: Path, forgery: str) -> None:
    name = "export REF=refs/notes/batch/$BATCH_ID; "
    write(repo, task("bad", f"{name}echo c >src/c; {forgery}"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "not_run_stopped"}
    assert f"{told_batch(repo)}" in reason(repo)
    assert "refs/batch/x" not in refs(repo)
    steps = git(repo, "log", "--first-parent", "--format=%(trailers:key=Batch-Step,valueonly)",
                f"refs/notes/batch/{told_batch(repo)}")  # fmt: skip
    numbers = [int(line) for line in steps.split()]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 1


@pytest.mark.parametrize(
    "command", ["start --yes", "resume --yes", "skip next", "retry bad", "abandon"]
)
@pytest.mark.parametrize("hide", ["", "unset BATCH_TASK BATCH_ID; "])
def test_a_task_can_not_drive_the_batch(repo: Path, command: str, hide: str) -> None:
    import sys

    run = f"{hide}{sys.executable} -m git_batch {command} </dev/null; echo $? >src/status"
    write(repo, task("bad", run), GO_ON)
    here(repo, "start", "--yes", env={"PYTHONPATH": str(Path(__file__).parents[2])})
    assert git(repo, "show", f"{BRANCH}~1:src/status") == "3"
    assert outcomes(repo) == {"bad": "committed", "next": "committed"}


def test_the_runner_of_another_working_tree_is_no_tampering(repo: Path, tmp_path: Path) -> None:
    from tests.e2e.job import argv
    from tests.e2e.scene import environment

    elsewhere = tmp_path / "elsewhere"
    git(repo, "worktree", "add", "-q", "-b", "side", str(elsewhere))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    steps = [task(f"s{i}", f"echo {i} >src/s{i}; sleep 0.2") for i in range(40)]
    write(elsewhere, *steps)
    plan = (elsewhere / "batch.toml").read_text().replace("demo", "other")
    (elsewhere / "batch.toml").write_text(plan)
    with subprocess.Popen(
        [*argv("start", "--yes")],
        cwd=elsewhere,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as other:
        wait(lambda: "refs/heads/batch/other" in refs(repo))
        write(repo, task("slow", "echo c >src/c; sleep 1"), GO_ON)
        here(repo, "start", "--yes")
        other.kill()
    assert committed(repo) == ["slow", "next"]


def wait(until: Callable[[], bool]) -> None:
    import time

    limit = time.monotonic() + 20
    while not until():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_without_its_git_directory_a_run_ends_without_a_traceback(repo: Path) -> None:
    write(repo, task("bad", "mv .git ../gone"), GO_ON)
    said = here(repo, "start", "--yes", status=1)
    assert "no git directory any more" in said.err
    shutil.rmtree(repo / ".git", ignore_errors=True)  # our lock's file, at most
    (repo.parent / "gone").rename(repo / ".git")
    here(repo, "resume", "--yes", status=1)


def test_what_went_wrong_a_git_directory_that_is_a_file_now_was_a_bug(repo: Path) -> None:
    write(repo, task("bad", 'mv .git ../g; echo "gitdir: ../g" >.git'), GO_ON)
    said = here(repo, "start", "--yes", status=1)
    assert "no git directory any more: it is a file now" in said.err
    assert "a bug" not in said.err
    (repo / ".git").unlink()
    (repo.parent / "g").rename(repo / ".git")
    write(repo, task("bad", "true"))
    here(repo, "status")


HALF_DONE = {
    "merge": ("git merge -q --no-ff --no-commit other", "MERGE_HEAD"),
    "merge of its own making": ("git rev-parse other >.git/MERGE_HEAD", "MERGE_HEAD"),
    "revert": ("git revert --no-commit other", "REVERT_HEAD"),
    "bisect": ("git bisect start -q HEAD other", "BISECT_LOG"),
    "rebase": ("mkdir .git/rebase-merge", "rebase-merge"),
}


@pytest.mark.parametrize(("command", "mark"), HALF_DONE.values(), ids=HALF_DONE)
def test_what_went_wrong_what_a_task_left_half_done_became_part_of_a_persons_next_commit(
    repo: Path, command: str, mark: str
) -> None:
    git(repo, "checkout", "-q", "-b", "other")
    (repo / "src/other").write_text("o\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "other")
    if mark == "MERGE_HEAD":
        git(repo, "checkout", "-q", "main")
    write(repo, task("bad", f"echo c >src/c; {command}"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}
    said = f"'.git/{mark}' was new, and is taken away; it is in '.git/"
    assert said in reason(repo)
    kept = reason(repo).split(said)[1].split("'")[0]
    assert (repo / ".git" / kept).exists()
    git(repo, "commit", "-q", "--allow-empty", "-m", "mine")
    assert len(git(repo, "log", "-1", "--format=%P").split()) == 1


# --- our own folder -------------------------------------------------------------------------------

OWN = {
    "a lock is planted": "touch .git/batch/scan.index.lock",
    "a folder is planted": "mkdir .git/batch/scan.index.lock",
    "our index is written": "echo garbage >.git/batch/scan.index",
    "its base is written": "echo garbage >.git/batch/scan.base",
    "our index is removed": "rm .git/batch/scan.index",
    "what the fence knows is removed": "rm .git/batch/fence.state",
    "the output is removed": "rm -rf .git/batch/output",
}
ALL = {
    "all is removed": "rm -rf .git/batch",
    "a file is in its place": "rm -rf .git/batch; echo x >.git/batch",
    "a link is in its place": "mv .git/batch ../b; ln -s ../../b .git/batch; rm -rf ../b/*",
    "a lock is removed": "rm .git/batch/run.lock",
}


@pytest.mark.parametrize("spoil", OWN.values(), ids=OWN)
@pytest.mark.parametrize("who", ["command", "check"])
def test_what_went_wrong_what_a_task_did_in_our_folder_stopped_the_batch(
    repo: Path, spoil: str, who: str
) -> None:
    (repo / "src/mine").write_text("staged\n")
    git(repo, "add", "src/mine")
    git(repo, "commit", "-qm", "mine")
    before = git(repo, "ls-files", "--stage")
    parts = [f"echo c >src/c; {spoil}"]
    if who == "check":
        parts = ["echo c >src/c", f"check = {json.dumps(spoil)}"]
    write(repo, task("bad", *parts), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}
    assert "git-batch's own" in reason(repo)
    assert git(repo, "ls-files", "--stage", ":!src/next") == before
    git(repo, "fsck", "--strict")
    here(repo, "resume", "--yes", status=1)


IN_THE_WAY = {
    "a file": "echo x >$AT",
    "a pipe": "mkfifo $AT",
    "a folder": "mkdir $AT; echo x >$AT/x",
    "a link": 'ln -s "$ELSEWHERE" $AT',
}


def in_the_way(monkeypatch: pytest.MonkeyPatch, repo: Path, name: str, what: str) -> str:
    """Give a command that puts something where we are about to write."""
    place = repo.parent / "elsewhere"
    if name == "kept":
        place.mkdir()
    else:
        place.write_text("precious\n")
    at = ".git/COMMIT_EDITMSG" if name == "COMMIT_EDITMSG" else f".git/batch/{name}"
    monkeypatch.setenv("ELSEWHERE", str(place))
    return f"rm -rf {at}; {what.replace('$AT', at)}"


def untouched(repo: Path) -> bool:
    place = repo.parent / "elsewhere"
    return not list(place.iterdir()) if place.is_dir() else place.read_text() == "precious\n"


@pytest.mark.parametrize("what", IN_THE_WAY.values(), ids=IN_THE_WAY)
@pytest.mark.parametrize("name", ["kept", "fence.config"])
def test_what_went_wrong_what_a_task_left_where_we_write_stopped_the_run_or_led_it_elsewhere(
    repo: Path, mark: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str
) -> None:
    spoil = in_the_way(monkeypatch, repo, name, what)
    whose = "--global" if name == "fence.config" else "--local"
    plant = f'git config {whose} core.fsmonitor "touch $MARK; false"'
    write(repo, task("bad", f"echo c >src/c; {spoil}; {plant}"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo)["bad"] == "tampered"
    assert "config' was changed" in reason(repo)
    assert untouched(repo)
    assert not mark.exists()


@pytest.mark.parametrize("what", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_went_wrong_a_message_for_the_hooks_was_written_to_where_a_task_led(
    repo: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    hook = repo / ".git/hooks/commit-msg"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    write(repo, task("one", "echo 1 >src/1; " + in_the_way(
        monkeypatch, repo, "COMMIT_EDITMSG", what)), GO_ON)  # fmt: skip
    here(repo, "start", "--yes")
    assert committed(repo) == ["one", "next"]
    assert untouched(repo)


@pytest.mark.parametrize("spoil", ALL.values(), ids=ALL)
def test_what_went_wrong_without_our_folder_the_task_ran_again_and_again(
    repo: Path, spoil: str
) -> None:
    before = git(repo, "ls-files", "--stage")
    write(repo, task("bad", f"echo c >src/c; {spoil}"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "not_run_stopped"}
    assert stop(repo) == "tampered"
    assert git(repo, "ls-files", "--stage") == before
    here(repo, "resume", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}


# --- the person's index ---------------------------------------------------------------------------

INDEX = {
    "a pipe": "rm .git/index; mkfifo .git/index",
    "a folder": "rm .git/index; mkdir .git/index; echo x >.git/index/x",
    "nothing": "rm .git/index",
    "a link": "mv .git/index .git/i; ln -s i .git/index",
    "a link to nothing": "rm .git/index; ln -s nowhere .git/index",
    "garbage": "echo garbage >.git/index",
    "half of it": "cp .git/index ../i; head -c 100 ../i >.git/index",
    "an empty file": ": >.git/index",
    "its copy is gone as well": "rm .git/index .git/batch/scan.base; mkdir .git/index",
}
NOTHING_LEFT = {"a pipe", "nothing"}


@pytest.mark.parametrize("name", INDEX)
@pytest.mark.parametrize("who", ["command", "check"])
def test_what_went_wrong_an_index_that_git_cant_read_stopped_the_run(
    repo: Path, name: str, who: str
) -> None:
    parts = [f"echo c >src/c; {INDEX[name]}"]
    if who == "check":
        parts = ["echo c >src/c", f"check = {json.dumps(INDEX[name])}"]
    write(repo, task("bad", *parts), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "tampered", "next": "committed"}
    said = reason(repo).removesuffix("; files of git-batch's own were changed, and are made anew")
    assert said.startswith("'.git/index' was changed and is put back")
    kept = list((repo / ".git/batch/kept").glob("*/*"))
    kept = [path for path in kept if path.name == "index"]
    assert bool(kept) == (name not in NOTHING_LEFT)
    assert all(f"is in '{path.relative_to(repo)}'" in said for path in kept)
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    assert (repo / ".git/index").is_file()
    assert not (repo / ".git/index").is_symlink()


def test_what_a_task_stages_and_a_new_index_of_its_own_are_no_offence(repo: Path) -> None:
    write(repo, task("bad", "echo c >src/c; rm .git/index; git read-tree HEAD; git add src/c"))
    here(repo, "start", "--yes")
    assert outcomes(repo) == {"bad": "committed"}
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


def test_what_went_wrong_our_copy_was_the_very_file_of_the_persons_index(repo: Path) -> None:
    look = 'for f in .git/batch/*; do [ "$f" -ef .git/index ] && echo "$f"; done; true'
    run = f"({look}) >>../shared; echo $BATCH_TASK >src/$BATCH_TASK"
    check = json.dumps(f"({look}) >>../shared")
    write(repo, task("one", run, f"check = {check}"), task("two", run, f"check = {check}"))
    here(repo, "start", "--yes")
    assert (repo.parent / "shared").read_text() == ""
