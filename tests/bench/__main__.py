"""Run all benchmarks and print each ratio beside its promise: `python -m tests.bench [NAME ...]`.

Exit status 1 if a promise is missed. Options: `--quick` for fewer rounds and smaller plans.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from tests.bench import lineage
from tests.bench.disk import making_files
from tests.bench.hooks import hooks as hook_ratios
from tests.bench.paired import TOOL, Ratio, environment, paired, run, seconds
from tests.bench.repositories import copy, loop, plan, repository

PYTHON = sys.executable


class Bench:
    """One bench run: a scratch directory and how much is to be measured."""

    def __init__(self, home: Path, *, quick: bool) -> None:
        self.home, self.quick = home, quick
        self.env = environment(home)

    def per_task(self, files: int, limit: float, tasks: int, rounds: int) -> Iterator[Ratio]:
        """Compare the runner's cost per task with the loop written by hand, synced as ours is."""
        here = self.home / f"{files}-{tasks}"
        source = repository(here / "source", files, self.env)
        batch = plan(here / "plan.toml", tasks)
        plain = loop(here / "loop.sh", tasks)
        durable = loop(here / "durable.sh", tasks, durable=True)
        turn = iter(range(10**6))

        def once(command: list[str]) -> float:
            place = copy(source, here / str(next(turn)))
            run(["git", "status"], place, self.env)
            os.sync()  # else whoever syncs first pays for the copy
            # Removed at the end of all: a disk that discards blocks does so in the next sync, ours.
            return seconds(lambda: run(command, place, self.env))

        def ours() -> float:
            return once([*TOOL, "start", "--yes", str(batch)])

        what = f"per task, {files} files, {tasks} tasks, against the loop written by hand"
        ratio, detail = paired(ours, lambda: once(["sh", str(durable)]), rounds)
        yield Ratio(f"{what}, fsync on", ratio, limit, detail)
        ratio, detail = paired(ours, lambda: once(["sh", str(plain)]), rounds)
        yield Ratio(f"{what} without fsync (no promise)", ratio, None, detail)

    def small(self) -> Iterator[Ratio]:
        """100 files."""
        yield from self.per_task(100, 1.8, 50, 5 if self.quick else 15)
        if not self.quick:
            yield from self.per_task(100, 1.8, 400, 5)

    def large(self) -> Iterator[Ratio]:
        """10,000 files."""
        yield from self.per_task(10_000, 1.5, 50 if self.quick else 200, 3 if self.quick else 5)

    def long_run(self) -> Iterator[Ratio]:
        """Time per task over a long run, and `status` after it."""
        tasks = 200 if self.quick else 1000
        place = repository(self.home / "long", 100, self.env)
        batch = plan(self.home / "long.toml", tasks)
        run([*TOOL, "start", "--yes", str(batch)], place, self.env)
        times = self._enrolled(place)
        tenth = len(times) // 10
        gaps = [b - a for a, b in pairwise(times)]
        first, last = statistics.median(gaps[:tenth]), statistics.median(gaps[-tenth:])
        detail = f"{last * 1000:.1f} ms against {first * 1000:.1f} ms a task, medians"
        yield Ratio(f"last tenth against first tenth of {tasks} tasks", last / first, 1.3, detail)
        rounds = 11 if self.quick else 21
        ratio, detail = paired(
            lambda: seconds(lambda: run([*TOOL, "status"], place, self.env)),
            lambda: seconds(
                lambda: run([PYTHON, "-I", "-c", "import click, pygit2"], place, self.env)
            ),
            rounds,
        )
        yield Ratio(
            f"status of {tasks} tasks against importing click and pygit2", ratio, 1.5, detail
        )

    def _enrolled(self, place: Path) -> list[float]:
        """Read from the record when each task was enrolled."""
        import subprocess

        out = subprocess.run(
            [*TOOL, "log", "--json"], cwd=place, env=self.env, check=True, capture_output=True
        ).stdout
        events = json.loads(out)["events"]
        return [
            datetime.fromisoformat(e["at"]).timestamp() for e in events if e["event"] == "enrolled"
        ]

    def verifying(self) -> Iterator[Ratio]:
        """Verify a branch, as a hook does before each push."""
        yield from lineage.verifying(self.home / "verify", self.env, quick=self.quick)

    def listing(self) -> Iterator[Ratio]:
        """Say where a long batch stands; the one that was verified, if it was."""
        yield from lineage.listing(self.home / "verify", self.env, quick=self.quick)

    def finding(self) -> Iterator[Ratio]:
        """Find a task's commit below a long history."""
        yield from lineage.finding(self.home / "find", self.env, quick=self.quick)

    def scans(self) -> Iterator[Ratio]:
        """Count walks over the working tree with git's own trace.

        In a repository so large that git does them all: in a small one the walk after the checks
        is libgit2's, in process, and not in the trace.
        """
        for check, limit in ((True, 2.0), (False, 1.0)):
            tasks = 5
            place = repository(self.home / f"scans{limit:g}", 9000, self.env)
            batch = plan(self.home / f"scans{limit:g}.toml", tasks, check=check)
            trace = self.home / f"trace{limit:g}"
            run(
                [*TOOL, "start", "--yes", str(batch)],
                place,
                {**self.env, "GIT_TRACE2_EVENT": str(trace)},
            )
            walks = sum(_is_walk(line) for line in trace.read_text().splitlines())
            before = 2  # before the confirmation, and the switch to the branch
            what = "with checks" if check else "without checks"
            yield Ratio(
                f"walks over the working tree per task {what}", (walks - before) / tasks, limit
            )

    def hooks(self) -> Iterator[Ratio]:
        """What the hooks cost a push."""
        yield from hook_ratios(self.home, self.env, quick=self.quick)


def _is_walk(line: str) -> bool:
    event = json.loads(line)
    if event.get("event") != "start":
        return False
    words = [w for w in event["argv"] if not w.startswith("-")]
    return any(w in words for w in ("add", "status", "switch"))


BENCHES: dict[str, Callable[[Bench], Iterator[Ratio]]] = {
    "small": Bench.small,
    "large": Bench.large,
    "long": Bench.long_run,
    "scans": Bench.scans,
    "verify": Bench.verifying,
    "list": Bench.listing,
    "find": Bench.finding,
    "hooks": Bench.hooks,
}


def main(args: list[str]) -> int:
    """Run the named benches, or all."""
    quick = "--quick" in args
    names = [a for a in args if not a.startswith("-")] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"error: there is no bench '{unknown[0]}'; there are: {', '.join(BENCHES)}")
    missed = 0
    with tempfile.TemporaryDirectory(prefix="git-batch-bench-") as home:
        print(f"making a file takes {making_files(Path(home)):.0f} µs here", flush=True)
        bench = Bench(Path(home), quick=quick)
        for name in names:
            for ratio in BENCHES[name](bench):
                print(ratio, flush=True)
                missed += not ratio.kept
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
