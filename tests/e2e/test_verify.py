"""`git batch verify`, as a person and as CI use it (case 19)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, batch, task, write
from tests.e2e.near import back_to, by_hand, finished, near, pasted, record


@pytest.fixture(scope="module")
def done(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("done") / "repo"


@pytest.fixture
def top(template: Path, done: Path, tmp_path: Path) -> Path:
    if not done.exists():
        finished(template, done)
    shutil.copytree(done, tmp_path / "repo", symlinks=True)
    return tmp_path / "repo"


def test_a_finished_batch_is_ok_whatever_it_is_named_by(top: Path) -> None:
    name = record(top).rpartition("/")[2]
    for what in ((), (name,), ("demo",), (BRANCH,), ("HEAD",), (f"main..{BRANCH}",), ("HEAD~1",)):
        assert near(top, "verify", *what).out.startswith("ok: ")
    told = json.loads(near(top, "verify", "--json").out)
    assert told["version"] == 1
    assert (told["status"], told["certified"], told["batch_id"]) == ("whole", True, name)
    assert (told["commits"], told["tasks"], told["drift"], told["unchecked"]) == (3, 3, [], [])


def test_what_went_wrong_an_undone_commit_was_counted_as_a_task(top: Path, tmp_path: Path) -> None:
    near(top, "undo", "one")
    # Its dependents are none, so one commit is taken back by one other.
    said = near(top, "verify").out
    assert "(2 tasks, 1 commit that was undone, one other commit)" in said
    assert (
        "(2 tasks, 1 commit that was undone, one other commit)" in near(top, "verify", "HEAD").out
    )
    assert "(2 tasks, 1 commit that was undone" in near(top, "verify", "--trailers-only").out
    told = json.loads(near(top, "verify", "--json").out)
    assert (told["commits"], told["tasks"], told["undone"]) == (4, 2, 1)
    git(tmp_path, "clone", "-q", "--branch", BRANCH, str(top), "clone")
    assert "done: two, three" in near(tmp_path / "clone", "status").out
    near(top, "undo", "two")
    near(top, "undo", "three")
    assert "(0 tasks, 3 commits that were undone, 3 other commits)" in near(top, "verify").out
    assert "agree with each other" in near(top, "verify", "--trailers-only").out
    git(tmp_path / "clone", "pull", "-q")
    assert "done: nothing" in near(tmp_path / "clone", "status").out


def test_what_went_wrong_a_task_that_was_done_again_was_counted_twice(top: Path) -> None:
    near(top, "undo", "one", "--redo")
    near(top, "resume", "--yes")
    assert "(3 tasks, 1 commit that was undone, one other commit)" in near(top, "verify").out


def test_what_went_wrong_a_range_from_below_the_base_was_all_drift(
    template: Path, tmp_path: Path
) -> None:
    """As in a clone whose main lacks what the batch began on."""
    top = tmp_path / "repo"
    shutil.copytree(template, top, symlinks=True)
    before = git(top, "rev-parse", "HEAD")
    base = by_hand(top)
    write(top, task("a", "echo a >src/one"), task("b", "echo b >src/two"))
    near(top, "start", "--yes")
    said = near(top, "verify", f"{before}..{BRANCH}").out
    assert said.startswith("ok: ")
    assert "(2 tasks)" in said
    assert f"not proven: a commit of the range that the batch began on, up to {base}" in said
    assert "not proven" not in near(top, "verify", f"{base}..{BRANCH}").out
    git(top, "commit", "-q", "--amend", "-m", "other")
    drifts = json.loads(near(top, "verify", f"{before}..{BRANCH}", "--json", status=4).out)["drift"]
    assert base not in [drift["commit"] for drift in drifts]


def test_an_amended_commit_is_told_with_both_ids_and_a_way_out(top: Path) -> None:
    old = git(top, "rev-parse", "HEAD")
    git(top, "commit", "-q", "--amend", "--no-edit", "--date=2001-01-01T00:00:00Z")
    new = git(top, "rev-parse", "HEAD")
    said = near(top, "verify", status=4).out
    assert "history rewritten" in said
    assert old in said
    assert new in said
    (drift,) = json.loads(near(top, "verify", "--json", status=4).out)["drift"]
    assert (drift["kind"], drift["commit"]) == ("history rewritten", new)
    assert drift["way_out"] == f"git switch batch/demo && {back_to(old, new)}"
    assert drift["look"].startswith("git range-diff ")
    pasted(top, drift["look"])
    pasted(top, drift["way_out"])
    near(top, "verify")


def test_ways_out_never_destroy_anything(top: Path) -> None:
    ways = []
    for change in (
        ("commit", "-q", "--amend", "-m", "other"),
        ("reset", "-q", "--hard", "HEAD~1"),
        ("commit", "-q", "--allow-empty", "-m", "on top"),
        ("branch", "-m", "elsewhere"),
    ):
        git(top, *change)
        told = json.loads(near(top, "verify", "demo", "--json", status=4).out)
        ways += [d["way_out"] for d in told["drift"]]
    assert len(ways) >= 4
    for word in ("reset --hard", "rm ", "clean", " -f", "--force", "-D", "update-ref"):
        assert not any(word in way for way in ways)


def test_a_branch_that_was_set_back_is_mended_by_what_is_said(top: Path) -> None:
    git(top, "reset", "-q", "--hard", "HEAD~2")
    (drift,) = json.loads(near(top, "verify", "--json", status=4).out)["drift"]
    assert drift["kind"] == "moved back"
    pasted(top, drift["way_out"])
    near(top, "verify")


def test_a_branch_that_is_gone_is_told_with_the_command_that_makes_it(top: Path) -> None:
    git(top, "switch", "-q", "--detach")
    git(top, "branch", "-q", "-D", BRANCH)
    (drift,) = json.loads(near(top, "verify", "demo", "--json", status=4).out)["drift"]
    assert drift["kind"] == "branch missing"
    pasted(top, drift["way_out"])
    near(top, "verify", "demo")


def test_a_rebased_branch_is_told_and_its_first_bad_commit_named(top: Path) -> None:
    git(top, "switch", "-q", "main")
    moved = by_hand(top)
    git(top, "switch", "-q", BRANCH)
    git(top, "rebase", "-q", "main")
    drifts = json.loads(near(top, "verify", "--json", status=4).out)["drift"]
    assert [d["kind"] for d in drifts] == ["history rewritten"] * 4
    assert drifts[0]["commit"] == moved


def test_a_commit_on_top_is_told_with_the_command_that_blesses_it(top: Path) -> None:
    made = by_hand(top)
    (drift,) = json.loads(near(top, "verify", "--json", status=4).out)["drift"]
    assert (drift["kind"], drift["commit"]) == ("foreign commits", made)
    near(top, *drift["way_out"].split()[2:])
    near(top, "verify")


@pytest.fixture
def clone(top: Path, tmp_path: Path) -> Path:
    """Give what CI has: a clone in which git-batch never ran, without the record."""
    git(tmp_path, "clone", "-q", "--no-local", str(top), "clone")
    git(tmp_path / "clone", "switch", "-q", BRANCH)
    return tmp_path / "clone"


def test_without_the_record_it_cant_tell_and_says_how_to_get_it(clone: Path) -> None:
    way = ""
    for what in ((), (BRANCH,), ("HEAD",), ("origin/main..HEAD",)):
        said = near(clone, "verify", *what, status=3).out
        assert not said.startswith("ok")
        assert "ok:" not in said
        (way,) = [line.strip() for line in said.splitlines() if "git batch fetch" in line]
    near(clone, *way.split()[2:])
    assert near(clone, "verify").out.startswith("ok: ")


def test_a_tracking_copy_of_the_record_will_do(clone: Path) -> None:
    git(clone, "fetch", "-q", "origin", "+refs/notes/batch/*:refs/batch/remotes/origin/*")
    said = near(clone, "verify").out
    assert "refs/batch/remotes/origin/" in said
    git(clone, "commit", "-q", "--amend", "-m", "other")
    near(clone, "verify", status=4)


def test_with_the_record_but_without_the_branch_the_remotes_is_verified(clone: Path) -> None:
    ref = "refs/notes/batch/*:refs/notes/batch/*"
    git(clone, "fetch", "-q", "origin", ref)
    git(clone, "switch", "-q", "main")
    git(clone, "branch", "-q", "-D", BRANCH)
    assert f"'origin/{BRANCH}'" in near(clone, "verify", "demo").out


def test_trailers_alone_never_read_as_ok(clone: Path) -> None:
    said = near(clone, "verify", "--trailers-only").out
    assert "agree" in said
    assert "not checked" in said
    assert "ok" not in said.split()
    told = json.loads(near(clone, "verify", "--trailers-only", "--json").out)
    assert (told["status"], told["certified"], len(told["unchecked"])) == ("unknown", False, 4)
    git(clone, "cherry-pick", "--allow-empty", "--keep-redundant-commits", "HEAD~1")
    near(clone, "verify", "--trailers-only", status=4)


def test_trailers_only_says_the_same_beside_the_record(top: Path) -> None:
    assert "not checked" in near(top, "verify", "--trailers-only").out


def test_a_shallow_clone_cant_tell(top: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=2", "--branch", BRANCH, f"file://{top}", "shallow")
    shallow = tmp_path / "shallow"
    git(shallow, "fetch", "-q", "--depth=1", "origin", f"{record(top)}:{record(top)}")
    said = near(shallow, "verify", status=3).out
    assert "not in this repository" in said


def test_replace_refs_and_grafts_do_not_change_the_answer(top: Path) -> None:
    git(top, "replace", "HEAD~1", "main")
    assert near(top, "verify").out.startswith("ok: ")
    good = git(top, "rev-parse", "HEAD")
    git(top, "replace", "-d", git(top, "rev-parse", "HEAD~1"))
    git(top, "commit", "-q", "--amend", "-m", "other")
    git(top, "replace", "HEAD", good)
    near(top, "verify", status=4)
    git(top, "replace", "-d", git(top, "rev-parse", "HEAD"))
    git(top, "reset", "-q", "--hard", good)
    (top / ".git/info/grafts").write_text(f"{good} {git(top, 'rev-parse', 'main')}\n")
    assert near(top, "verify").out.startswith("ok: ")


def test_nothing_to_verify_is_no_ok(repo: Path) -> None:
    assert near(repo, "verify", status=3).out.startswith("can't tell")
    assert "neither a batch nor a commit" in near(repo, "verify", "nothing", status=2).err


def test_status_in_a_clone_says_that_the_state_is_not_fetched(clone: Path) -> None:
    said = near(clone, "status").out
    assert "not fetched" in said
    assert "one, two, three" in said
    assert "no batch" not in said
    told = json.loads(near(clone, "status", "--json").out)
    assert [t["id"] for t in told["tasks"]] == ["one", "two", "three"]
    near(clone, *told["next_action"].split()[2:])
    assert json.loads(near(clone, "status", "--json").out)["state"] == "completed"


def test_as_a_process_of_its_own_it_needs_no_pydantic(top: Path) -> None:
    assert batch(top, "verify").out.startswith("ok: ")
    script = "import sys, git_batch.repo.lineage as _; print([m for m in sys.modules if m in %r])"
    heavy = ("pydantic", "click", "pygit2", "tomli_w", "git_batch.core.record")
    done = subprocess.run(
        [sys.executable, "-c", script % (heavy,)], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
