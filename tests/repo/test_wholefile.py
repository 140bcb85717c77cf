"""Small files are read whole, whatever they pretend to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_batch.repo.wholefile import UNFOLLOWED, read, read_open


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 100_000])
def test_a_file_is_read_whole(tmp_path: Path, size: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(size))
    assert read(str(file)) == file.read_bytes()
    assert read(os.fsencode(file)) == file.read_bytes()


@pytest.mark.parametrize("most", [0, 1, 4096, 9999, 10_000, 10_001])
def test_no_more_is_read_than_was_asked_for(tmp_path: Path, most: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(10_000))
    assert read(str(file), most) == file.read_bytes()[:most]


def test_a_file_that_pretends_to_any_size_is_no_burden(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as hole:
        hole.truncate(1 << 40)
    assert read(str(file), 5000) == bytes(5000)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no such files here")
def test_a_file_without_a_size_is_read_to_its_end() -> None:
    # Files of the kernel say that they have no bytes.
    assert read("/proc/self/status") != b""


def test_what_a_command_put_in_a_files_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    assert read(str(tmp_path / "pipe"), flags=UNFOLLOWED) == b""
    with pytest.raises(OSError, match="link"):
        read(str(tmp_path / "link"), flags=UNFOLLOWED)


def test_an_open_file_is_read_on_from_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one two")
    fd = os.open(file, os.O_RDONLY)
    try:
        assert os.read(fd, 4) == b"one "
        assert read_open(fd) == b"two"
    finally:
        os.close(fd)
