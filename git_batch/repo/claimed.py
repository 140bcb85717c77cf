"""What commits say of themselves, where there is no record, or before it is known which is meant.

Only a commit whose message is not plain is shown to git's own readers of trailers, by a process
each: all others are known to be read alike by everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from git_batch.core import lineage as kinds
from git_batch.core import trailers
from git_batch.core.claims import Seen, claim_of, pretends
from git_batch.core.ids import BatchId, Oid
from git_batch.core.lineage import Drift, Verdict
from git_batch.core.unrecorded import by_trailers
from git_batch.repo.git import Git
from git_batch.repo.objects import PLAIN, ObjectReader, seen_of

_GAP = 50
"""Commits without a trailer of ours after which a batch is over."""


def read_alike(git: Git, commits: Sequence[Seen]) -> Iterator[Drift]:
    """Show messages that are not plain to git's own readers of trailers."""
    for commit in commits:
        expected = _ours(trailers.block(commit.message))
        for how in ((), ("--no-divider",)):
            args = ["interpret-trailers", "--parse", *how]
            said = git.run(args, input=commit.message, env=PLAIN)
            pairs = [line.split(": ", 1) for line in said.decode("utf-8", "replace").splitlines()]
            if _ours([(p[0], p[-1]) for p in pairs]) != expected:
                why = f"'git {' '.join(args)}' reads other trailers from {commit.oid} than we do"
                yield Drift(kinds.READERS, why, commit.oid, f"git show -s --format=%B {commit.oid}")
                break


def _ours(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in pairs if key.lower().startswith("batch-")]


def by_claims(
    git: Git, reader: ObjectReader, tip: Oid, base: Oid | None, batch: BatchId | None
) -> Verdict:
    """Say what trailers alone can say of the commits down to a base, or as far as they go."""
    seen = reader.chain(tip, base) if base is not None else _batch_part(reader, tip)
    told = by_trailers(seen)
    odd = [c for c in seen if pretends(c.message) and not claim_of(c.message)[1]]
    found = [*told.drifts, *read_alike(git, odd)]
    if batch is not None and told.batch not in (None, batch):
        said = f"the commits name batch '{told.batch}', not '{batch}'"
        found.append(Drift(kinds.FORGED, said, seen[-1].oid, f"git show -s {seen[-1].oid}"))
    named = told.batch or batch
    reason = (
        f"the record of batch '{named}' is not here" if named else "no commit here is a batch's"
    )
    if told.strangers:
        many = len(told.strangers)
        carry = f"{many} commits carry" if many > 1 else "one commit carries"
        reason += f"; {carry} no trailers: {told.strangers[0]}"
    return Verdict(
        "drift" if found else "unknown",
        tuple(found),
        named,
        reason=reason,
        commits=len(seen),
        tasks=len(told.tasks),
        undone=told.undone,
    )


def _batch_part(reader: ObjectReader, tip: Oid) -> list[Seen]:
    """Read down from a tip until no commit of a batch came for a while."""
    line: list[Seen] = []
    last, oid = 0, tip
    while len(line) - last < _GAP:
        commit = reader.commit(oid)
        line.append(commit)
        if pretends(commit.message):
            last = len(line)
        if not commit.parents:
            break
        oid = commit.parents[0]
    return line[:last][::-1]


def batch_part(git: Git, tip: Oid) -> tuple[BatchId | None, Oid, list[Seen]]:
    """Take the commits of a batch at or shortly below a commit, as far as trailers tell.

    Returns:
        The batch that the newest of them names, the commit before the first, and the commits.

    Raises:
        AbsentError: a commit is missing.
    """
    with ObjectReader(git) as reader:
        seen = _batch_part(reader, tip)
    claims = (claim_of(commit.message)[0] for commit in reversed(seen))
    batch = next((BatchId(claim.batch) for claim in claims if claim is not None), None)
    base = seen[0].parents[0] if seen and seen[0].parents else tip
    return batch, base, seen


def claimants(git: Git, task: str) -> list[Seen]:
    """Find the commits on any branch or tag whose trailers may name a task; newest first."""
    args = ["rev-list", "--branches", "--tags", "--remotes", "--ignore-missing", "HEAD"]
    args += ["--fixed-strings", f"--grep={trailers.TASK}: {task}"]
    oids = git.run(args, env=PLAIN).decode("ascii").split()
    with ObjectReader(git) as reader:
        return [seen_of(Oid(name), answer) for name, answer in reader.many(oids)]
