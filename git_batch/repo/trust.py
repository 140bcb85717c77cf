"""What a person confirmed *here*, and how far this repository has seen a batch go.

A record travels; authority doesn't (semantics.md section 4). So each confirmation leaves the
nonce of its authorization in a file of this repository, `<common dir>/batch/<id>.authorized`. A
record whose authorization was not confirmed here is shown to a person first. The file also holds
the highest step and sequence number that were seen: a record that is behind them was put back, and
what was taken away from it must not be done a second time.

It is a cache and no state. To lose it only means to be asked again; a file that can't be read is
lost. It is written before the record, whose barrier then puts it on disk, too. Who runs a batch and
who renews or stops it from beside write it at the same time, so each does so alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256

from msgspec import Struct, field
from msgspec.structs import asdict

from git_batch.core.codec import CodecError, decode
from git_batch.core.ids import BatchId
from git_batch.core.model import Authorization
from git_batch.core.values import replace
from git_batch.errors import RecordError
from git_batch.repo.repository import Repository
from git_batch.repo.stalelocks import LOCK_WAIT
from git_batch.repo.wholefile import read

_LOCK = "authorized.lock"
"""In `<common dir>/batch`."""

_NONCES = 20
"""Confirmations that are remembered; only the newest one or two can be asked for."""


class Trust(Struct, frozen=True):
    """What is known here of one batch.

    Attributes:
        nonces: of the authorizations that were confirmed here, oldest first.
        step: number of the newest event that was seen; `seq` of the newest authorization.
        files: the plan file that was read at the newest confirmation and its intent files, by
            absolute path, each with the sha256 of what stood in it; the plan file comes first.
    """

    nonces: tuple[str, ...] = ()
    step: int = 0
    seq: int = 0
    files: Mapping[str, str] = field(default_factory=dict)

    def confirmed(self, authorization: Authorization | None) -> bool:
        """Tell whether an authorization was confirmed in this repository."""
        return authorization is not None and authorization.nonce in self.nonces

    def refuse_rollback(
        self, batch: BatchId, step: int, authorization: Authorization | None
    ) -> None:
        """Refuse a record that is behind what was seen here.

        Raises:
            RecordError: it is; with both numbers.
        """
        seq = authorization.seq if authorization else 0
        if step >= self.step and seq >= self.seq:
            return
        what = f"event {step}, this repository has seen event {self.step}"
        if seq < self.seq:
            what = f"authorization no. {seq}, this repository has seen no. {self.seq}"
        raise RecordError(
            f"the record of '{batch}' was put back: it ends with {what}",
            f"its ref's log may still have the newer one: git reflog refs/notes/batch/{batch}",
        )


def place(repo: Repository, batch: BatchId) -> str:
    """Name the file."""
    return os.path.join(repo.layout.common_dir, "batch", f"{batch}.authorized")


def load(repo: Repository, batch: BatchId) -> Trust:
    """Read what is known here of a batch; nothing if there is no file, or none that makes sense."""
    try:
        return decode(Trust, json.loads(read(place(repo, batch), 1 << 20)))
    except (OSError, ValueError, RecursionError, CodecError):
        return Trust()


def confirm(
    repo: Repository, batch: BatchId, authorization: Authorization, files: Mapping[str, str]
) -> None:
    """Remember that a person confirms an authorization here; to be called before it is recorded.

    Args:
        files: as of `Trust.files`; empty where the plan in force was confirmed again.
    """

    def confirmed(known: Trust) -> Trust:
        nonces = (*known.nonces, authorization.nonce)[-_NONCES:]
        return replace(known, nonces=nonces, files=dict(files or known.files))

    _change(repo, batch, confirmed)


def seen(repo: Repository, batch: BatchId, step: int, authorization: Authorization | None) -> None:
    """Remember how far a record has come."""
    seq = authorization.seq if authorization else 0
    known = load(repo, batch)
    if step <= known.step and seq <= known.seq:
        return
    _change(
        repo,
        batch,
        lambda known: replace(known, step=max(step, known.step), seq=max(seq, known.seq)),
    )


def forget(repo: Repository, batch: BatchId) -> None:
    """Forget a batch: for whoever rebuilds its record, and would else be taken for a rollback."""
    with suppress(FileNotFoundError):
        os.unlink(place(repo, batch))


def digests(paths: tuple[str, ...]) -> dict[str, str]:
    """Give the sha256 of files by their absolute paths; "" for one that can't be read."""
    return {os.path.abspath(path): _sha256(path) for path in paths}


def _sha256(path: str) -> str:
    try:
        return sha256(read(path)).hexdigest()
    except OSError:
        return ""


def _change(repo: Repository, batch: BatchId, change: Callable[[Trust], Trust]) -> None:
    """Change what is known while nobody else does; a cache is not waited for for ever."""
    folder = os.path.join(repo.layout.common_dir, "batch")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    fd = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _locked(fd):
            _save(repo, batch, change(load(repo, batch)))
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    limit = time.monotonic() + LOCK_WAIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # it may have been suspended
            if time.monotonic() > limit:
                return False
            time.sleep(0.01)
        else:
            return True


def _save(repo: Repository, batch: BatchId, trust: Trust) -> None:
    path = place(repo, batch)
    with open(f"{path}.new", "w", encoding="utf-8", opener=_private) as file:
        json.dump(asdict(trust), file)
    os.replace(f"{path}.new", path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
