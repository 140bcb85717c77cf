"""Commands that name their batch: needed where one that names none would mean another.

Which batch a bare command means is for `app.session` to say; what a command that names one looks
like stands here, for those that are made here and for those that the record holds.
"""

from __future__ import annotations

OF_A_TASK = frozenset({"adopt", "find", "retry", "review", "show", "skip", "undo"})
"""Commands whose first argument is a task, also as `BATCH:TASK`."""

OF_A_BATCH = frozenset(
    {"abandon", "bless", "log", "rebase", "report", "resume", "status", "stop", "verify"}
)
"""Commands whose first argument may be a batch."""


def addressed(command: str, name: str | None) -> str:
    """Have a command say which batch it means.

    Args:
        name: what to call the batch; None leaves the command as it is, and so does whatever names
            something itself.
    """
    start, verb, rest = _parts(command)
    if name is None or not verb:
        return command
    first, space, more = rest.partition(" ")
    bare = not first or first.startswith("-")
    if verb in OF_A_TASK and not bare and ":" not in first:
        return f"{start}{verb} {name}:{first}{space}{more}"
    if verb in OF_A_BATCH and bare:
        return f"{start}{verb} {name} {rest}".rstrip(" ")
    return command


def _parts(command: str) -> tuple[str, str, str]:
    """Split a command of ours into what comes before its verb, the verb, and its arguments."""
    start = "git batch "
    if not command.startswith(start):
        return "", "", ""
    verb, _, rest = command.removeprefix(start).partition(" ")
    return start, verb, rest
