"""`git batch push` and `fetch`: a batch between clones, its branch and its record together.

Pushed is what was verified, by ids: the newest event of the record and the head that it names, so
that the two fit although a run may go on meanwhile. Fetched are copies beside what is here; a copy
carries no authority and replaces nothing (`git batch pull` takes one over).
"""

from __future__ import annotations

from msgspec import Struct

from git_batch.app import aftermath
from git_batch.app.glances import Glance, look
from git_batch.app.session import Session, must_choose, outside_of_tasks
from git_batch.app.verifying import must_be_whole
from git_batch.core.chain import RECORDS, TRACKING, tracking_name
from git_batch.core.ids import BatchId, Oid
from git_batch.core.standing import BatchStatus
from git_batch.errors import DriftError, PreconditionError
from git_batch.repo import remotes
from git_batch.repo.remotes import Relation, Relay


class Pushed(Struct, frozen=True):
    """What a remote has now."""

    batch: BatchId
    branch: str
    head: Oid
    remote: str


class Fetched(Struct, frozen=True):
    """A remote's copy of a record, and how it stands to the one that is here."""

    batch: BatchId
    there: Oid
    relation: Relation


def push(
    session: Session, remote: str | None, batch: str | None, *, dry_run: bool, relay: Relay
) -> Pushed:
    """Send a batch's branch and record to a remote, both or neither.

    Args:
        relay: passes on what git and the remote say about it.

    Raises:
        DriftError: the branch is not what the record says; nothing was sent.
        PreconditionError: there is no batch, it has failed, the remote refused, or a killed run
            left what git might run.
    """
    outside_of_tasks()
    aftermath.refuse_unless_live(session.repo)
    found = look(session, must_choose(session, batch))
    name, branch, head = _whole(session, found)
    record = _record(found)
    remote = remotes.chosen(session.repo.git, branch, remote, push=True)
    git = session.repo.git
    if not remotes.push(git, remote, branch, head, name, record, dry_run=dry_run, relay=relay):
        raise PreconditionError(
            f"'{remote}' did not take '{branch}' and the record of '{name}'; it has neither",
            f"see what it has: git batch fetch {remote}",
            *_of_submodules(session),
        )
    if not dry_run and remote in remotes.known(session.repo.git):
        copy = tracking_name(remote, name)
        if (old := session.refs.read(copy)) != record:
            session.refs.swap(copy, old, record, f"pushed to {remote}")
    return Pushed(name, branch, head, remote)


def _of_submodules(session: Session) -> tuple[str, ...]:
    """Say how what git may have missed of a submodule is sent: in its own repository."""
    if not remotes.asks_of_submodules(session.repo.git) or not session.repo.submodules:
        return ()
    return ("a submodule's commits go first: git -C PATH push REMOTE HEAD:refs/heads/NAME",)


def _whole(session: Session, found: Glance) -> tuple[BatchId, str, Oid]:
    """Give the branch of a batch and its recorded head, if everything up to there is whole."""
    batch = found.summary.batch_id
    header, tip = found.summary.readable()
    branch, head = header.branch, tip.totals.head
    if found.drift:
        first = found.drift[0]
        raise DriftError(f"{first.kind}: {first.detail}", *first.ways)
    way = f"all of it: git batch verify {batch}"
    record = _record(found)
    answer = must_be_whole(session, batch, head, record, what=f"'{branch}'", way=way)
    if answer.batch_status is BatchStatus.FAILED:
        raise PreconditionError(
            f"batch '{batch}' has failed, so it is not shared", f"git batch status {batch}"
        )
    return batch, branch, head


def _record(found: Glance) -> Oid:
    assert found.summary.ref_tip is not None
    return found.summary.ref_tip


def fetch(session: Session, remote: str | None, *, relay: Relay) -> tuple[str, list[Fetched]]:
    """Get a remote's branches, and copies of its records; compare them with what is here.

    Args:
        relay: as of `push`.

    Returns:
        The remote's name, and its records by batch.

    Raises:
        PreconditionError: the remote could not be read, or a killed run left what git might run.
    """
    aftermath.refuse_unless_live(session.repo)
    on = session.repo.symbolic_head()
    branch = on.removeprefix("refs/heads/") if on else None
    remote = remotes.chosen(session.repo.git, branch, remote, push=False)
    if not remotes.fetch(session.repo.git, remote, relay):
        from git_batch.app.unrecorded import not_read  # rarely needed

        raise PreconditionError(
            f"'{remote}' could not be read; what is here is as it was", *not_read(session)
        )
    here = session.refs.listed(RECORDS)
    prefix = f"{TRACKING}{remote}/"
    found = []
    for name, there in session.refs.listed(prefix).items():
        batch = BatchId(name.removeprefix(prefix))
        mine = here.get(f"{RECORDS}{batch}")
        found.append(Fetched(batch, there, remotes.relation(session.repo.git, mine, there)))
    return remote, found
