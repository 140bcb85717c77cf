"""The command line itself: help, options, exit statuses, plan files, decisions, errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from git_batch.cli import main as cli_main
from git_batch.cli.main import COMMANDS, cli, main
from git_batch.errors import GitError
from tests.cli.conftest import Make
from tests.cli.states import STATES
from tests.e2e.job import here, told

OPTIONS = {
    "new": "-o",
    "start": "-y --yes -x --fail-fast -n --dry-run --max-tasks --deadline --expires --qa-failures "
    "--branch --base --allow-untracked",
    "resume": "-y --yes --max-tasks --kill-orphans",
    "status": "--json --watch",
    "list": "--json",
    "report": "--json --format -o",
    "log": "--json --task",
    "show": "--json --output --diff --attempt",
    "retry": "-m --from-attempt",
    "skip": "--dependents",
}
"""What product.md promises of the commands that are there."""


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(name: str, flag: str) -> None:
    result = CliRunner().invoke(cli, [name, flag])
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: cli {name} ")
    described = re.search(r"\n\n  ([A-Z][^\n]+)", result.output)
    assert described, "a sentence says what it does"


@pytest.mark.parametrize("name", OPTIONS)
def test_every_promised_option_is_there_and_explained(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "-h"]).output
    for option in OPTIONS[name].split():
        assert re.search(rf"^  .*(?<![\w-]){option}\b", shown, re.MULTILINE), option
    for line in re.findall(r"^  (-.*)$", shown, re.MULTILINE):
        assert re.search(r"^\S.*(  \S|[A-Z|\]]$|\S$)", line), line


def test_the_group_lists_all_commands_without_importing_them() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line[:30])}", shown, re.MULTILINE)


def test_the_version_is_said() -> None:
    assert CliRunner().invoke(cli, ["--version"]).output.startswith("git-batch, version ")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["strat"], "did you mean 'start'?"),
        (["xyzzy"], "there is no command 'xyzzy'"),
        (["status", "--nope"], "No such option"),
        (["show"], "Missing argument"),
        (["log", "a", "b"], "unexpected extra argument"),
        (["report", "--format", "pdf"], "pdf"),
        (["show", "a", "--attempt", "0"], "--attempt"),
        (["show", "a", "--attempt", "x"], "--attempt"),
        (["completion", "tcsh"], "tcsh"),
    ],
)
def test_wrong_use_exits_with_2_and_says_how(repo: Path, args: list[str], said: str) -> None:
    done = here(repo, *args, status=2)
    assert said in done.err
    assert done.out == ""


# --- errors ---------------------------------------------------------------------------------------


def test_a_bug_is_saved_and_said_in_a_line(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(repo.parent))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("git_batch.app.glances.glance", lambda *_: 1 / 0)
    done = here(repo, "status", status=70)
    assert done.err.startswith("error: a bug in git-batch: ZeroDivisionError: division by zero\n")
    place = re.search(r"'(.*?)'; please report it", done.err)
    assert place
    assert "Traceback" in Path(place[1]).read_text()


def test_text_from_elsewhere_can_not_act_on_the_terminal(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise GitError("said \x1b[2J and \u202e", "a \x9b hint")

    monkeypatch.setattr("git_batch.app.glances.glance", fail)
    done = here(repo, "status", status=3)
    assert done.err == "error: said \\x1b[2J and \\u202e\nhint: a \\x9b hint\n"


def test_an_interruption_has_its_status(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("git_batch.app.glances.glance", interrupt)
    assert here(repo, "status", status=130).err.endswith("interrupted\n")


def test_a_reader_that_goes_away_is_no_error(in_state: Make) -> None:
    top = in_state("needs_human")
    reader, writer = os.pipe()
    os.close(reader)
    env = {**os.environ, "PYTHONPATH": str(Path(cli_main.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-m", "git_batch", "log"], cwd=top, env=env, stdout=writer,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"new", "schema", "completion"}))
def test_no_command_ends_in_a_bug_in_any_state(in_state: Make, state: str, name: str) -> None:
    """Without arguments, and with one that fits nothing: answers and refusals, never a bug."""
    top = in_state(state)
    for args in ([], ["stuck"], ["nonsense"], ["--json"]):
        assert here(top, name, *args, status=None).status in (0, 1, 2, 3, 4)


# --- plan files -----------------------------------------------------------------------------------


def test_new_writes_a_plan_that_check_and_start_take(repo: Path) -> None:
    assert "wrote 'batch.toml'" in here(repo, "new", "modernise").out
    plan = tomllib.loads((repo / "batch.toml").read_text())
    assert plan["slug"] == "modernise"
    assert "first: Say hello" in here(repo, "check").out
    here(repo, "start", "--yes")


def test_new_never_overwrites(repo: Path) -> None:
    (repo / "batch.toml").write_text("mine")
    done = here(repo, "new", status=2)
    assert done.err.startswith("error: 'batch.toml' exists already\nhint: ")
    assert (repo / "batch.toml").read_text() == "mine"
    here(repo, "new", "-o", "other.toml")
    assert tomllib.loads((repo / "other.toml").read_text())["slug"] == "repo"


def test_new_prints_and_needs_no_repository(tmp_path: Path) -> None:
    done = here(tmp_path, "new", "x", "-o", "-")
    assert tomllib.loads(done.out)["slug"] == "x"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("slug", ["Big", "a b", "-x", "a/b", "x" * 49, "claims", "remotes", ""])
def test_new_refuses_what_can_be_no_slug(repo: Path, slug: str) -> None:
    before = list(repo.iterdir())
    done = here(repo, "new", "--", slug, status=2)
    assert "can't be a slug" in done.err
    assert list(repo.iterdir()) == before


def test_check_tells_all_that_would_run_as_json(repo: Path) -> None:
    here(repo, "new", "x")
    said = json.loads(here(repo, "check", "--json").out)
    assert said["version"] == 1
    assert said["order"] == ["first"]
    assert said["plan_digest"] in here(repo, "check").out
    assert said["tasks"][0]["run"] == "echo hello >hello.txt"


def test_check_says_which_plan_when_there_are_several(repo: Path) -> None:
    (repo / ".batch").mkdir()
    for name in ("a", "b"):
        here(repo, "new", name, "-o", f".batch/{name}.toml")
    done = here(repo, "check", status=2)
    assert ".batch/a.toml" in done.err
    assert ".batch/b.toml" in done.err
    here(repo, "check", ".batch/a.toml")


def test_the_schema_is_json(tmp_path: Path) -> None:
    said = json.loads(here(tmp_path, "schema").out)
    assert said["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_code_is_printed(tmp_path: Path, shell: str) -> None:
    assert "_GIT_BATCH_COMPLETE" in here(tmp_path, "completion", shell).out


# --- decisions ------------------------------------------------------------------------------------


def test_decisions_are_recorded_and_say_how_to_go_on(in_state: Make) -> None:
    top = in_state("needs_human")
    said = here(top, "retry", "stuck", "-m", "please").out
    assert said.startswith("'stuck' will run again\ngo on: git batch resume")
    assert here(top, "skip", "stray").out.startswith("'stray' was taken out\n")
    found = {entry["id"]: entry["state"] for entry in told(top)["tasks"]}
    assert (found["stuck"], found["behind"], found["stray"]) == ("pending", "pending", "dropped")


@pytest.mark.parametrize(
    ("state", "args", "status", "said"),
    [
        ("needs_human", ("retry", "done"), 3, "'done' is committed, so 'retry' is not possible"),
        ("needs_human", ("skip", "done"), 3, "'done' is committed, so 'skip' is not possible"),
        ("needs_human", ("retry", "nobody"), 2, "there is no task 'nobody'"),
        ("needs_human", ("retry", "stuck", "--from-attempt", "9"), 2, "no work of attempt 9"),
        ("budget", ("retry", "stuck"), 3, "'stuck' is pending, so 'retry' is not possible"),
        ("completed", ("abandon",), 3, "is completed already"),
        ("abandoned", ("abandon",), 3, "is abandoned already"),
        ("needs_human", ("stop",), 3, "is not running"),
        ("crashed", ("retry", "killer"), 3, "'killer' is in flight"),
        ("failed", ("skip", "stuck"), 3, "is failed, so 'skip' is not possible"),
        ("abandoned", ("retry", "stuck"), 3, "is abandoned, so 'retry' is not possible"),
        ("completed", ("skip", "done"), 3, "is completed, so 'skip' is not possible"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused(
    in_state: Make, state: str, args: tuple[str, ...], status: int, said: str
) -> None:
    top = in_state(state)
    before = told(top)
    done = here(top, *args, status=status)
    assert said in done.err
    assert done.hints or args[0] == "abandon"
    assert told(top) == before


def test_an_abandoned_batch_keeps_everything(in_state: Make) -> None:
    top = in_state("abandoned")
    said = told(top)
    assert said["state"] == "abandoned"
    assert said["head"] == said["tasks"][0]["commit"]
    done = here(top, "resume", status=3)
    assert "is abandoned; it does not go on" in done.err
    assert done.hints[0].startswith("what it did: git batch report demo-")


@pytest.mark.parametrize(
    ("state", "status"),
    [("completed", 0), ("needs_human", 1), ("review", 1), ("abandoned", 3), ("failed", 3)],
)
def test_resume_without_a_decision_ends_as_before(in_state: Make, state: str, status: int) -> None:
    top = in_state(state)
    before = told(top)
    here(top, "resume", status=status)
    after = told(top)
    assert (after["state"], after["head"]) == (before["state"], before["head"])


def test_main_never_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status"]) == 3


@pytest.mark.parametrize(
    "words",
    [
        ("show", "a", "--attempt", "x"),
        ("retry", "a", "--from-attempt", "x"),
        ("adopt", "a", "--attempt", "x"),
        ("start", "--qa-failures", "x"),
    ],
)
def test_what_went_wrong_what_was_no_number_was_called_no_range(
    in_state: Make, words: tuple[str, ...]
) -> None:
    top = in_state("none")
    assert "'x' is not a valid whole number." in here(top, *words, status=2).err
    low = here(top, *words[:-1], "0", status=2).err
    assert "0 is not in the range x>=1." in low
