"""Records written while git packs refs without a pause: nothing is lost, of ours or of others.

Reliability 18: a ref that is being packed is for a moment neither where it was nor where it will
be, for whoever looks at the wrong time or from a stale copy.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import git

TOP = Path(__file__).parents[2]
TURNS = 5
"""Refs that a person has at a time."""


@contextmanager
def meanwhile(*acts: object) -> Iterator[threading.Event]:
    """Do things again and again beside the test; what they raise is raised at the end."""
    over, failed = threading.Event(), list[BaseException]()

    def again(act: object) -> None:
        assert callable(act)
        try:
            while not over.is_set():
                act()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=again, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield over
    finally:
        over.set()
        for thread in threads:
            thread.join()
    for error in failed:
        raise error


class Person:
    """Makes, moves and deletes branches; `has` are those that git said are there, and where."""

    def __init__(self, repo: Path) -> None:
        self._repo = repo
        self.has: dict[str, str] = {}
        self.turns = 0
        base = git(repo, "rev-parse", "HEAD")
        tree = git(repo, "rev-parse", "HEAD^{tree}")
        self._oids = [base, git(repo, "commit-tree", tree, "-m", "other")]

    def turn(self) -> None:
        """Make one branch, move another one, delete a third one, and look at all of them."""
        self.turns += 1
        n, (one, two) = self.turns, self._oids
        self._update(f"create refs/heads/mine/{n} {one}\n", {f"refs/heads/mine/{n}": one})
        for name, oid in list(self.has.items())[-TURNS:-1]:
            if oid == one:
                self._update(f"update {name} {two} {one}\n", {name: two})
        if n > TURNS and n % 2:
            name, oid = next(iter(self.has.items()))
            if self._update(f"delete {name} {oid}\n", {}):
                del self.has[name]

    def _update(self, line: str, then: dict[str, str]) -> bool:
        """Have git do something; where a lock is in its way it says so, and has done nothing."""
        done = subprocess.run(
            ["git", "update-ref", "--stdin"],
            cwd=self._repo,
            input=line,
            capture_output=True,
            text=True,
        )
        if not done.returncode:
            self.has |= then
        assert not done.returncode or "File exists" in done.stderr, (line, done.stderr)
        return not done.returncode


def writers(repo: Path, events: int, number: int = 8) -> dict[str, list[str]]:
    """Have processes write at once; give the events that each says it has written, by its ref."""
    names = [f"batch-write{i}" for i in range(number)]
    started = {
        name: subprocess.Popen(
            [sys.executable, "-m", "tests.repo.writer", str(repo), name, str(events)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=TOP,
        )
        for name in names
    }
    for process in started.values():
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in started.values():
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {name: process.communicate()[0].split() for name, process in started.items()}
    assert [process.returncode for process in started.values()] == [0] * number
    return {f"refs/notes/batch/{name}": oids for name, oids in said.items()}


@pytest.mark.parametrize("events", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_eight_writers_lose_nothing_while_refs_are_packed_without_a_pause(
    repo: Path, events: int
) -> None:
    person = Person(repo)
    packed = 0

    def pack() -> None:
        nonlocal packed
        command = ["git", "pack-refs", "--all", "--prune"]
        packed += not subprocess.run(command, cwd=repo, capture_output=True).returncode

    with meanwhile(pack, person.turn):
        written = writers(repo, events)
    assert packed > 5
    assert person.turns > 5
    lines = git(repo, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    refs = dict(line.split(" ") for line in lines)
    main = {"refs/heads/main": git(repo, "rev-parse", "HEAD")}
    assert refs == main | person.has | {name: oids[-1] for name, oids in written.items()}
    for name, oids in written.items():
        assert len(oids) >= events
        assert git(repo, "rev-list", "--first-parent", "--reverse", name).split() == oids
    assert not list((repo / ".git").rglob("*.lock"))
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
