"""Where the tests with real processes work, and what they share."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.register_assert_rewrite("tests.e2e.scene")

MEMORY = Path("/dev/shm")  # noqa: S108 - a place to work, not a name


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Give a folder, in memory where there is such a thing.

    A kill is no power cut, so nothing has to get to a disk; and each run syncs a hundred times.
    What a failed test leaves stays, as it does in `tmp_path`.
    """
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="batch-test-", dir=MEMORY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
