"""Telling somebody: the commands that are called at the first park and at the end of a run.

Whatever comes of them, a run ends as it would without: a failure is a note, a command that hangs
is ended, and nothing waits for it longer than `LIMIT`. It comes with facts in its environment and
the JSON report on standard input; a shell's text also has the event as `$1` and the outcome as
`$2`. It runs as a task's command does, in a session of its own, and like one it can neither start
nor decide anything (`app.session.outside_of_tasks`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from git_batch.core.model import Command
from git_batch.repo.git import clean_environment
from git_batch.run.commands import ending
from git_batch.run.context import Tools
from git_batch.run.output import excerpt
from git_batch.run.process import Ended, How, Limits, run
from git_batch.run.saying import last_of

LIMIT = 30.0
"""Seconds that one command may take."""

_GRACE = 2.0


class Notifier:
    """Calls the commands of one batch."""

    def __init__(self, commands: Sequence[Command], top: Path, runner: str, tools: Tools) -> None:
        self._commands, self._top = commands, top
        self._runner, self._tools = runner, tools

    @property
    def wanted(self) -> bool:
        """Whether anybody is to be told."""
        return bool(self._commands)

    def tell(self, event: str, outcome: str, facts: Mapping[str, str], report: str) -> None:
        """Call every command, one after the other.

        Args:
            facts: variables for its environment, besides the event and the outcome.
            report: what it can read on its standard input.
        """
        env = {
            **clean_environment(os.environ),
            **facts,
            "BATCH_EVENT": event,
            "BATCH_OUTCOME": outcome,
        }
        interrupt = self._tools.interrupt
        before = interrupt.signum, interrupt.count
        interrupt.reset()  # the very news may be the interruption; another one ends this, too
        with tempfile.TemporaryDirectory(prefix="git-batch-") as folder:
            stdin = Path(folder, "report.json")
            stdin.write_text(report, "utf-8")
            for command in self._commands:
                self._call(command, (event, outcome), env, stdin)
        interrupt.signum = before[0] if before[0] is not None else interrupt.signum
        interrupt.count += before[1]

    def _call(
        self, command: Command, args: tuple[str, str], env: Mapping[str, str], stdin: Path
    ) -> None:
        argv = command if isinstance(command, tuple) else ("/bin/sh", "-c", command, "sh", *args)
        log = stdin.with_name("output")
        try:
            ended = run(
                argv,
                cwd=self._top,
                env=env,
                stdin=stdin,
                log=log,
                limits=Limits(timeout=LIMIT, grace=_GRACE),
                interrupt=self._tools.interrupt,
                marker=self._runner,
            )
        except OSError as error:  # no more processes, say
            ended = Ended(How.NOT_FOUND, reason=str(error))
        if ended.how is How.EXITED and not ended.status:
            return
        said = last_of(excerpt(log, 4096).decode("utf-8", "replace"))
        told = f": {said}" if said else ""
        self._tools.progress.note(f"the notify command failed, {ending(ended)}{told}")
