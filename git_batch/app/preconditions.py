"""What must hold before anything is written (semantics.md sections 2 and 4)."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence

from git_batch.app.requests import StartRequest
from git_batch.app.session import Session
from git_batch.core.chain import RECORDS, kept_below
from git_batch.core.ids import BatchId
from git_batch.core.model import BatchState, Plan, Task, within
from git_batch.core.naming import few_lines, path_text
from git_batch.core.rebuilding import is_stand_in
from git_batch.core.scope import Scope
from git_batch.errors import PreconditionError, UsageError
from git_batch.repo import commits, operations, setaside, signing
from git_batch.repo.claims import claim_ref
from git_batch.repo.commits import Idents
from git_batch.repo.durability import writable
from git_batch.repo.emptied import clear_torn_objects
from git_batch.repo.linked import elsewhere, way_to
from git_batch.repo.repository import Dirt
from git_batch.repo.stalelocks import clear_stale_locks
from git_batch.repo.submodules import INSIDE

_LISTED = 20
_NAMED = 3


def no_operation(session: Session, *, scanned: bool = False) -> None:
    """Refuse to work in the middle of a merge, rebase and the like.

    Args:
        scanned: `clean_tree` comes next, which tells conflicts by its scan.
    """
    _refuse(operations.in_progress(session.repo))
    if not scanned:
        _refuse(operations.conflict(session.repo))


def _refuse(going_on: operations.Operation | None) -> None:
    if going_on is not None:
        article = "an" if going_on.name[0] in "aeiou" else "a"
        raise PreconditionError(f"{article} {going_on.name} is in progress", *going_on.hints)


def on_branch(session: Session, branch: str, what: str) -> None:
    """Refuse where a batch's branch is not checked out here.

    Args:
        what: that for which it has to be, in words that end in the branch's name.
    """
    name = f"refs/heads/{branch}"
    if session.repo.symbolic_head() == name:
        return
    there = elsewhere(session.repo.git, name)
    where = "not checked out"
    if there is not None:
        place = path_text(there.path)
        where = f"checked out in '{place}'" + (", and that is gone" if there.gone else "")
    raise PreconditionError(f"{what}, which is {where}", way_to(branch, there))


def locks_cleared_up(
    session: Session,
    slug: str,
    branch: str,
    batch: BatchId | None,
    note: Callable[[str], None],
) -> None:
    """Put away the locks that a crash left on a batch's refs; under the run lock only."""
    names = [RECORDS, claim_ref(slug), f"refs/heads/{branch}"]
    names += [] if batch is None else [kept_below(batch)]
    clear_stale_locks(session.repo, session.refs.read, names, note)


def objects_cleared_up(session: Session, note: Callable[[str], None]) -> None:
    """Put away what a power cut left of objects; under the run lock, before any is read."""
    cleared = clear_torn_objects(session.repo)
    if cleared.empty:
        note(f"removed {_files(cleared.empty)} without content, as a power cut leaves them")
    if cleared.torn:
        files, places = _files(len(cleared.torn)), ", ".join(cleared.torn[:_NAMED])
        note(f"put aside {files} that break off, as a power cut leaves them: {places}")


def _files(many: int) -> str:
    return "1 file of an object" if many == 1 else f"{many} files of objects"


def plan_is_known(plan: Plan, state: BatchState) -> None:
    """Refuse to go on with a plan that only stands for one that was lost."""
    if is_stand_in(plan):
        raise PreconditionError(
            f"the record of '{state.batch_id}' was rebuilt from trailers; its plan is not known",
            f"git batch recover {shlex.quote(state.branch)} --plan FILE",
        )


def can_commit(session: Session, *, again: bool = False) -> None:
    """Refuse where no commit could be made: nowhere to write it, no way to encode it.

    Args:
        again: it was tried already; only look.
    """
    commits.encoding_of(session.repo)
    if again:
        return
    layout = session.repo.layout
    shared = [os.path.join(layout.common_dir, name) for name in ("objects", "refs")]
    writable(*shared, layout.git_dir, layout.top)


def can_sign(session: Session, who: Idents, *, sign: bool) -> None:
    """Refuse where what has to be signed can't be; a person may be asked for a passphrase.

    Args:
        sign: the authorization is to be signed, if commits are or not.
    """
    configured = session.repo.signs_commits()
    if sign or configured:
        signing.probe(session.repo, who.environment(), asked=not configured)


def clean_tree(
    session: Session, plan: Plan, plan_files: Sequence[str], request: StartRequest
) -> tuple[bytes, ...]:
    """Refuse tracked changes and untracked files that may not be there.

    The plan and its intent files may be untracked; so may, if the request allows it, whatever
    lies outside every scope.

    Returns:
        The untracked paths that are there and accepted, a folder's with a slash at its end.
    """
    dirt = session.repo.dirty()
    _refuse(operations.conflict_in(dirt))
    if dirt.tracked:
        paths = [entry.path for entry in dirt.tracked]
        raise PreconditionError(
            f"the working tree has changes:\n{_names(paths)}",
            f"commit them, or {setaside.away(session.repo, set(paths), dirt)}",
        )
    own = {_inside(session, f) for f in plan_files}
    accepted, refused = [], []
    scopes = [Scope(task.scope) for task in plan.tasks] if request.allow_untracked else []
    for entry in dirt.untracked:
        files = _files_below(session, entry)
        if all(f in own for f in files):
            accepted += files
        elif request.allow_untracked and not any(s.match(f) for f in files for s in scopes):
            accepted.append(entry)
        else:
            refused.append(entry)
    if refused:
        raise _untracked(refused, request)
    return tuple(accepted)


def _untracked(refused: list[bytes], request: StartRequest) -> PreconditionError:
    if request.allow_untracked:
        return PreconditionError(
            f"there are untracked files inside a task's scope:\n{_names(refused)}",
            "add and commit them, list them in '.gitignore', or move them out of the way",
        )
    return PreconditionError(
        f"there are untracked files:\n{_names(refused)}",
        "add and commit them, or list them in '.gitignore'",
        f"files outside every scope may stay: {request.again('--allow-untracked')}",
    )


def still_clean(session: Session, accepted: Sequence[bytes]) -> Dirt:
    """List what a resumed run would take for a task's work although nothing is in flight."""
    dirt, known = session.repo.dirty(), within(accepted)
    files = (f for entry in dirt.untracked for f in _files_below(session, entry))
    return Dirt(dirt.tracked, tuple(f for f in files if not known(f)))


def untracked_among(session: Session, files: Sequence[str]) -> tuple[bytes, ...]:
    """Give those files that lie in the working tree and that git does not track."""
    own = {_inside(session, f) for f in files}
    dirt = session.repo.dirty().untracked
    return tuple(f for entry in dirt for f in _files_below(session, entry) if f in own)


def refuse_dirt(session: Session, dirt: Dirt, accepted: Sequence[bytes] = (), *ways: str) -> None:
    """Refuse a working tree that is not as the branch's tip.

    Args:
        accepted: untracked paths of the person's, which they may have staged since.
        ways: what else can be done about it, as hints.
    """
    if not dirt:
        return
    known = within(accepted)
    staged = {e.path for e in dirt.tracked if e.only_added and known(e.path)}
    paths = [*(e.path for e in dirt.tracked), *dirt.untracked]
    rest = [path for path in paths if path not in staged]
    hints = [setaside.unstaging(session.repo, staged)] if staged else []
    inside = not dirt.untracked and all(entry.changed_inside for entry in dirt.tracked)
    said = INSIDE if inside else "the working tree has changes that no task made"
    raise PreconditionError(
        f"{said}:\n{_names(paths)}",
        *hints,
        *(setaside.ways(session.repo, rest) if rest else ()),
        *ways,
    )


def _files_below(session: Session, entry: bytes) -> list[bytes]:
    if not entry.endswith(b"/"):
        return [entry]
    out = session.repo.git.run(["ls-files", "--others", "--exclude-standard", "-z", "--", entry])
    return [name for name in out.split(b"\0") if name] or [entry]


def _inside(session: Session, path: str) -> bytes:
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(session.repo.layout.top))
    return os.fsencode(relative)


def _names(paths: Sequence[bytes]) -> str:
    return few_lines([path_text(p) for p in paths], _LISTED)


def remote_exists(session: Session, remote: str | None) -> None:
    """Refuse a remote for claims that git does not know.

    Raises:
        UsageError: there is no such remote.
    """
    if remote is not None and session.repo.git.call(["remote", "get-url", remote]).status:
        raise UsageError(f"there is no remote '{remote}'", "git remote -v lists what there is")


def commands_exist(session: Session, plan: Plan) -> None:
    """Refuse a plan whose programs are not here; a shell's own text can't be told beforehand.

    Raises:
        UsageError: the program of a list-form command is not found.
    """
    for task in plan.tasks:
        for command in (task.run, *task.checks, *([task.review] if _is_argv(task.review) else [])):
            if isinstance(command, tuple):
                _program_exists(session, task, command[0])


def _is_argv(command: object) -> bool:
    return isinstance(command, tuple)


def _program_exists(session: Session, task: Task, program: str) -> None:
    if "{" in program:
        return
    path = dict(task.env).get("PATH") or os.environ.get("PATH")
    place = program
    if os.sep in program and not os.path.isabs(program):
        place = os.path.join(session.repo.layout.top, program)
        if not os.path.exists(place):
            return  # an earlier task may make it
    if shutil.which(place, path=path) is None:
        raise UsageError(
            f"task '{task.id}': command '{program}' is not found",
            "install it, or give its full path in the plan",
        )
