"""Paired measurement: A B A B …, the median of the pair-wise ratios. Machines are noisy."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOOL = [str(Path(sys.executable).with_name("git-batch"))]
"""What git runs for `git batch`."""


@dataclass(frozen=True)
class Ratio:
    """One line of the result: a measured ratio beside what is promised."""

    name: str
    value: float
    limit: float | None
    detail: str = ""

    @property
    def kept(self) -> bool:
        """Whether the promise holds; a figure without a limit always does."""
        return self.limit is None or self.value <= self.limit

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"  (limit {self.limit:g})"
        mark = "" if self.kept else "  MISSED"
        detail = f"  {self.detail}" if self.detail else ""
        return f"{self.value:8.2f}  {self.name}{limit}{mark}{detail}"


def seconds(act: Callable[[], object]) -> float:
    """Time one act."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def paired(a: Callable[[], float], b: Callable[[], float], rounds: int) -> tuple[float, str]:
    """Measure two things in turn; give the median of A/B and both medians in milliseconds."""
    pairs = [(a(), b()) for _ in range(rounds)]
    ratio = statistics.median(x / y for x, y in pairs)
    one = statistics.median(x for x, _ in pairs) * 1000
    other = statistics.median(y for _, y in pairs) * 1000
    return ratio, f"{one:.1f} ms against {other:.1f} ms, {rounds} pairs"


def environment(home: Path) -> dict[str, str]:
    """Give an environment in which no personal setting of git or Python counts.

    `PYTHONDONTWRITEBYTECODE` above all: an installed package is compiled once, not in each run.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTHON"))}
    (home / ".gitconfig").write_text(
        "[user]\n\tname = T\n\temail = t@example.com\n"
        "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"
    )
    return {**kept, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}


def run(args: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
    """Run a command that has to succeed; its output is thrown away."""
    subprocess.run(args, cwd=cwd, env=env, check=True, capture_output=True)
