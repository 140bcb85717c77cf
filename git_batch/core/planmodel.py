"""The plan file as its author writes it: which keys there are, and of what type.

Theory. These models say what one table may hold by itself; what concerns several tables (agents,
defaults, matrix, dependencies) is `planresolve`'s business. They are strict, for a plan is read
by a machine that runs commands at night: an unknown key is a typing error and never a comment, a
number is never a string, and a check that can't be understood is never skipped. The JSON Schema
that editors use is generated from the same models.

Rules. A key that is left out is not in `model_fields_set`; that is how a default is told from a
value. A task's key replaces the one of `[defaults]` as a whole, tables too. Only `planfile` and
`git batch schema` import this module at run time: pydantic takes longer to import than `status`
may take to answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from git_batch.core import planrules as rules

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_ARGV: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_DURATION: dict[str, Any] = {"type": "string", "examples": ["90s", "30m", "1h30m", "2d"]}
_LATER = "A duration from the newest confirmation, or an RFC 3339 time with an offset."

Seconds = Annotated[
    float, BeforeValidator(rules.seconds(rules.SHORTEST)), WithJsonSchema(_DURATION)
]
Wait = Annotated[float, BeforeValidator(rules.seconds(0)), WithJsonSchema(_DURATION)]
Deadline = Annotated[
    float | datetime,
    BeforeValidator(rules.deadline),
    WithJsonSchema({"type": "string", "examples": ["8h", "2030-01-31T08:00:00+01:00"]}),
]
Argv = Annotated[list[str], BeforeValidator(rules.argv), WithJsonSchema(_ARGV)]
Command = Annotated[
    str | list[str], BeforeValidator(rules.command), WithJsonSchema({"anyOf": [_TEXT, _ARGV]})
]
Checks = Annotated[
    list[Annotated[str | list[str], BeforeValidator(rules.check)]],
    BeforeValidator(rules.checks),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "array", "items": {"anyOf": [_TEXT, _ARGV]}}]}),
]
Review = Annotated[
    str | list[str],
    BeforeValidator(rules.review),
    WithJsonSchema({"anyOf": [{"enum": ["none", "human"]}, _TEXT, _ARGV]}),
]
Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class BudgetTable(_Table):
    """Bounds of the run that the plan proposes; what is confirmed may differ."""

    max_tasks: int | None = Field(
        None, ge=1, description="Enrollments over the batch's life. Default: no limit."
    )
    deadline: Deadline | None = Field(None, description=_LATER + " Default: none.")
    qa_failure_limit: int = Field(
        6, ge=1, description="Consecutive failed checks over the batch that end the run."
    )
    max_wait: Wait = Field(
        0.0, description="How long to wait in all for 'not now' (exit 75). Default: stop instead."
    )
    max_usd: Annotated[float, Field(gt=0), AfterValidator(rules.finite)] | None = Field(
        None, description="Money that agents may say they used before no more task starts."
    )
    max_tokens: int | None = Field(
        None, ge=1, description="Tokens that agents may say they used before no more task starts."
    )
    unknown_usage: Literal["ignore", "stop"] = Field(
        "ignore",
        description="Whether an agent that does not say what it used counts as nothing used, or"
        " starts no further task while max_usd or max_tokens bounds it.",
    )


class AgentTable(_Table):
    """A command template; any further key is a value for {name}."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)
    __pydantic_extra__: dict[str, str]

    run: Argv = Field(description="The command as a list of arguments, with {name} in them.")
    stdin: Literal["prompt", "null"] = Field(
        "null", description="What the command reads: the rendered prompt, or /dev/null."
    )
    not_now: Annotated[list[Text], AfterValidator(rules.patterns)] = Field(
        [], description="Regular expressions: output that means exit 75, not now."
    )


class DefaultsTable(_Table):
    """Keys that every task has unless it says otherwise."""

    scope: list[str] | None = Field(
        None, description="What the task's commit may touch: patterns as in git's :(glob)."
    )
    protect: list[str] = Field([], description="What may not change, even where scope covers it.")
    run: Command | None = Field(
        None,
        description="The command: a string for /bin/sh -c, which reads values as $BATCH_VAR_NAME,"
        " or a list of arguments, in which {name} is replaced.",
    )
    agent: Text | None = Field(None, description="The [agent.NAME] that runs, instead of 'run'.")
    model: Text | None = Field(None, description="The value of {model}.")
    prompt: Text | None = Field(None, description="What the agent is told.")
    intent: Text | None = Field(
        None, description="A file that holds the prompt, relative to the plan file."
    )
    check: Checks = Field(
        [], description="What must exit with 0 before the work is committed: commands like 'run'."
    )
    review: Review = Field(
        "none", description="'none', 'human', or a command like 'run' that judges."
    )
    on_empty: Literal["park", "accept"] = Field(
        "park", description="What it means if nothing was changed."
    )
    timeout: Seconds = Field(3600.0, description="How long one command may take.")
    idle_timeout: Seconds | None = Field(
        None, description="How long a command may print nothing. Default: no limit."
    )
    attempts: int = Field(2, ge=1, le=100, description="How often the task is tried.")
    message: Annotated[str, AfterValidator(rules.message)] | None = Field(
        None, description="Longer text for the commit's body."
    )
    env: Annotated[dict[str, str], AfterValidator(rules.env)] = Field(
        {}, description="Environment variables for the task's commands."
    )
    matrix: Annotated[dict[str, list[str]], AfterValidator(rules.matrix)] | None = Field(
        None,
        description="Values for {name}: one task for each combination. Not replaced in a"
        " shell string, which has them as $BATCH_VAR_NAME.",
    )


class TaskTable(DefaultsTable):
    """One change, or one for each value of its matrix."""

    id: str = Field(description="Names the task; letters, digits, '.', '_' and '-'.")
    title: str = Field(description="The subject of the task's commit.")
    blocked_by: list[str] = Field([], description="Ids that come first, or globs over ids.")


class NotifyTable(_Table):
    """What is run when the batch parks a task or ends."""

    command: Command = Field(description="A string for /bin/sh -c, or a list of arguments.")


class PlanTable(_Table):
    """A plan of dependent changes for git batch."""

    version: Annotated[Literal[1], BeforeValidator(rules.version)] = Field(
        description="The format of this file."
    )
    slug: Annotated[str, AfterValidator(rules.slug)] = Field(
        description="Names the batch and its branch.",
        json_schema_extra={"pattern": "^[a-z0-9][a-z0-9-]{0,47}$"},
    )
    title: Text | None = Field(None, description="For people. Default: the slug.")
    fail_fast: bool = Field(False, description="The first parked task ends the run.")
    baseline: bool = Field(
        False, description="Every distinct check runs once on the base before the first task."
    )
    budget: BudgetTable = Field(BudgetTable(), description="Bounds of the run.")
    agent: dict[Annotated[str, AfterValidator(rules.agent_name)], AgentTable] = Field(
        {}, description="Command templates, by name."
    )
    defaults: DefaultsTable = Field(DefaultsTable(), description="Keys for every task.")
    notify: NotifyTable | None = Field(None, description="Whom to tell.")
    task: list[TaskTable] = Field(min_length=1, description="The changes, in order.")


def schema() -> dict[str, Any]:
    """Give the JSON Schema (draft 2020-12) of the plan file, for editors and `git batch schema`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_tidy(PlanTable.model_json_schema(mode="validation")),
        "title": "git batch plan",
    }


def _tidy(node: Any) -> Any:
    """Leave out what is true of our models but not of TOML: null, and defaults in seconds."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _tidy(value) for key, value in node.items()}
    if {"type": "null"} in node.get("anyOf", []):
        choices = [choice for choice in node.pop("anyOf") if choice != {"type": "null"}]
        node = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **node}
    if "default" in node and isinstance(node["default"], float | None):
        del node["default"]
    return node
