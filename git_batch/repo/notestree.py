"""The record's tree: header, plan, intents, kept trees, and notes with one level of fan-out.

Only entries that an event touches are written; a step costs the root, one or two of its 256
folders and the blobs in them, whatever the size of the plan. Notes are keyed by object ids: a
task's note by its plan blob (so that it survives a rebase), a receipt by its commit, the header
by the base commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from git_batch.core import canonical, record
from git_batch.core import events as ev
from git_batch.core.ids import Oid, TaskId
from git_batch.core.model import BatchState, Plan
from git_batch.errors import RecordError
from git_batch.repo.libgit2 import UNREADABLE, FileMode, pygit2
from git_batch.repo.repository import Repository
from git_batch.repo.treewrite import Changes, write_blob, write_paths

_HEADER_KINDS = (ev.Created, ev.Authorized, ev.Decided, ev.Closed)
_REVIEW_ENDS = (ev.Committed, ev.BecameUnchanged, ev.Parked, ev.Decided)
SHARD = 100
"""Tasks per folder of `plan/`."""


class NotesTree:
    """A record's tree as it is now; `apply` gives the next one."""

    def __init__(self, repo: Repository, oid: Oid | None) -> None:
        self._repo, self._objects = repo, repo.objects
        self._root: pygit2.Oid | None = pygit2.Oid(hex=oid) if oid else None
        self._plan_blobs: dict[TaskId, str] | None = None

    @property
    def oid(self) -> Oid | None:
        """The tree's id, None before anything was written."""
        return Oid(str(self._root)) if self._root is not None else None

    def reset(self, oid: Oid) -> None:
        """Go on from another tree."""
        self._root = pygit2.Oid(hex=oid)
        self._plan_blobs = None

    def apply(self, event: ev.Event, state: BatchState) -> Oid:
        """Write what an event changes; in-flight events change nothing."""
        changes: Changes = {}
        if isinstance(event, ev.Decided) and event.decision is ev.Decision.REBASE:
            # What was certified on the line that is left is so no more; nor is its base ours.
            changes |= dict.fromkeys(self._notes_on_commits())
        if isinstance(event, _HEADER_KINDS):
            self._put(changes, "batch.toml", record.header(state))
            self._put(changes, _fan(state.base), record.header(state))
        for task in _touched(event, state):
            self._put(changes, _fan(self._blob_of(task)), record.note(task, state.tasks[task]))
        if isinstance(event, ev.Committed):
            self._put(changes, _fan(event.commit), record.receipt(state, event.task))
        if isinstance(event, ev.Committed | ev.Interrupted | ev.Decided):
            changes["settled"] = None
        if isinstance(event, ev.Settled):
            changes["settled"] = (pygit2.Oid(hex=event.tree), FileMode.TREE)
        self._review(changes, event)
        if changes:
            self._root = write_paths(self._objects, self._root, changes)
        assert self._root is not None
        return Oid(str(self._root))

    def _review(self, changes: Changes, event: ev.Event) -> None:
        """Keep the reviewed tree alive until it is committed or given up."""
        if isinstance(event, ev.ReviewRequested):
            tree = (pygit2.Oid(hex=event.tree), int(FileMode.TREE))
            changes[f"review/{event.task}/tree"] = tree
            self._put(changes, f"review/{event.task}/parent", f"{event.parent}\n".encode())
        elif isinstance(event, _REVIEW_ENDS) or _turned_down(event):
            for task in getattr(event, "tasks", ()) or (getattr(event, "task", None),):
                if task and self._find(f"review/{task}") is not None:
                    changes[f"review/{task}"] = None

    def write_plan(self, plan: Plan) -> None:
        """Put a plan and its intents in; the notes of tasks that stay keep their keys."""
        old = self._notes_by_task() if self._root is not None else {}
        toml = canonical.to_toml(plan)
        changes: Changes = {}
        self._put(changes, "plan.toml", toml)
        blobs: dict[TaskId, str] = {}
        for i, task in enumerate(plan.tasks):
            path = f"plan/{i // SHARD:03d}/{task.id}.toml"
            blobs[task.id] = self._put(changes, path, canonical.task_toml(task))
        for content in plan.intents.values():
            self._put(changes, f"intents/{sha256(content).hexdigest()}", content)
        for task_id, (key, oid) in old.items():
            if blobs.get(task_id) != key:
                changes[_fan(key)] = None
            if task_id in blobs:
                changes[_fan(blobs[task_id])] = (oid, int(FileMode.BLOB))
        root = self._root
        if root is not None:
            root = write_paths(self._objects, root, {"plan": None, "intents": None})
        self._root = write_paths(self._objects, root, changes)
        self._plan_blobs = blobs

    def blob(self, path: str) -> bytes:
        """Read a file of the tree; RecordError if it is missing or damaged."""
        found = self._find(path)
        if not isinstance(found, pygit2.Blob):
            raise RecordError(f"'{path}' is missing in the record")
        return found.data

    def plan(self) -> tuple[bytes, dict[str, bytes]]:
        """Read the plan's canonical bytes and its intents by sha256."""
        intents = self._find("intents")
        files = intents if isinstance(intents, pygit2.Tree) else ()
        read = ((f.name or "", self._read(f.id, f"intents/{f.name}")) for f in files)
        return self.blob("plan.toml"), {n: f.data for n, f in read if isinstance(f, pygit2.Blob)}

    def task_notes(self) -> Iterator[tuple[TaskId, bytes]]:
        """Read the notes that tasks have."""
        for task, (_, oid) in self._notes_by_task().items():
            found = self._read(oid, f"the note of '{task}'")
            if not isinstance(found, pygit2.Blob):
                raise RecordError(f"the note of '{task}' is no file")
            yield task, found.data

    def task_note(self, task: TaskId) -> bytes | None:
        """Read one task's note; None if it has none. Costs a look into each folder of `plan`."""
        for shard in self._shards():
            name = f"{task}.toml"
            if name in shard:
                return self.note_on(Oid(str(shard[name].id)))
        return None

    def note_on(self, oid: Oid) -> bytes | None:
        """Read the note of any object, whatever the fan-out."""
        for path in (_fan(oid), oid, f"{oid[:2]}/{oid[2:4]}/{oid[4:]}"):
            found = self._find(path)
            if isinstance(found, pygit2.Blob):
                return found.data
        return None

    def _notes_by_task(self) -> dict[TaskId, tuple[str, pygit2.Oid]]:
        notes = dict(self._all_notes())
        blobs = self._blobs()
        return {task: (key, notes[key]) for task, key in blobs.items() if key in notes}

    def _notes_on_commits(self) -> Iterator[str]:
        """Give the places of all notes but the tasks': receipts, and the base's."""
        tasks = set(self._blobs().values())
        return (_fan(key) for key, _ in self._all_notes() if key not in tasks)

    def _all_notes(self) -> Iterator[tuple[str, pygit2.Oid]]:
        root = self._find("")
        stack: list[tuple[str, pygit2.Tree]] = []
        if isinstance(root, pygit2.Tree):
            stack.append(("", root))
        while stack:
            prefix, tree = stack.pop()
            for entry in tree:
                name = prefix + (entry.name or "")
                if not all(c in "0123456789abcdef" for c in name):
                    continue
                if entry.filemode == FileMode.TREE:
                    sub = self._read(entry.id, f"'{name}'")
                    if isinstance(sub, pygit2.Tree):
                        stack.append((name, sub))
                elif len(name) in (40, 64):
                    yield name, entry.id

    def _blobs(self) -> dict[TaskId, str]:
        if self._plan_blobs is None:
            if self._find("plan") is None:
                raise RecordError("'plan' is missing in the record")
            self._plan_blobs = {
                TaskId((entry.name or "").removesuffix(".toml")): str(entry.id)
                for shard in self._shards()
                for entry in shard
            }
        return self._plan_blobs

    def _shards(self) -> Iterator[pygit2.Tree]:
        """Read the folders of `plan`."""
        plan = self._find("plan")
        for entry in plan if isinstance(plan, pygit2.Tree) else ():
            shard = self._read(entry.id, f"'plan/{entry.name}'")
            if isinstance(shard, pygit2.Tree):
                yield shard

    def _blob_of(self, task: TaskId) -> str:
        return self._blobs()[task]

    def _put(self, changes: Changes, path: str, content: bytes) -> str:
        oid = write_blob(self._repo, content)
        changes[path] = (oid, int(FileMode.BLOB))
        return str(oid)

    def _find(self, path: str) -> pygit2.Object | None:
        if self._root is None:
            return None
        found = self._read(self._root, "the tree")
        for part in filter(None, path.split("/")):
            if not isinstance(found, pygit2.Tree) or part not in found:
                return None
            found = self._read(found[part].id, f"'{path}'")
        return found

    def _read(self, oid: pygit2.Oid, what: str) -> pygit2.Object:
        """Read an object of the record.

        Raises:
            RecordError: it is not there or not whole; says so of `what`.
        """
        try:
            return self._objects[oid]
        except UNREADABLE:
            raise RecordError(
                f"{what} is damaged: object {oid} is missing or can't be read"
            ) from None


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
