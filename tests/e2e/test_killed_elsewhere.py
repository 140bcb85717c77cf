"""A run that is killed in one working tree, after its task planted something all of them share.

In another tree nothing of it may run: what would is refused, and says where to go. What is planted
leaves a mark when it is run, which is looked for after every command.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from tests.conftest import git
from tests.e2e.beside import beside, ended, opened
from tests.e2e.job import Done, here, outcomes, task, told, write
from tests.e2e.near import pasted
from tests.e2e.plants import PLANTS, asked_to_verify, killed, killer
from tests.e2e.test_starting_fast import loaded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and SIGKILL")

SHARED = '"$(git rev-parse --git-common-dir)"'
EVIL = PLANTS["fsmonitor"]
FILTER = (
    'git config filter.evil.clean "touch $MARK; cat"; '
    f'echo "* filter=evil" >{SHARED}/info/attributes'
)


def like_ours(hook: str, where: str) -> str:
    """Plant a hook that looks as if it were ours: in a folder that the configuration names, too."""
    folder, set_path = f"{SHARED}/hooks", ":"
    if where == "config":
        folder, set_path = "src/h", 'git config core.hooksPath "$PWD/src/h"'
    script = f'printf "#!/bin/sh\\n# git-batch: {hook}\\ntouch $MARK\\n"'
    return f"mkdir -p {folder}; {script} >{folder}/{hook}; chmod +x {folder}/{hook}; {set_path}"


class Trees(Struct):
    """Two working trees: in one a run is to be killed, in the other a person goes on.

    Attributes:
        batch: of the run that was killed.
    """

    bad: Path
    good: Path
    batch: str = ""

    def plant(self, command: str) -> None:
        """Have a task plant something and kill its run."""
        write(self.bad, task("bad", killer(command)))
        killed(self.bad, "start", "--yes")
        self.batch = git(
            self.good, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/notes/batch/demo-*"
        )

    def refused(self, *command: str) -> Done:
        """Insist that a command is refused, and sends to the other tree."""
        done = here(self.good, *command, status=3)
        assert f"was killed in the working tree '{self.bad}' while 'bad' of batch" in done.err
        assert done.hints[-1].endswith(f": cd {self.bad} && git batch resume {self.batch}")
        return done


def other(top: Path, *tasks: str, slug: str = "other") -> None:
    """Write the plan of another batch, with a name as its slug is."""
    path = write(top, *tasks, name=f"{slug}.toml")
    path.write_text(path.read_text().replace("demo", slug))


@pytest.fixture(params=["linked", "main"])
def trees(repo: Path, place: Path, request: pytest.FixtureRequest) -> Trees:
    """Give both, with a batch that stopped for a person where that one goes on."""
    git(repo, "init", "-q", "--bare", str(place / "remote.git"))
    git(repo, "remote", "add", "origin", str(place / "remote.git"))
    side = place / "side"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    with (repo / ".git/info/exclude").open("a") as file:
        file.write("*.toml\n")
    bad, good = (side, repo) if request.param == "linked" else (repo, side)
    other(good, task("x", "echo x >src/x"), task("y", "exit 1", "attempts = 1"))
    here(good, "start", "other.toml", "--yes", status=1)
    return Trees(bad, good)


@pytest.mark.parametrize("command", ["push", "fetch", "pull"])
def test_what_went_wrong_what_asks_a_remote_ran_what_was_planted_in_another_tree(
    trees: Trees, mark: Path, command: str
) -> None:
    here(trees.good, "skip", "y")
    here(trees.good, "resume")
    pack = 'git config remote.origin.{0}pack "touch $MARK; git-{0}-pack"'
    trees.plant("; ".join(pack.format(way) for way in ("receive", "upload")))
    done = trees.refused(command)
    assert "config (changed)" in done.err
    assert not mark.exists()
    here(trees.bad, "resume", "--put-back")
    for free in ("push", command):
        here(trees.good, free)
    assert not mark.exists()


@pytest.mark.parametrize("command", ["status", "install"])
@pytest.mark.parametrize("where", ["config", "hooks"])
def test_what_went_wrong_a_hook_planted_from_another_tree_was_tried(
    trees: Trees, mark: Path, command: str, where: str
) -> None:
    trees.plant(like_ours("pre-push", where))
    trees.refused("hooks", command)
    assert not mark.exists()
    here(trees.bad, "resume", "--put-back")
    here(trees.good, "hooks", command, status=None)
    assert not mark.exists()


@pytest.mark.parametrize("command", ["status", "install"])
@pytest.mark.parametrize("where", ["config", "hooks"])
def test_what_went_wrong_a_hook_planted_from_a_tree_of_a_bare_repository_was_tried(
    repo: Path, place: Path, mark: Path, command: str, where: str
) -> None:
    bare, tree = place / "bare.git", place / "tree"
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    git(bare, "worktree", "add", "-q", "--detach", str(tree))
    here(bare, "hooks", "status", status=3)
    trees = Trees(tree, bare)
    trees.plant(like_ours("pre-receive", where))
    trees.refused("hooks", command)
    assert not mark.exists()
    here(tree, "resume", "--put-back")
    here(bare, "hooks", command, status=None)
    assert not mark.exists()


@pytest.mark.parametrize("plant", [EVIL, FILTER], ids=["fsmonitor", "clean filter"])
def test_what_works_on_files_is_refused_in_another_tree_and_all_is_free_after_the_resume(
    trees: Trees, mark: Path, plant: str
) -> None:
    trees.plant(plant)
    (trees.good / "src/a").write_text("edited\n")
    other(trees.good, task("z", "true"), slug="third")
    for command in (
        ("undo", "x"),
        ("adopt", "y"),
        ("bless",),
        ("retry", "y"),
        ("skip", "y"),
        ("resume",),
        ("start", "third.toml", "--yes"),
        ("start", "third.toml", "--dry-run"),
    ):
        trees.refused(*command)
        assert not mark.exists(), command
    here(trees.bad, "resume", "--put-back")
    (trees.good / "src/a").write_text("a\n")
    git(trees.good, "checkout", "-q", "--", "src/a")
    here(trees.good, "skip", "y")
    here(trees.good, "resume")
    assert not mark.exists()
    assert outcomes(trees.bad) == {"bad": "committed"}


def test_what_went_wrong_a_signature_was_checked_by_a_program_from_another_tree(
    trees: Trees, mark: Path
) -> None:
    trees.plant(asked_to_verify())
    trees.refused("verify", trees.batch)
    assert not mark.exists()


def test_what_went_wrong_git_asked_a_remote_planted_from_another_tree_for_what_was_missing(
    trees: Trees, mark: Path
) -> None:
    trees.plant(
        "git config extensions.partialClone evil; git config remote.evil.promisor true; "
        'git config remote.evil.url "$PWD"; '
        'git config remote.evil.uploadpack "touch $MARK; false"; '
        f"echo 1234567890123456789012345678901234567890 >{SHARED}/refs/notes/batch/$BATCH_ID"
    )
    for command in (
        ("status",),
        ("list",),
        ("report",),
        ("show", "x", "--diff"),
        ("find", "bad"),
        ("verify",),
        ("status", trees.batch),
        ("recover", trees.batch),
    ):
        here(trees.good, *command, status=None)
        assert not mark.exists(), command
    here(trees.bad, "resume", "--put-back")
    assert not mark.exists()


PRIVATE = {
    "nothing": ":",
    "its own configuration": 'git config --worktree core.fsmonitor "touch $MARK; false"',
    "a merge": 'git rev-parse HEAD >"$(git rev-parse --git-dir)/MERGE_HEAD"',
    "its index": 'echo garbage >"$(git rev-parse --git-dir)/index"',
    "its HEAD": 'echo garbage >"$(git rev-parse --git-dir)/HEAD"',
    "a branch's line": "git config branch.mine.merge refs/heads/x",
    "sparse patterns": 'mkdir -p "$(git rev-parse --git-dir)/info"; '
    'echo x >"$(git rev-parse --git-dir)/info/sparse-checkout"',
}


@pytest.mark.parametrize("plant", PRIVATE.values(), ids=PRIVATE)
def test_what_only_the_other_tree_reads_keeps_nobody_here(
    trees: Trees, mark: Path, plant: str
) -> None:
    git(trees.good, "config", "extensions.worktreeConfig", "true")
    trees.plant(plant)
    here(trees.good, "skip", "y")
    here(trees.good, "resume")
    here(trees.good, "push")
    assert not mark.exists()
    here(trees.bad, "resume", "--put-back")
    assert outcomes(trees.bad) == {"bad": "committed"}
    assert not mark.exists()


def test_a_hook_in_the_files_of_another_tree_counts_only_where_git_looks_there(
    trees: Trees, mark: Path
) -> None:
    edit = "mkdir -p hooks; echo >>hooks/pre-push"
    git(trees.good, "config", "core.hooksPath", "hooks")  # each tree has its own
    trees.plant(edit)
    here(trees.good, "skip", "y")
    assert "hooks/pre-push (new)" in here(trees.bad, "resume", status=3).err
    here(trees.bad, "resume", "--put-back")
    git(trees.good, "config", "core.hooksPath", str(trees.bad / "hooks"))
    Path(f"{mark}.once").unlink()
    other(trees.bad, task("bad", killer(edit)), slug="more")
    killed(trees.bad, "start", "more.toml", "--yes")
    assert "pre-push (new)" in here(trees.good, "resume", status=3).err


def test_a_third_tree_is_refused_too_also_where_its_own_part_was_led_elsewhere(
    trees: Trees, mark: Path, place: Path
) -> None:
    third = place / "third"
    git(trees.good, "worktree", "add", "-q", "--detach", str(third))
    fake = place / "fake.git"
    shutil.copytree(place / "remote.git", fake)
    folder = f"{SHARED}/worktrees/third"
    trees.plant(f"echo {fake} >{folder}/commondir")
    write(third, task("z", "true"))
    done = Trees(trees.bad, third, trees.batch).refused("start", "--yes")
    assert "worktrees/third/commondir (changed)" in done.err
    here(trees.good, "skip", "y")
    here(trees.bad, "resume", "--put-back")
    here(third, "start", "--branch", "third", "--yes", status=1)


def test_a_run_that_is_at_work_in_another_tree_is_nobodys_concern(trees: Trees) -> None:
    gate = trees.bad.parent / "gate"
    os.mkfifo(gate)
    edit, back = "git config core.editor mine", "git config --unset core.editor"
    write(trees.bad, task("a", f"{edit}; read x <{gate}; {back}; echo a >src/one"))
    here(trees.good, "skip", "y")
    here(trees.good, "resume")
    with beside(trees.bad, "start", "--yes") as run:
        with opened(gate, run) as go:
            assert loaded(trees.good, "status", "other")[1] == "[]"
            other(trees.good, task("z", "true"), slug="third")
            here(trees.good, "start", "third.toml", "--dry-run")
            here(trees.good, "undo", "x", "--redo")
            here(trees.good, "resume")
            here(trees.good, "push")
            go.write("go\n")
        ended(run, 0)
    assert outcomes(trees.bad) == {"a": "committed"}


def test_a_run_at_work_here_does_not_let_a_push_run_what_was_planted_elsewhere(
    trees: Trees, mark: Path
) -> None:
    gate = trees.bad.parent / "gate"
    os.mkfifo(gate)
    other(trees.good, task("a", f"read x <{gate}; echo a >src/one"), slug="third")
    with beside(trees.good, "start", "third.toml", "--yes") as run:
        with opened(gate, run) as go:
            trees.plant("git config core.editor mine")
            trees.refused("push")
            here(trees.bad, "resume", "--put-back")
            go.write("go\n")
        ended(run, 0)
    assert told(trees.good)["tasks"][0]["outcome"] == "committed"


def test_where_both_were_killed_one_resume_after_the_other_sets_both_free(
    trees: Trees, mark: Path
) -> None:
    trees.plant(":")
    Path(f"{mark}.once").unlink()
    other(trees.good, task("worse", killer(EVIL)), slug="third")
    killed(trees.good, "start", "third.toml", "--yes")
    for tree in (trees.good, trees.bad):
        assert "a run was killed while" in here(tree, "resume", status=3).err
    here(trees.good, "resume", "--put-back")
    here(trees.bad, "resume")
    assert outcomes(trees.bad) == {"bad": "committed"}
    assert not mark.exists()


def test_where_both_were_killed_what_a_person_keeps_is_to_be_kept_in_both(
    trees: Trees, mark: Path
) -> None:
    trees.plant(":")
    Path(f"{mark}.once").unlink()
    other(trees.good, task("worse", killer("git config core.editor mine")), slug="third")
    killed(trees.good, "start", "third.toml", "--yes")
    trees.refused("resume", "--keep-changes")
    here(trees.bad, "resume", "--keep-changes")
    here(trees.good, "resume")
    assert git(trees.good, "config", "core.editor") == "mine"


def test_what_is_put_back_by_hand_or_kept_there_is_free(trees: Trees, mark: Path) -> None:
    trees.plant("git config core.editor mine")
    done = trees.refused("skip", "y")
    kept = next(hint for hint in done.hints if "what they were" in hint).split("'")[1]
    assert "mine" not in next((trees.good / kept).rglob("config")).read_text()
    git(trees.good, "config", "--unset", "core.editor")
    here(trees.good, "skip", "y")
    git(trees.good, "config", "core.editor", "mine")
    trees.refused("resume")
    here(trees.bad, "resume", "--keep-changes")
    here(trees.good, "resume")
    assert git(trees.good, "config", "core.editor") == "mine"


def test_what_lies_outside_is_shared_by_all_trees(trees: Trees, mark: Path, home: Path) -> None:
    trees.plant('git config --global core.fsmonitor "touch $MARK; false"')
    assert str(home / ".gitconfig") in trees.refused("skip", "y").err
    assert not mark.exists()
    git(trees.good, "config", "--global", "--unset", "core.fsmonitor")
    here(trees.good, "skip", "y")


def test_a_tree_that_was_moved_or_forgotten_is_no_dead_end(
    repo: Path, place: Path, mark: Path
) -> None:
    side = place / "si de"
    git(repo, "worktree", "add", "-q", "--detach", str(side))
    trees = Trees(side, repo)
    trees.plant("git config core.editor mine")
    other(repo, task("x", "echo x >src/x"))
    start = ("start", "other.toml", "--yes")
    done = here(repo, *start, status=3)
    there = pasted(repo, done.hints[-1].split(": ", 1)[1], status=3)
    assert f"{trees.batch} --put-back" in there.stderr
    git(repo, "worktree", "move", str(side), str(place / "moved"))
    done = here(repo, *start, status=3)
    assert "by hand" in done.hints[-2]
    pasted(repo, done.hints[-1].split(": ", 1)[1])
    git(repo, "worktree", "remove", "--force", str(place / "moved"))
    here(repo, *start)
