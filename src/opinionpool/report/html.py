"""Pages that need no other file: escaped text, tables, and the frame around them.

`Html` is text that is markup; whatever else goes into a page is escaped on the way, so that a name is never code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from opinionpool.report.listing import printable

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
