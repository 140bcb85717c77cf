"""`make demo` does what it says: the script insists on each exit status and on its own proof."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.scene import ROOT

COMMAND = """\
#!/bin/sh
exec "{python}" -m git_batch "$@"
"""


def test_the_demo_comes_to_its_end(place: Path, home: Path) -> None:
    """`git batch` and `python3` are those of these tests, wherever they are run from."""
    programs = place / "bin"
    programs.mkdir()
    command = programs / "git-batch"
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    (programs / "python3").symlink_to(sys.executable)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(place)}
    env["PATH"] = os.pathsep.join([str(programs), str(Path(sys.executable).parent), env["PATH"]])
    done = subprocess.run(
        [str(ROOT / "fixtures/demo/run")],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for shown in (
        "$ git batch start --yes",
        "1 needs a human, 2 skipped",
        "$ git batch retry license -m Apache-2.0",
        "completed: all 11 tasks are done",
        "Batch-Task: release",
    ):
        assert shown in done.stdout + done.stderr
