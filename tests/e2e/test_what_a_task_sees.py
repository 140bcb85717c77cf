"""product.md, "What a task's command sees": each variable and file, and what doesn't reach it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, batch, committed, outcomes, task, tasks, told, write


def seen(path: Path) -> dict[str, str]:
    """Read an environment that was written by `env -0`."""
    pairs = (entry.split("=", 1) for entry in path.read_text().split("\0") if "=" in entry)
    return dict(pairs)


AGENT = """
[agent.robot]
run = ["sh", "-c", 'env -0 >"$OUT/run"; cat >"$OUT/stdin"; echo {model} {kind} >src/{pkg}']
stdin = "prompt"
model = "small"
kind = "careful"

[[task]]
id = "one-{pkg}"
matrix = { pkg = ["net"] }
title = "Change {pkg}"
scope = ["src/{pkg}", "src/more/**"]
agent = "robot"
prompt = "Change {pkg}, please."
env = { MODE = "strict" }
check = 'env -0 >"$OUT/check"'
"""


def test_every_variable_reaches_command_and_check(repo: Path, tmp_path: Path) -> None:
    write(repo, AGENT)
    batch(repo, "start", "-y", env={"OUT": str(tmp_path), "MINE": "yes"})
    said = told(repo)
    for name in ("run", "check"):
        env = seen(tmp_path / name)
        expected = {
            "BATCH_ID": said["batch_id"],
            "BATCH_TASK": "one-net",
            "BATCH_ATTEMPT": "1",
            "BATCH_SLUG": "demo",
            "BATCH_ROOT": os.path.realpath(repo),
            "BATCH_SCOPE": "src/net\nsrc/more/**",
            "BATCH_VAR_PKG": "net",
            "MODE": "strict",
            "MINE": "yes",
        }
        assert {key: env.get(key) for key in expected} == expected
        files = {env[f"BATCH_{key}"] for key in ("PROMPT", "MESSAGE", "USAGE", "BLOCKED")}
        assert len(files) == 4
        # An agent's sandbox may forbid the git directory, and none of them may become a stray.
        assert not any(os.path.realpath(file).startswith(str(repo)) for file in files)
        assert "BATCH_FEEDBACK" not in env, "there is nothing to say at the first attempt"


def test_a_prompt_is_on_standard_input_with_the_scope_in_words(repo: Path, tmp_path: Path) -> None:
    write(repo, AGENT)
    batch(repo, "start", "-y", env={"OUT": str(tmp_path)})
    prompt = (tmp_path / "stdin").read_text()
    assert prompt.startswith("Change net, please.")
    assert "src/net" in prompt
    assert git(repo, "show", f"{BRANCH}:src/net") == "small careful"


def test_without_a_prompt_standard_input_is_empty(repo: Path) -> None:
    write(repo, task("a", "cat >src/said; echo end >>src/said"))
    batch(repo, "start", "-y", input="what a person typed\n")
    assert git(repo, "show", f"{BRANCH}:src/said") == "end"


def test_an_intent_file_is_the_prompt(repo: Path) -> None:
    (repo / "prompts").mkdir()
    (repo / "prompts/a.md").write_text("From a file, about {id}.\n")
    write(
        repo,
        '[agent.cat]\nrun = ["cp", "{prompt_file}", "src/said"]\n',
        '[[task]]\nid = "a"\ntitle = "A"\nscope = ["src/**"]\nagent = "cat"\n',
        'intent = "prompts/a.md"\n',
    )
    batch(repo, "start", "-y")
    assert git(repo, "show", f"{BRANCH}:src/said").startswith("From a file, about a.")
    assert git(repo, "status", "--porcelain", "-uall") == "?? batch.toml\n?? prompts/a.md"


def test_a_matrix_makes_a_task_of_each_combination(repo: Path) -> None:
    write(
        repo,
        task(
            "{x}-{y}",
            "echo $BATCH_VAR_X $BATCH_VAR_Y >src/$BATCH_TASK",
            'matrix = { x = ["a", "b"], y = ["1", "2"] }',
            'scope = ["src/{x}-{y}"]',
        ),
        task("last", "cat src/*-* >src/all", 'blocked_by = ["a-*", "b-2"]'),
    )
    batch(repo, "start", "-y")
    assert committed(repo) == ["a-1", "a-2", "b-1", "b-2", "last"]
    assert git(repo, "show", f"{BRANCH}:src/all") == "a 1\na 2\nb 1\nb 2"
    assert git(repo, "diff", "--name-only", f"{BRANCH}~2", f"{BRANCH}~1") == "src/b-2"


def test_the_second_attempt_has_its_number_and_what_went_wrong(repo: Path, tmp_path: Path) -> None:
    run = 'echo x >>src/a; env -0 >"$OUT/$BATCH_ATTEMPT"; cp "$BATCH_FEEDBACK" "$OUT/words"; true'
    write(repo, task("a", run, 'check = "echo it is broken; test $BATCH_ATTEMPT = 2"'))
    batch(repo, "start", "-y", env={"OUT": str(tmp_path)})
    assert seen(tmp_path / "2")["BATCH_ATTEMPT"] == "2"
    assert "it is broken" in (tmp_path / "words").read_text()


def test_feedback_is_part_of_an_agents_prompt(repo: Path) -> None:
    write(
        repo,
        '[agent.a]\nrun = ["sh", "-c", "cat >src/said"]\nstdin = "prompt"\n',
        '[[task]]\nid = "a"\ntitle = "A"\nscope = ["src/**"]\nagent = "a"\nprompt = "Do it."\n',
        'check = "echo it is broken; test $BATCH_ATTEMPT = 2"\n',
    )
    batch(repo, "start", "-y")
    said = git(repo, "show", f"{BRANCH}:src/said")
    assert said.startswith("Do it.")
    assert "it is broken" in said


def test_a_persons_words_are_feedback(repo: Path) -> None:
    write(repo, task("a", 'cp "$BATCH_FEEDBACK" src/words || exit 125'))
    batch(repo, "start", "-y", status=1)
    batch(repo, "retry", "a", "-m", "use the second one")
    batch(repo, "resume")
    assert "use the second one" in git(repo, "show", f"{BRANCH}:src/words")


def test_the_message_file_becomes_the_commits_body(repo: Path) -> None:
    run = 'echo x >src/x; printf "Because.\\n\\nBatch-Task: forged\\n" >"$BATCH_MESSAGE"'
    write(repo, task("a", run, 'message = "What the plan says."'))
    batch(repo, "start", "-y")
    assert committed(repo) == ["a"]
    body = git(repo, "log", "-1", "--format=%b", BRANCH)
    assert body.startswith("Because.\n")
    assert "What the plan says." not in body


def test_usage_is_summed_and_unknown_stays_unknown(repo: Path) -> None:
    write(
        repo,
        task(
            "a",
            """echo x >>src/x; echo '{"usd": 1.25, "input_tokens": 10}' >"$BATCH_USAGE" """,
            'check = "test $BATCH_ATTEMPT = 2"',
        ),
        task("b", "echo y >src/y"),
    )
    batch(repo, "start", "-y")
    assert tasks(repo)["a"]["usage"] == {
        "usd": 2.5,
        "input_tokens": 20,
        "output_tokens": None,
    }
    assert tasks(repo)["b"]["usage"] is None
    assert "2.50 USD" in batch(repo, "report").out


UNREADABLE = {
    "no json": "it is no JSON: Expecting value",
    "[1]": "it is no JSON object",
    '{"usd": -1}': "'usd' is -1",
    '{"usd": NaN}': "'usd' is NaN",
    '{"usd": "1"}': "'usd' is \"1\"",
    '{"usd": true}': "'usd' is true",
    '{"input_tokens": 1.5}': "'input_tokens' is 1.5",
    '{"cost": 1}': "it has none of 'usd', 'input_tokens' and 'output_tokens'",
    "[" * 9999: "it is nested too deep",
}


@pytest.mark.parametrize("written", UNREADABLE)
def test_what_went_wrong_usage_that_was_no_usage_was_unknown_without_a_word(
    repo: Path, written: str
) -> None:
    run = f'printf %s {shlex.quote(written)} >"$BATCH_USAGE"; echo x >>src/x$BATCH_TASK'
    write(repo, task("a", run, 'check = "test $BATCH_ATTEMPT = 2"'), task("b", run))
    done = batch(repo, "start", "-y")
    why = UNREADABLE[written]
    assert tasks(repo)["a"]["usage"] is tasks(repo)["b"]["usage"] is None
    said = [line for line in done.err.splitlines() if "$BATCH_USAGE" in line]
    assert len(said) == 1
    assert f"what 'a' wrote to $BATCH_USAGE can't be read: {why}" in said[0]
    report = " ".join(batch(repo, "report").out.split())
    assert report.count("$BATCH_USAGE") == 1
    assert f"not read: what 'b' wrote to $BATCH_USAGE in attempt 1: {why}" in report
    assert "; of 2 other attempts likewise" in report
    assert f"can't be read: {why}" in batch(repo, "show", "a").out


@pytest.mark.parametrize("written", ["", " \n", "{}", '{"usd": null}'])
def test_usage_that_was_not_said_is_unknown(repo: Path, written: str) -> None:
    run = f'echo x >src/x; printf %s {shlex.quote(written)} >"$BATCH_USAGE"'
    write(repo, task("a", run))
    assert "BATCH_USAGE" not in batch(repo, "start", "-y").err
    assert tasks(repo)["a"]["usage"] is None
    assert "BATCH_USAGE" not in batch(repo, "report").out


def test_what_can_be_read_of_usage_counts_and_the_rest_is_named(repo: Path) -> None:
    says = """printf '{"usd": 1.5, "input_tokens": -1}' >"$BATCH_USAGE"; echo x >src/x"""
    links = 'ln -s /dev/null "$BATCH_USAGE"; echo y >src/y'
    write(repo, task("a", says), task("b", links))
    done = batch(repo, "start", "-y")
    assert tasks(repo)["a"]["usage"] == {"usd": 1.5, "input_tokens": None, "output_tokens": None}
    assert "wrote to $BATCH_USAGE can't be read: 'input_tokens' is -1;" in done.err
    assert "wrote to $BATCH_USAGE can't be read: it is no plain file;" in done.err


@pytest.mark.parametrize("how", ['echo ask >"$BATCH_BLOCKED"', "echo ask; exit 125"])
def test_blocked_parks_at_once_with_the_tasks_own_words(repo: Path, how: str) -> None:
    write(repo, task("a", how, "attempts = 5"))
    done = batch(repo, "start", "-y", status=1)
    found = tasks(repo)["a"]
    assert (found["outcome"], found["reason"], found["attempts"]) == ("blocked", "ask", 1)
    assert "ask" in done.err
    assert "git batch retry a -m 'ANSWER'" in batch(repo, "report").out


def test_nothing_of_the_callers_git_reaches_a_task(repo: Path, tmp_path: Path) -> None:
    write(repo, task("a", 'env -0 >"$OUT/env"; echo x >src/x'))
    foreign = {
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_NAMESPACE": "else",
        "GIT_PREFIX": "src/",
        "GIT_CONFIG_PARAMETERS": "'user.name=Else'",
    }
    batch(repo, "start", "-y", env={"OUT": str(tmp_path), **foreign})
    assert foreign.keys() & seen(tmp_path / "env").keys() == set()


def test_nothing_can_ask_on_a_terminal_or_open_an_editor(repo: Path) -> None:
    asks = "git commit --allow-empty; git rebase -i HEAD"
    run = f"{asks}; (exec </dev/tty) 2>/dev/null || echo no >src/tty"
    write(repo, task("a", run, 'timeout = "20s"'))
    batch(repo, "start", "-y", env={"GIT_EDITOR": "sleep 60", "EDITOR": "sleep 60"}, status=0)
    assert git(repo, "show", f"{BRANCH}:src/tty") == "no"


def test_a_task_runs_at_the_top_wherever_the_person_is(repo: Path) -> None:
    write(repo, task("a", "pwd -P >src/where; ls src/a >>src/where"))
    batch(repo / "src", "start", "-y")
    text = git(repo, "show", f"{BRANCH}:src/where")
    assert text == f"{os.path.realpath(repo)}\nsrc/a"


def test_what_a_command_leaves_running_is_ended_and_named(repo: Path) -> None:
    write(repo, task("a", "echo x >src/x; sleep 300 >/dev/null 2>&1 & exit 0"))
    done = batch(repo, "start", "-y")
    assert "ended what" in done.err
    assert "sleep 300" in done.err
    assert outcomes(repo) == {"a": "committed"}
