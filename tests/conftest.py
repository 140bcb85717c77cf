"""A hermetic world for every test, and a small repository made in a millisecond."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2
import pytest
from hypothesis import settings
from pygit2.enums import ConfigLevel

from tests import tries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

settings.load_profile(tries.SAME)  # `make test-long` names the other one

# Before anybody imports them: the tests of the commands share them with those of the processes.
pytest.register_assert_rewrite(
    "tests.e2e.scene", "tests.e2e.job", "tests.hooks.pushing", "tests.hooks.hosts"
)

# A background job has signals ignored, and so would each process that a test starts to interrupt.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

CONFIG = """\
[user]
\tname = T
\temail = t@x
[init]
\tdefaultBranch = main
"""


def git(repo: Path | str, *args: str | bytes, input: bytes | None = None) -> str:
    """Run git as a person would; its standard output without the last line break."""
    result = subprocess.run(
        ["git", *args], cwd=repo, input=input, stdout=subprocess.PIPE, check=True
    )
    return os.fsdecode(result.stdout).removesuffix("\n")


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    limit = time.monotonic() + 40
    while not holds():
        assert time.monotonic() < limit, "it never came to that"
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Give the test its own HOME and git configuration, and nothing of the developer's."""
    folder = tmp_path_factory.mktemp("home")
    config = folder / ".gitconfig"
    config.write_text(CONFIG)
    for name in list(os.environ):
        if name.startswith(("GIT_", "BATCH_")):
            monkeypatch.delenv(name)
    for name in ("EMAIL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_EDITOR", "false")
    # libgit2 has looked at the environment already, when it was imported.
    search = pygit2.settings.search_path
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.PROGRAMDATA):
        search[level] = str(folder / "nothing")
    search[ConfigLevel.GLOBAL] = str(folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the common start of the acceptance cases, once."""
    top = tmp_path_factory.mktemp("template") / "repo"
    (top / "src").mkdir(parents=True)
    (top / "src/a").write_text("a\n")
    (top / "src/b").write_text("b\n")
    (top / ".gitignore").write_text("*.log\nbuild/\n")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ("-c", "user.name=T", "-c", "user.email=t@x", "-c", "init.defaultBranch=main")
    for args in (("init", "-q", "--template="), ("add", "-A"), ("commit", "-qm", "base")):
        subprocess.run(
            ["git", *who, *args],
            cwd=top,
            env=plain | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull},
            check=True,
        )
    (top / ".git/hooks").mkdir()
    (top / ".git/info").mkdir(exist_ok=True)
    return top


@pytest.fixture
def repo(template: Path, tmp_path: Path) -> Path:
    """Give a repository: `src/a`, `src/b` and `.gitignore` in one commit on `main`, clean."""
    top = tmp_path / "repo"
    shutil.copytree(template, top, symlinks=True)
    return top
