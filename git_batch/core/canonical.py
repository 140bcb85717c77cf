"""The one form of a plan that is stored, digested and confirmed.

Theory. `plan.toml` of the record is the resolved plan: matrix expanded, defaults and agents filled
in, dependencies by id, prompts' files by their sha256. Its digest is what a person confirms, so
the bytes may depend on the plan alone, neither on how its author wrote it nor on a version of
some library. Hence an own writer for the small part of TOML that it takes:

* keys in one fixed order, one per line; a task is a `[[task]]` table, in the plan's order;
* what is None or empty is left out, everything else is written, defaults too: a later version
  with another default still runs what was confirmed;
* a text with line breaks is a multi-line string, so that people can read prompts with stock git;
* all other values are written as JSON writes them, which is TOML as well.

Rules. The budget is no part of it (the authorization holds that), nor are the intents' bytes.
A stored plan is checked again when it is read: it may have been changed, or written by a later
version. Unknown keys are refused, since to ignore one would be to run less than was confirmed.
No pydantic here: `status` and the hooks read plans, and must start fast.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from git_batch.core.graph import Graph, GraphError
from git_batch.core.ids import SLUG, TASK_ID, TaskId
from git_batch.core.model import Command, Plan, Task
from git_batch.core.scope import check_glob
from git_batch.core.standing import OnEmpty
from git_batch.core.toml import loads
from git_batch.errors import RecordError

FORMAT = 1
"""Of the canonical form; a change of the bytes that a plan gives is a new format."""

_NEWER = "a newer git-batch may have written it"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

_PLAN_KEYS = {"slug": "slug", "title": "title", "fail_fast": "fail_fast", "baseline": "baseline"}
_TASK_KEYS = {
    "id": "id",
    "title": "title",
    "blocked_by": "blocked_by",
    "scope": "scope",
    "protect": "protect",
    "agent": "agent",
    "model": "model",
    "run": "run",
    "stdin": "stdin",
    "not_now": "not_now",
    "prompt": "prompt",
    "intent": "intent",
    "intent_name": "intent_name",
    "check": "checks",
    "review": "review",
    "on_empty": "on_empty",
    "timeout": "timeout",
    "idle_timeout": "idle_timeout",
    "attempts": "attempts",
    "message": "message",
    "env": "env",
    "variables": "variables",
}
"""Key of the file, in the order of the file, and the attribute that it holds."""

_TABLES = frozenset({"env", "variables"})


def to_toml(plan: Plan) -> bytes:
    """Write the canonical form of a plan.

    Raises:
        ValueError: a text that TOML can't hold (a lone surrogate), or a number that isn't one.
    """
    lines = [f"format = {FORMAT}", *_lines(plan, {**_PLAN_KEYS, "notify": "notify"})]
    for task in plan.tasks:
        lines += ["", "[[task]]", *_lines(task, _TASK_KEYS)]
    return "\n".join([*lines, ""]).encode()


def digest(toml: bytes) -> str:
    """Give the plan digest of canonical bytes: "sha256:" and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(toml).hexdigest()


def task_toml(task: Task) -> bytes:
    """Write one task by itself; it contains its id, so no two tasks give the same bytes.

    Raises:
        ValueError: as in `to_toml`.
    """
    return "\n".join([*_lines(task, _TASK_KEYS), ""]).encode()


def from_toml(toml: bytes, intents: Mapping[str, bytes]) -> Plan:
    """Read a stored plan and check it again; its budget is the default one.

    Args:
        intents: the bytes of the intent files by their sha256 (hex).

    Raises:
        RecordError: it is no plan, its tasks can't be put in order, or an intent is missing or
            not what its name says.
    """
    table = _load(toml)
    found = table.pop("format", None)
    if found != FORMAT or isinstance(found, bool):
        raise RecordError(f"the stored plan has the unknown format {found!r}", _NEWER)
    tasks = table.pop("task", [])
    if not isinstance(tasks, list) or not tasks:
        raise RecordError("the stored plan has no tasks")
    if not all(isinstance(task, dict) for task in tasks):
        raise RecordError("the stored plan has a task that is no table")
    values = _values(table, _PLAN_READERS, ("slug", "title"), "the stored plan")
    plan = Plan(tasks=tuple(map(_task, tasks)), intents=dict(_intents(tasks, intents)), **values)
    try:
        Graph(plan)
    except GraphError as error:
        raise RecordError(f"the stored plan: {error}") from None
    return plan


def _lines(source: object, keys: Mapping[str, str]) -> list[str]:
    lines = []
    for key, attribute in keys.items():
        value = getattr(source, attribute)
        if value is not None and value != ():
            lines.append(f"{key} = {_table(value) if key in _TABLES else _text(value)}")
    return lines


def _text(value: object) -> str:
    if isinstance(value, str) and "\n" in value:
        # The line break after the opening quotes isn't part of the text.
        return '"""\n' + "\n".join(_plain(line)[1:-1] for line in value.split("\n")) + '"""'
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _plain(value)


def _plain(value: object) -> str:
    # Of what JSON leaves raw in a string, TOML refuses this one.
    return _JSON.encode(value).replace("\x7f", "\\u007f")


def _table(pairs: tuple[tuple[str, str], ...]) -> str:
    return "{" + ", ".join(f"{_key(key)} = {_plain(value)}" for key, value in pairs) + "}"


def _key(text: str) -> str:
    return text if _BARE_KEY.match(text) else _plain(text)


def _load(toml: bytes) -> dict[str, Any]:
    try:
        return loads(toml.decode())
    except ValueError as error:  # that it is not UTF-8 is one
        raise RecordError(f"the stored plan can't be read: {error}") from None


def _task(table: dict[str, Any]) -> Task:
    name = table.get("id")
    where = f"task {name!r} of the stored plan" if isinstance(name, str) else "the stored plan"
    values = _values(table, _TASK_READERS, ("id", "title", "run"), where)
    values.setdefault("scope", ())
    return Task(**values)


def _values(
    table: dict[str, Any], readers: Mapping[str, Reader], needed: tuple[str, ...], where: str
) -> dict[str, Any]:
    """Read a table's values by attribute.

    Raises:
        RecordError: an unknown, missing or ill-formed key.
    """
    values: dict[str, Any] = {}
    for key, raw in table.items():
        reader = readers.get(key)
        if reader is None:
            raise RecordError(f"{where} has the unknown key {key!r}", _NEWER)
        try:
            values[_TASK_KEYS.get(key, key)] = reader(raw)
        except ValueError as error:
            raise RecordError(f"{where}: {key!r} {error}") from None
    missing = [key for key in needed if key not in values]
    if missing:
        raise RecordError(f"{where} has no {missing[0]!r}")
    return values


def _intents(tasks: list[dict[str, Any]], intents: Mapping[str, bytes]) -> dict[str, bytes]:
    needed = {task["intent"]: intents.get(task["intent"]) for task in tasks if "intent" in task}
    for sha256, content in needed.items():
        if content is None:
            raise RecordError(f"the stored plan needs the intent {sha256}, which is missing")
        if hashlib.sha256(content).hexdigest() != sha256:
            raise RecordError(f"the intent {sha256} of the stored plan has been changed")
    return cast(dict[str, bytes], needed)


Reader = Callable[[Any], object]


def _string(raw: Any) -> str:
    if not isinstance(raw, str):
        raise ValueError("is not a string")
    return raw


def _matching(pattern: re.Pattern[str]) -> Reader:
    def read(raw: Any) -> str:
        if not pattern.match(_string(raw)):
            raise ValueError(f"can't be {raw!r}")
        return cast(str, raw)

    return read


def _one_of(*choices: str) -> Reader:
    def read(raw: Any) -> str:
        if raw not in choices:
            raise ValueError(f"can't be {raw!r}")
        return cast(str, raw)

    return read


def _flag(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise ValueError("is not true or false")
    return raw


def _strings(raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(part, str) for part in raw):
        raise ValueError("is not a list of strings")
    return tuple(raw)


def _globs(raw: Any) -> tuple[str, ...]:
    globs = _strings(raw)
    for glob in globs:
        reason = check_glob(glob)
        if reason:
            raise ValueError(f"has the pattern {glob!r}, which {reason}")
    return globs


def _ids(raw: Any) -> tuple[TaskId, ...]:
    return tuple(map(TaskId, _strings(raw)))


def _command(raw: Any) -> Command:
    command = raw if isinstance(raw, str) else _strings(raw)
    if not command or not command[0]:
        raise ValueError("has an empty command")
    return command


def _commands(raw: Any) -> tuple[Command, ...]:
    if not isinstance(raw, list):
        raise ValueError("is not a list of commands")
    return tuple(map(_command, raw))


def _seconds(raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise ValueError("is not a number of seconds")
    try:
        seconds = float(raw)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError("is not a positive number of seconds")
    return seconds


def _count(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 1:
        raise ValueError("is not a positive whole number")
    return raw


def _pairs(raw: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, dict) or not all(isinstance(value, str) for value in raw.values()):
        raise ValueError("is not a table of strings")
    return tuple(raw.items())


_PLAN_READERS: dict[str, Reader] = {
    "slug": _matching(SLUG),
    "title": _string,
    "fail_fast": _flag,
    "baseline": _flag,
    "notify": _command,
}

_TASK_READERS: dict[str, Reader] = {
    "id": _matching(TASK_ID),
    "title": _string,
    "blocked_by": _ids,
    "scope": _globs,
    "protect": _globs,
    "agent": _string,
    "model": _string,
    "run": _command,
    "stdin": _one_of("null", "prompt"),
    "not_now": _strings,
    "prompt": _string,
    "intent": _matching(_SHA256),
    "intent_name": _string,
    "check": _commands,
    "review": _command,
    "on_empty": OnEmpty,
    "timeout": _seconds,
    "idle_timeout": _seconds,
    "attempts": _count,
    "message": _string,
    "env": _pairs,
    "variables": _pairs,
}
