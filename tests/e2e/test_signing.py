"""Signed commits and other encodings: as the person's git would make them, or refused at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from git_batch.cli.main import main
from git_batch.repo import signing
from tests.conftest import git
from tests.e2e import scene as scenes
from tests.e2e.job import (
    BRANCH,
    HEAD,
    batch,
    committed,
    everything,
    outcomes,
    task,
    tasks,
    write,
)
from tests.e2e.scene import Killer

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE = task("one", "echo one >>src/a")
PLAN = HEAD + ONE


@pytest.fixture
def ssh(repo: Path, home: Path) -> Path:
    """Have commits signed by a throw-away ssh key; give its public half."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    key = home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub")
    (home / "allowed").write_text(f"t@x {public.read_text()}")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingKey", str(public)),
        ("gpg.ssh.allowedSignersFile", str(home / "allowed")),
        ("commit.gpgSign", "true"),
    ):
        git(repo, "config", name, value)
    return public


@pytest.fixture
def gpg(repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have commits signed by a throw-away gpg key; give its owner's address."""
    if shutil.which("gpg") is None or shutil.which("gpgconf") is None:
        pytest.skip("needs gpg")
    folder = home / "g"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(folder))
    args = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "T <t@x>"]
    made = subprocess.run([*args, "ed25519", "sign", "never"], capture_output=True, timeout=30)
    if made.returncode:
        pytest.skip(f"gpg makes no key here: {made.stderr.decode(errors='replace')}")
    git(repo, "config", "commit.gpgSign", "true")
    yield "t@x"
    subprocess.run(["gpgconf", "--kill", "all"], check=False)


def is_good(top: Path, rev: str) -> bool:
    """Have git verify a signature."""
    found = subprocess.run(["git", "verify-commit", rev], cwd=top, capture_output=True)
    return found.returncode == 0


# --- signing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ssh", "gpg"])
def test_commits_are_signed_if_the_person_has_them_signed(
    repo: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(kind)
    write(repo, ONE, task("two", "echo two >>src/b"))
    batch(repo, "start", "-y")
    assert committed(repo) == ["one", "two"]
    assert is_good(repo, BRANCH)
    assert is_good(repo, f"{BRANCH}~1")
    assert not is_good(repo, "main")
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""


def test_a_signer_is_tried_once_before_anything_is_written(repo: Path, home: Path) -> None:
    calls = home / "calls"
    program = home / "signer"
    program.write_text(f'#!/bin/sh\necho x >>{calls}\necho "no secret key" >&2\nexit 2\n')
    program.chmod(0o755)
    git(repo, "config", "gpg.program", str(program))
    git(repo, "config", "commit.gpgSign", "true")
    write(repo, ONE)
    before = everything(repo)
    done = batch(repo, "start", "-y", status=3)
    assert "signing does not work" in done.err
    assert "gpg failed to sign the data" in done.err
    assert any("git commit-tree -S" in hint for hint in done.hints)
    assert everything(repo) == before
    assert calls.read_text() == "x\n"


def test_a_dry_run_tells_that_signing_fails(repo: Path) -> None:
    git(repo, "config", "gpg.program", "/bin/false")
    git(repo, "config", "commit.gpgSign", "true")
    write(repo, ONE)
    batch(repo, "start", "--dry-run", status=3)


def test_a_signer_that_waits_for_somebody_has_a_time_limit(
    repo: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    program = home / "signer"
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o755)
    git(repo, "config", "gpg.program", str(program))
    git(repo, "config", "commit.gpgSign", "true")
    write(repo, ONE)
    before = everything(repo)
    monkeypatch.setattr(signing, "LIMIT", 0.5)
    monkeypatch.chdir(repo)
    assert main(["start", "-y"]) == 3
    assert "no answer within 0.5 seconds" in capfd.readouterr().err
    assert everything(repo) == before


def test_a_signer_that_fails_later_leaves_the_task_settled(ssh: Path, repo: Path) -> None:
    # The key goes away while the task runs; nothing of it is lost and nothing runs again.
    key, runs = ssh.with_suffix(""), repo.parent / "runs"
    write(repo, task("one", f"echo one >>src/a; echo x >>{runs}; mv {key} {key}.gone"))
    done = batch(repo, "start", "-y", status=1)
    assert "could not be committed" in done.out
    assert committed(repo) == []
    assert tasks(repo)["one"]["state"] == "settled"
    Path(f"{key}.gone").rename(key)
    batch(repo, "resume")
    assert committed(repo) == ["one"]
    assert is_good(repo, BRANCH)
    assert runs.read_text() == "x\n"


def test_resume_knows_a_signed_commit_by_what_it_says_not_by_its_id(gpg: str, place: Path) -> None:
    # gpg signs with the time, so a commit that is made again has another id. Killed where the
    # branch has moved and the record has not: the commit that is there is taken.
    scene = scenes.make(place / "origin", PLAN)
    git(scene.top, "config", "commit.gpgSign", "true")
    with Killer() as killer:
        with scenes.copied(scene, place / "goal") as copy:
            steps = killer.run(copy, "start").steps
        moves = [n for n, step in enumerate(steps, 1) if step == "refs/heads/batch/demo moved"]
        for n in (moves[-1] - 1, moves[-1]):
            with scenes.copied(scene, place / str(n)) as copy:
                assert killer.run(copy, "start", kill=n).killed
                there = copy.git("rev-parse", BRANCH)
                assert killer.run(copy, "resume", kill_orphans=True).state
                assert committed(copy.top) == ["one"]
                assert is_good(copy.top, BRANCH)
                if n == moves[-1]:
                    assert copy.git("rev-parse", BRANCH) == there
                assert (copy.top / "src/a").read_text() == "a\none\n"
                assert copy.git("status", "--porcelain") == "?? batch.toml"


# --- encoding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("signed", [False, True], ids=["plain", "signed"])
def test_a_commit_is_written_in_the_encoding_that_the_person_names(
    repo: Path, signed: bool, request: pytest.FixtureRequest
) -> None:
    if signed:
        request.getfixturevalue("ssh")
    git(repo, "config", "i18n.commitEncoding", "ISO-8859-1")
    git(repo, "config", "user.name", "Jürgen")
    write(repo, ONE.replace("Do one", "Prüfe Maße"), task("two", "echo two >>src/b"))
    batch(repo, "start", "-y")
    raw = subprocess.run(
        ["git", "cat-file", "commit", f"{BRANCH}~1"], cwd=repo, stdout=subprocess.PIPE, check=True
    ).stdout
    assert b"\nencoding ISO-8859-1\n" in raw
    assert "Prüfe Maße\n".encode("latin-1") in raw
    assert b"author J\xfcrgen <" in raw
    asked = ("-c", "i18n.logOutputEncoding=UTF-8", "log", "-1", "--format=%s %an")
    assert git(repo, *asked, f"{BRANCH}~1") == "Prüfe Maße Jürgen"
    assert committed(repo) == ["one", "two"]
    assert batch(repo, "show", "one").status == 0
    if signed:
        assert is_good(repo, f"{BRANCH}~1")


def test_what_the_encoding_has_no_letter_for_is_written_in_utf_8(repo: Path) -> None:
    git(repo, "config", "i18n.commitEncoding", "ISO-8859-1")
    write(repo, ONE.replace("Do one", "日本 ✓"))
    batch(repo, "start", "-y")
    assert b"encoding" not in os.fsencode(git(repo, "cat-file", "commit", BRANCH))
    name = git(repo, "-c", "i18n.logOutputEncoding=UTF-8", "log", "-1", "--format=%s", BRANCH)
    assert name == "日本 ✓"


@pytest.mark.parametrize("name", ["UTF-16", "no-such-thing", "rot13"])
def test_an_encoding_that_no_commit_can_be_written_in_is_refused(repo: Path, name: str) -> None:
    git(repo, "config", "i18n.commitEncoding", name)
    write(repo, ONE)
    before = everything(repo)
    done = batch(repo, "start", "-y", status=3)
    assert f"'i18n.commitEncoding' is '{name}'" in done.err
    assert everything(repo) == before


def test_a_name_that_is_not_utf_8_is_refused_or_read_in_its_encoding(repo: Path) -> None:
    subprocess.run(["git", "config", "user.name", b"J\xfcrgen"], cwd=repo, check=True)
    write(repo, ONE)
    before = everything(repo)
    done = batch(repo, "start", "-y", status=3)
    assert "name is not UTF-8" in done.err
    assert everything(repo) == before
    git(repo, "config", "i18n.commitEncoding", "ISO-8859-1")
    batch(repo, "start", "-y")
    name = git(repo, "-c", "i18n.logOutputEncoding=UTF-8", "log", "-1", "--format=%an", BRANCH)
    assert name == "Jürgen"


# --- identity (case 17, g and h) ------------------------------------------------------------------


def test_identity_from_the_environment_alone_works(repo: Path, home: Path) -> None:
    git(repo, "config", "--global", "--unset", "user.name")
    git(repo, "config", "--global", "--unset", "user.email")
    write(repo, ONE)
    before = everything(repo)
    done = batch(repo, "start", "-y", status=3)
    assert "git does not know who you are" in done.err
    assert everything(repo) == before
    env = {
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@x",
        "GIT_COMMITTER_NAME": "Bob",
        "GIT_COMMITTER_EMAIL": "bob@x",
    }
    batch(repo, "start", "-y", env=env)
    assert git(repo, "log", "-1", "--format=%an %ae %cn %ce", BRANCH) == "Ada ada@x Bob bob@x"
    assert outcomes(repo) == {"one": "committed"}
