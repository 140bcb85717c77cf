"""Claims: who works on a slug, and with a remote who works on a task.

A claim is a ref that must not exist when it is made; what it names is a commit that says whose it
is (semantics.md section 8). Ownership is read from the claim, never remembered: a crash leaves a
claim that its own batch adopts, and a foreign one is never stolen. On a remote the same is done by
a push that only succeeds if the ref does not exist there (`--force-with-lease` with an empty
expectation), so that two machines can't run the same task.
"""

from __future__ import annotations

import os
from datetime import datetime

from msgspec import Struct

from git_batch.core import trailers
from git_batch.core.chain import ref_name
from git_batch.core.ids import BatchId, Oid, TaskId
from git_batch.errors import GitError, PreconditionError, StaleError
from git_batch.repo import batches, commits
from git_batch.repo.git import Result
from git_batch.repo.locks import HOST, batch_lock, holder
from git_batch.repo.objects import EMPTY_TREE
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from git_batch.repo.treewrite import write_paths

NAMESPACE = "refs/batch/claims/"
_WHOLE = "@"
"""What stands for a task in the claim on a whole slug; no task can be called that."""
_ALONE = "--no-recurse-submodules"
_HOST, _WORKTREE, _SINCE = "Batch-Host", "Batch-Worktree", "Batch-Since"


class Claim(Struct, frozen=True):
    """Who claims what, where and since when (RFC 3339)."""

    batch: BatchId
    task: str
    host: str
    worktree: str
    since: str

    def __str__(self) -> str:
        return f"batch {self.batch} on host {self.host} since {self.since}"


def claims_on(slug: str) -> str:
    """Name the folder of the claims on a slug and on its tasks."""
    return f"{NAMESPACE}{slug}/"


def claim_ref(slug: str, task: TaskId | None = None) -> str:
    """Name the ref of a claim on a slug, or on one of its tasks."""
    return f"{claims_on(slug)}{task or _WHOLE}"


def write(
    repo: Repository, batch: BatchId, task: TaskId | None, *, who: commits.Idents, at: datetime
) -> Oid:
    """Write the object that a claim's ref names."""
    message = trailers.with_trailers(
        trailers.compose(f"claim {batch}", ""),
        [
            (trailers.BATCH_ID, batch),
            (trailers.TASK, task or _WHOLE),
            (_HOST, HOST),
            (_WORKTREE, repo.layout.top.encode("ascii", "backslashreplace").decode()),
            (_SINCE, at.isoformat()),
        ],
    )
    write_paths(repo, None, {})
    return commits.make(repo, tree=EMPTY_TREE, parents=[], message=message, who=who, at=at)


def read(repo: Repository, oid: Oid) -> Claim:
    """Read a claim's object.

    Raises:
        GitError: it is missing or no claim.
    """
    found = trailers.ours(commits.read(repo, oid).message) or {}
    try:
        return Claim(
            BatchId(found[trailers.BATCH_ID]),
            found[trailers.TASK],
            found[_HOST],
            found[_WORKTREE],
            found[_SINCE],
        )
    except KeyError as error:
        raise GitError(f"{oid} is not a claim: {error} is missing") from None


def listed(repo: Repository, refs: Refs) -> dict[str, Claim | GitError]:
    """Read all claims of this repository by the slug, or slug and task, that they are on.

    What is wrong with one that can't be read is part of the answer.
    """
    found: dict[str, Claim | GitError] = {}
    for name, oid in refs.listed(NAMESPACE).items():
        what = name.removeprefix(NAMESPACE).removesuffix(f"/{_WHOLE}")
        try:
            found[what] = read(repo, oid)
        except GitError as error:
            said = f"the claim on '{what}' can't be read: {error.message}"
            found[what] = GitError(said, *error.hints)
    return found


def on_slug(repo: Repository, refs: Refs, slug: str) -> Claim | None:
    """Read who claims a slug in this repository; None if nobody does, or it can't be read."""
    held = refs.read(claim_ref(slug))
    return None if held is None else _read_or_none(repo, held)


def take(
    repo: Repository,
    refs: Refs,
    slug: str,
    batch: BatchId,
    *,
    who: commits.Idents,
    at: datetime,
) -> None:
    """Claim a slug for a batch; one that the batch holds already is adopted.

    So is one that is damaged, if it can be no other batch's.

    Raises:
        PreconditionError: another batch holds it, or may hold it; it is named.
    """
    ref = claim_ref(slug)
    old = refs.read(ref)
    if old is not None:
        other = _read_or_none(repo, old)
        if other is None:
            _refuse_rivals(repo, slug, batch)
        elif other.batch == batch:
            return
        elif not _abandoned(repo, refs, other):
            raise _foreign(slug, other)
    try:
        refs.swap(ref, old, write(repo, batch, None, who=who, at=at), f"claim {batch}")
    except StaleError:
        now = refs.read(ref)
        if now is None:
            raise
        raise _foreign(slug, read(repo, now)) from None


def _abandoned(repo: Repository, refs: Refs, claim: Claim) -> bool:
    """Tell whether a claim was left by a start that died before it recorded anything."""
    here = claim.host == HOST
    recorded = refs.read(ref_name(claim.batch)) is not None
    return here and not recorded and holder(batch_lock(repo, claim.batch)) is None


def _refuse_rivals(repo: Repository, slug: str, batch: BatchId) -> None:
    """Refuse a claim that can't be read where another batch may hold it: only one that is here."""
    for other in batches.listed(repo):
        if other.slug == slug and other.batch_id != batch and (other.unfinished or other.error):
            what = f"the claim on slug '{slug}' is damaged, and may be that of batch"
            raise taken(f"{what} '{other.batch_id}'", other.batch_id)


def _foreign(slug: str, other: Claim) -> PreconditionError:
    return taken(f"slug '{slug}' is claimed by {other}, in '{other.worktree}'", other.batch)


def taken(why: str, other: BatchId) -> PreconditionError:
    """Refuse a slug that another batch has, with the two ways to be free of it."""
    return PreconditionError(
        why,
        f"go on with it: git batch resume {other}",
        f"or end it for good, keeping everything: git batch abandon {other}",
    )


def release(repo: Repository, refs: Refs, slug: str, batch: BatchId) -> None:
    """Let go of a slug, if the batch holds it."""
    ref = claim_ref(slug)
    held = refs.read(ref)
    if held is not None and _is_of(repo, batch, held):
        refs.delete(ref, held)


def _is_of(repo: Repository, batch: BatchId, oid: Oid) -> bool:
    claim = _read_or_none(repo, oid)
    return claim is not None and claim.batch == batch


def _read_or_none(repo: Repository, oid: Oid) -> Claim | None:
    """Read a claim's object; None if it is missing, damaged, or no claim at all."""
    try:
        return read(repo, oid)
    except GitError:
        return None


class RemoteClaims:
    """Claims on the tasks of one batch, on a remote.

    Attributes:
        remote: its name.
    """

    def __init__(self, repo: Repository, remote: str, slug: str, batch: BatchId) -> None:
        self._repo, self.remote, self._slug, self._batch = repo, remote, slug, batch
        self._held: dict[TaskId, Oid] = {}

    def take(self, task: TaskId, who: commits.Idents, at: datetime) -> Claim | None:
        """Claim a task; None if it is ours now, else who holds it.

        Raises:
            GitError: the remote can't be asked; that is never "free".
        """
        ref = claim_ref(self._slug, task)
        oid = write(self._repo, self._batch, task, who=who, at=at)
        pushed = self._push(f"{oid}:{ref}", f"--force-with-lease={ref}:")
        if pushed.status == 0:
            self._held[task] = oid
            return None
        held = self._ask(ref)
        if held is None:
            said = os.fsdecode(pushed.stderr).strip().splitlines()
            raise GitError(f"could not claim '{task}' on '{self.remote}': {' '.join(said[-2:])}")
        other = read(self._repo, held)
        if other.batch != self._batch:
            return other
        self._held[task] = held
        return None

    def release(self, task: TaskId) -> None:
        """Let go of a task that is ours, whoever took it; what is not ours stays.

        Raises:
            GitError: the remote can't be reached.
        """
        ref = claim_ref(self._slug, task)
        held = self._held.pop(task, None) or self._ask(ref)
        if held is not None and self._is_ours(held):
            self._delete(ref, held)

    def release_all(self) -> None:
        """Let go of every task that is ours: what a killed run could not, included.

        Raises:
            GitError: the remote can't be reached.
        """
        self._held.clear()
        for ref, held in self._listed(f"{claims_on(self._slug)}*").items():
            if self._is_ours(held):
                self._delete(ref, held)

    def _is_ours(self, oid: Oid) -> bool:
        return _is_of(self._repo, self._batch, oid)

    def _delete(self, ref: str, held: Oid) -> None:
        result = self._push(f":{ref}", f"--force-with-lease={ref}:{held}")
        if result.status and self._ask(ref) == held:
            task = ref.rpartition("/")[2]
            raise GitError(f"could not release the claim on '{task}' on '{self.remote}'")

    def _push(self, refspec: str, lease: str) -> Result:
        return self._repo.git.call(["push", "--quiet", _ALONE, lease, self.remote, refspec])

    def _ask(self, ref: str) -> Oid | None:
        """Read a claim on the remote, and fetch what it names."""
        return self._listed(ref).get(ref)

    def _listed(self, pattern: str) -> dict[str, Oid]:
        """Read claims on the remote, and fetch what they name."""
        found = self._repo.git.call(["ls-remote", self.remote, pattern])
        if found.status:
            raise GitError(f"can't ask '{self.remote}' for claims")
        lines = (line.split("\t") for line in os.fsdecode(found.stdout).split("\n") if line)
        named = {ref: Oid(oid) for oid, ref in lines if ref.startswith(NAMESPACE)}
        if named:
            fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", _ALONE]
            self._repo.git.run([*fetch, self.remote, *dict.fromkeys(named.values())])
        return named
