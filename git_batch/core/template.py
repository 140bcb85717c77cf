"""`{name}` in commands, ids, titles, scopes, prompts and messages; the prompt of an agent.

Theory. A text is expanded **once**, from one set of values, and what was put in is never looked at
again: a prompt that contains `{id}`, or a check's output that contains `{prompt}`, stays what it
is. That is why a command, a prompt or a message is stored in the plan as it was written, beside
its values (`Task.variables`), and expanded when it is used; only what the plan itself needs (ids,
titles, scopes) is expanded when the plan is read.

A name in braces is replaced. `{{name}}` gives a literal `{name}` (of more braces, one pair goes).
Braces around anything that is not a name are left alone, so `find -exec sed {} +`, `{print $1}`
and JSON need no care; so does everything after a `$`, for the sake of `${HOME}` and `${{ x }}`.

Two kinds of text differ in what an unknown name means. In commands, ids, titles and scopes it is
an error of the plan's author, found when the plan is read (`names`). Prompts and messages are
prose that may hold code: there an unknown name, with however many braces, is left as it is.

A command that is one string belongs to the shell and is never edited; it finds the same values in
its environment. Its braces may be the shell's or a program's, so a name there that we know is no
error; whoever shows a plan says that it stays as it is (`left_in_shell`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from git_batch.core.model import Command, Task

RUN_TIME_NAMES = ("attempt", "prompt", "prompt_file", "feedback", "message_file")
"""Names whose values are known only when the command runs."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

_BRACED = re.compile(r"(?<![{$])(\{+)([A-Za-z_][A-Za-z0-9_-]{0,63})(\}+)")

SHELL = ("/bin/sh", "-c")


def names(text: str) -> list[str]:
    """List the names that `expand` would replace, in order, each once."""
    found = (match[2] for match in _BRACED.finditer(text) if _is_reference(match))
    return list(dict.fromkeys(found))


def expand(text: str, values: Mapping[str, str], *, prose: bool = False) -> str:
    """Replace each `{name}` that has a value; one without is left as it is.

    Args:
        prose: braces around an unknown name are the text's own, `{{name}}` too.
    """
    return _BRACED.sub(_replacer(values, prose), text)


def values_of(task: Task) -> dict[str, str]:
    """Give the values that are known before the task runs: its id, model and variables."""
    values = dict(task.variables)
    if task.model is not None:
        values["model"] = task.model
    values["id"] = task.id
    return values


def variables(task: Task) -> dict[str, str]:
    """Give the `BATCH_VAR_<NAME>` environment: the task's variables and its model."""
    values = values_of(task)
    del values["id"]
    return {variable_name(name): value for name, value in values.items()}


def variable_name(name: str) -> str:
    """Name the environment variable that holds a value."""
    return "BATCH_VAR_" + re.sub(r"[^A-Z0-9]", "_", name.upper())


_IN_SHELL = {
    "id": '"$BATCH_TASK"',
    "attempt": '"$BATCH_ATTEMPT"',
    "prompt": '"$(cat "$BATCH_PROMPT")"',
    "prompt_file": '"$BATCH_PROMPT"',
    "feedback": '"$(cat "$BATCH_FEEDBACK")"',
    "message_file": '"$BATCH_MESSAGE"',
}


def in_shell(name: str) -> str:
    """Write for a shell what `{name}` is in a list of arguments."""
    return _IN_SHELL.get(name) or f'"${variable_name(name)}"'


def left_in_shell(task: Task) -> Iterator[tuple[str, str]]:
    """Name the keys whose shell string has a known name in braces, and that name."""
    known = {*values_of(task), *RUN_TIME_NAMES}
    for key, command in (
        ("run", task.run),
        *(("check", check) for check in task.checks),
        ("review", task.review),
    ):
        if isinstance(command, str):
            yield from ((key, name) for name in names(command) if name in known)


def render_command(
    task: Task, values: Mapping[str, str], command: Command | None = None
) -> tuple[str, ...]:
    """Give the argument vector of the task's command, or of one of its checks or its review.

    Without run-time values this shows what would run. NUL, which no argument can hold, becomes
    U+FFFD: feedback is the output of programs.
    """
    if command is None:
        command = task.run
    if isinstance(command, str):
        return (*SHELL, command)
    known = {**values_of(task), **values}
    return tuple(expand(part, known).replace("\0", "\ufffd") for part in command)


def render_message(task: Task, values: Mapping[str, str]) -> str | None:
    """Give the body that the plan wants in the task's commit, or None."""
    if task.message is None:
        return None
    return expand(task.message, {**values_of(task), **values}, prose=True)


def render_prompt(
    task: Task, intents: Mapping[str, bytes], values: Mapping[str, str], feedback: str
) -> str:
    """Give what the agent is told: the text, the scope in words, the feedback if there is any.

    A task without prompt or intent has the empty prompt. A text that says `{feedback}` has put
    it where it belongs, so it is not added once more; `{prompt}` means nothing in a prompt.

    Raises:
        KeyError: the task's intent is not among the intents.
    """
    text = task.prompt
    if text is None and task.intent is not None:
        text = intents[task.intent].decode(errors="replace")
    if text is None:
        return ""
    known = {**values_of(task), **values, "feedback": feedback}
    known.pop("prompt", None)
    parts = [expand(text, known, prose=True).strip("\n"), _scope_in_words(task)]
    if feedback.strip() and "feedback" not in names(text):
        parts.append(
            "An earlier attempt at this task was not accepted. Mend what was said about it:\n\n"
            + feedback.strip("\n")
        )
    return "\n\n".join(parts) + "\n"


def _scope_in_words(task: Task) -> str:
    if task.scope:
        text = (
            "Change, add or delete only files that these patterns cover. They are relative to the "
            "top level of the repository, `*` stops at `/`, `**` does not, and the name of a "
            "folder covers what is in it:\n" + _bullets(task.scope)
        )
    else:
        text = "Do not change, add or delete any file of the repository."
    if task.protect:
        text += "\n\nEven so, never change, add or delete what these patterns cover:\n"
        text += _bullets(task.protect)
    return text


def _bullets(patterns: tuple[str, ...]) -> str:
    return "\n".join(f"- {pattern}" for pattern in patterns)


def _is_reference(match: re.Match[str]) -> bool:
    # Unequal runs are one name beside the text's own braces, as in `{"a": {id}}`.
    return len(match[1]) == 1 or len(match[3]) == 1


def _replacer(values: Mapping[str, str], prose: bool) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        opening, name, closing = match[1], match[2], match[3]
        known = name in values
        if _is_reference(match):
            return opening[1:] + values[name] + closing[1:] if known else match[0]
        return opening[1:] + name + closing[1:] if known or not prose else match[0]

    return replace
