"""The fence on disk: written once, read back whole or not at all, forgotten in time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_batch.core.values import replace
from git_batch.repo import fencefile
from git_batch.repo.fence import Watch
from git_batch.repo.fencefile import Armed, FenceFile, Found, UnusableError
from git_batch.repo.known import KEPT_MOST, Known
from git_batch.repo.repository import Repository
from tests.conftest import git


class Setting:
    """A repository whose watch is saved."""

    def __init__(self, repo: Path) -> None:
        self.repo = Repository.open(str(repo))
        Path(self.repo.scratch)
        self.watch, self.file = Watch(self.repo), FenceFile(self.repo.layout)
        self.place = repo / ".git/batch/fence.state"
        self.save()

    def save(self) -> os.stat_result:
        self.watch.note()
        self.watch.save(self.file)
        return self.place.stat()

    def restored(self) -> Watch:
        return Watch(self.repo, fencefile.load(self.repo.layout))


@pytest.fixture
def setting(repo: Path) -> Setting:
    return Setting(repo)


def test_what_stays_the_same_is_written_once(repo: Path, setting: Setting) -> None:
    first = setting.place.stat()
    os.utime(repo / ".git/config")
    assert setting.save() == first
    git(repo, "config", "core.editor", "x")
    second = setting.save()
    assert second.st_ino != first.st_ino
    assert setting.save() == second
    (repo / ".git/hooks/pre-push").touch()
    assert setting.save().st_ino != second.st_ino


def test_what_somebody_took_away_or_edited_is_written_again(setting: Setting) -> None:
    whole = setting.place.read_bytes()
    setting.place.unlink()
    setting.save()
    assert setting.place.read_bytes() == whole
    setting.place.write_bytes(b"forged")
    setting.save()
    assert setting.place.read_bytes() == whole


def test_only_the_person_can_read_it(setting: Setting) -> None:
    setting.file.arm(Armed("demo-abc123", "t"))
    for path in (*setting.place.parent.glob("fence.*"),):
        assert path.stat().st_mode & 0o777 == 0o600
    assert setting.place.parent.stat().st_mode & 0o777 == 0o700


def test_every_kind_of_state_comes_back(repo: Path) -> None:
    hooks = repo / ".git/hooks"
    (hooks / "pre-push").write_bytes(b"\0\xff\n")
    (hooks / "pre-push").chmod(0o755)
    (hooks / "large").write_bytes(b"x" * (KEPT_MOST + 1))
    (hooks / "link").symlink_to("nowhere")
    (hooks / "folder").mkdir()
    os.mkfifo(hooks / "fifo")
    Path(os.fsdecode(os.fsencode(hooks) + b"/caf\xe9")).write_text("x")
    found = Setting(repo)
    assert found.restored().changed() == []
    standing = fencefile.load(found.repo.layout)
    kinds = {Path(path).name: state.kind for path, state in standing.known.items()}
    assert {kinds[n] for n in ("large", "link", "folder", "fifo")} == {
        "file",
        "link",
        "folder",
        "other",
    }
    (hooks / "large").write_bytes(b"y" * (KEPT_MOST + 1))
    (hooks / "pre-push").chmod(0o644)
    changed = found.restored().changed()
    assert [Path(p).name for p in changed] == ["large", "pre-push"]
    found.restored().put_back(changed)
    assert (hooks / "pre-push").stat().st_mode & 0o777 == 0o755


def test_no_part_of_it_is_taken_for_the_whole(setting: Setting) -> None:
    whole = setting.place.read_bytes()
    for end in (0, 1, 16, 30, 83, len(whole) // 2, len(whole) - 1):
        setting.place.write_bytes(whole[:end])
        with pytest.raises(UnusableError):
            fencefile.load(setting.repo.layout)
    setting.place.write_bytes(whole[:-100] + bytes(100))
    with pytest.raises(UnusableError, match="not whole"):
        fencefile.load(setting.repo.layout)
    setting.place.write_bytes(whole.replace(b"fence 1", b"fence 2"))
    with pytest.raises(UnusableError, match="another version"):
        fencefile.load(setting.repo.layout)


def test_what_is_no_file_is_not_waited_for(setting: Setting) -> None:
    setting.place.unlink()
    os.mkfifo(setting.place)
    with pytest.raises(UnusableError, match="no such file"):
        fencefile.load(setting.repo.layout)


def test_what_was_written_elsewhere_is_not_used(setting: Setting, tmp_path: Path) -> None:
    other = replace(setting.repo.layout, git_dir=str(tmp_path))
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch/fence.state").write_bytes(setting.place.read_bytes())
    with pytest.raises(UnusableError, match="it was written for"):
        fencefile.load(other)


def test_an_orderly_end_leaves_only_what_was_not_compared(setting: Setting) -> None:
    layout, armed = setting.repo.layout, Armed("demo-abc123", "t", 2, "r", "b", ("src/**", "é"))
    setting.file.arm(armed)
    setting.file.lower()
    assert fencefile.armed(layout) == armed
    assert setting.place.exists()
    setting.file.disarm()
    assert fencefile.armed(layout) is None
    setting.file.lower()
    assert list(setting.place.parent.glob("fence.*")) == []


def test_what_was_found_is_told_until_the_run_ends(setting: Setting) -> None:
    layout, found = setting.repo.layout, Found("demo-abc123", "t", 1, "said \udce9")
    assert fencefile.told(layout) is None
    fencefile.tell(layout, found)
    assert fencefile.told(layout) == found
    fencefile.settle(layout)
    assert fencefile.told(layout) == found
    setting.file.lower()
    assert fencefile.told(layout) is None


def test_content_is_compared_also_where_git_would_not(setting: Setting) -> None:
    known = dict(fencefile.load(setting.repo.layout).known)
    path = next(path for path, state in known.items() if state.kind == "file")
    before = setting.place.stat()
    survey = fencefile.load(setting.repo.layout).survey
    setting.file.save(survey, known)
    setting.file.save(survey, known | {path: Known(None, "file", 0o600, b"x", b"y")})
    assert setting.place.stat() != before
