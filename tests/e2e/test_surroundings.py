"""What surrounds a command and has nothing to do with it: it must not stand in its way."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.e2e.job import LIMIT, argv, batch, committed, task, write
from tests.e2e.scene import environment


def test_certificates_that_are_gone_kept_every_command_from_the_repository(repo: Path) -> None:
    seen = repo.parent / "seen"
    write(repo, task("one", f"echo $SSL_CERT_FILE:$SSL_CERT_DIR >{seen}; echo 1 >src/1"))
    env = environment() | {"SSL_CERT_FILE": "/nowhere/ca.pem", "SSL_CERT_DIR": "/nowhere"}
    done = subprocess.run(argv("start", "--yes"), cwd=repo, env=env, timeout=LIMIT)
    assert done.returncode == 0
    assert committed(repo) == ["one"]
    assert seen.read_text() == "/nowhere/ca.pem:/nowhere\n"  # a task's own tools need it


@pytest.mark.parametrize("line", ["start --yes", "check"])
def test_any_package_with_a_plugin_for_pydantic_had_its_code_run_on_a_plan(
    repo: Path, line: str
) -> None:
    write(repo, task("one", "printenv PYDANTIC_DISABLE_PLUGINS && exit 9; echo 1 >src/1"))
    place, mark = repo.parent / "packages", repo.parent / "mark"
    info = place / "snooper-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: snooper\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pydantic]\nsnooper = snooper:plugin\n")
    (place / "snooper.py").write_text(
        f"open({str(mark)!r}, 'w').close()\nclass plugin:\n"
        "    def new_schema_validator(self, *args): return None, None, None\n"
    )
    env = environment() | {"PYTHONPATH": str(place)}
    found = "from importlib.metadata import entry_points as e; print(*e(group='pydantic'))"
    sees = subprocess.run([argv()[0], "-c", found], env=env, capture_output=True, text=True)
    assert "snooper" in sees.stdout, "pydantic would find it"
    done = subprocess.run(argv(*line.split()), cwd=repo, env=env, timeout=LIMIT)
    assert done.returncode == 0
    assert not mark.exists()


@pytest.mark.parametrize(
    "line",
    ["start --yes", "resume", "status", "check plan.toml", "new", "verify", "hooks status",
     "hooks run pre-push"],
)  # fmt: skip
def test_in_a_directory_that_is_gone_every_command_was_a_bug(tmp_path: Path, line: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rmdir {shlex.quote(str(gone))}; exec {shlex.join(argv(*line.split()))}"
    done = subprocess.run(["sh", "-c", script], cwd=gone, env=environment(), timeout=LIMIT,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode == 3
    assert "error: can't say what the current directory is: No such file" in done.stderr
    assert "hint: if it was removed" in done.stderr


@pytest.mark.parametrize("entry", ["", "."])
def test_what_went_wrong_a_git_in_the_working_tree_was_ours(repo: Path, entry: str) -> None:
    """Where PATH begins with the current directory, be it by an empty entry."""
    mark = repo.parent / "mark"
    (repo / ".git/info/exclude").write_text("/git\n")
    hook = repo / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    plant = f'printf "#!/bin/sh\\ntouch {mark}\\n" >git; chmod +x git; echo 1 >src/1'
    write(repo, task("one", plant), task("two", "echo 2 >src/2"))
    env = {"PATH": f"{entry}:{os.environ['PATH']}"}
    batch(repo, "start", "--yes", env=env)
    batch(repo, "status", env=env)
    batch(repo, "verify", env=env)
    assert (repo / "git").exists()
    assert not mark.exists()
    assert committed(repo) == ["one", "two"]
