"""Which files decide what git runs and sees here: asked of git once, while it can be trusted.

`git config --show-origin` names every file that has a say, includes followed. Added to them are
the files that may have none yet: those that are empty or absent, and the targets of includes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct, field

from git_batch.repo import operations
from git_batch.repo.git import failure
from git_batch.repo.gitlinks import Nested
from git_batch.repo.othertrees import WORKTREES, git_dirs
from git_batch.repo.repository import Layout, Repository

HOOKS_MOST = 1000
"""Entries of a folder of hooks that are entered; a folder with more is no folder of hooks."""

_COMMON = "commondir"
"""In a git directory: the one whose configuration and objects git takes instead, if it is there."""

PER_TREE = "config.worktree"
"""In a git directory: the configuration of its working tree alone."""

_SPARSE = "sparse-checkout"
_INFO = ("attributes", "exclude", "grafts", _SPARSE)
_PERSONAL = ("system", "global")
_PATHS = ("core.excludesfile", "core.attributesfile")


class Survey(Struct):
    """What is to be watched.

    Attributes:
        files: absolute paths, `config` among them; they need not exist.
        folders: of hooks.
        worktrees: the folder that has an entry for each linked working tree.
        personal: the entries of the person's and the system's configuration, as one file.
    """

    files: set[str] = field(default_factory=set)
    config: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    worktrees: str = ""
    personal: bytes = b""


class _Entry(Struct, frozen=True):
    scope: str
    origin: str
    key: str
    value: str


def survey(repo: Repository) -> Survey:
    """Ask git which files have a say here.

    Raises:
        GitError: the configuration can't be read.
    """
    layout, found = repo.layout, Survey()
    entries = list(_entries(repo))
    found.personal = b"".join(_written(e) for e in entries if e.scope in _PERSONAL)
    found.config = {e.origin for e in entries} | set(_places(layout))
    for entry in entries:
        if entry.key == "include.path" or _is_conditional(entry.key):
            found.config.add(_resolve(entry.value, os.path.dirname(entry.origin)))
        elif entry.key in _PATHS:
            found.files.add(_resolve(entry.value, layout.top))
        elif entry.key == "core.hookspath":
            found.folders.add(_resolve(entry.value, layout.top))
    found.folders.add(os.path.join(layout.common_dir, "hooks"))
    for folder in {layout.common_dir, layout.git_dir}:
        found.files.update(os.path.join(folder, "info", name) for name in _INFO)
    found.files.update(_own_places(layout))
    found.files.update(operations.places(layout.git_dir))
    found.worktrees = os.path.join(layout.common_dir, WORKTREES)
    for other in git_dirs(layout):  # we work there as well
        found.config.add(os.path.join(other, PER_TREE))
        found.files.add(os.path.join(other, _COMMON))
    # Which git directory a submodule has is said by its `.git`, a folder or a file.
    nested = Nested(layout).places()
    found.files.update(nested)
    for module in {*_modules(layout), *nested, *filter(None, nested.values())}:
        found.config.update(os.path.join(module, name) for name in ("config", PER_TREE))
        found.files.update(os.path.join(module, "info", name) for name in _INFO)
        found.files.add(os.path.join(module, _COMMON))
    found.files |= found.config
    return found


def _entries(repo: Repository) -> Iterator[_Entry]:
    asked = ["config", "--list", "-z", "--show-scope", "--show-origin"]
    result = repo.git.call(asked)
    if result.status:
        raise failure(asked, result)
    words = os.fsdecode(result.stdout).split("\0")
    for scope, origin, said in zip(words[::3], words[1::3], words[2::3], strict=False):
        if origin.startswith("file:"):
            key, _, value = said.partition("\n")
            place = os.path.join(repo.layout.top, origin.removeprefix("file:"))
            yield _Entry(scope, os.path.normpath(place), key, value)


def _is_conditional(key: str) -> bool:
    return key.startswith("includeif.") and key.endswith(".path")


def _resolve(value: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(value)))


def _places(layout: Layout) -> Iterator[str]:
    """Name the configuration files that may come to be."""
    yield os.path.join(layout.common_dir, "config")
    yield os.path.join(layout.git_dir, PER_TREE)
    if os.environ.get("GIT_CONFIG_GLOBAL"):
        yield os.path.join(layout.top, os.environ["GIT_CONFIG_GLOBAL"])
        return
    yield os.path.expanduser("~/.gitconfig")
    yield os.path.join(_home(), "config")


def _own_places(layout: Layout) -> Iterator[str]:
    yield os.path.join(layout.common_dir, "objects", "info", "alternates")
    yield os.path.join(_home(), "ignore")
    yield os.path.join(_home(), "attributes")
    yield from (os.path.join(folder, _COMMON) for folder in {layout.common_dir, layout.git_dir})
    if os.path.isfile(os.path.join(layout.top, ".git")):
        yield os.path.join(layout.top, ".git")


def of_others(layout: Layout) -> set[str]:
    """Name the files of other working trees that have a say there, and none here."""
    names = (PER_TREE, _COMMON, os.path.join("info", _SPARSE))
    return {os.path.join(other, name) for other in git_dirs(layout) for name in names}


def _home() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "git")


def _modules(layout: Layout) -> Iterator[str]:
    """List the git directories of absorbed submodules, nested ones included.

    A linked working tree has its own.
    """
    waiting = [os.path.join(folder, "modules") for folder in {layout.common_dir, layout.git_dir}]
    while waiting:
        here = waiting.pop()
        try:
            folders = [e.path for e in os.scandir(here) if e.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        if os.path.exists(os.path.join(here, "HEAD")):
            yield here
            folders = [f for f in folders if os.path.basename(f) == "modules"]
        waiting += folders


def _written(entry: _Entry) -> bytes:
    """Write an entry as a line of a configuration file; includes were followed already."""
    if entry.key == "include.path" or _is_conditional(entry.key):
        return b""
    section, _, name = entry.key.rpartition(".")
    head, dot, rest = section.partition(".")
    title = f'{head} "{_escaped(rest)}"' if dot else head
    value = _escaped(entry.value).replace("\n", "\\n").replace("\t", "\\t")
    return os.fsencode(f'[{title}]\n\t{name} = "{value}"\n')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
