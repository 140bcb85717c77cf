"""What git and the pre-commit framework tell hooks."""

from __future__ import annotations

import pytest

from git_batch.core.ids import Oid
from git_batch.hooks.updates import Update, of_framework, of_pre_push, of_pre_receive, of_update

A, B, ZERO = Oid("a" * 40), Oid("b" * 40), "0" * 40


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            f"refs/heads/x {A} refs/heads/y {B}",
            Update("refs/heads/y", A, B, "refs/heads/x"),
        ),
        (
            f"(delete) {ZERO} refs/heads/y {B}",
            Update("refs/heads/y", None, B, "(delete)"),
        ),
        (f"HEAD~1 {A} refs/heads/y {ZERO}", Update("refs/heads/y", A, None, "HEAD~1")),
    ],
)
def test_pre_push(line: str, expected: Update) -> None:
    assert of_pre_push([line, ""]) == [expected]


def test_branches_and_their_names() -> None:
    found = of_pre_push(
        [
            f"refs/heads/x {A} refs/heads/y {B}",
            f"refs/tags/x {A} refs/tags/x {ZERO}",
            f"(delete) {ZERO} refs/heads/y {B}",
            f"HEAD {A} refs/heads/z {ZERO}",
        ]
    )
    assert [update.is_branch for update in found] == [True, False, False, True]
    assert [update.names for update in found] == [("x", "y"), (), ("y",), ("z",)]


def test_receiving_hooks() -> None:
    expected = [Update("refs/heads/y", A, None)]
    assert of_pre_receive([f"{ZERO} {A} refs/heads/y"]) == expected
    assert of_update(["refs/heads/y", ZERO, A]) == expected
    assert of_update([]) == []


class TestFramework:
    def test_is_known_by_its_environment(self) -> None:
        assert of_framework({"PRE_COMMIT_TO_REF": A}) is None

    def test_names_the_pushed_commit(self) -> None:
        environ = {
            "PRE_COMMIT_REMOTE_BRANCH": "refs/heads/y",
            "PRE_COMMIT_LOCAL_BRANCH": "refs/heads/x",
            "PRE_COMMIT_FROM_REF": B,
            "PRE_COMMIT_TO_REF": A,
        }
        assert of_framework(environ) == [Update("refs/heads/y", A, None, "refs/heads/x")]

    def test_branch_stands_for_a_commit_that_is_not_named(self) -> None:
        """The framework names none when the branch shares nothing with the remote."""
        environ = {
            "PRE_COMMIT_REMOTE_BRANCH": "refs/heads/y",
            "PRE_COMMIT_LOCAL_BRANCH": "refs/heads/x",
        }
        found = of_framework(environ)
        assert found is not None
        assert found[0].new == "refs/heads/x"
