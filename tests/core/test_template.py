"""Names in braces, commands and prompts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_batch.core import template
from git_batch.core.ids import TaskId
from git_batch.core.model import Task
from git_batch.core.template import expand, names, render_command, render_message, render_prompt

VALUES = {"id": "a", "pkg": "net", "x-y": "z"}


def task(**changes: object) -> Task:
    base: dict[str, object] = {
        "id": TaskId("t-net"),
        "title": "T",
        "scope": ("src/**", "README"),
        "run": ("x",),
        "model": "opus",
        "variables": (("effort", "low"), ("pkg", "net"), ("x-y", "1")),
    }
    return Task(**{**base, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "command", "prose"),
    [
        ("{id}-{pkg}", "a-net", "a-net"),
        ("{x-y}", "z", "z"),
        ("{what}", "{what}", "{what}"),
        ("{{id}}", "{id}", "{id}"),
        ("{{what}}", "{what}", "{{what}}"),
        ("{{{id}}}", "{{id}}", "{{id}}"),
        ('{"k":{id}}', '{"k":a}', '{"k":a}'),
        ("{{id}", "{a", "{a"),
        ("{id}}}", "a}}", "a}}"),
        ("{}", "{}", "{}"),
        ("{ id }", "{ id }", "{ id }"),
        ("{print $1}", "{print $1}", "{print $1}"),
        ("{0}", "{0}", "{0}"),
        ("${id}", "${id}", "${id}"),
        ("${{id}}", "${{id}}", "${{id}}"),
        ("$ {id}", "$ a", "$ a"),
        ("{a,b}", "{a,b}", "{a,b}"),
        ("{ID}", "{ID}", "{ID}"),
        ("{\nid}", "{\nid}", "{\nid}"),
        ("", "", ""),
    ],
)
def test_braces(text: str, command: str, prose: str) -> None:
    assert expand(text, VALUES) == command
    assert expand(text, VALUES, prose=True) == prose


def test_what_is_put_in_is_never_looked_at_again() -> None:
    values = {"a": "{b}", "b": "{{a}}", "c": "{"}
    assert expand("{a}{b}{c}a}", values) == "{b}{{a}}{a}"
    assert expand("{c}a}{a}", values) == "{a}{b}"


def test_names_are_listed_in_order_and_once() -> None:
    assert names("{b} {a} {{c}} ${d} {b} {} {{e} {f}}") == ["b", "a", "e", "f"]


@given(st.text(st.sampled_from("{}ab$ "), max_size=30))
def test_only_listed_names_are_replaced(text: str) -> None:
    known = dict.fromkeys(("a", "b", "ab", "ba"), "!")
    assert ("!" in expand(text, known)) == bool(set(names(text)) & known.keys())
    assert expand(text, {}, prose=True) == text


def test_a_text_of_braces_takes_no_time() -> None:
    began = time.perf_counter()
    for text in ("{" * 1_000_000, "{a" * 500_000, "{" + "a" * 1_000_000, "{a}" * 300_000):
        expand(text, VALUES)
    assert time.perf_counter() - began < 2


def test_commands() -> None:
    run = ("x", "{model}", "{id}", "{effort}", "{attempt}", "{{id}}", "{prompt}")
    values = {"attempt": "2", "prompt": "say {id}\0"}
    assert render_command(task(run=run), values) == (
        "x", "opus", "t-net", "low", "2", "{id}", "say {id}\ufffd",
    )  # fmt: skip
    assert render_command(task(run=run), {})[4:] == ("{attempt}", "{id}", "{prompt}")
    assert render_command(task(run="echo {id} {{x}}"), values) == (
        "/bin/sh",
        "-c",
        "echo {id} {{x}}",
    )
    assert render_command(task(), values, ("check", "{pkg}")) == ("check", "net")
    assert render_command(task(), values, "check {pkg}") == ("/bin/sh", "-c", "check {pkg}")


def test_the_environment_has_the_same_values() -> None:
    assert template.variables(task()) == {
        "BATCH_VAR_EFFORT": "low",
        "BATCH_VAR_PKG": "net",
        "BATCH_VAR_X_Y": "1",
        "BATCH_VAR_MODEL": "opus",
    }
    assert template.variables(task(model=None, variables=())) == {}


def test_messages() -> None:
    assert render_message(task(), {}) is None
    text = "For {pkg}, try {attempt}: `f'{x}'` {{y}}"
    assert render_message(task(message=text), {"attempt": "1"}) == "For net, try 1: `f'{x}'` {{y}}"


def test_the_first_prompt_has_text_and_scope() -> None:
    prompt = render_prompt(task(prompt="\nDo {pkg} with {model}, {x}.\n"), {}, {}, "")
    assert prompt.startswith("Do net with opus, {x}.\n\nChange, add or delete only files")
    assert prompt.endswith(":\n- src/**\n- README\n")
    assert "Even so" not in prompt


def test_protected_paths_and_feedback_are_told() -> None:
    it = task(prompt="Do.", protect=("tests/**",))
    prompt = render_prompt(it, {}, {"attempt": "2"}, "\nE501 {id} {{id}}\n")
    assert "Even so, never change, add or delete what these patterns cover:\n- tests/**\n" in prompt
    assert prompt.endswith("what was said about it:\n\nE501 {id} {{id}}\n")


def test_a_prompt_that_places_the_feedback_has_it_once() -> None:
    it = task(prompt="Before: {feedback}. {prompt} {prompt_file}", scope=())
    prompt = render_prompt(it, {}, {"prompt_file": "/p", "prompt": "no"}, "wrong {id}")
    assert prompt == (
        "Before: wrong {id}. {prompt} /p\n\n"
        "Do not change, add or delete any file of the repository.\n"
    )
    assert render_prompt(it, {}, {}, "").startswith("Before: . {prompt}")


def test_a_prompt_may_come_from_a_file_or_be_missing() -> None:
    assert render_prompt(task(intent="ab"), {"ab": "Ä {pkg}".encode()}, {}, "").startswith(
        "Ä net\n"
    )
    assert render_prompt(task(), {}, {}, "feedback") == ""
    with pytest.raises(KeyError):
        render_prompt(task(intent="ab"), {}, {}, "")
