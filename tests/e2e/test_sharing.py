"""`git batch push`, `fetch` and `pull`: a batch between clones, branch and record together."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from git_batch.app import pulling
from tests.conftest import git
from tests.e2e.job import BRANCH, argv, task, told, write
from tests.e2e.near import by_hand, near, pasted, record
from tests.e2e.scene import environment


@pytest.fixture
def top(template: Path, tmp_path: Path) -> Path:
    """Give a repository with a batch that waits for a person, and a remote without it."""
    place = tmp_path / "repo"
    shutil.copytree(template, place, symlinks=True)
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    git(place, "remote", "add", "origin", "../origin.git")
    git(place, "push", "-q", "origin", "main")
    write(
        place,
        task("one", "echo 1 >src/one"),
        task("two", "echo tried; test -e ../go && echo 2 >src/two"),
    )
    near(place, "start", "--yes", status=1)
    return place


@pytest.fixture
def clone(top: Path, tmp_path: Path) -> Path:
    """Give a clone on the batch's branch, after it was shared; without the record."""
    near(top, "push")
    return cloned(tmp_path, "clone")


def cloned(folder: Path, name: str) -> Path:
    git(folder, "clone", "-q", "origin.git", name)
    git(folder / name, "switch", "-q", BRANCH)
    return folder / name


def batch_id(top: Path) -> str:
    return record(top).rpartition("/")[2]


def pair(top: Path) -> tuple[str, str]:
    """Give where the branch and the record are."""
    return git(top, "rev-parse", BRANCH), git(top, "rev-parse", record(top))


def go_on(top: Path) -> None:
    """Let the second task succeed, as a person does."""
    (top.parent / "go").touch()
    near(top, "retry", "two")
    near(top, "resume", "--yes")


def test_what_went_wrong_a_lost_record_was_only_looked_for_where_it_never_was(top: Path) -> None:
    name = batch_id(top)
    git(top, "update-ref", "-d", record(top))
    way = near(top, "status").out.splitlines()[-1]
    assert way == f"get it: git batch pull origin {name}"
    git(top, "remote", "add", "other", "../other.git")
    ways = [
        f"another remote may have it: git batch pull other {name}",
        f"bring back what is left of it here: git batch recover {BRANCH}",
    ]
    for named in (name, "demo"):
        assert near(top, "pull", "origin", named, status=2).hints == ["its batches: none", *ways]
    for command in ("pull", "fetch"):  # 'verify' names the latter
        lost = f"'origin' has no record of '{name}', which '{BRANCH}' is of"
        assert near(top, command, "origin").out.splitlines()[-3:] == [lost, *ways]
    assert near(top, "pull", "origin", "nosuch", status=2).hints == ["its batches: none"]
    near(top, *ways[-1].partition(": git batch ")[2].split())
    assert told(top)["batch_id"] == name
    assert near(top, "pull", "origin", name, status=2).hints == ["its batches: none"]
    assert f"which '{BRANCH}' is of" not in near(top, "fetch").out


def test_what_went_wrong_of_a_lost_record_verify_knew_only_where_it_never_was(top: Path) -> None:
    """As long as there is a remote; whether somebody looked there can't be told."""
    name = batch_id(top)
    git(top, "update-ref", "-d", record(top))
    back = f"or, if no remote has its record: git batch recover {BRANCH}"
    for what in ((), (BRANCH,), (f"main..{BRANCH}",), ("HEAD",)):
        near(top, "fetch")
        done = near(top, "verify", *what, status=3).out.splitlines()
        assert [line.strip() for line in done[-2:]] == ["git batch fetch origin", back]
    (top.parent / "origin.git").rename(top.parent / "gone.git")
    way = f"git batch recover {BRANCH}"
    lost = f"the record of '{name}' is not here either; to bring back what is left of it: {way}"
    for command in (("fetch",), ("pull", "origin", name)):
        assert near(top, *command, status=3).hints == [lost]
    git(top, "remote", "remove", "origin")
    for what in ((), ("HEAD",)):
        assert near(top, "verify", *what, status=3).out.splitlines()[-1] == f"    {way}"
    pasted_words = back.partition(": git batch ")[2].split()
    near(top, *pasted_words)
    assert told(top)["batch_id"] == name
    near(top, "verify")


# --- push -----------------------------------------------------------------------------------------


def test_branch_and_record_arrive_together(top: Path) -> None:
    said = near(top, "push").out
    assert said == (
        f"'origin' has '{BRANCH}' at {git(top, 'rev-parse', '--short=10', 'HEAD')} and the record "
        f"of '{batch_id(top)}'\n"
    )
    assert pair(top.parent / "origin.git") == pair(top)
    assert git(top, "rev-parse", f"refs/batch/remotes/origin/{batch_id(top)}") == pair(top)[1]


def test_a_dry_run_sends_nothing(top: Path) -> None:
    near(top, "push", "--dry-run")
    assert git(top.parent / "origin.git", "for-each-ref", "refs/notes", "refs/heads/batch") == ""
    assert git(top, "for-each-ref", "refs/batch/remotes") == ""


def test_what_is_not_whole_is_not_sent(top: Path) -> None:
    oid = by_hand(top)
    said = near(top, "push", status=4)
    assert oid in said.err
    assert said.hints == ["git batch bless"]
    git(top, "commit", "-q", "--amend", "-m", "other")
    git(top, "replace", "HEAD~", "main")
    near(top, "push", status=4)
    assert git(top.parent / "origin.git", "for-each-ref", "refs/notes", "refs/heads/batch") == ""


def test_a_remote_that_is_further_keeps_both(top: Path, clone: Path) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    there = pair(clone.parent / "origin.git")
    near(top, "skip", "two")
    said = near(top, "push", status=3)
    assert said.hints == ["see what it has: git batch fetch origin"]
    assert pair(clone.parent / "origin.git") == there


def test_a_remote_that_refuses_one_of_them_gets_neither(top: Path) -> None:
    hook = top.parent / "origin.git/hooks/update"
    hook.write_text('#!/bin/sh\ncase "$1" in refs/notes/*) exit 1;; esac\n')
    hook.chmod(0o755)
    near(top, "push", status=3)
    assert git(top.parent / "origin.git", "for-each-ref", "refs/heads/batch") == ""
    assert git(top, "for-each-ref", "refs/batch/remotes") == ""


def test_the_persons_own_hook_is_asked(top: Path) -> None:
    hook = top / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    near(top, "push", status=3)
    assert git(top.parent / "origin.git", "for-each-ref", "refs/heads/batch") == ""


def test_a_location_will_do(top: Path) -> None:
    near(top, "push", "../origin.git", "demo")
    assert pair(top.parent / "origin.git") == pair(top)
    assert git(top, "for-each-ref", "refs/batch/remotes") == ""


def test_the_remote_is_the_one_that_git_would_choose(top: Path) -> None:
    git(top.parent, "init", "-q", "--bare", "other.git")
    git(top, "remote", "add", "other", "../other.git")
    git(top, "config", "remote.pushDefault", "other")
    near(top, "push")
    assert pair(top.parent / "other.git") == pair(top)
    git(top, "config", "--unset", "remote.pushDefault")
    git(top, "remote", "rename", "origin", "first")
    assert "which remote is meant? 'first', 'other'" in near(top, "push", status=3).err
    assert "there is no remote 'nope'" in near(top, "push", "nope", status=2).err
    git(top, "remote", "remove", "first")
    near(top, "push")
    git(top, "remote", "remove", "other")
    assert near(top, "push", status=3).hints == ["git remote add origin URL"]


def test_a_batch_that_failed_is_not_shared(top: Path) -> None:
    near(top, "retry", "two")
    git(top, "commit", "-q", "--amend", "-m", "other")
    near(top, "resume", "--yes", status=4)
    git(top, "reset", "-q", "--keep", "HEAD@{1}")
    assert "has failed" in near(top, "push", status=3).err


# --- fetch ----------------------------------------------------------------------------------------


def test_fetched_is_a_copy_beside_what_is_here(top: Path, clone: Path) -> None:
    name = batch_id(top)
    before = git(clone, "for-each-ref", "refs/heads", "refs/notes")
    said = near(clone, "fetch").out
    assert said.splitlines() == [
        f"{name}  not here yet",
        f"take it over: git batch pull origin {name}",
    ]
    assert git(clone, "rev-parse", f"refs/batch/remotes/origin/{name}") == pair(top)[1]
    assert git(clone, "for-each-ref", "refs/heads", "refs/notes") == before
    assert near(clone, "verify").out.startswith("ok: ")


@pytest.mark.parametrize("command", ["status", "report", "verify"])
@pytest.mark.parametrize("named", ["demo", BRANCH, ""])
def test_what_went_wrong_a_batch_that_was_only_fetched_was_nowhere(
    top: Path, clone: Path, command: str, named: str
) -> None:
    git(clone, "switch", "-q", "main")
    git(clone, "branch", "-q", "-D", BRANCH)
    near(clone, "fetch")
    asked = named or batch_id(top)
    way = near(clone, command, asked, status=2).hints[0]
    assert way == f"'origin' has it: git batch pull origin {batch_id(top)}"
    assert "has it" not in near(clone, command, "other", status=2).err
    near(clone, *way.partition(": ")[2].split()[2:])
    near(clone, command, asked)


def test_what_went_wrong_a_clone_that_had_fetched_a_batch_was_to_make_a_new_one(
    top: Path, clone: Path
) -> None:
    git(clone, "switch", "-q", "main")
    near(clone, "fetch")
    way = f"'origin' has '{batch_id(top)}': git batch pull origin {batch_id(top)}"
    for command in ("status", "list", "report", "log"):
        assert near(clone, command).out == f"no batch is here yet, only fetched:\n{way}\n"
    assert near(clone, "resume", status=3).hints == [way]


def test_fetch_says_how_each_record_stands_to_the_one_here(top: Path, clone: Path) -> None:
    near(clone, "pull")
    assert near(clone, "fetch").out.endswith("  as it is here\n")
    go_on(clone)
    assert near(clone, "fetch").out.endswith("  behind what is here\n")
    near(clone, "push")
    assert "  further than it is here\n" in near(top, "fetch").out
    near(top, "skip", "two")
    assert "another one than here" in near(top, "fetch").out


def test_the_remotes_branches_come_along(top: Path, clone: Path) -> None:
    go_on(top)
    near(top, "push")
    near(clone, "fetch")
    assert git(clone, "rev-parse", f"origin/{BRANCH}") == pair(top)[0]


def test_a_remote_without_any_and_one_that_is_not_there(top: Path) -> None:
    assert near(top, "fetch").out == "'origin' has no record of a batch\n"
    git(top, "remote", "set-url", "origin", "../gone.git")
    assert "'origin' could not be read" in near(top, "fetch", status=3).err


# --- pull -----------------------------------------------------------------------------------------


def test_a_clone_says_how_to_get_the_record_and_goes_on_with_it(top: Path, clone: Path) -> None:
    way = near(clone, "status").out.splitlines()[-1].removeprefix("get it: ")
    assert way == f"git batch pull origin {batch_id(top)}"
    near(clone, *way.split()[2:])
    assert pair(clone) == pair(top)
    assert near(clone, "verify").out.startswith("ok: ")
    near(clone, "retry", "two")
    (clone.parent / "go").touch()
    assert "nobody confirmed" in near(clone, "resume", status=3).err, "authority does not travel"
    near(clone, "resume", "--yes")


def test_record_branch_and_files_go_forward(top: Path, clone: Path) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    (top / "mine").write_text("untracked\n")
    said = near(top, "pull").out
    assert said.startswith(f"{batch_id(top)} is here now: '{BRANCH}' at ")
    assert pair(top) == pair(clone)
    assert (top / "src/two").read_text() == "2\n"
    assert git(top, "status", "--porcelain") == "?? batch.toml\n?? mine"
    assert near(top, "pull").out.startswith(f"{batch_id(top)} was up to date")


def test_a_branch_that_is_not_checked_out_goes_forward_alone(top: Path, clone: Path) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    git(top, "switch", "-q", "main")
    near(top, "pull")
    assert pair(top) == pair(clone)
    assert not (top / "src/two").exists()


def test_what_went_wrong_the_next_action_in_a_clone_was_a_look_at_what_is_not_there(
    top: Path, clone: Path
) -> None:
    near(clone, "pull")
    assert "git batch show two --output\n" in near(top, "status").out
    for shown in ("status", "report"):
        assert "git batch show two --" not in near(clone, shown).out
    assert "git batch show two\n" in near(clone, "status").out
    assert told(clone)["next_action"] == "git batch show two"
    # Output of the clone's own is there to be looked at.
    git(clone, "config", "user.name", "C")
    near(clone, "retry", "two")
    ended = near(clone, "resume", "--yes", status=1)
    assert "git batch show two --output\n" in near(clone, "status").out
    assert "git batch show two --output\n" in ended.out


def test_what_went_wrong_a_resume_in_a_clone_ended_with_a_look_at_what_is_not_there(
    top: Path, clone: Path
) -> None:
    near(clone, "pull")
    ended = near(clone, "resume", "--yes", status=1)
    assert "git batch show two\n" in ended.out


def test_what_went_wrong_a_fresh_clone_pulled_nothing(top: Path, clone: Path) -> None:
    git(clone, "switch", "-q", "main")
    git(clone, "branch", "-qD", BRANCH)
    assert near(clone, "pull").out.startswith(f"{batch_id(top)} is here now: '{BRANCH}' at ")
    assert pair(clone) == pair(top)


def test_of_several_that_nobody_asked_for_each_is_named_and_left(top: Path, clone: Path) -> None:
    git(clone, "switch", "-q", "main")
    git(clone, "branch", "-qD", BRANCH)
    name = batch_id(top)
    near(top, "abandon")
    git(top, "switch", "-q", "main")
    (top / "batch.toml").unlink()
    write(top, task("x", "exit 1"), name="other.toml")
    near(top, "start", "--yes", "other.toml", "--branch", "batch/x", status=1)
    near(top, "push")
    other = next(r for r in record(top).split() if name not in r).rpartition("/")[2]
    said = near(clone, "pull").out
    assert said.splitlines() == [
        "'origin' has 2 batches, none of which is here; name one",
        *(f"not here yet: git batch pull origin {batch}" for batch in sorted([name, other])),
    ]
    git(top, "switch", "-q", BRANCH)
    assert record(clone) == ""
    assert "has no batch 'other'" in near(clone, "pull", "origin", "other", status=2).err
    near(clone, "pull", "origin", name)
    assert record(clone).endswith(name)
    assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_records_that_went_apart_are_both_kept(top: Path, clone: Path) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    near(top, "skip", "two")
    before = pair(top)
    said = near(top, "pull", status=3)
    assert before[1] in said.err
    assert pair(clone)[1] in said.err
    assert pair(top) == before


def test_what_went_wrong_there_was_no_way_on_with_the_record_of_the_remote(
    top: Path, clone: Path, tmp_path: Path
) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    near(top, "skip", "two")
    before = pair(top)
    assert "what to do about it: git batch pull" in near(top, "fetch").out
    hints = near(top, "pull", status=3).hints
    [theirs] = [hint.split(": ", 1)[1] for hint in hints if hint.startswith("go on with theirs")]
    way, last = theirs.rsplit(" && ", 1)
    place = Path(way.split()[-1])
    (tmp_path / "else").mkdir()
    pasted(tmp_path / "else", way)
    near(place, *last.split()[2:])
    assert pair(place) == pair(clone)
    [ours] = [hint.split(": ", 1)[1] for hint in hints if hint.startswith("or go on with yours")]
    near(top, *ours.split()[2:])
    assert pair(top)[0] == before[0]


def test_what_went_wrong_a_rejected_push_relayed_advice_that_makes_drift(
    top: Path, clone: Path
) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    near(top, "skip", "two")
    said = near(top, "push", status=3).err
    assert "rejected" in said
    assert "git pull" not in said
    assert "integrate" not in said


def test_what_is_ahead_here_stays(top: Path, clone: Path) -> None:
    near(clone, "pull")
    go_on(clone)
    before = pair(clone)
    assert near(clone, "pull").out.startswith(f"{batch_id(top)} was up to date")
    assert pair(clone) == before


@pytest.mark.parametrize("what", ["changed", "in the way", "on top"])
def test_nothing_of_a_persons_is_touched(top: Path, clone: Path, what: str) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    if what == "changed":
        (top / "src/a").write_text("mine\n")
    elif what == "in the way":
        (top / "src/two").write_text("mine\n")
    else:
        by_hand(top)
    before = pair(top), git(top, "status", "--porcelain")
    said = near(top, "pull", status=3)
    expected = {"changed": "src/a", "in the way": "src/two", "on top": "is not below"}
    assert expected[what] in said.err
    assert (pair(top), git(top, "status", "--porcelain")) == before


def test_a_branch_in_another_working_tree_is_named(top: Path, clone: Path) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")
    git(top, "switch", "-q", "main")
    git(top, "worktree", "add", "-q", "../tree", BRANCH)
    assert "is checked out in" in near(top, "pull", status=3).err
    near(top.parent / "tree", "pull")
    assert pair(top) == pair(clone)


def test_what_a_remote_forged_is_not_taken_over(top: Path, clone: Path) -> None:
    git(clone, "switch", "-q", "--detach")
    git(clone, "fetch", "-q", "origin", "refs/notes/batch/*:refs/notes/batch/*")
    git(clone, "notes", f"--ref=batch/{batch_id(clone)}", "remove", "HEAD")
    git(clone, "update-ref", "-d", f"refs/heads/{BRANCH}")
    name = record(clone)
    tree = git(clone, "rev-parse", f"{name}^{{tree}}")
    message = git(clone, "show", "-s", "--format=%B", f"{name}~")
    forged = git(clone, "commit-tree", "-p", f"{name}~", "-m", message, tree)
    git(clone, "push", "-q", "origin", f"{forged}:{name}")
    before = pair(top)
    near(top, "pull", status=4)
    assert pair(top) == before


def test_a_pull_that_was_cut_short_is_completed_by_the_next_one(
    top: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near(clone, "pull")
    go_on(clone)
    near(clone, "push")

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pulling, "bring", cut)
        near(top, "pull", status=130)
    assert pair(top)[1] == pair(clone)[1]
    assert pair(top)[0] != pair(clone)[0]
    near(top, "pull")
    assert pair(top) == pair(clone)
    assert git(top, "status", "--porcelain") == "?? batch.toml"


def test_a_rebased_batch_is_followed(top: Path, clone: Path) -> None:
    near(clone, "pull")
    git(clone, "switch", "-q", "main")
    (clone / "upstream").write_text("moved\n")
    git(clone, "add", "upstream")
    git(clone, "commit", "-qm", "upstream")
    git(clone, "switch", "-q", BRANCH)
    near(clone, "rebase", "--onto", "main")
    near(clone, "resume", "--yes", status=1)
    git(clone, "push", "-q", "origin", "--delete", BRANCH)
    near(clone, "push")
    near(top, "pull")
    assert pair(top) == pair(clone)
    assert (top / "upstream").read_text() == "moved\n"


def test_a_task_can_share_nothing(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH_TASK", "one")
    for command in ("push", "pull"):
        near(top, command, status=3)


SAYS = r"printf '\033]0;title\007clear \033[2J bidi \342\200\256 \033[31mred\033[0m \377\n'"
SHOWN = "clear \\x1b[2J bidi \\u202e red \\xff"


def speaking(top: Path, command: str) -> None:
    """Have the remote say something on each push and fetch."""
    hook = top.parent / "origin.git/hooks/pre-receive"
    hook.write_text(f"#!/bin/sh\n{command}\n")
    hook.chmod(0o755)
    program = top.parent / "upload-pack"
    program.write_text(f'#!/bin/sh\n{{ {command}\n}} >&2\nexec git-upload-pack "$@"\n')
    program.chmod(0o755)
    git(top, "config", "remote.origin.uploadpack", str(program))


@pytest.mark.parametrize("command", ["push", "fetch", "pull"])
def test_what_went_wrong_a_remote_could_write_to_the_terminal_what_it_liked(
    top: Path, command: str
) -> None:
    speaking(top, SAYS)
    said = near(top, command).err
    assert SHOWN in said
    assert "\\x1b]0;title\\x07" in said
    assert not any(hidden in said for hidden in "\x1b\x07\u202e")


def test_what_a_remote_leaves_running_is_not_waited_for(top: Path) -> None:
    speaking(top, "echo begun; sleep 20 &")
    began = time.monotonic()
    assert "begun" in near(top, "fetch").err
    assert time.monotonic() - began < 10


def test_a_person_at_a_terminal_sees_how_far_it_is(top: Path) -> None:
    speaking(top, SAYS)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        argv("push"), cwd=top, env=environment(), stdout=subprocess.DEVNULL, stderr=theirs
    ):
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while more := os.read(ours, 4096):
                seen += more
    os.close(ours)
    assert b"Writing objects:  " in seen
    assert SHOWN.encode() in seen
    assert b"\x1b" not in seen


@pytest.mark.parametrize(
    "command", [("resume", "--yes"), ("retry", "two"), ("skip", "two")], ids=lambda c: c[0]
)
def test_what_went_wrong_a_record_behind_its_branch_went_on_and_parted_from_the_newer_one(
    top: Path, clone: Path, command: tuple[str, ...]
) -> None:
    near(clone, "pull")
    go_on(top)
    near(top, "push")
    git(clone, "pull", "-q", "origin", BRANCH)
    before = pair(clone)
    done = near(clone, *command, status=4)
    assert done.err.startswith("error: beyond the record: ")
    assert done.hints[0] == "git batch pull"
    assert pair(clone) == before
    near(clone, "pull")
    assert pair(clone) == pair(top)
    near(clone, "resume")


def test_what_was_forged_on_top_of_the_record_can_be_put_aside(top: Path) -> None:
    forged = f"x\n\nBatch-Id: {batch_id(top)}\nBatch-Task: two\nBatch-Plan: sha256:{'0' * 64}\n"
    head = git(top, "rev-parse", BRANCH)
    forged += f"Batch-Record: {head}\n"
    git(top, "commit", "-q", "--allow-empty", "-m", forged)
    before = pair(top)
    done = near(top, "resume", "--yes", status=4)
    assert pair(top) == before
    way = done.hints[1].partition(": ")[2]
    pasted(top, way)
    assert git(top, "rev-parse", BRANCH) == head
    go_on(top)
