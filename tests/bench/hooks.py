"""What the hooks cost a push: the hook's own process, as git starts it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench import lineages
from tests.bench.paired import TOOL, Ratio, paired, run, seconds
from tests.bench.repositories import repository

ZERO = "0" * 40


def hook(place: Path, env: Mapping[str, str], branch: str) -> Callable[[], float]:
    """Give what times the pre-push hook of a repository, for one new branch."""
    asked = ["git", "rev-parse", branch]
    got = subprocess.run(asked, cwd=place, env=env, check=True, capture_output=True, text=True)
    tip = got.stdout.strip()
    line = f"refs/heads/{branch} {tip} refs/heads/{branch} {ZERO}\n".encode()
    command = [".git/hooks/pre-push", "origin", "nowhere"]

    def once() -> float:
        return seconds(lambda: _start(command, place, env, line))

    return once


def _start(command: Sequence[str], place: Path, env: Mapping[str, str], line: bytes) -> None:
    subprocess.run(command, cwd=place, env=env, input=line, check=True, capture_output=True)


def _installed(place: Path, env: Mapping[str, str]) -> Path:
    made = repository(place, 100, env)
    run([*TOOL, "hooks", "install"], made, env)
    return made


def hooks(home: Path, env: Mapping[str, str], *, quick: bool) -> Iterator[Ratio]:
    """Compare pre-push with an empty hook, and with what importing libgit2 costs."""
    rounds = 31 if quick else 101
    empty = repository(home / "hooks-empty", 100, env)
    script = empty / ".git/hooks/pre-push"
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    bare = _installed(home / "hooks-nothing", env)
    nothing = hook(bare, env, "main")
    ratio, detail = paired(nothing, hook(empty, env, "main"), rounds)
    yield Ratio("pre-push, no batch here, against an empty hook", ratio, 2.0, detail)
    run(["git", "pack-refs", "--all"], bare, env)
    ratio, detail = paired(nothing, hook(empty, env, "main"), rounds)
    yield Ratio("the same with packed refs", ratio, 2.0, detail)

    place = _installed(home / "hooks-twenty", env)
    lineages.lineage(place, 20)
    library = [sys.executable, "-I", "-c", "import pygit2"]

    def imported() -> float:
        return seconds(lambda: run(library, place, env))

    rounds = 11 if quick else 31
    ratio, detail = paired(hook(place, env, lineages.BRANCH), imported, rounds)
    yield Ratio("pre-push, 20 commits of a batch, against importing pygit2", ratio, 1.3, detail)
    ratio, detail = paired(hook(place, env, "main"), imported, rounds)
    yield Ratio("pre-push, another branch beside a batch, against the same", ratio, 0.3, detail)
