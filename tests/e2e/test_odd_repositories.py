"""Repositories of unusual shape (case 17, reliability D): they work, or are refused with a way out.

What is compared is what `git add` and `git commit` would have made there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import (
    BRANCH,
    batch,
    committed,
    everything,
    outcomes,
    refs,
    task,
    tasks,
    write,
)

ONE = task("one", "echo one >>src/a")
TWO = task("two", "echo two >src/new; rm src/b", 'blocked_by = ["one"]')


def changed(top: Path, base: str = "main") -> str:
    """List what the batch changed."""
    return git(top, "diff", "--name-status", base, BRANCH)


def is_clean(top: Path) -> None:
    """See that index and working tree are as the branch, but for the plan."""
    assert git(top, "status", "--porcelain", "-uall") in ("?? batch.toml", "")


def add_folders(top: Path) -> None:
    """Add folders that a sparse checkout leaves out."""
    for path in ("lib/x", "lib/deep/y", "docs/z"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(f"{path}\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "folders")


# --- indexes and sparse checkouts -----------------------------------------------------------------


@pytest.mark.parametrize("mode", [["--cone"], ["--cone", "--sparse-index"], ["--no-cone"]], ids=str)
def test_a_sparse_checkout_loses_nothing_that_it_leaves_out(repo: Path, mode: list[str]) -> None:
    add_folders(repo)
    git(repo, "sparse-checkout", "set", *mode, "src" if "--no-cone" not in mode else "/src/")
    write(repo, ONE, TWO, task("bad", "echo bad >>src/a; exit 3"))
    batch(repo, "start", "-y", status=1)
    assert outcomes(repo) == {"one": "committed", "two": "committed", "bad": "run_failed"}
    assert changed(repo) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"
    is_clean(repo)
    assert not (repo / "lib").exists()
    skipped = git(repo, "ls-files", "-t").splitlines() if "--sparse-index" not in mode else []
    assert all(line.startswith("S ") for line in skipped if "/" in line and "src/" not in line)
    # The person goes on as before.
    git(repo, "sparse-checkout", "disable")
    assert (repo / "lib/deep/y").read_text() == "lib/deep/y\n"
    is_clean(repo)


@pytest.mark.parametrize("mode", [["--cone"], ["--cone", "--sparse-index"]], ids=str)
@pytest.mark.parametrize(
    ("scope", "outcome"), [("lib/**", "committed"), ("src/**", "scope_refused")]
)
def test_a_file_written_outside_of_the_cone_is_seen(
    repo: Path, mode: list[str], scope: str, outcome: str
) -> None:
    add_folders(repo)
    git(repo, "sparse-checkout", "set", *mode, "src")
    run = "mkdir -p lib; echo new >lib/new; echo other >lib/x"
    write(repo, task("one", run, f'scope = ["{scope}"]', "attempts = 1"))
    batch(repo, "start", "-y", status=int(outcome != "committed"))
    assert outcomes(repo) == {"one": outcome}
    if outcome == "committed":
        assert changed(repo) == "A\tlib/new\nM\tlib/x"
    else:
        assert "'lib/new'" in tasks(repo)["one"]["reason"]
    assert git(repo, "ls-tree", "-r", "--name-only", BRANCH).count("lib/deep/y") == 1
    is_clean(repo)


@pytest.mark.parametrize(
    "how",
    [
        ["update-index", "--split-index"],
        ["update-index", "--index-version", "4"],
        ["update-index", "--untracked-cache"],
        ["config", "index.skipHash", "true"],
        ["config", "core.splitIndex", "true"],
        ["config", "core.untrackedCache", "true"],
        ["config", "feature.manyFiles", "true"],
        ["config", "core.fileMode", "false"],
        ["config", "core.ignoreStat", "true"],
        ["config", "core.checkStat", "minimal"],
        ["config", "core.trustctime", "false"],
        ["config", "core.preloadIndex", "false"],
        ["config", "core.quotePath", "false"],
        ["config", "status.showUntrackedFiles", "no"],
        ["config", "diff.noprefix", "true"],
        ["config", "color.ui", "always"],
        ["config", "commit.verbose", "true"],
        ["config", "log.showSignature", "true"],
        ["config", "add.ignoreErrors", "true"],
        ["config", "CORE.IgnoreCase", "true"],
    ],
    ids=lambda how: "-".join(how[1:]),
)
def test_settings_of_index_and_output_change_nothing(repo: Path, how: list[str]) -> None:
    git(repo, *how)
    if how[1] == "status.showUntrackedFiles":
        (repo / ".git/info/exclude").write_text("/batch.toml\n")
    write(repo, ONE, TWO)
    batch(repo, "start", "-y")
    assert changed(repo) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"
    is_clean(repo)


def test_an_untracked_file_is_seen_though_status_does_not_show_any(repo: Path) -> None:
    git(repo, "config", "status.showUntrackedFiles", "no")
    (repo / "mine").write_text("mine\n")
    write(repo, ONE)
    assert "mine" in batch(repo, "start", "-y", status=3).err


def test_a_file_system_monitor_is_kept(repo: Path) -> None:
    monitor = repo.parent / "monitor"
    monitor.write_text('#!/bin/sh\nprintf "token\\0/\\0"\n')
    monitor.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(monitor))
    git(repo, "update-index", "--fsmonitor")
    git(repo, "status")
    write(repo, ONE, TWO)
    batch(repo, "start", "-y")
    assert changed(repo) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"
    is_clean(repo)
    assert b"FSMN" in (repo / ".git/index").read_bytes()


# --- content: filters, encodings, line ends (reliability 24) --------------------------------------


def as_git_adds(top: Path, path: str, data: bytes) -> str:
    """Give the blob that `git add` makes of a file, in a copy of the repository."""
    copy = top.parent / "copy"
    shutil.copytree(top, copy, symlinks=True)
    (copy / path).write_bytes(data)
    git(copy, "add", path)
    blob = git(copy, "rev-parse", f":{path}")
    shutil.rmtree(copy)
    return blob


CONTENT: list[tuple[str, list[tuple[str, str]], bytes]] = [
    ("*.t filter=up", [("filter.up.clean", "tr a-z A-Z"), ("filter.up.smudge", "tr A-Z a-z")],
     b"text\n"),
    ("*.t filter=up", [("filter.up.clean", "tr a-z A-Z"), ("filter.up.smudge", "tr A-Z a-z"),
                       ("filter.up.required", "true")], b"text\n"),
    ("*.t working-tree-encoding=UTF-16LE-BOM", [], "tëxt\n".encode("utf-16")),
    ("*.t text eol=crlf", [], b"one\r\ntwo\r\n"),
    ("*.t text=auto", [("core.autocrlf", "true")], b"one\r\ntwo\r\n"),
    ("", [("core.autocrlf", "input")], b"one\r\ntwo\n"),
    ("*.t -text", [("core.autocrlf", "true")], b"one\r\ntwo\n"),
    ("*.t ident", [], b"$Id$\n"),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "config", "data"), CONTENT, ids=range(len(CONTENT)))
def test_the_committed_blob_is_what_git_add_would_have_made(
    repo: Path, attributes: str, config: list[tuple[str, str]], data: bytes
) -> None:
    (repo / ".gitattributes").write_text(f"{attributes}\n")
    for name, value in config:
        git(repo, "config", name, value)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "attributes")
    expected = as_git_adds(repo, "src/z.t", data)
    source = repo.parent / "source"
    source.write_bytes(data)
    write(
        repo,
        task("one", f"cp {source} src/z.t", 'check = "git status --porcelain"'),
        task("two", f"rm src/a; cat {source} >>src/z.t; exit 3", 'blocked_by = ["one"]'),
    )
    batch(repo, "start", "-y", status=1)
    assert committed(repo) == ["one"]
    assert git(repo, "rev-parse", f"{BRANCH}:src/z.t") == expected
    # The second task failed; its change is put back, through the smudge filter.
    is_clean(repo)
    assert expected == git(repo, "hash-object", "--path=src/z.t", "src/z.t")


FILTER = """\
import sys

def read():
    size = sys.stdin.buffer.read(4)
    if not size: sys.exit()
    n = int(size, 16)
    return sys.stdin.buffer.read(n - 4) if n > 4 else None

def packets():
    while (packet := read()) is not None:
        yield packet

def write(*parts):
    for data in parts:
        sys.stdout.buffer.write(b"%04x" % (len(data) + 4) + data if data is not None else b"0000")
    sys.stdout.buffer.flush()

list(packets())
write(b"git-filter-server\\n", b"version=2\\n", None)
list(packets())
write(b"capability=clean\\n", b"capability=smudge\\n", None)
while True:
    command = [p for p in packets()][0]
    data = b"".join(packets())
    if b"fail" in data and command == b"command=clean\\n":
        write(b"status=error\\n", None)
        continue
    out = b"pointer " + data if b"clean" in command else data.removeprefix(b"pointer ")
    write(b"status=success\\n", None, out, None, None)
"""


@pytest.fixture
def process_filter(repo: Path) -> Path:
    """Set up a long-running filter as of git-lfs."""
    program = repo.parent / "filter.py"
    program.write_text(FILTER)
    git(repo, "config", "filter.big.process", f"python3 {program}")
    git(repo, "config", "filter.big.required", "true")
    (repo / ".gitattributes").write_text("*.bin filter=big\n")
    (repo / "src/old.bin").write_text("old\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "filter")
    return program


def test_a_filter_that_stays_running_works(repo: Path, process_filter: Path) -> None:
    write(repo, task("one", "echo data >src/x.bin; echo more >>src/old.bin"))
    batch(repo, "start", "-y")
    assert git(repo, "cat-file", "blob", f"{BRANCH}:src/x.bin") == "pointer data"
    assert git(repo, "cat-file", "blob", f"{BRANCH}:src/old.bin") == "pointer old\nmore"
    assert (repo / "src/x.bin").read_text() == "data\n"
    is_clean(repo)


UNFIT = [
    ("filter", "fail", "clean filter 'big' failed"),
    ("clean", "fail", "clean filter 'bad' failed"),
    ("safecrlf", "one\\r\\ntwo\\n", "CRLF would be replaced by LF"),
]


@pytest.mark.parametrize(("kind", "data", "said"), UNFIT, ids=[kind for kind, _, _ in UNFIT])
def test_a_file_that_git_refuses_parks_its_task_and_no_other(
    repo: Path, process_filter: Path, kind: str, data: str, said: str
) -> None:
    name = "x.bin" if kind == "filter" else "x.t"
    if kind == "clean":
        (repo / ".gitattributes").write_text("*.bin filter=big\n*.t filter=bad\n")
        git(repo, "config", "filter.bad.clean", "! grep fail")
        git(repo, "config", "filter.bad.required", "true")
        git(repo, "commit", "-qam", "other")
    if kind == "safecrlf":
        git(repo, "config", "core.autocrlf", "input")
        git(repo, "config", "core.safecrlf", "true")
    write(
        repo,
        task("one", f"printf '{data}' >src/{name}; echo old >>src/old.bin; echo one >>src/a"),
        task("two", "echo two >>src/b"),
    )
    batch(repo, "start", "-y", status=1)
    found = tasks(repo)["one"]
    assert (found["outcome"], found["attempts"]) == ("commit_failed", 1)
    assert said in found["reason"]
    assert committed(repo) == ["two"]
    (attempt,) = tasks(repo, "report")["one"]["history"]
    kept = subprocess.run(
        ["git", "cat-file", "blob", f"{attempt['ref']}:src/{name}"], cwd=repo, capture_output=True
    )
    assert kept.stdout.decode() == data.encode().decode("unicode_escape")
    assert git(repo, "show", f"{attempt['ref']}:src/a") == "a\none"
    is_clean(repo)
    assert (repo / "src/old.bin").read_text() == "old\n"


def test_a_file_that_the_checks_or_a_hook_made_unfit_parks_its_task(
    repo: Path, process_filter: Path
) -> None:
    path = repo / ".git/hooks/pre-commit"
    path.write_text("#!/bin/sh\ngit diff --cached --quiet -- src/b || echo fail >src/h.bin\n")
    path.chmod(0o755)
    write(
        repo,
        task("one", "echo one >>src/a", 'check = "echo fail >src/c.bin"', "attempts = 1"),
        task("two", "echo two >>src/b", "attempts = 1"),
        task("three", "echo three >>src/a"),
    )
    batch(repo, "start", "-y", status=1)
    assert outcomes(repo) == {
        "one": "commit_failed",
        "two": "commit_failed",
        "three": "committed",
    }
    is_clean(repo)


def test_what_not_even_kept_work_can_hold_stops_the_run_and_stays(repo: Path) -> None:
    (repo / ".gitattributes").write_text("*.t working-tree-encoding=UTF-16LE-BOM\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "attributes")
    flag = repo.parent / "flag"
    write(repo, task("one", f"test -e {flag} || printf abc >src/x.t; echo one >>src/a"))
    done = batch(repo, "start", "-y", status=1)
    assert "failed to encode 'src/x.t'" in done.err
    assert any("git batch resume" in hint for hint in done.hints)
    assert (repo / "src/x.t").read_bytes() == b"abc"
    assert batch(repo, "status").status == 0
    again = batch(repo, "resume", status=1)
    assert "failed to encode 'src/x.t'" in again.err
    (repo / "src/x.t").unlink()
    flag.touch()
    batch(repo, "resume")
    assert committed(repo) == ["one"]
    is_clean(repo)


# --- where the repository is, and how it was asked for --------------------------------------------


def test_a_linked_working_tree_works_and_leaves_the_main_one_alone(repo: Path) -> None:
    top = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", "-b", "other", str(top))
    write(top, ONE, TWO)
    batch(top, "start", "-y")
    assert changed(top) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"
    is_clean(top)
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_batch_runs_inside_a_submodule(repo: Path, template: Path) -> None:
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(template), "mod")
    git(repo, "commit", "-qm", "module")
    top = repo / "mod"
    git(top, "switch", "-q", "-C", "main")
    write(top, ONE)
    batch(top, "start", "-y")
    assert changed(top) == "M\tsrc/a"
    assert git(repo, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert BRANCH not in git(repo, "branch", "--list", "--format=%(refname:short)")


@pytest.mark.parametrize("dirt", ["tracked", "untracked", "commit"])
def test_a_dirty_submodule_is_listed_and_its_files_stay(
    repo: Path, template: Path, dirt: str
) -> None:
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(template), "mod")
    git(repo, "commit", "-qm", "module")
    write(repo, ONE)
    before = git(repo, "rev-parse", "HEAD:mod")
    if dirt == "commit":
        git(repo / "mod", "commit", "-q", "--allow-empty", "-m", "more")
    else:
        (repo / "mod/src" / ("a" if dirt == "tracked" else "new")).write_text("mine\n")
    done = batch(repo, "start", "-y", status=3)
    assert "\tmod" in done.err
    # A `git stash` at the top, which it said, finds nothing to save there.
    way = done.hints[0].partition("put them away: ")[2]
    subprocess.run(["/bin/sh", "-c", way], cwd=repo, check=True)
    batch(repo, "start", "-y")
    assert changed(repo) == "M\tsrc/a"
    assert git(repo, "rev-parse", f"{BRANCH}:mod") == before
    assert (repo / "mod/src/a").exists()


def test_what_went_wrong_what_a_task_left_in_a_submodule_could_not_be_put_away(
    repo: Path, template: Path
) -> None:
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(template), "a mod")
    git(repo, "commit", "-qm", "module")
    run = "echo x >>'a mod/src/a'; echo x >'a mod/new'; exit 1"
    write(repo, task("one", run))
    batch(repo, "start", "-y", status=1)
    batch(repo, "retry", "one")
    done = batch(repo, "resume", status=3)
    way = done.hints[0].partition("put them away: ")[2]
    subprocess.run(["/bin/sh", "-c", way], cwd=repo, check=True)
    batch(repo, "resume", status=1)
    assert outcomes(repo) == {"one": "run_failed"}


@pytest.mark.parametrize(("scope", "outcome"), [("mod", "committed"), ("src/**", "scope_refused")])
def test_a_submodules_commit_moves_only_in_scope(
    repo: Path, template: Path, scope: str, outcome: str
) -> None:
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(template), "mod")
    git(repo, "commit", "-qm", "module")
    run = "git -C mod commit -q --allow-empty -m more"
    write(repo, task("one", run, f'scope = ["{scope}"]', "attempts = 1"))
    batch(repo, "start", "-y", status=int(outcome != "committed"))
    assert outcomes(repo) == {"one": outcome}
    assert git(repo, "ls-tree", BRANCH, "mod").startswith("160000 commit")
    is_clean(repo)


def test_a_git_directory_elsewhere_works(repo: Path) -> None:
    away = repo.parent / "away.git"
    (repo / ".git").rename(away)
    git(repo, "--git-dir", str(away), "config", "core.worktree", str(repo))
    hook = away / "hooks/pre-commit"
    hook.write_text("#!/bin/sh\ngit diff --cached --name-only >seen.log\n")
    hook.chmod(0o755)
    write(repo, ONE)
    env = {"GIT_DIR": str(away)}
    batch(repo, "start", "-y", env=env)
    assert git(repo, "--git-dir", str(away), "diff", "--name-only", "main", BRANCH) == "src/a"
    assert (repo / "seen.log").read_text() == "src/a\n"


def test_a_git_file_that_points_elsewhere_works(repo: Path) -> None:
    git(repo, "init", "-q", "--separate-git-dir", str(repo.parent / "away.git"))
    write(repo, ONE, TWO)
    batch(repo, "start", "-y")
    assert changed(repo) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"


@pytest.mark.parametrize(
    "env",
    [
        {"GIT_DIR": ".git"},
        {"GIT_DIR": ".git", "GIT_WORK_TREE": "."},
        {"GIT_INDEX_FILE": "/nowhere/index"},
        {"GIT_OBJECT_DIRECTORY": "/nowhere"},
        {"GIT_CEILING_DIRECTORIES": "/"},
        {"GIT_PREFIX": "src/", "GIT_REFLOG_ACTION": "x", "GIT_QUARANTINE_PATH": "/nowhere"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"},
        {"GIT_CONFIG_PARAMETERS": "'core.bare'='true'"},
        {"GIT_LITERAL_PATHSPECS": "1", "GIT_NAMESPACE": "x", "GIT_ATTR_SOURCE": "HEAD"},
        {"GIT_TRACE": "1", "GIT_PAGER": "false", "GIT_EXTERNAL_DIFF": "false"},
    ],
    ids=lambda env: "-".join(env),
)
def test_variables_that_bind_git_elsewhere_change_nothing(repo: Path, env: dict[str, str]) -> None:
    seen = repo.parent / "seen"
    write(repo, task("one", f"git rev-parse --show-toplevel >{seen}; echo one >>src/a"))
    batch(repo, "start", "-y", env=env)
    assert changed(repo) == "M\tsrc/a"
    assert seen.read_text() == f"{repo}\n"
    is_clean(repo)


@pytest.mark.parametrize("where", ["hook", "alias", "subdirectory", "symlink"])
def test_it_does_not_matter_from_where_it_is_started(repo: Path, where: str) -> None:
    import sys

    from tests.e2e.scene import environment

    command = f"{sys.executable} -m git_batch start -y"
    write(repo, ONE)
    (repo / "sub").mkdir()
    link = repo.parent / "link"
    link.symlink_to(repo)
    argv, cwd = ["sh", "-c", command], repo
    if where == "hook":
        path = repo / ".git/hooks/post-checkout"
        path.write_text(f"#!/bin/sh\ntest $(git rev-parse --abbrev-ref HEAD) = go && {command}\n")
        path.chmod(0o755)
        argv = ["git", "switch", "-q", "-c", "go"]
    elif where == "alias":
        argv, cwd = ["git", "-c", f"alias.go=!{command}", "go"], repo / "src"
    elif where == "subdirectory":
        cwd = repo / "src"
    else:
        cwd = link / "src"
    done = subprocess.run(argv, cwd=cwd, env=environment(), capture_output=True, text=True)
    assert "completed" in done.stderr, done
    assert changed(repo) == "M\tsrc/a"
    is_clean(repo)


@pytest.mark.parametrize("name", [b"with space", b"caf\xe9", b"-dash", b"q'uote\"s", b"$(id)"])
def test_a_path_of_any_bytes_works(repo: Path, name: bytes) -> None:
    top = repo.parent / os.fsdecode(name)
    repo.rename(top)
    write(top, ONE, TWO, task("bad", "echo bad >>src/a; exit 3"))
    batch(top, "start", "-y", status=1)
    assert changed(top) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"
    is_clean(top)


def test_a_path_with_a_line_break_is_refused(repo: Path) -> None:
    top = repo.parent / "line\nbreak"
    repo.rename(top)
    write(top, ONE)
    before = everything(top)
    done = batch(top, "start", "-y", status=3)
    assert "contains a line break" in done.err
    assert everything(top) == before


# --- object stores --------------------------------------------------------------------------------


def test_a_partial_clone_fetches_what_it_needs(repo: Path) -> None:
    add_folders(repo)
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(repo, "config", "uploadpack.allowAnySHA1InWant", "true")
    top = repo.parent / "clone"
    source = f"file://{repo}"
    git(repo.parent, "clone", "-q", "--filter=blob:none", "--sparse", source, str(top))
    git(top, "sparse-checkout", "set", "src")
    missing = git(top, "rev-list", "--objects", "--all", "--missing=print").count("?")
    assert missing
    write(top, ONE, TWO, task("bad", "echo bad >>src/a; exit 3"))
    batch(top, "start", "-y", status=1)
    assert changed(top) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"
    is_clean(top)
    for command in (["report"], ["show", "one", "--diff"], ["log"], ["status", "--json"]):
        assert batch(top, *command).status == 0


def test_an_old_style_partial_clone_works(repo: Path) -> None:
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "extensions.partialClone", "origin")
    write(repo, ONE)
    batch(repo, "start", "-y")
    assert changed(repo) == "M\tsrc/a"


def test_a_shallow_clone_works(repo: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    top = repo.parent / "clone"
    git(repo.parent, "clone", "-q", "--depth=1", f"file://{repo}", str(top))
    write(top, ONE, TWO)
    batch(top, "start", "-y")
    assert changed(top) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"


def test_borrowed_objects_work(repo: Path) -> None:
    top = repo.parent / "clone"
    git(repo.parent, "clone", "-q", "--shared", str(repo), str(top))
    write(top, ONE, TWO)
    batch(top, "start", "-y")
    assert changed(top) == "M\tsrc/a\nD\tsrc/b\nA\tsrc/new"
    assert (top / ".git/objects/info/alternates").exists()


def test_replaced_objects_are_not_believed(repo: Path) -> None:
    # With the replacement the base would have another tree, and the task nothing to do.
    forged = git(repo, "commit-tree", "HEAD^{tree}", "-m", "forged")
    git(repo, "replace", "HEAD", forged)
    write(repo, ONE)
    batch(repo, "start", "-y")
    raw = git(repo, "--no-replace-objects", "cat-file", "commit", BRANCH)
    assert f"parent {git(repo, '--no-replace-objects', 'rev-parse', 'main')}" in raw


def test_a_task_goes_on_after_everything_was_packed(repo: Path) -> None:
    write(repo, task("one", "echo one >>src/a; git gc -q --prune=now; git pack-refs --all"), TWO)
    batch(repo, "start", "-y")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""


# --- refused, with the reason and the way out -----------------------------------------------------


def test_sha256_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "base")
    write(tmp_path, ONE)
    before = everything(tmp_path)
    done = batch(tmp_path, "start", "-y", status=3)
    assert "object format 'sha256'" in done.err
    assert done.hints
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "value"), [("refStorage", "reftable"), ("noSuchThing", "true"), ("objectFormat", "x")]
)
def test_an_unknown_extension_is_refused_by_name(repo: Path, name: str, value: str) -> None:
    git(repo, "config", "core.repositoryFormatVersion", "1")
    config = repo / ".git/config"
    config.write_text(f"{config.read_text()}[extensions]\n\t{name} = {value}\n")
    write(repo, ONE)
    before = everything(repo)
    done = batch(repo, "start", "-y", status=3)
    assert name.lower() in done.err.lower()
    assert everything(repo) == before


def test_a_bare_repository_is_refused(repo: Path) -> None:
    done = batch(repo / ".git", "start", "-y", status=3)
    assert "working tree" in done.err
    bare = repo.parent / "bare.git"
    git(repo.parent, "clone", "-q", "--bare", str(repo), str(bare))
    done = batch(bare, "start", "-y", status=3)
    assert "bare repository" in done.err
    assert any("git worktree add" in hint for hint in done.hints)


def test_no_commit_yet_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, ONE)
    done = batch(tmp_path, "start", "-y", status=3)
    assert "there is no commit yet" in done.err


@pytest.mark.parametrize(
    ("begin", "word"),
    [
        ("git merge other", "merge"),
        ("git rebase other", "rebase"),
        ("git cherry-pick other", "cherry-pick"),
        ("git revert --no-edit other", "revert"),
        ("git bisect start", "bisect"),
        ("git format-patch -1 --stdout other | git am", "am"),
        (
            "echo stash >src/a; git stash -q; echo x >src/a; git commit -qam x; git stash pop",
            "src/a",
        ),
    ],
)
def test_in_the_middle_of_something_it_is_refused(repo: Path, begin: str, word: str) -> None:
    git(repo, "switch", "-q", "-c", "other")
    (repo / "src/a").write_text("other\n")
    git(repo, "commit", "-qam", "other")
    git(repo, "switch", "-q", "main")
    (repo / "src/a").write_text("main\n")
    git(repo, "commit", "-qam", "main")
    subprocess.run(begin, shell=True, cwd=repo, capture_output=True)
    write(repo, ONE)
    before, had = everything(repo), refs(repo)
    done = batch(repo, "start", "-y", status=3)
    assert word in done.err
    assert done.hints
    assert (everything(repo), refs(repo)) == (before, had)
