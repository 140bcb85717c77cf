"""The person's own commit hooks (case 8): they run as for `git commit`, and are never bypassed."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, batch, committed, outcomes, task, tasks, told, write

ONE = task("one", "echo one >>src/a")
LINE = "echo hook >>src/a"
NESTED = "env -u GIT_INDEX_FILE git"


def hook(top: Path, name: str, script: str, folder: str = ".git/hooks") -> Path:
    """Install a hook."""
    path = top / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def content(top: Path, path: str = "src/a") -> str:
    """Read a file of the batch's branch."""
    return git(top, "show", f"{BRANCH}:{path}")


def is_clean(top: Path) -> None:
    """See that nothing is left in working tree and index."""
    assert git(top, "status", "--porcelain", "-uall") == "?? batch.toml"


def parsed(top: Path) -> list[str]:
    """Read the trailers of the tip's message as git does."""
    message = git(top, "log", "-1", "--format=%B", BRANCH).encode()
    return git(top, "interpret-trailers", "--parse", input=message).splitlines()


# --- what a hook changes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stage", ["git add src/a", "", "git commit -qm mine --no-verify src/a"], ids=str
)
def test_what_pre_commit_changes_is_committed_and_checked_again(
    repo: Path, tmp_path: Path, stage: str
) -> None:
    hook(repo, "pre-commit", f"{LINE}\n{stage}")
    seen = tmp_path / "seen"
    write(repo, task("one", "echo one >>src/a", f"check = 'cat src/a >>{seen}; echo - >>{seen}'"))
    done = batch(repo, "start", "-y")
    assert content(repo) == "a\none\nhook"
    assert seen.read_text() == "a\none\n-\na\none\nhook\n-\n"
    assert "the pre-commit hook changed 'src/a'" in done.err
    assert committed(repo) == ["one"]
    is_clean(repo)


@pytest.mark.parametrize(
    ("script", "more", "again"),
    [
        (LINE, 'check = "true"', True),
        (LINE, "", False),
        (f"{LINE}; echo x >stray", 'check = "true"', False),
    ],
)
def test_what_went_wrong_it_was_said_to_be_checked_again_where_it_was_not(
    repo: Path, script: str, more: str, again: bool
) -> None:
    hook(repo, "pre-commit", script)
    write(repo, task("one", "echo one >>src/a", more, "attempts = 1"))
    done = batch(repo, "start", "-y", status=int("stray" in script))
    assert ("checked again" in done.err) is again


def test_a_hook_that_stages_part_of_what_it_changed_leaves_nothing_behind(repo: Path) -> None:
    hook(repo, "pre-commit", f"{LINE}; echo hook >>src/b; git add src/a")
    write(repo, ONE)
    batch(repo, "start", "-y")
    assert (content(repo), content(repo, "src/b")) == ("a\none\nhook", "b\nhook")
    is_clean(repo)


def test_a_change_that_was_staged_long_ago_is_seen(repo: Path) -> None:
    # The index is then older than the hook's change, so git leaves it alone in the next scan.
    hook(repo, "pre-commit", f'{LINE}; git add src/a; touch -d "1 hour ago" "$GIT_INDEX_FILE"')
    write(repo, ONE)
    batch(repo, "start", "-y")
    assert content(repo) == "a\none\nhook"


def test_checks_that_fail_on_what_a_hook_changed_park_the_task(repo: Path) -> None:
    hook(repo, "pre-commit", LINE)
    write(repo, task("one", "echo one >>src/a", 'check = "! grep hook src/a"', "attempts = 1"))
    batch(repo, "start", "-y", status=1)
    found = tasks(repo)["one"]
    assert found["outcome"] == "check_failed"
    assert "after the pre-commit hook changed 'src/a'" in found["reason"]
    assert committed(repo) == []
    is_clean(repo)


@pytest.mark.parametrize(
    ("script", "outcome", "word"),
    [
        ("echo x >stray; git add stray", "scope_refused", "stray"),
        ("echo x >stray", "scope_refused", "stray"),
        ("rm .gitignore", "scope_refused", ".gitignore"),
        ("chmod +x .gitignore", "scope_refused", ".gitignore"),
        (
            f"{NESTED} init -q src/in; {NESTED} -C src/in commit -qm x --allow-empty",
            "scope_refused",
            "src/in",
        ),
        ("echo x >src/kept", "protected_changed", "src/kept"),
        ("git checkout -q HEAD -- src/a", "hook_refused", "undid the whole change"),
        ("git switch -q main 2>/dev/null || git checkout -q -f main", "history_changed", "main"),
        ("git reset -q --soft HEAD~1", "history_changed", "batch/demo"),
    ],
)
def test_what_a_hook_may_not_change_is_refused(
    repo: Path, script: str, outcome: str, word: str
) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    base = git(repo, "rev-parse", "main")
    hook(repo, "pre-commit", f"unset GIT_DIR\n{script}")
    write(repo, task("one", "echo one >>src/a", 'protect = ["src/kept"]', "attempts = 1"))
    batch(repo, "start", "-y", status=1)
    found = tasks(repo)["one"]
    assert (found["outcome"], word in found["reason"]) == (outcome, True), found["reason"]
    assert git(repo, "rev-parse", "main", BRANCH).split() == [base, base]
    assert git(repo, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    is_clean(repo)


@pytest.mark.parametrize(
    "script",
    [
        "git rm -q --cached src/new",
        "git update-index --cacheinfo 100644,$(echo other | git hash-object -w --stdin),src/a",
        "cp src/a keep.log; echo part >src/a; git add src/a; mv keep.log src/a",
        "git reset -q",
        'printf "0 %040d\\t src/a\\n" 0 | git update-index --index-info; git reset -q HEAD src/a',
    ],
)
def test_an_index_that_differs_from_the_files_is_refused(repo: Path, script: str) -> None:
    hook(repo, "pre-commit", script)
    write(repo, task("one", "echo one >>src/a; echo new >src/new", "attempts = 1"))
    batch(repo, "start", "-y", status=1)
    found = tasks(repo)["one"]
    assert found["outcome"] == "hook_refused"
    assert "different in the index and in the working tree" in found["reason"]
    assert committed(repo) == []
    is_clean(repo)


def test_an_index_with_conflicts_is_refused(repo: Path) -> None:
    blob = "$(git rev-parse HEAD:src/a)"
    lines = "".join(f"100644 {blob} {stage}\\tsrc/a\\n" for stage in (1, 2, 3))
    hook(repo, "pre-commit", f'printf "{lines}" | git update-index --index-info')
    write(repo, task("one", "echo one >>src/b", "attempts = 1"))
    batch(repo, "start", "-y", status=1)
    assert outcomes(repo) == {"one": "hook_refused"}
    is_clean(repo)


def test_a_hook_that_stashes_what_is_not_staged_works(repo: Path) -> None:
    # As frameworks do it: nothing is unstaged, so there must be nothing to stash.
    script = """
patch=$(mktemp)
git diff --no-ext-diff --binary >"$patch"
test -s "$patch" && { echo "unstaged changes"; exit 1; }
git diff --cached --name-only -z --diff-filter=ACM | xargs -0 sed -i s/one/ONE/
git diff --quiet || git add -u
git stash list | grep . && exit 1
exit 0
"""
    hook(repo, "pre-commit", script)
    write(repo, ONE)
    batch(repo, "start", "-y")
    assert content(repo) == "a\nONE"
    is_clean(repo)


def test_the_next_task_is_not_blamed_for_what_a_hook_did(repo: Path) -> None:
    hook(repo, "pre-commit", "git rev-parse -q --verify refs/seen || { echo x >src/stray.tmp; }")
    write(
        repo,
        task("one", "echo one >>src/a", 'protect = ["src/*.tmp"]', "attempts = 1"),
        task("two", "git update-ref refs/seen HEAD; echo two >>src/b"),
    )
    batch(repo, "start", "-y", status=1)
    assert outcomes(repo) == {"one": "protected_changed", "two": "committed"}
    assert git(repo, "diff", "--name-only", "main", BRANCH) == "src/b"


# --- a hook that refuses --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pre-commit", "prepare-commit-msg", "commit-msg"])
@pytest.mark.parametrize("before", ["", LINE], ids=["only", "and changes"])
def test_a_refusing_hook_parks_the_task_with_what_it_said(
    repo: Path, tmp_path: Path, name: str, before: str
) -> None:
    runs = tmp_path / "runs"
    hook(repo, name, f"echo x >>{runs}\n{before}\necho secret found; exit 1")
    write(repo, ONE, task("two", "echo two >>src/b", 'blocked_by = ["one"]'))
    batch(repo, "start", "-y", status=1)
    found = tasks(repo)
    assert found["one"]["outcome"] == "hook_refused"
    assert f"the {name} hook refused the commit: secret found" in found["one"]["reason"]
    assert found["two"]["outcome"] == "skipped"
    assert "secret found" in batch(repo, "show", "one", "--output").out
    assert runs.read_text() == "x\n" * 2, "as often as the task is tried"
    assert committed(repo) == []
    kept = [attempt["ref"] for attempt in tasks(repo, "report")["one"]["history"]]
    assert "one" in git(repo, "show", f"{kept[0]}:src/a")
    is_clean(repo)


def test_what_a_hook_said_is_told_to_the_next_attempt(repo: Path) -> None:
    hook(repo, "pre-commit", 'grep -q told src/a || { echo "say told"; exit 1; }')
    run = 'if grep -q "say told" "$BATCH_FEEDBACK"; then echo told >>src/a; else echo >>src/a; fi'
    write(repo, task("one", run))
    batch(repo, "start", "-y")
    assert tasks(repo)["one"]["attempts"] == 2


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("sleep 60", "timed out"),
        ("kill -9 $$", "signal 9"),
        ("exec /no/such/program", "not found"),
        ("rm .git/COMMIT_EDITMSG", "removed the message"),
        (': >"$1"', "is empty"),
        ('echo "# only this" >"$1"; sed -i d "$1"', "is empty"),
        ('printf "caf\\351\\n" >"$1"', "not UTF-8"),
        ('printf "a\\0b\\n" >"$1"', "NUL"),
        ('printf "\\nBatch-Task: other\\n" >>"$1"', "Batch-"),
        ('printf "\\nbatch-id: other\\n" >>"$1"', "Batch-"),
        ('printf "\\n---\\nText\\n" >>"$1"', "not read"),
        ("echo x >>src/b", "changed files"),
    ],
)
def test_a_commit_msg_hook_that_does_wrong_refuses(repo: Path, script: str, word: str) -> None:
    hook(repo, "commit-msg", script)
    write(repo, task("one", "echo one >>src/a", "attempts = 1", 'timeout = "2s"'))
    started = time.monotonic()
    batch(repo, "start", "-y", status=1)
    assert time.monotonic() - started < 30
    found = tasks(repo)["one"]
    assert found["outcome"] == "hook_refused"
    assert word in found["reason"]
    assert committed(repo) == []
    is_clean(repo)


# --- the message ----------------------------------------------------------------------------------


def test_a_hook_may_add_a_trailer(repo: Path) -> None:
    hook(repo, "commit-msg", 'printf "\\nChange-Id: I123\\n" >>"$1"')
    hook(repo, "prepare-commit-msg", 'test "$2" = message && sed -i "1s/^/[TICKET-1] /" "$1"')
    write(repo, ONE)
    batch(repo, "start", "-y")
    assert git(repo, "log", "-1", "--format=%s", BRANCH) == "[TICKET-1] Do one"
    keys = [line.split(":")[0] for line in parsed(repo)]
    assert keys == ["Change-Id", "Batch-Id", "Batch-Task", "Batch-Plan", "Batch-Record"]


def test_the_message_hooks_see_no_trailers_of_ours_and_the_usual_file(repo: Path) -> None:
    copy = repo.parent / "seen"
    hook(repo, "commit-msg", f'cp "$1" {copy}; test "$1" -ef .git/COMMIT_EDITMSG')
    write(repo, task("one", "echo one >>src/a", 'message = "Why."'))
    batch(repo, "start", "-y")
    assert copy.read_text() == "Do one\n\nWhy.\n"


# --- where hooks lie, and what they are given -----------------------------------------------------


@pytest.mark.parametrize("where", [".husky", "absolute", "~", "linked"])
def test_hooks_path_is_honoured(repo: Path, home: Path, where: str) -> None:
    places = {".husky": ".husky/_", "absolute": str(repo.parent / "h"), "~": "~/h"}
    top = repo
    if where == "linked":
        top = repo.parent / "linked"
        git(repo, "worktree", "add", "-q", "-b", "other", str(top))
        hook(repo, "pre-commit", LINE)
    else:
        git(repo, "config", "core.hooksPath", places[where])
        folder = places[where].replace("~", str(home))
        hook(repo, "pre-commit", LINE, folder)
    if where == ".husky":
        git(repo, "add", ".husky")
        git(repo, "commit", "-qm", "husky", "--no-verify")
    write(top, ONE)
    batch(top, "start", "-y")
    assert content(top) == "a\none\nhook"


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
def test_a_hook_that_is_not_executable_is_ignored(repo: Path, name: str) -> None:
    hook(repo, name, "exit 1").chmod(0o644)
    write(repo, ONE)
    batch(repo, "start", "-y")
    assert committed(repo) == ["one"]


@pytest.mark.parametrize("linked", [False, True], ids=["main", "linked"])
def test_hooks_are_given_what_git_commit_gives_them(repo: Path, linked: bool) -> None:
    top = repo
    if linked:
        top = repo.parent / "linked"
        git(repo, "worktree", "add", "-q", "-b", "other", str(top))
    seen = repo.parent / "seen"
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"):
        dump = f'env -0 >{seen}/{name}; pwd >{seen}/{name}.pwd; echo "$2" >{seen}/{name}.args'
        stdin = f"readlink /proc/self/fd/0 >{seen}/{name}.stdin"
        listed = f"git diff --cached --name-only -- '*a' >{seen}/{name}.names"
        hook(repo, name, f"{dump}; {stdin}; {listed}")

    def dumps(folder: Path) -> dict[str, dict[str, str]]:
        found = {}
        for path in folder.iterdir():
            text = path.read_text()
            if path.suffix:
                found[path.name] = {"": text}
                continue
            pairs = (line.split("=", 1) for line in text.split("\0") if line)
            found[path.name] = {
                key: value
                for key, value in pairs
                if key.startswith("GIT_") and key != "GIT_AUTHOR_DATE"
            }
        return found

    seen.mkdir()
    (top / "src/a").write_text("by hand\n")
    subprocess.run(["git", "commit", "-qam", "by hand"], cwd=top, check=True)
    theirs = dumps(seen)
    write(top, ONE)
    batch(top, "start", "-y")
    ours = dumps(seen)
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        given = ours[name]
        index = given.get("GIT_INDEX_FILE")
        assert {k: given.get(k) for k in expected if k != "GIT_INDEX_FILE"} == {
            k: v for k, v in expected.items() if k != "GIT_INDEX_FILE"
        }, name
        if index:
            assert Path(index).is_absolute()


def test_no_hardening_of_ours_reaches_a_hook(repo: Path) -> None:
    seen = repo.parent / "seen"
    hook(repo, "pre-commit", f"env >{seen}; git config --show-scope --get-all core.hooksPath; true")
    write(repo, ONE)
    batch(repo, "start", "-y", env={"GIT_DIR": str(repo / ".git"), "GIT_LITERAL_PATHSPECS": "1"})
    text = seen.read_text()
    for name in ("GIT_LITERAL_PATHSPECS", "GIT_NO_REPLACE_OBJECTS", "GIT_CONFIG_PARAMETERS"):
        assert name not in text


def test_no_editor_can_open_in_a_hook(repo: Path) -> None:
    hook(repo, "commit-msg", 'test "$GIT_EDITOR" = : && $(git var GIT_EDITOR) "$1"')
    write(repo, ONE)
    batch(repo, "start", "-y", env={"GIT_EDITOR": "false", "EDITOR": "false"})
    assert committed(repo) == ["one"]


def test_what_a_hook_leaves_running_is_ended_and_named(repo: Path) -> None:
    mark = repo.parent / "mark"
    hook(repo, "pre-commit", f'setsid sh -c "sleep 3; touch {mark}; sleep 60" & exit 0')
    write(repo, ONE)
    started = time.monotonic()
    done = batch(repo, "start", "-y")
    assert time.monotonic() - started < 20
    assert "ended what 'hook pre-commit' left running" in done.err
    assert committed(repo) == ["one"]
    time.sleep(3)
    assert not mark.exists()


# --- post-commit ----------------------------------------------------------------------------------


def test_post_commit_runs_once_for_each_commit_with_the_persons_index(repo: Path) -> None:
    seen = repo.parent / "seen"
    dump = f'git log -1 --format=%s >>{seen}; git status --porcelain >>{seen}; echo "$#" >>{seen}'
    hook(repo, "post-commit", dump)
    write(repo, ONE, task("two", "echo two >>src/b"))
    batch(repo, "start", "-y")
    assert seen.read_text() == "Do one\n?? batch.toml\n0\nDo two\n?? batch.toml\n0\n"


def test_post_commit_that_fails_is_noted_and_changes_nothing(repo: Path) -> None:
    hook(repo, "post-commit", "echo no network; exit 3")
    write(repo, ONE, task("two", "echo two >>src/b"))
    done = batch(repo, "start", "-y")
    assert done.err.count("the post-commit hook failed: no network") == 2
    assert committed(repo) == ["one", "two"]


@pytest.mark.parametrize("script", ["echo x >>src/b", "echo x >new", "rm src/b"])
def test_what_post_commit_changes_is_not_taken_for_a_tasks_work(repo: Path, script: str) -> None:
    hook(repo, "post-commit", script)
    write(repo, ONE, task("two", "echo two >>src/c"))
    done = batch(repo, "start", "-y", status=3)
    assert "the post-commit hook changed" in done.err
    assert outcomes(repo) == {"one": "committed", "two": None}
    hook(repo, "post-commit", "exit 0")
    way = done.hints[0].removeprefix("commit them elsewhere, or put them away: ")
    assert way == ("git stash push -u -- new" if "new" in script else "git stash")
    subprocess.run(way, shell=True, cwd=repo, check=True)
    assert (repo / "batch.toml").exists(), "only what is in the way is put away"
    batch(repo, "resume")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "diff", "--name-only", f"{BRANCH}~1", BRANCH) == "src/c"


def test_post_commit_runs_at_most_once_whatever_is_killed(repo: Path) -> None:
    runs = repo.parent / "runs"
    hook(repo, "post-commit", f"echo x >>{runs}; kill -9 $(ps -o ppid= -p $PPID)")
    write(repo, ONE)
    batch(repo, "start", "-y", status=-9)
    hook(repo, "post-commit", f"echo y >>{runs}")
    assert json.dumps(told(repo)["tasks"][0]["outcome"]) == '"committed"'
    batch(repo, "resume", "--kill-orphans")
    assert committed(repo) == ["one"]
    assert runs.read_text() == "x\n"


def test_interrupted_in_a_hook_the_task_is_run_again(repo: Path) -> None:
    flag = repo.parent / "flag"
    quoted = shlex.quote(str(flag))
    script = (
        f"test -e {quoted} || {{ touch {quoted}; kill -INT $(ps -o ppid= -p $PPID); sleep 9; }}"
    )
    hook(repo, "pre-commit", script)
    write(repo, task("one", "echo one >>src/a", "attempts = 1"))
    batch(repo, "start", "-y", status=130)
    is_clean(repo)
    batch(repo, "resume")
    assert committed(repo) == ["one"]
    ends = [attempt["outcome"] for attempt in tasks(repo, "report")["one"]["history"]]
    assert ends == ["interrupted", "committed"]
