"""Pushes that a server's hooks judge: quarantined objects, records beside or before the branch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, batch
from tests.hooks.hosts import call, hooks, write_hook
from tests.hooks.pushing import (
    EVERY_DRIFT,
    amended,
    no_tool,
    passed,
    push,
    record,
    refs,
    refused,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable


@EVERY_DRIFT
def test_drift_is_refused_by_the_server(
    top: Path, server: Path, drift: Callable[[Path], None]
) -> None:
    drift(top)
    before = refs(server)
    refused(push(top, "-f", BRANCH, record(top)), BRANCH)
    assert refs(server) == before
    assert git(server, "fsck", "--strict", "--no-dangling") == ""


def test_takes_a_whole_branch_with_or_without_its_record(top: Path, server: Path) -> None:
    passed(push(top, record(top), BRANCH))
    passed(push(top, f":{BRANCH}"))
    passed(push(top))


def test_demands_the_record(top: Path, server: Path) -> None:
    git(server, "config", "batch.requireRecord", "true")
    refused(push(top), "is missing", "git batch push")
    passed(push(top, "--atomic", BRANCH, record(top)))
    passed(push(top, f":{BRANCH}"))
    passed(push(top))


def test_leaves_others_alone(top: Path, server: Path) -> None:
    git(server, "config", "batch.requireRecord", "true")
    git(top, "tag", "v1")
    passed(push(top, "v1", "main:other"))
    passed(push(top, ":v1", ":other"))


def test_refuses_a_record_that_was_set_back(top: Path, server: Path) -> None:
    name = record(top)
    passed(push(top, name, BRANCH))
    refused(push(top, "-f", f"{name}~2:{name}"), "does not go on from")


def test_what_went_wrong_commits_that_the_record_of_the_server_is_behind_were_called_forged(
    top: Path, server: Path
) -> None:
    name = record(top)
    steps = git(top, "log", "--first-parent", "--format=%H %s", name).splitlines()
    [older] = [line.split()[0] for line in steps if line.endswith(" t1: committed")]
    passed(push(top, f"{older}:{name}", f"{BRANCH}~2:refs/heads/{BRANCH}"))
    batch(top, "undo", "t3")
    done = push(top)
    refused(done, "does not reach as far as", "beyond the record", "says it takes back 't3'")
    assert "forged trailers" not in done.said
    assert "push the record with the branch: git batch push <remote> demo-" in done.said
    assert "range-diff" not in done.said
    passed(push(top, "--atomic", BRANCH, name))


def test_update_hook_alone_refuses_the_same(top: Path, server: Path) -> None:
    (server / "hooks/pre-receive").unlink()
    passed(push(top, record(top)))
    passed(push(top))
    amended(top)
    refused(push(top, "-f", BRANCH, "main:other"), BRANCH)
    assert "refs/heads/other" in refs(server)


def test_own_hooks_run_with_what_git_gave_them(
    top: Path, server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks(server, "uninstall")
    for name in ("pre-receive", "update"):
        write_hook(server / "hooks" / name)
    hooks(server, "install")
    told = server / "told"
    monkeypatch.setenv("TOLD", str(told))
    passed(push(top, record(top), BRANCH))
    tip = git(top, "rev-parse", BRANCH)
    assert f"{'0' * 40} {tip} refs/heads/{BRANCH}\n" in told.read_text()
    assert f"refs/heads/{BRANCH} {'0' * 40} {tip}" in told.read_text()


def test_refuses_without_the_tool_what_concerns_a_batch(
    top: Path, server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_tool(server / "hooks", monkeypatch)
    passed(push(top, "main:other"))
    done = call(top, "git", "push", "origin", BRANCH)
    assert done.status == 1
    assert "could not be run" in done.said
