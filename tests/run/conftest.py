"""A runner of child scripts that checks that it leaves nothing behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from git_batch.run import procfs
from tests.run.supervised import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    """Give a runner, and see that neither process nor descriptor of it stays."""
    linux = sys.platform == "linux"
    before = procfs.children() if linux else frozenset()
    files = len(list(Path("/dev/fd").iterdir()))
    yield Runner(tmp_path)
    if linux:
        assert procfs.children() <= before, "a child or a zombie is left"
        assert not procfs.subreaper(on=False), "this process is still a subreaper"
    assert len(list(Path("/dev/fd").iterdir())) == files, "a descriptor is left"
