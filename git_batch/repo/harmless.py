"""Which changes of a watched file let git run nothing, so that they are no business of the fence.

* Only `branch.*` of a configuration differs: editors and git itself write there whenever a branch
  comes up, and no key of it runs anything.
* A submodule went: git runs nothing in it then; whether it may go is for the scope.
* A person removed another working tree, or works there with a part of the files.
"""

from __future__ import annotations

import os
import tempfile

from git_batch.repo.known import ABSENT, Known
from git_batch.repo.libgit2 import pygit2
from git_batch.repo.repository import Repository
from git_batch.repo.surveying import PER_TREE, Survey

_IDLE: tuple[str, ...] = ("branch.",)
_SPARSE = ("core.sparsecheckout", "index.sparse")
"""What starts the keys that let git run nothing; the latter for other working trees."""


def is_harmless(repo: Repository, survey: Survey, path: str, known: Known, now: Known) -> bool:
    """Say whether a change from what was `known` to what is `now` is such a one."""
    if now.kind == ABSENT.kind and _went(repo, survey, path):
        return True
    idle, kinds = _IDLE, {known.kind, now.kind}
    if _is_of_another_tree(repo, survey, path):
        idle, kinds = (*_IDLE, *_SPARSE), kinds - {ABSENT.kind}
    if path not in survey.config or kinds != {"file"}:
        return False
    was, here = (b"" if state.kind == ABSENT.kind else state.data for state in (known, now))
    if was is None or here is None:
        return False
    return _entries(repo, was, idle) == _entries(repo, here, idle) is not None


def _went(repo: Repository, survey: Survey, path: str) -> bool:
    """Tell whether what is absent went with what it was of."""
    own = os.path.join(repo.layout.top, ".git")
    if os.path.basename(path) == ".git" and path != own:
        return True
    folder = os.path.dirname(path)
    return os.path.dirname(folder) == survey.worktrees and not os.path.lexists(folder)


def _is_of_another_tree(repo: Repository, survey: Survey, path: str) -> bool:
    folder = os.path.dirname(path)
    its = folder == repo.layout.common_dir or os.path.dirname(folder) == survey.worktrees
    return its and folder != repo.layout.git_dir and os.path.basename(path) == PER_TREE


def _entries(
    repo: Repository, text: bytes, idle: tuple[str, ...]
) -> list[tuple[str, str | None]] | None:
    with tempfile.NamedTemporaryFile(dir=repo.scratch, suffix=".config") as file:
        file.write(text)
        file.flush()
        try:
            found = [(entry.name, entry.value) for entry in pygit2.Config(file.name)]
        except (pygit2.GitError, ValueError, OSError):
            return None
    return [entry for entry in found if not entry[0].startswith(idle)]
