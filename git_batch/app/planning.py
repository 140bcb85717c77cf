"""From a plan file to a plan that can be started here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from git_batch.app.reader import START
from git_batch.core import canonical
from git_batch.core.model import Plan
from git_batch.errors import UsageError
from git_batch.repo.environment import variables


class LoadedPlan(Struct, frozen=True):
    """A parsed plan, its digest, and the files that it was read from."""

    plan: Plan
    toml: bytes
    digest: str
    path: str
    files: tuple[str, ...]


def plan_for(top: str, named: str | None, command: str = START) -> LoadedPlan:
    """Find and read a plan; arguments and errors as of `find_plan` and `load_plan`."""
    return load_plan(find_plan(top, named, command))


def find_plan(top: str, named: str | None, command: str = START) -> str:
    """Say which file holds the plan: the one named, else `batch.toml`, else `.batch/*.toml`.

    Args:
        command: what asks, and takes a file.

    Raises:
        UsageError: there is none, or more than one to choose from.
    """
    if named is not None:
        return named
    found = _plans(top)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError("which plan?", *(f"{command} {shlex.quote(_shown(p))}" for p in found))
    raise UsageError(
        "there is no plan: neither 'batch.toml' nor '.batch/*.toml' exists",
        "'git batch new' writes a commented one",
    )


def _plans(top: str) -> list[str]:
    """List the files that may be meant where none is named."""
    default = Path(top) / "batch.toml"
    if default.is_file():
        return [str(default)]
    return sorted(str(p) for p in (Path(top) / ".batch").glob("*.toml"))


def first_step(top: str) -> str:
    """Give the command that a first batch begins with: a plan may be there already."""
    return START if _plans(top) else "git batch new"


def parser() -> Callable[..., Plan]:
    """Import what parses a plan: pydantic above all, without the plugins that others installed.

    To look for some takes it a twentieth of the time, and none has any business with a plan.
    """
    with variables({"PYDANTIC_DISABLE_PLUGINS": "__all__"}):
        from git_batch.core.planfile import parse_plan
    return parse_plan


def load_plan(path: str) -> LoadedPlan:
    """Read and check a plan file with its intent files.

    Raises:
        UsageError: the file can't be read.
        PlanError: it is not a plan.
    """
    parse_plan = parser()
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
