"""Open a repository: what is where, what we can't work with, and what must not be going on.

Which repository: the one that the directory lies in. `GIT_DIR` (and `GIT_WORK_TREE`) in the
environment come from `git --git-dir=… batch`, or from git when a hook or an alias runs us. They
are honoured if, and only if, they name another repository than the directory does: in a hook of
the same repository they say nothing new, and `GIT_DIR` alone would make git take a subdirectory
for the top of the working tree. Every other such variable is ignored, `GIT_INDEX_FILE` too: the
person's index is always `<git dir>/index`. Nothing of them reaches a task.

Refused, with the reason: no repository, a bare one, a `.git` directory as the place, another
person's repository (git's own check; libgit2's is switched off, one authority is enough), SHA-256,
reftable and any other extension that libgit2 does not know. Worktrees, submodules, shallow and
partial clones, sparse checkouts and sparse or split indexes work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from git_batch.core.ids import Oid
from git_batch.core.model import Actor
from git_batch.errors import BatchError, GitError, PreconditionError, UsageError
from git_batch.repo.git import Git, Result
from git_batch.repo.here import here
from git_batch.repo.patience import refuse_pipes
from git_batch.repo.status import ALL_SUBMODULES, STATUS, Entry, parse
from git_batch.repo.wholefile import read

if TYPE_CHECKING:
    # At run time they are imported on first use: `git batch status` needs neither, and the first
    # costs ten times what it may.
    from git_batch.repo.config import Config
    from git_batch.repo.libgit2 import pygit2

_QUESTIONS = (
    "rev-parse",
    "--path-format=absolute",
    "--is-bare-repository",
    "--is-inside-work-tree",
    "--show-object-format",
    "--git-dir",
    "--git-common-dir",
    "--show-toplevel",
)
_HEAD_MOST = 4096
_COMPRESSION = -1
"""libgit2's own level, and git's for loose objects: the fastest."""
_IDENT = re.compile(rb"(?P<name>.*) <(?P<email>[^<>]*)> \d+ [-+]\d{4}\n?", re.DOTALL)


class Layout(Struct, frozen=True):
    """What is where; absolute paths.

    Attributes:
        top: the top of the working tree.
        git_dir: of this working tree (`.git`, or `…/.git/worktrees/<name>`).
        common_dir: where objects and branches are, shared by all working trees.
        object_format: "sha1".
    """

    top: str
    git_dir: str
    common_dir: str
    object_format: str

    @property
    def index(self) -> str:
        """Path of the person's index."""
        return os.path.join(self.git_dir, "index")

    @property
    def scratch(self) -> str:
        """Path of our own directory for this working tree; `Repository.scratch` makes it."""
        return os.path.join(self.git_dir, "batch")


class Dirt(Struct, frozen=True):
    """What keeps a working tree from being clean; true if anything does.

    Attributes:
        tracked: paths whose content, mode or index entry differs from HEAD, dirty submodules
            included. A file that was only touched is not among them.
        untracked: paths that git neither knows nor ignores; a directory's ends in a slash.
    """

    tracked: tuple[Entry, ...]
    untracked: tuple[bytes, ...]

    def __bool__(self) -> bool:
        return bool(self.tracked or self.untracked)


def discover(start: str, environ: Mapping[str, str] = os.environ) -> Layout:
    """Find the repository that a directory belongs to, by one call of git.

    Raises:
        UsageError: `start` is not a directory.
        PreconditionError: there is no repository that we can work in.
    """
    if not os.path.isdir(start):
        raise UsageError(f"'{start}' is not a directory")
    answer, named = _ask(start, {}), environ.get("GIT_DIR")
    if named:
        # What git says is relative to the directory that it runs in.
        other = _ask(start, {k: environ[k] for k in ("GIT_DIR", "GIT_WORK_TREE") if k in environ})
        if other[0].stdout and (not answer[1] or other[1][3:5] != answer[1][3:5]):
            answer = other
    result, lines = answer
    if result.status or len(lines) != 6:
        raise _refusal(start, result, lines)
    _, _, object_format, git_dir, common_dir, top = lines
    if object_format != "sha1":
        raise PreconditionError(
            f"the repository has object format '{object_format}'; git-batch needs 'sha1'",
            "libgit2, which reads the objects, does not know the other format yet",
        )
    return Layout(top, git_dir, common_dir, object_format)


def _ask(start: str, env: Mapping[str, str]) -> tuple[Result, list[str]]:
    result = Git(None, start).call(_QUESTIONS, env=env)
    return result, os.fsdecode(result.stdout).splitlines()


def _refusal(start: str, result: Result, lines: list[str]) -> BatchError:
    """Say why git does not name a working tree here."""
    said = os.fsdecode(result.stderr)
    if lines[:1] == ["true"]:
        return PreconditionError(
            "this is a bare repository; a batch needs a working tree",
            "run it in a clone, or in a worktree made by 'git worktree add'",
        )
    if lines[:2] == ["false", "false"]:
        return PreconditionError(
            f"'{start}' is not inside a working tree", "run it where your files are, not in '.git'"
        )
    if "dubious ownership" in said:
        return PreconditionError(
            f"'{start}' belongs to another user, so git does not read its configuration",
            "if you trust it: git config --global --add safe.directory <its top directory>",
        )
    unknown = re.search(r"unknown repository extensions? found:\s*(\S+)", said)
    if unknown:
        return _unsupported(unknown[1])
    version = re.search(r"expected git repo version.*", said, re.IGNORECASE)
    if version:
        return PreconditionError(f"git can't read this repository: {version[0]}", "update git")
    if "not a git repository" in said:
        return PreconditionError(
            f"'{start}' is not in a git repository", "go to one, or make one with 'git init'"
        )
    if not result.status:
        return PreconditionError(f"the path of this repository contains a line break: {lines!r}")
    return GitError(f"git can't say what '{start}' is: {said.strip()}")


def _unsupported(extension: str) -> PreconditionError:
    name = extension.removeprefix("extensions.").lower()
    way_out = (
        "a clone with the classic ref files works: git clone --ref-format=files <this> <new>"
        if name == "refstorage"
        else "a plain clone of it may work"
    )
    return PreconditionError(
        f"the repository uses 'extensions.{name}', which git-batch can't work with", way_out
    )


class Repository:
    """A repository with a working tree, opened for a batch."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.git = Git(layout.git_dir, layout.top)

    @classmethod
    def open(cls, start: str = ".") -> Repository:
        """Open a directory's repository; errors as of `discover` and `refuse_pipes`."""
        try:
            repo = cls(discover(here(start)))
            repo.refuse_pipes()
        except (PreconditionError, GitError) as error:
            from git_batch.repo.unopened import ways_out  # rarely needed; it imports us

            error.hints = tuple(ways_out(here(start), os.environ)) or error.hints
            raise
        return repo

    def refuse_pipes(self, *refs: str) -> None:
        """Refuse to go on where a file that is read next is a named pipe: nothing would end that.

        Args:
            refs: what is read besides what always is.

        Raises:
            GitError: one is.
        """
        shared = [os.path.join(self.layout.common_dir, name) for name in ("packed-refs", *refs)]
        refuse_pipes(self.layout.top, self.layout.index, *shared)

    @cached_property
    def objects(self) -> pygit2.Repository:
        """The libgit2 handle for reading objects and building trees.

        It does not sync what it writes; whoever moves a ref syncs the file system before.

        Raises:
            PreconditionError: libgit2 does not know an extension of the repository.
        """
        from git_batch.repo.guarded import Objects
        from git_batch.repo.libgit2 import pygit2

        pygit2.settings.owner_validation = False
        pygit2.settings.set_extensions(["partialclone"])
        pygit2.settings.enable_fsync_gitdir(False)
        try:
            return Objects(self.layout.git_dir, self.layout.common_dir)
        except pygit2.GitError as error:
            unknown = re.search(r"unsupported extension name (\S+)", str(error))
            if unknown:
                raise _unsupported(unknown[1]) from error
            raise PreconditionError(f"libgit2 can't open this repository: {error}") from error

    @cached_property
    def loose(self) -> pygit2.Odb:
        """The loose objects alone, unsynced as well: where what is new is written.

        Before libgit2 writes through `objects` it lists the folder of packs, for each object anew.
        """
        from git_batch.repo.libgit2 import pygit2

        found = pygit2.Odb()
        folder = os.path.join(self.layout.common_dir, "objects")
        found.add_backend(pygit2.OdbBackendLoose(folder, _COMPRESSION, False), 1)
        return found

    @cached_property
    def scratch(self) -> str:
        """Our own directory in the git directory of this working tree; made on demand, 0700."""
        os.makedirs(self.layout.scratch, mode=0o700, exist_ok=True)
        return self.layout.scratch

    @cached_property
    def config(self) -> Config:
        """The person's configuration, as of the first look; see `look_again`."""
        from git_batch.repo.config import Config

        return Config.read(self.git)

    @cached_property
    def submodules(self) -> tuple[bytes, ...]:
        """The paths of the submodules that the person's index knows, as of the first look.

        No task can add one, as a new nested repository is refused.
        """
        from git_batch.repo import submodules  # it imports us

        return submodules.listed(self)

    def look_again(self) -> None:
        """Forget what was read of configuration and index: a person has had time to change them."""
        for read_once in ("config", "submodules"):
            vars(self).pop(read_once, None)

    def symbolic_head(self) -> str | None:
        """Give the ref that HEAD names; None when it is detached, or no file that can be read.

        libgit2 asks for a size and opens then: of a longer name that comes meanwhile it reads part.
        """
        try:
            path = os.path.join(self.layout.git_dir, "HEAD")
            text = os.fsdecode(read(path, _HEAD_MOST, flags=os.O_NONBLOCK))
        except OSError:
            return None
        return text[5:].strip() if text.startswith("ref: ") else None

    def head(self) -> tuple[str | None, Oid]:
        """Read HEAD: the full name of the branch, None if detached, and the commit.

        Raises:
            PreconditionError: there is no commit yet.
        """
        branch = self.symbolic_head()
        try:
            found = self.objects.lookup_reference(branch or "HEAD").resolve()
            return branch, Oid(str(found.target))
        except KeyError:
            raise self._nothing_to_build_on(branch) from None

    def _nothing_to_build_on(self, branch: str | None) -> PreconditionError:
        """Say that HEAD has no commit; where other branches have, that may be a deleted one."""
        on, hints = "", []
        if branch is not None and self.git.run(["for-each-ref", "--count=1", "refs/heads"]):
            on = f" on branch '{branch.removeprefix('refs/heads/')}'"
            hints.append("go to a branch that has one: git switch BRANCH")
        if not (on and self.git.run(["ls-files"])):  # else it would be made of all that is staged
            hints.append("make the first one: git commit --allow-empty -m 'first commit'")
        said = f"there is no commit yet{on}, so there is nothing to build a batch on"
        return PreconditionError(said, *hints)

    def tree_of(self, commit: Oid) -> Oid:
        """Name the tree of a commit.

        Raises:
            GitError: the commit is missing or damaged.
        """
        from git_batch.repo import commits  # it imports us, and needs libgit2

        return commits.read(self, commit).tree

    def identity(self, role: str = "author") -> Actor:
        """Say who the person is, as git finds it; `role` is "author" or "committer".

        The environment (`GIT_AUTHOR_NAME` and so on, `EMAIL`) goes before the configuration. An
        address that git would guess from the host's name is not an identity.

        Raises:
            PreconditionError: there is none.
        """
        config = () if os.environ.get("EMAIL") else ("-c", "user.useConfigOnly=true")
        result = self.git.call([*config, "var", f"GIT_{role.upper()}_IDENT"])
        match = _IDENT.fullmatch(result.stdout)
        if result.status or match is None:
            raise PreconditionError(
                f"git does not know who you are, so a commit would have no {role}",
                'git config --global user.name "Your Name"',
                'git config --global user.email "you@example.com"',
            )
        return Actor(os.fsdecode(match["name"]), os.fsdecode(match["email"]))

    def signs_commits(self) -> bool:
        """Say whether the person has their commits signed (`commit.gpgSign`)."""
        return self.config.has("commit.gpgsign") and self.git.flag("commit.gpgSign")

    def dirty(self) -> Dirt:
        """List what differs from HEAD and what is untracked, by one scan."""
        output = self.git.run([*STATUS, ALL_SUBMODULES])
        entries = list(parse(output))
        return Dirt(
            tuple(entry for entry in entries if not entry.untracked),
            tuple(entry.path for entry in entries if entry.untracked),
        )
