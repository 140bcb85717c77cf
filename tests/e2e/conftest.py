"""Where the tests with real processes work, and what they share."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e import scene as scenes
from tests.e2e.scene import Killer, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = Path("/dev/shm")


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


@pytest.fixture
def repo(template: Path, place: Path) -> Path:
    """Give the repository of `tests/conftest.py` in memory, where there is such a thing."""
    top = place / "repo"
    shutil.copytree(template, top, symlinks=True)
    return top


@pytest.fixture
def killer() -> Iterator[Killer]:
    """Give a harness."""
    with Killer() as made:
        yield made


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a file that whatever is planted makes; tasks know it as $MARK."""
    path = tmp_path / "mark"
    monkeypatch.setenv("MARK", str(path))
    return path


@pytest.fixture
def scene(place: Path) -> Scene:
    """Give the repository of the harness, to be copied for each kill."""
    return scenes.make(place / "origin")
