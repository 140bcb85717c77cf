"""Records of every format that was ever written stay readable, and mean what they meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.journals.make_golden import FOLDER, holds, tell
from git_batch.core import effects as fx
from git_batch.core import events as ev
from git_batch.core import reading, record
from git_batch.core.ids import Oid
from git_batch.core.machine import Machine, found, reopen
from git_batch.core.model import BatchState
from git_batch.core.standing import TaskStatus
from git_batch.core.values import replace
from git_batch.repo import recordread
from git_batch.repo.history import history
from git_batch.repo.notestree import NotesTree
from git_batch.repo.refs import Refs
from git_batch.repo.repository import Repository
from tests.conftest import git
from tests.repo.recorded import BATCH, REF

VERSIONS = sorted(FOLDER.glob("v*/"))


def unbundled(repo: Path, version: Path) -> Repository:
    git(repo, "fetch", "-q", str(version / "record.bundle"), f"{REF}:{REF}")
    return Repository.open(str(repo))


def test_there_is_a_golden_copy_of_the_format_that_is_written_now() -> None:
    assert FOLDER / f"v{reading.FORMAT}" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_a_golden_record_gives_the_state_that_it_gave_when_it_was_written(
    repo: Path, version: Path
) -> None:
    opened = unbundled(repo, version)
    expected = json.loads((version / "state.json").read_text(encoding="utf-8"))
    at, plan, state = recordread.read(opened, Refs(opened), BATCH)
    assert at.oid == expected["tip"]
    assert holds(tell(state), expected["state"])
    entries = history(opened, at.oid)
    assert [ev.KINDS[type(entry.event)] for _, entry in entries] == expected["events"]
    replayed = Machine(plan).replay((entry.event, oid) for oid, entry in entries)
    assert replayed is not None
    assert without_words(replayed) == without_words(state)


def without_words(state: BatchState) -> BatchState:
    """Leave out the advice of `evolve`, and what was said, which older notes do not hold."""
    tasks = {
        name: replace(
            r, reason="", next_action="", history=tuple(replace(a, message=b"") for a in r.history)
        )
        for name, r in state.tasks.items()
    }
    return replace(state, tasks=tasks)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_a_golden_record_can_be_gone_on_with(repo: Path, version: Path) -> None:
    opened = unbundled(repo, version)
    _, plan, state = recordread.read(opened, Refs(opened), BATCH)
    machine = Machine(plan)
    assert isinstance(machine.decide(reopen(found(state))), fx.Commit)
    tree = NotesTree(opened, Oid(git(repo, "rev-parse", f"{REF}^{{tree}}")))
    commits = [r.commit for r in state.tasks.values() if r.status is TaskStatus.COMMITTED]
    assert len(commits) >= 4
    for commit in commits:
        assert commit
        receipt = tree.note_on(commit)
        assert receipt
        assert record.parse_receipt(receipt).certifies == commit


def test_the_newest_golden_record_has_an_event_of_every_kind_in_it() -> None:
    newest = FOLDER / f"v{reading.FORMAT}" / "state.json"
    assert set(json.loads(newest.read_text(encoding="utf-8"))["events"]) == set(ev.KINDS.values())


def test_what_a_later_version_adds_is_no_difference_and_everything_else_is() -> None:
    assert holds({"a": 1, "b": [{"c": 2, "new": 3}]}, {"a": 1, "b": [{"c": 2}]})
    others: tuple[object, ...] = ({"a": 2}, {}, {"a": [1]}, [], {"a": None})
    for other in others:
        assert not holds(other, {"a": 1})
    assert not holds([1], [1, 2])
