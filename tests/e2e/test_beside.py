"""What a person asks of a run from another terminal, also just as it begins or ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from git_batch.app import beside as writing
from git_batch.app import deciding, notifying, resuming
from git_batch.app.claiming import let_go
from git_batch.app.session import Session, now, open_session
from git_batch.core.events import Decision, Event
from git_batch.core.ids import BatchId, TaskId
from git_batch.core.model import BatchState
from git_batch.repo.journal import Journal
from git_batch.repo.locks import RunLock
from tests.e2e.beside import beside, ended, opened
from tests.e2e.job import Done, committed, task, told, write
from tests.e2e.near import near

RENEW = ("resume", "--max-tasks", "9", "--yes")
ONE, TWO = task("one", "echo 1 >src/one"), task("two", "echo 2 >src/two")
PARKED = task("one", "test -e .git/ok && echo 1 >src/one", "attempts = 1")


@pytest.fixture
def gate(repo: Path) -> Path:
    """Give a fifo for the first task to wait at."""
    path = repo.parent / "gate"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("command", [("stop",), RENEW], ids=["stop", "renewal"])
@pytest.mark.parametrize(
    ("parts", "options", "status", "state"),
    [
        ((ONE,), (), 0, "is completed"),
        ((PARKED, TWO), (), 1, "needs a human"),
        ((ONE, TWO), ("--max-tasks", "1"), 1, "is budget stopped"),
    ],
)
def test_what_came_as_the_run_ended_was_a_bug_or_stopped_the_next_run(
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    parts: tuple[str, ...],
    options: tuple[str, ...],
    status: int,
    state: str,
) -> None:
    asked: list[Done] = []

    def at_the_end(session: Session, end: BatchState, note: Callable[[str], None]) -> BatchState:
        """Do it when the end is recorded and the locks are still held."""
        asked.append(near(repo, *command, status=3))
        return let_go(session, end, note)

    monkeypatch.setattr(writing, "PATIENCE", 0.1)
    monkeypatch.setattr(notifying, "let_go", at_the_end)
    write(repo, *parts)
    near(repo, "start", "--yes", *options, status=status)
    batch, [done] = told(repo)["batch_id"], asked
    assert done.err.splitlines()[0] == f"error: batch '{batch}' is not running: it {state}"
    assert done.hints == [f"git batch status {batch}"]
    assert told(repo)["authorization"]["seq"] == 1
    assert "stop requested" not in near(repo, "log").out


def test_a_run_that_has_just_begun_is_waited_for(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, PARKED, TWO)
    near(repo, "start", "--yes", status=1)
    monkeypatch.chdir(repo)
    session = open_session()
    batch = BatchId(told(repo)["batch_id"])

    def begin(seconds: float) -> None:
        """Record a first event, as the run does meanwhile."""
        who = session.idents()
        journal = Journal.load(session.repo, session.refs, batch, who=who, runner="host/run")
        deciding.decide(session, journal, Decision.RETRY, [TaskId("one")], "", now())

    monkeypatch.setattr(writing, "sleep", begin)
    with RunLock(session.repo, batch, now()):
        assert "to stop after its task" in near(repo, "stop").out
    assert "stop requested" in near(repo, "log").out


def test_a_stop_outlived_the_run_that_it_was_asked_of(
    repo: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        repo,
        task("one", f"test -e {gate}.open || read x <{gate}; echo 1 >src/one"),
        TWO,
    )
    with beside(repo, "start", "--yes") as run, opened(gate, run):
        near(repo, "stop")
        run.kill()
        run.wait(10)
    assert "is not running" in near(repo, "stop", status=3).err
    Path(f"{gate}.open").touch()
    with monkeypatch.context() as patch:  # it dies as well, at once
        patch.setattr(resuming, "claim", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        near(repo, "resume", "--kill-orphans", status=130)
    assert (told(repo)["state"], told(repo)["outcome"]) == ("budget_stopped", "stop_requested")
    near(repo, "resume")
    assert committed(repo) == ["one", "two"]
    log = near(repo, "log").out
    assert log.index("stop requested") < log.index("(stop_requested)") < log.index("interrupted")
    assert log.count("(stop_requested)") == 1


def test_what_went_wrong_after_a_wish_to_stop_a_used_up_budget_was_not_named(
    repo: Path, gate: Path
) -> None:
    write(repo, task("one", f"read x <{gate}; echo 1 >src/one"), TWO)
    with beside(repo, "start", "--yes", "--max-tasks", "1") as run:
        with opened(gate, run) as go:
            near(repo, "stop")
            go.write("\n")
        ended(run, 1)
    assert told(repo)["outcome"] == "stop_requested"
    assert told(repo)["next_action"] == "git batch resume --max-tasks +1"
    assert told(repo, "report")["next_commands"] == ["git batch resume --max-tasks +1"]
    near(repo, "resume", "--max-tasks", "+1", "--yes")
    assert committed(repo) == ["one", "two"]


def test_a_renewal_withdrew_a_stop_without_a_word(repo: Path, gate: Path) -> None:
    write(repo, task("one", f"read x <{gate}; echo 1 >src/one"), TWO)
    with beside(repo, "start", "--yes") as run:
        with opened(gate, run) as go:
            near(repo, "stop")
            done = near(repo, *RENEW)
            go.write("\n")
        ended(run, 1)
    batch = told(repo)["batch_id"]
    assert done.out.splitlines()[-2:] == [
        "renewed; the run was asked to stop, so it still ends after its task",
        f"go on then: git batch resume {batch}",
    ]
    assert (told(repo)["outcome"], told(repo)["authorization"]["seq"]) == ("stop_requested", 2)
    near(repo, "resume", batch)
    assert committed(repo) == ["one", "two"]


def test_of_two_renewals_at_once_the_second_restored_the_bounds_before_the_first(
    repo: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, task("one", f"read x <{gate}; echo 1 >src/one"), TWO)
    append, others = Journal.append, [("resume", "--max-tasks", "1", "--yes")]

    def raced(self: Journal, event: Event) -> BatchState:
        """Let another renewal be made between this one's making and its appending."""
        if others:
            near(repo, *others.pop())
        return append(self, event)

    with beside(repo, "start", "--yes", "--max-tasks", "2") as run:
        with opened(gate, run) as go:
            monkeypatch.setattr(Journal, "append", raced)
            done = near(repo, "resume", "--qa-failures", "3", "--yes")
            go.write("\n")
        ended(run, 1)
    status = told(repo)
    assert status["authorization"]["seq"] == 3
    bounds = status["budget"]
    assert (bounds["max_tasks"], bounds["qa_failure_limit"]) == (1, 3)
    assert done.out.count("a person has to confirm") == 2, "what is granted is what was shown"
    assert committed(repo) == ["one"]
