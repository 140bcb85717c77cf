"""The record's tree by itself: what it holds, and that others' shapes of it are read."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from git_batch.core import canonical
from git_batch.core import effects as fx
from git_batch.core.codec import quote, unquote
from git_batch.core.ids import Oid, TaskId
from git_batch.core.values import replace
from git_batch.errors import RecordError
from git_batch.repo.notestree import NotesTree
from git_batch.repo.repository import Repository
from tests.conftest import git
from tests.core.facts import HOSTILE_BYTES
from tests.repo.recorded import REF, RecordedWorld
from tests.world import plan, task


@pytest.fixture
def opened(repo: Path) -> Repository:
    return Repository.open(str(repo))


def tree_of(opened: Repository, *tasks: str) -> NotesTree:
    tree = NotesTree(opened, None)
    tree.write_plan(plan(*(task(name) for name in tasks)))
    return tree


def test_nothing_is_there_before_something_was_written(opened: Repository) -> None:
    tree = NotesTree(opened, None)
    assert tree.oid is None
    with pytest.raises(RecordError, match=r"'batch.toml' is missing in the record"):
        tree.blob("batch.toml")


def test_plan_and_intents_are_read_back_to_the_byte(opened: Repository) -> None:
    content = b"An intent.\n\xff"
    digest = sha256(content).hexdigest()
    made = replace(plan(task("a", intent=digest)), intents={digest: content})
    tree = NotesTree(opened, None)
    tree.write_plan(made)
    assert tree.plan() == (canonical.to_toml(made), {digest: content})
    assert tree.blob(f"intents/{digest}") == content


def test_the_plans_tasks_lie_a_hundred_to_a_folder_and_no_two_are_one_object(
    repo: Path, opened: Repository
) -> None:
    tree = tree_of(opened, *(f"t{i}" for i in range(201)))
    assert tree.oid is not None
    folders = git(repo, "ls-tree", "--name-only", tree.oid, "plan/").splitlines()
    assert folders == ["plan/000", "plan/001", "plan/002"]
    blobs = git(repo, "ls-tree", "-r", "--format=%(objectname)", tree.oid, "plan/").splitlines()
    assert len(set(blobs)) == 201
    assert git(repo, "ls-tree", "--name-only", tree.oid, "plan/002/") == "plan/002/t200.toml"


def test_another_plan_leaves_nothing_of_the_first_one(repo: Path, opened: Repository) -> None:
    tree = tree_of(opened, "a", "b")
    tree.write_plan(plan(task("b"), task("c")))
    again = tree_of(opened, "b", "c")
    assert tree.oid == again.oid


def noted(repo: Path) -> tuple[RecordedWorld, NotesTree]:
    world = RecordedWorld(repo, plan(task("a"), task("b")))
    world.run()
    return world, NotesTree(world.repo, Oid(git(repo, "rev-parse", f"{REF}^{{tree}}")))


def test_each_tasks_note_is_found_by_its_plan_blob(repo: Path) -> None:
    _, tree = noted(repo)
    assert sorted(name for name, _ in tree.task_notes()) == ["a", "b"]
    blob = git(repo, "rev-parse", f"{REF}:plan/000/a.toml")
    assert dict(tree.task_notes())[TaskId("a")] == tree.note_on(Oid(blob))


@pytest.mark.parametrize("levels", [0, 2])
def test_notes_are_read_whatever_the_fan_out_that_git_gave_them(repo: Path, levels: int) -> None:
    world, tree = noted(repo)
    listing = git(repo, "ls-tree", "-r", REF).splitlines()
    index = {**os.environ, "GIT_INDEX_FILE": str(repo / ".git/other-index")}
    entries = []
    for line in listing:
        meta, path = line.split("\t")
        key = path.replace("/", "")
        if len(key) == 40:
            path = key if levels == 0 else f"{key[:2]}/{key[2:4]}/{key[4:]}"
        mode, _, oid = meta.split(" ")
        entries.append(f"{mode} {oid}\t{path}")
    world.repo.git.run(
        ["update-index", "--index-info"], input="\n".join(entries).encode(), env=index
    )
    shaped = world.repo.git.run(["write-tree"], env=index).decode().strip()
    other = NotesTree(world.repo, Oid(shaped))
    assert other.oid != tree.oid
    assert dict(other.task_notes()) == dict(tree.task_notes())
    commit = world.current.tasks[TaskId("b")].commit
    assert commit is not None
    assert other.note_on(commit) == tree.note_on(commit)
    assert other.note_on(Oid("f" * 40)) is None


def test_a_step_of_a_large_plan_writes_a_handful_of_objects(repo: Path) -> None:
    world = RecordedWorld(repo, plan(*(task(f"t{i}") for i in range(300))))
    world.start()
    while len(world.log) < 40:
        world.append(world.perform(world.machine.decide(world.current)))
    while not isinstance(world.machine.decide(world.current), fx.Enroll):
        world.append(world.perform(world.machine.decide(world.current)))
    world.append(world.perform(world.machine.decide(world.current)))
    begun = len(world.log)
    before = count(repo)
    for _ in range(5):  # from one enrollment to the next
        world.append(world.perform(world.machine.decide(world.current)))
    assert len(world.log) == begun + 5
    # Five events, two blobs and three trees of the record, and commit, tree and blob of the task.
    assert count(repo) - before <= 5 + 6 + 3 + 1


def count(repo: Path) -> int:
    return int(git(repo, "count-objects").split()[0])


@pytest.mark.parametrize("quoting", ["true", "false"])
def test_the_names_that_git_quotes_are_read_and_ours_survive(repo: Path, quoting: str) -> None:
    names = {n for n in HOSTILE_BYTES if n and b"\0" not in n}
    names |= {b"t\tab", b"back\\slash", b"bell\x07", b"\xe2\x80\xae"}
    if quoting == "false":  # then git writes what is no UTF-8 as it is
        names.remove(b"\xff\xfe")
    for name in names:
        (repo / os.fsdecode(name)).write_text("x")
    config = ("-c", f"core.quotePath={quoting}")
    listed = git(repo, *config, "ls-files", "--others", "--exclude-standard").split("\n")
    assert {unquote(line) for line in listed} == names
    assert {unquote(quote(name)) for name in names} == names
