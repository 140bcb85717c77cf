"""`git batch bless`: exactly the commits on top, recorded with who and when."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, task, tasks, write
from tests.e2e.near import by_hand, finished, near, record


@pytest.fixture
def top(template: Path, tmp_path: Path) -> Path:
    return finished(template, tmp_path / "repo")


def test_what_was_blessed_is_accepted_and_nothing_else(top: Path) -> None:
    one, two = by_hand(top, "x"), by_hand(top, "y")
    said = near(top, "bless", "-m", "fix-ups").out
    assert said.index(one) < said.index(two)
    near(top, "verify")
    three = by_hand(top, "z")
    (drift,) = json.loads(near(top, "verify", "--json", status=4).out)["drift"]
    assert (drift["kind"], drift["commit"]) == ("foreign commits", three)
    git(top, "reset", "-q", "--hard", two)
    git(top, "commit", "-q", "--amend", "-m", "other")
    assert "history rewritten" in near(top, "verify", status=4).out


def test_it_is_recorded_who_did_it_and_a_completed_batch_stays_completed(top: Path) -> None:
    by_hand(top)
    near(top, "bless", "-m", "a typo")
    last = near(top, "log").out.splitlines()[-1]
    assert "bless decided by T" in last
    assert "a typo" in last
    told = json.loads(near(top, "status", "--json").out)
    assert (told["state"], told["head"]) == ("completed", git(top, "rev-parse", "HEAD"))
    assert told["drift"] == []


def test_a_blessed_commit_is_no_tasks_commit(top: Path) -> None:
    made = by_hand(top)
    near(top, "bless")
    assert made not in {t["commit"] for t in tasks(top).values()}
    near(top, "find", "--commit", made, status=1)


def test_there_must_be_something_to_bless(top: Path) -> None:
    before = git(top, "rev-parse", record(top))
    assert "nothing on top" in near(top, "bless", status=3).err
    assert git(top, "rev-parse", record(top)) == before


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("commit", "-q", "--amend", "-m", "other"), "history rewritten"),
        (("reset", "-q", "--hard", "HEAD~1"), "history rewritten"),
        (("cherry-pick", "--keep-redundant-commits", "HEAD~1"), "repeated trailers"),
        (("commit", "-q", "--allow-empty", "-m", "x\n\nBatch-Task: one\n"), "forged trailers"),
        (("merge", "-q", "--no-ff", "--no-edit", "side"), "merge commit"),
    ],
)
def test_only_what_lies_purely_on_top_is_blessed(
    top: Path, change: tuple[str, ...], word: str
) -> None:
    git(top, "branch", "side", git(top, "commit-tree", "-p", "main", "-m", "side", "main^{tree}"))
    git(top, *change)
    by_hand(top)
    before = git(top, "rev-parse", record(top))
    assert word in near(top, "bless", status=4).err
    assert git(top, "rev-parse", record(top)) == before


def test_a_batch_that_stopped_at_foreign_commits_goes_on_after_a_blessing(
    template: Path, tmp_path: Path
) -> None:
    top = tmp_path / "repo"
    parts = (
        task("one", "echo 1 >src/one"),
        task("two", 'test -e "$HOME/go" || exit 75; echo 2 >src/two'),
    )
    shutil.copytree(template, top, symlinks=True)
    write(top, *parts)
    near(top, "start", "--yes", status=1)
    made = by_hand(top)
    near(top, "resume", status=1)
    told = json.loads(near(top, "status", "--json").out)
    assert told["drift"][0]["kind"] == "foreign commits"
    near(top, "bless")
    (Path.home() / "go").touch()
    near(top, "resume", "--yes")
    assert git(top, "log", "--format=%s", "--reverse", f"main..{BRANCH}").split("\n") == [
        "Do one", "hand by hand", "Do two",
    ]  # fmt: skip
    near(top, "verify")
    assert git(top, "rev-parse", "HEAD~1") == made
