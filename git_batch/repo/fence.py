"""What a task could plant for git to run, or to see otherwise: watched by plain reads, put back.

Watched are the configuration (of the repository, of this working tree, of its submodules, the
person's own and the system's, and whatever these include), the hooks, `info/attributes`,
`exclude`, `grafts` and `sparse-checkout`, `objects/info/alternates`, and the list of working
trees. A survey, by git and before any task has run, says which files that are. From then on
nothing but `stat` and `read` looks at them: the very next `git` of ours would run what was planted
(`core.fsmonitor`, a filter, `include.path`, …), so it has to be gone by then.

The content of the small files is kept in memory over the run, so that they can be put back. What
the task made of them is never thrown away: it is moved into `kept/` of our scratch directory.
Files outside the repository are the person's in a way that we don't touch: they are not put back;
instead our git commands get the configuration as it was at the survey.

A change of configuration that only concerns `branch.*` is none: editors and git itself write there
whenever a branch comes up, and no key of it runs anything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pygit2

from git_batch.errors import GitError
from git_batch.repo import surveying
from git_batch.repo.index import parents
from git_batch.repo.reflist import Signature, is_racy, is_value, signature
from git_batch.repo.repository import Repository

KEPT_MOST = 1 << 20
"""Bytes of a file whose content is kept; of a larger one only the digest is."""

_EXECUTABLE = 0o111


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was noted.

    Attributes:
        kind: "file", "link", "folder", "absent", or "other" (a fifo, a device, unreadable).
        data: a file's content, a link's target; None if it is too large to be kept.
    """

    signature: Signature | None
    kind: str
    mode: int = 0
    data: bytes | None = None
    digest: bytes = b""

    def same(self, other: Known) -> bool:
        """Say whether two states are one to git: whatever has the same kind, content, use."""
        here = (self.kind, self.mode & _EXECUTABLE, self.digest)
        return here == (other.kind, other.mode & _EXECUTABLE, other.digest)


@dataclass(frozen=True, slots=True)
class PutBack:
    """What became of a changed file.

    Attributes:
        done: it is again as it was noted.
        kept: where what the task made of it is now; None if it had only taken something away.
        added: it is a linked working tree that came to be, so nothing had to be put back.
    """

    path: str
    done: bool
    kept: str | None = None
    added: bool = False


class Watch:
    """The watched files of one repository, as they were when they were noted last."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._survey: surveying.Survey | None = None
        self._known: dict[str, Known] = {}

    def note(self) -> None:
        """Take what is there now as known; asks git what is to be watched if that has changed."""
        if self._survey is None:
            self._survey = surveying.survey(self._repo)
        now = self._look()
        absent = Known(None, "absent")
        config = self._survey.config
        if self._known and not all(now[p].same(self._known.get(p, absent)) for p in config):
            self._survey = surveying.survey(self._repo)
            now = self._look()
        self._known = now

    def changed(self) -> list[str]:
        """List the watched paths that are not as noted, folders before what is in them."""
        now = self._look()
        absent = Known(None, "absent")
        found = [
            path
            for path in self._known.keys() | now.keys()
            if not self._known.get(path, absent).same(now.get(path, absent))
        ]
        return sorted(path for path in found if not self._harmless(path, now.get(path, absent)))

    def hook_in_tree(self, path: str) -> bytes | None:
        """Give a hook that lies in the working tree as git names it; None for any other path."""
        assert self._survey is not None
        top = self._repo.layout.top
        if path in self._survey.files or self._base(path) != top:
            return None
        return os.fsencode(os.path.relpath(path, top))

    def put_back(self, paths: Sequence[str]) -> list[PutBack]:
        """Put changed paths back to what was noted, in this order; nothing of git runs."""
        if any(self._base(path) is None for path in paths):
            self._shelter()
        return [self._put_back(path) for path in paths]

    def still_there(self) -> None:
        """See that there is a git directory to put anything back in.

        Raises:
            GitError: it is gone.
        """
        layout = self._repo.layout
        folders = [os.path.join(layout.common_dir, name) for name in ("objects", "refs")]
        if not all(os.path.isdir(folder) for folder in (layout.git_dir, *folders)):
            raise GitError(f"'{layout.git_dir}' is no git directory any more")

    def mend_head(self, branch: str) -> bool:
        """Write HEAD anew if it is nothing that git could read; say whether that was so."""
        path = os.path.join(self._repo.layout.git_dir, "HEAD")
        state = self._state(path, time.time_ns())
        if state.kind == "file" and is_value((state.data or b"").decode("ascii", "replace")):
            return False
        self.set_aside(path)
        self._write(path, Known(None, "file", 0o644, f"ref: {branch}\n".encode()))
        return True

    def mend_ref(self, name: str) -> None:
        """Move a ref's file away whose content is no value of a ref."""
        self.set_aside(os.path.join(self._repo.layout.common_dir, name))

    def _shelter(self) -> None:
        """Give our git commands the person's configuration as it was at the survey."""
        assert self._survey is not None
        path = os.path.join(self._repo.scratch, "fence.config")
        with open(path, "wb") as file:
            file.write(self._survey.personal)
        self._repo.git.pin_configuration(path)

    def _look(self) -> dict[str, Known]:
        assert self._survey is not None
        now = time.time_ns()
        found = {path: self._state(path, now) for path in self._survey.files}
        for folder in self._survey.folders:
            for path in _walk(folder):
                found[path] = self._state(path, now)
        for path in [path for path, state in found.items() if state.kind == "link"]:
            target = os.path.realpath(path)
            found.setdefault(target, self._state(target, now))
        for path in _names(self._survey.worktrees):
            found[path] = Known(None, "folder")
        return found

    def _state(self, path: str, now: int) -> Known:
        """Read a file unless it is as it was; nothing here follows a link or can wait."""
        try:
            state = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return Known(None, "absent")
        except OSError:
            return Known(None, "other")
        here, known = signature(state), self._known.get(path)
        if known is not None and known.signature == here:
            return known
        kept = None if is_racy(state, now) else here
        if stat.S_ISDIR(state.st_mode):
            return Known(kept, "folder")
        if stat.S_ISLNK(state.st_mode):
            target = os.fsencode(os.readlink(path))
            return Known(kept, "link", 0, target, target)
        if not stat.S_ISREG(state.st_mode):
            return Known(kept, "other")
        return _read(path, kept, state)

    def _harmless(self, path: str, now: Known) -> bool:
        """Say whether only `branch.*` of a configuration file differs."""
        known = self._known.get(path)
        assert self._survey is not None
        if path not in self._survey.config or known is None or {known.kind, now.kind} != {"file"}:
            return False
        if known.data is None or now.data is None:
            return False
        return self._entries(known.data) == self._entries(now.data) is not None

    def _entries(self, text: bytes) -> list[tuple[str, str | None]] | None:
        with tempfile.NamedTemporaryFile(dir=self._repo.scratch, suffix=".config") as file:
            file.write(text)
            file.flush()
            try:
                found = [(entry.name, entry.value) for entry in pygit2.Config(file.name)]
            except (pygit2.GitError, ValueError, OSError):
                return None
        return [entry for entry in found if not entry[0].startswith("branch.")]

    def _put_back(self, path: str) -> PutBack:
        known = self._known.get(path, Known(None, "absent"))
        base = self._base(path)
        lost = known.kind == "other" or (known.kind == "file" and known.data is None)
        assert self._survey is not None
        if os.path.dirname(path) == self._survey.worktrees:
            return PutBack(path, False, added=known.kind == "absent")
        if base is None or lost:
            return PutBack(path, False)
        for parent in sorted(parents(os.fsencode(os.path.relpath(path, base)))):
            place = os.path.join(base, os.fsdecode(parent))
            if not os.path.isdir(place) or os.path.islink(place):
                self.set_aside(place)
                os.makedirs(place)
        if known.kind == "folder" and os.path.isdir(path) and not os.path.islink(path):
            return PutBack(path, True)
        kept = self.set_aside(path)
        self._write(path, known)
        return PutBack(path, True, kept)

    def _base(self, path: str) -> str | None:
        """Give the folder of ours that a path lies in; None for what is outside."""
        layout = self._repo.layout
        bases = (layout.git_dir, layout.common_dir, layout.top)
        base = next((base for base in bases if _below(path, base)), None)
        above = os.path.dirname(path)
        while base is not None and _below(above, base):
            if above in self._known and self._known[above].kind == "link":
                return None  # a person linked it to somewhere else
            above = os.path.dirname(above)
        return base

    def set_aside(self, path: str) -> str | None:
        """Move a path into `kept/`; say where it is now, None if there was nothing."""
        if not os.path.lexists(path):
            return None
        folder = os.path.join(self._repo.scratch, "kept")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        room = os.path.join(tempfile.mkdtemp(dir=folder, prefix=""), os.path.basename(path))
        if stat.S_IFMT(os.lstat(path).st_mode) in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
            return str(shutil.move(path, room))
        os.unlink(path)  # a fifo, a socket or a device holds nothing
        return None

    def _write(self, path: str, known: Known) -> None:
        if known.kind == "folder":
            os.mkdir(path)
        elif known.kind == "link":
            os.symlink(known.data or b"", os.fsencode(path))
        elif known.kind == "file":
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(known.data or b"")
                os.fchmod(file.fileno(), stat.S_IMODE(known.mode))


def _read(path: str, kept: Signature | None, state: os.stat_result) -> Known:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return Known(None, "other")
    with os.fdopen(fd, "rb") as file:
        data = file.read(KEPT_MOST + 1)
        digest = hashlib.sha256(data)
        whole = len(data) <= KEPT_MOST
        while not whole and (more := file.read(KEPT_MOST)):
            digest.update(more)
    return Known(kept, "file", state.st_mode, data if whole else None, digest.digest())


def _walk(folder: str) -> Iterator[str]:
    """List a folder of hooks, itself included; samples, which git never runs, left out."""
    waiting, found = [folder], 0
    while waiting:
        here = waiting.pop()
        yield here
        try:
            entries = list(os.scandir(here))
        except OSError:
            continue
        for entry in entries:
            if entry.name.endswith(".sample"):
                continue
            found += 1
            # A folder that holds so much is not one of hooks alone: only its top counts.
            if entry.is_dir(follow_symlinks=False) and found < surveying.HOOKS_MOST:
                waiting.append(entry.path)
            else:
                yield entry.path


def _names(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
