"""A cheap proof that nothing in a working tree has changed since it was scanned.

libgit2 compares the files with the private index in process: a tenth of what a git process costs
in a small repository, and most checks leave everything alone. It may err on the safe side only:
whatever it finds is looked at again by git, whose word counts (filters that libgit2 does not run,
ignore rules from a place that it does not read, sparse checkouts). What it does not find is proven
by the same stat data that git goes by, and finer: nanoseconds, with the same rule for files as
young as the index. Above a few thousand files git's threads are faster, so it is asked at once.
"""

from __future__ import annotations

from typing import Any, cast

from git_batch.repo.libgit2 import DiffOption, pygit2
from git_batch.repo.patience import not_for_ever

_ANY = DiffOption.INCLUDE_UNTRACKED | DiffOption.INCLUDE_TYPECHANGE | DiffOption.INCLUDE_UNREADABLE


def is_untouched(repository: pygit2.Repository, index: str) -> bool:
    """Say whether no file differs from its entry in an index file and none is new.

    Returns:
        False where there is any doubt: then git has to be asked.
    """
    try:
        entries = pygit2.Index(index)
        # pygit2 compares only the index that a repository was opened with; libgit2 takes any.
        cast(Any, entries)._repo = repository
        with not_for_ever():
            return len(entries.diff_to_workdir(_ANY)) == 0
    except (pygit2.GitError, OSError, KeyError):
        return False
