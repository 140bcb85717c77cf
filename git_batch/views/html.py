"""The morning report as one page: nothing is loaded, nothing runs, everything is escaped.

Headings, lists and a table with headers make it readable by ear; the colours follow the reader's
light or dark setting, and no meaning is in a colour alone. The policy in its head forbids scripts
and loading of any kind, should an escape ever be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from git_batch.core.model import BatchState, Plan
from git_batch.views.common import Around, brief
from git_batch.views.escape import one_line, printable
from git_batch.views.outline import Item, Logs, outline
from git_batch.views.standing import Board

_STYLE = """\
:root { color-scheme: light dark; --edge: #767676; --soft: #f3f3f3; }
@media (prefers-color-scheme: dark) { :root { --edge: #8f8f8f; --soft: #222; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem; }
pre, code { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--soft); border-left: 3px solid var(--edge); padding: .5rem; overflow: auto; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
article { border-top: 1px solid var(--edge); }
table { border-collapse: collapse; } caption { text-align: left; font-weight: 600; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--edge); }
"""

_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
"""


def report_html(
    state: BatchState, plan: Plan, *, logs: Logs, live: bool, around: Around | None = None
) -> str:
    """Write the report as a self-contained page."""
    said = outline(Board(state, plan, live=live, around=around), logs)
    title = f"{one_line(said.batch)}: {one_line(said.title)}"
    parts = [_HEAD.format(title=safe(title), style=_STYLE), f"<h1>{bidi(title)}</h1>"]
    parts.append(_facts(said.facts))
    if said.needs:
        parts.append(f"<h2>Needs a human ({len(said.needs)})</h2>")
        parts += [_need(item) for item in said.needs]
    if said.following:
        parts += ["<h2>Next</h2>", _block(said.following)]
    for heading, items in said.groups:
        parts.append(f"<h2>{safe(heading.capitalize())}</h2>")
        parts += [_item(item) for item in items] if _rich(items) else [_table(heading, items)]
    return "\n".join([*parts, "</main>", "</body>", "</html>"]) + "\n"


def safe(text: str) -> str:
    """Escape a text for HTML and for the eye."""
    return escape(printable(text))


def bidi(text: str) -> str:
    """Escape a text and keep its direction from turning its surroundings round."""
    return f"<bdi>{safe(text)}</bdi>"


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    rows = (f"<dt>{safe(label)}</dt><dd>{_value(text)}</dd>" for label, text in pairs)
    return "\n".join(["<dl>", *rows, "</dl>"])


def _value(text: str) -> str:
    return _block([text]) if "\n" in text else bidi(text)


def _block(lines: Sequence[str]) -> str:
    return f'<pre tabindex="0"><code>{safe(chr(10).join(lines))}</code></pre>'


def _need(item: Item) -> str:
    head = f"<h3>{bidi(item.task)}: {safe(item.word)}</h3>"
    commands = _block([command for _, command in item.commands])
    return f"<article>\n{head}\n<p>{bidi(one_line(brief(item.reason)))}</p>\n{commands}\n</article>"


def _rich(items: Sequence[Item]) -> bool:
    """Tell whether items have more to say than fits into a row."""
    return any(item.details or item.tail for item in items)


def _item(item: Item) -> str:
    facts = ", ".join((item.word, *item.facts))
    pairs = [("title", item.title), ("outcome", facts)]
    pairs += [("reason", item.reason)] if item.reason else []
    parts = [f"<h3>{bidi(item.task)}</h3>", _facts([*pairs, *item.details])]
    if item.tail:
        parts += [f"<p>{safe(item.tail_of)}:</p>", _block(item.tail)]
    return "\n".join(["<article>", *parts, "</article>"])


def _table(heading: str, items: Sequence[Item]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("task", "title", "outcome", "why"))
    rows = (
        f'<tr><th scope="row">{bidi(item.task)}</th><td>{bidi(one_line(item.title))}</td>'
        f"<td>{safe(', '.join((item.word, *item.facts)))}</td>"
        f"<td>{bidi(one_line(item.reason))}</td></tr>"
        for item in items
    )
    body = "\n".join(rows)
    return (
        f"<table>\n<caption>{safe(heading)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )
