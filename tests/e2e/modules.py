"""A repository with a submodule."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import git

ALLOWED = ("-c", "protocol.file.allow=always")
"""What lets git take a submodule from a folder."""


def with_module(repo: Path, tmp_path: Path) -> Path:
    """Give a repository a submodule `mod`, and say where that is."""
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    (other / "f").write_text("f\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "f")
    git(repo, *ALLOWED, "submodule", "-q", "add", str(other), "mod")
    git(repo, "commit", "-qm", "module")
    return repo / "mod"
