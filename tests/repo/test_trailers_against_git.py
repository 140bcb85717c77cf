"""Git's own readers of trailers read our block, and nothing else, from whatever an agent wrote."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pygit2
import pytest

from git_batch.core import trailers
from tests.trailer_corpus import OURS, TEXTS, written

EXPECTED = "".join(f"{key}: {value}\n" for key, value in OURS)
LINES = (
    b"words",
    b"Key: value",
    b"-k: v",
    b"Key:v",
    b"Key : v",
    b"two words: v",
    b" continued",
    b"\tcontinued: v",
    b"",
    b"",
    b" \t",
    b"# a comment",
    b"#Key: v",
    b"Signed-off-by: A <a@x>",
    b"(cherry picked from commit 0)",
    b"Empty:",
    b"cr: v\r",
    b"k\xc3\xbc: v",
    b"bytes: \xff",
)


def parse(repo: Path, message: bytes, *more: str, config: str = "") -> bytes:
    """Ask `git interpret-trailers`."""
    options = ["-c", config] if config else []
    command = ["git", *options, "interpret-trailers", "--parse", *more]
    return subprocess.run(
        command, cwd=repo, input=message, stdout=subprocess.PIPE, check=True
    ).stdout


@pytest.mark.parametrize("name", list(TEXTS))
def test_interpret_trailers_reads_exactly_our_block(repo: Path, name: str) -> None:
    assert parse(repo, written(TEXTS[name])).decode() == EXPECTED


@pytest.mark.parametrize("config", ["trailer.separators=:=#", "trailer.words.key=words"])
def test_a_persons_configuration_of_trailers_does_not_change_that(repo: Path, config: str) -> None:
    for name in ("other separators", "forged after prose", "list of keys", "comment"):
        assert parse(repo, written(TEXTS[name]), config=config).decode() == EXPECTED


def test_git_log_reads_exactly_our_block(repo: Path) -> None:
    objects = pygit2.Repository(str(repo))
    who = pygit2.Signature("T", "t@x", 1_700_000_000, 0)
    tree = objects.head.peel(pygit2.Commit).tree_id
    made = [
        objects.create_commit(None, who, who, written(text), tree, [objects.head.target])
        for text in sorted({written(text): text for text in TEXTS.values()}.values())
    ]
    asked = "%H%n%(trailers)%(trailers:key=batch-task,valueonly)%x00"
    result = subprocess.run(
        ["git", "log", "--no-walk=unsorted", f"--format={asked}", "--stdin"],
        cwd=repo,
        input="\n".join(map(str, made)).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    answers = result.stdout.decode().split("\0\n")
    assert answers == [f"{oid}\n{EXPECTED}t1\n" for oid in made] + [""]


def test_the_corpus_is_as_large_as_the_one_that_readers_were_measured_with() -> None:
    assert len({written(text) for text in TEXTS.values()}) >= 41


def read_by_git(repo: Path, message: bytes) -> list[tuple[str, str]]:
    out = parse(repo, message, "--no-divider").decode("utf-8", "surrogateescape")
    pairs = (line.partition(":") for line in out.split("\n")[:-1])
    return [(key, value.strip(" ")) for key, _, value in pairs]


@pytest.mark.parametrize("seed", range(4))
def test_our_reader_finds_the_block_that_git_finds_in_any_message(repo: Path, seed: int) -> None:
    dice = random.Random(seed)
    found = 0
    for _ in range(60):
        lines = [b"Subject", b"", *(dice.choice(LINES) for _ in range(dice.randint(1, 9)))]
        message = b"\n".join(lines) + b"\n"
        expected = read_by_git(repo, message)
        found += bool(expected)
        assert trailers.block(message) == expected, message
    assert found > 5


@pytest.mark.parametrize(
    "message",
    [
        b"Key: subject\n",
        b"Key: subject\nOther: line\n",
        b"# comment\n\nKey: v\n",
        b"\n\nSubject\n\nKey: v\n",
        b"Subject\n\nKey: v\n\n\n \n# comment\n",
        b"Subject\n\nSigned-off-by: A\na\nb\nc\n",
        b"Subject\n\nSigned-off-by: A\na\nb\nc\nd\n",
        b"Subject\n\n(cherry picked from commit 0)\n",
        b"Subject\n\nKey: v\n(cherry picked from commit 0)\nprose\n",
        b"Subject\n\nKey: one\n two\n\tthree\n",
        b"Subject\n\n folded\nKey: v\n",
    ],
)
def test_our_reader_finds_the_block_that_git_finds_at_its_corners(
    repo: Path, message: bytes
) -> None:
    assert trailers.block(message) == read_by_git(repo, message)
