"""Refs by compare-and-swap: the one way in which anything of ours is written down for good.

The order is always the same (storage.md, Writing): the objects exist and can be read back, they
are on disk (`barrier`), the ref is locked, read again, compared, set, unlocked, read back, and the
move is on disk. An error on the way is "unknown": the ref is read again and that decides. What the
barriers promise, and why refs have a libgit2 handle of their own, says `durability`.

Refs are deleted through git: libgit2 rewrites packed-refs from a stale copy and loses others' refs.
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Mapping

from git_batch.core.ids import Oid
from git_batch.errors import GitError, StaleError
from git_batch.repo import durability, stalelocks
from git_batch.repo.libgit2 import pygit2
from git_batch.repo.patience import is_pipe
from git_batch.repo.reflist import loose_id, place_of
from git_batch.repo.repository import Repository
from git_batch.repo.stalelocks import LOCK_WAIT

_LOCKED = ("failed to lock", "is locked", os.strerror(errno.EEXIST))
"""How libgit2 says that a lock is in the way; it has no code for it.

A lock that can't be made (a full disk, a forbidden folder) is not: "failed to create locked file".
"""

_GONE = os.strerror(errno.ENOENT)
"""How libgit2 says that a folder was removed, being empty, while it was to be filled."""

_NOT_NOW = (OSError, KeyError, pygit2.GitError)


class BrokenRefError(GitError):
    """A ref is there, but can't be read."""


class Refs:
    """Reads and swaps refs of one repository.

    Attributes:
        own: where this process itself left each ref that it moved; None for one it deleted.
        sync_each: a ref is on disk as soon as it is set, perhaps before what was written earlier.
    """

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self.own: dict[str, Oid | None] = {}
        self._objects = repo.objects
        # The setting is process-wide and latched by each database when it is first used: objects
        # are never synced one by one, refs only where the file system makes it necessary.
        _ = self._objects.odb
        self._handle = self._synced = self._open(sync=True)
        self.sync_each = not durability.renames_wait_for_content(repo.layout.common_dir)
        if not self.sync_each:
            self._handle = self._open(sync=False)

    def _open(self, *, sync: bool) -> pygit2.Repository:
        pygit2.settings.enable_fsync_gitdir(sync)
        try:
            handle = pygit2.Repository(self._repo.layout.git_dir)
            handle.references.get("HEAD")
        finally:
            pygit2.settings.enable_fsync_gitdir(False)
        return handle

    def read(self, name: str) -> Oid | None:
        """Give the object a ref names now, through symbolic refs; None if it does not exist.

        Raises:
            BrokenRefError: its file holds no id (a crash, a full disk).
        """
        named = (self._repo.symbolic_head() if name == "HEAD" else None) or name
        if pygit2.reference_is_valid_name(named):  # else it may lead to any file
            found = loose_id(self._repo.layout, named)
            if found is not None:  # as it is mostly, and for a third of what libgit2 takes
                return found
        try:
            if is_pipe(place_of(self._repo.layout, named)):
                raise pygit2.GitError("its file is a named pipe")  # which would be waited for
            ref = self._handle.references.get(named)
        except pygit2.GitError as error:
            raise BrokenRefError(
                f"the ref '{name}' can't be read: {error}",
                "if it is the record of a batch: git batch recover BRANCH",
            ) from None
        if ref is None:
            return None
        if not isinstance(ref.target, str):
            return Oid(str(ref.target))
        try:
            return Oid(str(ref.resolve().target))
        except KeyError:  # symbolic, and what it names does not exist: an unborn branch
            return None

    def swap(
        self,
        name: str,
        old: Oid | None,
        new: Oid,
        why: str,
        *,
        synced: bool = False,
        durable: bool = True,
        beside: Callable[[], object] | None = None,
    ) -> None:
        """Move a ref from `old` (None: it must not exist) to `new`.

        Args:
            synced: True where a barrier came after the objects were written.
            durable: False where another swap follows at once: its barrier covers this one.
            beside: what can be done while the objects go to disk.

        Raises:
            StaleError: it is somewhere else; nothing was changed.
            LockedError: its lock was held for longer than `LOCK_WAIT` seconds.
            GitError: `new` can't be read back, or the write failed.
        """
        if pygit2.Oid(hex=new) not in self._objects.odb:
            raise GitError(
                f"object {new} was not written", "is there space left, and may you write here?"
            )
        if not synced:
            self.barrier(beside)
        try:
            self._retry(name, lambda: self._set(name, old, new, why))
        except GitError:
            # An error may come after the move (EIO on the last fsync): the ref itself decides.
            if self.read(name) != new:
                raise
        self.own[name] = new
        if self.read(name) != new:
            raise StaleError(f"'{name}' was moved right after it was set")
        if durable:
            self.barrier()

    def point(self, target: str, why: str, name: str = "HEAD") -> None:
        """Make a symbolic ref (HEAD) name another ref; files and index stay as they are.

        Raises:
            LockedError: somebody else's lock stays.
        """
        stalelocks.wait_for(f"{self._repo.layout.git_dir}/{name}")
        self._repo.git.run(["symbolic-ref", "-m", f"batch: {why}", name, target])

    def delete(self, name: str, old: Oid) -> None:
        """Delete a ref that is at `old`."""
        self._repo.git.run(["update-ref", "--no-deref", "-d", name, old])
        self.own[name] = None

    def delete_all(self, refs: Mapping[str, Oid]) -> None:
        """Delete refs that are where they are said to be; all of them or none."""
        lines = "".join(f"delete {name} {old}\n" for name, old in refs.items())
        self._repo.git.run(["update-ref", "--no-deref", "--stdin"], input=lines.encode())
        self.own.update(dict.fromkeys(refs))

    def listed(self, prefix: str) -> dict[str, Oid]:
        """List the refs below a prefix such as `refs/notes/batch/`."""
        return {name: Oid(oid) for name, oid in self._repo.git.refs(prefix).items()}

    def barrier(self, beside: Callable[[], object] | None = None) -> None:
        """Put everything written so far, refs that were moved included, on disk.

        Args:
            beside: what can be done meanwhile.
        """
        if beside is None:
            durability.barrier(self._repo.layout.common_dir)
        else:
            durability.barrier_beside(self._repo.layout.common_dir, beside)

    def _set(self, name: str, old: Oid | None, new: Oid, why: str) -> None:
        # A new ref is renamed over nothing, and then no file system waits for its content.
        handle = self._synced if old is None else self._handle
        with handle.transaction() as change:
            change.lock_ref(name)
            current = self.read(name)
            if current == new:
                return
            if current != old:
                raise StaleError(
                    f"'{name}' is at {_short(current)}, not at {_short(old)} as expected"
                )
            change.set_target(name, pygit2.Oid(hex=new), message=f"batch: {why}")

    def _retry(self, name: str, act: Callable[[], None]) -> None:
        """Act until nothing is in the way any more: a lock, or a git that tidies up folders.

        libgit2 has three exceptions for that and no code.
        """
        limit = time.monotonic() + LOCK_WAIT
        while True:
            try:
                act()
                return
            except _NOT_NOW as error:
                text = str(error)
                locked = any(said in text for said in _LOCKED)
                passing = locked or isinstance(error, KeyError) or _GONE in text
                if not passing or (time.monotonic() > limit and not locked):
                    raise GitError(f"could not set '{name}': {text}") from None
                if time.monotonic() > limit:
                    lock = f"{self._repo.layout.common_dir}/{name}.lock"
                    raise stalelocks.held(lock, f"'{name}'", LOCK_WAIT) from None
                time.sleep(random.uniform(0.01, 0.1))


def _short(oid: Oid | None) -> str:
    return oid[:12] if oid else "nothing"
