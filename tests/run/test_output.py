"""What a command prints, and how much of it is kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from git_batch.run.output import MARK_ROOM, Capture, digest, excerpt, mark, tail
from git_batch.run.process import Interrupt, Limits, run
from tests.run.supervised import ENV, MIB, Runner, linux

if TYPE_CHECKING:
    pass


# Its output


def test_output_is_interleaved(runner: Runner) -> None:
    runner("sh", "-c", "echo 1; echo 2 >&2; echo 3; printf 4 >&2")
    assert runner.output() == b"1\n2\n3\n4"


def test_log_is_private_and_new(runner: Runner) -> None:
    precious = runner.folder / "precious"
    precious.write_text("mine")
    runner.log.symlink_to(precious)
    runner.child("succeed")
    assert precious.read_text() == "mine"
    assert stat.S_IMODE(runner.log.lstat().st_mode) == 0o600
    assert runner.output() == b"done\n"


def test_silent_command_leaves_no_old_log(runner: Runner) -> None:
    runner.child("succeed")
    runner("true")
    assert not runner.log.exists()
    assert digest(runner.log)[0] == 0


def test_unwritable_log_is_told_and_no_more(runner: Runner) -> None:
    (runner.folder / "log").mkdir()
    with pytest.raises(OSError, match="log"):
        runner("true")
    (runner.folder / "log").rmdir()
    ended = run(
        ["sh", "-c", "echo lost; exit 3"],
        cwd=runner.folder,
        env=ENV,
        stdin=None,
        log=runner.folder / "gone" / "log",
        limits=Limits(),
        interrupt=Interrupt(),
    )
    assert (ended.status, ended.log_error) == (3, "No such file or directory")


@linux
def test_disk_full(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Capture):
        def __init__(self, _path: Path, cap: int) -> None:
            super().__init__(runner.folder / "other", cap)
            self._fd = os.open("/dev/full", os.O_RDWR)

    monkeypatch.setattr("git_batch.run.process.Capture", Full)
    ended = runner.child("flood.py", "2")
    assert (ended.status, ended.log_error) == (0, "No space left on device")


def memory(key: str) -> int:
    """Read VmRSS or VmHWM (the highest VmRSS) of this process, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{key}:")[2].split()[0]) * 1024


def cut(log: bytes) -> tuple[bytes, int, bytes]:
    """Take apart what was cut: beginning, number of bytes left out, end."""
    head, mark_, rest = log.partition(b"\n[git-batch: ")
    number, _, end = rest.partition(b" bytes left out]\n")
    assert mark_
    assert abs(len(head) - len(end)) <= 1
    return head, int(number), end


def flood(runner: Runner, *arguments: str, cap: int = MIB) -> None:
    largest = 0

    def look() -> None:
        nonlocal largest
        largest = max(largest, runner.log.stat().st_size)

    runner.on_slow = look
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM := VmRSS
    before = memory("VmHWM")
    ended = runner.child("flood.py", *arguments, log_cap=cap)
    assert memory("VmHWM") - before < 4 * MIB
    assert ended.status == 0
    assert 0 < largest <= 2 * cap + 65536
    log = runner.output()
    assert cap - MARK_ROOM <= len(log) <= cap
    head, left_out, end = cut(log)
    assert head.startswith(b"beginning xxx")
    assert end.endswith(b" end")
    assert len(head) + left_out + len(end) == int(arguments[0]) * MIB + len(b"beginning  end")


@linux
def test_flood(runner: Runner) -> None:
    flood(runner, "300")


@linux
def test_line_without_end(runner: Runner) -> None:
    flood(runner, "300", "one line")


@linux
@pytest.mark.long
def test_flood_of_two_gigabytes(runner: Runner) -> None:
    flood(runner, "2048", cap=Limits().log_cap)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 100_000])
@pytest.mark.parametrize("step", [1000, 65536])
def test_cut(tmp_path: Path, size: int, step: int) -> None:
    data = b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]
    with Capture(tmp_path / "log", 4096) as capture:
        for start in range(0, size, step):
            capture.feed(data[start : start + step])
    log = tail(tmp_path / "log", 10**6)
    if size <= 4096:
        assert log == data
        return
    head, left_out, end = cut(log)
    assert len(log) <= 4096
    assert data.startswith(head)
    assert data.endswith(end)
    assert len(head) + left_out + len(end) == size


def test_smallest_cap(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="4096"):
        Limits(log_cap=4095)
    with pytest.raises(ValueError, match="4096"):
        Capture(tmp_path / "log", 4095)


def test_reading_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert (tail(log, 5), excerpt(log, 5)) == (b"", b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest(log) == (0, empty)
    log.write_bytes(b"0123456789" * 100)
    assert (tail(log, 5), tail(log, 5000)) == (b"56789", log.read_bytes())
    assert digest(log)[0] == 1000
    assert excerpt(log, 1000) == log.read_bytes()
    short = excerpt(log, 164)
    assert short == b"0123456789" * 5 + mark(900) + b"0123456789" * 5
    assert all(len(excerpt(log, limit)) <= limit for limit in range(1000))


def test_what_lies_across_a_cut_is_seen_by_whoever_changes_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for before in range(0, 100, 7):
        log.write_bytes(b"a" * before + b"secret" + b"b" * 50_000 + b"secret" + b"c" * before)
        read = excerpt(log, 164, lambda data: data.replace(b"secret", b"[...]"))
        assert b"secre" not in read
        assert b"ecret" not in read
        assert len(read) <= 164
