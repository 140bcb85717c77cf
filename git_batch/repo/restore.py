"""Put the paths that an attempt changed back to the batch branch's tip. Nothing else, ever.

Never `git clean`, `stash` or `reset --hard`. A path is put back only if what is there now is what
the attempt's snapshot holds, so that nothing can be lost; what is neither the tip's nor the
snapshot's is somebody else's, stays, and is reported. What can't be in a snapshot and is in the
way (a nested repository, a directory of ignored files where a file has to be) is *moved* into
`kept/` of our scratch directory and reported. Ignored files stay, and so do the excluded ones.

Where it was begun before, git may have broken off while it wrote a file (a full disk, a kill): the
file is gone, or holds the beginning of what the tip's holds and nothing else. That is completed, as
nothing is lost by it either.

The order makes it safe to be killed anywhere and run again, as every step is decided from a scan:

1. new paths that occupy the place of the tip's (a file where a directory was, the other way round)
   can't be older than the attempt and go first;
2. the tip's files are written, by git, for the filters' sake. git would remove a directory in the
   way with all that is in it, and follow nothing, so the way is cleared before;
3. only now, with the tip's `.gitignore` files in place, the other new paths go: what the tip
   ignores was perhaps there before an attempt made git see it, and stays;
4. what an attempt's own ignore rules had hidden is visible now: kept aside;
5. the person's index is swapped for one that equals the tip.

A directory that the tip does not know and that this empties was the attempt's, and is removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from git_batch.core.ids import Oid
from git_batch.core.naming import path_text
from git_batch.errors import GitError
from git_batch.repo.git import Git
from git_batch.repo.index import parents
from git_batch.repo.trees import GITLINK, Change, diff, lookup
from git_batch.repo.wholefile import folder_of_ours
from git_batch.repo.worktree import Scanner

_SWAPS = 5
_CHUNK = 1 << 20


class Restored(Struct):
    """What `restore` did.

    Attributes:
        paths: put back to the tip's state.
        kept: moved aside, with the absolute path where each is now.
        left: not touched: neither the tip's nor the attempt's, or a submodule that git would not
            switch back.
        completed: of these paths only a part had been put back, or nothing.
    """

    paths: list[bytes] = field(default_factory=list)
    kept: dict[bytes, bytes] = field(default_factory=dict)
    left: list[bytes] = field(default_factory=list)
    completed: list[bytes] = field(default_factory=list)


def restore(
    scanner: Scanner,
    tip: Oid,
    snapshot: Oid,
    *,
    attempt: bool = True,
    begun: bool = False,
    still_ours: Callable[[], object] = lambda: None,
) -> Restored:
    """Put exactly the paths that an attempt changed back, in the working tree and the index.

    Args:
        tip: tree of the batch branch's tip.
        snapshot: tree of the attempt's kept work, from a scan after its last command ended.
        attempt: False where both are trees of commits: whatever git ignores, by the rules of one
            or the other, is then the person's and stays where it is.
        begun: it may have been begun before, and broken off.
        still_ours: raises if it is not for us to do any more; asked where others are at work.

    Raises:
        GitError: git failed, or the person's index kept changing.
        LockedError: the person's index is locked.
    """
    scanner.begin(tip)
    work = _Work(scanner, tip, snapshot, attempt=attempt, begun=begun)
    try:
        work.run()
    except OSError as error:
        raise GitError(f"can't put back '{_shown(error.filename)}': {error.strerror}") from error
    for _ in range(_SWAPS):
        # Whatever a person or the task has staged is put back to the tip, too.
        if scanner.swap(tip):
            return work.done
        still_ours()
        scanner.begin(tip)
    raise GitError("the index kept changing while the attempt's paths were put back")


class _Work:
    def __init__(
        self, scanner: Scanner, tip: Oid, snapshot: Oid, *, attempt: bool, begun: bool
    ) -> None:
        self.scanner, self.begun = scanner, begun
        self.objects = scanner.repo.objects
        self.tip = tip
        self.attempt = {change.path: change for change in diff(self.objects, tip, snapshot)}
        self.rules_changed = attempt and any(_is_rules(path) for path in self.attempt)
        # Where there was no file, an ignored one must be seen before it is written over.
        made = [path for path, change in self.attempt.items() if not change.new_mode]
        self.also = [] if attempt else made
        self.done = Restored()

    def run(self) -> None:
        """Do steps 1 to 4; afterwards the private index equals the tip."""
        found = diff(self.objects, self.tip, self.scanner.scan(self.also))
        self.done.completed = [change.path for change in found if self._is_unfinished(change)]
        half = set(self.done.completed)
        mine = [c for c in found if self._is_attempts(c) or c.path in half]
        others = [c for c in found if not self._is_attempts(c) and c.path not in half]
        for path in self.scanner.problems:
            self._keep(path.rstrip(b"/"))
        problems = {path.rstrip(b"/") for path in self.scanner.problems}
        self.scanner.set_entries([change.reversed() for change in found])
        self._put_back(mine, problems)
        for change in others:
            if change.old_mode or not self.rules_changed:
                self.done.left.append(change.path)
            else:
                self._keep(change.path)
        if self.rules_changed:
            self._keep_hidden()

    def _is_attempts(self, change: Change) -> bool:
        """Say whether what is there now is what the snapshot holds."""
        snapshot = self.attempt.get(change.path)
        return snapshot is not None and (snapshot.new_mode, snapshot.new_oid) == (
            change.new_mode,
            change.new_oid,
        )

    def _is_unfinished(self, change: Change) -> bool:
        """Say whether what is there is left of putting the attempt's change back."""
        if not self.begun or change.path not in self.attempt or self._is_attempts(change):
            return False
        return change.old_mode not in (0, GITLINK) and self._broke_off(change)

    def _broke_off(self, change: Change) -> bool:
        """Say whether nothing is there but the beginning of the file that git writes there."""
        if not change.new_mode:
            return True
        if change.new_mode != change.old_mode or not stat.S_ISREG(change.new_mode):
            return False
        path = os.fsdecode(change.path)
        write = ["cat-file", "--filters", f"--path={path}", str(change.old_oid)]
        env = {"GIT_INDEX_FILE": self.scanner.private}
        fd = os.open(self.scanner.absolute(change.path), os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file, self.scanner.repo.git.start(write, env=env) as git:
            assert git.stdout is not None
            while here := file.read(_CHUNK):
                if git.stdout.read(len(here)) != here:
                    return False
        return True

    def _put_back(self, mine: list[Change], problems: set[bytes]) -> None:
        made = [change for change in mine if not change.old_mode]
        files = {change.path for change in mine if change.old_mode not in (0, GITLINK)}
        files |= {path for path in problems if self._in_tip(path)}
        modules = [change for change in mine if change.old_mode == GITLINK]
        places = files | {change.path for change in modules}
        above = {parent for path in places for parent in parents(path)}
        first = [
            change
            for change in made
            if change.path in above or any(parent in places for parent in parents(change.path))
        ]
        self._remove(first)
        self._write(files)
        for change in modules:
            self._switch_module(change)
        early = {change.path for change in first}
        rest = [change for change in made if change.path not in early]
        # The attempt's rules first: they must not say what the tip ignores.
        self._remove(change for change in rest if _is_rules(change.path))
        self._remove(self._unignored([c for c in rest if not _is_rules(c.path)]))

    def _remove(self, made: Iterable[Change]) -> None:
        """Remove new paths, then the directories that this empties."""
        for change in made:
            path = self.scanner.absolute(change.path)
            if not self._real(change.path):
                continue
            if change.new_mode == GITLINK or _is_folder(path):
                self._keep(change.path)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            self.done.paths.append(change.path)
        self._prune()

    def _prune(self) -> None:
        """Remove the attempt's empty directories, also those that a killed run has emptied."""
        made = (path for path, change in self.attempt.items() if not change.old_mode)
        for parent in sorted({p for path in made for p in parents(path)}, reverse=True):
            if not self._in_tip(parent) and self._real(parent):
                with contextlib.suppress(OSError):  # not empty, or gone
                    os.rmdir(self.scanner.absolute(parent))

    def _write(self, files: set[bytes]) -> None:
        """Write files as the tip has them, the index with them."""
        if not files:
            return
        for path in files:
            self._clear(path)
        names = b"".join(path + b"\0" for path in sorted(files - self._set_aside_by_sparse(files)))
        self.scanner.git(["checkout-index", "--force", "-u", "-z", "--stdin"], names)
        self.done.paths.extend(sorted(files))

    def _set_aside_by_sparse(self, files: set[bytes]) -> set[bytes]:
        """In a sparse checkout, leave those out that it had left out, in index and tree."""
        git, patterns = self.scanner.repo.git, "info/sparse-checkout"
        if not os.path.exists(os.path.join(self.scanner.repo.layout.git_dir, patterns)):
            return set()
        if git.run(["config", "--bool", "core.sparseCheckout"], ok=(0, 1)).strip() != b"true":
            return set()
        for path in files:
            # git forgets that a file was left out as soon as it sees it; its content is kept.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.scanner.absolute(path))
        tags = git.run(["ls-files", "-t", "-z"], env={"GIT_INDEX_FILE": self.scanner.base})
        absent = {line[2:] for line in tags.split(b"\0") if line[:2] == b"S "} & files
        if absent:
            names = b"".join(path + b"\0" for path in sorted(absent))
            self.scanner.git(["update-index", "--skip-worktree", "-z", "--stdin"], names)
        return absent

    def _clear(self, path: bytes) -> None:
        """Move aside what git would destroy or refuse to pass on the way to a path."""
        for parent in sorted(parents(path)):
            place = self.scanner.absolute(parent)
            if os.path.lexists(place) and not _is_folder(place):
                self._keep(parent)
        place = self.scanner.absolute(path)
        if _is_folder(place):
            try:
                os.rmdir(place)
            except OSError:
                self._keep(path)

    def _switch_module(self, change: Change) -> None:
        """Switch a submodule back without force; its files are its own."""
        place = self.scanner.absolute(change.path)
        if not _is_folder(place):
            self._clear(change.path)
            self._keep(change.path)
            os.makedirs(place)
        if os.path.lexists(os.path.join(place, b".git")) and change.old_oid:
            module = Git(None, os.fsdecode(place))
            if module.call(["checkout", "-q", "--detach", change.old_oid]).status == 0:
                self.done.paths.append(change.path)
                return
        self.done.left.append(change.path)

    def _unignored(self, made: list[Change]) -> list[Change]:
        """Leave out what the tip ignores."""
        if not made or not self.rules_changed:
            return made
        # This command refuses literal names; after "./" there is no magic in them either.
        output = self.scanner.repo.git.run(
            ["check-ignore", "--no-index", "-z", "--stdin"],
            input=b"".join(b"./%s\0" % change.path for change in made),
            env={"GIT_LITERAL_PATHSPECS": "0"},
            ok=(0, 1),
        )
        ignored = set(output.split(b"\0"))
        return [change for change in made if b"./" + change.path not in ignored]

    def _keep_hidden(self) -> None:
        """Keep aside what only the attempt's own ignore rules had hidden."""
        found = diff(self.objects, self.tip, self.scanner.scan())
        for change in found:
            if not change.old_mode and change.path not in self.done.left:
                self._keep(change.path)
        self.scanner.set_entries([change.reversed() for change in found])

    def _keep(self, path: bytes) -> None:
        """Move a path out of the working tree."""
        place = self.scanner.absolute(path)
        if not self._real(path) or not os.path.lexists(place):
            return
        folder = folder_of_ours(os.path.join(self.scanner.repo.scratch, "kept"))
        room = os.path.join(tempfile.mkdtemp(dir=folder, prefix=""), os.fsdecode(_last(path)))
        shutil.move(os.fsdecode(place), room)
        self.done.kept[path] = os.fsencode(room)

    def _real(self, path: bytes) -> bool:
        """Say whether no directory on the way is a symbolic link or missing."""
        places = (self.scanner.absolute(parent) for parent in parents(path))
        return all(_is_folder(place) for place in places)

    def _in_tip(self, path: bytes) -> bool:
        """Say whether the tip has a path, as whatever."""
        return lookup(self.objects, self.tip, path) is not None


def _is_folder(place: bytes) -> bool:
    return os.path.isdir(place) and not os.path.islink(place)


def _is_rules(path: bytes) -> bool:
    return _last(path) == b".gitignore"


def _shown(name: str | bytes | None) -> str:
    return path_text(name or b"?")


def _last(path: bytes) -> bytes:
    return path.rsplit(b"/", 1)[-1]
