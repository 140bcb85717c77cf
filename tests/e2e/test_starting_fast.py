"""What must start fast loads little: neither libgit2 nor what only a run or a plan needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import batch, task, write
from tests.e2e.near import by_hand, finished, near
from tests.e2e.scene import environment

HEAVY = (
    "pygit2",
    "pydantic",
    "ssl",
    "git_batch.core.events",
    "git_batch.core.machine",
    "git_batch.core.planmodel",
    "git_batch.run.process",
)
SCRIPT = """
import sys
from git_batch.cli.main import main
status = main(sys.argv[2:])
print([name for name in sys.argv[1].split() if name in sys.modules], file=sys.stderr)
sys.exit(status)
"""


def loaded(top: Path, *args: str) -> tuple[str, str]:
    """Run a command; give what it printed and which heavy modules it needed."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, " ".join(HEAVY), *args],
        cwd=top,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr.strip()


@pytest.fixture
def top(template: Path, tmp_path: Path) -> Path:
    return finished(template, tmp_path / "repo")


@pytest.mark.parametrize("args", [("status",), ("find", "two")])
def test_nothing_heavy_is_loaded(top: Path, args: tuple[str, ...]) -> None:
    out, heavy = loaded(top, *args)
    assert out == near(top, *args).out
    assert heavy == "[]"


def test_a_start_asks_git_for_its_configuration_once_and_the_fence_once(
    repo: Path, tmp_path: Path
) -> None:
    write(repo, task("a", "echo one >src/new", 'check = "true"'))
    trace = tmp_path / "trace"
    batch(repo, "start", "--yes", env={"GIT_TRACE2_EVENT": str(trace)})
    started = [e for e in map(json.loads, trace.read_text().splitlines()) if e["event"] == "start"]
    asked = [e["argv"] for e in started if "config" in e["argv"]]
    assert [("--show-origin" in argv) for argv in asked] == [False, True]
    assert len(started) <= 18, [" ".join(e["argv"]) for e in started]


def test_status_sees_drift_without_loading_more(top: Path) -> None:
    oid = by_hand(top)
    out, heavy = loaded(top, "status")
    assert "foreign commits" in out
    assert oid in out
    assert heavy == "[]"


def test_status_of_a_branch_whose_file_was_cut_off_says_so(top: Path) -> None:
    name = git(top, "symbolic-ref", "HEAD")
    (top / ".git" / name).write_bytes(b"")
    assert f"the ref '{name}' can't be read" in near(top, "status", status=3).err
