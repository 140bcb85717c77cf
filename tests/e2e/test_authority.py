"""Who may let a batch run: the confirmation, its record, and what does not count as one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from git_batch.app.reader import PlanReader
from git_batch.app.requests import Bounds, ResumeRequest, StartRequest
from git_batch.app.resuming import Renewal, resume
from git_batch.app.session import now, open_session
from git_batch.app.starting import Proposal, start
from git_batch.cli.main import COMMANDS
from git_batch.core.standing import BatchStatus
from git_batch.errors import PreconditionError
from git_batch.run.context import Tools
from git_batch.run.interrupt import Interrupt
from git_batch.run.progress import Silent
from tests.conftest import git
from tests.e2e.beside import beside, ended, opened
from tests.e2e.job import argv, batch, committed, everything, outcomes, refs, task, told, write
from tests.e2e.near import near, said
from tests.e2e.scene import environment

TWO = (task("a", "echo one >src/one"), task("b", "echo two >src/two"))


def batch_id(top: Path) -> str:
    return str(told(top)["batch_id"])


def note_ref(top: Path) -> str:
    return f"refs/notes/batch/{batch_id(top)}"


def marker(top: Path) -> Path:
    return top / f".git/batch/{batch_id(top)}.authorized"


def tools() -> Tools:
    return Tools(Interrupt(), Silent(), now)


def log(top: Path) -> str:
    return near(top, "log").out


# What is recorded.


def test_the_record_holds_who_when_which_plan_base_and_branch(repo: Path) -> None:
    write(repo, *TWO)
    base = git(repo, "rev-parse", "HEAD")
    near(repo, "start", "--yes")
    header = git(repo, "show", f"{note_ref(repo)}:batch.toml")
    status = told(repo)
    for text in (
        'name = "T"',
        'email = "t@x"',
        "seq = 1",
        f'plan_digest = "{status["plan_digest"]}"',
        f'base = "{base}"',
        'branch = "batch/demo"',
        "confirmed_at = 20",
        "nonce = ",
        "[authorization.budget]",
    ):
        assert text in header


def test_two_authorizations_never_have_the_same_nonce(repo: Path) -> None:
    write(repo, *TWO)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    first = git(repo, "show", f"{note_ref(repo)}:batch.toml")
    near(repo, "resume", "--yes", "--max-tasks", "+1")
    second = git(repo, "show", f"{note_ref(repo)}:batch.toml")

    def nonce(text: str) -> str:
        return next(line for line in text.splitlines() if line.startswith("nonce"))

    assert nonce(first) != nonce(second)


# What is checked again after the answer.


def edit_plan(repo: Path) -> None:
    write(repo, *TWO, task("c", "true"))


def commit(repo: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "meanwhile")


def switch(repo: Path) -> None:
    git(repo, "switch", "-q", "-c", "elsewhere")


def dirty(repo: Path) -> None:
    (repo / "src/a").write_text("edited\n")


def take_branch(repo: Path) -> None:
    git(repo, "branch", "batch/demo", git(repo, "commit-tree", "HEAD^{tree}", "-m", "x"))


def configure(repo: Path) -> None:
    git(repo, "config", "core.hooksPath", "hooks")


@pytest.mark.parametrize(
    "meanwhile",
    [edit_plan, commit, switch, dirty, take_branch, configure],
    ids=lambda f: f.__name__,
)
def test_what_changed_while_a_person_was_asked_is_refused_and_nothing_is_written(
    repo: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Path], None]
) -> None:
    write(repo, *TWO)
    monkeypatch.chdir(repo)
    before: dict[str, str] = {}

    def confirm(proposal: Proposal) -> bool:
        meanwhile(repo)
        before.update(refs(repo))
        return True

    with pytest.raises(PreconditionError):
        start(open_session(), StartRequest(), confirm, tools(), PlanReader())
    assert refs(repo) == before


def test_what_was_configured_while_a_person_was_asked_counts(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, task("a", "echo one >src/one").replace("Do a", "Größe"))
    monkeypatch.chdir(repo)

    def confirm(proposal: Proposal) -> bool:
        git(repo, "config", "i18n.commitEncoding", "ISO-8859-1")
        return True

    done = start(open_session(), StartRequest(), confirm, tools(), PlanReader())
    assert done.state.status == "completed"
    assert "\nencoding ISO-8859-1\n" in git(repo, "cat-file", "commit", "batch/demo")


@pytest.mark.parametrize(
    "meanwhile", [edit_plan, switch, dirty, configure], ids=lambda f: f.__name__
)
def test_what_changed_while_a_renewal_was_asked_for_is_refused(
    repo: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Path], None]
) -> None:
    write(repo, *TWO)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    write(repo, *TWO, task("d", "true"))
    monkeypatch.chdir(repo)
    before: dict[str, str] = {}

    def confirm(renewal: Renewal) -> bool:
        meanwhile(repo)
        before.update(refs(repo))
        return True

    request = ResumeRequest(bounds=Bounds(extra_tasks=9), renew=True, plan="batch.toml")
    with pytest.raises(PreconditionError):
        resume(open_session(), request, confirm, tools())
    assert refs(repo) == before


def test_a_no_to_a_renewal_writes_nothing(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repo, *TWO)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    monkeypatch.chdir(repo)
    before = everything(repo)

    def confirm(renewal: Renewal) -> bool:
        raise PreconditionError("no")

    with pytest.raises(PreconditionError, match="no"):
        resume(
            open_session(),
            ResumeRequest(bounds=Bounds(extra_tasks=1), renew=True),
            confirm,
            tools(),
        )
    after = everything(repo)
    locks = {path for path in after if path.endswith(".lock")}
    assert {p: v for p, v in after.items() if p not in locks} == {
        p: v for p, v in before.items() if p not in locks
    }


# What comes from elsewhere.


def cloned(top: Path) -> Path:
    """Clone a repository with its batch's branch and record, as a person would by hand."""
    other = top.parent / "clone"
    git(top.parent, "clone", "-q", "--no-local", str(top), str(other))
    git(other, "fetch", "-q", "origin", "refs/notes/batch/*:refs/notes/batch/*")
    git(other, "branch", "-q", "main", "origin/main")
    return other


@pytest.mark.parametrize("decided", [False, True])
def test_no_authority_travels_with_a_record(repo: Path, decided: bool) -> None:
    """Where the standing authorization would do at home, it does not elsewhere."""
    write(
        repo,
        task("a", "echo one >src/one; exit 1"),
        task("b", "echo two >src/two", 'blocked_by = ["a"]'),
    )
    near(repo, "start", "--yes", status=1)
    if decided:
        near(repo, "retry", "a")
    other = cloned(repo)
    before = refs(other)
    refused = near(other, "resume", status=3)
    assert "nobody has confirmed it in this repository" in refused.out
    for command in ("echo one >src/one; exit 1", "echo two >src/two"):
        assert command in refused.out
    assert refs(other) == before
    near(other, "resume", "--yes", status=1)
    assert told(other)["authorization"]["seq"] == 2
    near(other, "retry", "b", status=3)
    assert "nobody has confirmed" not in said(near(other, "resume", status=1))
    assert told(other)["authorization"]["seq"] == 2


def test_there_the_commands_of_what_is_done_are_shown_as_well(repo: Path) -> None:
    write(repo, *TWO)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    other = cloned(repo)
    shown = near(other, "resume", "--max-tasks", "+1", "--yes").out
    assert "echo one >src/one" in shown
    assert "1 task will not run, done already:\n1. a: Do a" in shown
    assert "1 task will run, in this order:\n1. b: Do b" in shown
    assert committed(other) == ["a", "b"]


def test_to_lose_what_was_confirmed_here_only_means_to_be_asked(repo: Path) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    for lost in (lambda: marker(repo).unlink(), lambda: marker(repo).write_text("{not json")):
        lost()
        assert "nobody has confirmed it in this repository" in near(repo, "resume", status=3).out
        near(repo, "resume", "--yes", status=1)
        near(repo, "retry", "a")
    near(repo, "resume", status=1)


# What was put back.


def test_a_record_that_was_put_back_is_refused_with_the_reason(repo: Path) -> None:
    write(repo, *TWO)
    near(repo, "start", "--yes", "--max-tasks", "1", status=1)
    name = note_ref(repo)
    old = git(repo, "rev-parse", name)
    near(repo, "resume", "--yes", "--max-tasks", "+1")
    git(repo, "update-ref", name, old)
    before = refs(repo)
    for command in (("resume",), ("resume", "--yes"), ("retry", "a"), ("abandon",)):
        done = near(repo, *command, status=3)
        assert "was put back" in done.err
        assert "no. 1, this repository has seen no. 2" in done.err
    assert refs(repo) == before
    assert committed(repo) == ["a", "b"]


def test_a_record_without_its_newest_events_is_refused(repo: Path) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    name = note_ref(repo)
    git(repo, "update-ref", name, f"{name}~1")
    done = near(repo, "resume", "--yes", status=3)
    assert "was put back: it ends with event" in done.err
    assert f"git reflog {name}" in done.err


@pytest.mark.parametrize("what", ["plan", "base", "branch"])
def test_an_authorization_for_another_plan_base_or_branch_is_refused(repo: Path, what: str) -> None:
    """Somebody writes the header anew, so that an old confirmation covers something else."""
    write(repo, task("a", "exit 1"))
    base = git(repo, "rev-parse", "HEAD")
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    name = note_ref(repo)
    header = git(repo, "show", f"{name}:batch.toml")
    digest = told(repo)["plan_digest"]
    own, granted = header.split("[authorization]")
    forged = {
        "plan": lambda: granted.replace(digest, "sha256:" + "0" * 64),
        "base": lambda: granted.replace(base, "1" * 40),
        "branch": lambda: granted.replace("batch/demo", "batch/other"),
    }[what]()
    assert forged != granted
    blob = git(repo, "hash-object", "-w", "--stdin", input=f"{own}[authorization]{forged}".encode())
    listed = git(repo, "ls-tree", name).splitlines()
    tree = "\n".join(
        f"100644 blob {blob}\tbatch.toml" if line.endswith("\tbatch.toml") else line
        for line in listed
    )
    made = git(repo, "mktree", input=f"{tree}\n".encode())
    message = git(repo, "log", "-1", "--format=%B", name)
    commit_args = ("commit-tree", made, "-p", f"{name}~1", "-F", "-")
    git(repo, "update-ref", name, git(repo, *commit_args, input=message.encode()))
    done = near(repo, "resume", "--yes", status=3)
    assert f"is for the {what}" in done.err
    assert outcomes(repo) == {"a": None} or outcomes(repo) == {"a": "not_run_stopped"}


# What else runs.


def test_what_else_runs_is_noted_when_it_is_not_as_it_was(repo: Path, tmp_path: Path) -> None:
    tool = tmp_path / "bin/tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    script = repo / "check.sh"
    script.write_text("exit 1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "script")
    write(
        repo,
        task(
            "a", "sh check.sh", f"env = {{ PATH = {json.dumps(f'{tool.parent}:/usr/bin:/bin')} }}"
        ),
        task("b", "true").replace('run = "true"', f"run = [{json.dumps(str(tool))}]"),
    )
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "a")
    assert "not as it was" not in near(repo, "resume", status=1).err

    tool.write_text("#!/bin/sh\nexit 2\n")
    git(repo, "config", "filter.up.clean", "cat")
    git(repo, "config", "core.sshCommand", "ssh -v")
    near(repo, "retry", "a")
    told_now = near(repo, "resume", status=1).err
    for name in (
        f"program '{tool}'",
        "configuration 'filter.up.clean'",
        "configuration 'core.sshcommand'",
    ):
        assert f"not as it was at the last confirmation: {name}" in told_now
    assert "script 'check.sh'" not in told_now
    header = git(repo, "show", f"{note_ref(repo)}:batch.toml")
    assert "script 'check.sh'" in header
    assert "ssh -v" not in header, "a value may be a secret, and the record is pushed"


def test_a_script_that_a_task_changes_is_noted(repo: Path) -> None:
    (repo / "check.sh").write_text("true\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "script")
    write(
        repo,
        task("a", "echo exit 0 >check.sh", 'scope = ["check.sh"]'),
        task("b", "exit 1", 'check = "sh check.sh"'),
    )
    near(repo, "start", "--yes", status=1)
    near(repo, "retry", "b")
    assert (
        "not as it was at the last confirmation: script 'check.sh'"
        in near(repo, "resume", status=1).err
    )


def test_what_went_wrong_a_file_that_tasks_work_on_was_taken_for_a_script_and_warned_of(
    repo: Path,
) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (repo / "src" / name).write_text("1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "modules")
    write(
        repo,
        task("a", "echo 2 >> src/a.py; sed -i s/1/2/ src/b.py"),
        task("b", "exit 1", 'check = ["cat <src/c.py >src/a.py", "python3 -m x src/b.py"]'),
    )
    near(repo, "start", "--yes", status=1)
    assert "src/a.py" not in git(repo, "show", f"{note_ref(repo)}:batch.toml")
    near(repo, "retry", "b")
    assert "warning" not in near(repo, "resume", status=1).err
    # What a person changed may be run after all.
    (repo / "src/c.py").write_text("2\n")
    git(repo, "commit", "-qam", "by hand")
    near(repo, "bless")
    near(repo, "retry", "b")
    err = near(repo, "resume", status=1).err
    [line] = [line for line in err.splitlines() if "script 'src/c.py'" in line]
    assert line.startswith("warning: not as it was at the last confirmation: script 'src/c.py'; ")
    way = line.split("look: ")[1]
    assert (
        "by hand"
        in subprocess.run(
            way, shell=True, cwd=repo, check=True, capture_output=True, text=True
        ).stdout
    )


# From inside a task.

READING = frozenset(
    {"new", "check", "schema", "status", "list", "report", "log", "show", "find", "verify"}
    | {"message", "doctor", "selftest", "completion", "demo", "fetch", "hooks"}
)
"""Commands that neither start, renew, decide nor force anything; `hooks status` reads."""

ARGUMENTS = {
    "retry": ("a",),
    "skip": ("a",),
    "adopt": ("a",),
    "undo": ("a",),
    "rebase": ("--onto", "main"),
    "review": ("a", "--accept"),
    "resume": ("--yes",),
    "start": ("--yes",),
}


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - READING))
def test_every_command_that_decides_is_refused_inside_a_task(
    repo: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    before = everything(repo)
    for name in ("BATCH_TASK", "GIT_BATCH_RUN"):
        monkeypatch.setenv(name, "a")
        done = near(repo, command, *ARGUMENTS.get(command, ()), status=3)
        assert "can't start, renew or decide anything" in done.err
        monkeypatch.delenv(name)
    assert everything(repo) == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("way", ["", "setsid -w "])
def test_a_task_that_clears_its_environment_is_still_one(repo: Path, way: str) -> None:
    """A task answers for the person, in another clone, without any variable of ours."""
    write(repo, task("x", "echo ran >src/x"))
    other = repo.parent / "other"
    shutil.copytree(repo, other)
    clean = {k: v for k, v in environment().items() if not k.startswith(("BATCH_", "GIT_BATCH"))}
    names = " ".join(f"{k}={shlex.quote(v)}" for k, v in clean.items())
    inner = shlex.join(argv("start", "--yes"))
    command = f"cd {other} && {way}env -i {names} {inner} >said 2>&1; echo $? >status"
    write(repo, task("a", f"({command}); echo a >src/a2"))
    batch(repo, "start", "--yes")
    assert "runs inside the run of process" in (other / "said").read_text()
    assert (other / "status").read_text() == "3\n"
    assert "refs/heads/batch/demo" not in refs(other)


# Asking a live run to stop.


def test_a_stop_ends_a_live_run_after_the_task_in_flight(repo: Path) -> None:
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(repo, task("a", f"read x <{gate}; echo a >src/one"), task("b", "echo b >src/two"))
    with beside(repo, "start", "--yes") as run:
        with opened(gate, run) as go:
            near(repo, "stop")
            assert told(repo)["live"]
            go.write("\n")
        ended(run, 1)
    status = told(repo)
    assert (status["state"], status["outcome"]) == ("budget_stopped", "stop_requested")
    assert outcomes(repo) == {"a": "committed", "b": "not_run_stopped"}
    assert "stop requested by T" in log(repo)
    near(repo, "resume")
    assert committed(repo) == ["a", "b"]


def test_there_is_nothing_to_stop_without_a_live_run(repo: Path) -> None:
    write(repo, task("a", "exit 1"))
    near(repo, "start", "--yes", status=1)
    before = refs(repo)
    assert "is not running" in near(repo, "stop", status=3).err
    assert refs(repo) == before


def test_a_run_that_was_killed_goes_on_under_the_standing_authorization(repo: Path) -> None:
    gate = repo.parent / "gate"
    os.mkfifo(gate)
    write(repo, task("a", f"test -e {gate}.open || read x <{gate}; echo a >src/one"))
    with beside(repo, "start", "--yes") as run, opened(gate, run):
        run.kill()
        run.wait(10)
    Path(f"{gate}.open").touch()
    near(repo, "resume", "--kill-orphans")
    status = told(repo)
    assert status["state"] == BatchStatus.COMPLETED
    assert status["authorization"]["seq"] == 1
