"""A runner that is killed after its task has planted something: found before anything of it runs.

The task kills its own runner by SIGKILL. Whatever is planted leaves a mark when it is run; the mark
is looked for after every command of ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, Done, batch, committed, here, outcomes, task, write
from tests.e2e.plants import PLANTS, asked_to_verify, is_undone, killed, killer, settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and SIGKILL")

UNREADABLE = {"a folder for config", "a fifo for config", "broken config"}
"""With these no git command works, so only `resume` gets as far as to say anything."""

EVIL = 'git config core.fsmonitor "touch $MARK; false"'
READERS = (
    ("status",),
    ("list",),
    ("report",),
    ("log",),
    ("show", "bad"),
    ("show", "bad", "--diff"),
    ("verify",),
    ("find", "bad"),
    ("prune", "--yes"),
)


def planted(repo: Path, plant: str, *more: str) -> None:
    """Start a batch whose first task plants something and kills the runner."""
    write(repo, task("bad", killer(plant), *more), task("next", "echo n >src/next"))
    killed(repo, "start", "--yes")


def scratch(repo: Path) -> set[str]:
    return {path.name for path in (repo / ".git/batch").glob("fence.*")}


def history(repo: Path) -> str:
    """Give what the record's events say."""
    return git(repo, "log", "--format=%B", "--glob=refs/notes/batch/*")


def refused(repo: Path, *args: str) -> Done:
    done = here(repo, *(args or ("resume",)), status=3)
    assert "not what they were" in done.err
    return done


@pytest.mark.parametrize("name", PLANTS)
def test_nothing_planted_runs_and_all_of_it_is_put_back(repo: Path, mark: Path, name: str) -> None:
    hook = repo / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    before = settings(repo)
    planted(repo, PLANTS[name])
    if name not in UNREADABLE:
        for command in READERS:
            here(repo, *command, status=None)
    done = refused(repo, "resume", "--max-tasks", "+9")
    assert not mark.exists()
    assert "'bad' of batch 'demo-" in done.err
    ways = [hint.split(" demo-")[1].split(" ", 1)[1] for hint in done.hints[-2:]]
    assert ways == [f"{option} --max-tasks +9" for option in ("--put-back", "--keep-changes")]
    done = here(repo, "resume", "--put-back")
    assert not mark.exists()
    assert settings(repo) == before
    assert committed(repo) == ["bad", "next"]
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    assert (repo / "src/a").exists()
    assert is_undone(done.err)
    assert is_undone(history(repo))
    assert scratch(repo) == set()
    git(repo, "fsck", "--strict")


@pytest.mark.parametrize(
    "plant",
    ["rm .git/index; mkfifo .git/index", "rm .git/index", "echo garbage >.git/index"],
    ids=["a pipe", "nothing", "garbage"],
)
def test_what_went_wrong_an_index_that_git_cant_read_was_no_case_for_put_back(
    repo: Path, mark: Path, plant: str
) -> None:
    planted(repo, plant)
    done = refused(repo)
    word = "can't be read" if (repo / ".git/index").exists() else "gone"
    assert f".git/index ({word})" in done.err
    done = here(repo, "resume", "--put-back")
    assert "'.git/index' was changed and is put back" in done.err
    assert committed(repo) == ["bad", "next"]
    assert git(repo, "status", "--porcelain") == "?? batch.toml"
    assert scratch(repo) == set()


def test_what_went_wrong_a_staged_repository_was_entered_after_a_kill(
    repo: Path, mark: Path
) -> None:
    make = "git init -q build; echo y >build/y; git -C build add y; git -C build commit -qm y"
    run = f'echo z >build/y; git -C build config core.fsmonitor "touch {mark}; false"'
    stage = 'git update-index --add --cacheinfo 160000,"$(git -C build rev-parse HEAD)",build'
    planted(repo, f"{make}; {run}; {stage}")
    assert ".git/index (has a repository staged)" in refused(repo).err
    here(repo, "skip", "next", status=3)
    here(repo, "resume", "--put-back", status=None)
    assert "build" not in git(repo, "ls-files")
    assert not mark.exists()


@pytest.mark.parametrize("name", ["fsmonitor", "clean filter", "hooks path", "include"])
def test_what_works_on_files_is_refused_and_runs_nothing(repo: Path, mark: Path, name: str) -> None:
    write(repo, task("done", "echo d >src/d"), task("bad", killer(PLANTS[name])))
    killed(repo, "start", "--yes")
    (repo / "src/a").write_text("edited\n")
    write(repo, task("else", "true"), name="other.toml")
    (repo / "other.toml").write_text((repo / "other.toml").read_text().replace("demo", "other"))
    for command in (
        ("undo", "done"),
        ("adopt", "bad"),
        ("bless",),
        ("retry", "bad"),
        ("skip", "bad"),
        ("start", "other.toml", "--yes"),
        ("start", "other.toml", "--dry-run"),
    ):
        refused(repo, *command)
        assert not mark.exists(), command
    git_batch_refs = "refs/notes/batch/"
    assert len(git(repo, "for-each-ref", git_batch_refs).splitlines()) == 1
    here(repo, "abandon")
    here(repo, "recover", status=None)
    assert not mark.exists()
    refused(repo, "start", "other.toml", "--dry-run")
    here(repo, "resume", told_batch(repo), "--put-back", status=3)  # it is abandoned
    assert not mark.exists()


def told_batch(repo: Path) -> str:
    return git(repo, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/notes/batch/")


def test_what_the_task_made_and_what_was_before_are_kept_to_be_read(repo: Path, mark: Path) -> None:
    before = (repo / ".git/config").read_text()
    planted(repo, EVIL)
    done = refused(repo)
    assert ".git/config (changed)" in done.err
    place = next(hint for hint in done.hints if "what they were" in hint).split("'")[1]
    copy = repo / place / ".git/config"
    assert copy.read_text() == before
    assert copy.stat().st_mode & 0o777 == 0o600
    assert refused(repo).hints == done.hints
    assert len(list((repo / ".git/batch/kept").iterdir())) == 1
    here(repo, "resume", "--put-back")
    kept = [p for p in (repo / ".git/batch/kept").glob("*/config") if "fsmonitor" in p.read_text()]
    assert len(kept) == 1
    assert str(kept[0].relative_to(repo)) in history(repo)
    shown = here(repo, "show", "bad").out
    assert "is put back" in shown
    assert not mark.exists()


def test_what_a_person_keeps_is_theirs_from_then_on(repo: Path, mark: Path) -> None:
    planted(repo, "git config core.editor mine")
    refused(repo)
    done = here(repo, "resume", "--keep-changes")
    assert git(repo, "config", "core.editor") == "mine"
    assert committed(repo) == ["bad", "next"]
    assert "kept as they are: '.git/config'" in done.err
    assert "kept as they are: '.git/config'" in history(repo)
    assert scratch(repo) == set()


def test_where_nothing_differs_nothing_is_said(repo: Path, mark: Path) -> None:
    planted(repo, ":")
    assert scratch(repo) == {"fence.state", "fence.refs", "fence.armed"}
    done = here(repo, "resume")
    assert "killed" not in done.err
    assert committed(repo) == ["bad", "next"]
    assert scratch(repo) == set()


@pytest.mark.parametrize("kind", ["check", "review"])
def test_what_a_check_or_a_review_plants_is_found_as_well(
    repo: Path, mark: Path, kind: str
) -> None:
    plant = f'[ -e "$MARK.once" ] || {{ : >"$MARK.once"; {EVIL}; kill -9 $PPID; }}'
    command = plant if kind == "check" else ["sh", "-c", plant]
    write(repo, task("bad", "echo c >src/c", f"{kind} = {json.dumps(command)}"))
    killed(repo, "start", "--yes")
    assert ".git/config" in refused(repo).err
    here(repo, "resume", "--put-back")
    assert not mark.exists()
    assert outcomes(repo) == {"bad": "committed"}


def test_a_line_that_only_concerns_a_branch_goes_through(repo: Path, mark: Path) -> None:
    planted(repo, "git config branch.mine.merge refs/heads/x")
    here(repo, "resume")
    assert git(repo, "config", "branch.mine.merge") == "refs/heads/x"
    assert committed(repo) == ["bad", "next"]


def test_a_hook_in_the_tasks_scope_is_its_work(repo: Path, mark: Path) -> None:
    (repo / "hooks").mkdir()
    (repo / "hooks/pre-push").write_text("#!/bin/sh\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "hooks")
    git(repo, "config", "core.hooksPath", "hooks")
    planted(repo, "echo >>hooks/pre-push", 'scope = ["hooks/**", "src/**"]')
    here(repo, "resume")
    assert committed(repo) == ["bad", "next"]


def test_a_hook_in_the_tree_that_is_not_in_its_scope_is_found(repo: Path, mark: Path) -> None:
    (repo / "hooks").mkdir()
    (repo / "hooks/pre-push").write_text("#!/bin/sh\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "hooks")
    git(repo, "config", "core.hooksPath", "hooks")
    planted(repo, "echo >>hooks/pre-push")
    assert "hooks/pre-push (changed)" in refused(repo).err
    here(repo, "resume", "--put-back")
    assert committed(repo) == ["bad", "next"]


def test_what_lies_outside_is_named_and_left_to_the_person(
    repo: Path, home: Path, mark: Path
) -> None:
    planted(repo, 'git config --global core.fsmonitor "touch $MARK; false"')
    assert str(home / ".gitconfig") in refused(repo).err
    done = refused(repo, "resume", "--put-back")
    assert str(home / ".gitconfig") in done.err
    assert "by hand" in done.hints[-2]
    assert not any("--put-back" in hint for hint in done.hints)
    assert not mark.exists()
    git(repo, "config", "--global", "--unset", "core.fsmonitor")
    here(repo, "resume")
    assert committed(repo) == ["bad", "next"]


def test_an_edit_after_an_orderly_end_is_nobodys_fault(repo: Path, mark: Path) -> None:
    write(repo, task("bad", "exit 3"), task("next", "echo n >src/next"))
    here(repo, "start", "--yes", status=1)
    assert scratch(repo) == set()
    git(repo, "config", "core.editor", "mine")
    here(repo, "retry", "bad")
    assert "killed" not in here(repo, "resume", status=1).err


def test_an_edit_after_a_kill_between_two_tasks_is_nobodys_fault(repo: Path, mark: Path) -> None:
    # The runner is killed by the hook that git-batch runs last of all: no task's command runs.
    hook = repo / ".git/hooks/post-commit"
    hook.write_text('#!/bin/sh\n[ -e "$MARK" ] || { touch "$MARK"; kill -9 $(cat "$MARK.pid"); }\n')
    hook.chmod(0o755)
    write(repo, task("one", 'echo $PPID >"$MARK.pid"; echo 1 >src/1'), task("two", "echo 2 >src/2"))
    killed(repo, "start", "--yes")
    assert scratch(repo) == {"fence.state", "fence.refs"}
    git(repo, "config", "core.editor", "mine")
    here(repo, "resume")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "config", "core.editor") == "mine"


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", b"\0" * 4096, b"git-batch fence 99 x\n{}", b"torn", b"other place", None],
    ids=["empty", "garbage", "zeros", "another version", "torn", "another place", "missing"],
)
def test_a_state_that_can_not_be_relied_on_is_told_and_never_used(
    repo: Path, mark: Path, content: bytes | None
) -> None:
    planted(repo, "git config core.editor mine")
    state = repo / ".git/batch/fence.state"
    written = state.read_bytes()
    if content == b"torn":
        content = written[: len(written) // 2]
    if content is None:
        state.unlink()
    elif content == b"other place":
        repo.rename(repo.with_name("moved"))
        repo = repo.with_name("moved")
    else:
        state.write_bytes(content)
    done = here(repo, "resume")
    assert "can't be told" in done.err
    assert git(repo, "config", "core.editor") == "mine"
    assert committed(repo) == ["bad", "next"]
    assert scratch(repo) == set()


def test_a_torn_mark_is_still_one(repo: Path, mark: Path) -> None:
    planted(repo, "git config core.editor mine")
    (repo / ".git/batch/fence.armed").write_bytes(b"{")
    done = refused(repo)
    assert "while a task ran" in done.err
    here(repo, "resume", "--put-back")
    assert committed(repo) == ["bad", "next"]


def test_a_working_tree_that_a_person_links_meanwhile_is_no_difference(
    repo: Path, tmp_path: Path, mark: Path
) -> None:
    planted(repo, ":")
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "side"))
    here(repo, "resume")
    assert committed(repo) == ["bad", "next"]


def test_a_process_that_could_still_plant_has_to_end_first(repo: Path, mark: Path) -> None:
    write(repo, task("bad", killer("setsid sleep 600 &")))
    batch(repo, "start", "--yes", status=-9)
    for command in (("resume",), ("start", "--dry-run"), ("skip", "bad")):
        assert "still alive" in here(repo, *command, status=3).err
    here(repo, "resume", "--kill-orphans")
    assert committed(repo) == ["bad"]


def test_a_head_that_git_can_not_read_is_put_back(repo: Path, mark: Path) -> None:
    planted(repo, "echo garbage >.git/HEAD")
    assert ".git/HEAD (can't be read)" in refused(repo).err
    done = here(repo, "resume", "--put-back")
    assert "HEAD could not be read" in done.err
    assert git(repo, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert committed(repo) == ["bad", "next"]


def test_what_hides_files_from_git_is_taken_back(repo: Path, mark: Path) -> None:
    planted(repo, "git update-index --assume-unchanged src/b; echo hidden >>src/b")
    here(repo, "resume")
    assert committed(repo) == ["bad", "next"]
    assert git(repo, "ls-files", "-v", "src/b") == "H src/b"
    assert (repo / "src/b").read_text() == "b\n"


def test_killed_while_it_puts_back_it_is_put_back_again(repo: Path, mark: Path) -> None:
    before = settings(repo)
    planted(repo, EVIL)
    # As a death between moving the planted file away and writing the old one leaves it.
    (repo / ".git/config").rename(repo / ".git/batch/half")
    assert ".git/config (gone)" in refused(repo).err
    here(repo, "resume", "--put-back")
    assert settings(repo) == before


def test_what_was_put_back_is_recorded_by_a_later_run_if_this_one_does_not_come_to_it(
    repo: Path, mark: Path
) -> None:
    planted(repo, EVIL)
    (repo / ".git/HEAD").write_text("ref: refs/heads/main\n")  # a git command would run it
    here(repo, "resume", "--put-back", status=3)
    assert scratch(repo) == {"fence.found", "fence.refs"}
    git(repo, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    here(repo, "resume")
    assert "is put back" in history(repo)
    assert scratch(repo) == set()


MOVES = {
    "branch deleted": ("git branch -q -D other", "refs/heads/other"),
    "branch set back": ("git branch -q -f other HEAD~1", "refs/heads/other"),
    "tag deleted": ("git tag -d v1", "refs/tags/v1"),
}


@pytest.mark.parametrize(("move", "name"), MOVES.values(), ids=MOVES)
def test_a_ref_that_moved_is_told_and_what_it_named_is_kept(
    repo: Path, mark: Path, move: str, name: str
) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    git(repo, "branch", "other")
    git(repo, "tag", "v1")
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    old = git(repo, "rev-parse", name)
    planted(repo, move.replace("HEAD~1", "HEAD"))
    done = here(repo, "resume")
    assert f"{name} was " in done.err
    assert old in done.err
    assert f"since then {name} was " in history(repo)
    kept = f"refs/batch/{told_batch(repo)}/attempts/bad/1-moved"
    assert git(repo, "rev-parse", kept) == old
    assert committed(repo) == ["bad", "next"]
    assert scratch(repo) == set()


def test_what_a_person_committed_or_made_meanwhile_needs_no_keeping(repo: Path, mark: Path) -> None:
    git(repo, "branch", "other")
    planted(repo, ":")
    tree, old = git(repo, "rev-parse", "other^{tree}"), git(repo, "rev-parse", "other")
    new = git(repo, "commit-tree", "-m", "theirs", "-p", old, tree)
    git(repo, "update-ref", "refs/heads/other", new)
    git(repo, "update-ref", "refs/heads/fresh", new)
    done = here(repo, "resume")
    assert f"refs/heads/other was moved from {old} to {new}" in done.err
    assert "fresh" not in done.err
    assert git(repo, "for-each-ref", "refs/batch/*/attempts/bad/1-moved") == ""


def test_both_ways_at_once_are_refused(repo: Path) -> None:
    here(repo, "resume", "--put-back", "--keep-changes", status=2)


def test_a_state_is_written_once_for_many_tasks(repo: Path, mark: Path) -> None:
    seen = 'stat -c "%i %Y %Z" .git/batch/fence.state .git/batch/fence.refs >>"$MARK.seen"'
    names = ["one", "two", "three"]
    write(
        repo, *(task(n, f"{seen}; echo x >src/{n}", f"check = {json.dumps(seen)}") for n in names)
    )
    here(repo, "start", "--yes")
    lines = Path(f"{mark}.seen").read_text().splitlines()
    assert len(lines) == 12
    assert len(set(lines)) == 2


MISSING = (
    "git config extensions.partialClone evil; git config remote.evil.promisor true; "
    'git config remote.evil.url "$PWD"; git config remote.evil.uploadpack "touch $MARK; false"; '
    "echo 1234567890123456789012345678901234567890 >.git/refs/notes/batch/$BATCH_ID"
)


def test_what_went_wrong_git_asked_a_planted_remote_for_what_was_missing(
    repo: Path, mark: Path
) -> None:
    planted(repo, MISSING)
    for command in READERS:
        here(repo, *command, status=None)
        assert not mark.exists(), command
    here(repo, "recover", status=None)
    here(repo, "resume", "--put-back")
    assert not mark.exists()
    assert committed(repo) == ["bad", "next"]


@pytest.mark.parametrize("command", ["push", "fetch", "pull"])
def test_what_went_wrong_what_asks_a_remote_ran_what_was_planted(
    repo: Path, mark: Path, tmp_path: Path, command: str
) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "remote.git"))
    pack = 'git config remote.origin.{0}pack "touch $MARK; git-{0}-pack"'
    planted(repo, "; ".join(pack.format(way) for way in ("receive", "upload")))
    refused(repo, command)
    assert not mark.exists()
    here(repo, "resume", "--put-back")
    here(repo, "push")
    here(repo, command)
    assert not mark.exists()


def test_what_went_wrong_a_planted_program_was_to_check_a_signature(repo: Path, mark: Path) -> None:
    planted(repo, asked_to_verify())
    refused(repo, "verify")
    assert not mark.exists()


@pytest.mark.parametrize("command", ["status", "install"])
def test_what_went_wrong_a_planted_hook_that_looks_like_ours_was_tried(
    repo: Path, mark: Path, command: str
) -> None:
    hook = 'printf "#!/bin/sh\\n# git-batch: pre-push\\ntouch $MARK\\n" >src/h/pre-push'
    where = 'git config core.hooksPath "$PWD/src/h"'
    planted(repo, f"mkdir src/h; {hook}; chmod +x src/h/pre-push; {where}")
    refused(repo, "hooks", command)
    assert not mark.exists()
