"""One `[[task]]` of a plan file to the tasks that it stands for.

Theory. A table becomes one task for each combination of its matrix, in the order in which the
values are written, the last name turning fastest. Defaults and the agent are filled in first, then
names are replaced: matrix values win over an agent's values; `{model}` is the task's own model or
the agent's; `{id}` is known everywhere but in the id. Ids, titles, model, scopes, dependencies and
the intent's path are expanded here. Commands, prompts and messages stay as they were written,
beside their values, since they are expanded once, when they are used (`template` says why); of a
command in list form every name is checked here.

Rules. A task's own key replaces the default's; `run` and `agent`, or `prompt` and `intent`,
replace each other as well. A problem is noted and the work goes on with what there is, so that an
author hears of all of them at once. What can grow beyond the file's size is bounded: the number of
tasks and the text that defaults and agents multiply.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from git_batch.core.ids import TASK_ID, TaskId
from git_batch.core.model import Command, Task
from git_batch.core.planlines import Path, Problems, show
from git_batch.core.scope import check_glob, check_visible
from git_batch.core.standing import OnEmpty
from git_batch.core.template import RUN_TIME_NAMES, expand, names, variable_name

if TYPE_CHECKING:
    from git_batch.core.planmodel import AgentTable, DefaultsTable, PlanTable, TaskTable

MAX_TASKS = 50_000
MAX_RESOLVED = 64 << 20
MAX_INTENT = 1 << 20
MAX_TITLE = 200

_INSTEAD = {"run": "agent", "agent": "run", "prompt": "intent", "intent": "prompt"}
_APART = frozenset({"id", "model"})  # kept in fields of their own
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))]
)


class Draft(Struct, frozen=True):
    """A task whose dependencies are still ids and globs, and the `[[task]]` it comes from."""

    task: Task
    place: int
    blocked_by: tuple[str, ...]


class Intents:
    """The prompt files of a plan, each read once."""

    def __init__(self, read: Callable[[str], bytes], problems: Problems) -> None:
        self.contents: dict[str, bytes] = {}
        self._read = read
        self._problems = problems
        self._known: dict[str, str | None] = {}

    def sha256(self, name: str, path: Path, where: str) -> str | None:
        """Read a file and give its sha256 (hex); None if it is no prompt, which is noted."""
        if name not in self._known:
            content, why = self._content(name)
            if why:
                self._problems.add(path, f"{where}'intent' {why}: '{show(name)}'")
            self._known[name] = hashlib.sha256(content).hexdigest() if not why else None
            if not why:
                self.contents[hashlib.sha256(content).hexdigest()] = content
        return self._known[name]

    def _content(self, name: str) -> tuple[bytes, str | None]:
        if name.startswith(("/", "~")):
            return b"", "must be relative to the plan file"
        try:
            content = self._read(name)
        except FileNotFoundError:
            return b"", "names a file that does not exist"
        except OSError as error:
            return b"", f"names a file that can't be read ({error.strerror or error})"
        if len(content) > MAX_INTENT:
            return content, f"names a file of more than {MAX_INTENT >> 20} MiB"
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return content, "names a file that is not UTF-8"
        if "\0" in text:
            return content, "names a file with NUL characters"
        return content, None if text.strip() else "names a file that is empty"


class _Source:
    """A task's keys, its own or the defaults', and where each stands."""

    def __init__(self, table: TaskTable, place: int, defaults: DefaultsTable) -> None:
        own = table.model_fields_set
        lent = defaults.model_fields_set - own - {_INSTEAD[key] for key in own & _INSTEAD.keys()}
        self.place = place
        self._table = table
        self._lent = dict.fromkeys(lent, defaults)

    def get(self, key: str) -> Any:
        return getattr(self._lent.get(key, self._table), key)

    def path(self, key: str, *item: int) -> Path:
        if key in self._lent:
            return ("defaults", key, *item)
        return ("task", self.place, key, *item)


class TaskReader:
    """Makes tasks of the tables of one plan file."""

    def __init__(self, plan: PlanTable, intents: Intents, problems: Problems) -> None:
        self._plan = plan
        self._intents = intents
        self._problems = problems
        self._count = self._size = 0

    def drafts(self) -> Iterator[Draft]:
        """Yield every task of the plan, in order, until there are too many of them."""
        for place, table in enumerate(self._plan.task):
            source = _Source(table, place, self._plan.defaults)
            matrix: dict[str, list[str]] = source.get("matrix") or {}
            self._count += math.prod(map(len, matrix.values()))
            if self._count > MAX_TASKS:
                self._problems.add(("task", place), f"the plan has more than {MAX_TASKS} tasks")
                return
            for combination in itertools.product(*matrix.values()):
                draft = self._draft(source, dict(zip(matrix, combination, strict=True)))
                self._size += _size(draft.task)
                if self._size > MAX_RESOLVED:
                    size = f"{MAX_RESOLVED >> 20} MiB"
                    self._problems.add(("task", place), f"the resolved plan is more than {size}")
                    return
                yield draft

    def _draft(self, source: _Source, matrix: dict[str, str]) -> Draft:
        fill = _Filler(source, self._problems, matrix)
        agent = self._agent(source, fill)
        model = _enter_values(agent, matrix, fill)
        task_id = _id(fill)
        task = Task(
            id=TaskId(task_id),
            title=_title(fill),
            scope=_scope(source, fill),
            run=self._run(source, agent, fill),
            checks=tuple(fill.command("check", item) for item in source.get("check")),
            agent=source.get("agent"),
            model=model,
            stdin=agent.stdin if agent else "null",
            protect=_globs("protect", fill),
            review=fill.command("review", source.get("review")),
            variables=tuple(sorted((k, v) for k, v in fill.values.items() if k not in _APART)),
            not_now=tuple(agent.not_now) if agent else (),
            **self._prompt(source, agent, fill),
            **_limits(source),
        )
        if {"prompt", "prompt_file"} & fill.used and task.prompt is None and not task.intent_name:
            fill.complain("prompt", "is missing, but a command asks for it")
        return Draft(task, source.place, fill.many("blocked_by"))

    def _agent(self, source: _Source, fill: _Filler) -> AgentTable | None:
        name = source.get("agent")
        if name is None:
            if source.get("run") is None:
                fill.complain("run", "or 'agent' is missing")
            return None
        if source.get("run") is not None:
            fill.complain("run", "and 'agent' exclude each other")
        agent = self._plan.agent.get(name)
        if agent is None:
            hint = self._problems.suggest(name, self._plan.agent)
            fill.complain("agent", f"is '{show(name)}', but there is no [agent.{show(name)}]{hint}")
        return agent

    def _run(self, source: _Source, agent: AgentTable | None, fill: _Filler) -> Command:
        if agent is None:
            return fill.command("run", source.get("run") or ())
        path: Path = ("agent", source.get("agent"), "run")
        return fill.command("run", agent.run, path, f"[agent.{source.get('agent')}]: ")

    def _prompt(self, source: _Source, agent: AgentTable | None, fill: _Filler) -> dict[str, Any]:
        prompt: str | None = source.get("prompt")
        name = fill.one("intent")
        if prompt is not None and name is not None:
            fill.complain("prompt", "and 'intent' exclude each other")
        if prompt is not None and not prompt.strip():
            fill.complain("prompt", "is empty")
        if agent and agent.stdin == "prompt":
            fill.used.add("prompt")
        intent = None
        if name is not None:
            path = source.path("intent")
            intent = self._intents.sha256(name, path, fill.where(path))
        return {"prompt": prompt, "intent": intent, "intent_name": name}


class _Filler:
    """Replaces the names in one task's values and notes those that mean nothing."""

    def __init__(self, source: _Source, problems: Problems, values: Mapping[str, str]) -> None:
        self.values = dict(values)
        self.used: set[str] = set()
        self.source = source
        self._problems = problems
        self._label = show(str(source.get("id")))

    def label(self, task_id: str) -> None:
        """Call the task by its expanded id from here on."""
        self._label = show(task_id)

    def where(self, path: Path) -> str:
        """Begin a message: which table it is about."""
        return f"task '{self._label}': " if path[0] == "task" else f"[{show(str(path[0]))}]: "

    def complain(self, key: str, what: str, *item: int) -> None:
        """Note what is wrong with a key, or with an item of its list."""
        path = self.source.path(key, *item)
        place = f" item {item[0] + 1}" if item else ""
        self._problems.add(path, f"{self.where(path)}'{key}'{place} {what}")

    def one(self, key: str) -> str | None:
        """Give a text with its names replaced, or None if there is no such key."""
        text: str | None = self.source.get(key)
        return None if text is None else self._fill(text, self.source.path(key), key)

    def many(self, key: str) -> tuple[str, ...]:
        """Give a list of texts with their names replaced."""
        texts: Iterable[str] = self.source.get(key) or ()
        return tuple(
            self._fill(text, self.source.path(key, item), key) for item, text in enumerate(texts)
        )

    def command(
        self, key: str, command: Any, path: Path | None = None, where: str | None = None
    ) -> Command:
        """Give a command as it is, once the names of its list form are known to mean something."""
        if isinstance(command, str):
            return command
        path = path or self.source.path(key)
        for part in command:
            self.used.update(names(part))
            self._check(part, path, key, where, RUN_TIME_NAMES)
        return tuple(command)

    def _fill(self, text: str, path: Path, key: str) -> str:
        self._check(text, path, key, None, ())
        return expand(text, self.values)

    def _check(
        self, text: str, path: Path, key: str, where: str | None, others: Iterable[str]
    ) -> None:
        for name in names(text):
            if name in self.values or name in others:
                continue
            hint = self._problems.suggest(name, [*self.values, *others])
            hint = hint or f" (write '{{{{{name}}}}}' for the text '{{{name}}}' itself)"
            where = self.where(path) if where is None else where
            self._problems.add(path, f"{where}'{key}' has the unknown name '{{{name}}}'{hint}")


def _enter_values(agent: AgentTable | None, matrix: dict[str, str], fill: _Filler) -> str | None:
    """Give the names their values, and return the model, which may itself name matrix values."""
    extra: dict[str, str] = dict(agent.model_extra or {}) if agent else {}
    lent = extra.pop("model", None)
    model = fill.one("model") or lent
    fill.values = {**extra, **matrix}
    if model is not None:
        fill.values["model"] = model
    if len(set(map(variable_name, fill.values))) < len(fill.values):
        fill.complain("matrix", "has names that no environment variable could tell apart")
    return model


def _limits(source: _Source) -> dict[str, Any]:
    return {
        "on_empty": OnEmpty(source.get("on_empty")),
        "timeout": source.get("timeout"),
        "idle_timeout": source.get("idle_timeout"),
        "attempts": source.get("attempts"),
        "message": source.get("message") or None,
        "env": tuple(sorted(source.get("env").items())),
    }


def _id(fill: _Filler) -> str:
    text = fill.one("id") or ""
    if text:
        fill.label(text)
    why = check_visible(text)
    if not why and not TASK_ID.match(text):
        why = "must be 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-', and begin with a letter or digit"
    elif not why and ".." in text:
        why = "must not hold '..'"
    elif not why and text.endswith((".", ".lock")):
        why = "must not end with '.' or '.lock'"
    elif not why and text.split(".")[0].lower() in _DEVICES:
        why = "is the name of a device on Windows"
    if why and not names(text):  # an unknown name left in it is noted already
        fill.complain("id", why)
    fill.values["id"] = text
    return text


def _title(fill: _Filler) -> str:
    text = (fill.one("title") or "").strip()
    if not text:
        fill.complain("title", "is empty")
    elif len(text) > MAX_TITLE:
        fill.complain("title", f"is longer than {MAX_TITLE} characters")
    elif any(c in "\n\t\x85\u2028\u2029" for c in text):
        fill.complain("title", "must be one line, without tabs")
    return text


def _globs(key: str, fill: _Filler) -> tuple[str, ...]:
    globs = fill.many(key)
    for item, glob in enumerate(globs):
        why = check_glob(glob)
        if why:
            fill.complain(key, f"'{show(glob)}' {why}" if glob else why, item)
    return globs


def _scope(source: _Source, fill: _Filler) -> tuple[str, ...]:
    if source.get("scope") is None:
        fill.complain("scope", "is missing: which files may the task change?")
    elif not source.get("scope") and source.get("on_empty") != "accept":
        fill.complain("scope", "is empty, so the task could do nothing but park")
    return _globs("scope", fill)


def _size(task: Task) -> int:
    texts: list[str] = [task.title, task.prompt or "", task.message or ""]
    for command in (task.run, task.review, *task.checks):
        texts += [command] if isinstance(command, str) else command
    for name, value in (*task.env, *task.variables):
        texts += [name, value]
    return sum(map(len, itertools.chain(texts, task.scope, task.protect, task.not_now)))
