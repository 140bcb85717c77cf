"""What it costs to verify a long branch, to list its tasks, and to find one in a long history.

Marginal: the process that verifies 20 commits is taken off from the one that verifies 10,000, on
both sides. The repository is packed, as after `git gc`; loose objects cost git as much more as us.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.lineages import BATCH, BRANCH, lineage
from tests.bench.paired import TOOL, Ratio, paired, run, seconds
from tests.bench.repositories import repository

PYTHON = sys.executable
RECORD = f"refs/notes/batch/{BATCH}"
_VERDICT = """
import sys
from git_batch.core.model import Oid
from git_batch.repo.git import Git
from git_batch.repo.lineage import verdict
if sys.argv[4:]:  # leave the scopes out: git compares no trees, and we no paths
    class Nothing:
        def __init__(self, *_):
            self.of = dict
    sys.modules["git_batch.repo.lineage"]._Changes = Nothing
found = verdict(Git(".git", "."), tip=Oid(sys.argv[1]), record_tip=Oid(sys.argv[2]))
sys.exit(found.status != "whole" or found.commits != int(sys.argv[3]))
"""


def verifying(home: Path, env: Mapping[str, str], *, quick: bool) -> Iterator[Ratio]:
    """Verify 20 commits as a hook does, and many more as one may have to."""
    few = _made(home / "few", 20, env)
    rounds = 11 if quick else 21
    ratio, detail = paired(
        lambda: _verify(few, 20, env),
        lambda: seconds(lambda: run([PYTHON, "-I", "-c", "import pygit2"], few, env)),
        rounds,
    )
    yield Ratio("verifying 20 commits against importing pygit2", ratio, 1.3, detail)
    many = 2000 if quick else 10_000
    long = _made(home / "many", many, env)
    yield from _marginal(few, long, many, env, 5 if quick else 7)


def _marginal(
    few: Path, long: Path, many: int, env: Mapping[str, str], rounds: int
) -> Iterator[Ratio]:
    span = f"main..{BRANCH}"
    ours: list[float] = []
    bare: list[float] = []
    names: list[float] = []
    lines: list[float] = []
    for _ in range(rounds):
        ours.append(_verify(long, many, env) - _verify(few, 20, env))
        bare.append(_verify(long, many, env, "no scopes") - _verify(few, 20, env, "no scopes"))
        names.append(_log(long, env, "--name-only", "--no-renames", span) - _log(few, env, span))
        lines.append(_log(long, env, "--oneline", span) - _log(few, env, "--oneline", span))
    for what, mine, other in (
        ("against 'git log --name-only --no-renames'", ours, names),
        ("without scopes, against 'git log --oneline'", bare, lines),
    ):
        ratio = statistics.median(a / b for a, b in zip(mine, other, strict=True))
        each = statistics.median(mine) / many * 1e6
        detail = f"{each:.0f} µs a commit, {rounds} pairs"
        yield Ratio(f"verifying {many} commits, marginal, {what}", ratio, 4.0, detail)


def listing(home: Path, env: Mapping[str, str], *, quick: bool) -> Iterator[Ratio]:
    """Say where a long batch stands, in one screen and with every task."""
    many = 2000 if quick else 10_000
    short, long = _made(home / "short", 100, env), _made(home / "many", many, env)
    ratio, detail = paired(
        lambda: _status(long, env), lambda: _status(short, env), 11 if quick else 21
    )
    yield Ratio(f"status of {many} tasks against status of 100", ratio, 1.3, detail)
    ratio, detail = paired(
        lambda: _status(long, env, "--json"),
        lambda: seconds(lambda: run([PYTHON, "-I", "-c", "pass"], long, env)),
        5 if quick else 9,
    )
    detail += f"; {many} notes and their plan are read and checked"
    # The goal is for ten thousand: what Python needs to start is the same for fewer.
    limit = None if quick else 25.0
    yield Ratio(f"status --json of {many} tasks against 'python -I -c pass'", ratio, limit, detail)


def finding(home: Path, env: Mapping[str, str], *, quick: bool) -> Iterator[Ratio]:
    """Find the oldest task's commit below a long history."""
    history = 20_000 if quick else 1_000_000
    short = _made(home / "short", 50, env)
    long = home / "long"
    shutil.copytree(short, long)
    _pile_up(long, history, env)
    rounds = 3 if quick else 5
    ratio, detail = paired(lambda: _find(long, env), lambda: _grep(long, env), rounds)
    # The promise is for a million commits; the process's own start counts for more in fewer.
    limit = None if quick else 1 / 50
    yield Ratio(f"find below {history} commits against 'git log --grep'", ratio, limit, detail)
    ratio, detail = paired(lambda: _find(long, env), lambda: _find(short, env), 2 * rounds + 1)
    yield Ratio(f"find below {history} commits against find below 50", ratio, 1.5, detail)


def _made(place: Path, tasks: int, env: Mapping[str, str]) -> Path:
    """Make a repository with a batch of so many tasks, unless it is there: it takes minutes."""
    if place.exists():
        return place
    repository(place, 1000, env)
    lineage(place, tasks)
    run(["git", "repack", "-adq"], place, env)
    run(["git", "prune-packed", "-q"], place, env)
    return place


def _verify(place: Path, commits: int, env: Mapping[str, str], *more: str) -> float:
    tips = [_rev(place, name, env) for name in (BRANCH, RECORD)]
    return seconds(
        lambda: run([PYTHON, "-I", "-c", _VERDICT, *tips, str(commits), *more], place, env)
    )


def _rev(place: Path, name: str, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["git", "rev-parse", name], cwd=place, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _log(place: Path, env: Mapping[str, str], *args: str) -> float:
    return seconds(lambda: run(["git", "log", *args], place, env))


def _status(place: Path, env: Mapping[str, str], *args: str) -> float:
    return seconds(lambda: run([*TOOL, "status", *args], place, env))


def _find(place: Path, env: Mapping[str, str]) -> float:
    return seconds(lambda: run([*TOOL, "find", f"{BATCH}:t0"], place, env))


def _grep(place: Path, env: Mapping[str, str]) -> float:
    return seconds(lambda: run(["git", "log", "-1", "--grep=^Batch-Task: t0$", "HEAD"], place, env))


def _pile_up(place: Path, commits: int, env: Mapping[str, str]) -> None:
    """Put so many commits of a usual size on the batch's branch; the result is checked out."""
    first = f"from {_rev(place, BRANCH, env)}\n"
    with subprocess.Popen(
        ["git", "fast-import", "--quiet"], stdin=subprocess.PIPE, cwd=place, env=env, text=True
    ) as git:
        assert git.stdin is not None
        for i in range(commits):
            body = f"Change {i} of many\n\n" + f"It does what number {i} has to do, and why.\n" * 5
            who = f"A Person <person{i % 50}@example.com> {1735689600 + i} +0000"
            git.stdin.write(
                f"commit refs/heads/piled\nauthor {who}\ncommitter {who}\n"
                f"data {len(body)}\n{body}\n{first}"
            )
            first = ""
    assert git.returncode == 0
    run(["git", "symbolic-ref", "HEAD", "refs/heads/piled"], place, env)
