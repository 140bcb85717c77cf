"""`git batch verify`: which commits are meant, and which record they are compared with.

Also without a record (a clone that never fetched it): then the trailers are compared with each
other, and the answer says what could not be looked at.
"""

from __future__ import annotations

import sys
from typing import Any

from msgspec import Struct

from git_batch.app.session import Session, choose
from git_batch.app.unrecorded import only_fetched, ways_to_copy
from git_batch.core.chain import TRACKING, ref_name
from git_batch.core.ids import BATCH_ID, BatchId, Oid
from git_batch.core.lineage import BRANCH_MISSING, Drift, Verdict, word
from git_batch.core.standing import BatchStatus
from git_batch.core.values import replace
from git_batch.errors import FSCK, DriftError, GitError, PreconditionError, UsageError
from git_batch.repo import batches, claimed, lineage, trust
from git_batch.repo.linked import told_here
from git_batch.repo.locks import batch_lock, holder
from git_batch.repo.objects import DamagedError


class Meant(Struct, frozen=True):
    """What is to be verified.

    Attributes:
        what: how the tip is named to people.
        record: the ref whose record is compared; None without one.
        ends: the tip is the branch's own.
        unreadable: why the record can't be read; then there is no tip.
        behind: how many events this repository has seen that the record does not have any more.
    """

    what: str
    tip: Oid | None
    batch: BatchId | None
    record: str | None
    record_tip: Oid | None
    base: Oid | None = None
    ends: bool = True
    branch: str | None = None
    unreadable: str = ""
    head: Oid | None = None
    behind: int = 0


class Verified(Struct, frozen=True):
    """A verdict, and on what."""

    meant: Meant
    verdict: Verdict
    trailers_only: bool = False


def verify(session: Session, named: str | None, *, trailers_only: bool) -> Verified:
    """Say whether a batch's branch, another branch or a range is what the record says.

    Raises:
        UsageError: what is named is neither a batch nor a commit here.
        PreconditionError: nothing is named and there is no batch.
    """
    meant = _meant(session, named)
    if meant.tip is None:
        return Verified(meant, _gone(meant))
    live = meant.batch is not None and holder(batch_lock(session.repo, meant.batch)) is not None
    found = _verdict(
        session,
        tip=meant.tip,
        batch=meant.batch,
        record_tip=None if trailers_only else meant.record_tip,
        base=meant.base,
        live=live,
        ends=meant.ends,
        audit=sys.maxsize,
    )
    return Verified(meant, found, trailers_only)


def must_be_whole(
    session: Session, batch: BatchId, head: Oid, record: Oid, *, what: str, way: str
) -> Verdict:
    """Refuse a line that is not, up to its recorded head, what its record says.

    Args:
        what: how it is called if nothing can be told.
        way: what can be done about a drift.

    Raises:
        DriftError: it is not.
        PreconditionError: that can't be told.
    """
    found = _verdict(session, tip=head, batch=batch, record_tip=record)
    if found.status == "drift":
        first = found.drifts[0]
        raise DriftError(f"{first.kind}: {first.detail}", way)
    if found.status == "unknown":
        raise PreconditionError(
            f"{what} can't be verified: {found.reason}", f"all of it: git batch verify {batch}"
        )
    return found


def _verdict(
    session: Session, *, tip: Oid, batch: BatchId | None, record_tip: Oid | None, **more: Any
) -> Verdict:
    """Compare; of what is damaged nothing can be told, and it is not known to be otherwise."""

    def before_signers() -> None:
        from git_batch.app import aftermath  # rarely needed

        aftermath.refuse_unless_live(session.repo)

    more |= {"before_signers": before_signers}
    try:
        git = session.repo.git
        found = lineage.verdict(git, tip=tip, batch=batch, record_tip=record_tip, **more)
        return replace(found, drifts=tuple(told_here(git, drift) for drift in found.drifts))
    except DamagedError as error:
        return Verdict("unknown", batch=batch, reason=error.message)


def _gone(meant: Meant) -> Verdict:
    """Answer for a branch that does not exist, or whose name the record does not tell."""
    if meant.head is None:
        return Verdict("unknown", batch=meant.batch, reason=meant.unreadable)
    drift = Drift(
        BRANCH_MISSING,
        f"branch '{meant.branch}' does not exist; the record expects {meant.head}",
        meant.head,
        f"git branch {word(meant.branch or '')} {meant.head}",
    )
    return Verdict("drift", (drift,), meant.batch, True)


def _meant(session: Session, named: str | None) -> Meant:
    if named is not None and ".." in named:
        return _range(session, named)
    try:
        found = choose(session, named)
    except UsageError:
        assert named is not None
        return _branch(session, named)
    if found is not None:
        return _batch(session, found)
    on = session.repo.symbolic_head()
    if on is None or session.refs.read(on) is None:
        raise PreconditionError(
            "there is no batch in this repository", "name a branch: git batch verify BRANCH"
        )
    return _branch(session, on.removeprefix("refs/heads/"))


def _batch(session: Session, found: batches.Summary) -> Meant:
    """Take the branch that the record names; in a clone without it, a remote's."""
    name, batch = ref_name(found.batch_id), found.batch_id
    if found.header is None or found.tip is None:
        why = found.error.message if found.error else ""
        return Meant(batch, None, batch, name, found.ref_tip, unreadable=why)
    branch, head = found.header.branch, found.tip.totals.head
    started = found.tip.totals.enrolled or head != found.header.base
    ref = f"refs/heads/{branch}"
    tip = session.refs.read(ref)
    if tip is None:
        remote = _remote_branches(session, branch)
        ref, tip = next(iter(remote.items()), (ref, None))
    if tip is None and not started and found.header.status is not BatchStatus.FAILED:
        tip = found.header.base  # a crash came before the branch was made
    behind = max(0, trust.load(session.repo, batch).step - found.tip.step)
    return Meant(
        _short(ref), tip, batch, name, found.ref_tip, branch=branch, head=head, behind=behind
    )


def _remote_branches(session: Session, branch: str) -> dict[str, Oid]:
    found = session.refs.listed("refs/remotes/")
    return {name: oid for name, oid in found.items() if name.split("/", 3)[-1] == branch}


def _branch(session: Session, named: str) -> Meant:
    """Take any commit; the newest trailers on its line tell the batch."""
    tip = commit_of(session, named, or_batch=True)
    batch, _, _ = claimed.batch_part(session.repo.git, tip)
    ref, at = record_of(session, batch)
    return Meant(named, tip, batch, ref, at, ends=False)


def _range(session: Session, named: str) -> Meant:
    first, _, last = named.partition("..")
    if last.startswith("."):
        raise UsageError(f"'{named}' is no range of a lineage", "write two dots: A..B")
    base, tip = commit_of(session, first or "HEAD"), commit_of(session, last or "HEAD")
    batch, _, _ = claimed.batch_part(session.repo.git, tip)
    ref, at = record_of(session, batch)
    return Meant(named, tip, batch, ref, at, base=base, ends=False)


def commit_of(session: Session, rev: str, *, or_batch: bool = False) -> Oid:
    """Resolve what a person typed to a commit.

    Args:
        or_batch: it might have been a batch as well.

    Raises:
        UsageError: it names none.
        GitError: it names a branch whose commit is damaged or missing.
    """
    found = session.repo.git.commit_named(rev)
    if found is None:
        at = session.refs.read(f"refs/heads/{rev}") if or_batch else None
        if at is not None:
            raise GitError(f"branch '{rev}' is at {at}, and that commit can't be read", FSCK)
        what = "neither a batch nor a commit" if or_batch else "no commit"
        hints = [*only_fetched(session, rev), "git batch list"] if or_batch else []
        raise UsageError(f"'{rev}' is {what} here", *hints)
    return Oid(found)


def record_of(session: Session, batch: BatchId | None) -> tuple[str | None, Oid | None]:
    """Find the record of a batch: this repository's own, else a tracking copy."""
    if batch is None or not BATCH_ID.match(batch):
        return None, None
    own = session.refs.read(ref_name(batch))
    if own is not None:
        return ref_name(batch), own
    copies = tracking_copies(session, batch)
    return next(iter(copies.items()), (None, None))


def tracking_copies(session: Session, batch: BatchId) -> dict[str, Oid]:
    """List the copies of a record that were fetched from remotes."""
    found = session.refs.listed(TRACKING)
    return {name: oid for name, oid in found.items() if name.rpartition("/")[2] == batch}


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def readable(done: Verified) -> bool:
    """Tell whether all commits that the trailers are on could be read."""
    found = done.verdict
    return done.meant.tip is not None and found.tasks + found.undone > 0


def hints(session: Session, done: Verified) -> list[str]:
    """Give commands that would let the answer be a better one."""
    found, meant = done.verdict, done.meant
    if meant.behind:
        said = f"the record was put back: this repository has seen {meant.behind} later events"
        return [said, f"git batch recover {word(meant.branch or meant.what)}"]
    if found.status != "unknown" or found.batch is None or done.trailers_only:
        return []
    if meant.record is not None:
        plan = " --plan FILE" if found.reason == lineage.REBUILT else ""
        return [f"git batch recover {word(meant.branch or meant.what)}{plan}"]
    return ways_to_copy(session, found.batch, meant.what)
