"""Pages that need no other file: escaped text, tables, and the frame around them.

`Html` is text that is markup; whatever else goes into a page is escaped on the way, so that a name is never code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opinionpool.render import printable

__all__ = ["Html", "document", "joined", "markup", "name", "table", "text"]

_MINUS = re.compile(r"(?<![\w.])-(?=\d)")
_NO_CHARACTER = re.compile("[\ufdd0-\ufdef\ufffe\uffff]|[\U0001fffe\U0001ffff]")
_SPECIAL = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


class Html(str):
    """Text that is markup."""

    __slots__ = ()


def _escaped(value: str) -> str:
    return _NO_CHARACTER.sub("\ufffd", printable(value)).translate(_SPECIAL)


def text(value: str) -> Html:
    """A text, escaped, with minus signs before numbers; markup as it is.

    >>> text("1 < 2, -1"), text(Html("<b>1</b>"))
    ('1 &lt; 2, −1', '<b>1</b>')
    """
    return value if isinstance(value, Html) else Html(_MINUS.sub("−", _escaped(value)))


def name(value: str) -> Html:
    """A name as it was given, escaped, in whatever direction it is written.

    >>> name("<script>")
    '<bdi>&lt;script&gt;</bdi>'
    """
    return Html(f"<bdi>{_escaped(value)}</bdi>")


def markup(template: str, *values: str) -> Html:
    """A template with its places, ``{}``, filled in; values that are not markup are escaped.

    >>> markup("<td>{}</td>", "a & b")
    '<td>a &amp; b</td>'
    """
    return Html(template.format(*map(text, values)))


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Parts one after the other, with white space between them; those that are not markup are escaped.

    >>> joined(["<", Html("<br>")], " ")
    '&lt; <br>'
    """
    return Html(between.join(map(text, parts)))


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[bool],
    caption: str = "",
    kind: str = "",
) -> Html:
    """A table in a frame that can be scrolled where it is too wide.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequences of str
    numbers : sequence of bool
        Which columns stand at the right.
    caption : str
        What it shows.
    kind : str
        Its class.
    """
    classes = [' class="number"' if right else "" for right in numbers]
    head = joined(markup(f'<th scope="col"{kind}>{{}}</th>', cell) for kind, cell in zip(classes, header, strict=True))
    lines = []
    for row in rows:
        cells = joined(markup(f"<td{kind}>{{}}</td>", cell) for kind, cell in zip(classes, row, strict=True))
        lines.append(markup("<tr>{}</tr>\n", cells))
    told = markup("<caption>{}</caption>", caption) if caption else ""
    label = f' class="{kind}"' if kind else ""
    body = markup("<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>", head, joined(lines))
    return markup(f'<div class="wide"><table{label}>{{}}{{}}</table></div>', told, body)


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
