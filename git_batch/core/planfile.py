"""The text of a plan file to a Plan, or to one error that names everything that is wrong with it.

Theory. A plan goes through four gates, and what one of them finds is reported together, with its
line: the *shape* (size, encoding, nesting: what must not reach a parser), the *text* (TOML, no
control characters), the *tables* (`planmodel`: keys and types), the *meaning* (`planresolve`:
agents, defaults, matrix, names, scopes, dependencies). A later gate needs what an earlier one
promised, so the first that finds something ends it.

Rules. Whatever the bytes, nothing but PlanError comes out, in time linear in the text. The only
IO is `read_intent`, which is given. The plan file is read here once, at the start; afterwards the
stored form (`canonical`) is the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from git_batch.core.model import Plan
from git_batch.core.planlines import Path, Problems, check_shape, show
from git_batch.core.planmodel import (
    AgentTable,
    BudgetTable,
    DefaultsTable,
    NotifyTable,
    PlanTable,
    TaskTable,
)
from git_batch.core.planresolve import resolve
from git_batch.core.scope import CONTROL
from git_batch.core.toml import loads
from git_batch.errors import PlanError

MAX_SIZE = 16 << 20
"""Bytes. Ten thousand tasks with prompts take about 5 MiB; more than this is a wrong file."""

_AT_LINE = re.compile(r" \(at line (\d+), column (\d+)\)\Z")

_TABLES: Mapping[str, type[BaseModel]] = {
    "budget": BudgetTable,
    "agent": AgentTable,
    "defaults": DefaultsTable,
    "notify": NotifyTable,
    "task": TaskTable,
}

_SYNONYMS = {
    "after": "blocked_by",
    "checks": "check",
    "cmd": "run",
    "command": "run",
    "depends_on": "blocked_by",
    "files": "scope",
    "max_attempts": "attempts",
    "name": "id",
    "needs": "blocked_by",
    "paths": "scope",
    "retries": "attempts",
    "subject": "title",
    "tests": "check",
    "vars": "matrix",
}
"""What people write who know another tool."""

_EXPECTED = {
    "string_type": "must be a string",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}


def parse_plan(text: bytes, *, name: str, read_intent: Callable[[str], bytes]) -> Plan:
    """Read a plan file.

    Args:
        name: what the file is called in messages.
        read_intent: gives the bytes of a prompt file by its path relative to the plan file;
            raises OSError.

    Raises:
        PlanError: the plan can't be used; one line for each problem, `<name>:<line>: …`.
    """
    name = show(name, 200)
    source = _decode(text, name)
    document = _parse(source, name)
    problems = Problems(name, source)
    for path, value in _strings(document, ()):
        control = CONTROL.search(value)
        if control:
            where = f"{ord(control[0]):04X} at position {control.start() + 1}"
            problems.add(path, f"{_subject(path, document)} has the control character U+{where}")
    if problems:
        raise problems.error()
    table = _validate(document, problems)
    plan = resolve(table, read_intent, problems) if table is not None else None
    if plan is None or problems:
        raise problems.error()
    return plan


def _decode(text: bytes, name: str) -> str:
    if len(text) > MAX_SIZE:
        size = f"{len(text) >> 20} MiB, more than the {MAX_SIZE >> 20} MiB"
        raise PlanError(f"{name}: the plan has {size} that a plan may have")
    try:
        source = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise PlanError(f"{name}:{line}: byte 0x{text[error.start]:02x} is not UTF-8") from None
    return source.replace("\r\n", "\n")


def _parse(source: str, name: str) -> dict[str, Any]:
    shape = check_shape(source)
    if shape:
        raise PlanError(f"{name}:{shape[0]}: {shape[1]}")
    try:
        return loads(source)
    except ValueError as error:
        message = str(error)
        place = _AT_LINE.search(message)
        what = show(_AT_LINE.sub("", message).removesuffix(" (at end of document)"), 200)
        what = what[:1].lower() + what[1:]
        if place:
            raise PlanError(f"{name}:{place[1]}: {what} (column {place[2]})") from None
        line = source.rstrip("\n").count("\n") + 1
        raise PlanError(f"{name}:{line}: {what} at the end of the file") from None


def _strings(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield every string of the document, keys too."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), key
            yield from _strings(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _strings(item, (*path, place))


def _validate(document: dict[str, Any], problems: Problems) -> PlanTable | None:
    try:
        return PlanTable.model_validate(document)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False):
            path = _within(error["loc"], document)
            problems.add(path, _describe(error, path, document, problems))
        return None


def _within(location: tuple[int | str, ...], document: Any) -> Path:
    """Keep of pydantic's location what is a path of the document; the rest names its types."""
    path: Path = ()
    for part in location:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            break
        path = (*path, part)
    return path


def _describe(
    error: Mapping[str, Any], path: Path, document: dict[str, Any], problems: Problems
) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return f"{_table_of(path, document)}'{error['loc'][-1]}' is missing"
    if kind == "extra_forbidden":
        key = str(path[-1])
        model = _TABLES.get(str(path[0]), PlanTable) if len(path) > 1 else PlanTable
        similar = _SYNONYMS.get(key)
        hint = f"; did you mean '{similar}'?" if similar in model.model_fields else None
        hint = hint or problems.suggest(key, model.model_fields)
        return f"{_table_of(path[:-1], document)}unknown key '{show(key)}'{hint}"
    if kind == "value_error":
        what = show(str(context["error"]), 200)
    elif kind in _EXPECTED:
        what = f"{_EXPECTED[kind]}, not {_kind_of(error['input'])}"
    elif kind == "too_short":
        what = "is empty"
    elif kind == "string_too_short":
        what = "is an empty string"
    elif kind == "literal_error":
        what = f"must be {context['expected']}"
    else:
        message = error["msg"].removeprefix("Input should be ")
        what = f"must be {message}" if message != error["msg"] else message.lower()
    return f"{_subject(path, document)} {what}"


def _table_of(path: Path, document: dict[str, Any]) -> str:
    """Say which table a path goes through, as the beginning of a message."""
    if not path:
        return ""
    table: Any = document[str(path[0])]
    if len(path) > 1 and isinstance(table, list) and isinstance(path[1], int):
        task_id = table[path[1]].get("id") if isinstance(table[path[1]], dict) else None
        if isinstance(task_id, str):
            return f"task '{show(task_id)}': "
        return f"task {path[1] + 1}: "
    if path[0] == "agent" and len(path) > 1:
        return f"[agent.{show(str(path[1]))}]: "
    return f"[{show(str(path[0]))}]: " if isinstance(table, dict) else ""


def _subject(path: Path, document: dict[str, Any]) -> str:
    """Name the value at a path: its table, its key, its place in a list."""
    start = min(2 if path[:1] in (("task",), ("agent",)) else 1, max(len(path) - 1, 0))
    keys = [part for part in path[start:] if isinstance(part, str)]
    places = [part for part in path[start:] if isinstance(part, int)]
    if not keys:
        return f"'{path[0]}' item {places[0] + 1}" if places else "the plan"
    text = f"{_table_of(path, document) if len(path) > 1 else ''}'{show('.'.join(keys))}'"
    return text + (f" item {places[-1] + 1}" if places else "")


def _kind_of(value: Any) -> str:
    kinds = {bool: "a boolean", str: "a string", int: "a whole number", float: "a number"}
    return kinds.get(type(value)) or (
        "a list" if isinstance(value, list) else "a table" if isinstance(value, dict) else "a time"
    )
