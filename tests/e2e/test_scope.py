"""What lies outside a task's scope never reaches its commit, however it got into the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, committed, here, outcomes, task, tasks, write

GO_ON = task("next", "echo n >src/next")
REPO = "git init -q sub; echo x >sub/f; git -C sub add f; git -C sub commit -qm x"

STRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "created": ("echo >README", ("README",)),
    "changed": ("echo evil >>.gitignore", (".gitignore",)),
    "deleted": ("rm src/../.gitignore", (".gitignore",)),
    "renamed out": ("mv src/a a", ("a",)),
    "renamed in": ("mv .gitignore src/x", (".gitignore",)),
    "mode": ("chmod +x .gitignore", (".gitignore",)),
    "to a link": ("rm .gitignore; ln -s src/a .gitignore", (".gitignore",)),
    "link": ("ln -s /etc/passwd link", ("link",)),
    "to a folder": ("rm .gitignore; mkdir .gitignore; echo >.gitignore/x", (".gitignore",)),
    "case only": ("mkdir SRC; mv src/a SRC/a", ("SRC/a",)),
    "staged": ("echo >README; git add README", ("README",)),
    "committed": ("echo >README; git add README; git commit -qm mine", ("README",)),
    "staged and hidden": (
        "echo evil >>.gitignore; git update-index --assume-unchanged .gitignore",
        (".gitignore",),
    ),
    "skipped": (
        "echo evil >>.gitignore; git update-index --skip-worktree .gitignore",
        (".gitignore",),
    ),
    "committed, then gone from the tree": (
        "echo >README; git add README; git commit -qm mine; git rm -q --cached README",
        ("README",),
    ),
    "several": ("echo >b; echo >c; rm .gitignore; echo >z", (".gitignore", "b", "c", "z")),
    "a newline in its name": ("echo >'a\nb'", ("a\\nb",)),
    "not UTF-8": ("echo >$(printf 'caf\\351')", ("caf",)),
    "magic": ("echo >':(glob)src'", (":(glob)src",)),
    "next to the scope": ("mkdir srcs; echo >srcs/a", ("srcs/a",)),
    "repository": (REPO, ("sub",)),
    "repository, staged": (f"{REPO}; git add sub", ("sub",)),
    "repository in the scope": (REPO.replace("sub", "src/sub"), ("src/sub",)),
    "repository in the scope, committed": (
        REPO.replace("sub", "src/sub") + "; git add src; git commit -qm x",
        ("src/sub",),
    ),
    "gitlink from nowhere": (
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; "
        "mkdir sub; echo >sub/x",
        ("sub",),
    ),
}


@pytest.mark.parametrize(("run", "paths"), STRAYS.values(), ids=STRAYS)
def test_every_stray_path_is_named_and_none_gets_anywhere(
    repo: Path, run: str, paths: tuple[str, ...]
) -> None:
    ignore = (repo / ".gitignore").read_text()
    write(repo, task("bad", f"echo >src/ok; {run}", "attempts = 1"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "scope_refused", "next": "committed"}
    assert committed(repo) == ["next"]
    entry = tasks(repo, "report")["bad"]
    named = " ".join([entry["reason"], *entry["history"][-1]["changed_paths"]])
    for path in paths:
        assert path in named
    assert git(repo, "diff", "--name-only", "main", BRANCH).split() == ["src/next"]
    assert "160000" not in git(repo, "ls-tree", "-r", BRANCH)
    assert (repo / ".gitignore").read_text() == ignore
    assert git(repo, "status", "--porcelain", "-uall") == "?? batch.toml"


def test_what_went_wrong_a_file_could_be_named_so_that_it_made_a_hint(repo: Path) -> None:
    name, shown = "x\nhint: rm it\ncreated: y", '"x\\nhint: rm it\\ncreated: y"'
    run = 'test -e "$BATCH_FEEDBACK" && cp "$BATCH_FEEDBACK" src/told || '
    write(repo, task("bad", f"{run}echo >'{name}'"), task("worse", f"echo >'{name}'; exit 1"))
    done = here(repo, "start", "--yes", status=1)
    assert "bad: its work is kept" in done.err
    assert git(repo, "show", f"{BRANCH}:src/told").splitlines()[-1] == f"created: {shown}"
    reason = tasks(repo, "report")["bad"]["history"][0]["reason"]
    assert reason == f"changed '{shown}': outside the scope"
    (repo / name).touch()
    refused = here(repo, "resume", status=3)
    assert f"\t{shown}\n" in refused.err
    assert "hint: rm it" not in refused.err.splitlines()


def test_a_retry_is_told_every_stray_path(repo: Path) -> None:
    run = 'if test -e "$BATCH_FEEDBACK"; then cp "$BATCH_FEEDBACK" src/told; '
    run += "else for i in $(seq 60); do echo >x$i; done; fi"
    write(repo, task("bad", run))
    here(repo, "start", "--yes")
    told = git(repo, "show", f"{BRANCH}:src/told")
    assert "created: x1\n" in told
    assert "and 10 more" in told


def test_links_in_scope_are_committed_as_links_and_nothing_behind_them_is_read(
    repo: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret\n")
    run = f"ln -s {secret} src/link; ln -s {secret}/key src/key; ln -s nowhere src/none; "
    run += "chmod +x src/a"
    write(repo, task("good", run, 'check = "true"'))
    here(repo, "start", "--yes")
    lines = git(repo, "ls-tree", "-r", BRANCH, "src/").splitlines()
    listed = {line.split("\t")[1]: line.split(" ")[0] for line in lines}
    assert listed["src/link"] == listed["src/key"] == listed["src/none"] == "120000"
    assert listed["src/a"] == "100755"
    assert git(repo, "cat-file", "-p", f"{BRANCH}:src/key") == f"{secret}/key"
    assert "secret\n" not in blobs(repo)
    assert "symbolic links: src/key, src/link, src/none" in here(repo, "report").out
    assert "src/key, src/link, src/none" in here(repo, "show", "good").out
    assert tasks(repo, "report")["good"]["history"][0]["links"][0] == "src/key"


def blobs(repo: Path) -> list[str]:
    listed = git(repo, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    oids = [line.split(" ")[0] for line in listed if " blob " in line]
    return [git(repo, "cat-file", "-p", oid) + "\n" for oid in oids]


def test_a_path_through_a_link_is_not_taken(repo: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    run = f"rm -r src; ln -s {outside} src; echo x >src/new"
    write(repo, task("bad", run, "attempts = 1"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo)["next"] == "committed"
    assert committed(repo) == ["next"]
    assert (outside / "new").read_text() == "x\n"
    assert (repo / "src/a").read_text() == "a\n"


def test_a_case_only_rename_in_scope_is_committed(repo: Path) -> None:
    write(repo, task("good", "mv src/a src/A"))
    here(repo, "start", "--yes")
    assert git(repo, "ls-tree", "--name-only", BRANCH, "src/").split() == ["src/A", "src/b"]


def test_an_ignored_file_is_taken_if_the_scope_names_it_literally(repo: Path) -> None:
    run = "echo 1 >src/x.log; echo 2 >src/y.log"
    write(repo, task("named", run, 'scope = ["src/x.log"]'), task("glob", run))
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"named": "committed", "glob": "empty"}
    assert "src/x.log" in git(repo, "ls-tree", "-r", "--name-only", BRANCH)
    assert "src/y.log" not in git(repo, "ls-tree", "-r", "--name-only", BRANCH)


@pytest.mark.parametrize("run", ["echo >>src/a", "rm src/a", "chmod +x src/a", "mv src/a src/c"])
def test_protect_wins_over_the_scope(repo: Path, run: str) -> None:
    write(repo, task("bad", run, 'protect = ["src/a"]', "attempts = 1"), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "protected_changed", "next": "committed"}
    assert "src/a" in tasks(repo)["bad"]["reason"]
    assert (repo / "src/a").read_text() == "a\n"


# --- checks that change the tree ------------------------------------------------------------------


CHECKS: dict[str, tuple[str, str]] = {
    "in scope": ("echo >src/left", "src/left"),
    "what the command made": ("echo >>src/ok", "src/ok"),
    "outside the scope": ("echo >left", "left"),
    "a tracked file": ("echo >>.gitignore", ".gitignore"),
    "deleted": ("rm src/a", "src/a"),
    "mode": ("chmod +x src/a", "src/a"),
    "staged": ("echo >src/left; git add src/left", "src/left"),
    "committed": ("echo >src/left; git add src/left; git commit -qm x", "src/left"),
}


@pytest.mark.parametrize(("check", "path"), CHECKS.values(), ids=CHECKS)
def test_a_check_that_changes_the_tree_is_found_and_leaves_nothing(
    repo: Path, check: str, path: str
) -> None:
    write(repo, task("bad", "echo >src/ok", f'check = "{check}"'), GO_ON)
    here(repo, "start", "--yes", status=1)
    assert outcomes(repo) == {"bad": "check_changed_tree", "next": "committed"}
    assert path in tasks(repo)["bad"]["reason"]
    assert git(repo, "diff", "--name-only", "main", BRANCH).split() == ["src/next"]
    assert git(repo, "status", "--porcelain", "-uall") == "?? batch.toml"


def test_what_a_check_leaves_ignored_enters_no_commit(repo: Path) -> None:
    check = 'check = "mkdir -p build; echo x >build/out; echo y >src/trace.log"'
    write(repo, task("good", "echo >src/ok", check), GO_ON)
    here(repo, "start", "--yes")
    assert git(repo, "diff", "--name-only", "main", BRANCH).split() == ["src/next", "src/ok"]


@pytest.mark.parametrize(("check", "scans"), [("", 1), ('check = "true"', 2)])
def test_a_task_costs_two_scans_with_checks_and_one_without(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str, scans: int
) -> None:
    trace = tmp_path / "trace"
    counts = []
    for n in (1, 3):
        monkeypatch.setenv("GIT_TRACE", str(trace))
        write(repo, *(task(f"t{i}", f"echo >src/{n}-{i}", check) for i in range(n)))
        here(repo, "start", "--yes", "--branch", f"b{n}")
        said = trace.read_text(errors="replace")
        counts.append(sum("git add" in line or "git status" in line or "built-in: git add" in line
                          for line in said.splitlines()))  # fmt: skip
        monkeypatch.delenv("GIT_TRACE")
        trace.unlink()
        git(repo, "switch", "-q", "main")
    assert counts[1] - counts[0] == 2 * scans
