"""What was changed inside submodules, which no commit of this repository can hold.

A commit here holds which commit a submodule is at, so a scan sees it once its HEAD moves. What lies
in its files beside that belongs to the submodule's own repository: it can't be kept as an attempt
nor be put back from here. So it is only found and named, by one look at the submodules' folders. A
repository without submodules is looked at once, and nothing else: its index file shows that there
are none.
"""

from __future__ import annotations

from git_batch.repo import indexfile
from git_batch.repo.repository import Repository
from git_batch.repo.status import ALL_SUBMODULES, STATUS, parse

_MODE = b"160000 "

INSIDE = "there are changes inside these submodules, which no commit here can hold"


def listed(repo: Repository) -> tuple[bytes, ...]:
    """List the submodules that the person's index knows, by their paths.

    Raises:
        GitError: git can't read the index.
    """
    if not indexfile.may_hold_submodules(repo.layout.index):
        return ()
    lines = repo.git.run(["ls-files", "--stage", "-z"]).split(b"\0")
    return tuple(line.split(b"\t", 1)[1] for line in lines if line.startswith(_MODE))


def changed_inside(repo: Repository, index: str | None = None) -> list[bytes]:
    """List the submodules that hold more than their HEAD, ignored files aside.

    Args:
        index: the index file that names them; the person's if there is none.

    Raises:
        GitError: git failed.
    """
    if not repo.submodules:
        return []
    env = {} if index is None else {"GIT_INDEX_FILE": index}
    output = repo.git.run([*STATUS, ALL_SUBMODULES, "--", *repo.submodules], env=env)
    return [entry.path for entry in parse(output) if entry.changed_inside]
