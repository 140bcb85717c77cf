"""What a killed run may have to do with it that git can't read a repository.

A command may leave a configuration or a HEAD that git takes for none. If its run is killed then,
git starts nothing there, nor `git batch`: so nothing here asks git, and the program is named as it
is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from git_batch.core.naming import path_text, shell_path
from git_batch.errors import BatchError
from git_batch.repo import fencefile
from git_batch.repo.armed import killed_elsewhere, was_killed
from git_batch.repo.here import git_dir_above
from git_batch.repo.othertrees import shared_by_place
from git_batch.repo.repository import Layout, Repository

_PROGRAM = "git-batch"
_MAY_BE = "a run was killed {place} while a command ran, which may have done it"


def layout_above(start: str, environ: Mapping[str, str]) -> Layout | None:
    """Say where a repository has its files; whether git would work there is git's to say."""
    named = environ.get("GIT_DIR")
    git_dir = os.path.join(start, named) if named else git_dir_above(os.path.realpath(start))
    if git_dir is None:
        return None
    own = os.path.realpath(git_dir)
    return Layout(start, own, shared_by_place(own), "sha1")


def program(repo: Repository) -> str:
    """Say how we are started there: by git, if it can read the repository."""
    try:
        readable = not repo.git.call(["rev-parse", "--git-dir"]).status
    except BatchError:
        readable = False  # it would wait for ever
    return "git batch" if readable else _PROGRAM


def ways_out(start: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Say where a run was killed that may have left this, as hints; nothing if there is none."""
    layout = layout_above(start, environ)
    if layout is None:
        return
    if was_killed(layout):
        yield f"{_MAY_BE.format(place='here')}: {_PROGRAM} resume"
    for other in killed_elsewhere(layout):
        try:
            top = fencefile.load(other).layout.top
        except fencefile.UnusableError:
            continue  # nothing can be compared there
        may_be = _MAY_BE.format(place=f"in '{path_text(top)}'")
        yield f"{may_be}: cd {shell_path(top)} && {_PROGRAM} resume"
