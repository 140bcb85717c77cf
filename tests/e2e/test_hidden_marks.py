"""Marks that hide a file from git, set on our copies of the index instead of the person's.

`git update-index --assume-unchanged` and `--skip-worktree` on the copy that a scan goes by would
keep a change outside the scope out of sight: of the scope, and of the person afterwards.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import committed, outcomes, task, write
from tests.e2e.near import near


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize(
    "indexes",
    [
        [".git/batch/scan.index"],
        [".git/batch/scan.base", ".git/batch/scan.index"],
        [".git/index", ".git/batch/scan.index"],
        [".git/index", ".git/batch/scan.base", ".git/batch/scan.index"],
    ],
    ids=lambda names: "+".join(Path(name).name for name in names),
)
def test_a_change_outside_the_scope_hidden_in_our_copies_was_committed_with(
    repo: Path, mark: str, indexes: list[str]
) -> None:
    (repo / "conftest").write_text("exit 1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a check that fails")
    hide = "; ".join(f"GIT_INDEX_FILE={name} git update-index {mark} conftest" for name in indexes)
    write(
        repo,
        task(
            "a",
            f"echo 1 >src/one; echo exit 0 >conftest; {hide}",
            'check = "sh ./conftest"',
            "attempts = 1",
        ),
        task("b", "echo 2 >src/two"),
    )
    near(repo, "start", "--yes", status=1)
    assert "a" not in committed(repo)
    assert outcomes(repo)["a"] in ("tampered", "scope_refused")
    tags = [line[0] for line in git(repo, "ls-files", "-v").splitlines()]
    assert set(tags) == {"H"}, "nothing is hidden from the person either"
    assert (repo / "conftest").read_text() == "exit 1\n"
