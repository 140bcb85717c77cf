"""What the fence knows, on disk as well: for whoever takes up a run that was killed.

Four files in our scratch directory, written for this working tree; a run that was killed there is
looked at from the others, too (`app/elsewhere`):

* `fence.state`: every watched path as it was noted (`known`), what is watched (`surveying`) and
  where. Written only when it is not what was written last, as a new file that is renamed in, and
  removed when the run ends.
* `fence.armed`: a command is running, or has run, that nothing was compared after: whose it is. It
  is there from before the command until the comparison is over. Without it nothing is to be
  compared: whatever a person edits between two runs, or two tasks, is theirs.
* `fence.refs`: the person's branches, tags and the like; written when one of them moved.
* `fence.found`: the attempt that was killed, and what was put right before the run that goes on,
  until that has recorded it.

A SIGKILL leaves what was written in the page cache, so nothing is synced. After a power cut any of
them may be missing, empty or torn: the state carries its digest and is then not used, and git may
run what a task planted, as if nothing had been noted. The same holds for a task that knows these
files and removes or forges them before its run is killed: whoever can write here as the person can
is not held back by a file.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeVar

from msgspec import Struct, to_builtins

from git_batch.core.codec import CodecError, decode
from git_batch.repo.armed import ARMED, is_armed
from git_batch.repo.indexfile import discard
from git_batch.repo.known import Known
from git_batch.repo.reflist import Signature, signature
from git_batch.repo.repository import Layout
from git_batch.repo.surveying import Survey
from git_batch.repo.wholefile import UNFOLLOWED, read

_STATE, _REFS, _FOUND = "fence.state", "fence.refs", "fence.found"
FILES = (_STATE, ARMED, _REFS, _FOUND)
"""Names of the files, in our scratch directory of a working tree."""
_NEW = ".new"
_MAGIC = b"git-batch fence "
_VERSION = b"1"
_MOST = 1 << 30

T = TypeVar("T")


class UnusableError(Exception):
    """What was noted is missing, not whole, of another version, or of another place."""


class Armed(Struct, frozen=True):
    """Whose command it is; all of it empty if that was not written to its end.

    Attributes:
        untracked: paths that a person accepted as untracked, so that none may be staged.
    """

    batch: str = ""
    task: str = ""
    attempt: int = 0
    runner: str = ""
    branch: str = ""
    scope: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


class Found(Struct, frozen=True):
    """What was put right before a run, for the reason of the attempt that was killed."""

    batch: str
    task: str
    attempt: int
    said: str = ""


class Standing(Struct, frozen=True):
    """How things stood before a command: what is watched, and each path as it was."""

    layout: Layout
    survey: Survey
    known: Mapping[str, Known]


class _Entry(Struct, frozen=True, omit_defaults=True):
    path: str
    kind: str
    mode: int
    digest: str
    data: str | None = None


class _Written(Struct, frozen=True):
    layout: Layout
    files: tuple[str, ...]
    config: tuple[str, ...]
    folders: tuple[str, ...]
    worktrees: str
    personal: str
    known: tuple[_Entry, ...]


class _Refs(Struct, frozen=True):
    values: dict[str, str]


class FenceFile:
    """The files of one run, which is their only writer."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._written: Standing | None = None
        self._signature: Signature | None = None

    def save(self, survey: Survey, known: Mapping[str, Known]) -> None:
        """Write how things stand, unless that is what stands there."""
        old = self._written
        if old is not None and old.survey is survey and _equal(old.known, known):
            with contextlib.suppress(FileNotFoundError):
                if signature(os.lstat(_place(self._layout, _STATE))) == self._signature:
                    return
        standing = Standing(self._layout, survey, known)
        self._signature = _replace(_place(self._layout, _STATE), _text(standing))
        self._written = standing

    def save_refs(self, values: Mapping[str, str]) -> None:
        """Write the values of refs."""
        _replace(_place(self._layout, _REFS), _sealed(json.dumps(dict(values)).encode()))

    def arm(self, armed: Armed) -> None:
        """Say, before a command is started, whose it is."""
        _write(_place(self._layout, ARMED), json.dumps(to_builtins(armed)).encode())

    def disarm(self) -> None:
        """Say that what the command left was compared."""
        discard(_place(self._layout, ARMED))

    def lower(self) -> None:
        """Remove what an orderly end has no use for; a command not compared after stays known."""
        found = _place(self._layout, _FOUND)
        discard(found, found + _NEW)
        if not is_armed(self._layout):
            settle(self._layout)


def armed(layout: Layout) -> Armed | None:
    """Say whose command was started here that nothing was compared after; None for nobody's."""
    if not is_armed(layout):
        return None
    return _parsed(Armed, _place(layout, ARMED)) or Armed()


def settle(layout: Layout) -> None:
    """Forget how things stood: they were compared, or a person has decided.

    The refs stay for the run that goes on with the attempt that was killed, if there is one.
    """
    state, refs = _place(layout, _STATE), _place(layout, _REFS)
    discard(_place(layout, ARMED), state, state + _NEW, refs + _NEW)
    if not os.path.lexists(_place(layout, _FOUND)):
        discard(refs)


def tell(layout: Layout, found: Found) -> None:
    """Leave what was found and put right for the run that goes on."""
    _replace(_place(layout, _FOUND), json.dumps(to_builtins(found)).encode())


def told(layout: Layout) -> Found | None:
    """Read what `tell` left."""
    return _parsed(Found, _place(layout, _FOUND))


def load(layout: Layout) -> Standing:
    """Read how things stood.

    Args:
        layout: only its git directory counts; the rest is what the files there say.

    Raises:
        UnusableError: there is nothing that could be relied on.
    """
    table = _opened(_place(layout, _STATE))
    try:
        standing = _standing(decode(_Written, table))
    except (ValueError, CodecError, binascii.Error) as error:
        raise UnusableError(f"it can't be read: {error}") from None
    try:
        here = os.path.samefile(standing.layout.git_dir, layout.git_dir)
    except OSError:
        here = False
    if not here:
        raise UnusableError(f"it was written for '{standing.layout.git_dir}'")
    return standing


def load_refs(layout: Layout) -> dict[str, str]:
    """Read the values of refs; none if they can't be relied on: they are only told."""
    try:
        return decode(_Refs, {"values": _opened(_place(layout, _REFS))}).values
    except (UnusableError, CodecError):
        return {}


def _sealed(body: bytes) -> bytes:
    return b"%s%s %s\n%s" % (_MAGIC, _VERSION, sha256(body).hexdigest().encode(), body)


def _opened(path: str) -> Any:
    data = _content(path)
    if data is None:
        raise UnusableError("it is missing")
    head, _, body = data.partition(b"\n")
    version, _, digest = head.removeprefix(_MAGIC).partition(b" ")
    if not head.startswith(_MAGIC) or not digest:
        raise UnusableError("it is no such file")
    if version != _VERSION:
        raise UnusableError("another version of git-batch wrote it")
    if digest != sha256(body).hexdigest().encode():
        raise UnusableError("it is not whole")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnusableError(f"it can't be read: {error}") from None


def _equal(old: Mapping[str, Known], new: Mapping[str, Known]) -> bool:
    """Compare all that is written; most states are the very same object."""
    return len(old) == len(new) and all(
        (was := old.get(path)) is now
        or (
            was is not None and (was.kind, was.mode, was.digest) == (now.kind, now.mode, now.digest)
        )
        for path, now in new.items()
    )


def _text(standing: Standing) -> bytes:
    survey = standing.survey
    written = _Written(
        layout=standing.layout,
        files=tuple(sorted(survey.files)),
        config=tuple(sorted(survey.config)),
        folders=tuple(sorted(survey.folders)),
        worktrees=survey.worktrees,
        personal=base64.b64encode(survey.personal).decode(),
        known=tuple(
            _Entry(
                path,
                state.kind,
                state.mode,
                state.digest.hex(),
                None if state.data is None else base64.b64encode(state.data).decode(),
            )
            for path, state in sorted(standing.known.items())
        ),
    )
    # Escaped as ASCII: an undecodable name comes back as it was.
    return _sealed(json.dumps(to_builtins(written)).encode())


def _standing(written: _Written) -> Standing:
    survey = Survey(
        files=set(written.files),
        config=set(written.config),
        folders=set(written.folders),
        worktrees=written.worktrees,
        personal=base64.b64decode(written.personal, validate=True),
    )
    known = {
        entry.path: Known(
            None,
            entry.kind,
            entry.mode,
            None if entry.data is None else base64.b64decode(entry.data, validate=True),
            bytes.fromhex(entry.digest),
        )
        for entry in written.known
    }
    return Standing(written.layout, survey, known)


def _place(layout: Layout, name: str) -> str:
    return os.path.join(layout.scratch, name)


def _parsed(kind: type[T], path: str) -> T | None:
    data = _content(path)
    try:
        table: Any = json.loads(data or b"null")
        return None if table is None else decode(kind, table)
    except (ValueError, RecursionError, CodecError):
        return None


def _content(path: str) -> bytes | None:
    """Read a file of ours; None if there is none, or something that is no file."""
    try:
        return read(path, _MOST, flags=UNFOLLOWED)
    except OSError:
        return None


def _replace(path: str, data: bytes) -> Signature:
    """Put a new file in a name's place, whole or not at all."""
    discard(path + _NEW)
    _write(path + _NEW, data, os.O_EXCL)
    os.rename(path + _NEW, path)
    return signature(os.lstat(path))


def _write(path: str, data: bytes, flags: int = os.O_TRUNC) -> None:
    flags |= os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
