"""Signed authorizations: made by git with the person's key, judged by git wherever one asks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, Done, everything, task, told, write
from tests.e2e.job import here as batch
from tests.hooks.hosts import hooks

PARKS = task("one", "echo one >>src/a", "attempts = 1", 'check = "test -e ../go"')


def key(home: Path, name: str) -> Path:
    """Make an ssh key; give its public half."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    place = home / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place)], check=True)
    return place.with_suffix(".pub")


@pytest.fixture
def signer(repo: Path, home: Path) -> Path:
    """Give the repository a signing key whose owner is allowed; commits stay unsigned."""
    public = key(home, "key")
    (home / "allowed").write_text(f"t@x {public.read_text()}")
    git(repo, "config", "gpg.format", "ssh")
    git(repo, "config", "user.signingKey", str(public))
    git(repo, "config", "gpg.ssh.allowedSignersFile", str(home / "allowed"))
    return public


def verified(top: Path, status: int) -> Done:
    return batch(top, "verify", status=status)


def test_a_signed_authorization_is_told_and_holds(repo: Path, signer: Path) -> None:
    write(repo, task("one", "echo one >>src/a"))
    batch(repo, "start", "--yes", "--sign")
    assert told(repo)["authorization"]["signed"] is True
    verified(repo, 0)
    git(repo, "config", "batch.requireSigned", "true")
    verified(repo, 0)
    assert "gpgsig" not in git(repo, "cat-file", "commit", BRANCH), "commits as the person has them"


def test_an_unsigned_authorization_does_not_hold_where_one_is_demanded(
    repo: Path, signer: Path
) -> None:
    write(repo, task("one", "echo one >>src/a"))
    batch(repo, "start", "--yes")
    verified(repo, 0)
    git(repo, "config", "batch.requireSigned", "true")
    assert "authorization not signed" in verified(repo, 4).out


def test_a_signer_who_is_not_allowed_is_refused(repo: Path, home: Path, signer: Path) -> None:
    write(repo, task("one", "echo one >>src/a"))
    batch(repo, "start", "--yes", "--sign")
    (home / "allowed").write_text(f"somebody@else {key(home, 'other').read_text()}")
    git(repo, "config", "batch.requireSigned", "true")
    assert "badly signed" in verified(repo, 4).out


def test_without_allowed_signers_nothing_can_be_told(repo: Path, signer: Path) -> None:
    write(repo, task("one", "echo one >>src/a"))
    batch(repo, "start", "--yes", "--sign")
    git(repo, "config", "--unset", "gpg.ssh.allowedSignersFile")
    assert "can't be checked" in verified(repo, 3).out


def test_every_renewal_has_to_be_signed_as_well(repo: Path, signer: Path) -> None:
    git(repo, "config", "batch.requireSigned", "true")
    write(repo, PARKS, task("two", "echo two >>src/b"))
    batch(repo, "start", "--yes", "--sign", "--max-tasks", "1", status=1)
    verified(repo, 0)
    batch(repo, "resume", "--yes", "--max-tasks", "+1", status=1)
    verified(repo, 4)


def test_signing_that_does_not_work_is_refused_before_anything_is_written(repo: Path) -> None:
    write(repo, task("one", "echo one >>src/a"))
    git(repo, "config", "gpg.format", "ssh")
    git(repo, "config", "user.signingKey", "/nowhere/key.pub")
    before = everything(repo)
    refused = batch(repo, "start", "--yes", "--sign", status=3)
    assert "signing does not work" in refused.err
    assert everything(repo) == before


@pytest.mark.parametrize("command", ["start", "resume"])
@pytest.mark.parametrize("configured", [True, False])
def test_what_went_wrong_the_configuration_was_blamed_for_what_an_option_asked(
    repo: Path, command: str, configured: bool
) -> None:
    write(repo, task("one", "exit 1"))
    if command == "resume":
        batch(repo, "start", "--yes", status=1)
        batch(repo, "retry", "one")
    git(repo, "config", "gpg.format", "ssh")
    git(repo, "config", "user.signingKey", "/nowhere/key.pub")
    git(repo, "config", "commit.gpgSign", str(configured).lower())
    done = batch(repo, command, "--yes", "--sign", status=3)
    wants = "your configuration wants signed" if configured else "'--sign' wants a signed"
    assert done.err.startswith(f"error: {wants}")
    assert "signing does not work" in done.err
    assert any("commit.gpgSign false" in hint for hint in done.hints) is configured
    assert any("leave '--sign' out" in hint for hint in done.hints) is not configured


def test_a_server_takes_only_signed_batches_if_it_says_so(
    repo: Path, home: Path, place: Path, signer: Path
) -> None:
    server = place / "server.git"
    git(repo, "clone", "-q", "--bare", str(repo), str(server))
    git(repo, "remote", "add", "origin", str(server))
    hooks(server, "install")
    git(server, "config", "batch.requireSigned", "true")
    git(server, "config", "gpg.ssh.allowedSignersFile", str(home / "allowed"))
    write(repo, task("one", "echo one >>src/a"))
    batch(repo, "start", "--yes")
    name = told(repo)["batch_id"]
    push = ["git", "push", "-q", "--atomic", "origin", BRANCH, f"refs/notes/batch/{name}"]
    refused = subprocess.run(push, cwd=repo, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "not signed" in refused.stderr
    write(repo, task("one", "echo one >>src/a"), name="again.toml")
    git(repo, "switch", "-q", "main")
    text = (repo / "again.toml").read_text().replace('slug = "demo"', 'slug = "again"')
    (repo / "again.toml").write_text(text)
    batch(repo, "start", "--yes", "--sign", "again.toml", "--allow-untracked")
    name = told(repo)["batch_id"]
    push = ["git", "push", "-q", "--atomic", "origin", "batch/again", f"refs/notes/batch/{name}"]
    taken = subprocess.run(push, cwd=repo, capture_output=True, text=True)
    assert taken.returncode == 0, taken.stderr
