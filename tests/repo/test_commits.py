"""Making and reading commits: the same facts give the same commit, as git itself would write it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from git_batch.core.ids import Oid
from git_batch.core.model import Actor
from git_batch.errors import GitError
from git_batch.repo import commits
from git_batch.repo.commits import Idents
from git_batch.repo.repository import Repository
from tests.conftest import git

AT = datetime(2025, 3, 4, 5, 6, 7, 890123, tzinfo=timezone(timedelta(hours=-9, minutes=-30)))
WHO = Idents(Actor("Ä Author", "a@x"), Actor("C Mitter", "c@x"))


@pytest.fixture
def opened(repo: Path) -> Repository:
    return Repository.open(str(repo))


def make(
    repo: Path, opened: Repository, message: bytes = b"m\n", at: datetime = AT, sign: bool = False
) -> Oid:
    tree, parent = (Oid(git(repo, "rev-parse", what)) for what in ("HEAD^{tree}", "HEAD"))
    return commits.make(
        opened, tree=tree, parents=[parent], message=message, who=WHO, at=at, sign=sign
    )


@pytest.mark.parametrize("minutes", [-570, 0, 330, 840])
@pytest.mark.parametrize("encoding", [None, "ISO-8859-1"])
@pytest.mark.parametrize("name", ["Ä Author", "O'Neil, J. (x", "one\ttab"])
@pytest.mark.parametrize("parents", [0, 1, 2])
def test_a_commit_is_the_one_that_git_would_make(
    repo: Path, opened: Repository, minutes: int, encoding: str | None, name: str, parents: int
) -> None:
    message = "Subject\n\nBödy\n\nBatch-Id: x\n".encode()
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    names = [Oid(git(repo, "rev-parse", what)) for what in ("HEAD", "HEAD~")[:parents]]
    tree = Oid(git(repo, "rev-parse", "HEAD^{tree}"))
    at = AT.astimezone(timezone(timedelta(minutes=minutes)))
    who = Idents(Actor(name, "a@x"), WHO.committer)
    made = commits.make(
        opened, tree=tree, parents=names, message=message, who=who, at=at, encoding=encoding
    )
    date = f"{int(at.timestamp())} {at.strftime('%z')}"
    word = encoding or "utf-8"
    env = {k: os.fsdecode(v.encode(word)) for k, v in who.environment().items()}
    env |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    args = ["-c", f"i18n.commitEncoding={word}", "commit-tree", tree, "-F", "-"]
    args += [word for parent in names for word in ("-p", parent)]
    theirs = opened.git.run(args, input=message.decode().encode(word), env=env).decode().strip()
    assert made == theirs


def test_the_same_facts_give_the_same_commit_and_no_ref_moves(
    repo: Path, opened: Repository
) -> None:
    refs = git(repo, "for-each-ref")
    assert make(repo, opened) == make(repo, opened)
    assert make(repo, opened) != make(repo, opened, at=AT + timedelta(seconds=1))
    assert git(repo, "for-each-ref") == refs


@pytest.mark.parametrize(
    "at", [datetime(2025, 1, 1, tzinfo=UTC), AT, AT.replace(tzinfo=timezone(timedelta(hours=14)))]
)
def test_dates_keep_their_offset(repo: Path, opened: Repository, at: datetime) -> None:
    made = make(repo, opened, at=at)
    for who in "ac":
        told = git(repo, "show", "-s", f"--format=%{who}I", made)
        assert datetime.fromisoformat(told) == at.replace(microsecond=0)
        assert datetime.fromisoformat(told).utcoffset() == at.utcoffset()


def test_what_was_made_is_read_back_to_the_byte(repo: Path, opened: Repository) -> None:
    message = b"Subject\n\n\xff bytes\n\nBatch-Id: x\n"
    made = make(repo, opened, message)
    facts = commits.read(opened, made)
    assert (facts.oid, facts.message) == (made, message)
    assert facts.parents == (git(repo, "rev-parse", "HEAD"),)
    assert facts.tree == git(repo, "rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize("oid", ["f" * 40, "not an oid", ""])
def test_a_commit_that_is_not_there_is_an_error_and_never_none(
    opened: Repository, oid: str
) -> None:
    with pytest.raises(GitError, match="can't be read"):
        commits.read(opened, Oid(oid))


def test_an_object_of_another_kind_is_no_commit(repo: Path, opened: Repository) -> None:
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    with pytest.raises(GitError, match="is not a commit"):
        commits.read(opened, Oid(tree))


def test_a_commit_without_its_tree_is_not_written(opened: Repository) -> None:
    with pytest.raises(GitError, match="could not write a commit"):
        commits.make(opened, tree=Oid("f" * 40), parents=[], message=b"m\n", who=WHO, at=AT)


def test_a_commit_that_could_not_be_written_is_never_given_as_made(
    repo: Path, opened: Repository
) -> None:
    for number in range(256):  # a file where a folder is to be made stops superusers too
        place = repo / f".git/objects/{number:02x}"
        if not place.exists():
            place.touch()
    answers = [tried(repo, opened, AT + timedelta(seconds=n)) for n in range(20)]
    assert any(isinstance(answer, GitError) for answer in answers)
    for answer in answers:
        if isinstance(answer, GitError):
            assert "could not write a commit" in answer.message
        else:
            assert git(repo, "cat-file", "-t", answer) == "commit"


def tried(repo: Path, opened: Repository, at: datetime) -> Oid | GitError:
    try:
        return make(repo, opened, at=at)
    except GitError as error:
        return error


def test_signing_is_left_to_git_and_its_failure_is_ours_to_tell(
    repo: Path, opened: Repository
) -> None:
    git(repo, "config", "gpg.program", "false")
    with pytest.raises(GitError):
        make(repo, opened, sign=True)


def test_a_signed_commit_has_the_same_parent_tree_message_and_dates(
    repo: Path, opened: Repository, tmp_path: Path
) -> None:
    signer = tmp_path / "signer"
    signer.write_text(
        "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\nx\\n-----END PGP SIGNATURE-----\\n'\n"
    )
    signer.chmod(0o755)
    git(repo, "config", "gpg.program", str(signer))
    plain = commits.read(opened, make(repo, opened))
    signed = commits.read(opened, make(repo, opened, sign=True))
    assert "gpgsig -----BEGIN" in git(repo, "cat-file", "commit", signed.oid)
    assert (signed.parents, signed.tree, signed.message) == (
        plain.parents,
        plain.tree,
        plain.message,
    )
    asked = "--format=%an %ae %aI %cn %ce %cI"
    assert git(repo, "show", "-s", asked, signed.oid) == git(repo, "show", "-s", asked, plain.oid)
