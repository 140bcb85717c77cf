"""What is shipped besides the code: dependencies, the sample project, and the demo's plan.

The plan is run here by a stand-in of a few lines, in plan order and without git-batch, so a failure
is the codemods' or the checks' own. That the real runner carries the plan out is what `make demo`
and the end-to-end tests are for.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

TOP = Path(__file__).resolve().parent.parent
DEMO = TOP / "fixtures" / "demo"
SAMPLE = TOP / "fixtures" / "sample"
NOT_COPIED = shutil.ignore_patterns("__pycache__")

Command = str | list[str]
Snapshot = dict[Path, bytes]


# --- dependencies -----------------------------------------------------------------------------


def pyproject() -> dict[str, Any]:
    return tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))


def direct_requirements() -> list[Requirement]:
    data = pyproject()
    project = data["project"]
    names = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    return [Requirement(name) for name in [*names, *data["build-system"]["requires"]]]


def pins() -> dict[str, Version]:
    found: dict[str, Version] = {}
    for line in (TOP / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, version = line.split("==")
        assert canonicalize_name(name) not in found
        found[canonicalize_name(name)] = Version(version)
    return found


@pytest.mark.parametrize("requirement", direct_requirements(), ids=lambda each: each.name)
class TestRequirement:
    def test_has_a_floor_and_a_reason_for_it(self, requirement: Requirement) -> None:
        assert [each.operator for each in requirement.specifier] == [">="]
        text = (TOP / "pyproject.toml").read_text(encoding="utf-8")
        spelled = re.escape(f'"{requirement.name}{requirement.specifier}"')
        assert re.search(rf"{spelled}[\],]*\s+# \w.{{9}}", text)

    def test_is_pinned_not_below_its_floor(self, requirement: Requirement) -> None:
        assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


def test_nothing_but_exact_pins() -> None:
    text = (TOP / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_wheel_takes_the_data_along() -> None:
    wheel = pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(wheel["sources"]) | {"git_batch"} == set(wheel["only-include"])
    for name in ("fixtures/demo", "fixtures/sample"):
        assert (TOP / name).is_dir()


# --- the demo ---------------------------------------------------------------------------------


@dataclass
class Task:
    """A task as the stand-in needs it: one of a matrix, its commands with their values."""

    id: str
    title: str
    run: Command
    checks: list[Command]
    blocked_by: list[str]


@dataclass
class Done:
    """What became of a task."""

    changed: bool = False
    failures: list[str] = field(default_factory=list)
    again_changed: bool = False


@dataclass
class Batch:
    """The scratch copy after all tasks, and what became of each."""

    repo: Path
    tasks: list[Task]
    done: dict[str, Done]


def plan_tasks() -> list[Task]:
    plan = tomllib.loads((DEMO / "batch.toml").read_text(encoding="utf-8"))
    tasks = []
    for entry in plan["task"]:
        matrix: dict[str, list[str]] = entry.get("matrix", {})
        for chosen in itertools.product(*matrix.values()):
            values = dict(zip(matrix, chosen, strict=True))
            checks = entry.get("check", plan["defaults"]["check"])
            tasks.append(
                Task(
                    id=filled(entry["id"], values),
                    title=filled(entry["title"], values),
                    run=filled_command(entry["run"], values),
                    checks=[filled_command(check, values) for check in checks],
                    blocked_by=entry.get("blocked_by", []),
                )
            )
    return tasks


def filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def filled_command(command: Command, values: dict[str, str]) -> Command:
    return command if isinstance(command, str) else [filled(word, values) for word in command]


def call(
    command: Command, folder: Path, extra: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as a task would be; `python3` is the Python of these tests."""
    base = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BATCH_", "GIT_", "PYTHON", "COV_"))
    }
    base["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), base["PATH"]])
    # The task `release` asks git what was done; neither the person's settings nor a repository
    # around the temporary folder may answer.
    base |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    return subprocess.run(
        argv,
        cwd=folder,
        env=base | (extra or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def snapshot(folder: Path) -> Snapshot:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {"__pycache__", ".git"} & set(path.parts)
    }


def put_back(folder: Path, before: Snapshot) -> None:
    for name in snapshot(folder).keys() - before.keys():
        (folder / name).unlink()
    for name, content in before.items():
        (folder / name).write_bytes(content)


def git(repo: Path, *words: str) -> None:
    who = ["-c", "user.name=Demo", "-c", "user.email=demo@example.org"]
    assert call(["git", *who, *words], repo).returncode == 0


def scratch(folder: Path) -> Path:
    """Lay out the repository as fixtures/demo/run does."""
    repo = folder / "inventory"
    shutil.copytree(SAMPLE, repo, ignore=NOT_COPIED)
    shutil.copytree(DEMO / "codemods", repo / "tools" / "codemods", ignore=NOT_COPIED)
    shutil.copy(DEMO / "leftovers.py", repo / "tools")
    shutil.copy(DEMO / "batch.toml", repo)
    git(repo, "init", "--quiet")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Add everything")
    return repo


def first_failure(checks: list[Command], repo: Path) -> str | None:
    for check in checks:
        result = call(check, repo)
        if result.returncode != 0:
            return f"{check}:\n{result.stdout}{result.stderr}"
    return None


def carry_out(task: Task, repo: Path, feedback: Path) -> Done:
    """Run a task: twice at most, the second time with the failed check's output."""
    done = Done()
    before = snapshot(repo)
    extra = {"BATCH_ID": "modernise-test"}
    if task.id == "license":
        feedback.write_text("please use Apache-2.0", encoding="utf-8")
        extra["BATCH_FEEDBACK"] = str(feedback)
    for attempt in (1, 2):
        ran = call(task.run, repo, extra)
        failure = ran.stderr if ran.returncode else first_failure(task.checks, repo)
        if failure is None:
            break
        done.failures.append(failure)
        if attempt == 1:
            feedback.write_text(failure, encoding="utf-8")
            extra["BATCH_FEEDBACK"] = str(feedback)
            put_back(repo, before)
    after = snapshot(repo)
    done.changed = after != before
    call(task.run, repo, extra)
    done.again_changed = snapshot(repo) != after
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", task.title, "-m", "Batch-Id: modernise-test")
    return done


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    folder = tmp_path_factory.mktemp("demo")
    repo, tasks = scratch(folder), plan_tasks()
    feedback = folder / "feedback"
    return Batch(repo, tasks, {task.id: carry_out(task, repo, feedback) for task in tasks})


TASKS = plan_tasks()
EVERY_TASK = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)


def test_sample_passes_its_own_tests_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    shutil.copytree(SAMPLE, folder, ignore=NOT_COPIED)
    result = call("python3 -m unittest -q", folder)
    assert result.returncode == 0, result.stderr
    assert "Ran 31 tests" in result.stderr


def test_plan_is_big_enough_to_show_something() -> None:
    assert len({task.id for task in TASKS}) == len(TASKS) >= 7
    assert sum(bool(task.blocked_by) for task in TASKS) >= 5
    # `run` compares the number of commits with this one.
    assert f"\ntasks={len(TASKS)}\n" in (DEMO / "run").read_text(encoding="utf-8")


def test_demo_can_be_run() -> None:
    assert os.access(DEMO / "run", os.X_OK)
    assert call(["/bin/sh", "-n", str(DEMO / "run")], TOP).returncode == 0


@EVERY_TASK
class TestTask:
    def test_is_needed(self, task: Task, tmp_path: Path) -> None:
        """At the start its last check, which is its own, finds the old way."""
        repo = tmp_path / "inventory"
        shutil.copytree(SAMPLE, repo, ignore=NOT_COPIED)
        (repo / "tools").mkdir()
        shutil.copy(DEMO / "leftovers.py", repo / "tools")
        assert call(task.checks[-1], repo).returncode == 1

    def test_ends_with_every_check_passed(self, batch: Batch, task: Task) -> None:
        done = batch.done[task.id]
        # `alias` forgets the tests the first time, on purpose.
        assert len(done.failures) == (1 if task.id == "alias" else 0), done.failures
        assert done.changed

    def test_changes_nothing_the_second_time(self, batch: Batch, task: Task) -> None:
        assert not batch.done[task.id].again_changed


def test_later_tasks_undo_nothing(batch: Batch) -> None:
    # No set of the commands: they may be lists. Most tasks begin with the same two checks.
    commands: list[Command] = []
    for task in batch.tasks:
        commands += [check for check in task.checks if check not in commands]
    assert first_failure(commands, batch.repo) is None


def test_changelog_tells_what_was_done(batch: Batch) -> None:
    text = (batch.repo / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = text.split("\n## ")[1]
    told = [line[2:-1] for line in newest.splitlines() if line.startswith("* ")]
    assert told == [task.title for task in batch.tasks if task.id != "release"]


# --- the task that asks a person ----------------------------------------------------------------


@pytest.fixture
def one_module(tmp_path: Path) -> Path:
    (tmp_path / "module.py").write_text("#!/usr/bin/env python3\n1\n", encoding="utf-8")
    return tmp_path


def ask_for_licence(folder: Path, said: str | None) -> tuple[int, str, str]:
    blocked, feedback = folder / "blocked", folder / "feedback"
    extra = {"BATCH_BLOCKED": str(blocked), "BATCH_FEEDBACK": str(feedback)}
    if said is not None:
        feedback.write_text(said, encoding="utf-8")
    command = ["python3", str(DEMO / "codemods" / "headers.py"), "module.py"]
    status = call(command, folder, extra).returncode
    question = blocked.read_text(encoding="utf-8") if blocked.exists() else ""
    return status, question, (folder / "module.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("said", [None, "", "whatever you like", "Apache"])
def test_question_is_asked_without_an_answer(one_module: Path, said: str | None) -> None:
    status, question, text = ask_for_licence(one_module, said)
    assert status == 125
    assert "git batch retry license -m" in question
    assert text == "#!/usr/bin/env python3\n1\n"


def test_question_does_not_answer_itself(one_module: Path) -> None:
    """Feedback may quote the question that was asked before."""
    _, question, _ = ask_for_licence(one_module, None)
    assert ask_for_licence(one_module, question)[0] == 125


@pytest.mark.parametrize("said", ["MIT", "blocked: which licence?\nMIT, please.\n"])
def test_answer_is_taken(one_module: Path, said: str) -> None:
    status, question, text = ask_for_licence(one_module, said)
    assert (status, question) == (0, "")
    assert text == "#!/usr/bin/env python3\n# SPDX-License-Identifier: MIT\n1\n"


# --- what the sample doesn't contain ------------------------------------------------------------

SNIPPETS = [
    (
        "unions",
        "from typing import List, Optional, Union\n"
        'a: Optional[List["B"]]\nb: Union[int, List[Optional["B"]]]\nc: Union["B", List["B"]]\n',
        "from typing import List\n"
        'a: List["B"] | None\nb: int | List["B | None"]\nc: "B | List[B]"\n',
    ),
    ("unions", "from typing import Optional as O\na: O[int]\n", None),
    ("fstrings", "a = b'%s' % c\nd = '%(x)s' % e\nf = '%*d' % (g, h)\ni = '%s %s' % j\n", None),
    ("fstrings", 'a = "%s" % "\\n".join(b)\n', None),
    ("fstrings", "a = ('%s é'\n     '%d%%') % (b, c)\n", "a = (f'{b} é'\n     f'{c:d}%')\n"),
    ("fstrings", "a = '%d' % (\n    b,  # why\n)\n", None),
    ("fstrings", "f('%s{}' '%%{}' % a)\n", "f(f'{a}{{}}' '%{}')\n"),
    ("paths", "import os\na = os.path.join(b, c) + '.new'\nd = os.path.join(b, c).upper()\n", None),
    (
        "paths",
        "import os\nos.makedirs(os.path.join(a, b % c), 0o700, exist_ok=True)\n",
        "from pathlib import Path\n(Path(a) / (b % c)).mkdir(0o700, parents=True, exist_ok=True)\n",
    ),
    ("imports", "import b, a  # both\nimport c\nimport d  # why\nimport a\n", None),
    (
        "imports",
        "'''Text.'''\nimport sys, ast\nx = 1\nimport os\n",
        "'''Text.'''\nimport ast\nimport sys\nx = 1\nimport os\n",
    ),
]


@pytest.mark.parametrize(("codemod", "before", "after"), SNIPPETS)
def test_codemod(codemod: str, before: str, after: str | None, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(before, encoding="utf-8")
    result = call(["python3", str(DEMO / "codemods" / f"{codemod}.py"), "module.py"], tmp_path)
    assert result.returncode == 0, result.stderr
    # None: left alone, because a rewrite might not say the same.
    assert module.read_text(encoding="utf-8") == (before if after is None else after)
