"""What a command says about how its batch goes on, in lines that can be pasted as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from git_batch.app.session import called
from git_batch.cli.output import out
from git_batch.core.actions import way_on
from git_batch.views.addressing import addressed
from git_batch.views.common import names

if TYPE_CHECKING:
    from git_batch.app.session import Session
    from git_batch.core.model import BatchState


def were(tasks: Sequence[str]) -> str:
    """Name the tasks that something was done to, up to the verb."""
    return f"{names(tasks)} {'was' if len(tasks) == 1 else 'were'}"


def go_on(session: Session, state: BatchState, *before: str) -> None:
    """Say which commands take a batch on.

    Args:
        before: what has to come before the batch is resumed.
    """
    name = called(session, state.batch_id)
    for command in (*before, way_on(state, None)):
        out(f"go on: {addressed(command, name)}")
