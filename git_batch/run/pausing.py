"""The wait after a "not now": until a time, unless there is a reason not to wait any longer.

A person's signal, a wish to stop or a renewal ends it early; the loop then decides anew. It ends
by whichever clock is first there: the wall clock goes on while a laptop sleeps, the other can't be
set.
"""

from __future__ import annotations

import time
from datetime import timedelta

from git_batch.core.duration import format_duration
from git_batch.core.effects import StartAttempt
from git_batch.run.context import RunContext


class CutShort(Exception):  # noqa: N818 - what happened, not an error
    """What was to begin is left alone; the loop decides anew."""


LOOK = 2.0
"""Seconds between two looks at what others have appended to the record."""


def pause(context: RunContext, effect: StartAttempt) -> None:
    """Wait as long as an effect says.

    What was recorded is published before: it may take hours, and others shall see it.

    Raises:
        CutShort: there is a reason not to wait, or not to go on at all.
    """
    if not effect.pause:
        return
    context.journal.publish()
    until = context.now() + timedelta(seconds=effect.pause)
    context.tools.progress.note(
        f"'{effect.task}' says 'not now': waiting {format_duration(effect.pause)}, "
        f"until {until.isoformat(' ', 'seconds')}"
    )
    granted = context.state.authorization
    end = time.monotonic() + effect.pause
    while True:
        left = min(end - time.monotonic(), (until - context.now()).total_seconds())
        if left <= 0:
            return
        if context.tools.interrupt.wait(min(left, LOOK)):
            raise CutShort
        state = context.journal.refresh()
        if state.stop_requested or state.authorization != granted:
            raise CutShort
