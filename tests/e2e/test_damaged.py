"""A record of which an object was lost or damaged: it is said, and recovered as far as it goes.

Every kind of object that a record's ref leads to, in every way that a crash, a bad disk or a hand
damages it; every command that reads it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, Done, committed, task, write
from tests.e2e.near import near, record, said

TASK = "plan/000/one.toml"
KINDS: dict[str, Callable[[Path, str], str]] = {
    "newest event": lambda top, ref: git(top, "rev-parse", ref),
    "event before": lambda top, ref: git(top, "rev-parse", f"{ref}~1"),
    "first event": lambda top, ref: git(top, "rev-list", "--first-parent", ref).split()[-1],
    "tree": lambda top, ref: git(top, "rev-parse", f"{ref}^{{tree}}"),
    "header": lambda top, ref: git(top, "rev-parse", f"{ref}:batch.toml"),
    "plan": lambda top, ref: git(top, "rev-parse", f"{ref}:plan.toml"),
    "plan folder": lambda top, ref: git(top, "rev-parse", f"{ref}:plan"),
    "plan shard": lambda top, ref: git(top, "rev-parse", f"{ref}:plan/000"),
    "task": lambda top, ref: git(top, "rev-parse", f"{ref}:{TASK}"),
    "note folder": lambda top, ref: git(top, "rev-parse", f"{ref}:{fan(top, ref, TASK)[:2]}"),
    "note": lambda top, ref: git(top, "rev-parse", f"{ref}:{fan(top, ref, TASK)}"),
    "receipt": lambda top, ref: git(top, "rev-parse", f"{ref}:{fan(top, BRANCH)}"),
}
WAYS: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(b"\0" * path.stat().st_size),
    "torn": lambda path: os.truncate(path, path.stat().st_size // 2),
}
READ = (
    ("report",), ("show", "one"), ("status",), ("status", "--json"), ("log",), ("verify",),
    ("list",), ("find", "one"), ("start", "--yes", "../plan.toml"), ("push",),
)  # fmt: skip
WRONG = re.compile("a bug in|Traceback|ended early|KeyError|certifies another|not in force")


def fan(top: Path, rev: str, path: str = "") -> str:
    oid = git(top, "rev-parse", f"{rev}:{path}" if path else rev)
    return f"{oid[:2]}/{oid[2:]}"


@pytest.fixture(scope="module")
def stopped(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a batch that stopped after the first of its two tasks."""
    top = tmp_path_factory.mktemp("stopped") / "repo"
    shutil.copytree(template, top, symlinks=True)
    write(top, task("one", "echo 1 >src/one"), task("two", "echo 2 >src/two"))
    plan = (top / "batch.toml").rename(top.parent / "plan.toml")
    near(top, "start", "--yes", "--max-tasks", "1", str(plan), status=1)
    return top


def copy(of: Path, place: Path, oid: str, way: str) -> Path:
    """Copy a repository and damage one of its objects."""
    shutil.copytree(of, place, symlinks=True)
    path = place / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    WAYS[way](path)
    return place


def understood(done: Done) -> None:
    assert done.status in (0, 1, 3), done
    assert not WRONG.search(said(done)), done


CASES = [
    # Each kind in two of the four ways, each way for half of the kinds; all of it takes its time.
    pytest.param(kind, way, marks=() if (i + j) % 2 else pytest.mark.long)
    for i, kind in enumerate(KINDS)
    for j, way in enumerate(WAYS)
]


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_what_went_wrong_was_a_bug_where_an_object_of_the_record_is_damaged(
    stopped: Path, tmp_path: Path, kind: str, way: str
) -> None:
    ref = record(stopped)
    batch = ref.rpartition("/")[2]
    oid = KINDS[kind](stopped, ref)
    shutil.copy(stopped.parent / "plan.toml", tmp_path)
    top = copy(stopped, tmp_path / "read", oid, way)
    for command in READ:
        done = near(top, *command, status=None)
        understood(done)
        if "can't be read" in said(done):
            assert f"the record of '{batch}' can't be read" in said(done)
            assert f"git batch recover {batch}" in said(done), done
    understood(near(top, "resume", "--yes", "--max-tasks", "9", status=None))

    top = copy(stopped, tmp_path / "recovered", oid, way)
    found = near(top, "recover", batch)
    understood(found)
    if "its plan is not known" in said(near(top, "resume", "--yes", status=None)):
        assert "lost: the plan" in found.out
        understood(near(top, "recover", batch, "--plan", "../plan.toml"))
    near(top, "resume", "--yes", "--max-tasks", "9", status=None)
    assert sorted(committed(top)) == ["one", "two"]
    near(top, "status", batch)
    near(top, "report", batch)


def test_what_went_wrong_one_damaged_record_hid_all_others(stopped: Path, tmp_path: Path) -> None:
    ref = record(stopped)
    top = copy(stopped, tmp_path / "repo", KINDS["newest event"](stopped, ref), "zeros")
    git(top, "switch", "-q", "main")
    write(top, task("three", "echo 3 >src/three"))
    plan = top / "batch.toml"
    plan.write_text(plan.read_text().replace('"demo"', '"other"'))
    near(top, "start", "--yes")
    listed = near(top, "list").out
    assert "completed" in listed
    assert f"the record of '{ref.rpartition('/')[2]}' can't be read" in listed


def test_what_went_wrong_a_batch_without_a_commit_was_not_recovered(
    template: Path, tmp_path: Path
) -> None:
    top = tmp_path / "repo"
    shutil.copytree(template, top, symlinks=True)
    write(top, task("one", "exit 1"), task("two", "echo 2 >src/two"))
    near(top, "start", "--yes", "--max-tasks", "1", status=1)
    oid = git(top, "rev-parse", record(top))
    damaged = copy(top, tmp_path / "damaged", oid, "zeros")
    assert "at its event" in near(damaged, "recover").out
    near(damaged, "status")
    plan_oid = git(top, "rev-parse", f"{record(top)}:plan.toml")
    damaged = copy(top, tmp_path / "planless", plan_oid, "gone")
    refused = near(damaged, "recover", status=3)
    assert "nothing of the record" in refused.err
    assert "another 'slug'" in refused.hints[0]
    plan = damaged / "batch.toml"
    plan.write_text(plan.read_text().replace('"demo"', '"other"').replace("exit 1", "echo >src/1"))
    near(damaged, "start", "--yes")


@pytest.mark.parametrize(
    ("kind", "told"),
    [("note", "damaged: "), ("receipt", "damaged, written anew: "), ("task", "damaged, written")],
)
def test_what_went_wrong_a_file_that_the_disk_does_not_give_was_no_damage(
    stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, told: str
) -> None:
    ref = record(stopped)
    oid = KINDS[kind](stopped, ref)
    top = tmp_path / "repo"
    shutil.copytree(stopped, top, symlinks=True)
    file = top / ".git/objects" / oid[:2] / oid[2:]
    bad = file.stat().st_ino
    read = pygit2.Repository.__getitem__

    def on_bad_disk(objects: pygit2.Repository, key: pygit2.Oid) -> pygit2.Object:
        if str(key) == oid and file.exists() and file.stat().st_ino == bad:
            raise OSError(errno.EIO, "Input/output error")
        return read(objects, key)

    monkeypatch.setattr(pygit2.Repository, "__getitem__", on_bad_disk)
    assert near(top, "recover").out.startswith(told)
    assert (top / ".git/batch/unreadable" / f"{oid[2:]}.1").stat().st_ino == bad
    near(top, "report")


def torn(of: Path, place: Path, oid: str) -> Path:
    return copy(of, place, oid, "torn")


def test_what_went_wrong_a_damaged_tip_of_a_branch_hid_all_batches(
    stopped: Path, tmp_path: Path
) -> None:
    tip = git(stopped, "rev-parse", BRANCH)
    top = torn(stopped, tmp_path / "repo", tip)
    assert near(top, "list").out.startswith("demo-")
    near(top, "log")
    said_of_it = f"branch 'batch/demo' is at {tip}, and that commit"
    for command in ("report", "status"):
        assert f"{said_of_it} is damaged" in " ".join(near(top, command).out.split())
    refused = near(top, "recover", status=3)
    assert f"{said_of_it} can't be read" in refused.err
    assert "git fsck" in refused.hints[0]
    refused = near(top, "resume", "--yes", status=3)
    assert tip in refused.err
    assert "git fsck" in refused.hints[0]


def test_what_went_wrong_a_damaged_claim_hid_all_batches_and_stopped_its_own(
    stopped: Path, tmp_path: Path
) -> None:
    claim = git(stopped, "rev-parse", "refs/batch/claims/demo/@")
    top = torn(stopped, tmp_path / "repo", claim)
    listed = near(top, "list").out
    assert listed.startswith("demo-")
    assert f"the claim on 'demo' can't be read: commit {claim}" in listed
    near(top, "resume", "--yes", "--max-tasks", "9")
    assert committed(top) == ["one", "two"]
    assert git(top, "for-each-ref", "refs/batch/claims") == ""


@pytest.mark.parametrize("part", ["", "^{tree}", ":000", ":000/one", ":000/one/1"])
def test_what_went_wrong_a_damaged_log_hid_the_report_and_stopped_the_run(
    template: Path, tmp_path: Path, part: str
) -> None:
    of = tmp_path / "of"
    shutil.copytree(template, of, symlinks=True)
    write(of, task("one", "echo said; test -e ../flag && echo 1 >src/one"))
    near(of, "start", "--yes", status=1)
    ref = record(of).replace("refs/notes/batch", "refs/batch") + "/logs"
    oid = git(of, "rev-parse", ref + part)
    top = torn(of, tmp_path / "repo", oid)
    for command in (("report",), ("show", "one", "--output")):
        assert oid in near(top, *command).out.replace("\n", "")
    (tmp_path / "flag").touch()
    near(top, "retry", "one")
    near(top, "resume", "--yes")
    assert "said" in near(top, "show", "one", "--output", "--attempt", "2").out


def test_what_went_wrong_a_script_that_breaks_off_was_waited_for(
    repo: Path, tmp_path: Path
) -> None:
    (repo / "src/gen.sh").write_text("echo 1 >src/one\n" * 9)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "script")
    write(repo, task("one", "src/gen.sh"))
    blob = git(repo, "rev-parse", "HEAD:src/gen.sh")
    path = repo / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    os.truncate(path, 12)
    (repo / ".git/batch").mkdir(exist_ok=True)
    understood(near(repo, "start", "--yes", "--dry-run", status=None))
    understood(near(repo, "start", "--yes", status=None))
