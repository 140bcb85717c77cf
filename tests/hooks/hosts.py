"""What the tests of hooks share: commands as a person gives them, hooks that tell what they got."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from git_batch.cli.main import main

TELLS = '#!/bin/sh\nprintf "%s|%s|" "$0" "$*" >>"$TOLD"; cat >>"$TOLD"; exit "${ENDS-0}"\n'
"""A hook that writes down its name, arguments and input; `$ENDS` is its exit status."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    said: str


def hooks(top: Path, *args: str, status: int = 0) -> str:
    """Run `git batch hooks` in this process, insist on its exit status, give what it said."""
    out = io.StringIO()
    with contextlib.chdir(top), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        found = main(["hooks", *args])
    assert found == status, out.getvalue()
    return out.getvalue()


def active(top: Path, *args: str) -> dict[str, bool]:
    """Say which hooks are active, as `status --json` has it."""
    out = io.StringIO()
    with contextlib.chdir(top), contextlib.redirect_stdout(out):
        main(["hooks", "status", "--json", *args])
    found: dict[str, Any] = json.loads(out.getvalue())
    return {hook["name"]: hook["active"] for hook in found["hooks"]}


def call(top: Path, *args: str, env: Mapping[str, str] | None = None, input: str = "") -> Done:
    """Run a command, whatever comes of it."""
    result = subprocess.run(
        args,
        cwd=top,
        env={**os.environ, **(env or {})},
        input=input.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=50,
    )
    return Done(result.returncode, result.stdout.decode())


def write_hook(path: Path, text: str = TELLS, mode: int = 0o755) -> Path:
    """Write a hook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Read every entry of a folder: mode, and content or target."""
    found = {}
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        text = str(path.readlink()) if stat.S_ISLNK(mode) else path.read_text()
        found[path.name] = (mode, text)
    return found
