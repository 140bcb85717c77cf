"""What a run that was killed in another working tree may have planted for git to run here.

All working trees share configuration, hooks and the like. So what that run noted before is compared
from here, too: of all that differs, what git reads in this working tree counts. The other tree's
own files (its index, its marks of a merge, a configuration of it alone) are its own affair.

* Nothing of that differs: nothing is said, and that run is left as it is.
* Something differs: the command is refused. What becomes of it is decided there, by `resume`, for
  only there are the run's lock, its index and its attempt. It is compared each time, so a person
  who puts it back by hand is free here as well.
* What was noted there is missing or not whole: `resume` there says so, and nothing can be compared.
* Processes of that run that still live are seen to there. While they do, the fence stays armed.

A run that is at work in another working tree compares by itself, and is neither looked at nor
refused; nor is one here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from git_batch.app.killedrun import KilledRun
from git_batch.app.requests import ResumeRequest
from git_batch.core.naming import path_text, shell_path
from git_batch.core.values import replace
from git_batch.errors import PreconditionError
from git_batch.repo import fencefile
from git_batch.repo.armed import killed_elsewhere, was_killed
from git_batch.repo.fence import Watch, named
from git_batch.repo.repository import Layout, Repository
from git_batch.repo.unopened import program


def refuse(repo: Repository) -> None:
    """Refuse what would run git on what a killed run left in another working tree.

    Raises:
        PreconditionError: something that git reads here is not what it was.
    """
    for other, run, found in _planted(repo):
        raise _refusal(other, run, found, repo.layout.top)


def refuse_in_bare(git_dir: str) -> None:
    """Refuse to try hooks in a bare repository after a run was killed in a working tree of it.

    All counts that is not that tree's alone.

    Raises:
        PreconditionError: something is not what it was.
    """
    for other, run, changed in _killed(Layout("", git_dir, git_dir, "sha1")):
        found = [path for path in changed if not path.startswith(f"{other.git_dir}/")]
        if found and was_killed(other):
            raise _refusal(other, run, found, git_dir)


def is_planted(repo: Repository) -> bool:
    """Say whether git might run here what a killed run's task planted from another tree."""
    return any(True for _ in _planted(repo))


def _planted(repo: Repository) -> Iterator[tuple[Layout, KilledRun, list[str]]]:
    """List the killed runs of other trees with the paths that count here."""
    here: Watch | None = None
    for other, run, changed in _killed(repo.layout):
        if here is None:
            here = Watch(repo)
            here.note()
        found = [path for path in changed if here.reads(path)]
        # Somebody may have begun to see to it meanwhile.
        if found and was_killed(other):
            yield other, run, found


def _killed(layout: Layout) -> Iterator[tuple[Layout, KilledRun, list[str]]]:
    """List the killed runs of other trees with all paths that are not as they were."""
    for other in killed_elsewhere(layout):
        opened = _opened(other)
        changed = opened[1].changed() if opened else []
        if opened is not None and changed:
            yield *opened, changed


def _opened(other: Layout) -> tuple[Layout, KilledRun] | None:
    """Read what a killed run had noted; None if there is nothing to compare with."""
    armed = fencefile.armed(other)
    try:
        standing = fencefile.load(other)
    except fencefile.UnusableError:
        return None
    watch = Watch(Repository(standing.layout), standing)
    return None if armed is None else (standing.layout, KilledRun(armed, watch))


def _refusal(other: Layout, run: KilledRun, found: list[str], top: str) -> PreconditionError:
    copies, asked = run.watch.copy_known(found), ResumeRequest(run.batch)
    there = path_text(other.top)
    if os.path.isdir(other.top):
        # Its own configuration may be one that git can't read, while git works here.
        resume = replace(asked, program=program(Repository(other))).again()
        ways = [f"decide there what becomes of them: cd {shell_path(other.top)} && {resume}"]
    else:
        ways = [
            "put them back by hand: that working tree is not in its place any more",
            f"or decide it where that is now, by '{asked.again()}': git worktree list",
        ]
    return PreconditionError(
        f"a run was killed in the working tree '{there}' while {run.whose} ran, and since then "
        f"these are not what they were; git may run here, too, what stands in them:\n"
        f"{run.listing(found, top)}",
        *([f"what they were is in '{named(copies, top)}'"] if copies else []),
        *ways,
    )
