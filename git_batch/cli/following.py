"""What a command says about how its batch goes on, in lines that can be pasted as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from git_batch.app.session import called
from git_batch.cli.output import out
from git_batch.views.addressing import addressed

if TYPE_CHECKING:
    from git_batch.app.session import Session
    from git_batch.core.model import BatchState


def go_on(session: Session, state: BatchState, *before: str) -> None:
    """Say which commands take a batch on.

    Args:
        before: what has to come before the batch is resumed.
    """
    name = called(session, state.batch_id)
    for command in (*before, "git batch resume"):
        out(f"go on: {addressed(command, name)}")
