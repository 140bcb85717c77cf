"""Hooks are put in place, taken out and looked at; what they ask is answered in `answering`."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from git_batch.app import aftermath, elsewhere
from git_batch.errors import PreconditionError
from git_batch.hooks import install, managed
from git_batch.hooks.install import Found, Put
from git_batch.repo.hookdir import HookHost, HookPlace
from git_batch.repo.repository import Repository

_ALL = (*install.CLIENT, *install.SERVER)
_BY_HAND = 'have your hook there run: git batch hooks run pre-push "$@"'


class HookState(Struct, frozen=True):
    """Whether git runs one of our hooks, found out by asking it; `reason` says why not."""

    name: str
    active: bool
    reason: str = ""


class Standing(Struct, frozen=True):
    """Where git looks for hooks, and how each of ours stands."""

    place: HookPlace
    hooks: tuple[HookState, ...]


def put_in(start: str = ".", *, server: bool = False) -> tuple[Standing, dict[str, Put]]:
    """Install the hooks beside what is there; doing it again changes nothing.

    Raises:
        PreconditionError: the place is not ours to change; with what to do instead.
    """
    host = _host(start)
    place = host.place()
    _refuse(place)
    done = install.install(Path(place.directory), _names(host, server))
    return _standing(host, place, _names(host, server)), done


def take_out(start: str = ".") -> tuple[HookPlace, dict[str, Put]]:
    """Take out what was installed, also where git does not look any more."""
    place = HookHost(start).place()
    done: dict[str, Put] = {}
    for directory in dict.fromkeys((place.default, place.directory)):
        if Path(directory).is_dir():
            for name, what in install.uninstall(Path(directory), _ALL).items():
                if what in (Put.REMOVED, Put.RESTORED) or name not in done:
                    done[name] = what
    return place, {n: what for n, what in done.items() if what is not Put.ABSENT}


def look(start: str = ".", *, server: bool = False) -> Standing:
    """Say whether each hook is active; nothing is written."""
    host = _host(start)
    return _standing(host, host.place(), _names(host, server))


def _host(start: str) -> HookHost:
    """Open the repository; whether a hook is ours is asked by having git run it.

    Raises:
        PreconditionError: it might be what a killed run's task planted.
    """
    host = HookHost(start)
    if host.bare:
        elsewhere.refuse_in_bare(host.top)
    else:
        aftermath.refuse_unless_live(Repository.open(start))
    return host


def _names(host: HookHost, server: bool) -> tuple[str, ...]:
    return install.SERVER if server or host.bare else install.CLIENT


def _standing(host: HookHost, place: HookPlace, names: tuple[str, ...]) -> Standing:
    return Standing(place, tuple(_state(host, place, name) for name in names))


def _state(host: HookHost, place: HookPlace, name: str) -> HookState:
    path = Path(place.directory, name)
    here = install.found(path)
    if here is Found.OURS and os.access(path, os.X_OK):
        if host.answers(name):
            return HookState(name, True)
        why = "it is installed, but does not find git-batch, or git can't run it"
        return HookState(name, False, why)
    if host.configured(name):
        return HookState(name, True, "by 'hook.<name>.command' of git's configuration")
    if here is Found.OURS:
        return HookState(name, False, f"'{path}' is not executable, so git ignores it")
    if here is Found.FOREIGN:
        by = managed.calling(path, Path(host.top), name)
        if by is not None:
            return HookState(name, True, f"called by {by}")
    return HookState(name, False, _why_not(place, name, here))


def _why_not(place: HookPlace, name: str, here: Found) -> str:
    misplaced = install.found(Path(place.default, name)) is Found.OURS
    if place.configured is not None and (misplaced or not Path(place.directory).is_dir()):
        missing = "" if Path(place.directory).is_dir() else f", which {_no_directory(place)}"
        lead = f"it is installed in '{place.default}', but " if misplaced else ""
        return f"{lead}core.hooksPath ({place.scope}) has git look in '{place.configured}'{missing}"
    if here is Found.FOREIGN:
        return f"'{Path(place.directory, name)}' is another hook that does not call it"
    return "not installed"


def _no_directory(place: HookPlace) -> str:
    return "is no directory" if Path(place.directory).exists() else "does not exist"


def _refuse(place: HookPlace) -> None:
    """See that hooks can be put where git looks for them."""
    said = f"core.hooksPath ({place.scope}) has git look for hooks in '{place.configured}'"
    if not place.of_this_repository:
        raise PreconditionError(
            f"{said}, which serves other repositories too", _BY_HAND, "see 'Hooks' in the README"
        )
    if not Path(place.directory).is_dir() and place.configured is not None:
        raise PreconditionError(
            f"{said}, which {_no_directory(place)}, so git runs no hook at all",
            "let the tool that set it make it (husky: npm install), or unset it: "
            "git config --unset core.hooksPath",
        )
    if place.tracked:
        raise PreconditionError(
            f"{said}, whose files belong to the working tree", _BY_HAND, "see 'Hooks' in the README"
        )
