"""The record's tree: header, plan, intents, kept trees, and notes with one level of fan-out.

Only entries that an event touches are written; a step costs the root, one or two of its 256
folders and the blobs in them, whatever the size of the plan. Notes are keyed by object ids: a
task's note by its plan blob (so that it survives a rebase), a receipt by its commit, the header
by the base commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from git_batch.core import canonical, record
from git_batch.core import events as ev
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, Plan
from git_batch.errors import GitError, RecordError
from git_batch.repo.libgit2 import FileMode
from git_batch.repo.repository import Repository
from git_batch.repo.trees import DIRECTORY, Folder, lookup, read_blob, read_tree
from git_batch.repo.treewrite import Changes, write_blob, write_paths

_HEADER_KINDS = (ev.Created, ev.Authorized, ev.Decided, ev.Closed)
_REVIEW_ENDS = (ev.Committed, ev.BecameUnchanged, ev.Parked, ev.Decided)
SHARD = 100
"""Tasks per folder of `plan/`."""


class NotesTree:
    """A record's tree as it is now; `apply` gives the next one.

    Attributes:
        oid: the tree's id, None before anything was written. Set it to go on from another tree
            that holds the same plan.
    """

    def __init__(self, repo: Repository, oid: Oid | None) -> None:
        self._repo, self._objects = repo, repo.objects
        self._plan_blobs: dict[TaskId, str] | None = None
        self.oid = oid

    def reset(self, oid: Oid) -> None:
        """Go on from another tree, whatever its plan."""
        self.oid, self._plan_blobs = oid, None

    def apply(self, event: ev.Event, state: BatchState) -> Oid:
        """Write what an event changes; in-flight events change nothing."""
        changes: Changes = {}
        if isinstance(event, ev.Decided) and event.decision is ev.Decision.REBASE:
            # What was certified on the line that is left is so no more; nor is its base ours.
            changes |= dict.fromkeys(self._notes_on_commits())
        if isinstance(event, _HEADER_KINDS):
            changes["batch.toml"] = changes[_fan(state.base)] = record.header(state)
        for task in _touched(event, state):
            changes[_fan(self._blobs()[task])] = record.note(task, state.tasks[task])
        if isinstance(event, ev.Committed):
            changes[_fan(event.commit)] = record.receipt(state, event.task)
        if isinstance(event, ev.Committed | ev.Interrupted | ev.Decided):
            changes["settled"] = None
        if isinstance(event, ev.Settled):
            changes["settled"] = (event.tree, FileMode.TREE)
        self._review(changes, event)
        if changes:
            self.oid = write_paths(self._repo, self.oid, changes)
        assert self.oid is not None
        return self.oid

    def _review(self, changes: Changes, event: ev.Event) -> None:
        """Keep the reviewed tree alive until it is committed or given up."""
        if isinstance(event, ev.ReviewRequested):
            changes[f"review/{event.task}/tree"] = (event.tree, FileMode.TREE)
            changes[f"review/{event.task}/parent"] = f"{event.parent}\n".encode()
        elif isinstance(event, _REVIEW_ENDS) or _turned_down(event):
            for task in getattr(event, "tasks", ()) or (getattr(event, "task", None),):
                if task and self._find(f"review/{task}") is not None:
                    changes[f"review/{task}"] = None

    def write_plan(self, plan: Plan) -> None:
        """Put a plan and its intents in; the notes of tasks that stay keep their keys."""
        old = self._notes_by_task() if self.oid is not None else {}
        changes: Changes = {"plan.toml": canonical.to_toml(plan)}
        blobs: dict[TaskId, str] = {}
        for i, task in enumerate(plan.tasks):
            oid = blobs[task.id] = write_blob(self._repo, canonical.task_toml(task))
            changes[f"plan/{i // SHARD:03d}/{task.id}.toml"] = (oid, FileMode.BLOB)
        for content in plan.intents.values():
            changes[f"intents/{sha256(content).hexdigest()}"] = content
        for task_id, (key, oid) in old.items():
            if blobs.get(task_id) != key:
                changes[_fan(key)] = None
            if task_id in blobs:
                changes[_fan(blobs[task_id])] = (oid, FileMode.BLOB)
        root = self.oid
        if root is not None:
            root = write_paths(self._repo, root, {"plan": None, "intents": None})
        self.oid = write_paths(self._repo, root, changes)
        self._plan_blobs = blobs

    def blob(self, path: str) -> bytes:
        """Read a file of the tree; RecordError if it is missing or damaged."""
        found = self._file(path)
        if found is None:
            raise RecordError(f"'{path}' is missing in the record")
        return found

    def plan(self) -> tuple[bytes, dict[str, bytes]]:
        """Read the plan's canonical bytes and its intents by sha256."""
        names = [_text(name) for name in self._folder("intents")]
        read = ((name, self._file(f"intents/{name}")) for name in names)
        return self.blob("plan.toml"), {name: text for name, text in read if text is not None}

    def task_notes(self) -> Iterator[tuple[TaskId, bytes]]:
        """Read the notes that tasks have."""
        for task, (_, oid) in self._notes_by_task().items():
            with _whole(f"the note of '{task}'"):
                text = read_blob(self._objects, oid)
            yield task, text

    def task_note(self, task: TaskId) -> bytes | None:
        """Read one task's note; None if it has none. Costs a look into each folder of `plan`."""
        name = f"{task}.toml".encode()
        for shard in self._shards():
            if name in shard:
                return self.note_on(Oid(shard[name][1].hex()))
        return None

    def note_on(self, oid: Oid) -> bytes | None:
        """Read the note of any object, whatever the fan-out."""
        places = (_fan(oid), oid, f"{oid[:2]}/{oid[2:4]}/{oid[4:]}")
        return next((text for path in places if (text := self._file(path)) is not None), None)

    def _notes_by_task(self) -> dict[TaskId, tuple[str, Oid]]:
        notes = dict(self._all_notes())
        blobs = self._blobs()
        return {task: (key, notes[key]) for task, key in blobs.items() if key in notes}

    def _notes_on_commits(self) -> Iterator[str]:
        """Give the places of all notes but the tasks': receipts, and the base's."""
        tasks = set(self._blobs().values())
        return (_fan(key) for key, _ in self._all_notes() if key not in tasks)

    def _all_notes(self) -> Iterator[tuple[str, Oid]]:
        stack = [("", self._folder(""))]
        while stack:
            prefix, folder = stack.pop()
            for raw, (mode, oid) in folder.items():
                name = prefix + _text(raw)
                if name.strip("0123456789abcdef"):  # something is left between the digits
                    continue
                if mode == DIRECTORY:
                    stack.append((name, self._read(oid, f"'{name}'")))
                elif len(name) in (40, 64):
                    yield name, Oid(oid.hex())

    def _blobs(self) -> dict[TaskId, str]:
        if self._plan_blobs is None:
            if self._find("plan") is None:
                raise RecordError("'plan' is missing in the record")
            self._plan_blobs = {
                TaskId(_text(name).removesuffix(".toml")): oid.hex()
                for shard in self._shards()
                for name, (_, oid) in shard.items()
            }
        return self._plan_blobs

    def _shards(self) -> Iterator[Folder]:
        """Read the folders of `plan`."""
        for name, (mode, oid) in self._folder("plan").items():
            if mode == DIRECTORY:
                yield self._read(oid, f"'plan/{_text(name)}'")

    def _find(self, path: str) -> tuple[int, Oid] | None:
        """Find a path: its mode and its object; None if there is none."""
        if self.oid is None or not path:
            return (DIRECTORY, self.oid) if self.oid else None
        with _whole(f"the way to '{path}'"):
            return lookup(self._objects, self.oid, path.encode())

    def _file(self, path: str) -> bytes | None:
        """Read a file; None if there is none."""
        found = self._find(path)
        if found is None or found[0] == DIRECTORY:
            return None
        with _whole(f"'{path}'"):
            return read_blob(self._objects, found[1])

    def _folder(self, path: str) -> Folder:
        """Read a folder; an empty one if there is none."""
        found = self._find(path)
        if found is None or found[0] != DIRECTORY:
            return {}
        return self._read(bytes.fromhex(found[1]), f"'{path}'" if path else "the tree")

    def _read(self, tree: bytes, what: str) -> Folder:
        with _whole(what):
            return read_tree(self._objects, tree)


@contextmanager
def _whole(what: str) -> Iterator[None]:
    """Say of a part of the record that it can't be read."""
    try:
        yield
    except GitError as error:
        raise RecordError(f"{what} is damaged: {error.message}") from None


def _text(name: bytes) -> str:
    """Give a name as text; one of ours is ASCII, any other one is found by nobody."""
    return name.decode("utf-8", "replace")


def _fan(key: str) -> str:
    return f"{key[:2]}/{key[2:]}"


def _turned_down(event: ev.Event) -> bool:
    return isinstance(event, ev.Reviewed) and event.verdict is not ev.Verdict.ACCEPT


def _touched(event: ev.Event, state: BatchState) -> tuple[TaskId, ...]:
    """Name the tasks whose note an event writes."""
    if isinstance(event, ev.Decided):
        known = (t for t in event.tasks if t in state.tasks)
        if event.decision is ev.Decision.ABANDON:  # what was in flight ends with it
            return tuple(t for t, r in state.tasks.items() if r.ended_at == event.at)
        return tuple(known)
    kinds = ev.Committed | ev.BecameUnchanged | ev.Parked | ev.ReviewRequested | ev.Reviewed
    if isinstance(event, kinds) and event.task in state.tasks:
        return (event.task,)
    return ()
