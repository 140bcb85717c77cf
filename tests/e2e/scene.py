"""What the crash tests share: a repository with a plan, runs that are killed, and what must hold.

The plan has a dependency, a check that fails at first, a new folder with a deletion and a mode
change, and a task that never works; each command and check stands still at a gate (`killed`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.conftest import git

HARNESS = Path(__file__).with_name("killed.py")
ROOT = Path(__file__).parents[2]

PLAN = """\
version = 1
slug = "demo"
title = "Demo"

[[task]]
id = "new"
title = "Add one"
scope = ["src/**"]
run = 'echo half >src/one; read x <"$GATE" || exit 1; echo one >src/one'

[[task]]
id = "twice"
title = "Change a"
blocked_by = ["new"]
scope = ["src/**"]
run = 'echo half >>src/a; read x <"$GATE" || exit 1; cat src/one >>src/a'
check = 'read x <"$GATE"; test "$BATCH_ATTEMPT" -ge 2'
attempts = 2

[[task]]
id = "shapes"
title = "Add, delete, make executable"
scope = ["src/**"]
run = '''
mkdir -p src/deep/er; echo half >src/deep/er/file; rm src/b
read x <"$GATE" || exit 1
echo whole >src/deep/er/file; chmod +x src/tool
'''
check = 'read x <"$GATE"; test -x src/tool'

[[task]]
id = "stuck"
title = "Never works"
scope = ["src/**"]
run = 'echo bad >src/bad; rm src/a; read x <"$GATE"; echo no; exit 3'
"""

CLAIM = "refs/batch/claims/demo/@"
OURS = re.compile(r"(run|tree|authorized|demo-[a-z0-9]{6})\.lock")
"""Locks that are held by flock(2) and stay when nobody holds them."""


def environment() -> dict[str, str]:
    """Take the hermetic environment of the test; the harness finds package and tests."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@dataclass
class Answer:
    """What a run of the harness said; `state` and `error` are None if it was killed."""

    exit: int
    steps: list[str] = field(default_factory=list)
    state: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    signal: int | None = None
    pid: int = 0

    @property
    def killed(self) -> bool:
        """Whether it ended by SIGKILL."""
        return self.exit == -9


@dataclass
class Live:
    """A run in a process of its own whose pid is known, beside the test."""

    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        """The runner's process id."""
        return self.process.pid

    def answer(self, timeout: float = 30) -> Answer:
        """Wait for its end."""
        said = self.process.communicate(timeout=timeout)[0]
        return Answer(exit=self.process.returncode, **json.loads(said or "{}"))


def live(scene: Scene, action: str, env: Mapping[str, str], **more: Any) -> Live:
    """Start or resume beside the test."""
    around = {"TMPDIR": str(scene.temporary), **env}
    request = {"action": action, "top": str(scene.top), "env": around, **more}
    return Live(
        subprocess.Popen(
            [sys.executable, str(HARNESS), "--once", json.dumps(request)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
        )
    )


def eventually(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    """Wait until something holds."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"never: {what}"
        time.sleep(0.005)


class Killer:
    """A harness that answers requests, one at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HARNESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
        )

    def run(
        self, scene: Scene, action: str, *, env: Mapping[str, str] | None = None, **more: Any
    ) -> Answer:
        """Start or resume in a process of its own."""
        assert self._process.stdin
        assert self._process.stdout
        around = {"GATE": str(scene.gate), "TMPDIR": str(scene.temporary), **(env or {})}
        request = {"action": action, "top": str(scene.top), "env": around}
        self._process.stdin.write(json.dumps(request | more) + "\n")
        self._process.stdin.flush()
        return Answer(**json.loads(self._process.stdout.readline()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@dataclass(frozen=True)
class Scene:
    """One copy of the repository, and the gate of its commands."""

    folder: Path

    @property
    def top(self) -> Path:
        """The top of the working tree."""
        return self.folder / "repo"

    @property
    def gate(self) -> Path:
        """The fifo at which commands stand still."""
        return self.folder / "gate"

    @property
    def temporary(self) -> Path:
        """Where temporary files go: a killed run can't remove its own."""
        return self.folder / "tmp"

    def git(self, *args: str) -> str:
        """Run git here as a person would."""
        return git(self.top, *args)

    def refs(self) -> dict[str, str]:
        """List all refs."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def series(self) -> list[tuple[str, str, str]]:
        """List the batch's commits: task, tree, subject; oldest first."""
        form = "%(trailers:key=Batch-Task,valueonly,separator=%x2C)%x09%T%x09%s"
        log = self.git("log", "--reverse", "--first-parent", f"--format={form}", "main..batch/demo")
        return [(t, tree, s) for t, tree, s in (line.split("\t") for line in log.splitlines())]

    def work(self) -> dict[str, str]:
        """Read the files that differ from the index or are not in it: path and blob."""
        listed = self.git("ls-files", "-mo", "--exclude-standard", "-z").split("\0")
        found = {}
        for path in filter(None, listed):
            place = self.top / path
            if path != "batch.toml" and place.is_file():
                data = place.read_bytes()
                found[path] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        return found


def make(folder: Path, plan: str = PLAN) -> Scene:
    """Make the repository."""
    scene = Scene(folder)
    (scene.top / "src").mkdir(parents=True)
    for name in ("a", "b", "tool"):
        (scene.top / "src" / name).write_text(f"{name}\n")
    for args in (("init", "-q", "--template="), ("add", "-A"), ("commit", "-qm", "base")):
        scene.git(*args)
    (scene.top / ".git/info").mkdir(exist_ok=True)
    (scene.top / "batch.toml").write_text(plan)
    os.mkfifo(scene.gate)
    return scene


@contextmanager
def copied(scene: Scene, folder: Path) -> Iterator[Scene]:
    """Copy a repository; the copy goes if all went well, else it stays to be looked at.

    Another process does it: one that copies has `batch/run.lock` open, and the commands that other
    threads of this one have started would take it for a run that they are a task of.
    """
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(scene.top), str(folder / "repo")], check=True)
    copy = Scene(folder)
    os.mkfifo(copy.gate)
    yield copy
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Undisturbed:
    """What a run that nobody kills leads to."""

    steps: tuple[str, ...]
    status: str
    outcomes: Mapping[str, str]
    series: list[tuple[str, str, str]]
    files: frozenset[str]

    def point(self, step: str, nth: int = 1) -> int:
        """Number a step that is known by its name; the last one for -1."""
        found = [n for n, name in enumerate(self.steps, 1) if name == step]
        return found[nth - 1 if nth > 0 else nth]


def undisturbed(killer: Killer, scene: Scene, **more: Any) -> Undisturbed:
    """Run it once and hold on to what it leads to."""
    answer = killer.run(scene, "start", **more)
    assert answer.state, answer
    whole(scene, answer)
    return Undisturbed(
        tuple(answer.steps),
        answer.state["status"],
        outcomes(answer),
        scene.series(),
        scratch(scene),
    )


def outcomes(answer: Answer) -> dict[str, str]:
    """Give each task's outcome."""
    assert answer.state, answer
    return {name: task["outcome"] for name, task in answer.state["tasks"].items()}


def scratch(scene: Scene) -> frozenset[str]:
    """List our own files below the git directory."""
    folder = scene.top / ".git/batch"
    return frozenset(
        str(p.relative_to(folder)) for p in folder.rglob("*") if not p.name.startswith("demo-")
    )


def whole(scene: Scene, answer: Answer) -> None:
    """Check that nothing is broken, left over or half done, whatever the batch came to."""
    state = answer.state
    assert state, answer
    broken = subprocess.run(
        ["git", "fsck", "--strict", "--no-dangling", "--no-progress"],
        cwd=scene.top,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (broken.returncode, broken.stdout) == (0, "")
    assert scene.git("symbolic-ref", "HEAD") == "refs/heads/batch/demo"
    # Also: the index equals HEAD, and the working tree the index.
    assert scene.git("status", "--porcelain", "-uall", "--ignored") == "?? batch.toml"
    git_dir = scene.top / ".git"
    locks = [p for p in git_dir.rglob("*.lock") if not OURS.fullmatch(p.name)]
    assert not locks
    # Killed at the very end, a run leaves its directory to the next one.
    assert len(list(scene.temporary.glob("git-batch-*"))) <= 1
    _attempts_kept(scene, state)


def _attempts_kept(scene: Scene, state: dict[str, Any]) -> None:
    attempts = [a for task in state["tasks"].values() for a in task["attempts"]]
    named = {a["ref"] for a in attempts if a["ref"]}
    batch = state["batch"]
    expected = {"refs/heads/main", "refs/heads/batch/demo", f"refs/notes/batch/{batch}"}
    if state["status"] not in ("completed", "abandoned"):
        expected.add(CLAIM)
    logs = f"refs/batch/{batch}/logs"
    refs = scene.refs()
    assert set(refs) - {logs} == expected | named, "refs that nobody knows of, or lost ones"
    for name, task in state["tasks"].items():
        numbers = [a["n"] for a in task["attempts"]]
        assert numbers == list(range(1, len(numbers) + 1))
        for attempt in task["attempts"]:
            if attempt["log"] and attempt["outcome"] not in ("committed", "unchanged"):
                text = subprocess.run(
                    ["git", "cat-file", "-p", f"{logs}:000/{name}/{attempt['n']}"],
                    cwd=scene.top,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                ).stdout
                digest = hashlib.sha256(text).hexdigest()
                assert digest == attempt["log"], f"not the log of '{name}', {attempt}: {text!r}"
