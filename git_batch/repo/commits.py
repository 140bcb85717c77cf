"""Making and reading the commits of tasks.

A task's commit has an explicit parent, a tree that is known, and the dates of its `settled`
event, so that making it again after a crash gives the same object (unless it is signed). What
git alone can do is left to git (`signing`).

Everything above this room is UTF-8. `i18n.commitEncoding` is applied when a task's commit is made,
names and message alike, and taken back when a commit is read, so what is compared with the record
is the same bytes. What the encoding can't express is written in UTF-8 without the header: git
reads each commit by its own.
"""

from __future__ import annotations

import codecs
import os
from datetime import datetime, timedelta, timezone
from typing import cast

from msgspec import Struct

from git_batch.core.claims import Seen
from git_batch.core.ids import Oid
from git_batch.core.model import Actor
from git_batch.core.values import replace
from git_batch.errors import FSCK, GitError, PreconditionError
from git_batch.repo import signing
from git_batch.repo.libgit2 import UNREADABLE, ObjectType, pygit2
from git_batch.repo.repository import Repository
from git_batch.repo.treewrite import write_object


class Idents(Struct, frozen=True):
    """Who a commit is by; git tells them from its configuration and the environment."""

    author: Actor
    committer: Actor

    def environment(self) -> dict[str, str]:
        """Name them for git and for hooks, as git itself does."""
        return {
            "GIT_AUTHOR_NAME": self.author.name,
            "GIT_AUTHOR_EMAIL": self.author.email,
            "GIT_COMMITTER_NAME": self.committer.name,
            "GIT_COMMITTER_EMAIL": self.committer.email,
        }


class Authored(Struct, frozen=True):
    """Who made the change of a commit, and when."""

    actor: Actor
    at: datetime


def signature(actor: Actor, at: datetime, encoding: str | None = None) -> pygit2.Signature:
    """Write a person and a time as git does."""
    offset = at.utcoffset()
    minutes = int(offset.total_seconds() // 60) if offset else 0
    when = int(at.timestamp())
    return pygit2.Signature(actor.name, actor.email, when, minutes, encoding or "utf-8")


def idents(repo: Repository) -> Idents:
    """Say who works here, as git finds it.

    Raises:
        PreconditionError: git does not know, or a name is neither UTF-8 nor in the encoding that
            `i18n.commitEncoding` names.
    """
    return Idents(_in_text(repo, "author"), _in_text(repo, "committer"))


def _in_text(repo: Repository, role: str) -> Actor:
    found = repo.identity(role)
    words = []
    for word in (found.name, found.email):
        raw = os.fsencode(word)
        try:
            words.append(raw.decode("utf-8"))
        except UnicodeDecodeError:
            words.append(_in_their_encoding(repo, role, raw))
    return Actor(*words)


def _in_their_encoding(repo: Repository, role: str, raw: bytes) -> str:
    try:
        return raw.decode(encoding_of(repo) or "utf-8")
    except UnicodeDecodeError:
        raise PreconditionError(
            f"the {role}'s name is not UTF-8: {raw!a}",
            "write it in UTF-8, or name its encoding: git config i18n.commitEncoding NAME",
        ) from None


def encoding_of(repo: Repository) -> str | None:
    """Name the encoding that commits are to be written in (`i18n.commitEncoding`); None is UTF-8.

    Raises:
        PreconditionError: it is one that is not known here, or in which no commit can be written.
    """
    name = (repo.config.last("i18n.commitencoding") or "").strip()
    if name.lower() in ("", "utf-8", "utf8"):
        return None
    try:
        codecs.lookup(name)
        fits = "Batch-Id: a\n".encode(name) == b"Batch-Id: a\n"
    except (LookupError, UnicodeError, ValueError):
        fits = False
    if not fits:
        raise PreconditionError(
            f"'i18n.commitEncoding' is '{name}', in which git-batch can't write commits",
            "name another one, or have UTF-8: git config i18n.commitEncoding UTF-8",
        )
    return name


def make(
    repo: Repository,
    *,
    tree: Oid,
    parents: list[Oid],
    message: bytes,
    who: Idents,
    at: datetime,
    sign: bool = False,
    encoding: str | None = None,
    authored: Authored | None = None,
) -> Oid:
    """Write a commit object and see that it can be read back; no ref moves.

    Args:
        message: UTF-8.
        encoding: as of `encoding_of`; used if it can express message and names.
        authored: whose change it is, if not that of `who` at this time.

    Raises:
        GitError: it could not be written or signed.
    """
    written = at
    if authored is not None:
        who, written = replace(who, author=authored.actor), authored.at
    if encoding is not None:
        message, encoding = _recoded(message, who, encoding)
    if sign:
        return _signed(repo, tree, parents, message, who, (written, at), encoding)
    for oid in (tree, *parents):
        if not exists(repo, oid):
            raise GitError(f"could not write a commit: there is no object {oid}")
    people = [(b"author", who.author, written), (b"committer", who.committer, at)]
    content = _content(tree, parents, people, message, encoding)
    made = write_object(repo, ObjectType.COMMIT, content, "a commit")
    return Oid(str(made))


def _content(
    tree: Oid,
    parents: list[Oid],
    people: list[tuple[bytes, Actor, datetime]],
    message: bytes,
    encoding: str | None,
) -> bytes:
    """Write the content of a commit object as git does."""
    if b"\0" in message:
        raise GitError("could not write a commit: its message has a NUL in it")
    lines = [b"tree %s" % tree.encode(), *(b"parent %s" % p.encode() for p in parents)]
    for role, actor, at in people:
        try:
            person = signature(actor, at, encoding)
        except (pygit2.GitError, ValueError) as error:
            raise GitError(f"could not write a commit: {error}") from None
        sign, minutes = "-" if person.offset < 0 else "+", abs(person.offset)
        when = f"{person.time} {sign}{minutes // 60:02d}{minutes % 60:02d}".encode()
        lines.append(b"%s %s <%s> %s" % (role, person.raw_name, person.raw_email, when))
    lines += [] if encoding is None else [b"encoding %s" % encoding.encode()]
    return b"\n".join([*lines, b"", message])


def _recoded(message: bytes, who: Idents, encoding: str) -> tuple[bytes, str | None]:
    people = (who.author, who.committer)
    try:
        for word in (word for actor in people for word in (actor.name, actor.email)):
            word.encode(encoding)
        return message.decode("utf-8").encode(encoding), encoding
    except UnicodeError:
        return message, None


def _signed(
    repo: Repository,
    tree: Oid,
    parents: list[Oid],
    message: bytes,
    who: Idents,
    dates: tuple[datetime, datetime],
    encoding: str | None,
) -> Oid:
    stamps = [f"{int(at.timestamp())} {at.strftime('%z') or '+0000'}" for at in dates]
    env = {name: _as_bytes_of(word, encoding) for name, word in who.environment().items()}
    env |= {"GIT_AUTHOR_DATE": stamps[0], "GIT_COMMITTER_DATE": stamps[1]}
    return signing.commit_tree(
        repo, tree=tree, parents=parents, message=message, env=env, encoding=encoding
    )


def _as_bytes_of(word: str, encoding: str | None) -> str:
    """Write a name for the environment such that its bytes there are in an encoding."""
    return os.fsdecode(word.encode(encoding or "utf-8"))


def read(repo: Repository, oid: Oid) -> Seen:
    """Read a commit; its message is given in UTF-8, whatever it is stored in.

    Raises:
        GitError: it is missing, unreadable or not a commit.
    """
    commit = _commit(repo, oid)
    parents = tuple(Oid(str(p)) for p in commit.parent_ids)
    return Seen(oid, Oid(str(commit.tree_id)), parents, _in_utf8(commit))


def authored(repo: Repository, oid: Oid) -> Authored:
    """Say whose change a commit is.

    Raises:
        GitError: it is missing, unreadable or not a commit.
    """
    commit = _commit(repo, oid)
    author, encoding = commit.author, commit.message_encoding or "utf-8"
    words = []
    for raw in (author.raw_name, author.raw_email):
        try:
            words.append(raw.decode(encoding))
        except (LookupError, UnicodeError):
            words.append(raw.decode("utf-8", "replace"))
    zone = timezone(timedelta(minutes=author.offset))
    return Authored(Actor(*words), datetime.fromtimestamp(author.time, zone))


def _commit(repo: Repository, oid: Oid) -> pygit2.Commit:
    try:
        found = repo.objects[pygit2.Oid(hex=oid)]
    except UNREADABLE as error:
        raise GitError(f"commit {oid} can't be read: {error}", FSCK) from None
    if found.type != ObjectType.COMMIT:
        raise GitError(f"{oid} is not a commit")
    return cast(pygit2.Commit, found)


def _in_utf8(commit: pygit2.Commit) -> bytes:
    """Give a commit's message in UTF-8; as it is where its encoding is unknown or untrue."""
    raw, encoding = commit.raw_message, commit.message_encoding
    if not encoding:
        return raw
    try:
        return raw.decode(encoding).encode("utf-8")
    except (LookupError, UnicodeError):
        return raw


def peeled(repo: Repository, value: str) -> tuple[Oid, str, int] | None:
    """Read a commit, or the one that a tag names: its id, its committer's address, its time.

    Returns:
        None for anything that can't be read or is no commit; time in seconds since the epoch.
    """
    try:
        found = repo.objects[pygit2.Oid(hex=value)]
        while isinstance(found, pygit2.Tag):  # `peel` would read what it names by itself
            found = repo.objects[found.target]
        commit = found.peel(pygit2.Commit)
        return Oid(str(commit.id)), commit.committer.email or "", commit.commit_time
    except UNREADABLE:
        return None


def exists(repo: Repository, value: str) -> bool:
    """Say whether there is an object of this id, whatever it is and whether it can be read."""
    try:
        return pygit2.Oid(hex=value) in repo.objects.odb
    except ValueError:
        return False
