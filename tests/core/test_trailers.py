"""Messages that every reader reads the same, whatever an agent writes into them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core import trailers
from tests.trailer_corpus import OURS, TEXTS, written
from tests.tries import tries


def test_whatever_the_body_says_the_block_is_ours_and_nothing_else() -> None:
    for name, text in TEXTS.items():
        assert trailers.block(written(text)) == OURS, name


@tries(120)
@given(
    st.lists(
        st.sampled_from(
            ["Batch-Task", ":", " ", "\n", "\n\n", "---", "x", "#", "Signed-off-by: x", "\r", "\t"]
        ),
        max_size=12,
    )
)
def test_whatever_is_put_together_the_block_is_ours_and_nothing_else(parts: list[str]) -> None:
    assert trailers.block(written("".join(parts))) == OURS


@pytest.mark.parametrize("subject", ["---", "--- a", "# ---- >8 ----", "a\nb", "a\0b", " a "])
def test_a_subject_is_one_line_that_ends_no_message(subject: str) -> None:
    first = trailers.compose(subject, "body").split(b"\n")[0]
    assert first.strip()
    assert not first.startswith((b"---", b"# -", b"-"))
    assert trailers.compose(subject, "body").count(b"\n\n") == 1


def test_a_message_without_a_body_is_its_subject() -> None:
    assert trailers.compose("Do it", " \n\n") == b"Do it\n"


def test_the_body_keeps_its_lines_and_paragraphs() -> None:
    text = "First.\r\n  * a: one\n\n\n\nLast\tline.  \n"
    assert trailers.body_text(text) == "First.\n  * a: one\n\nLast\tline."


@pytest.mark.parametrize(
    "line",
    [
        "Batch-Id: x",
        "Key:v",
        "key : v",
        "-k: v",
        "---",
        "--- a/file",
        "------------------------ >8 ------------------------",
        "# ------------------------ >8 ------------------------",
        "(cherry picked from commit 0)",
        "https://example.org",
    ],
)
def test_a_line_that_some_reader_takes_for_more_than_text_is_indented(line: str) -> None:
    assert trailers.body_text(f"a\n\n{line}") == f"a\n\n  {line}"


@pytest.mark.parametrize("line", ["a b: c", "* key: v", "ümlaut: x", "--", "-- x", "# note"])
def test_a_plain_line_stays_as_it_is(line: str) -> None:
    assert trailers.body_text(f"a\n\n{line}") == f"a\n\n{line}"


@pytest.mark.parametrize(
    ("text", "forged"),
    [
        ("Batch-Task: x", True),
        ("a\n\nbatch-id : x", True),
        ("  Batch-Plan:x", True),
        ("Batch-2: x", True),
        ("The Batch-Task: x", False),
        ("Batch Task: x", False),
    ],
)
def test_a_line_that_reads_like_one_of_ours_is_told(text: str, forged: bool) -> None:
    assert trailers.forges(text) == forged


@pytest.mark.parametrize(
    "message",
    [
        "Subject\n\nSigned-off-by: A <a@x>\n",
        "Subject\n\nbody\n\nReviewed-by: A\nSigned-off-by: A <a@x>\n\n\n",
        "Subject\n\nSigned-off-by: A\nprose\nprose\nprose\n",
        "Subject\n\nKey: folded\n over lines\n",
    ],
)
def test_trailers_join_a_block_that_is_there_so_that_both_are_read(message: str) -> None:
    before = trailers.block(message.encode())
    joined = trailers.with_trailers(message.encode(), OURS)
    assert before
    assert trailers.block(joined) == before + OURS
    assert b"\n\nBatch-Id" not in joined


@pytest.mark.parametrize(
    "message", ["Subject\n", "Key: subject\n", "Subject\n\nprose\n", "S\n\n  K: v"]
)
def test_trailers_begin_a_paragraph_of_their_own_where_there_is_no_block(message: str) -> None:
    assert not trailers.block(message.encode())
    made = trailers.with_trailers(message.encode(), OURS)
    assert b"\n\nBatch-Id: " in made
    assert trailers.block(made) == OURS
    assert made.endswith(b"\n")
    assert not made.endswith(b"\n\n")


def test_the_last_trailer_can_be_added_later_and_ends_up_in_the_same_block() -> None:
    first = trailers.with_trailers(b"Subject\n\nbody\n", OURS[:3])
    assert trailers.with_trailers(first, OURS[3:]) == trailers.with_trailers(
        b"Subject\n\nbody\n", OURS
    )


def test_ours_are_read_by_key_only_if_each_is_there_once() -> None:
    message = trailers.with_trailers(b"Subject\n\nSigned-off-by: A\n", OURS)
    assert trailers.ours(message) == dict(OURS)
    assert trailers.ours(message + b"Batch-Task: other\n") is None
    assert trailers.ours(message + b"batch-task: other\n") is None
    assert trailers.ours(b"Subject\n\nSigned-off-by: A\n") is None
    assert trailers.ours(message + b"\nprose after it\n") is None


def test_bytes_that_are_no_text_do_not_hide_the_block() -> None:
    message = trailers.with_trailers(b"Subject \xff\n\nKey: \xfe\n", OURS)
    assert trailers.block(message)[1:] == OURS


@given(st.text(max_size=40), st.text(max_size=80))
def test_our_trailers_come_off_a_message_as_they_went_on(subject: str, body: str) -> None:
    message = trailers.compose(f"Do {subject}", body)
    for before in (message, trailers.with_trailers(message, [("Seen-by", "me")])):
        ours = [(key, "x") for key in trailers.KEYS]
        full = trailers.with_trailers(before, ours)
        assert trailers.without_ours(full) == before.rstrip(b" \t\n\v\f\r") + b"\n"
        again = trailers.with_trailers(
            trailers.without_ours(full), [(k, "x") for k in trailers.KEYS]
        )
        assert again == full


def test_the_body_is_what_follows_the_subject() -> None:
    message = trailers.compose("Do it", "one\n\ntwo")
    full = trailers.with_trailers(message, [(key, "x") for key in trailers.KEYS])
    assert trailers.body(full) == b"one\n\ntwo"
    assert trailers.body(trailers.with_trailers(b"Do it\n", [(trailers.TASK, "x")])) == b""
