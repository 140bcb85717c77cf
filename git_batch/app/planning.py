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
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

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


def read_ahead(top: str, named: str | None) -> ReadPlan:
    """Begin to find and read a plan in another process; what comes back waits for its answer.

    A process of several threads can't be copied safely: it reads when the plan is asked for, as
    does one that the system gives no other process.
    """
    here = partial(plan_for, top, named)
    if not _has_one_thread():
        return here
    reader, writer = os.pipe()
    try:
        reading = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return here
    if reading == 0:
        _answer(here, writer)
    os.close(writer)
    return lambda: _answered(reading, reader) or here()


def _has_one_thread() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:  # not Linux: those that Python knows of
        return threading.active_count() == 1


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


def _answered(reading: int, reader: int) -> LoadedPlan | None:
    """Wait for the plan; None if the other process came to no answer (a bug, or it was killed)."""
    try:
        with os.fdopen(reader, "rb") as file:
            answer = file.read()
    except BaseException:  # interrupted: it may wait for the end of a pipe
        os.kill(reading, signal.SIGKILL)
        raise
    finally:
        with suppress(ChildProcessError):  # whoever started us ignores SIGCHLD
            os.waitpid(reading, 0)
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
