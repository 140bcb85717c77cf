"""`git batch review`, `adopt`, `undo` and `rebase`."""

from __future__ import annotations

import click

from git_batch.app.session import called, now
from git_batch.cli.following import go_on, were
from git_batch.cli.numbers import Count
from git_batch.cli.output import out, told_session
from git_batch.core.events import Verdict
from git_batch.errors import ExitCode
from git_batch.views.addressing import addressed
from git_batch.views.common import names


@click.command("review")
@click.argument("task")
@click.option("--accept", is_flag=True, help="Take the change as it is.")
@click.option("--rework", is_flag=True, help="Park it, with your words.")
@click.option("--reject", is_flag=True, help="Park it as rejected.")
@click.option("-m", "--message", default="", metavar="WHY", help="Why; feedback for a retry.")
def review_command(task: str, message: str, **given: bool) -> int:
    """Give the verdict on the change of TASK that waits for a review."""
    from git_batch.app.deciding import Named
    from git_batch.app.reviewing import review

    chosen = [name for name, so in given.items() if so]
    if len(chosen) != 1:
        raise click.UsageError("give one verdict: --accept, --rework or --reject")
    verdict, session = chosen[0], told_session()
    state = review(session, task, Verdict(verdict), words=message, at=now())
    out(f"'{task}': {verdict} is recorded")
    parked = verdict != Verdict.ACCEPT
    go_on(session, state, *([f"git batch retry {Named.parse(task).task}"] if parked else []))
    return ExitCode.OK


@click.command("adopt")
@click.argument("task")
@click.option("--attempt", type=Count(), metavar="N",
              help="Take the kept work of attempt N instead of the working tree.")  # fmt: skip
@click.option("-m", "--message", default="", metavar="WHY", help="Why, for the record.")
def adopt_command(task: str, attempt: int | None, message: str) -> int:
    """Take your fix in the working tree, or kept work, as the work of a parked TASK.

    Also of one that a retry lets run again, or that has a fix already, as long as it has not begun.
    """
    from git_batch.app.adopting import adopt

    session = told_session()
    state = adopt(session, task, attempt=attempt, words=message, at=now())
    out(f"'{task}' has its work now; scope and checks come with its commit")
    go_on(session, state)
    return ExitCode.OK


@click.command("undo")
@click.argument("task")
@click.option("--redo", is_flag=True, help="Let the tasks run again instead of dropping them.")
@click.option("-m", "--message", default="", metavar="WHY", help="Why, for the record.")
def undo_command(task: str, redo: bool, message: str) -> int:
    """Revert a committed TASK, and the committed tasks that need it, by commits of their own.

    With '--redo' also of one that was dropped: it and what was dropped with it will run again.
    """
    from git_batch.app.undoing import undo

    session = told_session()
    done = undo(session, task, redo=redo, words=message, at=now())
    state = done.state
    said = f"{names(done.tasks)} will run again" if redo else f"{were(done.tasks)} taken back"
    out(f"{said}; '{state.branch}' is at {state.head[:12]}")
    if redo:
        go_on(session, state)
    return ExitCode.OK


@click.command("rebase")
@click.argument("batch", required=False)
@click.option("--onto", required=True, metavar="REV", help="The commit to begin from now.")
@click.option("-m", "--message", default="", metavar="WHY", help="Why, for the record.")
def rebase_command(batch: str | None, onto: str, message: str) -> int:
    """Put the batch on another base; `git batch resume` then replays and checks its commits."""
    from git_batch.app.rebasing import rebase

    session = told_session()
    done = rebase(session, batch, onto=onto, words=message, at=now())
    state = done.state
    many = "1 commit" if len(done.tasks) == 1 else f"{len(done.tasks)} commits"
    out(f"'{state.batch_id}' was rebased from {done.left.base[:12]} onto {state.base[:12]}")
    out(f"{many} will be replayed and checked; '{state.branch}' was at {done.left.head[:12]}")
    go_on(session, state)
    if done.foreign:
        out("not of any task, so not replayed; once the batch has ended, put them on top:")
        out(f"  git cherry-pick {' '.join(done.foreign)}")
        out(f"  {addressed('git batch bless', called(session, state.batch_id))}")
    return ExitCode.OK
