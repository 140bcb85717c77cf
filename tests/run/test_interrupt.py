"""Signals to the runner, its callback, and what it raises: nothing stays alive."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from git_batch.run.process import Ended, How, Interrupt
from tests.run.supervised import Runner, is_alive, linux, signals_at

if TYPE_CHECKING:
    pass


# Interrupts and callbacks


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt(runner: Runner, signum: signal.Signals) -> None:
    with runner.interrupt.install(), signals_at((0.1, signum)):
        ended = runner.child("fork-and-hang")
    assert (ended.how, ended.signal) == (How.INTERRUPTED, signal.SIGTERM)
    assert (runner.interrupt.signum, runner.interrupt.count) == (signum, 1)
    assert ended.seconds < 1, "the wait wasn't woken"
    assert not is_alive(int(runner.output()))


def test_second_interrupt_kills_at_once(runner: Runner) -> None:
    plan = (0.15, signal.SIGINT), (0.15, signal.SIGTERM)
    with runner.interrupt.install(), signals_at(*plan):
        ended = runner.child("ignore-term", grace=30)
    assert (ended.how, ended.signal) == (How.INTERRUPTED, signal.SIGKILL)
    assert (runner.interrupt.signum, runner.interrupt.count) == (signal.SIGINT, 2)
    assert ended.seconds < 2


def test_one_interrupt_leaves_the_grace_time(runner: Runner) -> None:
    with runner.interrupt.install(), signals_at((0.1, signal.SIGINT)):
        ended = runner.child("ignore-term", grace=0.3)
    assert (ended.how, ended.signal) == (How.INTERRUPTED, signal.SIGKILL)
    assert ended.seconds >= 0.4


def test_the_same_wish_twice_is_one(runner: Runner) -> None:
    plan = (0.1, signal.SIGHUP), (0.01, signal.SIGTERM)
    with runner.interrupt.install(), signals_at(*plan):
        ended = runner.child("polite")
    assert (ended.how, ended.status, runner.interrupt.count) == (How.INTERRUPTED, 0, 1)


@linux
def test_interrupt_while_leftovers_are_ended(runner: Runner) -> None:
    plan = (0.4, signal.SIGINT), (0.2, signal.SIGINT)
    start = time.monotonic()
    with runner.interrupt.install(), signals_at(*plan):
        ended = runner.child("leave-stubborn")
    assert (ended.how, ended.status) == (How.EXITED, 0)
    assert time.monotonic() - start < 1.5
    assert runner.interrupt.count == 2


def test_nothing_is_started_after_an_interrupt(runner: Runner) -> None:
    with runner.interrupt.install():
        os.kill(os.getpid(), signal.SIGINT)
        ended = runner("sh", "-c", "echo never")
        assert ended == Ended(How.INTERRUPTED)
        assert not runner.log.exists()
        runner.interrupt.reset()
        assert runner.child("succeed").status == 0


def test_handlers_are_restored() -> None:
    def mine(*_: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with Interrupt().install() as interrupt:
            os.kill(os.getpid(), signal.SIGTERM)
            assert interrupt.count == 1
        assert signal.getsignal(signal.SIGTERM) is mine
        assert interrupt.fileno() == -1
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt().install() as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupt.count == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_on_slow_is_called_once_for_a_slow_one(runner: Runner) -> None:
    calls: list[float] = []
    runner.on_slow = lambda: calls.append(time.monotonic())
    runner.child("succeed")
    assert not calls
    start = time.monotonic()
    runner.child("chatter", "5")
    assert len(calls) == 1
    assert 0.2 <= calls[0] - start < 0.4


@linux
def test_exception_leaves_nothing_alive(runner: Runner) -> None:
    def fail() -> None:
        raise RuntimeError("the record is gone")

    runner.on_slow = fail
    with pytest.raises(RuntimeError, match="the record is gone"):
        runner("sh", "-c", "setsid sleep 600 & echo $!; trap '' TERM; sleep 600; sleep 600")
    assert not is_alive(int(runner.output()))


@linux
def test_keyboard_interrupt_leaves_nothing_alive(runner: Runner) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with signals_at((0.2, signal.SIGINT)), pytest.raises(KeyboardInterrupt):
            runner.child("fork-and-hang")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not is_alive(int(runner.output()))
