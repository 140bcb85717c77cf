"""Things named in sentences: whatever they are called, a sentence stays one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core.codec import unquote
from git_batch.core.naming import few, path_text


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
