"""`git batch find`: record first, then trailers, over all branches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, task, write
from tests.e2e.near import TASKS, by_hand, finished, near, record


@pytest.fixture
def top(template: Path, tmp_path: Path) -> Path:
    return finished(template, tmp_path / "repo")


def answer(top: Path, *args: str, status: int = 0) -> tuple[object, ...]:
    told = json.loads(near(top, "find", "--json", *args, status=status).out)
    return tuple(told[key] for key in ("batch_id", "task", "commit", "source"))


def test_tasks_and_commits_are_found_from_each_other(top: Path) -> None:
    name = record(top).rpartition("/")[2]
    for task_id, commit in zip(TASKS, git(top, "rev-list", "--reverse", "main..HEAD").split(),
                               strict=True):  # fmt: skip
        for text in (task_id, f"demo:{task_id}", f"{name}:{task_id}"):
            assert near(top, "find", text).out == f"{commit}\n"
        assert near(top, "find", "--commit", commit[:12]).out == f"{name}:{task_id}\n"
        expected = (name, task_id, commit, "record")
        assert answer(top, task_id) == answer(top, "--commit", commit) == expected


def test_none_is_status_1_and_prints_nothing(top: Path) -> None:
    assert near(top, "find", "nope", status=1).out == ""
    assert near(top, "find", "--commit", "main", status=1).out == ""
    assert answer(top, "nope", status=1) == (None, None, None, None)
    near(top, "find", "--commit", "nope", status=2)
    near(top, "find", status=2)
    near(top, "find", "one", "--commit", "HEAD", status=2)


def test_without_the_record_trailers_answer_on_any_branch(top: Path, tmp_path: Path) -> None:
    name = record(top).rpartition("/")[2]
    git(tmp_path, "clone", "-q", "--no-local", str(top), "clone")
    clone = tmp_path / "clone"
    commit = git(clone, "rev-parse", f"origin/{BRANCH}~1")
    assert answer(clone, "two") == (name, "two", commit, "trailers")
    assert answer(clone, "demo:two")[2] == commit
    assert answer(clone, "other:two", status=1)[2] is None
    assert answer(clone, "--commit", commit) == (name, "two", commit, "trailers")


def test_a_merged_batch_is_found_below_later_history(top: Path) -> None:
    commit = git(top, "rev-parse", "HEAD~2")
    git(top, "switch", "-q", "main")
    git(top, "merge", "-q", "--no-ff", "--no-edit", BRANCH)
    git(top, "branch", "-q", "-D", BRANCH)
    by_hand(top)
    git(top, "update-ref", "-d", record(top))
    assert near(top, "find", "one").out == f"{commit}\n"


def test_several_answers_are_listed(top: Path) -> None:
    near(top, "abandon", status=3)
    git(top, "switch", "-q", "main")
    write(top, task("one", "echo again >src/one"), name="again.toml")
    text = (top / "again.toml").read_text().replace('slug = "demo"', 'slug = "again"')
    (top / "again.toml").write_text(text)
    (top / "batch.toml").unlink()
    near(top, "start", "--yes", "again.toml")
    assert near(top, "find", "one").out == git(top, "rev-parse", "HEAD") + "\n"
    assert near(top, "find", "two").out == git(top, "rev-parse", f"{BRANCH}~1") + "\n"
    for ref in record(top).split():
        git(top, "update-ref", "-d", ref)
    said = near(top, "find", "one", status=2)
    assert said.out == ""
    assert len([h for h in said.hints if ":one" in h]) == 2
    assert near(top, "find", "again:one").out == git(top, "rev-parse", "HEAD") + "\n"


def test_prose_that_mentions_a_trailer_is_no_answer(top: Path) -> None:
    git(top, "commit", "-q", "--allow-empty", "-m", "About\n\nBatch-Task: four is missing.\nYes.")
    near(top, "find", "four", status=1)


def test_a_record_that_a_person_edited_still_answers(top: Path) -> None:
    git(top, "notes", f"--ref={record(top).removeprefix('refs/notes/')}", "append", "-m", "x")
    assert near(top, "find", "one").out == git(top, "rev-parse", "HEAD~2") + "\n"
