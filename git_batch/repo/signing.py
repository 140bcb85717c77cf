"""Signed commits: made by git, and tried once before a run depends on them.

`commit.gpgSign` holds for a task's commit as for a person's own; which program signs, and with
which key, is git's business (`gpg.format`, `user.signingKey`, `gpg.program`). A signer may ask for
a passphrase. So one commit that nobody sees is signed before anything is written: a person who is
there can answer, and an agent that keeps the answer does so for the run. Its object goes into a
store of its own, which is thrown away. Whoever signs has a time limit: nobody is there at night.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from git_batch.core.ids import Oid
from git_batch.errors import GitError, PreconditionError
from git_batch.repo.objects import EMPTY_TREE
from git_batch.repo.repository import Repository

LIMIT = 60.0
"""Seconds that a signature may take; long enough for a person to type a passphrase."""

_CONFIGURED = (
    "your configuration wants signed commits",
    "or leave this repository's commits unsigned: git config commit.gpgSign false",
)
_ASKED = (
    "'--sign' wants a signed authorization",
    "or leave '--sign' out: the authorization is then not signed",
)


def commit_tree(
    repo: Repository,
    *,
    tree: Oid,
    parents: Sequence[Oid],
    message: bytes,
    env: Mapping[str, str],
    encoding: str | None,
) -> Oid:
    """Have git write and sign a commit.

    Args:
        message: in `encoding`, as are the names in `env`; git writes the header but recodes
            nothing.

    Raises:
        GitError: it could not be signed, or not within `LIMIT` seconds.
    """
    args = ["-c", f"i18n.commitEncoding={encoding or 'UTF-8'}", "commit-tree", "-S", tree]
    for parent in parents:
        args += ["-p", parent]
    out = repo.git.run([*args, "-F", "-"], input=message, env=env, timeout=LIMIT)
    return Oid(out.decode("ascii").strip())


def probe(repo: Repository, who: Mapping[str, str], *, asked: bool) -> None:
    """See that a commit can be signed here and now; nothing is written to the repository.

    Args:
        who: author and committer, as variables of the environment.
        asked: it was `--sign` that wants a signature, and not the configuration.

    Raises:
        PreconditionError: it can't, with what git said.
    """
    import tempfile  # only here: status would pay for it

    with tempfile.TemporaryDirectory(prefix="git-batch-") as store:
        objects = os.path.join(repo.layout.common_dir, "objects")
        env = {
            **who,
            "GIT_OBJECT_DIRECTORY": store,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
        }
        try:
            commit_tree(
                repo,
                tree=EMPTY_TREE,
                parents=(),
                message=b"can commits be signed?\n",
                env=env,
                encoding=None,
            )
        except GitError as error:
            wants, without = _ASKED if asked else _CONFIGURED
            raise PreconditionError(
                f"{wants}, but signing does not work: {error.message}",
                "see that it works without you: git commit-tree -S HEAD^{tree} -m test",
                without,
            ) from None
