"""Shell completion: what a shell asks is answered, and the code that asks works in a real bash."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from git_batch.cli.main import COMMANDS
from tests.e2e.job import here

BASH = shutil.which("bash")


def asked(top: Path, shell: str, line: str) -> list[str]:
    """Ask as completion code does what the last word of a line can become."""
    words = line.split(" ")
    place = words[-1] if shell == "fish" else str(len(words) - 1)
    env = os.environ | {
        "COMP_WORDS": line,
        "COMP_CWORD": place,
        "_GIT_BATCH_COMPLETE": f"{shell}_complete",
    }
    done = subprocess.run(
        [sys.executable, "-m", "git_batch"], cwd=top, env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def replies(top: Path, line: str, *, through: str = "_git_batch_completion git-batch") -> list[str]:
    """Complete the last word of a line in bash, with the code that is printed for it."""
    code = top.parent / "code.bash"
    code.write_text(here(top, "completion", "bash").out)
    program = top.parent / "bin" / "git-batch"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m git_batch "$@"\n')
    program.chmod(0o755)
    typed = line.split(" ")
    script = f"""
    . {shlex.quote(str(code))}
    PATH={shlex.quote(str(program.parent))}:$PATH
    COMP_WORDS=({" ".join(map(shlex.quote, typed))}) COMP_CWORD={len(typed) - 1} COMPREPLY=()
    {through}
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert BASH is not None
    done = subprocess.run([BASH, "--norc", "-c", script], cwd=top, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("shell", "found"),
    [
        ("bash", ["plain,start", "plain,status", "plain,stop"]),
        ("zsh", ["start", "status", "stop"]),
        ("fish", ["plain,start", "plain,status", "plain,stop"]),
    ],
)
def test_what_went_wrong_the_question_of_a_shell_was_answered_with_the_usage(
    tmp_path: Path, shell: str, found: list[str]
) -> None:
    said = asked(tmp_path, shell, "git-batch st")
    assert found == (said[1::3] if shell == "zsh" else [line.split("\t")[0] for line in said])


@pytest.mark.parametrize("line", ["git-batch nothing st", "git-batch show x y z", "git-batch -x "])
def test_what_can_not_be_completed_prints_no_error(tmp_path: Path, line: str) -> None:
    asked(tmp_path, "bash", line)


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize("outside", [True, False])
def test_bash_completes_commands_and_options(tmp_path: Path, repo: Path, outside: bool) -> None:
    top = tmp_path / "elsewhere" if outside else repo
    top.mkdir(exist_ok=True)
    assert replies(top, "git-batch st") == ["start", "status", "stop"]
    assert replies(top, "git-batch ") == list(COMMANDS)
    assert replies(top, "git-batch start --max") == ["--max-tasks"]
    assert replies(top, "git-batch report --format mark") == ["markdown"]


WITH_GIT = """
git_main() { local words=("${COMP_WORDS[@]}") cword=$COMP_CWORD __git_cmd_idx=%d; _git_batch; }
git_main
"""
"""What git's completion does once it has found the subcommand: bash's words are as they were."""


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(("line", "at"), [("git batch", 1), ("git -C . batch", 3)])
def test_bash_completes_git_batch_for_the_completion_of_git(
    tmp_path: Path, line: str, at: int
) -> None:
    through = WITH_GIT % at
    assert replies(tmp_path, f"{line} st", through=through) == ["start", "status", "stop"]
    assert replies(tmp_path, f"{line} start --max", through=through) == ["--max-tasks"]


GITS_OWN = Path("/usr/share/bash-completion/completions/git")


@pytest.mark.skipif(BASH is None or not GITS_OWN.exists(), reason="needs git's completion")
def test_bash_completes_git_batch_with_the_completion_that_git_ships(tmp_path: Path) -> None:
    through = f". {GITS_OWN}; __git_wrap__git_main git batch x 2>/dev/null"
    assert replies(tmp_path, "git batch st", through=through) == ["start", "status", "stop"]
    found = replies(tmp_path, "git -C . batch start --max", through=through)
    assert found == ["--max-tasks"]


def test_zsh_completes_git_batch_for_the_completion_of_git(tmp_path: Path) -> None:
    """Tried by hand with zsh 5.9, whose `_git` calls the function that is named so."""
    assert "\n_git-batch() {" in here(tmp_path, "completion", "zsh").out
