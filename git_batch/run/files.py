"""The files that a task's command is given, and its environment.

They live in one temporary directory outside the repository's git directory, which agents' sandboxes
make read-only (product.md, What a task's command sees). The directory belongs to one run and goes
with it; what must outlive a crash (output) is written below the git directory instead, by us and
never by the command. One that a killed run left is removed by the next run in the same working
tree, which its name is made from: the run lock says that nobody uses it any more.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from git_batch.core import template
from git_batch.core.attempt import Usage
from git_batch.core.model import BatchState, InFlight, Plan, Task
from git_batch.core.redaction import Redaction
from git_batch.core.values import replace
from git_batch.repo.git import clean_environment

_MOST = 1 << 20
"""Bytes of a file written by a command that are read; more is no message."""

_KNOWN = frozenset({"usd", "input_tokens", "output_tokens"})
_NAMES = "'usd', 'input_tokens' and 'output_tokens'"
_SHOWN = 40


def _fresh(root: str) -> Path:
    """Make a directory of this working tree's own, in place of those that killed runs left."""
    prefix = f"git-batch-{sha256(os.fsencode(root)).hexdigest()[:16]}-"
    with os.scandir(tempfile.gettempdir()) as entries:
        left = [entry for entry in entries if entry.name.startswith(prefix)]
    for entry in left:
        # Anybody may make a name in there; only a directory of our own is ours.
        if entry.is_dir(follow_symlinks=False) and entry.stat().st_uid == os.geteuid():
            shutil.rmtree(entry.path, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=prefix))


class TaskFiles:
    """The directory of one run, and what stands in it for the attempt in flight.

    Attributes:
        hide: takes the secrets out of a text that the attempt may have said.
    """

    def __init__(self, state: BatchState, plan: Plan, root: str) -> None:
        self._plan = plan
        self._dir = _fresh(root)
        self.prompt = self._dir / "prompt.md"
        self.feedback = self._dir / "feedback.txt"
        self.message = self._dir / "message.txt"
        self.usage = self._dir / "usage.json"
        self.blocked = self._dir / "blocked.txt"
        self.diff = self._dir / "change.diff"
        self._fixed = clean_environment(os.environ) | {
            "BATCH_ID": state.batch_id,
            "BATCH_SLUG": state.slug,
            "BATCH_ROOT": root,
            "BATCH_MESSAGE": str(self.message),
            "BATCH_USAGE": str(self.usage),
            "BATCH_BLOCKED": str(self.blocked),
        }
        self.hide = Redaction(self._fixed)

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._dir, ignore_errors=True)

    def begin(self, task: Task, flight: InFlight) -> None:
        """Lay out the files of an attempt; what an earlier one wrote goes."""
        self.hide = Redaction({**self._fixed, **dict(task.env)})
        for path in (self.prompt, self.feedback, self.message, self.usage, self.blocked, self.diff):
            with suppress(FileNotFoundError):
                path.unlink()
        if flight.feedback:
            self.feedback.write_text(flight.feedback, "utf-8", "replace")
        text = template.render_prompt(
            task, self._plan.intents, self._values(flight), flight.feedback
        )
        if text:
            self.prompt.write_text(text, "utf-8", "replace")

    def _values(self, flight: InFlight) -> dict[str, str]:
        return {
            "attempt": str(flight.attempt),
            "prompt_file": str(self.prompt),
            "feedback": flight.feedback,
            "message_file": str(self.message),
        }

    def command(self, task: Task, flight: InFlight) -> tuple[str, ...]:
        """Give the argument vector of the task's own command."""
        values = self._values(flight)
        values["prompt"] = _read(self.prompt) or ""
        return template.render_command(task, values)

    def check(
        self, task: Task, flight: InFlight, command: str | tuple[str, ...]
    ) -> tuple[str, ...]:
        """Give the argument vector of a check or a reviewer."""
        return template.render_command(task, self._values(flight), command)

    def environment(self, task: Task, flight: InFlight) -> Mapping[str, str]:
        """Give the whole environment of the attempt's commands."""
        env = {
            **self._fixed,
            **template.variables(task),
            **dict(task.env),
            "BATCH_TASK": task.id,
            "BATCH_ATTEMPT": str(flight.attempt),
            "BATCH_SCOPE": "\n".join(task.scope),
        }
        if self.prompt.exists():
            env["BATCH_PROMPT"] = str(self.prompt)
        if flight.feedback:
            env["BATCH_FEEDBACK"] = str(self.feedback)
        return env

    def body(self) -> bytes:
        """Read what the command wants in the commit's body; empty if it said nothing."""
        return self.hide(_read(self.message) or "").strip().encode("utf-8", "replace")

    def blocked_by(self) -> str:
        """Read why the command can't go on without a person; empty if it said nothing."""
        return self.hide(_read(self.blocked) or "").strip()

    def used(self, task: Task) -> Usage:
        """Read what the command says it used; of an agent, what it does not say is noted."""
        said = self._said()
        if task.agent is None:
            return said
        no_tokens = said.input_tokens is None and said.output_tokens is None
        return replace(said, usd_unsaid=int(said.usd is None), tokens_unsaid=int(no_tokens))

    def _said(self) -> Usage:
        """Read the usage file; anything but the documented form is unknown, and said to be so."""
        try:
            table = _table_in(self.usage)
            unread = "" if not table or _KNOWN & table.keys() else f"it has none of {_NAMES}"
        except ValueError as error:
            table, unread = {}, str(error)
        said: dict[str, Any] = {}
        for name in sorted(_KNOWN & table.keys()):
            value = table[name]
            if value is not None and not _counts(value, whole=name != "usd"):
                unread = f"'{name}' is {json.dumps(value)[:_SHOWN]}"
            elif value is not None:
                said[name] = float(value) if name == "usd" else value
        return Usage(**said, unread=self.hide(unread))


def _table_in(path: Path) -> dict[str, Any]:
    """Read a JSON object that a command may have written; an empty one if it wrote nothing.

    Raises:
        ValueError: it wrote something else.
    """
    text = _read(path)
    if text is None and os.path.lexists(path):
        raise ValueError("it is no plain file")
    if text is None or not text.strip():
        return {}
    try:
        table = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise ValueError("it is no JSON object")
    return table


def _counts(value: object, *, whole: bool) -> bool:
    """Tell whether a value is a number of tokens, or an amount of money; NaN is neither."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return bool(0 <= value < (1 << 53 if whole else 1e9))


def _read(path: Path) -> str | None:
    """Read a file that a command may have replaced by anything; None if it is no plain file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        if not os.path.isfile(file.fileno()):
            return None
        return file.read(_MOST).decode("utf-8", "replace")
