"""What a task could plant for git to run, or to see otherwise: watched by plain reads, put back.

Watched are the configuration (of the repository, of its working trees, of its submodules, the
person's own and the system's, and whatever these include), which repositories git enters from here
(`gitlinks`), the hooks, `info/attributes`, `exclude`, `grafts` and `sparse-checkout`,
`objects/info/alternates`, the marks of a merge or rebase that is half done (a person's next commit
would be part of it), and the list of working trees. A survey, by git and before any task has
run, says which files that are. From then on nothing but `stat` and `read` looks at them: the very
next `git` of ours would run what was planted (`core.fsmonitor`, a filter, `include.path`, …), so it
has to be gone by then. Which changes are no business of ours is in `harmless`.

The content of the small files is kept in memory over the run, so that they can be put back. What
the task made of them is never thrown away: it is moved into `kept/` of our scratch directory.
Files outside the repository are the person's in a way that we don't touch: they are not put back;
instead our git commands get the configuration as it was at the survey.

What may be written by any git command, HEAD, the refs and the person's index, is put back here only
where git could not read it at all: else a pipe, a folder or nothing in its place ends every run.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Sequence
from hashlib import sha256

from msgspec import Struct

from git_batch.core.model import within
from git_batch.core.naming import path_text
from git_batch.errors import GitError
from git_batch.repo import harmless, surveying
from git_batch.repo.fencefile import FenceFile, Standing
from git_batch.repo.gitlinks import Nested, listed
from git_batch.repo.index import parents
from git_batch.repo.indexfile import copy_whole, is_spoilt
from git_batch.repo.known import ABSENT, FOLDER, Known, read_state, walk
from git_batch.repo.othertrees import entries
from git_batch.repo.reflist import is_value, place_of
from git_batch.repo.repository import Repository
from git_batch.repo.wholefile import folder_of_ours, write_anew
from git_batch.repo.worktree import BASE


class PutBack(Struct, frozen=True):
    """What became of a changed file.

    Attributes:
        done: it is again as it was noted.
        kept: where what the task made of it is now; None if it had only taken something away.
        added: it is a linked working tree that came to be, so nothing had to be put back.
        new: it was absent when it was noted.
    """

    path: str
    done: bool
    kept: str | None = None
    added: bool = False
    new: bool = False

    def told(self, top: str) -> str:
        """Say it, with paths as of the top of the working tree."""
        path = named(self.path, top)
        if self.added:
            return f"'{path}' was added"
        if not self.done:
            return f"'{path}' was {'new' if self.new else 'changed'}, and is left as it is"
        if self.new:
            where = f"; it is in '{named(self.kept, top)}'" if self.kept else ""
            return f"'{path}' was new, and is taken away{where}"
        kept = f"; what it was changed to is in '{named(self.kept, top)}'" if self.kept else ""
        return f"'{path}' was changed and is put back{kept}"


def put_right(path: str, kept: str | None = None) -> PutBack:
    """Make it of a file that is as it was again; where nothing has its place, it was new."""
    return PutBack(path, True, kept, new=not os.path.lexists(path))


def shown(path: str, top: str) -> str:
    """Name a path as of the top of the working tree, if it lies below that."""
    return os.path.relpath(path, top) if path.startswith(f"{top}/") else path


def named(path: str, top: str) -> str:
    """Name it to a person."""
    return path_text(shown(path, top))


class Watch:
    """The watched files of one repository, as they were when they were noted last.

    Args:
        standing: how they were noted by a run that was killed.
    """

    def __init__(self, repo: Repository, standing: Standing | None = None) -> None:
        self._repo = repo
        self._survey: surveying.Survey | None = standing.survey if standing else None
        self._known: dict[str, Known] = dict(standing.known) if standing else {}
        self._nested = Nested(repo.layout, self._submodules_before() if standing else None)

    def note(self) -> None:
        """Take what is there now as known; asks git what is to be watched if that has changed."""
        self._nested.note()
        if self._survey is None:
            self._survey = surveying.survey(self._repo)
        now = self._look()
        config = self._survey.config
        if self._known and not all(now[p].same(self._known.get(p, ABSENT)) for p in config):
            self._survey = surveying.survey(self._repo)
            now = self._look()
        self._known = now

    def save(self, file: FenceFile) -> None:
        """Have on disk what is noted; costs nothing while that stays the same."""
        assert self._survey is not None
        file.save(self._survey, self._known)

    def changed(self) -> list[str]:
        """List the watched paths that are not as noted, folders before what is in them."""
        now = self._look()
        found = [
            path
            for path in self._known.keys() | now.keys()
            if not self._known.get(path, ABSENT).same(now.get(path, ABSENT))
        ]
        return sorted(path for path in found if not self._harmless(path, now.get(path, ABSENT)))

    def is_linked_tree(self, path: str) -> bool:
        """Tell whether a path is the entry of a linked working tree."""
        assert self._survey is not None
        return os.path.dirname(path) == self._survey.worktrees

    def reads(self, path: str) -> bool:
        """Tell whether git reads a path in this working tree, as far as is noted of what it does.

        It need not be there: a hook may have been any file in the folder of hooks.
        """
        assert self._survey is not None
        if path in surveying.of_others(self._repo.layout):
            return False
        return path in self._known or any(_below(path, f) for f in self._survey.folders)

    def change(self, path: str) -> str:
        """Say in a word what became of a changed path."""
        if path == self._repo.layout.index and not self.index_is_broken():
            return "has a repository staged"
        if path in (self._head, self._repo.layout.index):
            return "can't be read" if os.path.lexists(path) else "gone"
        if self._known.get(path, ABSENT).kind == "absent":
            return "new"
        return "changed" if os.path.lexists(path) else "gone"

    def copy_known(self, paths: Sequence[str]) -> str | None:
        """Write what files were noted as into `kept/`, for a person; say where.

        The same content has the same place, however often it is asked for.
        """
        files = {p: data for p in paths if (data := self._known.get(p, ABSENT).data) is not None}
        if not files:
            return None
        digest = sha256(b"".join(os.fsencode(p) + b"\0" + files[p] + b"\0" for p in sorted(files)))
        kept = folder_of_ours(os.path.join(self._repo.scratch, "kept"))
        folder = os.path.join(kept, f"before-{digest.hexdigest()[:12]}")
        for path, data in files.items():
            place = os.path.join(folder, shown(path, self._repo.layout.top).lstrip("/"))
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
        return folder

    def hook_in_tree(self, path: str) -> bytes | None:
        """Give a hook that lies in the working tree as git names it; None for any other path."""
        assert self._survey is not None
        top = self._repo.layout.top
        nested = os.path.basename(path) == ".git"  # of a repository that git would enter
        if nested or path in self._survey.files or self._base(path) != top:
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
            now = "it is a file now" if os.path.isfile(layout.git_dir) else "its parts are gone"
            raise GitError(
                f"'{layout.git_dir}' is no git directory any more: {now}",
                "a task's command did that; put it back to where it was",
            )

    def head_is_broken(self) -> bool:
        """Tell whether HEAD is nothing that git could read."""
        state = read_state(self._head, time.time_ns())
        value = (state.data or b"").decode("ascii", "replace")
        return state.kind != "file" or not is_value(value)

    @property
    def _head(self) -> str:
        return os.path.join(self._repo.layout.git_dir, "HEAD")

    def mend_head(self, branch: str) -> bool:
        """Write HEAD anew if it is nothing that git could read; say whether that was so."""
        if not self.head_is_broken():
            return False
        self.set_aside(self._head)
        self._write(self._head, Known(None, "file", 0o644, f"ref: {branch}\n".encode()))
        return True

    @property
    def _copy(self) -> str:
        return os.path.join(self._repo.scratch, BASE)

    def _submodules_before(self) -> list[bytes]:
        return listed(self._copy, self._repo.layout.git_dir)

    def index_is_broken(self) -> bool:
        """Tell whether the person's index is nothing that git could read, or gone."""
        return is_spoilt(self._repo.layout.index, self._copy, link=True)

    def index_leads_on(self, accepted: Collection[bytes]) -> bool:
        """Tell whether a command staged a repository, which git would enter from then on.

        Args:
            accepted: paths that may be staged: they are taken out of the index without a word.
        """
        staged = set(listed(self._repo.layout.index)).difference(self._submodules_before())
        return not all(map(within(accepted), staged))

    def mend_index(self) -> PutBack:
        """Put the person's index back as it was copied before the command; nothing of git runs.

        Where there is no copy the index is left out: the next one that is installed takes its
        place.
        """
        path = self._repo.layout.index
        kept = self.set_aside(path)
        copy_whole(self._copy, path)
        return put_right(path, kept)

    def mend_ref(self, name: str) -> None:
        """Move a ref's file away whose content is no value of a ref."""
        self.set_aside(place_of(self._repo.layout, name))

    def _shelter(self) -> None:
        """Give our git commands the person's configuration as it was at the survey."""
        assert self._survey is not None
        path = os.path.join(self._repo.scratch, "fence.config")
        write_anew(path, self._survey.personal)
        self._repo.git.pin_configuration(path)

    def _look(self) -> dict[str, Known]:
        assert self._survey is not None
        now, known = time.time_ns(), self._known
        found = {path: read_state(path, now, known.get(path)) for path in self._survey.files}
        for path in self._nested.places():
            found.setdefault(path, read_state(path, now, known.get(path)))
        for folder in self._survey.folders:
            for path in walk(folder):
                found[path] = read_state(path, now, known.get(path))
        for path in [path for path, state in found.items() if state.kind == "link"]:
            target = os.path.realpath(path)
            found.setdefault(target, read_state(target, now, known.get(target)))
        for path in entries(os.path.dirname(self._survey.worktrees)):
            found[path] = FOLDER
        return found

    def _harmless(self, path: str, now: Known) -> bool:
        assert self._survey is not None
        known = self._known.get(path, ABSENT)
        return harmless.is_harmless(self._repo, self._survey, path, known, now)

    def can_put_back(self, path: str) -> bool:
        """Tell whether a path is ours to put back, and known well enough."""
        known = self._known.get(path, ABSENT)
        lost = known.kind == "other" or (known.kind == "file" and known.data is None)
        return self._base(path) is not None and not lost

    def _put_back(self, path: str) -> PutBack:
        known, base = self._known.get(path, ABSENT), self._base(path)
        if self.is_linked_tree(path):
            return PutBack(path, False, added=known.kind == "absent")
        if base is None or not self.can_put_back(path):
            return PutBack(path, False, new=known.kind == "absent")
        if known.kind == "absent" and not os.path.lexists(path):
            return put_right(path)  # it went with the folder that it was in
        for parent in sorted(parents(os.fsencode(os.path.relpath(path, base)))):
            place = os.path.join(base, os.fsdecode(parent))
            if not os.path.isdir(place) or os.path.islink(place):
                self.set_aside(place)
                os.makedirs(place)
        if known.kind == "folder" and os.path.isdir(path) and not os.path.islink(path):
            return put_right(path)
        kept = self.set_aside(path)
        self._write(path, known)
        return put_right(path, kept)

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
        folder = folder_of_ours(os.path.join(self._repo.scratch, "kept"))
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


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
