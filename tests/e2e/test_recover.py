"""`git batch recover`: from whatever is left of a record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, committed, refs, task, tasks, write
from tests.e2e.near import TASKS, by_hand, finished, near, pasted, record


@pytest.fixture
def top(template: Path, tmp_path: Path) -> Path:
    return finished(template, tmp_path / "repo")


def whole(top: Path) -> None:
    assert near(top, "verify").out.startswith("ok: ")
    assert json.loads(near(top, "status", "--json").out)["state"] == "completed"


def test_a_record_that_is_here_is_left_alone(top: Path) -> None:
    before = git(top, "rev-parse", record(top))
    assert "nothing was changed" in near(top, "recover").out
    assert git(top, "rev-parse", record(top)) == before


def test_a_deleted_record_comes_back_at_its_newest_event(top: Path) -> None:
    ref, tip = record(top), git(top, "rev-parse", record(top))
    git(top, "update-ref", "-d", ref)
    near(top, "verify", status=3)
    assert tip in near(top, "recover").out
    assert git(top, "rev-parse", ref) == tip
    whole(top)


def test_what_went_wrong_a_lost_record_without_a_commit_was_not_named(repo: Path) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    ref, tip = record(repo), git(repo, "rev-parse", record(repo))
    git(repo, "update-ref", "-d", ref)
    (hint,) = near(repo, "recover", status=3).hints
    near(repo, *hint.partition(": ")[2].split()[2:])
    assert git(repo, "rev-parse", ref) == tip
    git(repo, "switch", "-q", "main")
    assert near(repo, "recover", status=3).hints == []


def test_what_went_wrong_a_recovered_batch_was_said_to_be_running(repo: Path) -> None:
    write(repo, task("a", "exit 1"), task("b", "echo b >src/two"))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    git(repo, "update-ref", "-d", record(repo))
    said = near(repo, "recover").out
    assert "it is not finished; see: git batch status" in said
    near(repo, "resume", status=1)
    git(repo, "update-ref", "-d", record(repo))
    assert "it needs a human; see: " in near(repo, "recover").out


@pytest.mark.parametrize("content", ["", "\0" * 41, "0123", "ref: refs/notes/batch/none\n"])
def test_a_torn_ref_is_put_aside_and_comes_back(top: Path, content: str) -> None:
    ref, tip = record(top), git(top, "rev-parse", record(top))
    (top / ".git" / ref).write_text(content)
    near(top, "recover")
    assert git(top, "rev-parse", ref) == tip
    whole(top)


def test_a_ref_to_an_object_that_is_not_there_comes_back(top: Path) -> None:
    ref, tip = record(top), git(top, "rev-parse", record(top))
    (top / ".git" / ref).write_text("1" * 40 + "\n")
    near(top, "recover")
    assert git(top, "rev-parse", ref) == tip
    whole(top)


@pytest.mark.parametrize("back", [1, 4, 9])
def test_a_record_that_was_set_back_is_moved_forward_again(top: Path, back: int) -> None:
    ref, tip = record(top), git(top, "rev-parse", record(top))
    git(top, "update-ref", ref, f"{tip}~{back}")
    assert "git batch recover batch/demo" in near(top, "verify", "demo", status=None).out
    near(top, "recover")
    assert git(top, "rev-parse", ref) == tip
    whole(top)


def test_the_log_of_the_ref_names_the_newest_event_where_it_is_left(top: Path) -> None:
    ref, tip = record(top), git(top, "rev-parse", record(top))
    (top / ".git" / ref).unlink()  # as a crash may, and unlike git, which deletes the log as well
    near(top, "recover")
    assert git(top, "rev-parse", ref) == tip


@pytest.fixture
def clone(top: Path, tmp_path: Path) -> Path:
    """Give a clone without the record and without its objects."""
    git(tmp_path, "clone", "-q", "--no-local", str(top), "clone")
    git(tmp_path / "clone", "switch", "-q", BRANCH)
    return tmp_path / "clone"


def test_a_remotes_copy_will_do(top: Path, clone: Path) -> None:
    git(clone, "fetch", "-q", "origin", "+refs/notes/batch/*:refs/batch/remotes/origin/*")
    near(clone, "recover")
    assert git(clone, "rev-parse", record(clone)) == git(top, "rev-parse", record(top))
    whole(clone)


def test_else_it_is_rebuilt_from_trailers_and_says_what_is_not_proven(
    top: Path, clone: Path
) -> None:
    said = near(clone, "recover").out
    assert "rebuilt from trailers" in said
    assert "not proven" in said
    told = json.loads(near(clone, "status", "--json").out)
    assert (told["state"], told["authorization"]) == ("needs_human", None)
    assert "not proven" in told["reason"]
    assert {t["id"]: t["state"] for t in told["tasks"]} == dict.fromkeys(TASKS, "committed")
    assert near(clone, "find", "two").out == near(top, "find", "two").out
    assert near(clone, "verify", status=3).out.startswith("can't tell")
    said = near(clone, "resume", "--yes", status=3).err
    assert "--plan FILE" in said


def test_with_the_plan_it_can_go_on_once_a_person_confirms(template: Path, tmp_path: Path) -> None:
    top, plan = tmp_path / "repo", tmp_path / "plan.toml"
    shutil.copytree(template, top, symlinks=True)
    write(
        top, task("one", "echo 1 >src/one"), task("two", "exit 1"), task("three", "echo 3 >src/3")
    )
    (top / "batch.toml").rename(plan)
    near(top, "start", "--yes", str(plan), status=1)
    git(tmp_path, "clone", "-q", "--no-local", str(top), "clone")
    clone = tmp_path / "clone"
    git(clone, "switch", "-q", BRANCH)
    other = tmp_path / "other.toml"
    other.write_text(plan.read_text().replace("Do one", "Do 1"))
    assert "digest" in near(clone, "recover", "--plan", str(other), status=2).err
    near(clone, "recover")
    near(clone, "recover", "--plan", str(plan))
    assert {n: t["state"] for n, t in tasks(clone).items()} == {
        "one": "committed", "two": "pending", "three": "committed",
    }  # fmt: skip
    assert "nobody confirmed" in near(clone, "resume", status=3).err
    near(clone, "resume", "--yes", status=1)
    assert tasks(clone)["two"]["outcome"] == "run_failed"
    said = near(clone, "verify").out
    assert said.startswith("ok: ")
    assert "not proven" in said


def test_commits_of_no_task_are_taken_as_foreign_and_undone_tasks_stay_undone(
    top: Path, tmp_path: Path
) -> None:
    by_hand(top)
    near(top, "bless")
    (top / "batch.toml").rename(tmp_path / "plan.toml")
    near(top, "undo", "two")
    git(tmp_path, "clone", "-q", "--no-local", str(top), "clone")
    clone = tmp_path / "clone"
    git(clone, "switch", "-q", BRANCH)
    near(clone, "recover", "--plan", str(tmp_path / "plan.toml"))
    assert {n: t["state"] for n, t in tasks(clone).items()} == {
        "one": "committed", "two": "dropped", "three": "committed",
    }  # fmt: skip
    assert near(clone, "verify").out.startswith("ok: ")


def test_trailers_that_contradict_each_other_rebuild_nothing(clone: Path) -> None:
    git(clone, "cherry-pick", "--keep-redundant-commits", "HEAD~1")
    assert "contradict" in near(clone, "recover", status=3).err
    assert record(clone) == ""


def test_a_branch_without_trailers_has_nothing_to_recover(repo: Path) -> None:
    assert "no commit of 'main'" in near(repo, "recover", status=3).err


@pytest.mark.parametrize("content", ["", "0" * 40 + "\n", "\0" * 41, "garbage\n"])
def test_what_went_wrong_resume_and_start_sent_each_other_where_the_ref_is_unreadable(
    template: Path, tmp_path: Path, content: str
) -> None:
    top = tmp_path / "repo"
    shutil.copytree(template, top, symlinks=True)
    write(top, *(task(n, f"echo {n} >src/{n}") for n in TASKS))
    near(top, "start", "--yes", "--max-tasks", "1", status=1)
    ref, tip = record(top), git(top, "rev-parse", record(top))
    batch = ref.rpartition("/")[2]
    (top / ".git" / ref).write_text(content)
    told = f"the record of '{batch}' can't be read: "
    for command in ("resume", "report", "show one", "status", "log", "start --yes", "stop", "push"):
        for named in ([], ["demo"], [batch], [BRANCH]):
            if named and command.split()[0] not in ("resume", "report", "status", "log"):
                continue
            done = near(top, *command.split(), *named, status=3)
            assert told in done.err, done
            assert f"git batch recover {batch}" in done.hints, done
    assert f"git batch recover {batch}" in near(top, "verify", status=3).out
    assert f"git batch recover {batch}" in near(top, "list").out
    near(top, "recover", batch)
    assert git(top, "rev-parse", ref) == tip
    near(top, "resume", "--yes", "--max-tasks", "9")


def test_what_went_wrong_resume_knew_of_no_batch_where_the_record_was_deleted(top: Path) -> None:
    ref = record(top)
    git(top, "update-ref", "-d", ref)
    (hint,) = near(top, "resume", status=3).hints
    assert hint == "get it: git batch recover batch/demo"


@pytest.mark.parametrize("on", ["main", BRANCH])
def test_what_went_wrong_a_slug_was_taken_from_a_batch_that_lost_its_record(
    repo: Path, on: str
) -> None:
    write(repo, task("a", "echo a >src/one"), task("b", "echo b >src/two"))
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    ref = record(repo)
    git(repo, "update-ref", "-d", ref)
    git(repo, "switch", "-q", on)
    before = refs(repo)
    for more in ((), ("--branch", "other")):
        refused = near(repo, "start", "--yes", *more, status=3)
        batch_id = ref.rpartition("/")[2]
        assert f"batch '{batch_id}' has the slug 'demo', and its record is not here" in refused.err
        assert refused.hints == [
            f"get it: git batch recover {BRANCH}",
            "or give the plan another 'slug'",
        ]
    assert refs(repo) == before
    near(repo, "recover", BRANCH)
    git(repo, "switch", "-q", BRANCH)
    near(repo, "resume", "--yes", "--max-tasks", "9")
    assert committed(repo) == ["a", "b"]


def test_what_went_wrong_no_way_to_the_record_was_told_of_a_branch_that_is_taken(
    repo: Path,
) -> None:
    write(repo, task("a", "echo a >src/one"))
    near(repo, "start", "--yes")
    ref = record(repo)
    git(repo, "update-ref", "-d", ref)
    git(repo, "switch", "-q", "main")
    refused = near(repo, "start", "--yes", status=3)
    batch_id = ref.rpartition("/")[2]
    way = f"or get the record of its batch, '{batch_id}': git batch recover {BRANCH}"
    other = "give the batch another branch: git batch start --branch NAME"
    assert refused.hints == [other, way]
    near(repo, "start", "--yes", "--branch", "other")


def test_a_slug_is_free_whose_lost_batch_has_no_commits(repo: Path) -> None:
    write(repo, task("a", "test -e ../flag && echo a >src/one"))
    near(repo, "start", "--yes", status=1)
    git(repo, "update-ref", "-d", record(repo))
    git(repo, "switch", "-q", "main")
    (repo.parent / "flag").touch()
    near(repo, "start", "--yes", "--branch", "other")


@pytest.mark.parametrize("name", ["branch", "full name", "slug", "id", "checked out"])
def test_what_went_wrong_a_record_that_is_here_was_denied_where_its_branch_was_deleted(
    top: Path, name: str
) -> None:
    if name != "checked out":
        git(top, "switch", "-q", "main")
    tip = git(top, "rev-parse", BRANCH)
    git(top, "update-ref", "-d", f"refs/heads/{BRANCH}")
    batch = record(top).rsplit("/", 1)[1]
    named = {"branch": [BRANCH], "full name": [f"refs/heads/{BRANCH}"], "slug": ["demo"]}
    done = near(top, "recover", *named.get(name, [batch] if name == "id" else []), status=3)
    assert f"the record of '{batch}' is here: branch '{BRANCH}' does not exist" in done.err
    assert f" {done.hints[0]}\n" in near(top, "status").out
    pasted(top, done.hints[0])
    assert git(top, "rev-parse", BRANCH) == tip
    assert "nothing was changed" in near(top, "recover", BRANCH).out


def test_what_went_wrong_a_batch_could_not_be_recovered_by_its_slug(top: Path) -> None:
    assert "nothing was changed" in near(top, "recover", "demo").out
    done = near(top, "recover", "other", status=2)
    assert "'other' is neither a batch nor a commit here" in done.err
