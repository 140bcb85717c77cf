"""post-rewrite: say at once that an amend or a rebase broke a batch's branch. Never refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from git_batch.hooks.answer import Answer, said
from git_batch.hooks.judging import judge
from git_batch.hooks.updates import Update
from git_batch.repo.pushed import PushedRepository


def post_rewrite(args: Sequence[str], lines: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """Look at the branch that is checked out after a rewrite.

    Args:
        args: "amend" or "rebase".
        lines: old id, new id; the branch that they are on is not among them.
    """
    repo = PushedRepository(environ)
    branch = repo.symbolic()
    tip = repo.resolve(branch) if branch else None
    if branch is None or tip is None:
        return Answer()  # in the middle of a rebase: git runs this hook again at its end
    what = args[0] if args else "rewrite"
    told: tuple[str, ...] = ()
    for one in judge(repo, [Update(branch, tip, source=branch)], live=lambda _: False):
        if one.drifts:
            told += said("warning", f"this {what} broke a batch's branch: {one.error}", one.hints)
            told += _undo(lines, tip)
            if what == "rebase":
                told += (f"hint: to rebase a batch: git batch rebase {one.batch} --onto REV",)
    return Answer(told)


def _undo(lines: Sequence[str], tip: str) -> tuple[str, ...]:
    """Name the commit that the branch was at before."""
    before = [words[0] for words in (line.split() for line in lines) if words[1:2] == [tip]]
    return (f"hint: before, the branch was at {before[-1]}",) if before else ()
