"""What a hook reads of a repository, by git processes only: bare or not, quarantine and all.

A receiving hook sees the pushed objects through variables of its environment, which `QUARANTINE`
names; everything else that binds git is dropped as everywhere. Nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from msgspec import Struct

from git_batch.core import trailers
from git_batch.core.chain import RECORDS, TRACKING
from git_batch.core.ids import BatchId, Oid
from git_batch.core.standing import BatchStatus
from git_batch.core.toml import loads
from git_batch.errors import GitError
from git_batch.repo.git import QUARANTINE, Git
from git_batch.repo.here import here
from git_batch.repo.objects import ObjectReader, is_ancestor, seen_of


class Record(Struct, frozen=True):
    """The record of a batch.

    Attributes:
        tip: the commit that its ref names.
        branch: the one that its header names; None if it can't be read.
        running: by its header the batch has not ended, so branch and record may still move.
    """

    batch: BatchId
    tip: Oid
    branch: str | None
    running: bool


class Claim(Struct, frozen=True):
    """What a commit's trailers say: its batch, and whether it is one task's commit.

    A squash of a whole batch names the batch as well, and many tasks.
    """

    batch: str
    one_task: bool


class PushedRepository:
    """A repository, bare or not, as the hook of a push sees it.

    Args:
        environ: the hook's; `GIT_DIR` names the repository, else the working directory does.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        named = environ.get("GIT_DIR")
        self.git_dir = here(named or ".git")
        # Without a working tree: nothing that a hook reads needs one.
        self.tracked: dict[BatchId, Oid] = {}
        self.git = Git(self.git_dir if named else None, here(), keep=QUARANTINE, bare=True)

    @property
    def common_dir(self) -> str:
        """The directory that all working trees share; found as git finds it, without asking it."""
        if not os.path.exists(os.path.join(self.git_dir, "HEAD")):
            # Nobody named it, and `.git` is a file: a hook manager in a linked working tree.
            out = self.git.run(["rev-parse", "--path-format=absolute", "--git-common-dir"])
            return os.fsdecode(out.rstrip(b"\n"))
        try:
            with open(os.path.join(self.git_dir, "commondir"), encoding="utf-8") as file:
                return os.path.normpath(os.path.join(self.git_dir, file.read().rstrip("\n")))
        except FileNotFoundError:
            return self.git_dir

    def record_tips(self, also: str | None = None) -> dict[BatchId, Oid]:
        """List the records that are here, the one that was written to last at the end.

        Args:
            also: a remote; what its tracking copies are at is in `tracked` afterwards.
        """
        asked = [RECORDS] if also is None else [RECORDS, f"{TRACKING}{also}/"]
        found = self.git.refs(*asked, sort="committerdate")
        self.tracked = {
            BatchId(name.rpartition("/")[2]): Oid(oid)
            for name, oid in found.items()
            if name.startswith(TRACKING)
        }
        return {
            BatchId(name.removeprefix(RECORDS)): Oid(oid)
            for name, oid in found.items()
            if name.startswith(RECORDS)
        }

    def read(
        self, tips: Mapping[BatchId, Oid], commits: Iterable[Oid]
    ) -> tuple[list[Record], dict[Oid, tuple[Oid, Claim | None]]]:
        """Read headers of records, and of commits their ids and what they say they are.

        Raises:
            GitError: one of the commits is not here.
        """
        wanted = list(dict.fromkeys(commits))
        headers = [f"{tip}:batch.toml" for tip in tips.values()]
        with ObjectReader(self.git) as reader:
            found = [o for _, o in reader.many([*headers, *(f"{c}^{{commit}}" for c in wanted)])]
        records = [
            Record(batch, tip, *_header(header.data if header else b""))
            for (batch, tip), header in zip(tips.items(), found, strict=False)
        ]
        tasks: dict[Oid, tuple[Oid, Claim | None]] = {}
        for name, commit in zip(wanted, found[len(headers) :], strict=True):
            if commit is None:
                raise GitError(f"commit {name} can't be read")
            seen = seen_of(commit.oid, commit)
            tasks[name] = seen.oid, _claim(seen.message)
        return records, tasks

    def symbolic(self, name: str = "HEAD") -> str | None:
        """Give the ref that a symbolic ref names; None when it is detached."""
        result = self.git.call(["symbolic-ref", "-q", name])
        return os.fsdecode(result.stdout.rstrip(b"\n")) or None

    def resolve(self, name: str) -> Oid | None:
        """Give the commit that a ref names; None if it does not exist."""
        found = self.git.commit_named(name)
        return None if found is None else Oid(found)

    def advances(self, old: Oid, new: Oid) -> bool:
        """Tell whether a commit has another one behind it.

        Raises:
            GitError: that can't be told, since an object is missing.
        """
        return is_ancestor(self.git, old, new)

    def demands_record(self) -> bool:
        """Read `batch.requireRecord`: a batch's branch is taken only with its record."""
        return self.git.flag("batch.requireRecord")


def _header(blob: bytes) -> tuple[str | None, bool]:
    """Read the lines of a header that tell which branch is meant, and whether the batch runs."""
    try:
        header = loads(blob.decode("utf-8"))
    except ValueError:  # that it is not UTF-8 is one
        return None, False
    branch = header.get("branch")
    running = header.get("status") == BatchStatus.RUNNING
    return (branch if isinstance(branch, str) else None), running


def _claim(message: bytes) -> Claim | None:
    """Read what a commit says of itself; the first batch, if it is forged to have two."""
    block = [(k.lower(), v) for k, v in trailers.block(message)]
    named = [v for k, v in block if k == trailers.BATCH_ID.lower()]
    if not named:
        return None
    keys = [k for k, _ in block if k.startswith("batch-")]
    one = len(keys) == len(set(keys)) and trailers.RECORD.lower() in keys
    return Claim(named[0], one)
