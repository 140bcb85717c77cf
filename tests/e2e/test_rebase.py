"""`git batch rebase`: a batch on a moved base, its commits replayed and certified anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from git_batch.core.ids import Oid
from git_batch.hooks.judging import judge
from git_batch.hooks.updates import Update
from git_batch.repo.pushed import PushedRepository
from tests.conftest import git
from tests.e2e.job import BRANCH, Done, committed, outcomes, refs, tasks, told, write
from tests.e2e.job import here as batch
from tests.e2e.job import task as entry

REF = f"refs/heads/{BRANCH}"
TALKS = 'echo "said by the agent" >"$BATCH_MESSAGE"; echo ran >>../runs; '
A = entry("a", f"{TALKS} echo one >src/one")
B = entry("b", f"{TALKS} echo two >>src/one", 'blocked_by = ["a"]', 'check = "test -e src/one"')


def moved(top: Path, path: str = "src/new", text: str = "moved\n", branch: str = "main") -> str:
    """Commit a file on main, without leaving the branch that is checked out."""
    blob = git(top, "hash-object", "-w", "--stdin", input=text.encode())
    index = {"GIT_INDEX_FILE": str(top / ".git/moved.index")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in index.items():
            patch.setenv(name, value)
        git(top, "read-tree", branch)
        git(top, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree = git(top, "write-tree")
    made = git(top, "commit-tree", "-p", branch, "-m", f"move {path}", tree)
    git(top, "update-ref", f"refs/heads/{branch}", made)
    return made


def ended(top: Path, *parts: str, status: int = 0) -> str:
    """Run a batch to its end; give where its branch is then."""
    write(top, *(parts or (A, B)))
    (top / "batch.toml").rename(top.parent / "plan.toml")
    batch(top, "start", "--yes", str(top.parent / "plan.toml"), status=status)
    return git(top, "rev-parse", BRANCH)


def runs(top: Path) -> int:
    """Count how often a command of `TALKS` ran."""
    return (top.parent / "runs").read_text().count("ran")


def clean(top: Path) -> bool:
    return git(top, "status", "--porcelain") == ""


def pushable(top: Path) -> bool:
    """Ask what the pre-push hook asks."""
    repo = PushedRepository({"GIT_DIR": str(top / ".git")})
    update = Update(REF, Oid(git(top, "rev-parse", REF)), None, REF)
    return not any(j.refused for j in judge(repo, [update], live=lambda record: False))


def is_whole(top: Path) -> bool:
    """Tell what verify and the hook say; they must agree."""
    said = batch(top, "verify", "demo", status=None).status
    assert pushable(top) == (said == 0)
    return said == 0


def refused(top: Path, *args: str, status: int = 3) -> Done:
    """Insist that a rebase is refused and writes nothing."""
    before, files = refs(top), git(top, "status", "--porcelain", "--ignored")
    done = batch(top, "rebase", *args, status=status)
    assert (refs(top), git(top, "status", "--porcelain", "--ignored")) == (before, files)
    return done


def sh(top: Path, command: str) -> None:
    """Do something as a person would, in a shell."""
    subprocess.run(["/bin/sh", "-c", command], cwd=top, check=True)


def subjects(top: Path) -> list[str]:
    return git(top, "log", "--reverse", "--format=%s", f"main..{BRANCH}").splitlines()


def message(top: Path, rev: str) -> str:
    """Give a commit's message without our trailers."""
    return git(top, "log", "-1", "--format=%B", rev).partition("\nBatch-Id:")[0].rstrip()


def test_a_completed_batch_is_replayed_on_a_moved_base(repo: Path) -> None:
    old = ended(repo)
    base, new = git(repo, "rev-parse", "main"), moved(repo)
    done = batch(repo, "rebase", "--onto", "main", "-m", "main moved")
    assert f"rebased from {base[:12]} onto {new[:12]}" in done.out
    assert "2 commits will be replayed" in done.out
    assert "go on: git batch resume\n" in done.out
    assert git(repo, "rev-parse", BRANCH) == new
    assert clean(repo)
    assert not (repo / "src/one").exists()
    assert is_whole(repo)
    assert told(repo)["base"] == new
    assert told(repo)["counts"]["pending"] == 2
    assert f"not since it was rebased onto {new[:10]}" in batch(repo, "status").out
    assert told(repo)["authorization"] is None
    assert f"from {base[:10]}, where it was at {old[:10]}" in batch(repo, "report").out
    asked = batch(repo, "resume", status=3)
    assert "the batch was rebased onto" in asked.out
    assert "2 tasks will not run, as the work is there: it is checked and committed:" in asked.out
    assert "nothing will run but checks" in asked.out
    batch(repo, "resume", "--yes")
    assert committed(repo) == ["a", "b"]
    assert told(repo)["state"] == "completed"
    assert (repo / "src/one").read_text() == "one\ntwo\n"
    assert runs(repo) == 2, "nothing was run again"
    assert clean(repo)
    assert is_whole(repo)
    assert git(repo, "rev-parse", f"{BRANCH}~2") == new
    assert git(repo, "merge-base", BRANCH, old) == base


def test_the_checks_run_again_and_one_that_fails_on_the_new_base_parks(repo: Path) -> None:
    check = 'check = "echo checked >>../checks; test ! -e src/new"'
    ended(
        repo,
        entry("a", "echo one >src/one", check),
        entry("b", "cat src/one >src/two", 'blocked_by = ["a"]'),
    )
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes", status=1)
    assert (repo.parent / "checks").read_text().count("checked") == 2
    assert outcomes(repo) == {"a": "check_failed", "b": "skipped"}
    assert is_whole(repo)
    assert "src/one" in batch(repo, "show", "a", "--diff").out


def test_message_and_author_are_those_of_the_old_commit(repo: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_AUTHOR_NAME", "Ann Other")
        patch.setenv("GIT_AUTHOR_EMAIL", "ann@example.org")
        patch.setenv("GIT_AUTHOR_DATE", "2001-02-03T04:05:06+0700")
        old = ended(repo)
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes")
    for back in ("", "~1"):
        assert message(repo, f"{BRANCH}{back}") == message(repo, f"{old}{back}")
        form = ("log", "-1", "--format=%an <%ae> %ai")
        assert git(repo, *form, f"{BRANCH}{back}") == git(repo, *form, f"{old}{back}")
    assert message(repo, BRANCH) == "Do b\n\nsaid by the agent"
    assert "Ann Other" in git(repo, "log", "-1", "--format=%an", BRANCH)
    assert git(repo, "log", "-1", "--format=%cn", BRANCH) == "T"


def test_a_message_hook_that_signs_off_once_leaves_the_message_as_it_was(repo: Path) -> None:
    hook = repo / ".git/hooks/commit-msg"
    signs = 'git interpret-trailers --in-place --if-exists doNothing --trailer "Seen-by: me" "$1"'
    hook.write_text(f"#!/bin/sh\n{signs}\n")
    hook.chmod(0o755)
    old = ended(repo)
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes")
    assert message(repo, BRANCH).count("Seen-by: me") == 1
    assert message(repo, BRANCH) == message(repo, old)
    assert is_whole(repo)


def test_a_conflict_parks_with_its_work_at_hand_and_a_retry_runs_the_command(repo: Path) -> None:
    old = ended(repo, A, B, entry("c", "echo c >src/c"))
    moved(repo, "src/one", "theirs\n")
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes", status=1)
    assert outcomes(repo) == {"a": "run_failed", "b": "skipped", "c": "committed"}
    first = git(repo, "rev-parse", f"{old}~2")
    assert tasks(repo)["a"]["reason"].startswith(f"the change of {first[:12]} does not apply")
    assert "'src/one'" in tasks(repo)["a"]["reason"]
    assert (repo / "src/one").read_text() == "theirs\n"
    assert is_whole(repo)
    assert "+one" in batch(repo, "show", "a", "--diff").out
    said = batch(repo, "show", "a").out
    assert first in said
    batch(repo, "retry", "a")
    batch(repo, "resume")
    assert (repo / "src/one").read_text() == "one\ntwo\n"
    assert runs(repo) == 3, "'a' was run again, 'b' was not"
    assert is_whole(repo)


def test_what_went_wrong_of_a_commit_that_could_not_be_replayed_each_view_said_another_look(
    repo: Path,
) -> None:
    first = ended(repo, A)
    moved(repo, "src/one", "theirs\n")
    batch(repo, "rebase", "--onto", "main")
    stopped = batch(repo, "resume", "--yes", status=1)
    look = f"git show {first}"
    assert f"next:   {look}\n" in stopped.out
    assert f"next:          {look}\n" in batch(repo, "status").out
    assert told(repo)["next_action"] == look
    report = batch(repo, "report").out
    assert f"    look:         {look}\n" in report
    assert "\nthen:\n    git batch resume\n" in report  # what was said above is not said again
    assert f"    kept:         {first}\n" in report
    shown = batch(repo, "show", "a").out
    assert shown.partition("\nnext:\n")[2].startswith(f"  {look}\n  git batch retry a\n")
    assert "git batch show a" not in stopped.out + report + shown
    assert "+one" in git(repo, *look.split()[1:])
    batch(repo, "retry", "a")
    batch(repo, "resume")
    assert look not in batch(repo, "show", "a").out


def test_a_persons_resolution_is_adopted_with_the_words_of_the_commit(repo: Path) -> None:
    ended(repo)
    moved(repo, "src/one", "theirs\n")
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes", status=1)
    (repo / "src/one").write_text("theirs\none\n")
    batch(repo, "adopt", "a")
    batch(repo, "resume")
    assert message(repo, f"{BRANCH}~1") == "Do a\n\nsaid by the agent"
    assert (repo / "src/one").read_text() == "theirs\none\ntwo\n"
    assert runs(repo) == 2
    assert is_whole(repo)


def test_a_change_that_the_new_base_has_is_unchanged_and_its_dependents_go_on(repo: Path) -> None:
    ended(repo)
    moved(repo, "src/one", "one\n")
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes")
    assert outcomes(repo) == {"a": "unchanged", "b": "committed"}
    assert committed(repo) == ["b"]
    assert is_whole(repo)


def test_a_base_that_does_not_descend_from_the_old_one(repo: Path) -> None:
    write(repo, A)
    (repo / "batch.toml").rename(repo.parent / "plan.toml")
    moved(repo, "src/extra")
    git(repo, "switch", "-q", "main")
    git(repo, "reset", "-q", "--hard")
    batch(repo, "start", "--yes", str(repo.parent / "plan.toml"))
    batch(repo, "rebase", "--onto", "main~1")
    assert not (repo / "src/extra").exists()
    batch(repo, "resume", "--yes")
    assert git(repo, "rev-parse", f"{BRANCH}~1") == git(repo, "rev-parse", "main~1")
    assert is_whole(repo)


def test_a_stopped_batch_goes_on_with_what_was_not_done(repo: Path) -> None:
    ended(repo, A, entry("x", "test -e src/new && echo x >src/x", "attempts = 1"), B, status=1)
    assert outcomes(repo)["x"] == "run_failed"
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "retry", "x")
    batch(repo, "resume", "--yes")
    assert committed(repo) == ["a", "b", "x"]
    assert runs(repo) == 2


def test_a_failed_batch_is_rebased_when_its_branch_is_back(repo: Path) -> None:
    old = ended(repo, A, entry("x", "exit 1", "attempts = 1"), status=1)
    batch(repo, "retry", "x")
    git(repo, "commit", "-q", "--amend", "-m", "mine")
    batch(repo, "resume", status=4)
    assert told(repo)["state"] == "failed"
    moved(repo)
    refused(repo, "--onto", "main")
    git(repo, "reset", "-q", "--hard", old)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes", status=1)
    assert outcomes(repo) == {"a": "committed", "x": "run_failed"}
    assert is_whole(repo)


@pytest.mark.parametrize("half", [False, True])
def test_a_rebase_that_was_cut_short_is_rolled_forward(repo: Path, half: bool) -> None:
    old = ended(repo)
    new = moved(repo)
    batch(repo, "rebase", "--onto", "main")
    git(repo, "reset", "-q", "--hard", old)  # as if it died after recording, before anything moved
    assert not is_whole(repo)
    said = batch(repo, "status").out
    assert "where it was before the batch was rebased" in said
    assert "git batch resume" in said
    if half:  # it died while the files were on their way
        (repo / "src/new").write_text("moved\n")
        (repo / "src/one").unlink()
    batch(repo, "resume", "--yes")
    assert git(repo, "rev-parse", f"{BRANCH}~2") == new
    assert committed(repo) == ["a", "b"]
    assert clean(repo)
    assert is_whole(repo)


def test_who_puts_the_old_line_back_later_is_told_where_the_batch_is(repo: Path) -> None:
    old = ended(repo)
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes")
    tip = git(repo, "rev-parse", BRANCH)
    git(repo, "reset", "-q", "--hard", old)
    assert not is_whole(repo)
    assert f"git reset --keep {tip}" in batch(repo, "status").out
    git(repo, "reset", "-q", "--keep", tip)
    assert is_whole(repo)


def test_blessed_commits_are_told_and_can_be_put_on_top_again(repo: Path) -> None:
    ended(repo)
    (repo / "src/hand").write_text("by hand\n")
    git(repo, "add", "src/hand")
    git(repo, "commit", "-qm", "by hand")
    hand = git(repo, "rev-parse", "HEAD")
    batch(repo, "bless")
    moved(repo)
    done = batch(repo, "rebase", "--onto", "main")
    assert f"git cherry-pick {hand}" in done.out
    batch(repo, "resume", "--yes")
    assert subjects(repo) == ["Do a", "Do b"]
    git(repo, "cherry-pick", hand)
    batch(repo, "bless")
    assert is_whole(repo)


def test_what_was_undone_is_not_replayed(repo: Path) -> None:
    ended(repo)
    batch(repo, "undo", "b")
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes")
    assert subjects(repo) == ["Do a"]
    assert outcomes(repo) == {"a": "committed", "b": "undone"}
    assert is_whole(repo)


def test_work_that_waits_for_a_review_is_applied_to_the_new_base_with_its_words(
    repo: Path,
) -> None:
    review = 'review = "human"'
    ended(repo, A, entry("r", f"{TALKS} echo r >src/r", review, 'blocked_by = ["a"]'), status=1)
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "review", "r", "--accept")
    batch(repo, "resume", "--yes")
    assert committed(repo) == ["a", "r"]
    assert message(repo, BRANCH) == "Do r\n\nsaid by the agent"
    assert is_whole(repo)


def test_the_words_of_kept_work_come_with_it_when_it_is_adopted(repo: Path) -> None:
    fails = 'check = "test -e ../ready"'
    ended(repo, entry("a", f"{TALKS} echo one >src/one", fails, "attempts = 1"), status=1)
    (repo.parent / "ready").touch()
    batch(repo, "adopt", "a", "--attempt", "1")
    batch(repo, "resume")
    assert message(repo, BRANCH) == "Do a\n\nsaid by the agent"


def test_a_replay_costs_nothing_of_the_bound_on_tasks(repo: Path) -> None:
    write(repo, A, B)
    (repo / "batch.toml").rename(repo.parent / "plan.toml")
    batch(repo, "start", "--yes", "--max-tasks", "2", str(repo.parent / "plan.toml"))
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes")
    assert told(repo)["state"] == "completed"
    assert told(repo)["budget"]["enrolled"] == 2


def test_the_old_line_and_the_new_base_stay_alive_without_any_branch(repo: Path) -> None:
    old = ended(repo)
    new = git(repo, "commit-tree", "-p", "main", "-m", "nobody's", "main^{tree}")
    batch(repo, "rebase", "--onto", new)
    record = git(repo, "for-each-ref", "--format=%(refname)", "refs/notes/batch")
    assert git(repo, "log", "-1", "--format=%P", record).split()[1:] == [old, new]
    git(repo, "switch", "-q", "main")
    git(repo, "branch", "-q", "-D", BRANCH)
    git(repo, "reflog", "expire", "--expire=all", "--all")
    git(repo, "gc", "-q", "--prune=now")
    assert git(repo, "cat-file", "-t", old) == "commit"
    git(repo, "switch", "-q", "-c", BRANCH, new)
    batch(repo, "resume", "--yes")
    assert committed(repo) == ["a", "b"]
    assert is_whole(repo)


def test_two_rebases_one_in_the_middle_of_the_other(repo: Path) -> None:
    ended(repo, A, B, entry("c", "echo c >src/c"))
    moved(repo, "src/one", "theirs\n")
    batch(repo, "rebase", "--onto", "main")
    batch(repo, "resume", "--yes", status=1)
    assert outcomes(repo)["b"] == "skipped"
    again = git(repo, "rev-parse", "main~1")
    batch(repo, "rebase", "--onto", again)
    batch(repo, "retry", "a")
    batch(repo, "resume", "--yes")
    assert sorted(committed(repo)) == ["a", "b", "c"]
    assert (repo / "src/one").read_text() == "one\ntwo\n"
    assert is_whole(repo)


def test_log_and_receipt_name_the_old_commits(repo: Path) -> None:
    old = ended(repo)
    base = git(repo, "rev-parse", "main")
    new = moved(repo)
    batch(repo, "rebase", "--onto", "main", "-m", "main moved")
    batch(repo, "resume", "--yes")
    first = git(repo, "rev-parse", f"{old}~1")
    line = next(x for x in batch(repo, "log").out.splitlines() if "rebase decided" in x)
    for word in (new[:10], old[:10], f"a was {first[:10]}", f"b was {old[:10]}", "main moved"):
        assert word in line
    events = told(repo, "log")["events"]
    event = next(e for e in events if "rebase decided" in e["subject"])
    assert (event["tasks"], event["commits"]) == (["a", "b"], [first, old])
    assert (event["head"], event["former"]) == (new, old)
    made = [e["commits"] for e in events if e["event"] == "committed"]
    assert made[-1] == [git(repo, "rev-parse", BRANCH)]
    ref = git(repo, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/notes/batch")
    assert f'replays = "{old}"' in git(repo, "notes", f"--ref={ref}", "show", BRANCH)
    listed = git(repo, "notes", f"--ref={ref}", "list")
    assert old not in listed, "its receipt is gone, it is certified no more"
    assert base not in listed
    assert old in batch(repo, "show", "b").out
    assert git(repo, "rev-parse", BRANCH) in batch(repo, "find", "b").out


def test_a_task_in_flight_is_refused(repo: Path) -> None:
    ended(repo, A, entry("b", "test -e ../go || exit 75; echo b >src/bb"), status=1)
    assert told(repo)["counts"]["enrolled"] == 1
    moved(repo)
    done = refused(repo, "--onto", "main")
    assert "'b' is in flight" in done.err
    assert "git batch resume" in done.hints[0]
    (repo.parent / "go").touch()
    batch(repo, "resume")
    batch(repo, "rebase", "--onto", "main")


CASES = {
    "no commit": (("--onto", "nonsense"), 2, "'nonsense' is no commit here"),
    "no option": ((), 2, "--onto"),
    "the same": (("--onto", "main~1"), 3, "is based on 'main~1' already"),
    "its own branch": (("--onto", BRANCH), 3, "contains commits of batch"),
    "merged": (("--onto", "merged"), 3, "contains commits of batch"),
    "no batch": (("nothing", "--onto", "main"), 2, "no batch 'nothing'"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_base_that_can_not_be_is_refused(repo: Path, case: str) -> None:
    ended(repo)
    moved(repo)
    tree = git(repo, "rev-parse", f"{BRANCH}^{{tree}}")
    merge = git(repo, "commit-tree", "-p", "main", "-p", BRANCH, "-m", "merge", tree)
    git(repo, "branch", "merged", merge)
    args, status, said = CASES[case]
    assert said in refused(repo, *args, status=status).err
    assert is_whole(repo)


def test_a_base_with_commits_of_the_line_that_was_left_is_refused(repo: Path) -> None:
    old = ended(repo)
    moved(repo)
    batch(repo, "rebase", "--onto", "main")
    assert "contains commits of batch" in refused(repo, "--onto", old).err


STATES = {
    "dirty": ("echo x >>src/a", "has changes that no task made"),
    "untracked": ("echo x >src/mine", "src/mine"),
    "elsewhere": ("git switch -q main", "is not checked out"),
    "on top": ("git commit -q --allow-empty -m mine", "on top of the recorded"),
    "an operation": (
        "git bisect start -q 2>/dev/null; git cherry-pick -n main; "
        "git rev-parse main >.git/CHERRY_PICK_HEAD",
        "in progress",
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_a_repository_that_is_not_ready_is_refused(repo: Path, state: str) -> None:
    ended(repo)
    moved(repo)
    command, said = STATES[state]
    sh(repo, command)
    assert said in refused(repo, "demo", "--onto", "main").err


def test_an_abandoned_batch_is_refused(repo: Path) -> None:
    ended(repo, entry("a", "exit 1"), status=1)
    batch(repo, "abandon")
    moved(repo)
    assert "is abandoned" in refused(repo, "--onto", "main").err


def test_a_task_can_not_rebase(repo: Path) -> None:
    ended(repo)
    moved(repo)
    before = refs(repo)
    done = batch(repo, "rebase", "--onto", "main", status=3, env={"BATCH_TASK": "a"})
    assert "inside task 'a'" in done.err
    assert refs(repo) == before


WAYS = {
    "a file": ("build/x", "mkdir build; echo mine >build/x"),
    "a folder for a file": ("build", "mkdir build; echo mine >build/x"),
    "a file for a folder": ("own.log/x", "echo mine >own.log"),
}


@pytest.mark.parametrize("way", WAYS)
def test_ignored_files_in_the_way_are_told_before_anything_is_written(repo: Path, way: str) -> None:
    ended(repo)
    path, command = WAYS[way]
    moved(repo, path)
    sh(repo, command)
    assert "are in the way" in refused(repo, "--onto", "main").err
    found = repo / ("own.log" if "own" in path else "build/x")
    assert found.read_text() == "mine\n"


def test_what_only_the_old_base_ignored_stays_where_it_is(repo: Path) -> None:
    ended(repo)
    moved(repo, ".gitignore", "build/\n")
    (repo / "own.log").write_text("mine\n")
    (repo / "build").mkdir()
    (repo / "build/x").write_text("mine\n")
    batch(repo, "rebase", "--onto", "main")
    assert (repo / "own.log").read_text() == "mine\n"
    assert (repo / "build/x").read_text() == "mine\n"
    assert (repo / ".gitignore").read_text() == "build/\n"
    assert "own.log" in batch(repo, "resume", "--yes", status=3).err
    (repo / "own.log").unlink()
    batch(repo, "resume", "--yes")
    assert committed(repo) == ["a", "b"]
