"""What the tests of the main job share: plans, commands with the status they must end with."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from git_batch.cli.main import main
from git_batch.repo.environment import variables
from tests.conftest import git
from tests.e2e.scene import environment

LIMIT = 50.0
"""Seconds after which a command is taken to hang."""

HEAD = 'version = 1\nslug = "demo"\ntitle = "Demo"\n'
BRANCH = "batch/demo"


def argv(*args: str) -> list[str]:
    """Give the command line of `git batch`."""
    return [sys.executable, "-m", "git_batch", *args]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def hints(self) -> list[str]:
        """What it says can be done about it."""
        lines = self.err.splitlines()
        return [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]


def batch(
    top: Path, *args: str, status: int = 0, env: Mapping[str, str] | None = None, input: str = ""
) -> Done:
    """Run `git batch` in a process of its own and insist on its exit status."""
    result = subprocess.run(
        argv(*args),
        cwd=top,
        env=environment() | dict(env or {}),
        input=input.encode(),
        capture_output=True,
        timeout=LIMIT,
    )
    done = Done(result.returncode, result.stdout.decode(), result.stderr.decode())
    assert done.status == status, done
    assert "Traceback" not in done.out + done.err
    return done


def task(name: str, run: str, *more: str) -> str:
    """Write a task of a plan; its scope is `src/**` unless `more` says another one."""
    lines = ["", "[[task]]", f'id = "{name}"', f'title = "Do {name}"', f"run = {json.dumps(run)}"]
    if not any(line.startswith("scope") for line in more):
        lines.append('scope = ["src/**"]')
    return "\n".join([*lines, *more, ""])


def write(top: Path, *parts: str, name: str = "batch.toml") -> Path:
    """Write a plan from its tasks."""
    path = top / name
    path.write_text(HEAD + "".join(parts))
    return path


def refs(top: Path) -> dict[str, str]:
    """List all refs and what HEAD is."""
    lines = git(top, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    found = dict(line.split(" ") for line in lines)
    return found | {"HEAD": (top / ".git/HEAD").read_text()}


def everything(top: Path) -> dict[str, tuple[int, bytes]]:
    """Read every file and folder below a directory, `.git` included: mode and bytes."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            data = path.read_bytes() if stat.S_ISREG(mode) else b""
            found[str(path.relative_to(top))] = (mode, data)
    return found


def told(top: Path, *command: str) -> Any:
    """Read a batch as JSON, here in this process: twenty times as fast as by one of its own."""
    out = io.StringIO()
    with contextlib.chdir(top), contextlib.redirect_stdout(out):
        assert main([*(command or ("status",)), "--json"]) == 0
    return json.loads(out.getvalue())


def tasks(top: Path, command: str = "status") -> dict[str, dict[str, Any]]:
    """Give the tasks of a status or report by their ids."""
    return {entry["id"]: entry for entry in told(top, command)["tasks"]}


def outcomes(top: Path) -> dict[str, str | None]:
    """Give every task's outcome as the status says it."""
    return {name: entry["outcome"] for name, entry in tasks(top).items()}


def committed(top: Path) -> list[str]:
    """List the tasks on the batch's branch, oldest first, as git reads their trailers."""
    form = "--format=%(trailers:key=Batch-Task,valueonly)"
    log = git(top, "log", "--reverse", "--first-parent", form, f"main..{BRANCH}")
    return [line for line in log.splitlines() if line]


def here(
    top: Path, *args: str, status: int | None = 0, env: Mapping[str, str] | None = None
) -> Done:
    """Run `git batch` in this process, several times as fast, and insist on its exit status.

    Args:
        status: None takes any.
    """
    out, err = io.StringIO(), io.StringIO()
    told_to = (contextlib.redirect_stdout(out), contextlib.redirect_stderr(err))
    with variables(env or {}), contextlib.chdir(top), told_to[0], told_to[1]:
        done = Done(main(args), out.getvalue(), err.getvalue())
    assert status in (None, done.status), done
    assert "Traceback" not in done.out + done.err
    return done
