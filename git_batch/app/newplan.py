"""`git batch new`: a commented plan to begin with. Every key of the format is in it."""

from __future__ import annotations

import re
from pathlib import Path

from git_batch.core.ids import RESERVED_SLUGS, SLUG
from git_batch.errors import UsageError

TEMPLATE = '''\
# A plan for `git batch`: see what it means with `git batch check`, run it with `git batch start`.
version = 1
slug = "{slug}"                     # names the batch and its branch batch/{slug}
title = "{title}"
# fail_fast = true                  # end the run at the first task that needs a person
# baseline = true                   # run every check once on the base before the first task

# [budget]
# max_tasks = 20                    # start at most so many tasks
# deadline = "8h"                   # start none after this: a duration, or an RFC 3339 time
# qa_failure_limit = 6              # end the run after so many failing checks in a row
# max_wait = "6h"                   # wait so long in all for "not now" (exit 75)
# max_usd = 20.0                    # stop when agents say they have used this
# max_tokens = 2000000
# unknown_usage = "stop"            # stop also when an agent does not say what it used

# [notify]
# command = ["notify-send", "git batch"]    # at the first park and at the end

# An agent is a command template; any key but run, stdin, not_now is a value for {{…}}.
# [agent.claude]
# run = ["claude", "-p", "--model", "{{model}}", "--permission-mode", "acceptEdits"]
# stdin = "prompt"                  # the prompt on standard input; otherwise there is none
# model = "sonnet"
# not_now = ["rate.?limit"]         # output that means "not now"

[defaults]                          # any key of a task but id, title, blocked_by
timeout = "30m"                     # per command; default 1h
attempts = 2                        # how often a task is tried when checks or scope refuse it
check = []                          # commands that must pass before a task is committed

[[task]]
id = "first"
title = "Say hello"                 # the commit's subject
scope = ["hello.txt"]               # what its commit may touch: git's glob patterns
run = "echo hello >hello.txt"       # a string is for /bin/sh -c, a list is an argument vector
check = "grep -q hello hello.txt"

# [[task]]
# id = "unions-{{pkg}}"               # one task per value of the matrix
# matrix = {{ pkg = ["net", "db"] }}  # {{pkg}}; in a shell string $BATCH_VAR_PKG; not in env
# title = "Use X | Y unions in {{pkg}}"
# blocked_by = ["first"]            # ids, or a glob over ids
# scope = ["src/{{pkg}}/**/*.py"]
# protect = ["src/{{pkg}}/vendored/**"]
# agent = "claude"                  # instead of run
# model = "opus"
# prompt = """
# Use X | Y unions in src/{{pkg}}. Change nothing else.
# """                               # or: intent = "prompts/unions.md", relative to this file
# check = ["ruff check --select UP007 src", ["python", "-m", "pytest", "-q"]]
# review = "human"                  # "none", "human", or a command
# on_empty = "accept"               # a task that changes nothing is done; default "park"
# timeout = "20m"
# idle_timeout = "5m"               # without any output
# message = "Longer text for the commit's body."
# env = {{ MODE = "strict" }}
'''


def new_plan(slug: str | None, top: str) -> str:
    """Write the text of a new plan.

    Args:
        slug: names the batch; None takes the name of the repository's folder.

    Raises:
        UsageError: the slug is not one.
    """
    chosen = slug if slug is not None else _slug_of(Path(top).name)
    if not SLUG.match(chosen) or chosen in RESERVED_SLUGS:
        raise UsageError(
            f"'{chosen}' can't be a slug",
            "a slug is up to 48 of a-z, 0-9 and '-', and begins with a letter or digit",
        )
    title = chosen.replace("-", " ").capitalize()
    return TEMPLATE.format(slug=chosen, title=title)


def _slug_of(name: str) -> str:
    cleaned = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:48].rstrip("-")
    return cleaned or "batch"


def write_new(text: str, path: str) -> None:
    """Write a plan file; an existing file is never overwritten.

    Raises:
        UsageError: there is a file already, or it can't be written.
    """
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"'{path}' exists already", "choose another file: git batch new -o FILE"
        ) from None
    except OSError as error:
        raise UsageError(f"can't write '{path}': {error.strerror or error}") from None
