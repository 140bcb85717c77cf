"""Every command that is named can be pasted: it acts on the batch it was named for, and works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from git_batch.cli.main import COMMANDS
from git_batch.cli.manpage import root_context
from git_batch.views.addressing import OF_A_BATCH, OF_A_TASK, addressed
from tests.conftest import git
from tests.e2e.job import task, told, write
from tests.e2e.near import near

OURS = re.compile(r"git batch [a-z][^\n`]*")


def parks(top: Path, slug: str, *, status: int = 1) -> str:
    """Run a batch whose three tasks need a person, and go back to main; give its id."""
    tasks = (task(f"t{n}", f"echo {slug} >src/{slug}{n}; exit 1") for n in (1, 2, 3))
    path = write(top, *tasks)
    path.write_text(path.read_text().replace('slug = "demo"', f'slug = "{slug}"'))
    near(top, "start", "--yes", status=status)
    git(top, "switch", "-q", "main")
    return str(told(top, "status", slug)["batch_id"])


def test_what_went_wrong_commands_of_a_named_batch_acted_on_another(repo: Path) -> None:
    a, b = parks(repo, "a"), parks(repo, "b")
    (repo / "batch.toml").unlink()
    said = (
        near(repo, "report", a).out
        + near(repo, "status", a).out
        + near(repo, "show", f"{a}:t1").out
    )
    named = [c for c in OURS.findall(said) if "report" not in c]
    assert f"git batch retry {a}:t1" in said
    assert f"git batch skip {a}:t1" in said
    assert f"git batch resume {a}" in said
    assert [c for c in named if a not in c] == []
    near(repo, *shlex.split(f"retry {a}:t1"))
    assert told(repo, "report", a)["tasks"][0]["state"] == "pending"
    assert told(repo, "report", b)["tasks"][0]["state"] == "needs_human"


def test_names_are_left_out_where_a_bare_command_means_the_same_batch(repo: Path) -> None:
    a = parks(repo, "a")
    assert a not in " ".join(OURS.findall(near(repo, "report", a).out))
    parks(repo, "b")
    git(repo, "switch", "-q", "batch/a")
    assert f"git batch retry {a}:t1" not in near(repo, "report", a).out
    assert near(repo, "retry", "t1").out.endswith("go on: git batch resume\n")
    git(repo, "switch", "-q", "main")
    assert near(repo, "retry", f"{a}:t2").out.endswith("go on: git batch resume\n")  # the latest
    git(repo, "switch", "-q", "batch/b")
    assert near(repo, "retry", f"{a}:t3").out.endswith(f"go on: git batch resume {a}\n")


def test_every_command_that_takes_a_batch_or_task_first_can_be_addressed() -> None:
    root = root_context()
    assert isinstance(root.command, click.Group)
    found: dict[str, set[str]] = {"task": set(), "batch": set()}
    for name in COMMANDS:
        command = root.command.get_command(root, name)
        assert command is not None
        first = next((p for p in command.params if isinstance(p, click.Argument)), None)
        if first is not None and first.name in found:
            found[first.name].add(name)
    assert found["task"] == OF_A_TASK
    assert found["batch"] | {"verify"} == OF_A_BATCH | {"prune"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git batch resume", "git batch resume a-abc123"),
        ("git batch resume --max-tasks +2", "git batch resume a-abc123 --max-tasks +2"),
        ("git batch resume b-abc123", "git batch resume b-abc123"),
        ("git batch retry t1 -m 'ANSWER'", "git batch retry a-abc123:t1 -m 'ANSWER'"),
        ("git batch retry b:t1", "git batch retry b:t1"),
        ("git batch find --commit HEAD", "git batch find --commit HEAD"),
        ("git batch recover batch/a", "git batch recover batch/a"),
        ("git log --oneline a..b", "git log --oneline a..b"),
        ("", ""),
    ],
)
def test_a_command_is_addressed_once(command: str, expected: str) -> None:
    assert addressed(command, "a-abc123") == expected
    assert addressed(command, None) == command


def test_what_went_wrong_a_task_that_nothing_needs_was_to_be_skipped_again(repo: Path) -> None:
    write(
        repo,
        task("solo", "exit 2"),
        task("base", "exit 2"),
        task("mid", "true", 'blocked_by = ["base"]'),
        task("leaf", "true", 'blocked_by = ["mid"]'),
    )
    near(repo, "start", "--yes", status=1)
    near(repo, "skip", "solo")
    near(repo, "skip", "base")
    near(repo, "resume", status=1)
    status = told(repo)
    assert status["reason"] == "what is left needs 'base', which was taken out"
    assert status["next_action"] == "git batch skip base --dependents"
    near(repo, *shlex.split(status["next_action"])[2:])
    near(repo, "resume")
    assert told(repo)["state"] == "completed"
