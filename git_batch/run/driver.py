"""The one loop: decide, perform, record, evolve. Start and resume are the same loop.

It ends when there is nothing to do, or when a signal asked for it; then only what begins something
new is left undone. What was deferred is published in any case.
"""

from __future__ import annotations

from dataclasses import replace

from git_batch.core import effects as fx
from git_batch.core.events import Event
from git_batch.core.model import BatchState
from git_batch.run.context import RunContext
from git_batch.run.performer import Performer

_BEGINNINGS = (fx.Enroll, fx.StartAttempt)


def drive(context: RunContext) -> BatchState:
    """Drive a batch until it stops, and give the state in which it did.

    Raises:
        BatchError: the repository is not in a state to go on. What is recorded stays valid.
    """
    performer = Performer(context)
    journal, interrupt = context.journal, context.tools.interrupt
    try:
        while True:
            effect = context.machine.decide(journal.refresh())
            if isinstance(effect, fx.Finish):
                return journal.state
            if isinstance(effect, fx.Close) and _recorded(effect, journal.state):
                return replace(journal.state, status=effect.status)
            if interrupt.count and isinstance(effect, _BEGINNINGS):
                return journal.state
            event = performer.perform(effect)
            _record(context, performer, event)
    finally:
        journal.publish()


def _record(context: RunContext, performer: Performer, event: Event) -> None:
    state = context.journal.append(event)
    performer.after(event)
    context.tools.progress.event(event, state)


def _recorded(effect: fx.Close, state: BatchState) -> bool:
    """Tell whether the record's newest event is this very end already: nothing is to be said."""
    return (effect.stop, effect.reason) == (state.stop, state.reason)
