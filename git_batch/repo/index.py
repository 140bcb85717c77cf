"""The person's index: changed by compare-and-swap only, whole or for exactly the named paths.

git replaces an index by renaming `index.lock` over it and never writes into it. So a hard link is
a copy that costs nothing, keeps its mtime (on which git's detection of racy edits rests), and
stays what it was, unless a command that is run writes into our folder: what is there then are real
copies (`Scanner.begin`). "Is the person's index still the one that I started from" is answered by
comparing inodes, by bytes only if those differ. Where a file system has no hard links, real copies
with the same mtime do.

A swap takes git's own lock, `index.lock`, by *linking* the new content to that name: from then on
a crash leaves a lock whose content is ours, which `recover` proves and removes. Then the person's
index is compared with the base, and the lock is renamed in. Nothing here runs `git reset` (with an
empty list it resets everything) or refreshes the whole index, and git writes our copies with the
person's `core.fsmonitor`, so that their FSMN and UNTR extensions survive.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Sequence

from git_batch.core.ids import Oid
from git_batch.errors import GitError
from git_batch.repo import gitlinks
from git_batch.repo.indexfile import discard, is_whole, link, same, same_file
from git_batch.repo.repository import Repository
from git_batch.repo.stalelocks import LOCK_WAIT, held
from git_batch.repo.trees import EMPTY_BLOB, Change

MINE, BASE = "paths.index", "paths.base"
"""Names of the scratch files: the index to be, and what it was made from."""

_SWAPS = 5
_AS_ARGUMENTS = 200
_WAYS_BACK = {
    b"S": "--no-skip-worktree",
    b"h": "--no-assume-unchanged",
    b"A": "--force-remove",
    b"G": "--force-remove",
}
"""How `git update-index` undoes what a command can do to an entry; what removes it comes last."""

_Leaf = tuple[int, Oid]


def index_info(changes: Iterable[Change]) -> bytes:
    """Write the new side of changes as input of `git update-index -z --index-info`.

    Removals come first: a directory may take a file's place and the other way round.
    """
    gone: list[bytes] = []
    there: list[bytes] = []
    for change in changes:
        if change.new_oid is None:
            gone.append(b"0 %s\t%s\0" % (b"0" * 40, change.path))
        else:
            there.append(b"%o %s\t%s\0" % (change.new_mode, change.new_oid.encode(), change.path))
    return b"".join(gone + there)


class PersonIndex:
    """The index that the person's own git commands use.

    Its scratch files are single: one live runner per working tree (the run lock) is assumed.
    """

    def __init__(self, repo: Repository) -> None:
        self._git = repo.git
        self._path = repo.layout.index
        self._lock = repo.layout.index + ".lock"
        self._mine = os.path.join(repo.scratch, MINE)
        self._base = os.path.join(repo.scratch, BASE)

    def recover(self, *copies: str) -> bool:
        """Remove an `index.lock` that a crash of ours left, and its files; True if it left a lock.

        It is ours if its content is that of one of our copies, which nobody else has. To be
        called under the run lock, before those copies are made anew.
        """
        found = os.path.lexists(self._lock) and any(
            os.path.lexists(copy) and same(self._lock, copy) for copy in (*copies, self._mine)
        )
        if found:
            discard(self._lock)
        discard(self._mine, self._base)
        return found

    def install(self, private: str, base: str) -> bool:
        """Make `private` the person's index if that still equals `base`; else change nothing.

        Args:
            private: path of the new index; stays valid, as the same file.
            base: path of what the new one was derived from; absent if there was no index.

        Returns:
            Whether the person's index is the new one now.

        Raises:
            LockedError: `index.lock` was held for longer than `LOCK_WAIT`.
        """
        if same_file(private, self._path):
            return True
        self._take_lock(private)
        if not same(self._path, base):
            discard(self._lock)
            return False
        # Renaming one name of a file over another of the same file would leave both.
        os.rename(self._lock, self._path)
        return True

    def set_paths(self, changes: Sequence[Change]) -> list[bytes]:
        """Set the entries of exactly these paths from their old side to their new one.

        Entries that are neither are the person's and stay, as do those that a changed path would
        displace (a file where a directory has to be).

        Returns:
            The paths that were left as the person has them.

        Raises:
            LockedError: as of `install`.
            GitError: the index kept changing, or git failed.
        """
        if not changes:
            return []
        for _ in range(_SWAPS):
            discard(self._mine, self._base, self._mine + ".lock")
            link(self._path, self._base)
            link(self._base, self._mine)
            todo, left = self._sort(changes)
            if todo:
                self._git.run(
                    ["update-index", "-z", "--add", "--replace", "--index-info"],
                    input=index_info(todo),
                    env={"GIT_INDEX_FILE": self._mine},
                    fsmonitor=True,
                )
            if not todo or self.install(self._mine, self._base):
                discard(self._mine, self._base)
                return left
        raise GitError("the index kept changing while its entries were being set")

    def take_back(self, base: str, untracked: Callable[[bytes], bool]) -> list[bytes]:
        """Take back what a command may not do to the index, as far as it was done since `base`.

        These are marks that hide files from git (`assume-unchanged` and `skip-worktree` of the
        person's own stay), entries of files that are to be untracked, and of repositories: git
        would enter those.

        Args:
            untracked: says of a path whether it is to be untracked.

        Returns:
            The paths to be untracked whose entries were taken out.

        Raises:
            LockedError: as of `install`.
            GitError: the index kept changing, or git failed.
        """
        if not os.path.lexists(self._path) or same(self._path, base) or not is_whole(base):
            return []
        known = self._done(base, untracked)
        for _ in range(_SWAPS):
            discard(self._mine, self._base, self._mine + ".lock")
            link(self._path, self._base)
            link(self._base, self._mine)
            fresh = self._done(self._base, untracked) - known
            for done, option in _WAYS_BACK.items():
                names = b"".join(sorted(path + b"\0" for what, path in fresh if what == done))
                if names:
                    self._git.run(
                        ["update-index", option, "-z", "--stdin"],
                        input=names,
                        env={"GIT_INDEX_FILE": self._mine},
                        fsmonitor=True,
                    )
            if not fresh or self.install(self._mine, self._base):
                discard(self._mine, self._base)
                return sorted(path for what, path in fresh if what == b"A")
        raise GitError("the index kept changing while its entries were taken back")

    def _done(self, index: str, untracked: Callable[[bytes], bool]) -> set[tuple[bytes, bytes]]:
        """List an index's entries that are to be taken back, with what was done to each.

        `A`: it was added; `S` and `h`: it hides its file, by skip-worktree or assume-unchanged;
        `G`: it is a repository.
        """
        if not os.path.lexists(index):
            return set()
        listed = self._git.run(["ls-files", "-v", "-z"], env={"GIT_INDEX_FILE": index})
        git_dir = os.path.dirname(self._path)
        found = {(b"G", path) for path in gitlinks.listed(index, git_dir)}
        for line in listed.split(b"\0"):
            tag, path = line[:1], line[2:]
            if untracked(path):
                found.add((b"A", path))
            if tag in b"Ss" and tag:
                found.add((b"S", path))
            if tag.islower():
                found.add((b"h", path))
        return found

    def _sort(self, changes: Sequence[Change]) -> tuple[list[Change], list[bytes]]:
        """Tell changes to make from paths to leave; those that are made already are neither."""
        paths = {change.path for change in changes}
        # Only a new path can be in the way of an entry above it.
        made = (parents(change.path) for change in changes if not change.old_mode)
        entries = self._entries(paths.union(*made))
        foreign = entries.keys() - paths
        above = {parent for path in foreign for parent in parents(path)}
        todo: list[Change] = []
        left: list[bytes] = []
        for change in changes:
            current = entries.get(change.path, ())
            new = _leaf(change.new_mode, change.new_oid)
            blocked = change.new_mode and (
                change.path in above or any(parent in foreign for parent in parents(change.path))
            )
            if current == new:
                continue
            expected = current == _leaf(change.old_mode, change.old_oid)
            # `git add -N` of a new file looks like an empty one; there is nothing in it to lose.
            promised = not change.old_mode and current == ((0o100644, EMPTY_BLOB),)
            if (expected or promised) and not blocked:
                todo.append(change)
            else:
                left.append(change.path)
        return todo, left

    def _entries(self, paths: set[bytes]) -> dict[bytes, tuple[_Leaf, ...]]:
        """Read index entries by path, at least those at and below the paths."""
        few: list[str | bytes] = ["--", *sorted(paths)] if len(paths) <= _AS_ARGUMENTS else []
        output = self._git.run(
            ["ls-files", "--stage", "-z", *few], env={"GIT_INDEX_FILE": self._base}
        )
        found: dict[bytes, tuple[_Leaf, ...]] = {}
        for line in output.split(b"\0"):
            if line:
                facts, path = line.split(b"\t", 1)
                mode, oid, stage = facts.split(b" ")
                # A side of a conflict equals nothing that we would set or replace.
                leaf = int(mode, 8) if stage == b"0" else -1, Oid(oid.decode())
                found[path] = (*found.get(path, ()), leaf)
        return found

    def _take_lock(self, content: str) -> None:
        limit = time.monotonic() + LOCK_WAIT
        while True:
            try:
                link(content, self._lock)
                return
            except FileExistsError:
                if time.monotonic() > limit:
                    lock = os.path.realpath(self._lock)
                    raise held(lock, "the index", LOCK_WAIT) from None
                time.sleep(random.uniform(0.01, 0.1))


def parents(path: bytes) -> Iterable[bytes]:
    """Name the directories that a path lies in, innermost first."""
    at = path.rfind(b"/")
    while at > 0:
        yield path[:at]
        at = path.rfind(b"/", 0, at)


def _leaf(mode: int, oid: Oid | None) -> tuple[_Leaf, ...]:
    return ((mode, oid),) if oid is not None else ()
