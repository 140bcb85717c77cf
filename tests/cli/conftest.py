"""A repository in any state, for the tests of the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.states import Shelf

Make = Callable[[str], Path]


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Shelf:
    """Keep the states for all tests."""
    return Shelf(tmp_path_factory.mktemp("states"), template)


@pytest.fixture
def in_state(shelf: Shelf, tmp_path: Path) -> Make:
    """Give a function that makes a repository in a named state."""
    return lambda state: shelf.copy(state, tmp_path / "repo")
