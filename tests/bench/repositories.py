"""Repositories and plans of a given size."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.bench.paired import run

FILES_PER_FOLDER = 100


def repository(place: Path, files: int, env: Mapping[str, str]) -> Path:
    """Make a repository with so many files in one commit."""
    place.mkdir(parents=True)
    run(["git", "init", "-q"], place, env)
    for i in range(files):
        path = place / f"d{i // FILES_PER_FOLDER}" / f"f{i}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{i}\n" * 20)
    run(["git", "add", "-A"], place, env)
    run(["git", "commit", "-qm", "base"], place, env)
    return place


def copy(source: Path, target: Path) -> Path:
    """Copy a repository; its index is refreshed, since every file is new."""
    shutil.copytree(source, target, symlinks=True)
    return target


def plan(place: Path, tasks: int, *, check: bool = True) -> Path:
    """Write a plan of trivial tasks."""
    lines = ['version = 1\nslug = "bench"\ntitle = "Benchmark"\n']
    for i in range(tasks):
        lines.append(
            f'[[task]]\nid = "t{i}"\ntitle = "Task {i}"\nscope = ["d0/**"]\n'
            f'run = "echo {i} >>d0/f0"\n' + ('check = "true"\n' if check else "")
        )
    place.write_text("".join(lines))
    return place


def loop(place: Path, tasks: int, *, durable: bool = False) -> Path:
    """Write the loop that people write by hand.

    Args:
        durable: as safe from a power cut as ours: git syncs what it writes.
    """
    git = "git -c core.fsync=all" if durable else "git"
    place.write_text(
        f"set -e\nfor i in $(seq 0 {tasks - 1}); do\n"
        '  sh -c "echo $i >>d0/f0"\n  sh -c true\n'
        f'  {git} add -A\n  {git} commit -qm "Task $i"\ndone\n'
    )
    return place
