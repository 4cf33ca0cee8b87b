"""What Sphinx is to do beyond what it does anyway.

Parts of pages are written by the code that knows best: a mark in a page, such as ``<!-- commands -->``, is where they
go. In docstrings, names of classes, functions and what they have are links; a bare word, such as a parameter, is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from commands import commands
from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref

from opinionpool import __all__ as public
from opinionpool.findings import messages
from opinionpool.pools import ROWS
from opinionpool.pools.registry import POOLS
from opinionpool.tables.roles import SYNONYMS

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def columns() -> str:
    """The names of columns that are recognised, by role, in Markdown."""
    rows = [f"| `{role}` | {', '.join(f'`{name}`' for name in names[1:])} |" for role, names in SYNONYMS.items()]
    return "\n".join(["| column | also called |", "| --- | --- |", *rows])


def pools() -> str:
    """The table of pools, and which of them learn, in Markdown."""
    rows = [f"| `{row.name}` | {row.text} | {row.take_if} | {row.leave_if} |" for row in ROWS]
    learning = [f"`{name}`" for name, pool in POOLS.items() if pool.learns]
    told = f"Only {', '.join(learning[:-1])} and {learning[-1]} learn; the others take from outcomes the prior at most."
    return "\n".join(
        ["| pool | what it does | take it if | leave it if |", "| --- | --- | --- | --- |", *rows, "", told]
    )


def findings() -> str:
    """The table of messages, by section, with the names of what a text quotes in place of it."""
    lines: list[str] = []
    for section, rows in groupby(messages().values(), lambda message: message.section):
        lines += [f"### {section}", "", "| code | what it says | what to do |", "| --- | --- | --- |"]
        for row in rows:
            raised = f" ({row.kind if row.kind == 'serious' else f'`{row.kind}`'})" if row.kind else ""
            lines.append(f"| `{row.code}`{raised} | {_without_formats(row.text)} | {_without_formats(row.do)} |")
        lines.append("")
    return "\n".join(lines)


def _without_formats(template: str) -> str:
    """A template for people: a verb in the plural, a number with its noun, and names of other parameters as they are.

    >>> _without_formats("{count:row} {count:was/were} left out{more:raw}; {value} is not in {names:column}")
    'N rows were left out; *value* is not in columns *names*'
    """

    def shown(match: re.Match[str]) -> str:
        name, form = match[1], match[2] or ""
        if name == "more":
            return ""
        if "/" in form:
            return form.partition("/")[2]
        noun = form if form.isalpha() and form not in {"raw", "typed"} else ""
        if name in {"count", "total"}:
            return f"{'N' if name == 'count' else 'T'} {noun}s".removesuffix(" s")
        return f"{noun}s *{name}*".removeprefix("s ")

    return re.sub(r"\{(\w+)(?::([^}]*))?\}", shown, template)


def gains() -> str:
    """The table of the README that compares with other methods."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    return text[text.index("| resolved events |") :].partition("\n\n")[0]


# What Sphinx puts into descriptions of functions and classes, and what it is here.
WORDS = {" -- ": " – ", "Variables": "Attributes"}
PARTS: Mapping[str, Callable[[], str]] = {
    "<!-- commands -->": commands,
    "<!-- columns -->": columns,
    "<!-- findings -->": findings,
    "<!-- pools -->": pools,
    "<!-- gains -->": gains,
}


def _fill(_app: Sphinx, _page: str, source: list[str]) -> None:
    for mark, part in PARTS.items():
        if mark in source[0]:
            source[0] = source[0].replace(mark, part())


def _tidy(_app: Sphinx, page: nodes.document) -> None:
    """Take links off bare words, since types are described in words; and set dashes and titles as elsewhere."""
    for link in list(page.findall(pending_xref)):
        target = link["reftarget"]
        if link["refdomain"] == "py" and "." not in target and target not in public and not target[:1].isupper():
            link.replace_self(link.children)
    for text in list(page.findall(nodes.Text)):
        if text in WORDS:
            text.parent.replace(text, nodes.Text(WORDS[text]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Let pages be filled as they are read; files of forecasts are shown as they are."""
    app.connect("doctree-read", _tidy)
    app.connect("source-read", _fill)
    app.add_lexer("csv", TextLexer)
    return {"parallel_read_safe": True}
