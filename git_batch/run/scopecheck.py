"""Does a change stay where its task may be: tree against tree, never path lists from git.

A path is stray when the scope does not match it, on whichever side of the change it is. `protect`
wins over the scope. A new nested repository (a submodule entry that was not there) is refused
everywhere: its content is not in the commit, so a clean clone would miss it. Symbolic links in
scope are allowed: a link is content, and nothing here follows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from git_batch.core.attempt import Failure
from git_batch.core.model import Task
from git_batch.core.naming import few, few_lines, path_text
from git_batch.core.planscopes import NESTED, OUTSIDE, PROTECTED, Bounds, stray
from git_batch.core.standing import Outcome
from git_batch.repo.trees import Change

_LISTED = 50
_REASONS = (
    (OUTSIDE, Outcome.SCOPE_REFUSED),
    (NESTED, Outcome.SCOPE_REFUSED),
    (PROTECTED, Outcome.PROTECTED_CHANGED),
)


def refuse(task: Task, changes: Sequence[Change]) -> Failure | None:
    """Say which paths of a change the task may not touch; None if there are none."""
    paths = [(c.path, c.is_nested) for c in changes]
    why = dict(stray(Bounds(task.scope, task.protect), paths))
    for reason, outcome in _REASONS:
        found = [c for c in changes if why.get(c.path) == reason]
        if found:
            return _failure(outcome, reason, found)
    return None


def _failure(outcome: Outcome, why: str, changes: Sequence[Change]) -> Failure:
    names = [path_text(c.path) for c in changes]
    lines = [f"{c.kind}: {path_text(c.path)}" for c in changes]
    listing = few_lines(lines, _LISTED, indent="")
    return Failure(outcome, f"changed {few(names)}: {why}", f"These paths are {why}:\n\n{listing}")
