"""What git's hooks ask is answered by one function of `hooks` each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from git_batch.errors import BatchError, UsageError
from git_batch.hooks.answer import Answer, said

REFUSES = ("pre-push", "pre-receive", "update")
"""Hooks in which what can't be told is refused; the others are a courtesy."""


def answer(
    name: str, args: Sequence[str], lines: Sequence[str], environ: Mapping[str, str]
) -> Answer:
    """Answer what one of git's hooks asks.

    Raises:
        UsageError: it is not one of ours.
    """
    try:
        return _hook(name)(args, lines, environ)
    except BatchError as error:
        if isinstance(error, UsageError):
            raise
        refused = name in REFUSES
        kind = "error" if refused else "warning"
        return Answer(said(kind, error.message, error.hints), refused)


def _hook(name: str) -> Callable[[Sequence[str], Sequence[str], Mapping[str, str]], Answer]:
    """Import what answers a hook: each has milliseconds only."""
    match name:
        case "pre-push":
            from git_batch.hooks.pre_push import pre_push

            return pre_push
        case "pre-receive":
            from git_batch.hooks.receive import pre_receive

            return pre_receive
        case "update":
            from git_batch.hooks.receive import update

            return update
        case "reference-transaction":
            from git_batch.hooks.moving import reference_transaction

            return reference_transaction
        case "post-rewrite":
            from git_batch.hooks.rewritten import post_rewrite

            return post_rewrite
    raise UsageError(f"git-batch has no hook '{name}'", "git batch hooks status lists them")
