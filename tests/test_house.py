"""The house: sizes, names, layers; documentation that says what the program does; safe messages."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from git_batch.app.newplan import TEMPLATE, new_plan
from git_batch.cli.main import COMMANDS
from git_batch.cli.manpage import manpage, root_context
from git_batch.core.planfile import parse_plan
from git_batch.core.planmodel import schema
from git_batch.errors import ExitCode
from tests import docs

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "git_batch"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(TOP)) for path in MODULES]
PROSE = {"runs", "plan"}
"""Words that follow "git batch" where it is no command: the man page, the schema's title."""

FILE, FUNCTION = 350, 40
"""Most lines of a file and of a function."""


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


# --- sizes, names, docstrings ---------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
class TestModule:
    def test_is_small(self, path: Path) -> None:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE

    def test_has_small_functions(self, path: Path) -> None:
        functions = (
            node
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        # A command's signature is its options, one a line; what counts is what it does.
        long = {f.name: n for f in functions if (n := body_lines(f)) > FUNCTION}
        assert long == {}

    def test_says_what_it_is_for(self, path: Path) -> None:
        assert (ast.get_docstring(parsed(path)) or "").strip()

    def test_has_a_name_of_the_field(self, path: Path) -> None:
        parts = {*path.relative_to(TOP).with_suffix("").parts}
        assert not parts & {
            "util",
            "utils",
            "helper",
            "helpers",
            "manager",
            "common_utils",
            "misc_utils",
        }
        classes = [n.name for n in ast.walk(parsed(path)) if isinstance(n, ast.ClassDef)]
        assert not [name for name in classes if re.search(r"(Manager|Helper|Utils?)$", name)]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's lines from its first statement on, its docstring included."""
    assert function.end_lineno is not None
    return function.end_lineno - function.body[0].lineno + 1


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")
    assert [
        name for name, path in zip(NAMES, MODULES, strict=True) if marks.search(path.read_text())
    ] == []


# --- layers ---------------------------------------------------------------------------------------


def test_imports_go_down_only(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(program), "--cache-dir", str(tmp_path)], cwd=TOP, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "module", ["git_batch.cli.main", "git_batch.cli.reading", "git_batch.views.status"]
)
def test_readers_do_not_pay_for_what_checks_a_plan(module: str) -> None:
    code = f"import {module}, sys; print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


# --- documentation --------------------------------------------------------------------------------


def walk(context: click.Context, path: str) -> Iterator[tuple[str, click.Command]]:
    """Give a command and those below it."""
    command = context.command
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(click.Context(below, parent=context), f"{path} {name}")


ALL = dict(walk(root_context(), "git batch"))


@pytest.mark.parametrize("path", ALL)
def test_every_command_and_option_says_what_it_does(path: str) -> None:
    command = ALL[path]
    assert re.match(r"[A-Z].*\.", (command.help or "").split("\n\n")[0], re.DOTALL)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.opts}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_name_of_the_table_is_a_command(name: str) -> None:
    module = importlib.import_module(f"git_batch.cli.{COMMANDS[name][0]}")
    assert getattr(module, f"{name}_command").name == name


def test_readme_begins_with_the_two_commands() -> None:
    lines = [line for line in docs.README.read_text().splitlines() if line.startswith("    ")]
    assert [line.split("#")[0].strip() for line in lines[:2]] == ["make demo", "make test"]


def test_readme_is_what_the_program_makes_of_it() -> None:
    """If this fails: `make docs`."""
    assert docs.README.read_text(encoding="utf-8") == docs.readme()


def test_the_man_page_is_what_the_program_makes_of_it() -> None:
    """If this fails: `make docs`."""
    assert docs.PAGE.read_text(encoding="utf-8") == manpage()


def test_every_command_and_exit_status_stands_in_readme_and_man_page() -> None:
    page, readme = manpage(), docs.README.read_text()
    for name in COMMANDS:
        assert f".SS git batch {name}" in page
        assert f"| `git batch {name}" in readme
    for status in ExitCode:
        assert f"\n| {status.value} | " in readme
        assert f"\n.B {status.value}\n" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff here")
def test_the_man_page_has_no_errors() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", str(docs.PAGE)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_man_page_is_installed() -> None:
    wheel = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert wheel["wheel"]["shared-data"] == {
        "git_batch/_data/git-batch.1": "share/man/man1/git-batch.1"
    }


@pytest.mark.parametrize("path", [docs.README, docs.PAGE], ids=lambda path: path.name)
def test_documents_name_no_command_that_does_not_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("\\-", "-")
    named = set(re.findall(r"git batch ([a-z]+)", text))
    assert named - set(COMMANDS) - PROSE == set()


# --- the plan's format ----------------------------------------------------------------------------


def keys_of(node: Any) -> Iterator[str]:
    """Give every key that a plan may have, by the JSON Schema."""
    if isinstance(node, dict):
        yield from node.get("properties", {})
        for value in node.values():
            yield from keys_of(value)
    elif isinstance(node, list):
        for item in node:
            yield from keys_of(item)


def no_intent(name: str) -> bytes:
    """The template has none."""
    raise AssertionError(name)


def test_a_new_plan_shows_every_key() -> None:
    text = TEMPLATE.format(slug="x", title="X")
    shown = set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE))
    shown |= set(re.findall(r"^(?:# )?\[+(\w+)", text, re.MULTILINE))
    shown |= set(re.findall(r"\bor: (\w+) = ", text))
    assert set(keys_of(schema())) - shown == set()


def test_a_new_plan_is_a_plan_also_with_all_of_it_in_force() -> None:
    text = new_plan("x", "/anywhere")
    assert len(parse_plan(text.encode(), name="batch.toml", read_intent=no_intent).tasks) == 1
    uncommented = re.sub(r"^# (?=[\[\w\"])", "", text, flags=re.MULTILINE)
    uncommented = uncommented.replace(text.splitlines()[0][2:] + "\n", "")
    uncommented = re.sub(r"^An agent is.*\n", "", uncommented, flags=re.MULTILINE)
    uncommented = re.sub(r"^.* is a value for .*\n", "", uncommented, flags=re.MULTILINE)
    plan = parse_plan(uncommented.encode(), name="batch.toml", read_intent=no_intent)
    assert [task.id for task in plan.tasks] == ["first", "unions-net", "unions-db"]


# --- messages -------------------------------------------------------------------------------------

DESTRUCTIVE = re.compile(
    r"\brm -|\bgit rm\b|reset --(hard|merge)|git clean\b|checkout (--? |-f)|restore (--|\.)"
    r"|switch (-f|--discard)|branch (-D|-[a-zA-Z]*f|--force|--delete)|update-ref -d|notes remove"
    r"|push (-f|--force)|stash (drop|clear|pop)|reflog (expire|delete)"
    r"|gc --prune|tag -d|worktree remove|\bkill -9|--no-verify"
)


def literals(path: Path) -> Iterator[str]:
    """Give the strings of a module that are no docstrings; of an f-string its fixed parts."""
    tree = parsed(path)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    skipped = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, (*documented, ast.If))
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in skipped:
            yield node.value if isinstance(node.value, str) else ""


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_no_message_tells_anybody_to_destroy_work(path: Path) -> None:
    assert [text for text in literals(path) if DESTRUCTIVE.search(text)] == []


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_no_message_names_a_command_that_does_not_exist(path: Path) -> None:
    named = {word for text in literals(path) for word in re.findall(r"git batch ([a-z]+)", text)}
    assert named - set(COMMANDS) - PROSE == set()


def raised(path: Path) -> Iterator[str]:
    """Give the texts of errors and hints of a module."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value
                elif isinstance(argument, ast.JoinedStr):
                    parts = (
                        p.value if isinstance(p, ast.Constant) else "…" for p in argument.values
                    )
                    yield "".join(map(str, parts))


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_errors_are_written_as_gits(path: Path) -> None:
    """Lower case, no full stop; a name or a program may begin otherwise."""
    for text in raised(path):
        assert not re.match(r"[A-Z][a-z]", text), text
        assert not re.search(r"[^.…]\.$", text), text
        assert "`" not in text, text


def test_no_path_of_a_developers_machine_is_in_a_file() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=TOP, capture_output=True
    )
    if listed.returncode:
        pytest.skip("not a checkout")
    home = re.compile(rb"/(home|Users)/(?!runner|user|you|ann|x\b)[a-z]+/")
    found = []
    for name in filter(None, listed.stdout.split(b"\0")):
        path = TOP / name.decode()
        if path.is_file() and home.search(path.read_bytes()):
            found.append(name)
    assert found == []
