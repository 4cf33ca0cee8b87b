"""What reports and pages are made of: escaped text, and the sections, tables and figures that render themselves.

`Html` is text that is markup; whatever else goes into a page is escaped on the way, so that a name is never code. A
string among blocks is a paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from opinionpool.report.listing import Column, as_is, printable, whole
from opinionpool.text import counted

_MINUS = re.compile(r"(?<![\w.])-(?=\d)")
_NO_CHARACTER = re.compile("[\ufdd0-\ufdef\ufffe\uffff]|[\U0001fffe\U0001ffff]")
_SPECIAL = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


class Html(str):
    """Text that is markup."""

    __slots__ = ()


def _escaped(value: str) -> str:
    return _NO_CHARACTER.sub("\ufffd", printable(" ".join(value.splitlines()))).translate(_SPECIAL)


def text(value: str) -> Html:
    """A text, escaped, with minus signs before numbers; markup as it is.

    >>> text("1 < 2, -1"), text(Html("<b>1</b>"))
    ('1 &lt; 2, −1', '<b>1</b>')
    """
    return value if isinstance(value, Html) else Html(_MINUS.sub("−", _escaped(value)))


def name(value: str) -> Html:
    """A name, escaped and isolated from the writing direction of its surroundings.

    >>> name("<script>")
    '<bdi>&lt;script&gt;</bdi>'
    """
    return Html(f"<bdi>{_escaped(value)}</bdi>")


# Longer wordings of a question are cut off in pages.
_LONGEST = 240


def event_name(event: str, question: str) -> Html:
    """The question of an event as markup, followed by its id where the two differ.

    >>> event_name("q7", "q7"), event_name("q7", "Will it rain?")
    ('<bdi>q7</bdi>', '<bdi>Will it rain?</bdi> <small class="id"><bdi>q7</bdi></small>')
    """
    if question == event:
        return name(event)
    short = question if len(question) <= _LONGEST else question[: _LONGEST - 1] + "…"
    return markup('{} <small class="id">{}</small>', name(short), name(event))


def markup(template: str, *values: str) -> Html:
    """A template with its places, ``{}``, filled in; values that are not markup are escaped.

    >>> markup("<td>{}</td>", "a & b")
    '<td>a &amp; b</td>'
    """
    return Html(template.format(*map(text, values)))


def joined(parts: Iterable[str], between: str = "") -> Html:
    """The parts joined by `between`; parts that are not markup are escaped.

    >>> joined(["<", Html("<br>")], " ")
    '&lt; <br>'
    """
    return Html(between.join(map(text, parts)))


def document(title: str, style: str, body: Html) -> Html:
    """The whole page.

    >>> document("A & B", "p { margin: 0; }", Html("<p>One.</p>")).count("&amp;")
    1
    """
    head = markup("<title>{}</title>", title)
    return Html(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def sentence(wording: str) -> str:
    """A note as a sentence."""
    return wording[:1].upper() + wording[1:] + ("" if wording.endswith((".", "!", "?")) else ".")


# How reports look.
STYLE = "\n" + Path(__file__).with_name("report.css").read_text(encoding="utf-8")


class Element(Protocol):
    """Protocol of blocks that render themselves as HTML."""

    def html(self) -> Html:
        """The markup."""


Block: TypeAlias = Element | str


def rendered(blocks: Iterable[Block], between: str = "\n") -> Html:
    """Blocks as markup, one after the other.

    >>> rendered(["1 < 2", Html("<hr>"), Text("Small.", "note")], "")
    '<p>1 &lt; 2</p><hr><p class="note">Small.</p>'
    """
    return joined((_html(block) for block in blocks), between)


def _html(block: Block) -> Html:
    if isinstance(block, Html):
        return block
    return Text(block).html() if isinstance(block, str) else block.html()


@dataclass(frozen=True)
class Section:
    """A part of a document with a heading, and the anchor that links lead to."""

    anchor: str
    title: str
    parts: Sequence[Block]

    def html(self) -> Html:
        """The markup."""
        return markup(f'<section id="{self.anchor}"><h2>{{}}</h2>\n{{}}\n</section>', self.title, rendered(self.parts))


@dataclass(frozen=True)
class Text:
    """A paragraph of text or markup."""

    content: str
    kind: str = ""  # its class: "lead", "note", "quiet" or "missing"

    def html(self) -> Html:
        """The markup."""
        return markup(f"<p{_class(self.kind)}>{{}}</p>", self.content)


def words(*sentences: str, kind: str = "") -> Text:
    """A paragraph of several sentences; empty ones are left out."""
    return Text(joined([each for each in sentences if each], " "), kind)


def note(content: str) -> Text:
    """A paragraph in small print."""
    return Text(content, "note")


def missing(why: str, what: str = "") -> Text:
    """A paragraph on what cannot be shown, and why."""
    reason = why[:1].upper() + why[1:].rstrip(".")
    return Text(f"{what} {reason}." if what else f" {reason}.", "missing")


@dataclass(frozen=True)
class Table:
    """Columns beside each other, in a frame that can be scrolled where it is too wide."""

    columns: Sequence[Column]
    caption: str = ""
    # its classes; "stack" for one whose rows become blocks on a narrow screen, "grouped" for lines only before rows
    # that have a first cell
    kind: str = ""
    ident: str = ""

    def html(self) -> Html:
        """The markup."""
        shown = [column for column in self.columns if column.title is not None]
        classes = [' class="number"' if column.numeric else "" for column in shown]
        heads = (markup(f'<th scope="col"{c}>{{}}</th>', column.title or "") for c, column in _beside(classes, shown))
        stacked, grouped = "stack" in self.kind.split(), "grouped" in self.kind.split()
        labels = [markup(' data-label="{}"', column.title or "") if stacked else "" for column in shown]
        starts = [Html(f"<td{c}{label}>") for c, label in _beside(classes, labels)]
        cells = [[_cell(column, value, "" if grouped else "–") for value in column.shown] for column in shown]
        rows = (
            markup("<tr>{}</tr>\n", joined(markup("{}{}</td>", *each) for each in _beside(starts, row)))
            for row in zip(*cells, strict=True)
        )
        head = markup("<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>", joined(heads), joined(rows))
        caption = markup("<caption>{}</caption>", self.caption) if self.caption else ""
        ident = f' id="{self.ident}"' if self.ident else ""
        frame = f'<div class="wide" tabindex="0"><table{_class(self.kind)}{ident}>{{}}{{}}</table></div>'
        return markup(frame, caption, head)


def _beside(first: Iterable[Any], second: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(first, second, strict=True)


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", words: int = 1) -> Table:
    """A table of cells that are texts already: the first `words` columns hold words, the others numbers."""
    cells = list(zip(*rows, strict=True)) or [()] * len(header)
    columns = [
        Column(title, values, title, str if i < words else as_is, page=str)
        for i, (title, values) in enumerate(zip(header, cells, strict=True))
    ]
    return Table(columns, caption)


def long_table(columns: Sequence[Column], noun: str, first: int, most: int, kind: str = "stack") -> list[Block]:
    """A table whose first rows are shown at once, the next ones behind a summary; at most `most` of these."""
    rows = len(columns[0].values)
    parts: list[Block] = [Table([column.take(range(min(first, rows))) for column in columns], kind=kind)]
    if rows > first:
        rest = range(first, min(first + most, rows))
        which = "next" if rows > first + most else "other"
        more = Table([column.take(rest) for column in columns], kind=kind)
        parts.append(Details(f"The {which} {counted(len(rest), noun)}", [more]))
    if rows > first + most:
        parts.append(note(f"{whole(rows - first - most)} more are left out of this page."))
    return parts


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption."""

    drawing: Html
    caption: str = ""
    kind: str = ""

    def html(self) -> Html:
        """The markup."""
        caption = markup("<figcaption>{}</figcaption>", self.caption) if self.caption else ""
        return markup(f"<figure{_class(self.kind)}>{{}}{{}}</figure>", self.drawing, caption)


@dataclass(frozen=True)
class Beside:
    """Blocks beside a figure, or above it on a narrow screen."""

    parts: Sequence[Block]
    figure: Block

    def html(self) -> Html:
        """The markup."""
        return markup('<div class="columns"><div>{}</div>{}</div>', rendered(self.parts), _html(self.figure))


@dataclass(frozen=True)
class Card:
    """A large number under its title, perhaps with a picture, over lines in small print."""

    title: str
    value: str
    lines: Sequence[str]
    picture: str = ""
    own: bool = False  # whether it is the pool's


@dataclass(frozen=True)
class Cards:
    """Cards beside each other."""

    cards: Sequence[Card]

    def html(self) -> Html:
        """The markup."""
        items = []
        for card in self.cards:
            small = joined(markup('<span class="quiet">{}</span>', line) for line in card.lines)
            start = f"<li{_class('own' if card.own else '')}>"
            items.append(
                markup(start + "<span>{}</span><b>{}</b>{}{}</li>", card.title, card.value, card.picture, small)
            )
        return markup('<ul class="cards">{}</ul>', joined(items))


@dataclass(frozen=True)
class Details:
    """Blocks that are shown when their summary is clicked."""

    summary: str
    parts: Sequence[Block]
    ident: str = ""

    def html(self) -> Html:
        """The markup."""
        start = f'<details id="{self.ident}">' if self.ident else "<details>"
        return markup(start + "<summary>{}</summary>{}</details>", self.summary, rendered(self.parts))


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: Sequence[str]
    kind: str = ""

    def html(self) -> Html:
        """The markup."""
        return markup(f"<ul{_class(self.kind)}>{{}}</ul>", joined(markup("<li>{}</li>", item) for item in self.items))


@dataclass(frozen=True)
class Definitions:
    """A definition list: pairs of a term and its text."""

    entries: Sequence[tuple[str, str]]

    def html(self) -> Html:
        """The markup."""
        return markup("<dl>{}</dl>", joined(markup("<dt>{}</dt><dd>{}</dd>", *entry) for entry in self.entries))


@dataclass(frozen=True)
class Code:
    """Text that is typed, as it is."""

    content: str
    ident: str = ""

    def html(self) -> Html:
        """The markup."""
        start = f'<pre id="{self.ident}" tabindex="0">' if self.ident else "<pre><code>"
        return markup(start + ("{}</pre>" if self.ident else "{}</code></pre>"), self.content)


def _cell(column: Column, value: Any, unknown: str) -> str:  # noqa: ANN401 - whatever a column holds
    """A value as a page shows it: a number as in other tables, a text as a name."""
    if value is None:
        return unknown if column.numeric else ""
    if isinstance(value, Html):
        return value
    if column.page is not None:
        return column.page(value)
    return column.show(value) if column.numeric else name(str(value))


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
