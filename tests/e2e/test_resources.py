"""A full disk, a read-only file system, a flood of output (reliability 11 to 14)."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from git_batch.errors import PreconditionError
from git_batch.repo import durability
from git_batch.run.output import Capture
from tests.conftest import git
from tests.e2e.job import BRANCH, argv, batch, committed, everything, outcomes, task, write
from tests.e2e.near import near, said
from tests.e2e.scene import environment

MOUNT = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-euc"]


def can_mount() -> bool:
    """Say whether a file system can be mounted in a name space of our own."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    probe = subprocess.run([*MOUNT, "mount -t tmpfs none /mnt"], capture_output=True)
    return probe.returncode == 0


needs_mount = pytest.mark.skipif(not can_mount(), reason="needs unprivileged name spaces")


def inside(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script where it may mount; `batch` in it is the command."""
    command = " ".join(f"'{word}'" for word in argv())
    text = f'batch() {{ {command} "$@"; }}\n{script}'
    return subprocess.run(
        [*MOUNT, text, "sh", *args], env=environment(), capture_output=True, text=True, timeout=55
    )


# --- a full disk ----------------------------------------------------------------------------------

FULL = """
mount -t tmpfs -o size=6m none "$1"
cp -a "$2" "$1/repo"
cd "$1/repo"
echo "first $(batch start -y 2>&1; echo "exit $?")"
rm -f ../filler
git log --format='there %H' main..batch/demo
batch status --json >/dev/null
echo "second $(batch resume --yes --kill-orphans 2>&1; echo "exit $?")"
git log --reverse --format='done %s' main..batch/demo
git fsck --strict --no-dangling
git status --porcelain
"""


def fill(left: int) -> str:
    """Write a command that leaves so many KiB of the disk."""
    return (
        "test -e ../filler.done || { touch ../filler.done; "
        "free=$(df --output=avail -k . | tail -n1); "
        f"head -c $(( (free - {left}) * 1024 )) /dev/zero >../filler; }}"
    )


def told_as_committed(said: str) -> set[str]:
    """Give the commits that the command said are made."""
    return set(re.findall(r": committed ([0-9a-f]{7,40})", said))


LONG = [pytest.param(left, marks=pytest.mark.long) for left in (4, 12, 20, 24, 32, 40, 64, 96)]


@needs_mount
@pytest.mark.parametrize("left", [0, 8, 48, *LONG])
@pytest.mark.parametrize("where", ["run", "check"])
def test_on_a_full_disk_nothing_is_told_that_is_not_there_and_resume_finishes(
    repo: Path, left: int, where: str
) -> None:
    place = repo.parent / "mnt"
    place.mkdir()
    filler = fill(left)
    run = f"{filler}; seq 3000 >src/two" if where == "run" else "seq 3000 >src/two"
    check = [f"check = '''{filler}'''"] if where == "check" else []
    write(
        repo,
        task("one", "echo one >>src/a"),
        task("two", run, *check, "attempts = 4"),
        task("three", "echo three >>src/b"),
    )
    done = inside(FULL, str(place), str(repo))
    first, _, second = done.stdout.partition("second ")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "Traceback" not in done.stdout
    assert "a bug in git-batch" not in done.stdout
    there = re.findall(r"^there (\w+)", first, re.MULTILINE)
    for told in told_as_committed(first):
        assert any(oid.startswith(told) for oid in there), first
    if "exit 0" not in first:
        assert re.search(r"^error: |needs a person|needs human", first, re.MULTILINE), first
    # Not the tasks' fault: once there is room they all come to their end.
    if "exit 1\n" in first and "can't go on" in first:
        assert "git batch resume" in first
    ends = re.findall(r"^done (.*)", second, re.MULTILINE)
    assert ends == ["Do one", "Do two", "Do three"], (first, second)
    assert second.rstrip().endswith("?? batch.toml")


INODES = """
mount -t tmpfs -o size=32m none "$1"
cp -a "$2" "$1/repo"
cd "$1/repo"
used=$(df --output=iused . | tail -n1)
mount -o "remount,nr_inodes=$((used + $3))" "$1"
echo "first $(batch start -y 2>&1; echo "exit $?")"
git log --format='there %H' --all
mount -o remount,nr_inodes=20000 "$1"
git for-each-ref --format='%(refname)' refs/notes/batch | grep -q . && do=resume || do=start
echo "second $(batch $do --yes 2>&1; echo "exit $?")"
git log --reverse --format='done %s' main..batch/demo
git fsck --strict --no-dangling
git status --porcelain
"""


def without_inodes(repo: Path, left: int) -> bool:
    """Run with so many files that can still be made; tell whether they were enough."""
    place = repo.parent / f"mnt{left}"
    place.mkdir()
    done = inside(INODES, str(place), str(repo), str(left))
    first, _, second = done.stdout.partition("second ")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert not re.search("Traceback|a bug in git-batch", done.stdout)
    there = re.findall(r"^there (\w+)", first, re.MULTILINE)
    for told in told_as_committed(first):
        assert any(oid.startswith(told) for oid in there), first
    ends = re.findall(r"^done (.*)", second, re.MULTILINE)
    assert ends == ["Do one", "Do two", "Do three"], (first, second)
    assert second.rstrip().endswith("?? batch.toml")
    enough = "exit 0\n" in first
    assert enough or "No space left on device" in first, first
    return enough


@needs_mount
@pytest.mark.parametrize("every", [45, pytest.param(1, marks=pytest.mark.long)])
def test_on_a_disk_without_inodes_nothing_is_told_that_is_not_there_and_resume_finishes(
    repo: Path, every: int
) -> None:
    """There is room for bytes, but not for another file."""
    write(
        repo,
        task("one", "echo one >>src/a"),
        task("two", "echo two >>src/b", "check = 'test $BATCH_ATTEMPT -ge 2'", "attempts = 2"),
        task("three", "echo three >>src/a"),
    )
    left = every // 2
    while not without_inodes(repo, left):
        left += every
    assert left > 60


@needs_mount
def test_a_full_disk_is_refused_before_the_first_task(repo: Path) -> None:
    place = repo.parent / "mnt"
    place.mkdir()
    write(repo, task("one", "echo one >>src/a"))
    script = """
mount -t tmpfs -o size=2m none "$1"
cp -a "$2" "$1/repo"
cd "$1/repo"
head -c 1500000 /dev/zero >../filler
git for-each-ref >"$3/before"
batch start -y 2>&1 && exit 9 || echo "exit $?"
git for-each-ref >"$3/after"
cmp "$3/before" "$3/after"
"""
    (repo.parent / "seen").mkdir()
    done = inside(script, str(place), str(repo), str(repo.parent / "seen"))
    assert done.returncode == 0, done
    assert "exit 3" in done.stdout
    assert "No space left on device" in done.stdout


@needs_mount
@pytest.mark.parametrize("what", [".", ".git", ".git/objects", ".git/refs"])
def test_what_is_read_only_is_refused_before_the_first_task(repo: Path, what: str) -> None:
    write(repo, task("one", "echo one >>src/a"))
    before = everything(repo)
    script = """
mount --bind "$1/$2" "$1/$2"
mount -o remount,bind,ro "$1/$2"
cd "$1"
batch start -y 2>&1 && exit 9 || echo "exit $?"
"""
    done = inside(script, str(repo), what)
    assert done.returncode == 0, done
    assert "exit 3" in done.stdout
    assert "can't write to" in done.stdout
    assert "Read-only file system" in done.stdout
    assert everything(repo) == before


def test_a_directory_that_can_not_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match="can't write to"):
        durability.writable(str(tmp_path / "missing"))
    durability.writable(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_limit_on_the_size_of_files_stops_the_run_and_resume_finishes(repo: Path) -> None:
    # 1 MiB may be written, so the start goes well; the commit's own file is larger than that.
    source = repo.parent / "source"
    source.write_bytes(os.urandom(3 << 20))
    write(repo, task("one", "echo one >>src/a"), task("two", f"ln {source} src/big"))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))

    done = subprocess.run(
        argv("start", "-y"),
        cwd=repo,
        env=environment(),
        capture_output=True,
        text=True,
        preexec_fn=limited,
        timeout=50,
    )
    assert done.returncode == 1, done
    assert "error: can't go on" in done.stderr
    assert committed(repo) == ["one"]
    batch(repo, "resume")
    assert committed(repo) == ["one", "two"]
    assert git(repo, "cat-file", "-s", f"{BRANCH}:src/big") == str(3 << 20)


# --- output ---------------------------------------------------------------------------------------


def peak_of(top: Path, run: str) -> int:
    """Run a task and give the largest memory in KiB of the run and of all that it started."""
    write(top, task("one", f"{run}; echo one >>src/a"))
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=2)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *argv("start", "-y")],
        cwd=top,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def flood(repo: Path, template: Path, run: str) -> None:
    """See that memory stays flat and the log is bounded."""
    calm = repo.parent / "calm"
    shutil.copytree(template, calm, symlinks=True)
    usual = peak_of(calm, "true")
    assert peak_of(repo, run) < usual + 16 * 1024
    assert outcomes(repo) == {"one": "committed"}
    batch_id = git(repo, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/notes/batch")
    size = int(git(repo, "cat-file", "-s", f"refs/batch/{batch_id}/logs:000/one/1"))
    assert size < 2 << 20
    shown = batch(repo, "show", "one", "--output").out
    assert re.search(r"left out|cut|\.\.\.|…", shown)


@pytest.mark.parametrize("run", ["head -c 200M /dev/zero", "yes | head -c 200M"], ids=str)
def test_a_flood_of_output_neither_fills_memory_nor_the_log(
    repo: Path, template: Path, run: str
) -> None:
    flood(repo, template, run)


@pytest.mark.long
def test_two_gigabytes_of_output(repo: Path, template: Path) -> None:
    flood(repo, template, "head -c 2G /dev/zero")


def test_output_that_could_not_be_kept_is_told(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Capture):
        def __init__(self, path: Path, cap: int) -> None:
            super().__init__(path, cap)
            self._fd = os.open("/dev/full", os.O_RDWR)

    monkeypatch.setattr("git_batch.run.process.Capture", Full)
    write(repo, task("one", "echo much; echo x >src/one"))
    done = near(repo, "start", "--yes")
    assert "not all that 'echo much; echo x >src/one' printed is kept: No space left" in said(done)
    assert "[not all that it printed is kept: No space left on device]" in (
        near(repo, "show", "one", "--output").out
    )
