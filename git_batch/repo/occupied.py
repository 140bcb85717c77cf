"""What is in the way of another commit's files, in a working tree that is clean.

Whatever lies where such a file belongs and is not tracked is a person's, ignored or not; they are
told of it while nothing has happened yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from git_batch.core.ids import Oid
from git_batch.repo.index import parents
from git_batch.repo.repository import Repository
from git_batch.repo.trees import diff


def occupied(repo: Repository, old: Oid, new: Oid) -> list[bytes]:
    """List the paths that stand in the way of going from one commit's tree to another's.

    Args:
        old: the tree that the working tree is as; `new` the one that it is to be as.
    """
    changes = diff(repo.objects, old, new)
    going = frozenset(change.path for change in changes if not change.new_mode)
    top = os.fsencode(repo.layout.top)
    made = (change.path for change in changes if not change.old_mode)
    return list(dict.fromkeys(p for path in made for p in _in_the_way(top, path, going)))


def _in_the_way(top: bytes, path: bytes, going: frozenset[bytes]) -> Iterator[bytes]:
    for part in (*sorted(parents(path)), path):
        place = os.path.join(top, part)
        if part in going or not os.path.lexists(place):
            return  # what is tracked there goes away
        folder = os.path.isdir(place) and not os.path.islink(place)
        if folder and part == path:
            yield from (file for file in _files(top, part) if file not in going)
        elif not folder:
            yield part
            return


def _files(top: bytes, folder: bytes) -> Iterator[bytes]:
    for here, folders, files in os.walk(os.path.join(top, folder)):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        yield from (os.path.relpath(os.path.join(here, name), top) for name in (*files, *links))
