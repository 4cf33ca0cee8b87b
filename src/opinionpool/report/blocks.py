"""Building blocks of reports and pages: escaped text, and sections, tables and figures that render as HTML.

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
from opinionpool.version import __version__

_MINUS = re.compile(r"(?<![\w.])-(?=\d)")
_NO_CHARACTER = re.compile("[\ufdd0-\ufdef\ufffe\uffff]|[\U0001fffe\U0001ffff]")
_SPECIAL = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


class Html(str):
    """Text that is already HTML markup, and so is not escaped when it is inserted into a page."""

    __slots__ = ()


def _escaped(value: str) -> str:
    return _NO_CHARACTER.sub("\ufffd", printable(" ".join(value.splitlines()))).translate(_SPECIAL)


def text(value: str) -> Html:
    """Return a value as escaped text with true minus signs; `Html` is returned unchanged.

    >>> text("1 < 2, -1"), text(Html("<b>1</b>"))
    ('1 &lt; 2, −1', '<b>1</b>')
    """
    return value if isinstance(value, Html) else Html(_MINUS.sub("−", _escaped(value)))


def name(value: str) -> Html:
    """Return a name as escaped text whose writing direction does not affect the text around it.

    >>> name("<script>")
    '<bdi>&lt;script&gt;</bdi>'
    """
    return Html(f"<bdi>{_escaped(value)}</bdi>")


# Characters of a question after which pages cut it off.
_LONGEST = 240


def event_name(event: str, question: str) -> Html:
    """Return an event's question as markup, followed by its id if the id is another text.

    >>> event_name("q7", "q7"), event_name("q7", "Will it rain?")
    ('<bdi>q7</bdi>', '<bdi>Will it rain?</bdi> <small class="id"><bdi>q7</bdi></small>')
    """
    if question == event:
        return name(event)
    short = question if len(question) <= _LONGEST else question[: _LONGEST - 1] + "…"
    return markup('{} <small class="id">{}</small>', name(short), name(event))


def markup(template: str, *values: str) -> Html:
    """Return `template` as markup with each ``{}`` replaced by a value, which is escaped unless it is markup.

    >>> markup("<td>{}</td>", "a & b")
    '<td>a &amp; b</td>'
    """
    return Html(template.format(*map(text, values)))


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Return parts as markup, joined by `between`; parts are escaped unless they are markup.

    >>> joined(["<", Html("<br>")], " ")
    '&lt; <br>'
    """
    return Html(between.join(map(text, parts)))


def document(title: str, style: str, body: Html, data: str = "") -> Html:
    """Return an HTML document; `style` is CSS or markup that loads it, `data` are attributes of the body element.

    >>> document("A & B", "p { margin: 0; }", Html("<p>One.</p>")).count("&amp;")
    1
    """
    head = markup("<title>{}</title>", title) + (style if isinstance(style, Html) else f"\n<style>{style}</style>")
    return Html(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}\n</head>\n<body{data}>\n{body}\n</body>\n</html>\n"
    )


def report_document(kicker: str, title: str, heading: str, below: str, parts: Iterable[Block], links: str = "") -> Html:
    """Return a report as HTML: its title, `kicker` and `heading` on top, the line `below`, `links`, and `parts`."""
    header = '<header><p class="kicker">{}</p><h1>{}</h1><p>{}</p></header>\n{}<main>\n{}\n</main>\n{}'
    footer = markup("<footer>Made by opinionpool {}.</footer>", __version__)
    body = markup(header, kicker, heading, below, links, rendered(parts), footer)
    return document(f"{kicker}: {title}", STYLE, body)


def sentence(wording: str) -> str:
    """Return the text of a note as a sentence, with a capital letter and a full stop."""
    return wording[:1].upper() + wording[1:] + ("" if wording.endswith((".", "!", "?")) else ".")


# CSS of reports.
STYLE = "\n" + Path(__file__).with_name("report.css").read_text(encoding="utf-8")


class Element(Protocol):
    """Protocol of blocks that have a method to render themselves as HTML."""

    def html(self) -> Html:
        """Return the block as HTML."""


Block: TypeAlias = Element | str


def rendered(blocks: Iterable[Block], between: str = "\n") -> Html:
    """Return blocks as markup, joined by `between`.

    >>> rendered(["1 < 2", Html("<hr>"), note("Small.")], "")
    '<p>1 &lt; 2</p><hr><p class="note">Small.</p>'
    """
    return joined((_html(block) for block in blocks), between)


def _html(block: Block) -> Html:
    if isinstance(block, Html):
        return block
    return paragraph(block) if isinstance(block, str) else block.html()


@dataclass(frozen=True)
class Section:
    """Part of a document, with a heading and an HTML id to which links can point."""

    anchor: str
    title: str
    parts: Sequence[Block]

    def html(self) -> Html:
        """Return the section as HTML."""
        return markup(f'<section id="{self.anchor}"><h2>{{}}</h2>\n{{}}\n</section>', self.title, rendered(self.parts))


def paragraph(content: str, kind: str = "") -> Html:
    """Return text or markup as a paragraph; `kind` is its CSS class: "lead", "note", "quiet" or "missing"."""
    return markup(f"<p{_class(kind)}>{{}}</p>", content)


def words(*sentences: str, kind: str = "") -> Html:
    """Return a paragraph of the CSS class `kind`, made of several sentences; empty ones are left out."""
    return paragraph(joined([each for each in sentences if each], " "), kind)


def note(content: str) -> Html:
    """Return a paragraph of text in small print."""
    return paragraph(content, "note")


def missing(why: str, what: str = "") -> Html:
    """Return a paragraph that says that `what` cannot be shown, and `why`."""
    reason = why[:1].upper() + why[1:].rstrip(".")
    return paragraph(f"{what} {reason}." if what else f" {reason}.", "missing")


@dataclass(frozen=True)
class Table:
    """HTML table of columns, which scrolls sideways if it is too wide for the page."""

    columns: Sequence[Column]
    caption: str = ""
    # its classes; "stack" for one whose rows become blocks on a narrow screen, "grouped" for lines only before rows
    # that have a first cell
    kind: str = ""
    ident: str = ""

    def html(self) -> Html:
        """Return the table as HTML."""
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
    """Table with the header `header` and text cells `rows`; all columns after the first `words` are numbers."""
    cells = list(zip(*rows, strict=True)) or [()] * len(header)
    columns = [
        Column(title, values, title, str if i < words else as_is, page=str)
        for i, (title, values) in enumerate(zip(header, cells, strict=True))
    ]
    return Table(columns, caption)


def long_table(columns: Sequence[Column], noun: str, first: int, most: int, kind: str = "stack") -> list[Block]:
    """Table of the first rows and, folded below it, a table of the next `most` rows; `noun` says what a row is."""
    rows = len(columns[0].values)
    parts: list[Block] = [Table([column.take(range(min(first, rows))) for column in columns], kind=kind)]
    if rows > first:
        rest = range(first, min(first + most, rows))
        which = "next" if rows > first + most else "other"
        more = Table([column.take(rest) for column in columns], kind=kind)
        parts.append(details(f"The {which} {counted(len(rest), noun)}", [more]))
    if rows > first + most:
        parts.append(note(f"{whole(rows - first - most)} more are left out of this page."))
    return parts


def figure(drawing: Html, caption: str = "", kind: str = "") -> Html:
    """Return a drawing with its caption as an HTML figure of the CSS class `kind`."""
    below = markup("<figcaption>{}</figcaption>", caption) if caption else ""
    return markup(f"<figure{_class(kind)}>{{}}{{}}</figure>", drawing, below)


def beside(parts: Sequence[Block], drawn: Block) -> Html:
    """Return blocks at the left of the figure `drawn`; on a narrow screen the figure stands below them."""
    return markup('<div class="columns"><div>{}</div>{}</div>', rendered(parts), _html(drawn))


@dataclass(frozen=True)
class Card:
    """Box with a title, a large number, lines in small print and optionally a picture."""

    title: str
    value: str
    lines: Sequence[str]
    picture: str = ""
    own: bool = False  # whether the number is about the pool, which is then highlighted


def cards(shown: Sequence[Card]) -> Html:
    """Return `Card`s next to each other, as HTML."""
    items = []
    for card in shown:
        small = joined(markup('<span class="quiet">{}</span>', line) for line in card.lines)
        start = f"<li{_class('own' if card.own else '')}>"
        items.append(markup(start + "<span>{}</span><b>{}</b>{}{}</li>", card.title, card.value, card.picture, small))
    return markup('<ul class="cards">{}</ul>', joined(items))


def details(summary: str, parts: Sequence[Block], ident: str = "") -> Html:
    """Return blocks that are folded until the reader clicks `summary`; `ident` is their HTML id."""
    start = f'<details id="{ident}">' if ident else "<details>"
    return markup(start + "<summary>{}</summary>{}</details>", summary, rendered(parts))


def listing(items: Iterable[str]) -> Html:
    """Return sentences as a bulleted HTML list."""
    return markup("<ul>{}</ul>", joined(markup("<li>{}</li>", item) for item in items))


def definitions(entries: Iterable[tuple[str, str]]) -> Html:
    """Return an HTML definition list of pairs of a term and its explanation."""
    return markup("<dl>{}</dl>", joined(markup("<dt>{}</dt><dd>{}</dd>", *entry) for entry in entries))


def typed_code(content: str, ident: str = "") -> Html:
    """Return a text that the reader is to type, such as a command, in a code block with the HTML id `ident`."""
    start = f'<pre id="{ident}" tabindex="0">' if ident else "<pre><code>"
    return markup(start + ("{}</pre>" if ident else "{}</code></pre>"), content)


def _cell(column: Column, value: Any, unknown: str) -> str:  # noqa: ANN401 - whatever a column holds
    """Return a value as the text of a page's table cell: names as markup, numbers formatted, None as `unknown`."""
    if value is None:
        return unknown if column.numeric else ""
    if isinstance(value, Html):
        return value
    if column.page is not None:
        return column.page(value)
    return column.show(value) if column.numeric else name(str(value))


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
