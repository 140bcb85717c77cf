"""What is to be moved, in the four ways in which hooks are told: lines, arguments, environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from git_batch.core.ids import Oid

HEADS = "refs/heads/"
_ZERO = re.compile(r"0+\Z")


class Update(Struct, frozen=True):
    """A ref that is to be moved.

    Attributes:
        ref: its full name, of the remote in a push.
        new: the commit it shall name; None deletes it.
        old: the commit it names so far; None if it does not exist.
        source: the name it is pushed from, where there is one.
    """

    ref: str
    new: Oid | None
    old: Oid | None = None
    source: str = ""

    @property
    def is_branch(self) -> bool:
        """Whether a branch shall name a commit."""
        return self.new is not None and self.ref.startswith(HEADS)

    @property
    def names(self) -> tuple[str, ...]:
        """The short names of the branch, on either side."""
        both = dict.fromkeys((self.source, self.ref))
        return tuple(n.removeprefix(HEADS) for n in both if n.startswith(HEADS))


def of_pre_push(lines: Iterable[str]) -> list[Update]:
    """Read what git tells pre-push: local ref, local id, remote ref, remote id."""
    words = (line.split() for line in lines)
    return [Update(w[2], _oid(w[1]), _oid(w[3]), w[0]) for w in words if len(w) == 4]


def of_pre_receive(lines: Iterable[str]) -> list[Update]:
    """Read what git tells pre-receive and reference-transaction: old id, new id, ref."""
    words = (line.split() for line in lines)
    return [Update(w[2], _oid(w[1]), _oid(w[0])) for w in words if len(w) == 3]


def of_update(args: Sequence[str]) -> list[Update]:
    """Read what git tells update: ref, old id, new id."""
    return [Update(args[0], _oid(args[2]), _oid(args[1]))] if len(args) == 3 else []


def of_framework(environ: Mapping[str, str]) -> list[Update] | None:
    """Read what the pre-commit framework tells; it has read standard input itself.

    Returns:
        None where the framework does not run us. It starts its hooks for one ref of a push only.
    """
    remote, source = environ.get("PRE_COMMIT_REMOTE_BRANCH"), environ.get("PRE_COMMIT_LOCAL_BRANCH")
    if not remote or not source:
        return None
    # The name of the pushed commit is missing for a branch that shares nothing with the remote.
    new = Oid(environ.get("PRE_COMMIT_TO_REF") or source)
    return [Update(remote, new, None, source)]


def _oid(word: str) -> Oid | None:
    return None if _ZERO.match(word) else Oid(word)
