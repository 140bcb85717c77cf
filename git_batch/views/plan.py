"""The plan as a person confirms it: every command that will run, and every bound.

This is the security model, not decoration: whoever says yes has seen each command, what it may
change, what is fed to it and what it may not touch. So nothing is summed up or left out but the
inside of long prompts, whose size is said; they are covered by the digest. A text of several lines
stands behind a gutter, so a title or command can't imitate a further task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from git_batch.core import agenda as agendas
from git_batch.core import template
from git_batch.core.duration import format_duration
from git_batch.core.graph import Graph
from git_batch.core.ids import TaskId
from git_batch.core.model import Authorization, BatchState, Budget, Command, Plan, Task
from git_batch.core.naming import path_text
from git_batch.core.outlook import Outlook
from git_batch.core.standing import OnEmpty, TaskStatus
from git_batch.views.coming import enough, grouped, instead, stands
from git_batch.views.common import (
    VERSION,
    command_text,
    counted,
    field,
    gutter,
    moment,
    rfc3339,
    rows,
)
from git_batch.views.escape import one_line, printable

PROMPT_LINES = 6
"""Lines of a prompt that are shown unless the whole is asked for."""

_COLUMN = 13
_WIDE = 200


def run_order(plan: Plan) -> tuple[int, ...]:
    """Give the places of the tasks in the order in which they run if all goes well."""
    graph = Graph(plan)
    agenda = agendas.build(graph, {}, None)
    order = []
    while (place := agendas.first(agenda.ready)) is not None:
        order.append(place)
        agenda = agendas.place(graph, agenda, graph.ids[place], TaskStatus.COMMITTED)
    return tuple(order)


def plan_text(
    plan: Plan,
    digest: str,
    *,
    skipped_files: Sequence[bytes] = (),
    whole_prompts: bool = False,
) -> str:
    """Show a plan: what would run, in which order, under which bounds.

    Args:
        skipped_files: untracked paths that lie about; they enter no commit and no attempt.
        whole_prompts: show prompts in full.
    """
    order = run_order(plan)
    shared = _shared_limits(plan, order)
    head = [("plan", _title(plan)), ("digest", one_line(digest))]
    lines = rows([*head, *_policy(plan), *_budget(plan.budget), *shared])
    lines += _untracked(skipped_files)
    lines += warnings(plan, order)
    lines += ["", f"{counted(len(order), 'task')}, in this order:"]
    lines += _tasks(plan, order, whole_prompts, shared=bool(shared))
    return printable("\n".join(lines)) + "\n"


def confirmation_text(
    plan: Plan,
    proposed: Authorization,
    outlook: Outlook | None = None,
    *,
    before: BatchState | None = None,
    seen: bool = True,
    notes: Sequence[str] = (),
    whole_prompts: bool = False,
) -> str:
    """Show what a person is about to authorize: the very value that is recorded if they agree.

    Args:
        before: where the batch stands, when it is renewed.
        outlook: what becomes of each task, when it is renewed; without it all of them run.
        seen: what is done was shown to a person here before, so that its name is enough.
        notes: what else to read before the answer, one line each.
    """
    a, coming = proposed, outlook or Outlook(runs=run_order(plan))
    groups = grouped(coming, seen, enough=enough(a.budget, coming, before))
    order = tuple(place for _, places in groups for place in places)
    limits = _shared_limits(plan, order)
    lines = rows([*_granted(plan, a, 0 if before is None else before.enrolled), *limits])
    lines += _untracked(a.untracked, "untracked" if before is None else "accepted as untracked")
    lines += [one_line(note if note.startswith("warning: ") else f"note: {note}") for note in notes]
    lines += warnings(plan, order)
    lines += [] if coming.runs else ["", "nothing will run" + instead(coming)]
    for heading, places in groups:
        lines += ["", f"{counted(len(places), 'task')} {heading}:"]
        lines += _tasks(plan, places, whole_prompts, shared=bool(limits), waits=coming.waits)
    if seen and coming.done:
        names = ", ".join(one_line(plan.tasks[place].id) for place in coming.done)
        lines += ["", f"done, will not run ({len(coming.done)}): {names}"]
    return printable("\n".join(lines)) + "\n"


def _granted(plan: Plan, a: Authorization, used: int) -> list[tuple[str, str]]:
    """Say what an authorization grants; `used` enrollments have been made before it."""
    return [
        ("plan", _title(plan)),
        ("digest", one_line(a.plan_digest)),
        ("branch", f"{one_line(a.branch)}, from {one_line(a.base)}"),
        ("confirmed", f"by {one_line(str(a.actor))} (no. {a.seq})"),
        *_policy(plan, a.fail_fast, begun=used > 0),
        *_budget(a.budget, a.deadline_at, used),
        ("expires", "never" if a.expires_at is None else moment(a.expires_at)),
        *([("claims", f"each task, on '{one_line(a.claim)}'")] if a.claim else []),
    ]


def plan_json(plan: Plan, digest: str) -> dict[str, Any]:
    """Give a plan as it would run."""
    b = plan.budget
    return {
        "version": VERSION,
        "slug": plan.slug,
        "title": plan.title,
        "plan_digest": digest,
        "fail_fast": plan.fail_fast,
        "baseline": plan.baseline,
        "notify": _command_json(plan.notify),
        "budget": {
            "max_tasks": b.max_tasks,
            "deadline": rfc3339(b.deadline) if isinstance(b.deadline, datetime) else b.deadline,
            "qa_failure_limit": b.qa_failure_limit,
            "max_wait": b.max_wait,
            "max_usd": b.max_usd,
            "max_tokens": b.max_tokens,
        },
        "order": [plan.tasks[place].id for place in run_order(plan)],
        "tasks": [_task_json(task) for task in plan.tasks],
        "warnings": [w.removeprefix("warning: ") for w in warnings(plan, run_order(plan))],
    }


def warnings(plan: Plan, order: Sequence[int]) -> list[str]:
    """Say what the author may have meant otherwise, once for all tasks of a matrix."""
    found: dict[tuple[str, str], list[TaskId]] = {}
    for task in (plan.tasks[place] for place in order):
        for where in dict.fromkeys(template.left_in_shell(task)):
            found.setdefault(where, []).append(task.id)
    return [
        f"warning: {{{name}}} is not replaced in a shell string ('{key}' of '{tasks[0]}'"
        + (f" and {counted(len(tasks) - 1, 'more task')}" if tasks[1:] else "")
        + f"); use {template.in_shell(name)}, or a list of arguments"
        for (key, name), tasks in found.items()
    ]


def _task_json(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "title": task.title,
        "blocked_by": list(task.blocked_by),
        "run": _command_json(task.run, task),
        "check": [_command_json(check, task) for check in task.checks],
        "review": _command_json(task.review, task),
        "scope": list(task.scope),
        "protect": list(task.protect),
        "agent": task.agent,
        "model": task.model,
        "stdin": task.stdin,
        "prompt": task.prompt,
        "intent": task.intent_name,
        "on_empty": task.on_empty.value,
        "timeout": task.timeout,
        "idle_timeout": task.idle_timeout,
        "attempts": task.attempts,
        "message": task.message,
        "env": dict(task.env),
        "variables": dict(task.variables),
        "not_now": list(task.not_now),
    }


def _command_json(command: Command | None, task: Task | None = None) -> str | list[str] | None:
    if command is None or isinstance(command, str):
        return command
    return list(command if task is None else template.render_command(task, {}, command))


def _title(plan: Plan) -> str:
    return f"{one_line(plan.slug)}: {one_line(plan.title)}"


def _policy(
    plan: Plan, fail_fast: bool | None = None, *, begun: bool = False
) -> list[tuple[str, str]]:
    stops = plan.fail_fast if fail_fast is None else fail_fast
    found = [("on failure", "the run ends" if stops else "independent tasks go on")]
    if plan.baseline and not begun:
        found.append(("baseline", "all checks run on the base first"))
    if plan.notify is not None:
        label, command = _shown("notify", plan.notify, None)
        found.append((label, one_line(command)))
    return found


def _budget(
    budget: Budget, deadline_at: datetime | None = None, used: int = 0
) -> list[tuple[str, str]]:
    limit = "no limit" if budget.max_tasks is None else counted(budget.max_tasks, "enrollment")
    if budget.max_tasks is not None and used:
        limit += f" in all, {used} of them made"
    deadline = budget.deadline if deadline_at is None else deadline_at
    if deadline is None:
        until = "none"
    elif isinstance(deadline, datetime):
        until = moment(deadline)
    else:
        until = f"{format_duration(deadline)} from the confirmation"
    found = [
        ("budget", limit),
        ("deadline", until),
        ("failures", f"the run ends at {budget.qa_failure_limit} failed checks in a row"),
    ]
    if budget.max_wait:
        found.append(("waits", f"up to {format_duration(budget.max_wait)} in all for 'not now'"))
    if budget.max_usd is not None:
        found.append(("spends", f"up to {budget.max_usd:.2f} USD, as far as agents say"))
    if budget.max_tokens is not None:
        found.append(("tokens", f"up to {budget.max_tokens}, as far as agents say"))
    return found


def _untracked(paths: Sequence[bytes], what: str = "untracked") -> list[str]:
    listed = [f"  {path_text(path)}" for path in paths]
    return [f"{what}, in no commit ({len(paths)}):", *listed] if listed else []


def _shared_limits(plan: Plan, order: Sequence[int]) -> list[tuple[str, str]]:
    """Give the limits that all tasks have, so they are said once; nothing if they differ."""
    limits = {_limits(plan.tasks[place]) for place in order}
    return [("limits", f"{limits.pop()}, for each task")] if len(limits) == 1 else []


def _tasks(
    plan: Plan,
    order: Sequence[int],
    whole_prompts: bool,
    *,
    shared: bool,
    waits: Mapping[int, TaskStatus] | None = None,
) -> Iterator[str]:
    """Show tasks in an order.

    Args:
        shared: the limits are the same for all that is shown, and were said.
        waits: where tasks stand that wait for a person.
    """
    column = len(str(len(order)))
    for n, place in enumerate(order, 1):
        task = plan.tasks[place]
        yield f"{n:>{column}}. {task.id}: {one_line(task.title)}"
        if waits and place in waits:
            yield from field("stands", stands(waits[place]), column + 2, _COLUMN)
        yield from _task(plan, task, column + 2, whole_prompts)
        if not shared:
            yield from field("limits", _limits(task), column + 2, _COLUMN)


def _task(plan: Plan, task: Task, indent: int, whole_prompts: bool) -> Iterator[str]:
    def show(label: str, text: str) -> list[str]:
        return field(label, text, indent, _COLUMN)

    if task.blocked_by:
        yield from show("after", " ".join(task.blocked_by))
    yield from show(*_shown("run", task.run, task))
    if task.agent is not None:
        model = f" ({one_line(task.model)})" if task.model is not None else ""
        yield from show("agent", f"{one_line(task.agent)}{model}")
    yield from _prompt(plan, task, indent, whole_prompts)
    for check in task.checks:
        yield from show(*_shown("check", check, task))
    if not task.checks:
        yield from show("check", "none")
    yield from show("scope", "  ".join(map(one_line, task.scope)) or "nothing may change")
    if task.protect:
        yield from show("protect", "  ".join(map(one_line, task.protect)))
    if task.review != "none":
        human = ("review", "by a human")
        yield from show(*(human if task.review == "human" else _shown("review", task.review, task)))
    for name, value in task.env:
        yield from show("env", f"{one_line(name)}={value}")
    for name, value in task.variables:
        yield from show("value", f"{one_line(name)}={value}")
    if (message := template.render_message(task, {})) is not None:
        yield from show("message", message)


def _prompt(plan: Plan, task: Task, indent: int, whole: bool) -> Iterator[str]:
    """Show what an agent is told: the first lines, and how long it is in all."""
    text = task.prompt
    if text is None and task.intent is not None:
        text = plan.intents.get(task.intent, b"").decode("utf-8", "backslashreplace")
    if text is None:
        return
    text = template.expand(text, template.values_of(task), prose=True).strip("\n")
    source = f" from {one_line(task.intent_name)}" if task.intent_name else ""
    fed = ", on standard input" if task.stdin == "prompt" else ""
    size = f"{counted(len(text.encode('utf-8', 'surrogatepass')), 'byte')}{source}{fed}"
    yield from field("prompt", size, indent, _COLUMN)
    lines = gutter(text, indent + 2, most=None if whole else PROMPT_LINES)
    yield from lines if whole else (_cut(line) for line in lines)


def _cut(line: str) -> str:
    if len(line) <= _WIDE:
        return line
    return f"{line[:_WIDE]} ... {counted(len(line) - _WIDE, 'more character')}"


def _limits(task: Task) -> str:
    said = [f"{format_duration(task.timeout)} a command", counted(task.attempts, "attempt")]
    if task.idle_timeout is not None:
        said.append(f"{format_duration(task.idle_timeout)} without output")
    if task.on_empty is OnEmpty.ACCEPT:
        said.append("may change nothing")
    if task.not_now:
        said.append(f"'not now' if it prints {command_text(task.not_now)}")
    return ", ".join(map(one_line, said))


def _shown(label: str, command: Command, task: Task | None) -> tuple[str, str]:
    """Label a command and write it; what a shell reads is marked, as we don't read it."""
    if isinstance(command, str):
        return f"{label} (sh)", command
    argv = command if task is None else template.render_command(task, {}, command)
    return label, command_text(argv)
