"""Runs of `git batch` on a disk that fails at the n-th call: `faulty.c` is loaded into all of it.

Into git and libgit2 as well, but not into what a task runs (`unharmed`): what becomes of a command
that could not write is its own affair, and told by its exit status.
"""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.job import LIMIT, Done, argv
from tests.e2e.scene import environment

SOURCE = Path(__file__).with_name("faulty.c")
LAYOUT = "5q64s256s"
"""Of the file by which the calls are ordered to fail: `struct order`."""

WRITE, MAKE, RENAME, SYNC = 1, 2, 4, 8
"""Kinds of calls: into a file, a new name, a name moved, to disk."""

ALWAYS = 2**62


@dataclass
class Order:
    """Which calls are to fail.

    Attributes:
        kinds: of the calls that are counted.
        error: that they fail with.
        only: a piece that the path must have.
        first: the number of the first one that fails, and of the `last`; they begin with 1.
    """

    kinds: int
    error: int
    only: str = ""
    first: int = ALWAYS
    last: int = ALWAYS


@dataclass
class Faulty:
    """A run that some calls failed.

    Attributes:
        calls: how many there were of the kinds that were counted.
        failed: the first one that failed; empty if all went well.
    """

    done: Done
    calls: int
    failed: str = field(default="")


def built(folder: Path) -> Path:
    """Compile what is to be loaded; skipped where that can't be done."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    made = folder / "faulty.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"what makes calls fail can't be compiled here: {done.stderr.strip()}")
    return made


def unharmed(run: str) -> str:
    """Write the command of a task that no call fails; it goes on where git batch can't."""
    return f"exec env -u LD_PRELOAD sh -c {shlex.quote(run)}"


def faulty(library: Path, top: Path, order: Order, *args: str) -> Faulty:
    """Run a command; what lies beside the working tree may fail as well, as temporary files."""
    file = top.parent / "order"
    numbers = (0, order.first, order.last, order.kinds, order.error)
    blank = struct.pack(LAYOUT, *numbers, order.only.encode(), b"")
    file.write_bytes(blank)
    room = top.parent / "tmp"
    room.mkdir(exist_ok=True)
    env = {"LD_PRELOAD": str(library), "FAULTY": str(file), "FAULTY_UNDER": os.fspath(top.parent)}
    env["TMPDIR"] = str(room)
    result = subprocess.run(
        argv(*args), cwd=top, env=environment() | env, capture_output=True, text=True, timeout=LIMIT
    )
    count, *_, failed = struct.unpack(LAYOUT, file.read_bytes())
    done = Done(result.returncode, result.stdout, result.stderr)
    return Faulty(done, count, failed.rstrip(b"\0").decode(errors="replace"))
