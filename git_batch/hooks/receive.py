"""pre-receive and update, on a server: the same judgement on what arrives, before refs move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from git_batch.core.chain import RECORDS
from git_batch.errors import GitError
from git_batch.hooks.answer import Answer, said, told
from git_batch.hooks.judging import judge
from git_batch.hooks.updates import Update, of_pre_receive, of_update
from git_batch.repo.pushed import PushedRepository


def pre_receive(args: Sequence[str], lines: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """Judge all refs of a push together: a branch is compared with the record beside it."""
    return _receive(of_pre_receive(lines), environ)


def update(args: Sequence[str], lines: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """Judge one ref; the record has to be there before its branch."""
    return _receive(of_update(args), environ)


def _receive(updates: Sequence[Update], environ: Mapping[str, str]) -> Answer:
    repo = PushedRepository(environ)
    lines = tuple(line for each in updates for line in _set_back(repo, each))
    # A run may have gone on between reading its branch and its record for the push.
    judged = judge(repo, updates, live=lambda record: record.running, demand=repo.demands_record())
    refused = bool(lines) or any(one.refused for one in judged)
    lines += tuple(line for one in judged for line in told(one))
    return Answer(lines, refused)


def _set_back(repo: PushedRepository, each: Update) -> tuple[str, ...]:
    """Refuse a record that does not go on from the one that is here: it would forget what was."""
    if not each.ref.startswith(RECORDS) or each.old is None or each.new is None:
        return ()
    batch = each.ref.removeprefix(RECORDS)
    try:
        if repo.advances(each.old, each.new):
            return ()
        why = f"{each.new} does not go on from {each.old}, which is here"
    except GitError as error:
        why = error.message
    return said(
        "error",
        f"the record of batch '{batch}' can't be replaced: {why}",
        (f"see what is here: git fetch <remote> {each.ref}; git log FETCH_HEAD",),
    )
