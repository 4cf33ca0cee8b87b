"""One HTML page: the paper's figures, what the paper says beside what is found, and the table of all claims."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opinionpool.report.blocks import grid
from opinionpool.report.html import Html, document, joined, markup


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims."""

    where: str  # section, equation or figure
    says: str  # what the paper says, or prints
    found: str  # the number that decides, and how it was found
    holds: bool
    right: str = ""  # where it does not hold: what does


def close(a: float, b: float, places: float = 1e-9) -> bool:
    """Whether two numbers of ordinary size are equal but for rounding.

    >>> close(0.1 + 0.2, 0.3), close(0.3, 0.31)
    (True, False)
    """
    return abs(a - b) <= places * (1.0 + abs(a) + abs(b))


STYLE = "\n" + Path(__file__).with_name("paper.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Picture:
    """A figure of the page."""

    label: str  # such as "Figure 3a"
    caption: str
    svg: bytes  # the drawing
    files: tuple[str, ...]  # names of the files that hold it and its numbers


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    text: tuple[str, ...] = ()  # paragraphs
    pictures: tuple[Picture, ...] = ()
    claims: tuple[Claim, ...] = ()  # what the paper says about them
    # header, rows: a table of further numbers, the first column text
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """The page as one text that needs no other file.

    Examples
    --------
    >>> text = page("A title", ["One."], [Section("Part", claims=(Claim("(1)", "1 < 2", "-1", True),))])
    >>> "<td>−1</td>" in text, "1 &lt; 2" in text
    (True, True)
    """
    parts = [markup("<h1>{}</h1>", title), *(markup("<p>{}</p>", paragraph) for paragraph in lead)]
    parts += [part for section in sections for part in _section(section)]
    return document(title, STYLE, joined(parts, "\n"))


def _section(section: Section) -> Iterator[Html]:
    yield markup("<h2>{}</h2>", section.title)
    yield from (markup("<p>{}</p>", paragraph) for paragraph in section.text)
    if section.pictures:
        yield markup('<div class="pictures">{}</div>', joined(map(_picture, section.pictures)))
    if section.claims:
        header = ("Where", "What the paper says", "What is found", "Verdict")
        yield grid(header, map(_claim, section.claims), words=4).html()
    if section.rows:
        yield grid(section.header, section.rows).html()


def _picture(picture: Picture) -> Html:
    source = base64.b64encode(picture.svg).decode("ascii")
    links = joined([markup('<a href="{}">{}</a>', name, name) for name in picture.files], ", ")
    return markup(
        f'<figure><img alt="{{}}: {{}}" src="data:image/svg+xml;base64,{source}">'
        "<figcaption><b>{}.</b> {} {}</figcaption></figure>",
        picture.label, picture.caption, picture.label, picture.caption, links,
    )  # fmt: skip


def _claim(claim: Claim) -> list[str]:
    kind, phrase = ("yes", "✓ holds") if claim.holds else ("no", "✗ does not hold")
    right = markup('<span class="right">{}</span>', claim.right) if claim.right else ""
    verdict = markup(f'<span class="verdict {kind}">{{}}</span>', phrase)
    return [claim.where, claim.says, markup("{}{}", claim.found, right), verdict]
