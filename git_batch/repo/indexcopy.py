"""A copy of an index that is there as a whole or not at all, whatever ends the run.

The next run compares the person's index with the copy that the one before it made. Half a copy
(a kill), or one without its content (a power cut), must not be taken for what it says: git would
refuse to read it, in every run from then on, or find marks of the person's own to be new.
"""

from __future__ import annotations

import hashlib
import os

from git_batch.repo.index import copy, discard
from git_batch.repo.wholefile import read

_BEGINS = b"DIRC"
_SUM = 20


def copy_whole(source: str, target: str) -> None:
    """Put a copy of an index, if there is one, in the place of an earlier one."""
    new = target + ".new"
    discard(target, new)
    if copy(source, new):
        os.rename(new, target)


def is_whole(path: str) -> bool:
    """Tell whether there is an index that has the checksum which it ends with, or says none."""
    try:
        content = read(path)
    except FileNotFoundError:
        return False
    said = content[-_SUM:]
    if said == bytes(_SUM):  # `index.skipHash`
        return content.startswith(_BEGINS)
    return said == hashlib.sha1(content[:-_SUM], usedforsecurity=False).digest()
