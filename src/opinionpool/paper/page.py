"""One HTML page: the paper's figures, what the paper says beside what is found, and the table of all claims."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opinionpool.report.html import Html, document, joined, markup, table


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


STYLE = """
:root { --ink: #1c1f23; --quiet: #5c6670; --line: #d9dee3; --yes: #0b6b3a; --no: #a4231f; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: #fff;
  font: 1rem/1.5 Charter, "Bitstream Charter", Georgia, serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p, ul { max-width: 46rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1.5rem; margin: 1rem 0; }
figure { margin: 0; max-width: 34rem; }
figure img { width: 100%; height: auto; display: block; }
figcaption { color: var(--quiet); font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0; border-bottom: 1px solid var(--line); }
th { font-size: .85rem; color: var(--quiet); font-weight: 600; }
td:first-child { min-width: 7.5rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; padding-right: 1.2rem; }
.verdict { white-space: nowrap; font-weight: 700; }
.yes { color: var(--yes); }
.no { color: var(--no); }
.right { display: block; color: var(--quiet); }
a { color: #0b3c8c; }
@media print { h2 { break-after: avoid; } tr, figure { break-inside: avoid; } }
"""


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
        yield table(header, map(_claim, section.claims), numbers=[False] * 4)
    if section.rows:
        yield table(section.header, section.rows, numbers=[False, *[True] * (len(section.header) - 1)])


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
