"""The text of a plan: what is accepted, and what is said about what is not."""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from git_batch.core import canonical, planmodel, template
from git_batch.core.model import Budget, Plan
from git_batch.core.planfile import MAX_SIZE, parse_plan
from git_batch.core.planlines import line_index
from git_batch.core.standing import OnEmpty
from git_batch.errors import ExitCode, PlanError

PLANS = Path(__file__).parents[2] / "fixtures" / "plans"
GOOD = sorted((PLANS / "good").glob("*.toml"))
BROKEN = sorted((PLANS / "broken").glob("*.toml"))
INTENTS = {
    "prompts/net.md": b"The net.\n",
    "prompts/db.md": b"The db.\n",
    "prompts/unions.md": b"Unions.\n",
    "empty.md": b" \n",
    "latin1.md": b"\xe9",
    "nul.md": b"a\0b",
    "large.md": b"x" * (1 << 20) + b"x",
}
HEAD = 'version = 1\nslug = "x"\n[[task]]\nid = "a"\ntitle = "T"\nscope = ["src"]\n'


def read_intent(name: str) -> bytes:
    if name == "folder":
        raise IsADirectoryError(21, "Is a directory")
    if name not in INTENTS:
        raise FileNotFoundError(name)
    return INTENTS[name]


def parse(text: str | bytes) -> Plan:
    data = text.encode() if isinstance(text, str) else text
    return parse_plan(data, name="batch.toml", read_intent=read_intent)


def refusal(text: str | bytes) -> str:
    with pytest.raises(PlanError) as caught:
        parse(text)
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value.message


def attempt(text: bytes) -> tuple[Plan | None, str]:
    try:
        return parse(text), "batch.toml: good"
    except PlanError as error:
        return None, error.message


def load(name: str) -> Plan:
    return parse((PLANS / "good" / f"{name}.toml").read_bytes())


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_plans_survive_their_canonical_form(path: Path) -> None:
    plan = parse(path.read_bytes())
    toml = canonical.to_toml(plan)
    again = canonical.from_toml(toml, plan.intents)
    assert (again.tasks, again.intents) == (plan.tasks, plan.intents)
    assert canonical.to_toml(again) == toml


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_each_broken_plan_is_refused_with_place_and_reason(path: Path) -> None:
    text = path.read_text()
    expected = re.findall(r"^# expect: (.*)$", text, re.MULTILINE)
    assert expected
    lines = refusal(text).split("\n")
    for part in expected:
        begins = part if part[0].isdigit() else f" {part}"
        begins = f"batch.toml:{begins}"
        assert any(line.startswith(begins) or part in line for line in lines), (part, lines)
    if all(re.match(r"\d+: ", part) for part in expected):
        assert len(lines) == len(expected), lines


def test_the_example_of_the_documentation() -> None:
    plan = load("full")
    assert (plan.slug, plan.title) == ("modernise", "Modernise the package")
    assert plan.budget == Budget(max_tasks=20, deadline=8 * 3600.0, max_wait=6 * 3600.0)
    imports, net, db = plan.tasks
    assert [task.id for task in plan.tasks] == ["imports", "unions-net", "unions-db"]
    assert imports.run == "ruff check --select I --fix --exit-zero ."
    assert (imports.timeout, imports.checks) == (1800.0, ("python -m pytest -q",))
    assert net.title == "Use X | Y unions in net"
    assert net.scope == ("src/net/**/*.py",)
    assert net.blocked_by == db.blocked_by == ("imports",)
    assert (net.agent, net.model, net.stdin) == ("claude", "opus", "prompt")
    assert net.checks[1] == ("python", "-m", "pytest", "-q")
    assert (net.review, net.on_empty) == ("human", OnEmpty.PARK)
    assert (net.timeout, net.idle_timeout, net.attempts) == (1200.0, 300.0, 2)
    assert net.env == (("MODE", "strict"),)
    assert net.not_now == ("rate.?limit",)
    assert template.render_command(net, {})[:4] == ("claude", "-p", "--model", "opus")


def test_the_smallest_plan_has_the_documented_defaults() -> None:
    plan = load("small")
    (task,) = plan.tasks
    assert plan == Plan(slug="small", title="small", tasks=(task,))
    assert (task.timeout, task.attempts, task.idle_timeout) == (3600.0, 2, None)
    assert (task.checks, task.review, task.on_empty) == (("true",), "none", OnEmpty.PARK)
    assert plan.budget.qa_failure_limit == 6
    assert plan.budget.max_wait == 0


def test_defaults_agents_and_matrix_are_filled_in() -> None:
    plan = load("defaults")
    assert [task.id for task in plan.tasks] == [
        "first-net",
        "first-db",
        "second-net-low",
        "second-net-high",
        "second-db-low",
        "second-db-high",
        "last",
    ]
    first, _, _, high, *_, last = plan.tasks
    assert first.title == "First of net (small)"
    assert first.scope == ("src/net",)
    assert first.protect == ("src/net/vendor/**",)
    assert first.intent_name == "prompts/net.md"
    assert first.intent == hashlib.sha256(b"The net.\n").hexdigest()
    assert plan.intents[first.intent] == b"The net.\n"
    assert dict(first.variables) == {"effort": "low", "pkg": "net"}
    assert template.render_command(first, {"prompt_file": "/p"}) == (
        "agent", "--effort", "low", "--model=small", "/p",
    )  # fmt: skip
    assert template.render_command(first, {}, first.checks[0]) == ("pytest", "tests/net")
    assert template.render_command(first, {}, first.review) == ("sh", "review.sh", "first-net")
    assert template.render_message(first, {}) == "For net."
    assert high.model == "large-high"
    assert high.blocked_by == ("first-net",)
    assert high.prompt is not None
    assert high.intent is None
    assert dict(high.variables)["effort"] == "high"
    assert last.blocked_by == tuple(task.id for task in plan.tasks[2:6])
    assert (last.agent, last.stdin, last.message, last.checks) == (None, "null", None, ())
    assert template.render_command(last, {})[2] == "echo ${HOME} everything {id} {}"
    assert plan.notify == ("notify-send", "git batch")
    assert plan.budget.deadline == datetime(2030, 1, 31, 8, tzinfo=timezone(timedelta(hours=1)))


def test_dependencies_are_in_the_plans_order_and_once() -> None:
    assert load("tasks").tasks[4].blocked_by == ("b", "d")


def test_how_a_plan_is_written_does_not_change_its_digest() -> None:
    one = HEAD + 'run = "true"\ncheck = "x"\nenv = { B = "2", A = "1" }\nblocked_by = []\n'
    other = (
        '\ufeffslug = \'x\' # comment\r\nversion = 1\r\ntask = [{ run = "true", id = "a", '
        'title = " T ", scope = ["src"], check = ["x"], timeout = "60m", attempts = 2, '
        'env.A = "1", env.B = "2" }]\r\nbudget.max_tasks = 3\r\n'
    )
    assert canonical.to_toml(parse(one)) == canonical.to_toml(parse(other))


def test_a_glob_over_ids_never_matches_its_own_task() -> None:
    body = 'title = "T"\nscope = ["s"]\nrun = "true"\n'
    text = 'version = 1\nslug = "x"\n'
    for name in ("a-1", "a-2", "b"):
        text += f'[[task]]\nid = "{name}"\n{body}'
    plan = parse(text + f'[[task]]\nid = "a-3"\nblocked_by = ["a-?", "**b"]\n{body}')
    assert plan.tasks[3].blocked_by == ("a-1", "a-2", "b")


def test_commands_may_hold_invisible_characters_and_prompts_any_braces() -> None:
    plan = parse(HEAD + 'run = ["x", "\u202e", "{}"]\nprompt = "{x} {{y}} ${id}"\n')
    assert plan.tasks[0].run == ("x", "\u202e", "{}")
    prompt = template.render_prompt(plan.tasks[0], {}, {}, "")
    assert prompt.startswith("{x} {{y}} ${id}\n")


def test_messages_never_echo_what_a_terminal_would_obey() -> None:
    message = refusal(HEAD + 'run = "true"\n"chek\\u202e\\u009b" = 1\n')
    assert message.replace("\n", "").isprintable()
    with pytest.raises(PlanError, match=r"b\\u\{1b\}\.toml"):
        parse_plan(b"x", name="b\x1b.toml", read_intent=read_intent)


def test_many_problems_are_cut_and_counted() -> None:
    keys = "".join(f"key{n} = 1\n" for n in range(50))
    lines = refusal(HEAD + 'run = "true"\n' + keys).split("\n")
    assert len(lines) == 21
    assert lines[-1] == "batch.toml: and 30 more problems"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a = '\xff'", "batch.toml:1: byte 0xff is not UTF-8"),
        (b"\n\nx = \xc3", "batch.toml:3: byte 0xc3 is not UTF-8"),
        (b"#" * (MAX_SIZE + 1), "batch.toml: the plan has 16 MiB, more than"),
        (b"a = " + b"[" * 100_000, "batch.toml:1: brackets are nested more than 32 deep"),
        (b"\na" + b".a" * 100_000 + b" = 1", "batch.toml:2: a key has more than 32 dots"),
        (b"[" + b"'a'." * 100_000 + b"a]", "batch.toml:1: a key has more than 32 dots"),
        (b"a = " + b"1" * 5_000, "batch.toml:1: a number has too many digits (column 5)"),
        (b'a = """' + b'\\"""' * 100_000, "batch.toml:1: unterminated string"),
        (b"a = '''" + b"\n" * 100_000, "batch.toml:"),
        (b"a = 1\na = 2", "batch.toml:2: cannot overwrite a value"),
        (b"a = 1\x00", "batch.toml:1: "),
    ],
    ids=range(11),
)
def test_hostile_shapes_are_refused_quickly(text: bytes, message: str) -> None:
    began = time.perf_counter()
    assert refusal(text).startswith(message)
    assert time.perf_counter() - began < 2


def test_brackets_and_dots_in_strings_and_comments_are_only_text() -> None:
    text = "[" * 100 + "a" + ".a" * 100
    written = f"run = \"true\" # {text}\nprompt = '''{text}\n'\"{text}'''\nmessage = \"{text}\"\n"
    assert parse(HEAD + written).tasks[0].message == text


def test_a_globs_blow_up_is_bounded() -> None:
    values = json.dumps([str(n) for n in range(80)])
    text = HEAD.replace('"a"', '"{x}-{y}"') + 'run = "true"\nblocked_by = ["*"]\n'
    message = refusal(text + f"matrix = {{ x = {values}, y = {values[:-1]}] }}\n")
    assert "more than 1000000 dependencies" in message


def test_what_defaults_multiply_is_bounded() -> None:
    values = json.dumps([str(n) for n in range(100)])
    text = HEAD.replace('"a"', '"{x}"') + f'run = "true"\nmatrix = {{ x = {values} }}\n'
    message = refusal(text + f'prompt = "{"x" * 1_000_000}"\n')
    assert "the resolved plan is more than 64 MiB" in message


def test_lines_are_found_however_the_document_is_written() -> None:
    text = (
        "a = 1 # [b]\n"
        '"q.r" . s = """\n[no]\nx = 1\n"""\n'
        "[t.'u v']\n"
        "k = [\n  1, 'two',\n  # no, no\n  [3,\n   4],\n  {x = 1},\n]\n"
        "[[l]]\n[[l.m]]\nz = 1\n[[l.m]]\n[l.m.n]\n y = 1\n"
        "[[l]]\n[l.o]\n"
    )
    lines = line_index(text)
    assert lines["a",] == 1
    assert lines["q.r", "s"] == 2
    assert lines["t", "u v"] == 6
    assert lines["t", "u v", "k"] == 7
    assert lines["t", "u v", "k", 1] == 8
    assert lines["t", "u v", "k", 2] == 10
    assert lines["t", "u v", "k", 3] == 12
    assert lines["l", 0, "m", 0, "z"] == 16
    assert lines["l", 0, "m", 1, "n", "y"] == 19
    assert lines["l", 1, "o"] == 21


def test_the_schema_knows_every_key_and_nothing_more() -> None:
    schema = planmodel.schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["required"] == ["version", "slug", "task"]
    tables = {"PlanTable": schema, **schema["$defs"]}
    for name, table in tables.items():
        model = getattr(planmodel, name)
        assert table["properties"].keys() == model.model_fields.keys()
        assert all("description" in key or "$ref" in key for key in table["properties"].values())
        assert table["additionalProperties"] == (
            {"type": "string"} if name == "AgentTable" else False
        )
    assert '"null"' not in json.dumps(schema).replace('["prompt", "null"]', "").replace(
        '"default": "null"', ""
    )


def test_mutated_plans_are_refused_without_any_other_error() -> None:
    seeds = [path.read_bytes() for path in GOOD + BROKEN if path.stem != "matrix-big"]
    chance = random.Random(20_260_101)
    pieces = [b"[", b"]", b"{", b"}", b'"', b"'", b"\n", b"=", b".", b"\\", b"\x00", b"\xff", b"*",
              b"[[task]]\n", b'"""', b"9" * 20, b"nan", b"2030-01-01", b"true", b"[]"]  # fmt: skip
    slowest = 0.0
    for _ in range(2_000):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data) + 1)
            change = chance.randrange(4)
            if change == 0:
                data[at:at] = chance.choice(pieces)
            elif change == 1:
                del data[at : at + chance.randint(1, 30)]
            elif change == 2:
                other = chance.choice(seeds)
                begin = chance.randrange(len(other))
                data[at:at] = other[begin : begin + chance.randint(1, 80)]
            elif data:
                data[at % len(data)] = chance.randrange(256)
        began = time.perf_counter()
        plan, message = attempt(bytes(data))
        slowest = max(slowest, time.perf_counter() - began)
        assert all(line.startswith("batch.toml:") for line in message.split("\n"))
        assert message.replace("\n", "").isprintable()
        if plan is not None:
            canonical.from_toml(canonical.to_toml(plan), plan.intents)
    assert slowest < 2
