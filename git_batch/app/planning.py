"""From a plan file to a plan that can be started here.

What validates a plan (pydantic and its models) takes longer to import than libgit2 and all that
runs the plan afterwards, and a run has no use for it. So `git batch start` reads ahead: a process
of its own reads the plan on another core while this one imports the rest.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

from msgspec import Struct

from git_batch.core import canonical
from git_batch.core.model import Plan
from git_batch.errors import BatchError, UsageError


class LoadedPlan(Struct, frozen=True):
    """A parsed plan, its digest, and the files that it was read from."""

    plan: Plan
    toml: bytes
    digest: str
    path: str
    files: tuple[str, ...]


ReadPlan = Callable[[], LoadedPlan]
"""Gives a plan, or raises what `load_plan` does."""


def plan_for(top: str, named: str | None) -> LoadedPlan:
    """Find and read a plan; errors as of `find_plan` and `load_plan`."""
    return load_plan(find_plan(top, named))


@contextmanager
def read_ahead(top: str, named: str | None) -> Iterator[ReadPlan]:
    """Have another process find and read a plan meanwhile; it is gone when the block ends.

    A process of several threads can't be copied safely: it reads when the plan is asked for, as
    does one that the system gives no other process.

    Yields:
        What waits for the answer; to be called once.
    """
    here = partial(plan_for, top, named)
    begun = _begin(here) if _has_one_thread() else None
    if begun is None:
        yield here
        return
    waiting, answer = [begun[0]], begun[1]

    def ahead() -> LoadedPlan:
        said = answer.read()
        _reap(waiting.pop())
        return _understood(said) or here()

    try:
        yield ahead
    finally:
        answer.close()
        for reading in waiting:  # nobody wants to know any more: it may wait for the end of a pipe
            with suppress(ProcessLookupError):
                os.kill(reading, signal.SIGKILL)
            _reap(reading)


def _has_one_thread() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:  # not Linux: those that Python knows of
        return threading.active_count() == 1


def _begin(read: ReadPlan) -> tuple[int, BinaryIO] | None:
    """Start the other process; give it and what it says, None if there can't be one."""
    reader, writer = os.pipe()
    try:
        reading = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return None
    if reading == 0:
        _answer(read, writer)
    os.close(writer)
    return reading, os.fdopen(reader, "rb")


def _answer(read: ReadPlan, writer: int) -> NoReturn:
    """Read a plan in a process of its own, say it or what is wrong with it, and end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the other one says that it was interrupted
        said: LoadedPlan | BatchError
        try:
            said = read()
        except BatchError as error:
            said = error
        with os.fdopen(writer, "wb") as file:
            pickle.dump(said, file, pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)


def _reap(reading: int) -> None:
    with suppress(ChildProcessError):  # whoever started us ignores SIGCHLD
        os.waitpid(reading, 0)


def _understood(answer: bytes) -> LoadedPlan | None:
    """Take an answer; None if the other process came to none (a bug, or it was killed)."""
    try:
        said = pickle.loads(answer)
    except (EOFError, pickle.UnpicklingError):
        return None
    if isinstance(said, BatchError):
        raise said
    assert isinstance(said, LoadedPlan)
    return said


def find_plan(top: str, named: str | None) -> str:
    """Say which file holds the plan: the one named, else `batch.toml`, else `.batch/*.toml`.

    Raises:
        UsageError: there is none, or more than one to choose from.
    """
    if named is not None:
        return named
    default = Path(top) / "batch.toml"
    if default.is_file():
        return str(default)
    found = sorted(str(p) for p in (Path(top) / ".batch").glob("*.toml"))
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError("which plan?", *(f"git batch start {_shown(p)}" for p in found))
    raise UsageError(
        "there is no plan: neither 'batch.toml' nor '.batch/*.toml' exists",
        "'git batch new' writes a commented one",
    )


def load_plan(path: str) -> LoadedPlan:
    """Read and check a plan file with its intent files.

    Raises:
        UsageError: the file can't be read.
        PlanError: it is not a plan.
    """
    from git_batch.core.planfile import parse_plan  # imports pydantic

    intents: list[str] = []

    def read_intent(name: str) -> bytes:
        place = Path(path).parent / name
        content = place.read_bytes()
        intents.append(str(place))
        return content

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"can't read the plan '{path}': {error.strerror or error}") from None
    plan = parse_plan(text, name=_shown(path), read_intent=read_intent)
    toml = canonical.to_toml(plan)
    return LoadedPlan(plan, toml, canonical.digest(toml), path, (path, *dict.fromkeys(intents)))


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
