"""The plan is read in a process of its own: whatever becomes of that, what is read is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import git, until
from tests.e2e.job import argv, task, write
from tests.e2e.scene import environment

COMMON = """
import os, sys, threading
from git_batch.app import planning
from git_batch.app.reader import PlanReader
from git_batch.errors import BatchError

first, load, fork, forks = os.getpid(), planning.load_plan, os.fork, []

def counted():
    forks.append(1)
    return fork()

os.fork = counted

def answer(read):
    try:
        return read()
    except BatchError as error:
        return type(error), error.message, error.hints, error.exit_code

def elsewhere(do):
    def instead(path):
        return do() if os.getpid() != first else load(path)
    planning.load_plan = instead

pipe, writer = os.pipe, None

def kept():
    global writer
    reader, writer = pipe()
    return reader, writer

os.pipe = kept

def no_fork():
    forks.append(1)
    raise BlockingIOError(11, "Resource temporarily unavailable")
"""
SAME = """
with PlanReader().begin() as reader:
    for once in (False, True):
        reader.ahead(".", None, once=once)
        ahead = answer(lambda: reader.read(".", None))
        here = answer(lambda: planning.plan_for(".", None))
        assert ahead == here, (ahead, here)
try:
    os.waitpid(-1, os.WNOHANG)
    sys.exit("a process was left")
except ChildProcessError:
    print(len(forks), 'pydantic' in sys.modules)
"""


def script(top: Path, code: str) -> str:
    """Run code in a process with one thread, as `git batch start` is; give what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", COMMON + code],
        cwd=top,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize(
    "plan",
    [
        task("a", "echo one >src/new"),
        task("a", "x", 'prompt = "p"') + "\n",
        task("a", "x") + 'unknown = "key"\n',
        "nonsense",
    ],
    ids=["good", "wrong", "unknown key", "nonsense"],
)
def test_what_is_read_ahead_is_what_would_be_read_here(repo: Path, plan: str) -> None:
    write(repo, plan)
    assert script(repo, SAME).startswith("1 ")


def test_a_reader_whose_end_is_nobodys_business_is_heard(repo: Path) -> None:
    write(repo, task("a", "echo one >src/new"))
    ignoring = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    assert script(repo, ignoring + SAME) == "1 True"


def test_no_plan_is_said_as_ever(repo: Path) -> None:
    assert script(repo, SAME).startswith("1 ")


@pytest.mark.parametrize(
    "trouble",
    [
        "elsewhere(lambda: 1 / 0)",
        "elsewhere(lambda: os.kill(os.getpid(), 9))",
        "elsewhere(lambda: os._exit(0))",
        "elsewhere(lambda: sys.exit('said to nobody'))",
        "elsewhere(lambda: os.write(writer, b'\\x80\\x05half'))",
        "os.fork = no_fork",
        "os.pipe = no_fork",
    ],
)
def test_a_reader_that_comes_to_nothing_leaves_the_reading_to_us(repo: Path, trouble: str) -> None:
    write(repo, task("a", "echo one >src/new"))
    assert script(repo, trouble + SAME) == "1 True"


ENDED = """
reader = PlanReader().begin()
reader.ahead(".", None, once=True)
first = reader.read(".", None)
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # nobody told it to end
again = reader.read(".", None)
assert first == again == planning.plan_for(".", None)
print(len(forks), 'pydantic' in sys.modules)
"""


def test_a_reader_that_is_asked_once_ends_by_itself_and_the_rest_is_read_here(repo: Path) -> None:
    write(repo, task("a", "echo one >src/new"))
    assert script(repo, ENDED) == "1 True"


KILLED = """
reader = PlanReader().begin()
first = reader.read(".", None)
os.kill(int(open("/proc/self/task/%d/children" % os.getpid()).read()), 9)
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
assert first == reader.read(".", None) == reader.read(".", None)
print(len(forks))
"""


def test_a_reader_that_is_killed_while_a_person_is_asked_is_done_without(repo: Path) -> None:
    write(repo, task("a", "echo one >src/new"))
    assert script(repo, KILLED) == "1"


INTERRUPTED = """
wait = os.waitpid
def interrupted(pid, options):
    os.waitpid = wait
    raise KeyboardInterrupt
os.waitpid = interrupted
try:
    with PlanReader().begin() as reader:
        reader.close()
except KeyboardInterrupt:
    print('interrupted')
"""
IMPORTING = """
import sys
from git_batch import __main__
def importing():
    raise KeyboardInterrupt
__main__._answer = importing
sys.argv[1:] = ['start']
__main__.main()
"""


TWICE = """
import sys
from git_batch import __main__
from git_batch.app.reader import PlanReader
from git_batch.cli import running
def interrupted(*_, **more):
    raise KeyboardInterrupt
running.open_session = PlanReader.close = interrupted
sys.argv[1:] = ['start']
__main__.main()
"""


def test_what_went_wrong_a_ctrl_c_while_the_reader_was_ended_was_a_bad_file_descriptor(
    repo: Path,
) -> None:
    assert script(repo, INTERRUPTED) == "interrupted"


@pytest.mark.parametrize(
    ("code", "said"), [(IMPORTING, "interrupted\n"), (TWICE, "\ninterrupted\n")]
)
def test_what_went_wrong_a_ctrl_c_that_found_nothing_to_hear_it_was_a_traceback(
    repo: Path, code: str, said: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=repo,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, said)


@pytest.mark.parametrize(
    ("words", "status"),
    [(["--nonsense"], 2), (["--help"], 0), (["--max-tasks", "+1"], 2), (["--dry-run"], 0)],
)
def test_a_start_that_begins_nothing_leaves_no_reader(
    repo: Path, words: list[str], status: int
) -> None:
    write(repo, task("a", "echo one >src/new"))
    ended = subprocess.Popen(
        argv("start", *words),
        cwd=repo,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert ended.wait(timeout=30) == status
    assert nobody_is_left(ended.pid)


def test_a_process_of_several_threads_is_not_copied(repo: Path) -> None:
    write(repo, task("a", "echo one >src/new"))
    beside = "import _thread, time; _thread.start_new_thread(time.sleep, (9,))"  # unknown to Python
    assert script(repo, beside + SAME) == "0 True"


@pytest.mark.parametrize("asked", [True, False])
def test_a_run_never_loads_what_reads_a_plan(repo: Path, asked: bool) -> None:
    write(repo, task("a", "echo x >src/new"))
    code = f"""
from git_batch.cli import starting
from git_batch.cli.main import main
starting.ask = lambda question, yes: {asked}
assert main(["start"], PlanReader().begin()) == 0
print([name for name in sys.modules if name.startswith("pydantic")], len(forks))
"""
    assert script(repo, "sys.stderr = open(os.devnull, 'w')" + code).endswith("\n[] 1")
    assert git(repo, "log", "-1", "--format=%s") == "Do a"


@pytest.fixture
def pipe(repo: Path) -> Path:
    """Give a pipe in place of a plan: whoever opens it for writing knows that somebody reads."""
    place = repo.parent / "plan"
    os.mkfifo(place)
    return place


def begun(top: Path, pipe: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv("start", "--yes", str(pipe)),
        cwd=top,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def nobody_is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to us", "to the group"])
def test_a_signal_ends_a_start_that_waits_for_its_plan(
    repo: Path, pipe: Path, number: signal.Signals, send: Callable[[int, int], None]
) -> None:
    with begun(repo, pipe) as waiting, pipe.open("wb"):
        send(waiting.pid, number)
        assert waiting.wait(timeout=10) == (130 if number == signal.SIGINT else -number)
        assert waiting.stderr is not None
        if number == signal.SIGINT or send is os.killpg:
            until(lambda: nobody_is_left(waiting.pid))
            assert waiting.stderr.read().strip() in ("", "interrupted")


def test_a_start_that_is_refused_before_it_needs_its_plan_leaves_no_reader(
    repo: Path, pipe: Path
) -> None:
    (repo / ".git/MERGE_HEAD").write_text(git(repo, "rev-parse", "HEAD") + "\n")
    with begun(repo, pipe) as refused:
        assert refused.wait(timeout=10) == 3
        assert refused.stderr is not None
        assert "a merge is in progress" in refused.stderr.read()
        until(lambda: nobody_is_left(refused.pid))
