"""A finished batch and its remote, made once; a copy of both for each test that wants one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.hooks.hosts import hooks
from tests.hooks.pushing import copy_of, finished


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the repository and its remote."""
    return finished(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def top(made: Path, tmp_path: Path) -> Path:
    """Give a copy of it, with the client's hooks."""
    return copy_of(made, tmp_path)


@pytest.fixture
def server(top: Path) -> Path:
    """Put hooks on the server and take them from the client."""
    hooks(top, "uninstall")
    hooks(top.parent / "origin.git", "install")
    return top.parent / "origin.git"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the file in which hooks write what they got."""
    path = tmp_path / "told"
    monkeypatch.setenv("TOLD", str(path))
    return path


@pytest.fixture
def remote(repo: Path, tmp_path: Path) -> Path:
    """Give `repo` a bare remote called origin."""
    path = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", str(path))
    git(repo, "remote", "add", "origin", str(path))
    return path
