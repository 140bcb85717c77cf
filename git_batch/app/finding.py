"""`git batch find`: from a task to its commit and back.

The record answers by one look at its tree, whatever the length of the history. Where it does not
(it is not here, the commit is a copy on another branch), the trailers on all branches are searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from git_batch.app.deciding import Named
from git_batch.app.lookingup import Found
from git_batch.app.session import Session, choose
from git_batch.app.verifying import commit_of
from git_batch.core import record
from git_batch.core.chain import reading_of
from git_batch.core.claims import claim_of
from git_batch.core.ids import BATCH_ID, TASK_ID, BatchId, TaskId, slug_of
from git_batch.core.standing import TaskStatus
from git_batch.errors import UsageError
from git_batch.repo import batches, claimed, commits
from git_batch.repo.notestree import NotesTree


def by_task(session: Session, text: str) -> Found | None:
    """Find the commit of a task (`TASK` or `BATCH:TASK`).

    Raises:
        UsageError: several commits answer; each is listed.
    """
    named = Named.parse(text)
    if not TASK_ID.match(named.task):
        raise UsageError(f"'{text}' can't be a task")
    recorded = _in_records(session, named)
    if recorded:
        return _one(text, recorded)
    return _one(text, _in_trailers(session, named))


def _one(text: str, answers: Sequence[Found | None]) -> Found | None:
    found = [f for f in answers if f is not None]
    if len(found) <= 1:
        return found[0] if found else None
    raise UsageError(
        f"{len(found)} commits answer to '{text}'",
        *(f"{f.commit} is of {f.batch}:{f.task}" for f in found[:20]),
    )


def _in_records(session: Session, named: Named) -> list[Found | None]:
    """Ask the batch that is meant, then every other record here; None: it has no commit now."""
    try:
        meant = choose(session, named.batch)
    except UsageError:
        return []
    if meant is None:
        return []
    answer = list(_recorded(session, meant, named.task))
    if answer or named.batch is not None:
        return answer
    others = batches.listed(session.repo)
    wanted = (s for s in others if s.batch_id != meant.batch_id)
    return [found for s in wanted for found in _recorded(session, s, named.task)]


def _recorded(session: Session, item: batches.Summary, task: TaskId) -> Iterator[Found | None]:
    if item.tree is None:
        return
    with reading_of(item.batch_id):
        blob = NotesTree(session.repo, item.tree).task_note(task)
        told = None if blob is None else record.parse_note(blob).record
    if told is not None:
        done = told.status is TaskStatus.COMMITTED and told.commit is not None
        yield Found(item.batch_id, task, told.commit, "record") if done and told.commit else None


def _in_trailers(session: Session, named: Named) -> list[Found]:
    """Search all branches and tags."""
    found = []
    for commit in claimed.claimants(session.repo.git, named.task):
        claim, _ = claim_of(commit.message)
        if claim is None or claim.task != named.task or not BATCH_ID.match(claim.batch):
            continue
        batch, task = BatchId(claim.batch), TaskId(claim.task)
        if named.batch in (None, batch, slug_of(batch)):
            found.append(Found(batch, task, commit.oid, "trailers"))
    return found


def by_commit(session: Session, rev: str) -> Found | None:
    """Find the task of a commit.

    Raises:
        UsageError: there is no such commit.
    """
    oid = commit_of(session, rev)
    claim, _ = claim_of(commits.read(session.repo, oid).message)
    summaries = batches.listed(session.repo)
    summaries.sort(key=lambda s: claim is None or s.batch_id != claim.batch)
    for item in summaries:
        if item.tree is None:
            continue
        with reading_of(item.batch_id):
            blob = NotesTree(session.repo, item.tree).note_on(oid)
            if blob is None or b"\ncertifies = " not in blob:
                continue
            receipt = record.parse_receipt(blob)
        if receipt.certifies == oid:
            return Found(receipt.batch, receipt.task, oid, "record")
    if claim is None or not BATCH_ID.match(claim.batch) or not TASK_ID.match(claim.task):
        return None
    return Found(BatchId(claim.batch), TaskId(claim.task), oid, "trailers")
