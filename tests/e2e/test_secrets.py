"""What a command was given or found out in confidence is in nothing that is pushed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, batch, committed, outcomes, task, write

CANARY = "c4n4ry-0f-th3-environment"
FOUND = "gh" + "p_" + "f0und0nth3way" * 3
SAY = "echo said: $SOME_API_TOKEN $(cat ../found) | tee -a ../said"
FAR = "head -c 4020 /dev/zero | tr '[:cntrl:]' x"
"""So much that what is printed next lies across the place where a reason is cut."""


@pytest.fixture
def env(repo: Path) -> dict[str, str]:
    """Have secrets in the environment and in a file."""
    (repo.parent / "found").write_text(FOUND)
    return {"SOME_API_TOKEN": CANARY}


def objects(repo: Path, *refs: str) -> bytes:
    """Give the content of all objects that refs reach."""
    names = [line.split(" ")[0] for line in git(repo, "rev-list", "--objects", *refs).splitlines()]
    read = ["git", "cat-file", "--batch"]
    return subprocess.run(
        read, cwd=repo, input="\n".join(names).encode(), capture_output=True, check=True
    ).stdout


def pushed(repo: Path) -> bytes:
    """Give what `git batch push` sends, the base apart."""
    records = git(repo, "for-each-ref", "--format=%(refname)", "refs/notes/batch/").split()
    return objects(repo, BRANCH, *records)


def kept(repo: Path) -> bytes:
    """Give the content of all objects but what the task itself wrote to files."""
    logs = git(repo, "for-each-ref", "--format=%(refname)", "refs/batch/*/logs").split()
    return pushed(repo) + objects(repo, *logs)


def in_confidence(repo: Path) -> None:
    """See that it was said, and that nothing has it that is kept or told."""
    said = (repo.parent / "said").read_bytes()
    told = batch(repo, "report").out + batch(repo, "show", "one", "--output").out
    for secret in (CANARY.encode(), FOUND.encode()):
        assert secret in said
        assert secret[:10] not in kept(repo) + told.encode()
    assert b"[redacted]" in pushed(repo)
    assert "[redacted]" in told


@pytest.mark.parametrize(
    ("run", "more", "outcome"),
    [
        (f"{SAY}; exit 1", (), "run_failed"),
        (f'{SAY} | tee "$BATCH_BLOCKED"', (), "blocked"),
        (f"{SAY}; exit 125", (), "blocked"),
        ("echo 1 >src/1", (f"check = '{SAY}; false'",), "check_failed"),
        ("echo 1 >src/1", (f'check = "{FAR}; {SAY}; seq 9999; false"',), "check_failed"),
        ("echo 1 >src/1", (f"review = '{SAY}; exit 1'",), "review_rework"),
    ],
    ids=["failed", "blocked by file", "blocked", "check", "at the cut", "review"],
)  # fmt: skip
def test_a_secret_that_a_command_printed_was_pushed(
    repo: Path, run: str, more: tuple[str, ...], outcome: str, env: dict[str, str]
) -> None:
    write(repo, task("one", run, *more, "attempts = 2"))
    batch(repo, "start", "--yes", status=1, env=env)
    assert outcomes(repo) == {"one": outcome}
    in_confidence(repo)


def test_a_secret_that_a_hook_printed_was_pushed(repo: Path, env: dict[str, str]) -> None:
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\n{SAY}\nexit 1\n")
    hook.chmod(0o755)
    write(repo, task("one", "echo 1 >src/1"))
    batch(repo, "start", "--yes", status=1, env=env)
    assert outcomes(repo) == {"one": "hook_refused"}
    in_confidence(repo)


def test_a_secret_that_an_agent_put_into_its_message_was_committed(
    repo: Path, env: dict[str, str]
) -> None:
    say = f'{SAY} | tee "$BATCH_MESSAGE"'
    write(repo, task("one", f"{say}; echo 1 >src/1", 'env = {OTHER_KEY = "of the plan"}'))
    batch(repo, "start", "--yes", env=env)
    assert committed(repo) == ["one"]
    assert "said: [redacted] [redacted]" in git(repo, "log", "-1", "--format=%B", BRANCH)
    in_confidence(repo)
