"""The scope's matcher and real git must agree on every pattern that `check_glob` lets pass."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from git_batch.core.scope import Scope, check_glob
from tests.tries import tries

NAMES = ["a", "b", "ab", "aab", "abab", "A", "-", "]", "[a]", "*", "**", "?", "a\\", "\\*", ".a",
         "ü", "a b", "a.b", "{a}", "^", "!", "é~", "1", "z_"]  # fmt: skip
PIECES = ["a", "b", "ab", "A", ".", "-", "*", "**", "?", "/", "/**/", "**/", "/**", "/*/", "[a]",
          "[!a]", "[^b]", "[a-c]", "[]]", "[]-a]", "[a-]", "[\\]]", "[[:alpha:]]", "[![:digit:]]",
          "[[:punct:]x]", "[[:space:]]", "[[a]", "[a[:]", "\\*", "\\[", "\\\\", "\\a", "]", "ü",
          " ", "{a}", "~", "^", "[", "[:", ":]", "[+--]", "[*-\\]]", "[[-b]"]  # fmt: skip

patterns = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    result = subprocess.run(
        ["git", "-c", "core.quotePath=false", "-c", "core.ignoreCase=false", *arguments],
        cwd=folder,
        env=environment,
        input=stdin,
        stdout=subprocess.PIPE,
        check=True,
    )
    return result.stdout


def without_clashes(names: set[str]) -> list[str]:
    """Keep only what can lie in one tree: no path is another one's folder."""
    kept: list[str] = []
    for name in sorted(names):
        if not any(name.startswith(other + "/") for other in kept):
            kept.append(name)
    return kept


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scope")
    git(folder, "init", "-q")
    return folder


@tries(120, allow=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
@given(names=st.sets(paths, min_size=5, max_size=60), globs=st.lists(patterns, max_size=6))
def test_scope_matches_exactly_what_git_lists(
    repository: Path, names: set[str], globs: list[str]
) -> None:
    tree = without_clashes(names)
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=b"x").decode().strip()
    lines = b"".join(b"100644 %s\t%s\0" % (blob.encode(), name.encode()) for name in tree)
    git(repository, "read-tree", "--empty")
    git(repository, "update-index", "-z", "--index-info", stdin=lines)
    for glob in filter(lambda text: check_glob(text) is None, globs):
        listed = git(repository, "ls-files", "-z", "--", f":(glob){glob}")
        scope = Scope([glob])
        ours = [name for name in tree if scope.match(name.encode())]
        assert sorted(ours) == sorted(listed.decode().split("\0")[:-1]), glob


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("src", b"src/a/b", True),
        ("src/", b"src/a/b", True),
        ("src/*", b"src/a/b", False),
        ("s*", b"src/a", False),
        ("s*/**", b"src/a", True),
        ("**/a", b"a", True),
        ("src/**/a", b"src/a", True),
        ("src/**", b"src", False),
        ("app/[id]", b"app/[id]/page", True),
    ],
)
def test_named_examples_are_what_git_says(
    repository: Path, glob: str, path: bytes, covered: bool
) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=b"x").strip()
    git(repository, "read-tree", "--empty")
    git(repository, "update-index", "-z", "--index-info", stdin=b"100644 %s\t%s\0" % (blob, path))
    assert bool(git(repository, "ls-files", "-z", "--", f":(glob){glob}")) is covered
    assert Scope([glob]).match(path) is covered
