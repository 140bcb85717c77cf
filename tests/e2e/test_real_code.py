"""Real code that nobody here wrote: ruff's fixers on an installed package, a rule family per task.

The package is pytest's own source, which is wherever these tests run; ruff is the one of the same
environment. Each task is checked by ruff itself, which must find nothing more to fix in its family,
and by compiling all of the tree.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, batch, committed, outcomes, tasks, told, write

RUFF = Path(sys.executable).with_name("ruff")
PACKAGE = "_pytest"
FAMILIES = {
    "imports": ("I001", ""),
    "unions": ("UP", "imports"),
    "simplify": ("SIM", "imports"),
    "comprehensions": ("C4", ""),
    "returns": ("RET", "simplify"),
    "pytest-style": ("PT", "returns"),
    "pie": ("PIE", "comprehensions"),
    "perflint": ("PERF", "unions"),
}
"""Task, its rules, and the task that it comes after."""

CONFIG = 'target-version = "py311"\nline-length = 100\n'
HEAD = """
[defaults]
timeout = "2m"
on_empty = "accept"
scope = ["code/**/*.py"]
protect = ["code/_version.py"]
"""
TASK = """
[[task]]
id = "{id}"
title = "Apply ruff's fixes of {rules}"
{after}run = "{ruff} check --quiet --fix --exit-zero --select {rules} code"
check = [
    ["{ruff}", "check", "--quiet", "--select", "{rules}", "--diff", "code"],
    ["{python}", "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "code"],
]
"""


@pytest.fixture
def code(place: Path) -> Path:
    """Give a repository with the sources of a package that somebody else wrote."""
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    top = place / "code-of-others"
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(spec.submodule_search_locations[0], top / "code", ignore=ignored)
    (top / ".gitignore").write_text("__pycache__/\n.ruff_cache/\n")
    (top / "ruff.toml").write_text(CONFIG)
    for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "as it was released")):
        git(top, *args)
    return top


def test_ruffs_fixers_modernise_a_package_one_family_a_commit(code: Path) -> None:
    table = [
        TASK.format(
            id=name,
            rules=rules,
            after=f'blocked_by = ["{after}"]\n' if after else "",
            ruff=RUFF,
            python=sys.executable,
        )
        for name, (rules, after) in FAMILIES.items()
    ]
    write(code, HEAD, *table)
    batch(code, "start", "--yes")
    done = outcomes(code)
    assert set(done) == set(FAMILIES)
    assert set(done.values()) <= {"committed", "unchanged"}
    order = committed(code)
    assert order == [name for name in FAMILIES if done[name] == "committed"]
    assert len(order) >= 5, "there was something to do"
    for name, entry in tasks(code, "report").items():
        if entry["commit"] is None:
            continue
        changed = git(code, "diff", "--name-only", f"{entry['commit']}^", entry["commit"])
        paths = changed.splitlines()
        assert paths, name
        assert all(path.startswith("code/") and path.endswith(".py") for path in paths)
        assert "code/_version.py" not in paths
        assert entry["history"][-1]["changed_total"] == len(paths)
    assert git(code, "status", "--porcelain") == "?? batch.toml"


def test_a_family_that_fixers_can_not_finish_is_parked_with_what_is_left(code: Path) -> None:
    """The same code, honestly: D has rules without a fix, so its check can't pass."""
    name = "docstrings"
    table = TASK.format(id=name, rules="D", after="", ruff=RUFF, python=sys.executable)
    imports = TASK.format(id="imports", rules="I001", after="", ruff=RUFF, python=sys.executable)
    write(code, HEAD, table.replace('"--diff", ', ""), imports)
    base = git(code, "rev-parse", "HEAD")
    batch(code, "start", "--yes", "-x", status=1)
    found = tasks(code, "report")[name]
    assert (found["outcome"], found["attempts"]) == ("check_failed", 2)
    assert git(code, "rev-parse", BRANCH) == base
    kept = found["history"][-1]["ref"]
    assert len(git(code, "diff", "--name-only", base, kept).splitlines()) > 5
    assert git(code, "status", "--porcelain") == "?? batch.toml"
    assert told(code)["outcome"] == "fail_fast"


def test_the_fixers_change_what_the_runner_says_they_do(code: Path) -> None:
    """The commit is what ruff does by itself on the same code: nothing more, nothing less."""
    write(
        code, HEAD, TASK.format(id="sim", rules="SIM", after="", ruff=RUFF, python=sys.executable)
    )
    batch(code, "start", "--yes")
    tree = git(code, "rev-parse", f"{BRANCH}:code")
    git(code, "switch", "-q", "main")
    command = [str(RUFF), "check", "--quiet", "--fix", "--exit-zero", "--select", "SIM", "code"]
    subprocess.run(command, cwd=code, check=True)
    git(code, "add", "code")
    index = git(code, "write-tree", "--prefix=code/")
    assert index == tree
