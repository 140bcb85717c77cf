from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core.naming import path_text
from git_batch.core.scope import HIDDEN
from git_batch.core.standing import TaskStatus
from git_batch.views.escape import (
    json_text,
    one_line,
    output_text,
    printable,
    relayed_text,
    shell_word,
)

ANY = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Grün, 漢字, 🎉", "plain, Grün, 漢字, 🎉"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\r\x00\x7f\x9b", "\\x0d\\x00\\x7f\\x9b"),
        ("a\u202eb\u2066c\u200bd\ufeff", "a\\u202eb\\u2066c\\u200bd\\ufeff"),
        ("\udcff\ud800", "\\udcff\\ud800"),
        ("\u2028\u2029\u00ad", "\\u2028\\u2029\\xad"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
    ],
)
def test_what_acts_or_hides_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANY)
def test_printable_is_harmless_and_idempotent(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    assert not HIDDEN.search(shown.replace("\n", "").replace("\t", ""))
    shown.encode("utf-8")


@given(ANY, st.integers(3, 20))
def test_one_line_is_one_line_and_no_longer_than_asked(text: str, width: int) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert len(one_line(text, width)) <= width


def test_a_cut_is_seen() -> None:
    assert one_line("0123456789", 8) == "01234..."
    assert one_line("a\nb\tc") == "a\\nb\\tc"


@given(st.binary(max_size=300))
def test_no_path_is_lost(path: bytes) -> None:
    assert one_line(path_text(path)) == path_text(path)


def test_output_keeps_what_was_said_and_drops_colours() -> None:
    raw = b"\x1b[1;31mFAILED\x1b[0m\r\ncaf\xe9 \x1b]0;title\x07\xc3\xbc\n"
    assert output_text(raw) == "FAILED\ncaf\\xe9 \\x1b]0;title\\x07ü\n"


@given(ANY)
def test_a_shell_takes_a_word_as_it_is_shown(text: str) -> None:
    assert shlex.split(shell_word(text)) == [one_line(text)]


def test_json_is_ascii_and_reads_back() -> None:
    value = {"a": "\x1b\x7f\u202e\x9bü", "b": None}
    text = json_text(value)
    assert text.isascii()
    assert "\x7f" not in text
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\ud800", "\\ud800"),
        ("caf\udce9/x", "caf\\udce9/x"),
        ("\udce9\udce9", "\\udce9\\udce9"),
        ("\ud800\ud83c\udf89", "\\ud800🎉"),
        ("🎉\udf89\\", "🎉\\udf89\\"),
        ("\\ud800", "\\ud800"),
        ("\\\udcff\n", "\\\\udcff\n"),
    ],
)
def test_half_a_pair_of_surrogates_ended_json_with_an_error(text: str, shown: str) -> None:
    assert json.loads(json_text({text: [text]})) == {shown: [shown]}


@given(st.text(st.sampled_from("\\udcff89a\ud800\udbff\udc00\udfff🎉\n")) | ANY)
def test_json_is_read_by_who_knows_no_half_characters(text: str) -> None:
    characters = json.loads(json.dumps(text))  # two halves side by side are one
    shown = characters.encode("utf-8", "backslashreplace").decode()
    assert json.loads(json_text(text)) == shown


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | NUMBERS
        | st.text()
        | st.sampled_from(TaskStatus),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(st.text(), inner, max_size=3)
        ),
    )
)
def test_json_is_laid_out_as_the_standard_library_does_it(value: object) -> None:
    assert json_text(value) == json.dumps(value, indent=2).replace("\x7f", "\\u007f")


def test_a_progress_is_drawn_anew_only_where_somebody_sees_it() -> None:
    said = " 50% (1/2)\r100% (2/2)\r\ndone\x1b[K\n"
    assert relayed_text(said, redraws=True) == " 50% (1/2)\r100% (2/2)\ndone\\x1b[K\n"
    assert relayed_text(said, redraws=False) == " 50% (1/2)\n100% (2/2)\ndone\\x1b[K\n"
