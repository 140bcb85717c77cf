"""The one loop: decide, perform, record, evolve. Start and resume are the same loop.

It ends when there is nothing to do, or when a signal asked for it; then only what begins something
new is left undone. What was deferred is published in any case.

A task's end is told when it is on disk: not before what records it is published. That comes with
the next task's beginning at once, so it costs nothing.

This is also the boundary at which what fails *us* (a full disk, git, an unreadable scratch file)
becomes one kind of error: nothing was told that is not recorded, and resume goes on from there.
"""

from __future__ import annotations

import gc

from git_batch.core import effects as fx
from git_batch.core.events import BecameUnchanged, Closed, Committed, Event
from git_batch.core.model import BatchState
from git_batch.core.values import replace
from git_batch.errors import GitError, MachineError
from git_batch.run.context import RunContext
from git_batch.run.pausing import CutShort
from git_batch.run.performer import Performer

_BEGINNINGS = (fx.Enroll, fx.StartAttempt)
_PROMISES = (Committed, BecameUnchanged)
"""Events that say what no power cut may take back; published with the next one."""


def drive(context: RunContext) -> BatchState:
    """Drive a batch until it stops, and give the state in which it did.

    Raises:
        PreconditionError: the repository is not in a state to go on.
        MachineError: something failed that is no task's fault. What is recorded stays valid.
    """
    # What is here by now stays: the collector need not look at it again and again.
    gc.freeze()
    gc.enable()
    try:
        return _loop(context)
    except GitError as error:
        raise MachineError(error.message, *error.hints) from error
    except OSError as error:
        raise MachineError.of(error) from error


def _loop(context: RunContext) -> BatchState:
    performer, teller = Performer(context), _Teller(context)
    journal, interrupt = context.journal, context.tools.interrupt
    try:
        while True:
            effect = context.machine.decide(journal.refresh())
            if isinstance(effect, fx.Finish):
                return journal.state
            if interrupt.count and isinstance(effect, _BEGINNINGS):
                return journal.state
            try:
                event = performer.perform(effect)
            except CutShort:
                continue
            if isinstance(event, Closed) and _recorded(event, journal.state):
                return replace(journal.state, status=event.status)
            state = journal.append(event)
            performer.after(event)
            teller.tell(event, state)
    finally:
        try:
            journal.publish()
            teller.tell_all()
        finally:
            performer.close()


class _Teller:
    """Tells events in their order, and what is a promise when it can be kept."""

    def __init__(self, context: RunContext) -> None:
        self._journal, self._progress = context.journal, context.tools.progress
        self._held: list[tuple[Event, BatchState]] = []

    def tell(self, event: Event, state: BatchState) -> None:
        """Tell an event, or hold it back until its promise is on disk."""
        self._held.append((event, state))
        promised = any(isinstance(held, _PROMISES) for held, _ in self._held)
        if not promised or self._journal.published:
            self.tell_all()

    def tell_all(self) -> None:
        """Tell what was held back: it is on disk."""
        held, self._held = self._held, []
        for event, state in held:
            self._progress.event(event, state)


def _recorded(end: Closed, state: BatchState) -> bool:
    """Tell whether the record's newest event is this very end already: nothing is to be said."""
    return (end.stop, end.reason) == (state.stop, state.reason)
