"""The one runner of the git executable, and the environment that tasks are given.

Rules of the room:

* git is asked for what it alone does right (working tree to tree and back, filters, sparse and
  split indexes, refs deletion); objects are read through libgit2.
* Every call is bound to one repository by `GIT_DIR` and `GIT_WORK_TREE`, never to what the caller's
  environment says. All names of `git rev-parse --local-env-vars` are dropped, so it makes no
  difference whether we were started by a person, a hook, an alias or a rebase. What a person gave
  by `git -c name=value` is dropped with them: a resumed run would not have it.
* Configuration that runs code without need (hooks, pagers, external diffs, background gc) is off.
  Filters stay on, they decide what a blob is; that is why the configuration is fenced by digest.
  `core.fsmonitor` is off as well, except where an index is written that becomes the person's:
  a write without it would strip the extension that makes their `git status` fast.
* Names are literal (`GIT_LITERAL_PATHSPECS`), output is C locale, lists are NUL-separated bytes.
* A child has its own session: Ctrl-C on the terminal can't kill git between two of our steps, and
  nothing that git starts can ask for a password on the terminal.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from git_batch.core.naming import few_facts
from git_batch.errors import FSCK, GitError
from git_batch.repo import patience
from git_batch.repo.feeding import readable

LOCAL_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_OBJECT_DIRECTORY",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_REPLACE_REF_BASE",
        "GIT_PREFIX",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_COMMON_DIR",
    }
)
"""`git rev-parse --local-env-vars`; a test compares them with the git at hand."""

_FOREIGN = LOCAL_VARIABLES | {
    "GIT_ATTR_SOURCE",
    "GIT_DIFF_OPTS",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_INDEX_VERSION",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
}
_FOREIGN_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

QUARANTINE = frozenset(
    {"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"}
)
"""What a receiving hook must keep to see the objects that are being pushed."""

_HARDENED = (
    "core.hooksPath=/dev/null",
    "diff.external=",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
    "advice.addIgnoredFile=false",
    "advice.updateSparsePath=false",
    "advice.detachedHead=false",
)

_DAMAGED = re.compile("corrupt|bad object|unable to (?:read|unpack) |could not read [0-9a-f]{40}")

_QUIET = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "LC_ALL": "C",
}

_UNATTENDED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_MERGE_AUTOEDIT": "no",
    "EDITOR": "false",
    "VISUAL": "false",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
}


def without_git(environ: Mapping[str, str], keep: Collection[str] = ()) -> dict[str, str]:
    """Drop what binds git to another repository, index or configuration; `keep` excepted."""
    return {
        name: value
        for name, value in environ.items()
        if name in keep or (name not in _FOREIGN and not name.startswith(_FOREIGN_PREFIXES))
    }


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of a task's command from the caller's.

    Identity variables stay. No editor, pager, askpass program or terminal prompt can hang it, and
    a git that it calls finds the repository by the directory it runs in.
    """
    cleaned = without_git(environ)
    # `git batch` sets it for us; a task may bring a git of another version.
    cleaned.pop("GIT_EXEC_PATH", None)
    cleaned.update(_UNATTENDED)
    return cleaned


class Result(Struct, frozen=True):
    """What a git process left: exit status (negative: the signal that killed it) and output."""

    status: int
    stdout: bytes
    stderr: bytes


class Git:
    """The git executable, bound to one repository.

    Args:
        git_dir: absolute; None lets git discover it from `directory`.
        directory: where commands run: the top of the working tree, or a bare repository.
        keep: names of variables to let through although they are dropped otherwise.
        hooks: leave `core.hooksPath` as the person has it, to ask git about their hooks.

    Attributes:
        executable: where it is.
    """

    def __init__(
        self,
        git_dir: str | None,
        directory: str,
        *,
        keep: Collection[str] = (),
        bare: bool = False,
        hooks: bool = False,
    ) -> None:
        executable = _on_path("git")
        if executable is None:
            raise GitError("'git' not found", "install git, or put it on PATH")
        self.executable = executable
        self._directory, self._git_dir = directory, git_dir
        self._environment = without_git(os.environ, keep) | _QUIET
        if git_dir is not None:
            self._environment["GIT_DIR"] = git_dir
            if not bare:
                self._environment["GIT_WORK_TREE"] = directory
        hardened = [
            item for item in _HARDENED if not (hooks and item.startswith("core.hooksPath="))
        ]
        self._command = [executable, *(word for item in hardened for word in ("-c", item))]

    def pin_configuration(self, path: str) -> None:
        """Read the person's and the system's configuration from one file from now on."""
        self._environment |= {"GIT_CONFIG_GLOBAL": path, "GIT_CONFIG_NOSYSTEM": "1"}

    def stay_here(self) -> None:
        """Ask no other repository from now on, also not for an object that is missing here."""
        self._environment["GIT_ALLOW_PROTOCOL"] = ""

    def go_out(self) -> None:
        """Take `stay_here` back."""
        self._environment.pop("GIT_ALLOW_PROTOCOL", None)
        if (theirs := os.environ.get("GIT_ALLOW_PROTOCOL")) is not None:
            self._environment["GIT_ALLOW_PROTOCOL"] = theirs

    def run(
        self,
        args: Sequence[str | bytes],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        ok: Collection[int] = (0,),
        fsmonitor: bool = False,
        timeout: float | None = None,
    ) -> bytes:
        """Run git and return its standard output.

        Args:
            args: options for git itself (`-c`) may come before the command.
            input: standard input; None is the null device.
            env: variables to set on top.
            check: False accepts any exit status.
            ok: exit statuses that are no failure.
            fsmonitor: leave `core.fsmonitor` as the person has it.
            timeout: seconds; for what may ask somebody else (a signing program).

        Raises:
            GitError: another exit status, a signal, or the time limit; with what git said.
        """
        result = self.call(args, input=input, env=env, fsmonitor=fsmonitor, timeout=timeout)
        if check and result.status not in ok:
            raise failure(args, result)
        return result.stdout

    def call(
        self,
        args: Sequence[str | bytes],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        fsmonitor: bool = False,
        timeout: float | None = None,
    ) -> Result:
        """Run git and return exit status, output and messages, whatever they are."""
        off = () if fsmonitor else ("-c", "core.fsmonitor=false")
        try:
            with (
                readable(input) as source,
                subprocess.Popen(
                    [*self._command, *off, *args],
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environment if env is None else {**self._environment, **env},
                    cwd=self._directory,
                    start_new_session=True,
                ) as child,
            ):
                stdout, stderr = patience.answer(child, timeout, self._directory, self._git_dir)
        except patience.InVainError as error:
            why = f"'git {_short(args)}' failed: {error.why}"
            raise GitError(why, *error.hints) from None
        except OSError as error:
            raise GitError(f"can't run 'git {_short(args)}': {error.strerror or error}") from error
        return Result(child.returncode, stdout, stderr)

    def flag(self, key: str) -> bool:
        """Read a boolean of the configuration; false where it is not set."""
        asked = self.call(["config", "--type=bool", "--get", key])
        return asked.stdout.strip() == b"true"

    def refs(self, *patterns: str, sort: str = "refname") -> dict[str, str]:
        """List refs with the ids of the objects that they name.

        Args:
            sort: a key of `git for-each-ref`.
        """
        form = "--format=%(objectname) %(refname)"
        out = self.run(["for-each-ref", f"--sort={sort}", form, *patterns])
        rows = [line.split(" ", 1) for line in out.decode("utf-8", "replace").splitlines()]
        return {name: oid for oid, name in rows}

    def commit_named(self, rev: str) -> str | None:
        """Give the id of the commit that a person's word names; None if it names none."""
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"]
        result = self.call(asked)
        return None if result.status else result.stdout.decode("ascii").strip()

    def attached(self, args: Sequence[str], relay: Callable[[bytes], None]) -> int:
        """Run git for the person at the terminal, as they would, and give its exit status.

        It may ask them for a password, runs their hooks, and reads their configuration; only the
        repository is named for it. What it says, and repeats of a remote, goes to `relay`.
        """
        mine = {k: v for k, v in self._environment.items() if k in ("GIT_DIR", "GIT_WORK_TREE")}
        try:
            return patience.relayed(
                [self._command[0], *args], without_git(os.environ) | mine, self._directory, relay
            )
        except OSError as error:
            raise GitError(f"can't run 'git {_short(args)}': {error.strerror or error}") from error

    def start(
        self, args: Sequence[str | bytes], *, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start git and let the caller talk to it; what it says on standard error is dropped.

        The caller reads and writes its pipes, closes them, and waits.
        """
        try:
            return subprocess.Popen(
                [*self._command, "-c", "core.fsmonitor=false", *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment if env is None else {**self._environment, **env},
                cwd=self._directory,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"can't run 'git {_short(args)}': {error.strerror or error}") from error


def _on_path(name: str) -> str | None:
    """Find a program; `shutil.which` would cost a hook two milliseconds of imports.

    Not where PATH means the current directory: that is the working tree, where a task may put one.
    """
    folders = filter(os.path.isabs, os.get_exec_path())
    places = (os.path.join(folder, name) for folder in folders)
    return next((p for p in places if os.path.isfile(p) and os.access(p, os.X_OK)), None)


def failure(args: Sequence[str | bytes], result: Result) -> GitError:
    """Make the error that says which command failed and what git said about it."""
    said = [line for line in result.stderr.decode(errors="replace").splitlines() if line.strip()]
    wrong = [line for line in said if line.startswith(("fatal: ", "error: "))] or said
    bare = [line.removeprefix("fatal: ").removeprefix("error: ") for line in wrong]
    how = (
        f"killed by signal {-result.status}"
        if result.status < 0
        else few_facts(bare, 5) or f"exit status {result.status}"
    )
    hints = [FSCK] if _DAMAGED.search(how) else []
    return GitError(f"'git {_short(args)}' failed: {how}", *hints)


def _short(args: Iterable[str | bytes]) -> str:
    """Name a command: without git's own `-c` options, at most four words."""
    words = [os.fsdecode(arg) for arg in args]
    while len(words) > 2 and words[0] == "-c":
        del words[:2]
    return " ".join(words[:4]) + (" …" if len(words) > 4 else "")
