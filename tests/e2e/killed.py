"""A real process that starts or resumes a batch and kills itself at its n-th durable step.

Nothing in the product knows of it: steps are noticed from outside. An audit hook sees every change
of a file that Python makes before it happens, and every process before it is started; a few
functions are wrapped to see what libgit2 and git do. The process then ends by SIGKILL, so nothing
is cleaned up, flushed or unlocked. Two places lie inside libgit2, between two system calls, and
are made to look as the killed call would have left them (`Transaction`).

Run as a program it reads requests, one JSON object a line, does each in a process forked from
itself (so that what takes long, the imports, is done once), and writes an answer. With `--once
REQUEST` it does one in this very process and prints the answer: for tests that need its pid.

A command of the plan may `read x <"$GATE"`: it then stands still exactly while the step "in the
middle" is reached, and its `read` fails if that was the end. With `SLOW` in
the environment every command counts as slow, without it none: the time that one takes is all one.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import pygit2

from git_batch.app.reader import PlanReader
from git_batch.app.rebasing import rebase
from git_batch.app.requests import Bounds, ResumeRequest, StartRequest
from git_batch.app.resuming import Renewal, resume
from git_batch.app.session import now, open_session
from git_batch.app.starting import Proposal, start
from git_batch.app.undoing import undo
from git_batch.core.attempt import Attempt
from git_batch.core.events import KINDS, Event
from git_batch.core.model import BatchState
from git_batch.errors import BatchError
from git_batch.repo import attempts, commits, index, notestree, refs, stalelocks
from git_batch.repo.refs import Refs
from git_batch.run import watch
from git_batch.run.context import Tools
from git_batch.run.interrupt import Interrupt

Request = dict[str, Any]

MUTATING = frozenset(
    {"add", "checkout-index", "commit-tree", "switch", "symbolic-ref", "update-index", "update-ref"}
    | {"write-tree"}
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HANG = 60
"""Seconds after which a process is taken to hang."""


class Steps:
    """Counts and names the steps; kills, or acts, when its time has come."""

    def __init__(self, request: Request, trace: int) -> None:
        self.top = os.path.realpath(request["top"])
        self.kill_at: int = request.get("kill") or 0
        self.act: Request = request.get("act") or {}
        self.count = self.met = 0
        self._trace = trace
        self._busy = False

    def reach(self, name: str, leave: Callable[[], object] | None = None) -> None:
        """Note a step; `leave` makes what a death inside of a library would have left."""
        if self._busy:
            return
        self._busy = True
        try:
            self.count += 1
            name = self.shown(name)
            os.write(self._trace, f"{name}\n".encode())
            if self.count == self.kill_at:
                if leave:
                    leave()
                die()
            if self.act and name == self.act["step"]:
                self.met += 1
                if self.met == self.act.get("nth", 1):
                    subprocess.run(
                        self.act["command"], shell=True, check=True, stdout=subprocess.DEVNULL
                    )
        finally:
            self._busy = False

    def shown(self, name: str) -> str:
        """Take out what differs from one run to the next."""
        name = name.replace(f"{self.top}/.git/", "").replace(f"{self.top}/", "")
        name = re.sub(r"/\S*/git-batch-[a-z0-9_]+", "TMP", name)
        return re.sub(r"\bdemo-[a-z0-9]{6}\b", "demo-ID", name).replace("\n", " ")

    def is_ours(self, path: object) -> bool:
        """Tell whether a path is the repository's or in the files of a task."""
        if isinstance(path, bytes | str | os.PathLike):
            name = os.fsdecode(path)
            if name.startswith("/sys/"):  # no file system that a kill could leave half written
                return False
            return not name.startswith("/") or name.startswith(self.top) or "/git-batch-" in name
        return False


STEPS: Steps | None = None


def die() -> NoReturn:
    """End as by `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def reach(name: str, leave: Callable[[], object] | None = None) -> None:
    """Note a step of the run in this process."""
    if STEPS is not None:
        STEPS.reach(name, leave)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """See every file operation of Python before it happens."""
    if STEPS is None:
        return
    if event == "open":
        if isinstance(args[2], int) and args[2] & WRITES and STEPS.is_ours(args[0]):
            STEPS.reach(f"open {os.fsdecode(args[0])}")
    elif event in ("os.link", "os.rename", "os.symlink"):
        if STEPS.is_ours(args[1]):
            STEPS.reach(f"{event[3:]} {os.fsdecode(args[0])} {os.fsdecode(args[1])}")
    elif event in ("os.remove", "os.rmdir", "os.mkdir", "os.utime") and STEPS.is_ours(args[0]):
        # A file that isn't there, or a folder that is: no step.
        if os.path.lexists(args[0]) != (event == "os.mkdir"):
            STEPS.reach(f"{event[3:]} {os.fsdecode(args[0])}")
    elif event == "subprocess.Popen" and not _reads_only(args[1]):
        STEPS.reach(f"start {_words(args[1])}")


def _words(argv: object) -> str:
    """Name a command shortly; of git, its own options are left out."""
    words = [argv] if isinstance(argv, str | bytes) else list(argv)  # type: ignore[call-overload]
    names = [os.fsdecode(word) for word in words]
    if Path(names[0]).name == "git":
        rest = names[1:]
        while rest and rest[0] == "-c":
            del rest[:2]
        return " ".join(["git", *rest[:2]])
    return names[-1][:60]


def _reads_only(argv: object) -> bool:
    words = _words(argv).split(" ")
    return words[0] == "git" and (len(words) < 2 or words[1] not in MUTATING)


def around(owner: object, name: str, label: Callable[..., str]) -> None:
    """Make a step before and after each call of a function."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if STEPS is None:
            return original(*args, **kwargs)
        said = label(*args, **kwargs)
        reach(f"{said}: before")
        result = original(*args, **kwargs)
        reach(f"{said}: after")
        return result

    setattr(owner, name, wrapper)


class Transaction:
    """Stands before libgit2's transaction of one ref, with steps inside of it."""

    def __init__(self, inner: Any, folder: str) -> None:
        self._inner, self._folder = inner, folder
        self._name = self._new = ""

    def __enter__(self) -> Transaction:
        self._inner.__enter__()
        return self

    def lock_ref(self, name: str) -> None:
        """Lock."""
        self._inner.lock_ref(name)
        self._name = name
        reach(f"{name} locked")

    def set_target(self, name: str, oid: pygit2.Oid, message: str) -> None:
        """Remember the target; `__exit__` writes it."""
        self._inner.set_target(name, oid, message=message)
        self._new = str(oid)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> Any:
        if kind is not None or not self._new:
            return self._inner.__exit__(kind, error, tb)
        place = Path(self._folder, self._name)
        lock = Path(f"{place}.lock")
        existed = place.exists()
        reach(f"{self._name} in its lock", lambda: lock.write_text(f"{self._new}\n"))
        result = self._inner.__exit__(kind, error, tb)
        if not existed:
            reach(
                f"{self._name} linked, not unlocked", lambda: lock.write_bytes(place.read_bytes())
            )
        reach(f"{self._name} moved")
        return result


def _open_gate(gate: str, leader: subprocess.Popen[bytes]) -> int:
    """Open the gate as soon as the command reads it; -1 if it ends without."""
    limit = time.monotonic() + HANG / 2
    while time.monotonic() < limit:
        try:
            return os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return -1
        time.sleep(0.0005)
    raise AssertionError("the command never came to its gate")


def instrument() -> None:
    """Wrap what the audit hook can't see; once in a process's life."""
    sys.addaudithook(_audit)
    around(Refs, "swap", lambda _, name, *args, **kwargs: f"swap {name}")
    around(Refs, "barrier", lambda *_: "sync")
    around(commits, "make", lambda repo, message, **_: f"commit object '{_first(message)}'")
    around(notestree, "write_paths", lambda *_: "tree of the record")
    around(attempts, "write_paths", lambda *_, **__: "tree of the logs")

    transaction = pygit2.Repository.transaction

    def begin(self: pygit2.Repository) -> Any:
        inner = transaction(self)
        return inner if STEPS is None else Transaction(inner, self.path)

    follow = watch.Watch.follow

    def followed(self: watch.Watch) -> watch.Ended:
        if STEPS is None:
            return follow(self)
        reach("command runs")
        if os.environ.get("SLOW") and self.on_slow is not None:
            on_slow, self.on_slow = self.on_slow, None
            on_slow()
        gate = os.environ.get("GATE")
        opened = _open_gate(gate, self.leader) if gate else -1
        if opened >= 0:
            reach("command in the middle")
            os.write(opened, b"\n")
            os.close(opened)
        ended = follow(self)
        reach("command ended")
        return ended

    communicate = subprocess.Popen.communicate

    def talk(self: subprocess.Popen[bytes], *args: Any, **kwargs: Any) -> Any:
        if STEPS is None or _reads_only(self.args):
            return communicate(self, *args, **kwargs)
        said = _words(self.args)
        reach(f"{said}: runs on alone")
        reach(f"{said}: killed as well", lambda: os.killpg(self.pid, signal.SIGKILL))
        result = communicate(self, *args, **kwargs)
        reach(f"{said}: done")
        return result

    for owner, name, function in (
        (pygit2.Repository, "transaction", begin),
        (watch.Watch, "follow", followed),
        (subprocess.Popen, "communicate", talk),
    ):
        setattr(owner, name, function)


def _first(message: bytes) -> str:
    return message.split(b"\n", 1)[0].decode("utf-8", "replace")


class Notes:
    """Keeps what the run says."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.events: list[str] = []

    def event(self, event: Event, state: BatchState) -> None:
        """Keep the kind of an event."""
        self.events.append(KINDS[type(event)])

    def note(self, text: str) -> None:
        """Keep a note."""
        self.said.append(text)


def perform(request: Request) -> Request:
    """Start or resume, and say what came of it."""
    settings: list[tuple[object, str, float]] = [
        (stalelocks, "PASSING", 0.02),
        (watch, "SLOW", 1e9),
    ]
    settings += [(m, "LOCK_WAIT", request.get("wait", 10.0)) for m in (refs, index, stalelocks)]
    for module, name, value in settings:
        setattr(module, name, value)
    notes, interrupt = Notes(), Interrupt()
    asked: list[str] = []

    def confirm_start(proposal: Proposal) -> bool:
        asked.append(proposal.plan.slug)
        return True

    def confirm_renewal(renewal: Renewal) -> bool:
        asked.append(renewal.why)
        return True

    answer: Request = {"notes": notes.said, "events": notes.events, "asked": asked}
    try:
        with interrupt.install():
            tools = Tools(interrupt, notes, now)
            bounds = Bounds(**request.get("bounds", {}))
            if request["action"] == "start":
                wanted = StartRequest(plan=request.get("plan"), bounds=bounds)
                state = start(open_session(), wanted, confirm_start, tools, PlanReader()).state
            elif request["action"] == "rebase":
                state = rebase(open_session(), None, onto="main", words="", at=now()).state
            elif request["action"] == "undo":
                state = undo(open_session(), request["task"], redo=False, words="", at=now()).state
            else:
                again = ResumeRequest(
                    bounds=bounds, kill_orphans=request.get("kill_orphans", False)
                )
                state = resume(open_session(), again, confirm_renewal, tools).state
    except BatchError as error:
        refused = {"type": type(error).__name__, "message": error.message, "hints": error.hints}
        return answer | {"error": refused}
    return answer | {"state": describe(state), "signal": interrupt.signum}


def describe(state: BatchState) -> Request:
    """Write down what a test compares."""
    flight = state.in_flight
    return {
        "batch": state.batch_id,
        "status": str(state.status),
        "stop": str(state.stop),
        "reason": state.reason,
        "head": state.head,
        "enrolled": state.enrolled,
        "in_flight": flight.task if flight else None,
        "used": flight.used if flight else 0,
        "seq": state.authorization.seq if state.authorization else 0,
        "tasks": {
            task: {
                "status": str(record.status),
                "outcome": str(record.outcome),
                "attempts": [_attempt(a) for a in record.history],
            }
            for task, record in state.tasks.items()
        },
        "history": [_attempt(a) for a in flight.history] if flight else [],
    }


def _attempt(attempt: Attempt) -> Request:
    return {
        "n": attempt.n,
        "outcome": str(attempt.outcome),
        "ref": attempt.ref,
        "log": attempt.log.sha256 if attempt.log else None,
    }


def once(request: Request, trace: int) -> Request:
    """Do one request in this process."""
    global STEPS
    os.chdir(request["top"])
    os.environ.update(request.get("env", {}))
    Path(os.environ["TMPDIR"]).mkdir(exist_ok=True)
    tempfile.tempdir = None  # it was looked up before
    STEPS = Steps(request, trace)
    try:
        return perform(request)
    finally:
        STEPS = None


def _fork(request: Request, folder: str) -> Request:
    result, trace = Path(folder, "result"), Path(folder, "trace")
    fd = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    result.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            signal.alarm(HANG)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(2, 1)
            answer = once(request, fd)
            result.write_text(json.dumps(answer))
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(fd)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    read = result.read_text() if result.exists() else "{}"
    steps = trace.read_text().splitlines()
    return {"exit": code, "pid": pid, "steps": steps, **json.loads(read)}


def serve(lines: Iterable[str]) -> None:
    """Answer requests until there are no more."""
    with tempfile.TemporaryDirectory() as folder:
        for line in lines:
            print(json.dumps(_fork(json.loads(line), folder)), flush=True)


if __name__ == "__main__":
    instrument()
    if sys.argv[1:2] == ["--once"]:
        null = os.open(os.devnull, os.O_WRONLY)
        print(json.dumps(once(json.loads(sys.argv[2]), null)))
    else:
        serve(sys.stdin)
