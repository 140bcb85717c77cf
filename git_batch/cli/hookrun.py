"""What the installed hooks start: no click, no pydantic, no libgit2; a push waits for it.

Exit status 0 lets git go on, 3 does not; the shell tells every other one apart from both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from git_batch.app.answering import answer
from git_batch.errors import BatchError, ExitCode


def main(argv: Sequence[str] | None = None) -> int:
    """Answer the hook that the first argument names; the others are the hook's own."""
    name, *args = sys.argv[1:] if argv is None else argv
    framed = "PRE_COMMIT_REMOTE_BRANCH" in os.environ  # it has read standard input itself
    data = b"" if framed or name == "update" or sys.stdin.isatty() else sys.stdin.buffer.read()
    try:
        found = answer(name, args, os.fsdecode(data).splitlines(), os.environ)
    except BatchError as error:
        return _say((f"error: {error.message}", *(f"hint: {h}" for h in error.hints)), error)
    except Exception as error:  # as in `cli.main`: the bug is saved and said
        from git_batch.cli.main import bug

        return bug(error)
    if found.lines:
        _say(found.lines)
    return ExitCode.REFUSED if found.refused else ExitCode.OK


def _say(lines: Sequence[str], error: BatchError | None = None) -> int:
    from git_batch.views.escape import printable

    for line in lines:
        text = printable(line) + "\n"
        sys.stderr.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stderr.flush()
    return error.exit_code if error is not None else ExitCode.OK
