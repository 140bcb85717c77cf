"""What was changed inside submodules, which no commit of this repository can hold.

A commit here holds which commit a submodule is at, so a scan sees it once its HEAD moves. What lies
in its files beside that belongs to the submodule's own repository: it can't be kept as an attempt
nor be put back from here. So it is only found and named, by one look at the submodules' folders. A
repository without submodules is asked once whether it has any, and nothing else.
"""

from __future__ import annotations

from git_batch.repo.repository import Repository
from git_batch.repo.status import ALL_SUBMODULES, STATUS, parse

_GITLINK = b"160000 "

INSIDE = "there are changes inside these submodules, which no commit here can hold"


class Submodules:
    """The submodules of one run: a task can't add one, as a new nested repository is refused."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._paths: list[bytes] | None = None

    def changed_inside(self, index: str | None = None) -> list[bytes]:
        """List the submodules that hold more than their HEAD, ignored files aside.

        Args:
            index: the index file that names them; the person's if there is none.

        Raises:
            GitError: git failed.
        """
        if self._paths is None:
            self._paths = listed(self._repo)
        if not self._paths:
            return []
        env = {} if index is None else {"GIT_INDEX_FILE": index}
        output = self._repo.git.run([*STATUS, ALL_SUBMODULES, "--", *self._paths], env=env)
        return [e.path for e in parse(output) if e.changed_inside]


def listed(repo: Repository) -> list[bytes]:
    """List the submodules that the person's index knows, by their paths."""
    output = repo.git.run(["ls-files", "--stage", "-z"])
    if _GITLINK not in output:
        return []
    lines = output.split(b"\0")
    return [line.split(b"\t", 1)[1] for line in lines if line.startswith(_GITLINK)]
