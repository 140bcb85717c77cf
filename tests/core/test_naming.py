"""Things named in sentences: whatever they are called, a sentence stays one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core.codec import unquote
from git_batch.core.naming import few, few_facts, few_lines, few_of, path_text, shell_path


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["a"], "'a'"),
        (["a", "b", "c"], "'a', 'b', 'c'"),
        (["a", "b", "c", "d", "e"], "'a', 'b', 'c' and 2 more"),
    ],
)
def test_a_few_are_named_and_the_others_counted(names: list[str], said: str) -> None:
    assert few(names) == said


def test_whatever_is_cut_says_how_much_is_left_out() -> None:
    said = ["a", "b", "c"]
    assert few_of(said, 2) == "a, b and 1 more"
    assert few_facts(said, 2) == "a; b; and 1 more"
    assert few_lines(said, 2) == "\ta\n\tb\n\t… and 1 more"
    assert few_lines(said, 2, indent="") == "a\nb\n… and 1 more"
    assert (few_of(said, 3), few_facts(said, 3)) == ("a, b, c", "a; b; c")
    assert few_lines(said, 3) == "\ta\n\tb\n\tc"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (b"src/a", "src/a"),
        ("src/Ü".encode(), "src/Ü"),
        (b"caf\xe9.txt", '"caf\\351.txt"'),
        (b'"a b\n.txt', '"\\"a b\\n.txt"'),
        (b"back\\slash", '"back\\\\slash"'),
        ("\u202eevil".encode(), '"\\342\\200\\256evil"'),
        (b"\x1b]0;x\x07", '"\\033]0;x\\a"'),
    ],
)
def test_paths_are_quoted_as_git_quotes_them(path: bytes, shown: str) -> None:
    assert path_text(path) == shown


@given(st.binary(min_size=1))
def test_any_path_stands_in_one_line_and_can_be_read_back(path: bytes) -> None:
    shown = path_text(path)
    assert len(shown.splitlines()) == 1
    assert unquote(shown) == path


@given(st.binary(min_size=1).filter(lambda raw: b"\0" not in raw and not raw.endswith(b"\n")))
def test_a_shell_path_is_text_that_can_be_shown(raw: bytes) -> None:
    shown = shell_path("/" + raw.decode("utf-8", "surrogateescape"))
    assert shown.isprintable() or all(c.isprintable() or c.isspace() for c in shown)
    assert "\n" not in shown
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a/b", "/a/b"),
        ("/a b", "'/a b'"),
        ("/caf\udce9", "\"$(printf '/caf\\351')\""),
        ("/a\n%'\\ b", "\"$(printf '/a\\012\\045\\047\\134\\040b')\""),
    ],
)
def test_what_can_not_be_typed_is_written_by_its_bytes(path: str, shown: str) -> None:
    assert shell_path(path) == shown
