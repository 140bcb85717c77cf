"""Objects and chains of commits, read by git processes alone: as they are, and proven to be so.

For whoever must start fast, or has no working tree (a hook, a server): libgit2 takes ten times as
long to be loaded as git to be started. One `git cat-file --batch` answers everything, so that
10,000 commits cost two processes, which work beside us.

What is read is what the id says. Replacements and grafts are switched off, the commit-graph is not
asked, parents are taken from the object itself, and the id of each object is computed again: a
pack or an alternate that holds something else under that id can't change a verdict. (Trees that
git compares for us are taken on its word.)
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import NamedTuple, Self

from git_batch.core.claims import Seen
from git_batch.core.ids import Oid
from git_batch.errors import FSCK, GitError
from git_batch.repo.git import Git, failure

EMPTY_TREE = Oid("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
PLAIN = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
_AHEAD = 256
"""Names that are written before an answer is read; twice as many fit into a pipe."""
_DEATHS = 100
"""Processes that may die of one object each before something else is taken to be wrong."""


class AbsentError(GitError):
    """An object is not in this repository, so something can't be told."""


class DamagedError(GitError):
    """An object is in this repository, but not as it was written (a crash, a bad disk)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"object {name} is damaged", FSCK)


class Object(NamedTuple):
    """An object: its id, its type and its content."""

    oid: Oid
    kind: bytes
    data: bytes


class ObjectReader:
    """Answers for one repository, for as long as it is open."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._died = 0
        self._process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        return self._git.start(["cat-file", "--batch"], env=PLAIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        _end(self._process)

    def find(self, name: str) -> Object | None:
        """Read what a name stands for (`<oid>`, `<oid>:<path>`); None if there is no such thing.

        Raises:
            AbsentError: a folder names it, but it is not here, or is damaged.
        """
        found = next(self.many([name]))[1]
        if found is None and ":" in name:
            self._refuse_hollow(name)
        return found

    def _refuse_hollow(self, name: str) -> None:
        """Tell a path that a tree does not have, which is an answer, from one that was lost."""
        commit, _, path = name.partition(":")
        found = self.find(f"{commit}^{{tree}}")
        for part in path.encode().split(b"/"):
            if found is None or found.kind != b"tree":
                return
            named = [oid.hex() for _, entry, oid in entries(found.data) if entry == part]
            if not named:
                return
            found = self.find(named[0])
            if found is None:
                raise AbsentError(f"'{path}' is damaged: object {named[0]} is not here")

    def many(
        self, names: Iterable[str], *, pass_damaged: bool = False
    ) -> Iterator[tuple[str, Object | None]]:
        """Read many objects, in the order of their names; nothing else may be asked meanwhile.

        Args:
            pass_damaged: give None for an object that is damaged, as for one that is not there.

        Raises:
            DamagedError: an object is not what its id says.
            GitError: git ended again and again.
        """
        source = iter(names)
        asked = self._ask(islice(source, _AHEAD))
        while asked:
            following = self._ask(islice(source, _AHEAD))
            for i, name in enumerate(asked):
                try:
                    answer = self._answer(name)
                except DamagedError:
                    self._begin_again()
                    if not pass_damaged:
                        raise
                    answer = None
                    self._ask([*asked[i + 1 :], *following])
                yield name, answer
            asked = following

    def commit(self, oid: Oid) -> Seen:
        """Read a commit.

        Raises:
            AbsentError: it is not here, or is no commit.
        """
        return seen_of(oid, self.find(oid))

    def blob(self, name: str) -> bytes:
        """Read the content of a file, by its id or as `<commit>:<path>`.

        Raises:
            AbsentError: it is not here, or is no file.
        """
        found = self.find(name)
        if found is None or found.kind != b"blob":
            raise AbsentError(f"'{name}' is not in this repository")
        return found.data

    def chain(self, tip: Oid, base: Oid | None, most: int | None = None) -> list[Seen]:
        """Read the first-parent line from a tip down to a base, both commits' ids; oldest first.

        Args:
            base: excluded with everything before it; None goes down to the first commit.
            most: how many commits at most.

        Raises:
            AbsentError: one of them is not here (a shallow clone, a damaged repository).
        """
        if tip == base:
            return []
        for oid in (tip, base):
            if oid is not None:
                self.commit(oid)
        found: list[Seen] = []
        expected: Oid | None = tip
        # git lists beside us what to read; the objects' own parents say whether that was right.
        for name, answer in self.many(_listed(self._git, tip, base, most)):
            if name != expected:
                break
            found.append(seen_of(Oid(name), answer))
            expected = found[-1].parents[0] if found[-1].parents else None
        while expected is not None and expected != base and len(found) != most:
            if base is not None and self._before(expected, base):
                break
            found.append(self.commit(expected))
            expected = found[-1].parents[0] if found[-1].parents else None
        return found[::-1]

    def _before(self, oid: Oid, base: Oid) -> bool:
        """Tell whether a commit is among the base's ancestors, so that the line misses the base."""
        self.commit(oid)  # git says "missing" and "no" in ways that are easily taken for each other
        return is_ancestor(self._git, oid, base)

    def _begin_again(self) -> None:
        """Have another process: git dies of an object that is damaged; what it was asked is lost.

        Raises:
            GitError: it dies of everything.
        """
        _end(self._process)
        self._died += 1
        if self._died > _DEATHS:
            raise GitError("'git cat-file' ends early again and again", "git fsck")
        self._process = self._begun()

    def _ask(self, source: Iterable[str]) -> list[str]:
        names = list(source)
        assert self._process.stdin is not None
        # One that has died is noticed where its answer is missing: that tells what it died of.
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"".join(f"{name}\n".encode() for name in names))
            self._process.stdin.flush()
        return names

    def _answer(self, name: str) -> Object | None:
        """Read an answer.

        Raises:
            DamagedError: there is none, or it is not what its id says.
        """
        stream = self._process.stdout
        assert stream is not None
        words = stream.readline().split()
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            data = stream.read(size + 1)
            if len(data) != size + 1:
                raise DamagedError(name)
            oid = Oid(words[0].decode("ascii"))
            digest = hashlib.sha1(b"%s %d\0" % (words[1], size), usedforsecurity=False)
            digest.update(memoryview(data)[:-1])
            if digest.hexdigest() != oid:
                raise DamagedError(oid)
            return Object(oid, words[1], data[:-1])
        if not words:
            raise DamagedError(name)
        return None


def is_ancestor(git: Git, old: Oid, new: Oid) -> bool:
    """Tell whether a commit is another one, or has it behind it.

    Raises:
        GitError: that can't be told, since an object is missing.
    """
    args = ["merge-base", "--is-ancestor", old, new]
    result = git.call(args, env=PLAIN)
    if result.status not in (0, 1):
        raise failure(args, result)
    return result.status == 0


def seen_of(oid: Oid, found: Object | None) -> Seen:
    """Read a commit's object.

    Raises:
        AbsentError: there is none, or it is no commit.
    """
    if found is None or found.kind != b"commit":
        raise AbsentError(
            f"commit {oid} is not in this repository", "git fetch --unshallow, if it is shallow"
        )
    headers, _, message = found.data.partition(b"\n\n")
    parents = []
    lines = headers.split(b"\n", 16)
    for line in lines[1:]:
        if not line.startswith(b"parent "):
            break
        parents.append(Oid(line[7:47].decode("ascii")))
    return Seen(oid, Oid(lines[0][5:45].decode("ascii")), tuple(parents), message)


def _listed(git: Git, tip: Oid, base: Oid | None, most: int | None) -> Iterator[str]:
    args = ["-c", "core.commitGraph=false", "rev-list", "--first-parent", tip]
    args += [] if base is None else [f"^{base}"]
    args += [] if most is None else [f"--max-count={most}"]
    process = git.start(args, env=PLAIN)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            yield line[:-1].decode("ascii")
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a process go; one that still writes has no reader any more."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):  # what it was not sent any more
                stream.close()
    process.wait()


def entries(tree: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Read a tree object: mode, name and id (20 bytes) of each entry; ValueError if it is none."""
    at = 0
    while at < len(tree):
        space = tree.index(b" ", at)
        end = tree.index(b"\0", space, -20)
        yield int(tree[at:space], 8), tree[space + 1 : end], tree[end + 1 : end + 21]
        at = end + 21
