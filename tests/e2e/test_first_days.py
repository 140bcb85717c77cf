"""What somebody met who used git-batch for the first time, by what was said and done wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import task, told
from tests.e2e.near import finished, near, record, said

ONE = task("one", "echo one >src/one")


@pytest.fixture
def lost(template: Path, tmp_path: Path) -> Path:
    """A working tree on a batch's branch whose record was deleted, beside another batch's."""
    top = finished(template, tmp_path / "repo", ONE)
    other = record(top)
    git(top, "switch", "-q", "main")
    text = (top / "batch.toml").read_text()
    parts = ONE + task("two", "exit 1")
    (top / "batch.toml").write_text(text.split("\n[[task]]")[0].replace("demo", "lost") + parts)
    near(top, "start", "--yes", status=1)
    refs = git(top, "for-each-ref", "--format=%(refname)", "refs/notes/batch").split()
    git(top, "update-ref", "-d", next(ref for ref in refs if ref != other))
    return top


@pytest.mark.parametrize("command", [("status",), ("report",), ("log",)])
def test_what_went_wrong_where_a_record_was_lost_another_batch_was_shown(
    lost: Path, command: tuple[str, ...]
) -> None:
    done = said(near(lost, *command, status=None))
    assert "is not here" in done
    assert "git batch recover batch/lost" in done
    assert "demo-" not in done
    assert told(lost, "status")["batch_id"] != told(lost, "status", "demo")["batch_id"]


@pytest.mark.parametrize("command", [("retry", "one"), ("undo", "one"), ("resume",), ("bless",)])
def test_what_went_wrong_where_a_record_was_lost_another_batch_was_acted_on(
    lost: Path, command: tuple[str, ...]
) -> None:
    before = git(lost, "for-each-ref")
    assert near(lost, *command, status=3).hints == ["get it: git batch recover batch/lost"]
    assert git(lost, "for-each-ref") == before
    assert "lost-" in said(near(lost, "verify", status=3))
    near(lost, "recover")
    assert told(lost)["slug"] == "lost"


def test_what_went_wrong_a_list_said_there_was_no_batch_where_a_record_was_lost(
    template: Path, tmp_path: Path
) -> None:
    top = finished(template, tmp_path / "repo", ONE)
    git(top, "update-ref", "-d", record(top))
    out = near(top, "list").out
    assert "no batch in this repository" not in out
    assert "get it: git batch recover batch/demo" in out


def test_a_branch_that_only_has_the_commits_of_a_batch_is_not_its_branch(lost: Path) -> None:
    git(lost, "switch", "-qc", "batch/mine")
    assert told(lost)["slug"] == "demo"
    git(lost, "switch", "-q", "main")
    git(lost, "merge", "-q", "--ff-only", "batch/lost")
    assert told(lost)["slug"] == "demo"
