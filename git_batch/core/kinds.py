"""Names of events in the record that matter to readers who never build an event.

Apart from `events` so that the hooks, which must start fast, need not import that.
"""

from __future__ import annotations

TREE_CHANGING: frozenset[str] = frozenset(
    {
        "created",
        "authorized",
        "interrupted",
        "review_requested",
        "reviewed",
        "settled",
        "committed",
        "unchanged",
        "parked",
        "decided",
        "closed",
    }
)
"""Kinds of events whose commit may have another tree than the event before it.

`interrupted` has one only when it takes back a settled tree (somebody else moved the branch).
"""
