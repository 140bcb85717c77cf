"""The stored form of a plan: its bytes, its digest, and what is refused when it is read back."""

from __future__ import annotations

import hashlib
import string
import time
import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import fields

from git_batch.core.canonical import digest, from_toml, task_toml, to_toml
from git_batch.core.ids import TaskId
from git_batch.core.model import Budget, Command, Plan, Task
from git_batch.core.standing import OnEmpty
from git_batch.core.values import replace
from git_batch.errors import RecordError
from tests.tries import tries

INTENTS = {hashlib.sha256(text).hexdigest(): text for text in (b"", b"Do it.\n", b"\xff\0")}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
words = st.text(st.sampled_from(string.ascii_letters + "äß \n\t\"'\\{}\x7f\r\x00=#"), max_size=9)
filled = words.filter(bool)
globs = st.lists(st.sampled_from(["src", "src/**", "a b", "[a]", "\\*", "ü?"]), max_size=3)
argv = st.lists(words, max_size=3).map(lambda rest: ("x", *rest))
commands: st.SearchStrategy[Command] = filled | argv
pairs = st.dictionaries(words, words, max_size=3).map(lambda table: tuple(table.items()))
seconds = st.floats(0.001, 1e9)


def task_fields(task_id: str, others: tuple[TaskId, ...]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        "id": st.just(TaskId(task_id)),
        "title": texts,
        "scope": globs.map(tuple),
        "run": commands,
        "blocked_by": st.sets(st.sampled_from(others)).map(tuple) if others else st.just(()),
        "checks": st.lists(commands, max_size=3).map(tuple),
        "agent": st.none() | words,
        "model": st.none() | words,
        "stdin": st.sampled_from(["null", "prompt"]),
        "prompt": st.none() | texts | words,
        "intent": st.none() | st.sampled_from(sorted(INTENTS)),
        "intent_name": st.none() | words,
        "protect": globs.map(tuple),
        "review": st.sampled_from(["none", "human"]) | commands,
        "on_empty": st.sampled_from(OnEmpty),
        "timeout": seconds,
        "idle_timeout": st.none() | seconds,
        "attempts": st.integers(1, 100),
        "message": st.none() | words,
        "env": pairs,
        "variables": pairs,
        "not_now": st.lists(words, max_size=2).map(tuple),
    }


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    tasks: list[Task] = []
    for n in range(draw(st.integers(1, 3))):
        others = tuple(task.id for task in tasks)
        fields = task_fields(f"t.{n}", others)
        tasks.append(Task(**{name: draw(field) for name, field in fields.items()}))
    used = {task.intent for task in tasks if task.intent is not None}
    return Plan(
        slug="a-1",
        title=draw(texts),
        tasks=tuple(tasks),
        fail_fast=draw(st.booleans()),
        baseline=draw(st.booleans()),
        notify=draw(st.none() | commands),
        intents={key: INTENTS[key] for key in used},
    )


def small(**changes: Any) -> Plan:
    base: dict[str, Any] = {"id": TaskId("a"), "title": "A", "scope": ("src",), "run": "true"}
    return Plan(slug="s", title="S", tasks=(Task(**{**base, **changes}),))


@tries(40, allow=[HealthCheck.too_slow])
@given(plans())
def test_a_plan_survives_and_its_form_is_stable(plan: Plan) -> None:
    toml = to_toml(plan)
    again = from_toml(toml, INTENTS)
    assert again == plan
    assert to_toml(again) == toml
    for task in plan.tasks:
        assert b"[[task]]\n" + task_toml(task) in toml


@tries(40, allow=[HealthCheck.too_slow])
@given(plans(), st.data())
def test_every_field_changes_the_digest(plan: Plan, data: st.DataObject) -> None:
    before = digest(to_toml(plan))
    task = plan.tasks[0]
    made = task_fields("other", ())
    assert set(made) == {field.name for field in fields(Task)}
    name = data.draw(st.sampled_from(sorted(set(made) - {"blocked_by"})))
    value = data.draw(made[name].filter(lambda value: value != getattr(task, name)))
    tasks = (replace(task, **{name: value}), *plan.tasks[1:])
    assert digest(to_toml(replace(plan, tasks=tasks))) != before


@pytest.mark.parametrize(
    "change",
    [
        {"slug": "t"},
        {"title": "T"},
        {"fail_fast": True},
        {"baseline": True},
        {"notify": "x"},
        {"notify": ("x",)},
    ],
)
def test_every_field_of_the_plan_changes_the_digest(change: dict[str, Any]) -> None:
    assert to_toml(replace(small(), **change)) != to_toml(small())


def test_order_matters_but_budget_and_intents_do_not() -> None:
    plan = small()
    two = (*plan.tasks, replace(plan.tasks[0], id=TaskId("b")))
    assert to_toml(replace(plan, tasks=two)) != to_toml(replace(plan, tasks=two[::-1]))
    other = replace(plan, budget=Budget(max_tasks=1), intents={"x": b"y"})
    assert to_toml(other) == to_toml(plan)


def test_the_very_bytes() -> None:
    # A change here changes the digest of every plan: it needs a new format number.
    plan = small(
        blocked_by=(),
        checks=('x "q"', ("y", "\x7f")),
        prompt='one\n\\n """\n\n',
        idle_timeout=0.5,
        variables=(("pkg", "a"), ("a b", "c\nd")),
    )
    assert to_toml(plan).decode() == (
        'format = 1\nslug = "s"\ntitle = "S"\nfail_fast = false\nbaseline = false\n\n'
        '[[task]]\nid = "a"\ntitle = "A"\nscope = ["src"]\nrun = "true"\nstdin = "null"\n'
        'prompt = """\none\n\\\\n \\"\\"\\"\n\n"""\n'
        'check = ["x \\"q\\"", ["y", "\\u007f"]]\nreview = "none"\non_empty = "park"\n'
        "timeout = 3600\nidle_timeout = 0.5\nattempts = 2\n"
        'variables = {pkg = "a", "a b" = "c\\nd"}\n'
    )
    assert tomllib.loads(to_toml(plan).decode())["task"][0]["prompt"] == plan.tasks[0].prompt
    assert digest(b"") == "sha256:" + hashlib.sha256(b"").hexdigest()


def test_a_tasks_own_bytes_hold_its_id() -> None:
    assert task_toml(small().tasks[0]).startswith(b'id = "a"\n')
    assert b"[[task]]\n" + task_toml(small().tasks[0]) in to_toml(small())


def test_what_toml_can_not_hold_is_an_error() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        to_toml(small(title="\ud800"))
    with pytest.raises(ValueError, match="JSON compliant"):
        to_toml(small(timeout=float("nan")))


GOOD = to_toml(small(blocked_by=()))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"format = 1", b"format = 2", "unknown format 2"),
        (b"format = 1", b"format = true", "unknown format True"),
        (b"format = 1\n", b"", "unknown format None"),
        (b"[[task]]", b"[[task", "can't be read"),
        (b'"S"', b'"\xff"', "can't be read"),
        (b'title = "S"', b"title = 1", "the stored plan: 'title' is not a string"),
        (b'slug = "s"\n', b"", "has no 'slug'"),
        (b'slug = "s"', b'slug = "../s"', "'slug' can't be '../s'"),
        (b"fail_fast = false", b"fail_fast = 0", "'fail_fast' is not true or false"),
        (b"fail_fast", b"fail_slow", "unknown key 'fail_slow'"),
        (b'id = "a"', b'id = "-a"', "'id' can't be '-a'"),
        (b'id = "a"\n', b"", "the stored plan has no 'id'"),
        (b'run = "true"\n', b"", "task 'a' of the stored plan has no 'run'"),
        (b'run = "true"', b'run = ""', "'run' has an empty command"),
        (b'run = "true"', b"run = [[]]", "'run' is not a list of strings"),
        (b'run = "true"', b'run = "true"\ncheck = [[]]', "'check' has an empty command"),
        (b'run = "true"', b'run = "true"\ncheck = "x"', "'check' is not a list of commands"),
        (b'run = "true"', b'run = "true"\nunknown = 1', "unknown key 'unknown'"),
        (b'run = "true"', b'run = "true"\nenv = {A = 1}', "'env' is not a table of strings"),
        (b'["src"]', b'["../src"]', "'scope' has the pattern '../src'"),
        (b'["src"]', b"[1]", "'scope' is not a list of strings"),
        (b'stdin = "null"', b'stdin = "tty"', "'stdin' can't be 'tty'"),
        (b"timeout = 3600", b"timeout = 0", "'timeout' is not a positive number"),
        (b"timeout = 3600", b"timeout = inf", "'timeout' is not a positive number"),
        (b"timeout = 3600", b"timeout = 1" + b"0" * 999, "'timeout' is not a positive number"),
        (b"timeout = 3600", b'timeout = "1h"', "'timeout' is not a number of seconds"),
        (b"attempts = 2", b"attempts = true", "'attempts' is not a positive whole number"),
        (b'on_empty = "park"', b'on_empty = "x"', "'on_empty'"),
        (b'title = "A"', b'title = "A"\nblocked_by = ["b"]', "which does not exist"),
        (b'title = "A"', b'title = "A"\nblocked_by = ["a"]', "wait for each other: a -> a"),
        (b'title = "A"', b'title = "A"\nintent = "' + b"0" * 64 + b'"', "which is missing"),
        (b'title = "A"', b'title = "A"\nintent = "../x"', "'intent' can't be"),
        (b"[[task]]", b'[[task]]\nid = "a"\ntitle = "A"\nrun = "x"\n[[task]]', "two tasks have"),
        (GOOD[GOOD.index(b"[[task]]") :], b"", "has no tasks"),
        (GOOD[GOOD.index(b"[[task]]") :], b"task = [1]", "a task that is no table"),
        (GOOD, b"a=" + b"[" * 20_000, "can't be read"),
        (GOOD, b"a=" + b"1" * 5_000, "can't be read"),
    ],
)
def test_a_changed_record_is_refused(old: bytes, new: bytes, message: str) -> None:
    assert old in GOOD
    with pytest.raises(RecordError) as caught:
        from_toml(GOOD.replace(old, new, 1), {})
    assert message in caught.value.message


def test_an_intent_that_was_changed_is_refused() -> None:
    sha256 = hashlib.sha256(b"x").hexdigest()
    toml = to_toml(small(intent=sha256))
    assert from_toml(toml, {sha256: b"x", "other": b""}).intents == {sha256: b"x"}
    with pytest.raises(RecordError, match="has been changed"):
        from_toml(toml, {sha256: b"y"})


def test_two_thousand_tasks_are_quick() -> None:
    base = small(prompt="Do this\nand that.\n", checks=("x", ("y", "z"))).tasks[0]
    plan = Plan("s", "S", tuple(replace(base, id=TaskId(f"t{n}")) for n in range(2_000)))
    began = time.perf_counter()
    assert from_toml(to_toml(plan), {}) == plan
    assert time.perf_counter() - began < 1.5
