"""A person does anything to a batch's branch and record; verify and the hook never miss it.

The oracle reads with stock git: the head that the newest event of the record names, and the tip of
the branch. Since a commit's id covers all that is below it, a branch is whole exactly if these are
one. Notes edited by hand, replacements and grafts must not change that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from git_batch.core.ids import Oid
from git_batch.hooks.judging import judge
from git_batch.hooks.updates import Update
from git_batch.repo.pushed import PushedRepository
from tests.conftest import git
from tests.e2e.job import BRANCH, task, write
from tests.e2e.near import by_hand, near

REF = f"refs/heads/{BRANCH}"
WHOLE, CANT_TELL, DRIFT = 0, 3, 4


class Person(RuleBasedStateMachine):
    """Somebody at work in a repository with a batch of three tasks, one of them parked."""

    template: Path
    folder: Path
    runs = 0

    def __init__(self) -> None:
        super().__init__()
        Person.runs += 1
        self.top = self.folder / str(Person.runs)
        shutil.copytree(self.template, self.top, symlinks=True)
        self.record = git(self.top, "for-each-ref", "--format=%(refname)", "refs/notes/batch")
        self.marks = 0

    def teardown(self) -> None:
        shutil.rmtree(self.top)

    def git(self, *args: str) -> str:
        return git(self.top, "--no-replace-objects", *args)

    def tip(self) -> str:
        return self.git("rev-parse", REF)

    def event(self) -> str | None:
        """Read the newest event as text; None if the record is gone."""
        if not self.git("for-each-ref", self.record):
            return None
        args = ("log", "-1", "--first-parent", "--format=%B", "--grep=^Batch-Format: 1$")
        return self.git(*args, self.record)

    def head(self) -> str | None:
        """Read which tip the record expects."""
        found = re.search(r'^head = "([0-9a-f]{40})"$', self.event() or "", re.MULTILINE)
        return found[1] if found else None

    def depth(self) -> int:
        return int(self.git("rev-list", "--count", "--first-parent", f"main..{REF}"))

    # The branch.

    @rule()
    def commit(self) -> None:
        by_hand(self.top, f"hand{self.depth()}")

    @rule(words=st.booleans())
    def amend(self, words: bool) -> None:
        self.marks += 1
        more = ("-m", f"amended {self.marks}") if words else ("--no-edit",)
        date = f"--date=2001-01-01T00:{self.marks // 60:02}:{self.marks % 60:02}Z"
        self.git("commit", "-q", "--amend", "--allow-empty", date, *more)

    @precondition(lambda self: self.depth() > 0)
    @rule(data=st.data())
    def reset_back(self, data: st.DataObject) -> None:
        before = self.git("rev-list", "--first-parent", "--skip=1", "-n5", REF).split()
        if before:  # amending the first commit of all leaves none
            self.git("reset", "-q", "--hard", data.draw(st.sampled_from(before)))

    @precondition(lambda self: self.head() is not None)
    @rule()
    def reset_to_where_it_was(self) -> None:
        self.git("reset", "-q", "--hard", str(self.head()))

    @precondition(lambda self: self.depth() > 0)
    @rule(data=st.data())
    def cherry_pick(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(0, self.depth() - 1))
        try:
            self.git("cherry-pick", "--keep-redundant-commits", f"HEAD~{n}")
        except subprocess.CalledProcessError:
            if (self.top / ".git/CHERRY_PICK_HEAD").exists():
                self.git("cherry-pick", "--abort")

    @precondition(lambda self: self.depth() > 1)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(1, self.depth() - 1))
        self.rebase("--onto", f"HEAD~{n + 1}", f"HEAD~{n}")

    @rule()
    def rebase_onto_moved_main(self) -> None:
        tree = self.git("rev-parse", "main^{tree}")
        self.marks += 1
        moved = self.git("commit-tree", "-p", "main", "-m", f"main {self.marks}", tree)
        self.rebase(moved)

    def rebase(self, *args: str) -> None:
        try:
            self.git("rebase", "-q", *args)
        except subprocess.CalledProcessError:
            if (self.top / ".git/rebase-merge").exists():
                self.git("rebase", "--abort")

    # What looks like a change and is none.

    @precondition(lambda self: self.event() is not None)
    @rule(how=st.sampled_from(["append", "remove", "copy"]))
    def edit_notes(self, how: str) -> None:
        notes = ("notes", f"--ref={self.record.removeprefix('refs/notes/')}")
        match how:
            case "append":
                self.git(*notes, "append", "-m", "a remark", "HEAD")
            case "remove":
                self.git(*notes, "remove", "--ignore-missing", "HEAD")
            case "copy":
                self.git(*notes, "add", "-f", "-m", "mine", "main")

    @precondition(lambda self: self.depth() > 0)
    @rule()
    def replace_a_commit(self) -> None:
        self.git("replace", "-f", "HEAD", "main")

    @precondition(lambda self: self.depth() > 0)
    @rule()
    def graft_a_commit(self) -> None:
        line = f"{self.tip()} {self.git('rev-parse', 'main')}\n"
        (self.top / ".git/info/grafts").write_text(line)

    def as_it_is(self) -> None:
        """Take out what only makes git lie; our own commands see through it, `git switch` not."""
        (self.top / ".git/info/grafts").unlink(missing_ok=True)
        for oid in self.git("replace", "-l").split():
            self.git("replace", "-d", oid)

    # The record.

    @precondition(lambda self: self.event() is not None)
    @rule()
    def lose_the_record(self) -> None:
        self.git("update-ref", "-d", self.record)

    @rule()
    def recover(self) -> None:
        near(self.top, "recover", BRANCH, status=None)

    @rule(command=st.sampled_from([("bless",), ("retry", "two"), ("skip", "two")]))
    def decide(self, command: tuple[str, ...]) -> None:
        near(self.top, *command, status=None)

    @rule()
    def rebase_the_batch(self) -> None:
        self.as_it_is()
        tree = self.git("rev-parse", "main^{tree}")
        self.marks += 1
        moved = self.git("commit-tree", "-p", "main", "-m", f"base {self.marks}", tree)
        near(self.top, "rebase", "demo", "--onto", moved, status=None)

    @rule()
    def resume(self) -> None:
        self.as_it_is()
        near(self.top, "resume", "--yes", status=None)

    # What must hold.

    @invariant()
    def verify_and_the_hook_tell_exactly_what_is_so(self) -> None:
        said = near(self.top, "verify", BRANCH, status=None)
        by_name = near(self.top, "verify", "demo", status=None)
        hook = self.refused_by_hook()
        if self.event() is None:
            assert said.status in (CANT_TELL, DRIFT), said
            # Without a record the hook minds only branches whose tip is a task's commit.
            tasks = "\nBatch-Task: " in self.git("log", "-1", "--format=%B", REF)
            assert hook == (said.status == DRIFT and tasks), said
            return
        rebuilt = "rebuilt from" in by_name.out
        expected = WHOLE if self.tip() == self.head() else DRIFT
        if not rebuilt:
            assert by_name.status == expected, (by_name, self.tip(), self.head())
            failed = re.search('^status = "failed"$', self.event() or "", re.MULTILINE)
            assert hook == (expected == DRIFT or failed is not None), by_name
        else:
            assert by_name.status in (CANT_TELL, WHOLE) if expected == WHOLE else DRIFT

    def refused_by_hook(self) -> bool:
        repo = PushedRepository({"GIT_DIR": str(self.top / ".git")})
        update = Update(REF, Oid(self.tip()), None, REF)
        return any(j.refused for j in judge(repo, [update], live=lambda record: False))


@pytest.fixture
def machine(template: Path, tmp_path: Path) -> type[Person]:
    top = tmp_path / "template"
    shutil.copytree(template, top, symlinks=True)
    parts = [task(n, f"echo {n} >src/{n}") for n in ("one", "three")]
    write(top, parts[0], task("two", "exit 1"), parts[1])
    (top / "batch.toml").rename(tmp_path / "plan.toml")
    near(top, "start", "--yes", str(tmp_path / "plan.toml"), status=1)
    return type("PersonHere", (Person,), {"template": top, "folder": tmp_path})


def drive(machine: type[Person], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_nothing_a_person_does_goes_unnoticed(machine: type[Person]) -> None:
    drive(machine, 8, 8)


@pytest.mark.long
def test_nothing_a_person_does_for_long_goes_unnoticed(machine: type[Person]) -> None:
    drive(machine, 150, 25)
