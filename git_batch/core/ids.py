"""Names of things, as types of their own, and what such a name may look like.

The batch id is lower case because some file systems fold case; a task's id is part of a ref's name
and of a file's, so it is held to what both allow everywhere.
"""

from __future__ import annotations

import re
from typing import NewType

BatchId = NewType("BatchId", str)


TaskId = NewType("TaskId", str)


Oid = NewType("Oid", str)


SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,47}\Z")


TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


BATCH_ID = re.compile(r"([a-z0-9][a-z0-9-]{0,47})-([a-z0-9]{6})\Z")


OID = re.compile(r"[0-9a-f]{40}\Z")


RESERVED_SLUGS = frozenset({"remotes", "claims"})


def slug_of(batch: BatchId) -> str:
    """Give the slug that a batch's id begins with."""
    return batch.rpartition("-")[0]
