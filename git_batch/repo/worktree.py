"""The working tree as a tree object, by one scan; and what happened since.

The scan is `git add -A` into a *private* index, so that ignore rules, filters, line ends, modes,
symbolic links, sparse checkouts and racy edits are exactly git's, and the person's index is left
alone. The private index starts as a copy of the person's (`index`), which keeps what git knows
about unchanged files: a scan costs what `git status` costs. Before it is used it is made to equal
the batch branch's tip, so that what a person or a task has staged (an ignored file by force,
say) is not taken for the next task's work.

Excluded paths are the untracked ones that a person accepted at the confirmation. They never get
into a tree: git is given them as ignore patterns of the lowest rank, together with the person's
own, so that even a huge directory is not entered; whatever comes in nevertheless (a `!pattern` of
the repository, a name that no pattern can express) is taken out of the private index again.

A nested repository is in the tree as a submodule entry. What git can't take (a nested repository
without a commit, an unreadable file, a fifo in a tracked file's place) is listed in `problems`
while all the rest is taken. A new fifo, socket or device is invisible to git and so to us. Changes
inside a submodule count once its HEAD moves (before, `submodules` finds them); files in a
submodule's directory that is no repository are invisible to git. Symbolic links are never followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from git_batch.core.ids import Oid
from git_batch.core.model import within
from git_batch.errors import SYSTEM_FAULTS, GitError
from git_batch.repo.git import failure
from git_batch.repo.index import PersonIndex, index_info, parents
from git_batch.repo.indexfile import copy_whole, discard, link
from git_batch.repo.inprocess import InProcess, Signature, signature
from git_batch.repo.repository import Repository
from git_batch.repo.status import STATUS, Entry, parse
from git_batch.repo.trees import Change, diff, lookup
from git_batch.repo.wholefile import read

INDEX, BASE, EXCLUDES = "scan.index", "scan.base", "scan.excludes"
"""Names of the scratch files: the private index, what it was made from, and more to ignore."""

_SYSTEM = re.compile(
    rb": (?:%s)$|^error: insufficient permission for adding an object "
    % b"|".join(re.escape(os.strerror(number).encode()) for number in sorted(SYSTEM_FAULTS)),
    re.MULTILINE,
)
"""How git says that the system failed it (a full disk), and no file did.

The names of files stand before the end of a line, and after its beginning.
"""


class Scanner:
    """Scans one working tree, over and over.

    Attributes:
        private: path of the private index; `base` of the person's index that it came from.
        problems: paths that the last scan found but git could not take.
        tree: what the private index holds, if it is what a scan found or a restore left.
        raw: take changed files as they lie there, past the person's filters and `core.autocrlf`:
            for work that is to be kept although git refuses it. An attribute can't be passed by:
            what is no text in its `working-tree-encoding` stays refused.
    """

    def __init__(self, repo: Repository, excluded: Sequence[bytes] = ()) -> None:
        self.repo = repo
        self.person = PersonIndex(repo)
        self.private = os.path.join(repo.scratch, INDEX)
        self.base = os.path.join(repo.scratch, BASE)
        self.problems: tuple[bytes, ...] = ()
        self.raw = False
        self._excluded, self._covers = tuple(excluded), within(excluded)
        self._options = self._exclude() if excluded else ()
        self._env = {"GIT_INDEX_FILE": self.private}
        self._tip: Oid | None = None
        self.tree: Oid | None = None
        self._settled: tuple[Signature | None, Oid] | None = None
        self._in_process = InProcess(repo, self.private)

    def begin(self, tip: Oid) -> None:
        """Prepare the private index: the person's, with every entry as in the tree `tip`.

        Cheap (a copy of the file) while the person's index is the one that `install` left there.
        None of our files is that very file then: a command that is run may write into ours.

        Raises:
            GitError: the index has conflicts, or git failed.
        """
        self.person.recover(self.private)
        discard(self.private, self.private + ".lock")
        copy_whole(self.repo.layout.index, self.base)
        link(self.base, self.private)
        self._tip, self.tree = tip, None
        if self._settled == (signature(self.repo.layout.index), tip):
            return
        self.set_entries(diff(self.repo.objects, self.write_tree(), tip))

    def take_back(self, tip: Oid | None = None) -> list[bytes]:
        """Take back what hides files from git, and excluded paths that a command staged.

        That is, what the person's index has got of them since `begin`, of whichever run that was.

        Args:
            tip: a tree that may hold excluded paths, being of a commit that somebody made; these
                are tracked then, and stay.

        Returns:
            The excluded paths that it had, and has no longer.

        Raises:
            LockedError: the person's index is locked.
            GitError: it kept changing, or git failed.
        """

        def untracked(path: bytes) -> bool:
            return self.is_excluded(path) and not (tip and lookup(self.repo.objects, tip, path))

        return self.person.take_back(self.base, untracked)

    def scan(self, also: Sequence[bytes] = ()) -> Oid:
        """Write the working tree as a tree object; one walk over it.

        Args:
            also: files to take although they are ignored, if they exist; what is ignored in a
                folder is not meant by its name.

        Raises:
            GitError: git failed; a filter that is required, for instance.
        """
        if self._tip is None:
            raise ValueError("scan without begin")
        before = None if self.tree is None else signature(self.private)
        complete = self._add()
        if before is not None and complete and not also and before == signature(self.private):
            assert self.tree is not None
            return self.tree
        tree = self.write_tree(exact=not complete)
        forced = [path for path in also if self._is_hidden(path, tree)]
        if forced:
            self.git(["add", "--force", "--sparse", "--", *forced])
            tree = self.write_tree(exact=not complete)
        if self._options:
            changes = diff(self.repo.objects, self._tip, tree)
            stray = [c for c in changes if not c.old_mode and self.is_excluded(c.path)]
            if stray:
                self.set_entries([change.reversed() for change in stray])
                tree = self.write_tree(exact=True)
        self.tree = tree
        return tree

    def staged(self) -> Oid:
        """Write the private index as it is: what a hook staged, who had it as its index.

        Raises:
            GitError: it has conflicts, or can't be read.
        """
        self.tree = None
        return self.write_tree(exact=True)

    def changed_by_checks(self, tree: Oid) -> list[Change]:
        """List what changed in the working tree since the scan that gave `tree`.

        One walk while there is nothing: it only compares, and writes neither index nor tree. In a
        small repository libgit2 does it, in process.
        """
        if tree == self.tree and not self.problems and self._untouched():
            return []
        return diff(self.repo.objects, tree, self.scan())

    def install(self) -> list[bytes]:
        """Make the person's index agree with the scanned tree.

        The private index takes its place, unless they used git in the meantime: then exactly the
        entries that the scan changed are set in theirs.

        Returns:
            The paths whose entries were left, being the person's.
        """
        if self._tip is None or self.tree is None:
            raise ValueError("install without scan")
        if self.swap(self.tree):
            return []
        return self.person.set_paths(diff(self.repo.objects, self._tip, self.tree))

    def swap(self, tree: Oid) -> bool:
        """Put the private index, whose tree is `tree`, in the person's place if that is `base`."""
        if not self.person.install(self.private, self.base):
            return False
        self._settled, self.tree = (signature(self.repo.layout.index), tree), tree
        return True

    def is_excluded(self, path: bytes) -> bool:
        """Say whether a path is one of the person's untracked ones, or in such a directory."""
        return self._covers(path)

    def git(self, args: Sequence[str | bytes], input: bytes | None = None) -> bytes:
        """Run git on the private index, with the excluded paths ignored."""
        return self.repo.git.run(
            [*self._options, *args], input=input, env=self._env, fsmonitor=True
        )

    def set_entries(self, changes: Sequence[Change]) -> None:
        """Set entries of the private index to the new side of the changes."""
        if changes:
            self.tree = None
            self.git(
                ["update-index", "-z", "--add", "--replace", "--index-info"],
                index_info(changes),
            )

    def write_tree(self, *, exact: bool = False) -> Oid:
        """Write the private index as a tree; `exact` leaves nothing to libgit2.

        libgit2 takes intent-to-add entries for empty files. After a complete `add -A` there are
        none left.
        """
        tree = None if exact else self._in_process.write_tree()
        return tree or Oid(self.git(["write-tree"]).decode().strip())

    def _untouched(self) -> bool:
        """Say whether nothing differs from the private index; False where there is any doubt."""
        found = self._in_process.is_untouched()
        return not self._status() if found is None else found

    def _add(self) -> bool:
        """Take the working tree into the private index; False if git could not take all of it."""
        # Without --sparse, files outside of a sparse checkout's cone would stay hidden.
        add = [*self._options, "add", "--all", "--ignore-errors", "--sparse"]
        self.problems = ()
        env = {**self._env, **(self._unfiltered() if self.raw else {})}
        for _ in range(3):
            result = self.repo.git.call(add, env=env, fsmonitor=True)
            if result.status == 0:
                return True
            if result.status != 1 or _SYSTEM.search(result.stderr):
                raise failure(add, result)
            self.problems = tuple(entry.path for entry in self._status())
            if self.problems:
                return False
            # Something vanished between listing and reading.
        raise GitError("the working tree kept changing while it was being read")

    def _unfiltered(self) -> dict[str, str]:
        """Switch off, for one command, whatever refuses or changes the content of a file."""
        asked = ["config", "--name-only", "-z", "--get-regexp", r"^filter\..*\.[a-z]+$"]
        names = self.repo.git.call(asked).stdout.split(b"\0")
        drivers = {name.rpartition(b".")[0] for name in names if name}
        off = {"core.autocrlf": "false", "core.safecrlf": "false"}
        for driver in map(os.fsdecode, drivers):
            off |= {f"{driver}.clean": "", f"{driver}.process": "", f"{driver}.required": "false"}
        env = {"GIT_CONFIG_COUNT": str(len(off))}
        for i, (key, value) in enumerate(off.items()):
            env |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
        return env

    def _status(self) -> list[Entry]:
        """Compare the working tree with the private index, as `add -A` sees it."""
        output = self.git([*STATUS, "--ignore-submodules=dirty"])
        return [
            entry
            for entry in parse(output)
            if entry.unstaged != "." and not self.is_excluded(entry.path.rstrip(b"/"))
        ]

    def absolute(self, path: bytes) -> bytes:
        """Name a path of the repository for the operating system."""
        return os.path.join(os.fsencode(self.repo.layout.top), path)

    def _is_hidden(self, path: bytes, tree: Oid) -> bool:
        """Say whether a file is there, not through a symbolic link, and git did not take it."""
        if self.is_excluded(path) or lookup(self.repo.objects, tree, path) is not None:
            return False
        if any(os.path.islink(self.absolute(parent)) for parent in parents(path)):
            return False
        try:
            mode = os.lstat(self.absolute(path)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        return stat.S_ISREG(mode) or stat.S_ISLNK(mode)

    def _exclude(self) -> tuple[str, str]:
        """Write the excludes file; return git's option that names it."""
        path = os.path.join(self.repo.scratch, EXCLUDES)
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        own = os.fsencode(os.path.join(home, "git", "ignore"))
        if self.repo.config.has("core.excludesfile"):
            asked = ["config", "--type=path", "--get", "core.excludesFile"]
            own = self.repo.git.call(asked).stdout.rstrip(b"\n") or own
        content = b""
        if os.path.isfile(own):
            content = read(own) + b"\n"
        patterns = (pattern(name) for name in self._excluded)
        with open(path, "wb") as file:
            file.write(content + b"".join(sorted(p + b"\n" for p in patterns if p)))
        return "-c", f"core.excludesFile={path}"


def pattern(path: bytes) -> bytes | None:
    """Write an ignore pattern that matches exactly one path; None if there is no such pattern."""
    if b"\n" in path or path.endswith(b"\r"):
        return None
    escaped = bytearray(b"/")
    for byte in path:
        if byte in b"\\*?[ ":
            escaped += b"\\"
        escaped.append(byte)
    return bytes(escaped)
