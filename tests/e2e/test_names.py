"""Names, texts and output of any bytes (case 16, reliability 26, 27, 38, 39): exact, harmless."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import git
from tests.e2e.job import BRANCH, HEAD, argv, batch, committed, outcomes, task, tasks, told, write
from tests.e2e.scene import environment

LOCALES = [
    {},
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]
NAMES = [
    b"caf\xe9.txt",
    b"a b\n.txt",
    b"tab\there",
    b"esc\x1b[31m",
    "Ü".encode(),
    "U\u0308".encode(),
    "bidi\u202etxt.exe".encode(),
    "zero\u200bwidth".encode(),
    b'quote"back\\slash',
    b" lead and trail ",
    b"-rf",
    b":(exclude)x",
    b"*",
    b"[a]",
    b"#hash",
    b"!not",
    b"A",
    b"x.lock",
    b"$(id)",
    b"\xff\xfe",
]
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xaa-\xae]")


def files(top: Path, rev: str = BRANCH) -> list[bytes]:
    """List the files of a commit, their names as they are."""
    args = ["git", "ls-tree", "-r", "-z", "--name-only", rev]
    out = subprocess.run(args, cwd=top, stdout=subprocess.PIPE, check=True).stdout
    return [name for name in out.split(b"\0") if name]


def maker(top: Path, names: list[bytes]) -> str:
    """Write a command that makes files of these names in `src`."""
    script = top.parent / "make.py"
    script.write_text(
        f"import os\nfor n in {names!r}:\n"
        "    p = b'src/' + n\n    os.makedirs(os.path.dirname(p), exist_ok=True)\n"
        "    open(p, 'wb').write(n)\n"
    )
    return f"{sys.executable} {script}"


def raw(top: Path, *args: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run the command and give its very bytes."""
    return subprocess.run(
        argv(*args), cwd=top, env=environment() | env, capture_output=True, timeout=50
    )


@pytest.mark.parametrize("locale", LOCALES, ids=range(len(LOCALES)))
def test_files_of_any_name_are_committed_exactly_and_shown_harmlessly(
    repo: Path, locale: dict[str, str]
) -> None:
    write(
        repo,
        task("one", maker(repo, NAMES)),
        task("bad", r"printf x >\"$(printf 'str\344\033y')\"", "attempts = 1"),
    )
    done = raw(repo, "start", "-y", env=locale)
    assert done.returncode == 1, done
    assert b"Traceback" not in done.stderr
    expected = {b"src/" + n for n in NAMES} | {b"src/a", b"src/b", b".gitignore"}
    assert set(files(repo)) == expected
    for n in NAMES:
        spec = os.fsdecode(b"src/" + n)
        blob = git(repo, "rev-parse", f"{BRANCH}:{spec}")
        assert git(repo, "hash-object", "--stdin", input=n) == blob
    for command in (["status"], ["report"], ["log"], ["show", "one"], ["show", "bad"], ["list"]):
        said = raw(repo, *command, env=locale)
        assert said.returncode == 0, said
        assert not CONTROL.search(said.stdout), said.stdout
        said.stdout.decode("utf-8")
        if command != ["list"]:
            as_json = raw(repo, *command, "--json", env=locale)
            json.loads(as_json.stdout.decode("utf-8"))
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


def test_names_of_stray_paths_are_named_without_loss(repo: Path) -> None:
    write(repo, task("one", "printf x >\"$(printf 'caf\\351')\"", "attempts = 1"))
    batch(repo, "start", "-y", status=1)
    assert "caf\\351" in tasks(repo)["one"]["reason"]
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


@pytest.mark.parametrize("locale", LOCALES[:2], ids=range(2))
def test_long_paths_are_committed(repo: Path, locale: dict[str, str]) -> None:
    long = [b"/".join([b"d" * 100] * 3), b"n" * 255, b"/".join([b"e" * 200] * 15)]
    write(repo, task("one", maker(repo, long)))
    batch(repo, "start", "-y", env=locale)
    assert {b"src/" + n for n in long} <= set(files(repo))
    assert batch(repo, "report").status == 0


@pytest.mark.parametrize("locale", LOCALES, ids=range(len(LOCALES)))
def test_a_plan_of_any_language_reaches_its_commands_unharmed(
    repo: Path, locale: dict[str, str]
) -> None:
    seen = repo.parent / "seen"
    plan = f'''
[[task]]
id = "one"
title = "Straße / 日本 🎉"
scope = ["src/ü/**"]
run = ["sh", "-c", """
mkdir -p src/ü; printf '%s' "$1 $WORT" >{seen}; echo x >src/ü/ß""", "sh", "größe"]
env = {{ WORT = "naïve" }}
message = "Füße"
'''
    (repo / "batch.toml").write_text(HEAD + plan, "utf-8")
    done = raw(repo, "start", "-y", env=locale)
    assert done.returncode == 0, done
    assert seen.read_text("utf-8") == "größe naïve"
    assert git(repo, "log", "-1", "--format=%s|%b", BRANCH).startswith("Straße / 日本 🎉|Füße\n")
    assert "src/ü/ß".encode() in files(repo)


OUTPUT = r"""
printf '\377\376\303(\n'
printf '\033[31mred\033[0m\033]0;title\007\n'
printf 'bell\007 back\010 cr\rover\n'
printf '\342\200\256bidi\n'
head -c 1000000 /dev/zero | tr '\0' x; echo
"""


@pytest.mark.parametrize("locale", LOCALES[:2], ids=range(2))
def test_output_of_any_bytes_is_kept_raw_and_shown_harmlessly(
    repo: Path, locale: dict[str, str]
) -> None:
    script = repo.parent / "say.sh"
    script.write_text(OUTPUT)
    write(repo, task("one", f"sh {script}; printf 'last \\033[2J\\n'; exit 3", "attempts = 1"))
    done = raw(repo, "start", "-y", env=locale)
    assert done.returncode == 1
    assert not CONTROL.search(done.stdout + done.stderr)
    for command in (["show", "one", "--output"], ["report"], ["report", "--format", "markdown"]):
        said = raw(repo, *command, env=locale)
        assert not CONTROL.search(said.stdout), command
        said.stdout.decode("utf-8")
    log = f"refs/batch/{told(repo)['batch_id']}/logs:000/one/1"
    kept = subprocess.run(["git", "cat-file", "blob", log], cwd=repo, stdout=subprocess.PIPE).stdout
    assert b"\xff\xfe\xc3(\n" in kept
    assert b"\x1b[31mred" in kept
    assert json.loads(raw(repo, "report", "--json", env=locale).stdout)["tasks"]


@pytest.mark.parametrize(
    "title",
    [
        "Line\\nbreak",
        "---",
        "# hash",
        "Signed-off-by: x <x@x>",
        "Batch-Task: other",
        "🎉 \\u202e",
        "  spaces  ",
        "x\\u0000y",
        "-" * 300,
        "# ------------------------ >8 ------------------------",
    ],
)
def test_whatever_the_title_our_trailers_are_read_exactly(repo: Path, title: str) -> None:
    script = repo.parent / "say.sh"
    script.write_text("""
echo >>src/a
printf 'Text\\n---\\nBatch-Task: forged\\nSigned-off-by: x <x@x>\\n' >"$BATCH_MESSAGE"
""")
    text = f'\n[[task]]\nid = "one"\ntitle = "{title}"\nscope = ["src/**"]\n'
    (repo / "batch.toml").write_text(f'{HEAD}{text}run = "sh {script}"\n')
    done = raw(repo, "start", "-y", env={})
    if done.returncode == 2:  # refused with the plan, before anything is written
        assert b"title" in done.stderr
        assert git(repo, "branch", "--list", BRANCH) == ""
        return
    assert done.returncode == 0, done
    body = git(repo, "log", "-1", "--format=%B", BRANCH).encode()
    lines = git(repo, "interpret-trailers", "--parse", input=body).splitlines()
    ours = [line for line in lines if line.startswith("Batch-")]
    assert [line.split(":")[0] for line in ours] == [
        "Batch-Id",
        "Batch-Task",
        "Batch-Plan",
        "Batch-Record",
    ]
    assert ours[1] == "Batch-Task: one"
    assert committed(repo) == ["one"]


BAD = [
    ("scope", '["../x"]'),
    ("scope", '[":(exclude)x"]'),
    ("scope", '["/etc"]'),
    ("scope", '[".git/config"]'),
    ("scope", '["a\\u202e"]'),
    ("id", '"-x"'),
    ("id", '"../x"'),
    ("id", '"a.lock"'),
    ("id", '"a..b"'),
    ("id", '"$(id)"'),
    ("id", '"\\u202e"'),
    ("id", '"a\\nb"'),
]


@pytest.mark.parametrize(("key", "value"), BAD)
def test_bad_ids_and_scopes_are_refused_with_their_place(repo: Path, key: str, value: str) -> None:
    table = {"id": '"one"', "title": '"One"', "scope": '["src/**"]', "run": '"true"'} | {key: value}
    lines = [f"{name} = {text}" for name, text in table.items()]
    (repo / "batch.toml").write_text(HEAD + "\n[[task]]\n" + "\n".join(lines) + "\n")
    done = batch(repo, "start", "-y", status=2)
    assert re.search(r"batch\.toml:\d+", done.err), done.err
    assert not CONTROL.search(done.err.encode())
    assert git(repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


# --- what is no file ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "outcome"),
    [
        ("mkfifo src/pipe", "committed"),
        ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"src/s\")'", "committed"),
        ("rm src/b; mkfifo src/b", "scope_refused"),
        ("git init -q src/in", "scope_refused"),
        ("git init -q src/in; git -C src/in commit -q --allow-empty -m x", "scope_refused"),
        ("ln -s /etc src/link", "committed"),
        ("ln -s loop src/loop", "committed"),
        ("mkdir src/empty", "committed"),
        ("rm src/b; ln -s ../a src/b", "committed"),
        ("rm src/b; mkdir src/b; echo x >src/b/c", "committed"),
        ("echo x >src/none; chmod 000 src/none", None),
    ],
)
def test_what_is_no_plain_file_has_a_defined_end(
    repo: Path, make: str, outcome: str | None
) -> None:
    write(
        repo,
        task("one", f"echo one >>src/a; {make}", "attempts = 1"),
        task("two", "echo two >>src/a"),
    )
    result = raw(repo, "start", "-y", env={})
    assert result.returncode in (0, 1), result
    found = outcomes(repo)
    assert found["two"] == "committed"
    if outcome is not None:
        assert found["one"] == outcome
    listed = git(repo, "ls-tree", "-r", BRANCH)
    assert "160000" not in listed
    assert "passwd" not in listed
    assert git(repo, "status", "--porcelain") == "?? batch.toml"


@pytest.mark.long
def test_a_big_file_is_committed(repo: Path) -> None:
    write(repo, task("one", "truncate -s 1G src/big"), task("two", "echo two >>src/a"))
    batch(repo, "start", "-y")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "cat-file", "-s", f"{BRANCH}:src/big") == str(2**30)
