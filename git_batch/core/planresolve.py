"""From the tables of a plan file to the plan: what they mean together.

Theory. `plantask` makes tasks of tables, one by one; here is what concerns more than one of them:
the agents they share, ids that must differ, dependencies written as ids or globs, cycles. Every
problem is noted at its place and the work goes on, so an author hears of all of them at once.

Rules. Ids are compared with their case folded, since some file systems fold it. A glob over ids
knows `*` and `?`, never matches the task that it stands in, and must match something. Dependencies
are kept in the plan's order, each once, however they were written. Their number is bounded: a few
globs over ten thousand ids could ask for a hundred million.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from git_batch.core.graph import CycleError, Graph
from git_batch.core.ids import TaskId
from git_batch.core.model import Budget, Command, Plan, Task
from git_batch.core.planlines import Path, Problems, show
from git_batch.core.planrules import MAX_VALUE, RESERVED_NAMES
from git_batch.core.plantask import Draft, Intents, TaskReader
from git_batch.core.scope import Scope
from git_batch.core.template import NAME, names
from git_batch.core.values import replace

if TYPE_CHECKING:
    from git_batch.core.planmodel import AgentTable, PlanTable

MAX_EDGES = 1_000_000

_SHOWN_OF_CYCLE = 10
_ID_GLOB = re.compile(r"[A-Za-z0-9._*?-]+\Z")


def resolve(table: PlanTable, read_intent: Callable[[str], bytes], problems: Problems) -> Plan:
    """Make the plan; it is only good if no problem was noted."""
    for name, agent in table.agent.items():
        _check_agent(name, agent, table, problems)
    intents = Intents(read_intent, problems)
    drafts = list(TaskReader(table, intents, problems).drafts())
    tasks = _Links(drafts, problems).tasks()
    return Plan(
        slug=table.slug,
        title=_one_line(table, problems),
        tasks=tasks,
        fail_fast=table.fail_fast,
        baseline=table.baseline,
        budget=Budget(
            max_tasks=table.budget.max_tasks,
            deadline=table.budget.deadline,
            qa_failure_limit=table.budget.qa_failure_limit,
            max_wait=table.budget.max_wait,
            max_usd=table.budget.max_usd,
            max_tokens=table.budget.max_tokens,
            unknown_stops=table.budget.unknown_usage == "stop",
        ),
        notify=_as_command(table.notify.command) if table.notify else None,
        intents=intents.contents,
    )


def _as_command(raw: str | list[str]) -> Command:
    return raw if isinstance(raw, str) else tuple(raw)


def _one_line(table: PlanTable, problems: Problems) -> str:
    title = (table.title or table.slug).strip()
    if not title or len(title) > 200 or any(c in "\n\t\x85\u2028\u2029" for c in title):
        problems.add(("title",), "'title' must be one line of at most 200 characters")
    return title


def _check_agent(name: str, agent: AgentTable, table: PlanTable, problems: Problems) -> None:
    used = {found for part in agent.run for found in names(part)}
    keys = type(agent).model_fields
    task_keys = type(table.defaults).model_fields.keys() - {"model"}
    for key, value in (agent.model_extra or {}).items():
        path: Path = ("agent", name, key)
        where = f"[agent.{show(name)}]: '{show(key)}'"
        if key in task_keys:
            problems.add(path, f"{where} belongs into [[task]] or [defaults]")
        elif key in RESERVED_NAMES and key != "model":
            problems.add(path, f"{where} has a meaning already")
        elif not NAME.fullmatch(key):
            problems.add(path, f"{where} is no name: letters, digits, '_' and '-'")
        elif len(value) > MAX_VALUE:
            problems.add(path, f"{where} is longer than {MAX_VALUE} characters")
        elif key not in used and key != "model":
            # Any key may be a value for {…}, so only an unused one can be told from a slip.
            close = difflib.get_close_matches(key, keys, 1, 0.8)
            if close:
                what = f"is not used in 'run'; did you mean '{close[0]}'?"
                problems.add(path, f"{where} {what}")


class _Links:
    """What holds between the tasks of a plan."""

    def __init__(self, drafts: Sequence[Draft], problems: Problems) -> None:
        self._drafts = drafts
        self._problems = problems
        self._places: dict[str, int] = {}
        self._sorted: list[str] = []
        self._globs: dict[str, tuple[int, ...]] = {}

    def tasks(self) -> tuple[Task, ...]:
        """Give the tasks with their dependencies as ids; every problem is noted."""
        unique = self._index()
        tasks: list[Task] = []
        edges = 0
        for place, draft in enumerate(self._drafts):
            needed = self._needed(place, draft)
            edges += len(needed)
            if edges > MAX_EDGES:
                where: Path = ("task", draft.place, "blocked_by")
                self._problems.add(where, f"the plan has more than {MAX_EDGES} dependencies")
                return tuple(tasks)
            ids = tuple(TaskId(self._drafts[other].task.id) for other in sorted(needed))
            tasks.append(replace(draft.task, blocked_by=ids))
        if unique:
            self._refuse_cycles(tasks)
        return tuple(tasks)

    def _index(self) -> bool:
        folded: dict[str, int] = {}
        unique = True
        for place, draft in enumerate(self._drafts):
            task_id = draft.task.id
            first = folded.setdefault(task_id.casefold(), place)
            self._places.setdefault(task_id, place)
            if first != place:
                unique = False
                self._duplicate(self._drafts[first], draft)
        self._sorted = sorted(self._places)
        return unique

    def _duplicate(self, first: Draft, second: Draft) -> None:
        a, b = show(first.task.id), show(second.task.id)
        if first.place == second.place:
            what = f"task '{a}': 'id' is the same for several values of the matrix"
        elif a == b:
            what = f"task '{b}': 'id' is also that of task {first.place + 1} of the file"
        else:
            what = f"task '{b}': 'id' differs only in case from '{a}'"
        self._problems.add(("task", second.place, "id"), what)

    def _needed(self, place: int, draft: Draft) -> set[int]:
        needed: set[int] = set()
        for item, text in enumerate(draft.blocked_by):
            found: Sequence[int] = ()
            why = ""
            if "*" in text or "?" in text:
                found = self._matching(text)
                if not set(found) - {place}:
                    why = f"has the glob '{show(text)}', which matches no other task"
            elif text == draft.task.id:
                why = "names the task itself"
            elif text in self._places:
                found = (self._places[text],)
            else:
                hint = self._problems.suggest(text, self._places)
                why = f"names the unknown task '{show(text)}'{hint}"
            if why:
                path: Path = ("task", draft.place, "blocked_by", item)
                self._problems.add(path, f"task '{show(draft.task.id)}': 'blocked_by' {why}")
            needed.update(found)
            if len(needed) > MAX_EDGES:
                break
        return needed - {place}

    def _matching(self, glob: str) -> tuple[int, ...]:
        """Give the places whose ids a glob matches; only ids with its literal beginning are met."""
        if glob not in self._globs:
            found: list[int] = []
            if _ID_GLOB.match(glob):
                begin = re.split(r"[*?]", glob, maxsplit=1)[0]
                scope = Scope([re.sub(r"\*+", "*", glob)])
                at = bisect_left(self._sorted, begin)
                while at < len(self._sorted) and self._sorted[at].startswith(begin):
                    if scope.match(self._sorted[at].encode()):
                        found.append(self._places[self._sorted[at]])
                    at += 1
            self._globs[glob] = tuple(found)
        return self._globs[glob]

    def _refuse_cycles(self, tasks: Sequence[Task]) -> None:
        try:
            Graph(tasks)
        except CycleError as error:
            shown = [f"'{show(task_id)}'" for task_id in error.path]
            if len(shown) > _SHOWN_OF_CYCLE:
                shown = [*shown[: _SHOWN_OF_CYCLE - 1], "…", shown[-1]]
            place = self._drafts[self._places[error.path[0]]].place
            what = f"tasks wait for each other: {' -> '.join(shown)} (each is blocked by the next)"
            self._problems.add(("task", place, "blocked_by"), what)
