"""`git batch verify`, `find`, `bless` and `recover`."""

from __future__ import annotations

import click

from git_batch.cli.output import emit, json_option, out, told_session
from git_batch.errors import ExitCode


@click.command("verify")
@click.argument("what", required=False, metavar="[BATCH|BRANCH|A..B]")
@json_option
@click.option("--trailers-only", is_flag=True,
              help="Without the record: compare the trailers with each other.")  # fmt: skip
def verify_command(what: str | None, as_json: bool, trailers_only: bool) -> int:
    """Say whether a branch is what the record of its batch says: ok, or every drift by name.

    Exit status: 0 whole, 4 drift, 3 can't tell. With --trailers-only, 0 says that the trailers
    agree with each other, and no more than that.
    """
    from git_batch.app import verifying
    from git_batch.app.session import open_session
    from git_batch.views.verify import verify_json, verify_text

    session = open_session()
    done = verifying.verify(session, what, trailers_only=trailers_only)
    found, meant = done.verdict, done.meant
    if as_json:
        emit(
            verify_json(
                found,
                what=meant.what,
                tip=meant.tip,
                record=meant.record,
                trailers_only=trailers_only,
            )
        )
    else:
        out(
            verify_text(
                found,
                what=meant.what,
                record=meant.record,
                trailers_only=trailers_only,
                hints=verifying.hints(session, done),
            )
        )
    if found.status == "drift":
        return ExitCode.FAILED
    agreed = trailers_only and found.batch is not None and verifying.readable(done)
    return ExitCode.OK if found.status == "whole" or agreed else ExitCode.REFUSED


@click.command("find")
@click.argument("task", required=False)
@click.option("--commit", "rev", metavar="REV", help="Name the task of a commit instead.")
@json_option
def find_command(task: str | None, rev: str | None, as_json: bool) -> int:
    """Print the commit of TASK, or with --commit the task of a commit.

    TASK may be BATCH:TASK. The record is asked first, then the trailers on every branch. Exit
    status 1 if there is none, 2 if more than one commit answers.
    """
    from git_batch.app.lookingup import at_once

    if (task is None) == (rev is None):
        raise click.UsageError("give either TASK or '--commit REV'")
    found = at_once(task) if task else None
    if found is None:
        from git_batch.app import finding
        from git_batch.app.session import open_session

        session = open_session()
        found = finding.by_task(session, task) if task else finding.by_commit(session, rev or "")
    if as_json:
        emit(
            {
                "version": 1,
                "batch_id": found.batch if found else None,
                "task": found.task if found else None,
                "commit": found.commit if found else None,
                "source": found.source if found else None,
            }
        )
    elif found is not None:
        out(found.commit if task else f"{found.batch}:{found.task}")
    if found is None:
        return ExitCode.STOPPED
    return ExitCode.OK


@click.command("bless")
@click.argument("batch", required=False)
@click.option("-m", "--message", default="", metavar="WHY", help="Why, for the record.")
def bless_command(batch: str | None, message: str) -> int:
    """Record the commits that you put on top of a batch's branch as foreign."""
    from git_batch.app.blessing import bless
    from git_batch.app.session import now
    from git_batch.cli.following import go_on
    from git_batch.core.standing import RESUMABLE

    session = told_session()
    done = bless(session, batch, words=message, at=now())
    many = f"{len(done.commits)} commits are" if len(done.commits) > 1 else "one commit is"
    out(f"{many} recorded as foreign on '{done.state.branch}':")
    out("\n".join(f"    {oid}" for oid in done.commits))
    if done.state.status in RESUMABLE:
        go_on(session, done.state)
    return ExitCode.OK


@click.command("recover")
@click.argument("branch", required=False)
@click.option("--plan", metavar="FILE", type=click.Path(),
              help="The plan file, so that a batch rebuilt from trailers can go on.")  # fmt: skip
def recover_command(branch: str | None, plan: str | None) -> int:
    """Bring back the record of the batch on BRANCH (default: the current one).

    From the objects of this repository while they last, from a remote's copy, else from the
    trailers of the commits; what these can't prove is said.
    """
    from git_batch.app.recovering import recover
    from git_batch.app.session import now

    for line in recover(told_session(), branch, plan=plan, at=now()):
        out(line)
    return ExitCode.OK
