"""Mutated plans, records, commits, configurations and files of ours, under every command.

Reliability 37: no traceback, no command that takes more than two seconds, and each error names the
file and line, the key, the batch or the object that it is about. The parsers alone, and many more
times: `tests/core/test_mutated.py`.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, Done, everything, task, write
from tests.e2e.near import near, record, said
from tests.mutation import mutated

PLAN = "build/plan.toml"  # ignored
COMMANDS = (
    ("status",), ("status", "--json"), ("log",), ("report",), ("show", "one"), ("verify",),
    ("list",), ("find", "one"), ("check", PLAN), ("resume", "--yes", "--max-tasks", "9"),
    ("skip", "two"), ("rebase", "--yes"), ("start", "--yes", PLAN), ("prune",),
    ("hooks", "install"), ("recover",),
)  # fmt: skip
WRONG = re.compile("Traceback|a bug in git-batch")
SETTINGS = {
    "core": ("worktree", "bare", "hooksPath", "fsmonitor", "autocrlf", "quotePath", "excludesFile",
             "attributesFile", "logAllRefUpdates", "fileMode", "ignoreCase", "sparseCheckout",
             "commentChar", "compression", "bigFileThreshold"),
    "batch": ("notify", "requireSigned", "requireRecord"),
    "user": ("name", "email", "signingKey", "useConfigOnly"),
    "commit": ("gpgSign", "encoding", "template"),
    "gpg": ("format", "program"),
    "i18n": ("commitEncoding", "logOutputEncoding"),
    "extensions": ("objectFormat", "refStorage", "worktreeConfig", "partialClone", "unknown"),
    "include": ("path",),
}  # fmt: skip
ODD = (
    "", "true", "false", "maybe", "-1", "9" * 20, "/dev/null/x", "../..", ".", "\x1b[31m",
    "x" * 5000, "ssh", "latin-1", "é", "no-such-program", "a b", "~nouser/x", "sha256",
)  # fmt: skip
TIME = 2.0
RUNS = 5.0
"""Seconds that a command may take, and one that runs tasks and their checks."""

NAMED = re.compile(
    rf"""{re.escape(PLAN)}:\d+:\ | {re.escape(PLAN)}:\ .*'\w+'\ is\ missing  # file and line, or key
    | config\ line\ \d+\ in\ file | '[a-z0-9]+\.[a-zA-Z.]+'                 # git's, by line or key
    | can't\ say\ what\ '/.*\ is:\ fatal:\ .*'[^']+(?:'|\Z)  # git's, of a path; it cuts at 4 KB
    | \.git/batch/[\w./-]+                                                  # one of our files
    | \bdemo-[a-z0-9]{{6}}\b | '{BRANCH}'                                    # batch or branch
    | \b[0-9a-f]{{10,40}}\b                                                 # commit, or object""",
    re.VERBOSE,
)
"""What an error must say about what is wrong: in itself, not in its hints."""

KEYED = re.compile(r"^hint: .*git config .*\b[a-z0-9]+\.[a-zA-Z]+", re.MULTILINE)
"""But what is not set has no place, so it is enough to say how it is set."""


def of_file(path: Path, dice: random.Random) -> None:
    path.write_bytes(mutated(path.read_bytes(), dice))


def rewritten(repo: pygit2.Repository, ref: str, message: bytes | None, tree: pygit2.Oid) -> None:
    """Put a commit like a ref's newest one in its place."""
    raw = repo[repo.references[ref].target].read_raw()
    head, _, old = raw.partition(b"\n\n")
    head = re.sub(rb"^tree \w+", b"tree " + str(tree).encode(), head)
    content = head + b"\n\n" + (old if message is None else message)
    repo.references[ref].set_target(repo.odb.write(pygit2.enums.ObjectType.COMMIT, content))


def of_message(top: Path, ref: str, dice: random.Random) -> None:
    repo = pygit2.Repository(str(top))
    commit = repo.references[ref].peel(pygit2.Commit)
    rewritten(repo, ref, mutated(commit.raw_message, dice), commit.tree_id)


def of_blob(top: Path, ref: str, dice: random.Random) -> None:
    """Change one of the files of a record's tree."""
    names = git(top, "ls-tree", "-r", "-z", "--name-only", ref).split("\0")[:-1]
    path = dice.choice([name for name in names if "trees/" not in name])
    mutate(top, ref, path, mutated(of(top, f"{ref}:{path}"), dice))


def of(top: Path, name: str) -> bytes:
    """Read a blob."""
    blob = pygit2.Repository(str(top)).revparse_single(name)
    assert isinstance(blob, pygit2.Blob)
    return blob.data


def mutate(top: Path, ref: str, path: str, content: bytes) -> None:
    """Put something else in the place of a file of a record's tree."""
    repo = pygit2.Repository(str(top))
    commit = repo.references[ref].peel(pygit2.Commit)
    index = pygit2.Index()
    index.read_tree(commit.tree)
    mode = index[path].mode
    index.add(pygit2.IndexEntry(path, repo.create_blob(content), mode))
    rewritten(repo, ref, None, index.write_tree(repo))


def of_setting(top: Path, dice: random.Random) -> None:
    """Set what git or we read to something odd, in words that git can read."""
    section = dice.choice(list(SETTINGS))
    key, value = dice.choice(SETTINGS[section]), dice.choice(ODD)
    with (top / ".git/config").open("a") as file:
        file.write(f'[{section}]\n\t{key} = "{value}"\n')


def of_ours(top: Path, dice: random.Random) -> None:
    """Change one of the files that we have in the git directory."""
    files = sorted(p for p in (top / ".git/batch").rglob("*") if p.is_file() and p.stat().st_size)
    of_file(dice.choice(files), dice)


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "plan": lambda top, dice: of_file(top / PLAN, dice),
    "journal": lambda top, dice: of_message(top, record(top), dice),
    "note": lambda top, dice: of_blob(top, record(top), dice),
    "trailer": lambda top, dice: of_message(top, f"refs/heads/{BRANCH}", dice),
    "configuration": lambda top, dice: of_file(top / ".git/config", dice),
    "setting": of_setting,
    "file of ours": of_ours,
}


def errors(done: Done) -> list[str]:
    """List what was refused, each with all of its lines and without its hints."""
    said = re.split(r"^(?=error: |hint: )", done.err, flags=re.MULTILINE)
    return [part for part in said if part.startswith("error: ")]


@pytest.fixture(scope="module")
def stopped(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a batch that stopped after the first of its tasks, with settings of its own."""
    top = tmp_path_factory.mktemp("stopped") / "repo"
    shutil.copytree(template, top, symlinks=True)
    for key, value in (("batch.notify", "true"), ("batch.requireSigned", "false")):
        git(top, "config", key, value)
    git(top, "config", "i18n.commitEncoding", "ISO-8859-1")
    ends = ("two", "false"), ("three", "echo 3 >src/three")
    write(top, task("one", "echo 1 >src/one", 'check = "true"'), *(task(*end) for end in ends))
    near(top, "start", "--yes", "--max-tasks", "2", status=1)
    (top / "build").mkdir()
    (top / "batch.toml").rename(top / PLAN)
    return top


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [4, pytest.param(600, marks=pytest.mark.long)])
def test_what_is_mutated_is_read_or_refused_and_nothing_else(
    stopped: Path, place: Path, kind: str, rounds: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for n in range(rounds):
        top = place / str(n) / "repo"
        shutil.copytree(stopped, top, symlinks=True)
        dice = random.Random(f"{kind} {n}")
        KINDS[kind](top, dice)
        for command in COMMANDS if kind != "plan" else (("check", PLAN),):
            began = time.monotonic()
            done = near(top, *command, status=None)
            told = kind, n, command, done
            assert time.monotonic() - began < (TIME if "resume" not in command else RUNS), told
            assert done.status in (0, 1, 2, 3, 4), told
            assert not WRONG.search(said(done)), told
            named = (NAMED.search(error) or KEYED.search(done.err) for error in errors(done))
            assert all(named), told
        shutil.rmtree(place / str(n))


@pytest.mark.parametrize("key", ["batch_id", "slug"])
@pytest.mark.parametrize("value", ["../../x", "demo-zzzzzz", ""])
def test_what_went_wrong_a_record_that_calls_itself_by_another_name_was_gone_on_with(
    stopped: Path, place: Path, key: str, value: str
) -> None:
    """A file was written beside the repository's own, and refs by names that nobody had given."""
    top = place / "repo"
    shutil.copytree(stopped, top, symlinks=True)
    ref = record(top)
    header = of(top, f"{ref}:batch.toml").decode()
    mutate(
        top, ref, "batch.toml", re.sub(f'(?m)^{key} = ".*"$', f'{key} = "{value}"', header).encode()
    )
    before = everything(top)
    batch = ref.rpartition("/")[2]
    for command in ("status", "resume", "skip"):
        args = (command, "two") if command == "skip" else (command,)
        done = near(top, *args, status=3)
        assert (
            f"the record of '{batch}' can't be read: the header of the record can't be right"
            in done.err
        )
    after = everything(top)
    assert {path for path in after if path not in before} <= {".git/batch/run.lock"}, "no new file"


def test_what_went_wrong_resume_did_not_say_whose_newest_event_it_can_not_read(
    stopped: Path, place: Path
) -> None:
    top = place / "repo"
    shutil.copytree(stopped, top, symlinks=True)
    repo, ref = pygit2.Repository(str(top)), record(top)
    commit = repo.references[ref].peel(pygit2.Commit)
    end = re.search(rb'\[event\]\n(?:.+\n)*?stop = ("\w+")', commit.raw_message)
    assert end
    rewritten(repo, ref, commit.raw_message.replace(end[1], b'"no such"', 1), commit.tree_id)
    done = near(top, "resume", "--yes", status=3)
    assert f"the record of '{ref.rpartition('/')[2]}' can't be read: an event" in done.err


@pytest.mark.parametrize("note", ["a = " + "[" * 3000, "a = " + "9" * 5000, "record = 1"])
def test_what_went_wrong_find_met_a_bug_in_a_note_that_breaks_the_parser(
    stopped: Path, place: Path, note: str
) -> None:
    top = place / "repo"
    shutil.copytree(stopped, top, symlinks=True)
    ref = record(top)
    key = git(top, "rev-parse", f"{ref}:plan/000/one.toml")
    mutate(top, ref, f"{key[:2]}/{key[2:]}", note.encode())
    done = near(top, "find", "one", status=3)
    assert f"the record of '{ref.rpartition('/')[2]}' can't be read: a task's note" in done.err
