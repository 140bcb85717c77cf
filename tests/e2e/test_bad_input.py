"""Bad input: refused before anything is written, with the reason and what to do about it.

Each case is a shell script that makes the situation. What must not change is everything: no ref,
no file, no object, in the working tree and in `.git`, byte for byte. A refusal comes before any
process is started, so most of them are asked for in this very one.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import batch, everything, here, task, write

PLAN = task("a", "echo one >src/new")
CONFLICT = """
git switch -qc side; echo side >src/a; git commit -qam side
git switch -q main; echo main >src/a; git commit -qam main
"""


@dataclass(frozen=True)
class Case:
    """What is wrong, and how it must be refused."""

    script: str
    status: int
    error: str
    hint: str
    args: tuple[str, ...] = ("start", "--yes")


REPOSITORIES = {
    "not a repository": Case("rm -rf .git", 3, "not in a git repository", "git init"),
    "bare": Case("git config core.bare true; rm -rf src", 3, "bare repository", "git worktree add"),
    "unborn HEAD": Case(
        "git switch -q --orphan empty; mkdir -p src", 3, "there is no commit yet", "git commit"
    ),
    "SHA-256": Case(
        "rm -rf .git; git init -q --object-format=sha256; git add src; git commit -qm base",
        3,
        "object format 'sha256'",
        "libgit2",
    ),
    "no identity": Case(
        "git config --global --unset user.name; git config --global --unset user.email",
        3,
        "git does not know who you are",
        "git config --global user.name",
    ),
}
TREES = {
    "tracked change": Case("echo z >>src/b", 3, "\n\tsrc/b\n", "git stash"),
    "staged change": Case("echo z >>src/b; git add src/b", 3, "\n\tsrc/b\n", "git stash"),
    "deleted file": Case("rm src/b", 3, "\n\tsrc/b\n", "git stash"),
    "changed mode": Case("chmod +x src/b", 3, "\n\tsrc/b\n", "git stash"),
    "intent to add": Case("echo >src/n; git add -N src/n", 3, "\n\tsrc/n\n", "git stash"),
    "untracked file": Case("mkdir tmp; echo >tmp/handoff.md", 3, "tmp/", "--allow-untracked"),
    "untracked file in scope": Case(
        "echo >src/x", 3, "src/x", ".gitignore", ("start", "--yes", "--allow-untracked")
    ),
    "name that acts on the terminal": Case(
        r"""touch "$(printf 'x\033[31my')" """, 3, r"x\033[31my", "--allow-untracked"
    ),
    "dirty submodule": Case(
        """
        git init -q ../other; git -C ../other commit -q --allow-empty -m one
        git -c protocol.file.allow=always submodule --quiet add ../other sub; git commit -qm sub
        echo z >sub/new
        """,
        3,
        "\n\tsub\n",
        "",
    ),
    "moved submodule": Case(
        """
        git init -q ../other; git -C ../other commit -q --allow-empty -m one
        git -c protocol.file.allow=always submodule --quiet add ../other sub; git commit -qm sub
        git -C sub commit -q --allow-empty -m two
        """,
        3,
        "\n\tsub\n",
        "",
    ),
}
OPERATIONS = {
    "merge": Case(f"{CONFLICT} git merge -q side || true", 3, "a merge is in", "merge --continue"),
    "clean merge": Case(
        "git switch -qc s; git commit -q --allow-empty -m s; git switch -q main;"
        "git commit -q --allow-empty -m m; git merge -q --no-commit --no-ff s",
        3,
        "a merge is in progress",
        "git merge --continue",
    ),
    "rebase": Case(f"{CONFLICT} git rebase -q side || true", 3, "a rebase is", "rebase --continue"),
    "interactive rebase": Case(
        "git commit -q --allow-empty -m x;"
        "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -qi HEAD~1",
        3,
        "a rebase is in progress",
        "git rebase --continue",
    ),
    "cherry-pick": Case(
        f"{CONFLICT} git cherry-pick side || true", 3, "a cherry-pick is", "cherry-pick --continue"
    ),
    "revert": Case(
        f"{CONFLICT} git commit -q --allow-empty -m x; echo y >src/a; git commit -qam y;"
        "git revert HEAD~2 || true",
        3,
        "a revert is in progress",
        "git revert --continue",
    ),
    "am": Case(
        f"{CONFLICT} git format-patch -q -1 side --stdout >.git/p; git am -q .git/p || true",
        3,
        "an am is in progress",
        "git am --continue",
    ),
    "bisect": Case("git bisect start", 3, "a bisect is in progress", "git bisect reset"),
}
NAMES = {
    "branch exists": Case("git branch batch/demo HEAD; git commit -q --allow-empty -m x",
                          3, "branch 'batch/demo' exists already", "--branch"),
    "branch is checked out": Case("git switch -qc batch/demo", 3, "exists already", "--branch"),
    "branch 'batch' in the way": Case("git branch batch", 3, "branch 'batch' is in the way",
                                      "git branch -m batch"),
    "branch below in the way": Case("git branch batch/demo/x", 3, "in the way of 'batch/demo'",
                                    "--branch"),
    "no name for a branch": Case("", 2, "'a..b' is not a name for a branch", "",
                                 ("start", "--yes", "--branch", "a..b")),
    "base is nonsense": Case("", 2, "'nonsense' does not name a commit", "",
                             ("start", "--yes", "--base", "nonsense")),
    "base is an option": Case("", 2, "'--all' does not name a commit", "",
                              ("start", "--yes", "--base=--all")),
    "base is a tree": Case("", 2, "does not name a commit", "",
                           ("start", "--yes", "--base", "HEAD^{tree}")),
}  # fmt: skip
PLANS = {
    "plan missing": Case("rm batch.toml", 2, "there is no plan", "git batch new"),
    "named plan missing": Case(
        "", 2, "can't read the plan 'no.toml'", "", ("start", "--yes", "no.toml")
    ),
    "plan is a folder": Case("", 2, "can't read the plan 'src'", "", ("start", "--yes", "src")),
    "no TOML": Case("echo '[[[' >batch.toml", 2, "batch.toml:1", ""),
    "no UTF-8": Case(r"printf '\xff' >batch.toml", 2, "batch.toml", ""),
    "empty": Case(": >batch.toml", 2, "version", ""),
    "no tasks": Case("head -3 batch.toml >x; mv x batch.toml", 2, "task", ""),
    "unknown key": Case("echo 'chek = \"true\"' >>batch.toml", 2, "chek", "check"),
    "empty check": Case("echo 'check = [\"\"]' >>batch.toml", 2, "check", ""),
    "check is no string": Case("echo 'check = 1' >>batch.toml", 2, "check", ""),
    "cycle with itself": Case("echo 'blocked_by = [\"a\"]' >>batch.toml", 2, "'a'", ""),
    "unknown id": Case("echo 'blocked_by = [\"b\"]' >>batch.toml", 2, "'b'", ""),
    "the same id twice": Case(
        r"""printf '[[task]]\nid = "A"\ntitle = "A"\nscope = ["x"]\nrun = "x"\n' >>batch.toml""",
        2,
        "'A'",
        "",
    ),
    "cycle": Case(
        r"""printf 'blocked_by = ["b"]\n[[task]]\nid = "b"\ntitle = "B"\nscope = ["x"]\n"""
        r"""run = "x"\nblocked_by = ["a"]\n' >>batch.toml""",
        2,
        "'a' -> 'b' -> 'a'",
        "",
    ),
    "deep nesting": Case(
        "{ printf 'x = '; head -c 20000 /dev/zero | tr '\\0' '['; } >batch.toml", 2, "batch", ""
    ),
    "too big": Case("head -c 17000000 /dev/zero | tr '\\0' '#' >>batch.toml", 2, "batch.toml", ""),
    "intent missing": Case(
        """sed -i 's/^run.*/agent = "x"\\nintent = "no.md"/' batch.toml
        printf '[agent.x]\\nrun = ["true"]\\n' >>batch.toml""",
        2,
        "no.md",
        "",
    ),
    "two plans": Case(
        "mkdir .batch; mv batch.toml .batch/one.toml; cp .batch/one.toml .batch/two.toml",
        2,
        "which plan",
        "git batch start .batch/two.toml",
    ),
    "command not found": Case(
        """sed -i 's/^run.*/run = ["no-such-program", "x"]/' batch.toml""",
        2,
        "task 'a': command 'no-such-program' is not found",
        "install it",
    ),
    "check's command not found": Case(
        """echo 'check = [["no-such-program", "x"]]' >>batch.toml""",
        2,
        "'no-such-program' is not found",
        "install it",
    ),
}
USES = {
    "time that is none": Case(
        "", 2, "neither a duration", "", ("start", "-y", "--expires", "soon")
    ),
    "time without offset": Case(
        "", 2, "neither a duration", "", ("start", "-y", "--deadline", "2099-01-01T00:00:00")
    ),
    "number that is none": Case("", 2, "neither a number", "", ("start", "-y", "--max-tasks", "x")),
    "more than nothing": Case("", 2, "git batch resume", "", ("start", "-y", "--max-tasks", "+1")),
    "limit of nothing": Case("", 2, "qa-failures", "", ("start", "-y", "--qa-failures", "0")),
    "no such option": Case("", 2, "No such option", "", ("start", "--no")),
    "no such command": Case("", 2, "did you mean 'start'", "", ("strat",)),
    "no batch to resume": Case("", 3, "there is no batch in this", "git batch start", ("resume",)),
    "no batch of that name": Case("", 2, "there is no batch 'x' here", "", ("resume", "x")),
    "no batch to decide about": Case("", 3, "there is no batch", "git batch start", ("retry", "a")),
    "nobody confirms": Case("", 3, "nobody confirmed", "--yes", ("start",)),
}
ALL = REPOSITORIES | TREES | OPERATIONS | NAMES | PLANS | USES


@pytest.mark.parametrize("name", ["not a repository", "tracked change", "no TOML", "two plans"])
def test_refused_in_a_process_of_its_own(repo: Path, name: str) -> None:
    case = ALL[name]
    write(repo, PLAN)
    subprocess.run(["sh", "-c", case.script], cwd=repo, check=True)
    done = batch(repo, *case.args, status=case.status)
    assert case.error in done.err
    assert done.out == ""


@pytest.mark.parametrize("name", ALL)
def test_refused_and_nothing_is_written(repo: Path, name: str) -> None:
    case = ALL[name]
    write(repo, PLAN)
    subprocess.run(["sh", "-c", case.script], cwd=repo, capture_output=True)
    before = everything(repo.parent)
    done = here(repo, *case.args, status=case.status)
    assert everything(repo.parent) == before
    assert case.error in done.err
    assert case.hint in done.err
    assert done.err.startswith("error: ") or done.err.startswith("Usage: "), done.err
    if case.status == 3:
        assert done.hints, "a refusal says what to do"


@pytest.mark.parametrize("name", [*TREES, *OPERATIONS, *NAMES])
def test_a_dry_run_says_the_same(repo: Path, name: str) -> None:
    """What a rehearsal lets pass, the evening's start must not refuse."""
    case = ALL[name]
    write(repo, PLAN)
    subprocess.run(["sh", "-c", case.script], cwd=repo, capture_output=True)
    done = here(
        repo, *(case.args if case.args[0] == "start" else ("start",)), "-n", status=case.status
    )
    assert case.error in done.err


# --- what is no obstacle --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("find . -name .git -prune -o -type f -exec touch {} +", ()),
        ("echo >noise.log; mkdir build; echo >build/x", ()),
        ("mkdir tmp; echo >tmp/handoff.md", ("--allow-untracked",)),
        ("git tag v1; git stash list; git gc -q", ()),
        ("git switch -q --detach", ()),
        ("git branch batch/demo", ()),  # at the base and nobody's: as after a crash of a start
    ],
    ids=["touched", "ignored", "allowed", "packed", "detached", "branch at base"],
)
def test_starts_without_complaint(repo: Path, script: str, args: tuple[str, ...]) -> None:
    write(repo, PLAN)
    subprocess.run(["sh", "-c", script], cwd=repo, check=True)
    batch(repo, "start", "--yes", *args)
    assert git(repo, "log", "-1", "--format=%s") == "Do a"
    assert not re.search("handoff|batch.toml", git(repo, "log", "--name-only", "--format="))


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("merge", "git merge --abort"),
        ("rebase", "git rebase --abort"),
        ("cherry-pick", "git cherry-pick --abort"),
        ("bisect", "git bisect reset"),
        ("tracked change", "git commit -qam done"),
        ("untracked file", "rm -r tmp"),
    ],
)
def test_once_it_is_mended_the_start_works(repo: Path, name: str, mend: str) -> None:
    write(repo, PLAN)
    subprocess.run(["sh", "-c", ALL[name].script], cwd=repo, capture_output=True)
    batch(repo, "start", "--yes", status=3)
    subprocess.run(["sh", "-c", mend], cwd=repo, check=True, capture_output=True)
    batch(repo, "start", "--yes")


def test_identity_from_the_environment_alone_is_enough(repo: Path) -> None:
    write(repo, PLAN)
    git(repo, "config", "--global", "--unset", "user.name")
    git(repo, "config", "--global", "--unset", "user.email")
    who = {f"GIT_{role}_{key}": f"{key}@x" for role in ("AUTHOR", "COMMITTER")
           for key in ("NAME", "EMAIL")}  # fmt: skip
    batch(repo, "start", "--yes", env=who)
    assert git(repo, "log", "-1", "--format=%an %ae") == "NAME@x EMAIL@x"


def test_a_plan_outside_the_repository_runs(repo: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = write(elsewhere, PLAN, name="my plan.toml")
    batch(repo, "start", "--yes", str(path))
    assert git(repo, "status", "--porcelain") == ""


def test_the_only_plan_below_dot_batch_is_found(repo: Path) -> None:
    (repo / ".batch").mkdir()
    write(repo / ".batch", PLAN, name="only.toml")
    batch(repo / "src", "start", "--yes")
    assert git(repo, "log", "-1", "--format=%s") == "Do a"


# --- a batch that is there already ----------------------------------------------------------------


def test_a_slug_is_taken_while_its_batch_is_not_finished(repo: Path) -> None:
    write(repo, task("a", "false"))
    batch(repo, "start", "--yes", status=1)
    git(repo, "switch", "-q", "main")
    before = everything(repo)
    done = batch(repo, "start", "--yes", "--branch", "other", status=3)
    assert everything(repo) == before
    assert "has the slug 'demo' and isn't finished" in done.err
    assert "git batch abandon demo-" in done.err
    batch(repo, "abandon")
    batch(repo, "start", "--yes", "--branch", "other", status=1)


@pytest.mark.parametrize(
    "args",
    [("start", "--yes"), ("start",), ("resume", "--yes"), ("retry", "a"), ("skip", "a"),
     ("stop",), ("abandon",)],
)  # fmt: skip
def test_a_task_can_start_renew_and_decide_nothing(
    repo: Path, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, task("a", "false"))
    batch(repo, "start", "--yes", status=1)
    before = everything(repo)
    monkeypatch.setenv("BATCH_TASK", "a")
    done = here(repo, *args, status=3)
    assert everything(repo) == before
    assert "inside task 'a'" in done.err


def beside_scratch(top: Path) -> dict[str, tuple[int, bytes]]:
    """Read everything but our own folder: locks, which say who held them last, and the like."""
    found = everything(top).items()
    return {name: file for name, file in found if not name.startswith(".git/batch/")}


def test_resume_on_another_branch_is_refused_with_the_way_back(repo: Path) -> None:
    write(repo, task("a", "false"), task("b", "echo >src/n", 'blocked_by = ["a"]'))
    batch(repo, "start", "--yes", status=1)
    batch(repo, "retry", "a")
    git(repo, "switch", "-q", "main")
    before = beside_scratch(repo)
    done = batch(repo, "resume", status=3)
    assert done.hints == ["git switch batch/demo"]
    assert beside_scratch(repo) == before


def test_resume_with_a_persons_changes_in_the_tree_is_refused(repo: Path) -> None:
    write(repo, task("a", "false"))
    batch(repo, "start", "--yes", status=1)
    batch(repo, "retry", "a")
    (repo / "src/b").write_text("mine\n")
    done = batch(repo, "resume", status=3)
    assert "src/b" in done.err
    assert (repo / "src/b").read_text() == "mine\n"


def test_an_edit_of_the_plan_file_has_no_effect_on_its_batch(repo: Path) -> None:
    """A running batch has the plan that was confirmed (semantics.md section 4)."""
    write(
        repo,
        task("a", 'test -n "$BATCH_FEEDBACK" && sed -i s/false/true/ batch.toml; echo >src/n'),
        task("b", "echo >src/m", 'check = "false"', "attempts = 1"),
    )
    batch(repo, "start", "--yes", status=1)
    write(repo, task("a", "true"), task("b", "echo >src/m", 'check = "true"'))
    batch(repo, "retry", "b")
    batch(repo, "resume", status=1)
    assert "check 'false'" in batch(repo, "report").out
