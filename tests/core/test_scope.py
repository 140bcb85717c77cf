"""The scope's matcher by example; tests/repo compares it with git itself."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core.scope import MAX_GLOB, Scope, check_glob, check_visible, literal_paths


@pytest.mark.parametrize(
    ("glob", "inside", "outside"),
    [
        ("src", "src src/a src/a/b", "srcs src2/a a/src"),
        ("src/", "src/a src/a/b", "src srcs/a"),
        ("src/*", "src/a src/.a src/*", "src src/a/b"),
        ("src/**", "src/a src/a/b", "src srcs/a"),
        ("**", "a a/b a/b/c", ""),
        ("**/*.py", "a.py b/a.py b/c/.py", "a.pyc a.py/b"),
        ("src/**/*.py", "src/a.py src/b/c/a.py", "a.py src/a.p src2/a.py"),
        ("src/**/t/**", "src/t/a src/a/b/t/c/d", "src/t src/a/t t/a"),
        ("a/**/**/b", "a/b a/c/b a/c/d/b", "a/bb ab"),
        ("*/x", "a/x", "x a/b/x"),
        ("a?c", "abc a-c", "ac a/c abcd"),
        ("*a*b*", "ab xaxbx", "ba a/b"),
        ("[a-c]x", "ax bx cx [a-c]x [a-c]x/y", "dx -x"),
        ("[!a-c]x", "dx -x", "ax"),
        ("[]-]x", "]x -x", "ax"),
        ("[[:digit:]_]", "1 _", "a"),
        ("[\\]]", "]", "\\"),
        ("app/[id]/page", "app/[id]/page app/i/page", "app/x/page"),
        (r"\*", "* \\*", "a"),
        (r"a\[b]", "a[b]", "ab"),
        ("ü/*", "ü/a", "u/a"),
        ("??", "ab ü", "a"),
    ],
)
def test_what_patterns_cover(glob: str, inside: str, outside: str) -> None:
    assert check_glob(glob) is None
    scope = Scope([glob])
    assert [path for path in inside.split() if not scope.match(path.encode())] == []
    assert [path for path in outside.split() if scope.match(path.encode())] == []


def test_several_patterns_are_a_union_and_none_is_nothing() -> None:
    scope = Scope(["src/**", "README", "src/**"])
    assert [scope.match(path) for path in (b"src/a", b"README", b"docs")] == [True, True, False]
    assert not Scope([]).match(b"")
    assert not Scope([]).match(b"a")
    assert scope.patterns == ("src/**", "README", "src/**")


def test_paths_are_bytes_and_may_hold_anything() -> None:
    assert Scope(["src/*"]).match(b"src/\xff\xfe\n")
    assert Scope(["**"]).match(b"a\n/b\xff")
    assert not Scope(["a"]).match(b"a\n")


@pytest.mark.parametrize(
    ("glob", "why"),
    [
        ("", "is empty"),
        ("/a", "is absolute"),
        (":(exclude)a", "begins with ':'"),
        (":/", "begins with ':'"),
        ("!a", "begins with '!'"),
        ("-x", "begins with '-'"),
        (" a", "begins or ends with a space"),
        ("a/../b", "component '..'"),
        ("..", "component '..'"),
        ("./a", "component '.'"),
        ("a/.", "component '.'"),
        ("a//b", "empty component"),
        ("a//", "empty component"),
        (r"\.\./a", "component '..'"),
        (".git", "names '.git'"),
        ("a/.GiT/b", "names '.git'"),
        ("a\\", "backslash"),
        (r"a\/b", "backslash"),
        ("[a", "without its ']'"),
        ("[", "without its ']'"),
        ("[]", "without its ']'"),
        ("[a/b]", "'/' in brackets"),
        ("[\\", "without its ']'"),
        ("[b-a]", "wrong way round"),
        ("[ä]", "non-ASCII"),
        ("[[:word:]]", "unknown class '[:word:]'"),
        ("[[::]]", "unknown class"),
        ("a**", "'**' beside"),
        ("**a/b", "'**' beside"),
        ("***", "'**' beside"),
        ("a*/", "after a wildcard"),
        ("{a,b}", "braces"),
        ("$(id)", "shell substitution"),
        ("`id`", "shell substitution"),
        ("a\u202eb", "U+202E at position 2"),
        ("a\u200b", "U+200B at position 2"),
        ("a\nb", "U+000A at position 2"),
        ("\x00", "U+0000 at position 1"),
        ("a\ud800", "U+D800 at position 2"),
        ("x" * (MAX_GLOB + 1), "longer than"),
    ],
)
def test_what_is_refused(glob: str, why: str) -> None:
    assert why in (check_glob(glob) or "")


@pytest.mark.parametrize("glob", ["{a}", r"\{a,b\}", "a b", ".github/**", ".g*", ".gitignore", "~"])
def test_what_is_not_refused(glob: str) -> None:
    assert check_glob(glob) is None


def test_bad_syntax_is_an_error_even_unchecked() -> None:
    for bad in ("[a", "a\\", "[[:x:]]"):
        with pytest.raises(ValueError, match="has "):
            Scope([bad])


def test_literal_paths_are_those_without_wildcard() -> None:
    patterns = ["build/out.bin", "docs/", r"a\*b", "*.log", "[a]", "x?", "**"]
    assert literal_paths(patterns) == (b"build/out.bin", b"docs", b"a*b")


def test_visible() -> None:
    assert check_visible("ä 漢 🎉") is None
    assert check_visible("a\u2066") == "has the invisible character U+2066 at position 2"


@given(st.text(st.sampled_from("ab*?[]!^-:\\/.{},ä\x1b\u202e "), max_size=24))
def test_whatever_passes_compiles(glob: str) -> None:
    if check_glob(glob) is None:
        scope = Scope([glob])
        scope.match(b"a/b")
        assert (
            "\\" in glob
            or re.search(r"[*?\[]", glob)
            or scope.match(glob.rstrip("/").encode())
            or (glob.endswith("/"))
        )


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 50 + "b", b"a" * 4000),
        ("**/a/" * 200 + "b", b"a/" * 2000 + b"c"),
        ("**/*a*a*a*/" * 50 + "b", (b"a" * 40 + b"/") * 100 + b"c"),
        ("**/" * 500 + "x", b"a/" * 2000 + b"y"),
        ("*" + "?" * 500 + "b", b"a" * 4000),
        ("**/" + "*/" * 200 + "x", b"a/" * 2000 + b"y"),
        ("[!b]*" * 200 + "b", b"a" * 4000),
    ],
)
def test_no_pattern_takes_long(glob: str, path: bytes) -> None:
    began = time.perf_counter()
    assert not Scope([glob]).match(path)
    assert time.perf_counter() - began < 0.5
