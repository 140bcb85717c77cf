"""What else runs besides the plan's text: programs, scripts of the repository, configuration.

A plan's digest covers its commands, not what they start. So the confirmation also notes what they
stand for on this machine then; a run that goes on later tells what has become another. It is a
warning and no refusal: a new version of a compiler is no attack. What the batch's own tasks changed
is told only where a command surely runs it: any other file that looks like a script may be what the
commands work on. What a command's output is redirected to is no script at all.

Only digests are kept, since the record is pushed: a path says where a person lives, a
configuration value may hold a token.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256

from git_batch.core.ids import Oid
from git_batch.core.model import Command, Plan, Task
from git_batch.repo.libgit2 import FileMode
from git_batch.repo.repository import Repository
from git_batch.repo.trees import DIRECTORY, GITLINK, lookup, read_blob

Fingerprint = tuple[tuple[str, str], ...]
"""Name of a thing, and a digest of it; sorted."""

_SCRIPT, _CONFIGURATION = "script", "configuration"
_LANGUAGES = (".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua", ".awk")
_LENGTH = 32
_READ = 16 << 20
"""Bytes of a program that are hashed, besides its size: an agent may be half a gigabyte."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_REDIRECTED = re.compile(r">[>|&]?\s*[^\s;|&()<>]+")
_INTERPRETER = re.compile(
    r"(?:.*/)?(?:(?:ba|da|z|k)?sh|python[0-9.]*|node|deno|bun|ruby|perl|php|lua|\.|source)\Z"
)
_PART_OF_SHELL = re.compile(r"[\s;|&()<>`$\"'=]+")


def take(repo: Repository, plan: Plan, tip: Oid) -> Fingerprint:
    """Note what a plan's commands and git itself would run now.

    Args:
        tip: the commit whose scripts count.
    """
    found: dict[str, str] = {}
    tree = repo.tree_of(tip)
    programs: dict[tuple[str, str | None], str] = {}
    for task, command in _commands(plan):
        path = dict(task.env).get("PATH") if task else None
        program = _program(command)
        if program and (program, path) not in programs:
            programs[program, path] = _of_program(repo, program, path)
        for word in _words(command):
            blob = _script(repo, tree, word, first=word == program)
            if blob is not None:
                found[f"{_SCRIPT} '{word}'"] = blob
    for (program, _), digest in programs.items():
        if digest:
            found[f"program '{program}'"] = digest
    settings: dict[str, list[str]] = {}
    for key, value in repo.config.running_code():
        settings.setdefault(key, []).append(value)
    for key, values in settings.items():
        found[f"{_CONFIGURATION} '{key}'"] = _digest("\n".join(values).encode("utf-8", "replace"))
    return tuple(sorted(found.items()))


def differing(
    then: Fingerprint,
    now: Fingerprint,
    *,
    same_plan: bool = True,
    scripts: Collection[str] | None = None,
) -> list[str]:
    """Name what has become another, has come, or is gone.

    A script that has come was made by a task. Under another plan, what only one of them names is
    the plan's difference, which is shown as such.

    Args:
        scripts: tell of no others; None tells of all.
    """
    old, new = dict(then), dict(now)
    told = []
    for name in sorted({*old, *new}):
        both = name in old and name in new
        of_plan = not name.startswith(_CONFIGURATION)
        if (not both and of_plan and not same_plan) or (
            name not in old and name.startswith(_SCRIPT)
        ):
            continue
        if name.startswith(_SCRIPT) and scripts is not None and name not in scripts:
            continue
        if old.get(name) != new.get(name):
            told.append(name)
    return told


def executed(plan: Plan) -> frozenset[str]:
    """Name the scripts that a plan's commands run for sure: first, or after an interpreter."""
    found = set()
    for _, command in _commands(plan):
        before = ""
        for word in _words(command):
            if word.startswith("-"):
                continue
            if not before or _INTERPRETER.match(before):
                found.add(f"{_SCRIPT} '{word}'")
            before = word
        found.add(f"{_SCRIPT} '{_program(command)}'")
    return frozenset(found)


def look(name: str, commits: str) -> str:
    """Give the command that shows what has become of a thing.

    Args:
        commits: where a script may have changed, as git takes a range.
    """
    kind, _, quoted = name.partition(" ")
    word = shlex.quote(quoted[1:-1])
    if kind == _SCRIPT:
        return f"git log -p {shlex.quote(commits)} -- {word}"
    if kind == _CONFIGURATION:
        return f"git config --show-origin --get-all {word}"
    return f"ls -lL $(command -v {word})"


def _commands(plan: Plan) -> Iterator[tuple[Task | None, Command]]:
    for task in plan.tasks:
        yield task, task.run
        for check in task.checks:
            yield task, check
        if task.review not in ("none", "human"):
            yield task, task.review
    if plan.notify is not None:
        yield None, plan.notify


def _program(command: Command) -> str:
    """Give the program that a command starts with; empty where only a shell could tell."""
    if not isinstance(command, str):
        return command[0] if command and "{" not in command[0] else ""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # a shell's text need not be words
        return ""
    first = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    return "" if _PART_OF_SHELL.search(first) else first


def _words(command: Command) -> Iterable[str]:
    if not isinstance(command, str):
        return command
    return _PART_OF_SHELL.split(_REDIRECTED.sub(" ", command))


def _of_program(repo: Repository, program: str, path: str | None) -> str:
    place = program
    if os.sep in program:
        place = os.path.join(repo.layout.top, program)
    resolved = shutil.which(place, path=path or os.environ.get("PATH"))
    if resolved is None or _inside(repo, resolved):
        return ""  # a shell's own word, or a script of the repository, which counts as such
    try:
        with open(os.path.realpath(resolved), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(_READ)
    except OSError:
        return ""
    return _digest(os.fsencode(resolved) + b"\0%d\0" % size + content)


def _inside(repo: Repository, path: str) -> bool:
    top = os.path.realpath(repo.layout.top)
    return os.path.realpath(path).startswith(top + os.sep)


def _script(repo: Repository, tree: Oid, word: str, *, first: bool) -> str | None:
    """Give the blob of the script that a word of a command names, None if it names none.

    A file that is neither executable nor begins or ends like a script is what a command works on.
    """
    path = os.path.normpath(word) if word else ""
    if not path or path.startswith(("/", "..")) or path == "." or "\0" in path:
        return None
    found = lookup(repo.objects, tree, os.fsencode(path))
    if found is None or found[0] in (DIRECTORY, GITLINK):
        return None
    mode, blob = found
    runs = mode == FileMode.BLOB_EXECUTABLE or read_blob(repo.objects, blob).startswith(b"#!")
    return blob[:_LENGTH] if first or runs or path.endswith(_LANGUAGES) else None


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:_LENGTH]
