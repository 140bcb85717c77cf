"""Signed authorizations: did a person whom git trusts confirm this batch?

With `--sign` the event that records a confirmation is a commit signed by git, with the person's own
key and program; its tree holds the plan and the authorization, so nothing of either can be changed
under it. Whether a signature counts is git's to say: `git verify-commit`, with the allowed signers
and trust of the repository that asks. `batch.requireSigned` (bool) demands one of every
authorization, here or on a server; without it, only what claims to be signed is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from git_batch.core.ids import Oid
from git_batch.core.lineage import Drift, Verdict
from git_batch.core.values import replace
from git_batch.repo.git import Git

NOT_SIGNED = "authorization not signed"
BAD_SIGNATURE = "authorization badly signed"
_WAY_OUT = "git batch resume --sign"


def with_signatures(
    git: Git,
    found: Verdict,
    record: Oid,
    signed: bool,
    before: Callable[[], None] | None = None,
) -> Verdict:
    """Add to a verdict what the signatures of the record's authorizations say.

    Args:
        record: the record's newest commit.
        signed: the authorization in force says that it is signed.
        before: called before any signature is looked at.

    Raises:
        GitError: git failed.
    """
    required = git.flag("batch.requireSigned")
    if not (required or signed):
        return found
    if before is not None:
        before()
    drifts, doubts = _looked_at(git, record, required=required)
    if drifts:
        return replace(found, status="drift", drifts=(*found.drifts, *drifts))
    if doubts and found.status == "whole":
        return replace(found, status="unknown", reason=doubts[0])
    return found


def _looked_at(git: Git, record: Oid, *, required: bool) -> tuple[list[Drift], list[str]]:
    drifts: list[Drift] = []
    doubts: list[str] = []
    for event in _authorizations(git, record):
        result = git.call(["verify-commit", event])
        if result.status == 0:
            continue
        said = result.stderr.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
        has_one = b"\ngpgsig " in git.run(["cat-file", "commit", event]).split(b"\n\n", 1)[0]
        if not has_one and required:
            drifts.append(Drift(NOT_SIGNED, f"event {event} bears no signature", None, _WAY_OUT))
        elif has_one and (required or "BAD" in said or "Could not verify" in said):
            told = f"git does not accept the signature of event {event}: {said}"
            drifts.append(Drift(BAD_SIGNATURE, told, None, _WAY_OUT))
        elif has_one:
            doubts.append(f"the signature of event {event} can't be checked here: {said}")
    return drifts, doubts


def _authorizations(git: Git, record: Oid) -> list[Oid]:
    """List the events that record a confirmation, newest first."""
    args = ["log", "--first-parent", "--fixed-strings", "--grep=Batch-Event: authorized"]
    out = git.run([*args, "--format=%H", record])
    return [Oid(line) for line in out.decode("ascii").split()]
