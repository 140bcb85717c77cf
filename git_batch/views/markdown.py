"""The morning report as Markdown, for an issue or a pull request.

Whatever comes from outside stands in code spans or fenced blocks, where Markdown, links, mentions
and HTML mean nothing; each fence is longer than any run of backticks inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from git_batch.core.model import BatchState, Plan
from git_batch.views.common import Around, brief
from git_batch.views.escape import one_line, printable
from git_batch.views.outline import Item, Logs, outline
from git_batch.views.standing import Board


def report_markdown(
    state: BatchState, plan: Plan, *, logs: Logs, live: bool, around: Around | None = None
) -> str:
    """Write the report as Markdown."""
    said = outline(Board(state, plan, live=live, around=around), logs)
    lines = [f"# Batch {code(said.batch)}: {code(said.title)}", ""]
    lines += [f"- {label}: {code(text)}" for label, text in said.facts]
    if said.needs:
        lines += ["", f"## Needs a human ({len(said.needs)})"]
    for item in said.needs:
        lines += ["", f"### {code(item.task)}: {item.word}", "", code(brief(item.reason)), ""]
        lines += fenced([command for _, command in item.commands], "sh")
    if said.following:
        lines += ["", "## Next", "", *fenced(said.following, "sh")]
    for heading, items in said.groups:
        lines += ["", f"## {heading.capitalize()}", ""]
        for item in items:
            lines += _item(item)
    return printable("\n".join(lines)) + "\n"


def code(text: str) -> str:
    """Write a text as a code span of one line."""
    shown = one_line(text)
    if not shown:
        return ""
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def fenced(lines: Sequence[str], language: str = "text") -> list[str]:
    """Write lines as a fenced block."""
    shown = [line for text in lines for line in printable(text).split("\n")]
    fence = "`" * max([3, *(_longest_run(line) + 1 for line in shown)])
    return [f"{fence}{language}", *shown, fence]


def _item(item: Item) -> list[str]:
    lines = [f"- {code(item.task)} {code(item.title)}: {', '.join((item.word, *item.facts))}"]
    reason = [("reason", item.reason)] if item.reason else []
    for label, text in [*reason, *item.details]:
        if "\n" in text:
            lines += [f"  - {label}:", *_inside(fenced([text]))]
        else:
            lines.append(f"  - {label}: {code(text)}")
    if item.tail:
        lines += [f"  - {item.tail_of}:", *_inside(fenced(item.tail))]
    return lines


def _inside(lines: Sequence[str]) -> list[str]:
    return ["", *(f"    {line}".rstrip() for line in lines), ""]


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
