"""Secrets are taken out of text, and nothing else is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core.redaction import REDACTED, SHORTEST, Redaction

LONG = "abcdefghij0123456789ABCDEFGHIJ0123456789"
# Put together here, so that no scanner takes this file for a leak.
TOKENS = [
    "gh" + "p_" + LONG,
    "github_" + "pat_" + LONG,
    "gl" + "pat-" + LONG,
    "AK" + "IA" + "ABCDEFGHIJ012345",
    "AI" + "za" + LONG[:35],
    "sk-" + "ant-api03-" + LONG,
    "sk-" + "proj-" + LONG,
    "sk-" + LONG,
    "sk_" + "live_" + LONG,
    "xox" + "b-1234567890-" + LONG,
    "hf" + "_" + LONG,
    "np" + "m_" + LONG[:36],
    "py" + "pi-" + LONG,
    "ey" + "J" + LONG + "." + LONG + "." + LONG,
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nAAAA\nBBBB\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN " + "PRIVATE KEY-----\ncut off",
]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:8])
def test_a_token_tells_by_its_form_what_it_is(token: str) -> None:
    assert Redaction({})(f"before '{token}' after").startswith(f"before '{REDACTED}")
    assert token[-20:] not in Redaction({})(f"error: {token}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "task-" + "force-of-a-long-hyphenated-name-with-sk-learn-in-it",
        "see https://example.com:8080/path@version and user@example.com",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "authorization failed",
        "[git-batch: 12 bytes left out]",
    ],
)
def test_what_is_no_token_stays(text: str) -> None:
    assert Redaction({"PATH": "/usr/bin:/usr/local/bin"})(text) == text


def test_only_the_credentials_of_an_address_and_of_a_header_go() -> None:
    hide = Redaction({})
    assert hide("https://me:hunter2hunter2@host/x") == f"https://{REDACTED}@host/x"
    said = hide("> Authorization: Bearer abc.def\n> Accept: */*")
    assert said == f"> Authorization: {REDACTED}\n> Accept: */*"


@pytest.mark.parametrize(
    "name",
    ["GITHUB_TOKEN", "MY_SECRET", "AWS_SECRET_ACCESS_KEY", "API_KEY", "ApiKey", "DB_PASSWORD",
     "PGPASSWORD", "SIGNING_PASSPHRASE", "STRIPE_KEY", "KEY", "DB_PASS", "GH_PAT"],
)  # fmt: skip
def test_a_variable_tells_by_its_name_that_its_value_is_secret(name: str) -> None:
    assert Redaction({name: "correct horse"})("it is correct horse!") == f"it is {REDACTED}!"


@pytest.mark.parametrize(
    "name",
    ["PWD", "OLDPWD", "HOME", "KEYBOARD", "COMPASS", "PATH", "TOKEN_FILE", "MAX_OUTPUT_TOKENS",
     "TOKENIZERS_CACHE", "SECRET_NAME"],
)  # fmt: skip
def test_other_variables_are_not_secret(name: str) -> None:
    assert Redaction({name: "/home/somebody"})("in /home/somebody") == "in /home/somebody"


def test_a_short_value_is_a_word_like_any_other() -> None:
    assert Redaction({"PASSWORD": "test"})("1 test failed") == "1 test failed"


def test_each_line_of_a_value_of_several_lines_goes() -> None:
    hide = Redaction({"DEPLOY_KEY": "first line of it\nshort\nsecond line of it\n"})
    assert hide("x second line of it y short") == f"x {REDACTED} y short"


@given(st.text(min_size=SHORTEST), st.text(), st.text())
def test_no_value_is_left_whatever_stands_around_it(secret: str, before: str, after: str) -> None:
    said = Redaction({"TOKEN": secret})(before + secret + after)
    assert secret not in said or secret in REDACTED or secret in before + REDACTED + after


@pytest.mark.parametrize("part", ["eyJ-", "eyJabcdefgh-", "eyJabcdefgh."])
def test_what_went_wrong_a_long_text_like_many_tokens_took_hours(part: str) -> None:
    long = part * ((1 << 20) // len(part))
    began = time.process_time()
    Redaction({})(long)
    assert time.process_time() - began < 2
