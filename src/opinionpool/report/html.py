"""Pages that need no other file: escaped text, tables, and the frame around them.

`Html` is text that is markup; whatever else goes into a page is escaped on the way, so that a name is never code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
    """A name as it was given, escaped, in whatever direction it is written.

    >>> name("<script>")
    '<bdi>&lt;script&gt;</bdi>'
    """
    return Html(f"<bdi>{_escaped(value)}</bdi>")


# Longer wordings of a question are cut off in pages.
_LONGEST = 240


def event_name(event: str, question: str) -> Html:
    """What an event asks, with its id behind it where that is something else.

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
        Its classes; "stack" for one whose rows become blocks on a narrow screen, "grouped" for lines only before rows
        that have a first cell.
    """
    classes = [' class="number"' if right else "" for right in numbers]
    head = joined(markup(f'<th scope="col"{kind}>{{}}</th>', cell) for kind, cell in zip(classes, header, strict=True))
    labels = [markup(' data-label="{}"', cell) if "stack" in kind.split() else Html("") for cell in header]
    starts = [Html(f"<td{cell}{label}>") for cell, label in zip(classes, labels, strict=True)]
    lines = []
    for row in rows:
        cells = joined(markup("{}{}</td>", start, cell) for start, cell in zip(starts, row, strict=True))
        lines.append(markup("<tr>{}</tr>\n", cells))
    phrase = markup("<caption>{}</caption>", caption) if caption else ""
    label = f' class="{kind}"' if kind else ""
    body = markup("<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>", head, joined(lines))
    return markup(f'<div class="wide" tabindex="0"><table{label}>{{}}{{}}</table></div>', phrase, body)


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


def section(anchor: str, title: str, *parts: str) -> Html:
    """A part of the page with its heading."""
    return markup(f'<section id="{anchor}"><h2>{{}}</h2>\n{{}}\n</section>', title, joined(parts, "\n"))


def missing(what: str, why: str) -> Html:
    """What cannot be shown, and why."""
    return markup('<p class="missing">{} {}.</p>', what, why[:1].upper() + why[1:].rstrip("."))


def sentence(wording: str) -> str:
    """A note as a sentence."""
    return wording[:1].upper() + wording[1:] + ("" if wording.endswith((".", "!", "?")) else ".")


def columns(words: Sequence[str], figure: str) -> Html:
    """Words beside a figure, or above it on a narrow screen."""
    return markup('<div class="columns"><div>{}</div>{}</div>', joined(words, "\n"), figure)


def folded(summary: str, content: str) -> Html:
    """What is shown when its summary is clicked."""
    return markup("<details><summary>{}</summary>{}</details>", summary, content)


STYLE = """
:root { color-scheme: light dark; --paper: #fff; --soft: #f4f6f8; --ink: #191d21; --quiet: #59636d; --line: #d8dee4;
  --pool: #0b4f9e; --average: #b04a06; --shade: #0b4f9e; --warm: #b04a06; --zero: #8b959e; --good: #0b6b3a;
  --bad: #a4231f; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --soft: #1e2329; --ink: #e8ebee; --quiet: #a5b0ba; --line: #363d45; --pool: #82b6ff;
    --average: #f2a763; --shade: #82b6ff; --warm: #f2a763; --zero: #7d8790; --good: #6fd19a; --bad: #ff9a92; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.5rem 4rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
header { border-bottom: 2px solid var(--ink); padding-bottom: 1.1rem; }
.kicker { margin: 0 0 .35rem; color: var(--quiet); font-size: .85rem; letter-spacing: .04em; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; letter-spacing: -.01em; }
header p { margin: 0; color: var(--quiet); }
nav ul { max-width: none; display: flex; flex-wrap: wrap; gap: .3rem 1.15rem; list-style: none; margin: .9rem 0 0;
  padding: 0; font-size: .9rem; }
a { color: var(--pool); text-underline-offset: .15em; }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .6rem; letter-spacing: -.005em; }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
section { margin-top: 3rem; scroll-margin-top: 1rem; }
p, ul, dl { max-width: 44rem; margin: .6rem 0; }
.lead { font-size: 1.15rem; line-height: 1.5; }
.quiet, figcaption, .note { color: var(--quiet); font-size: .9rem; }
.missing { border-left: 3px solid var(--line); padding-left: .9rem; color: var(--quiet); }
.cards { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 1rem; margin: 1.2rem 0; padding: 0;
  list-style: none; max-width: none; }
.cards li { background: var(--soft); border-radius: .5rem; padding: .9rem 1.1rem 1rem;
  border-top: 3px solid var(--line); min-width: 0; }
.cards .own { border-top-color: var(--pool); }
.cards b { display: block; font-size: 2.1rem; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }
.cards span { display: block; overflow-wrap: anywhere; }
.cards .quiet { line-height: 1.4; margin-top: .25rem; }
.columns { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 2.75rem; align-items: start; }
.columns > * { min-width: 0; }
.columns > figure { margin-top: .4rem; }
figure { margin: 1rem 0; max-width: 29rem; min-width: 0; }
figure.large { max-width: none; }
figure svg[role] { display: block; width: 100%; height: auto; }
figure svg.broad { width: auto; max-width: none; }
figcaption { margin-top: .5rem; line-height: 1.45; }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 1.3rem 1.6rem;
  margin: 1rem 0; }
.curves figure { margin: 0; }
.curves figcaption { margin-top: .25rem; overflow-wrap: anywhere; }
.curves b { color: var(--ink); }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); font-size: .9rem; padding-bottom: .4rem; }
th, td { text-align: left; padding: .42rem 1.1rem .42rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-size: .84rem; font-weight: 600; vertical-align: bottom; }
thead th { border-bottom: 1px solid var(--zero); }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
th { overflow-wrap: break-word; }
td:last-child, th:last-child { padding-right: .2rem; }
table.plain { width: auto; }
td:first-child { overflow-wrap: anywhere; min-width: 6.5rem; }
.id { color: var(--quiet); font-size: .84rem; font-weight: 400; }
.grouped td { border-bottom: 0; }
.grouped tr:has(+ tr > td:first-child:not(:empty)) td, .grouped tr:last-child td
  { border-bottom: 1px solid var(--line); }
details { margin: .8rem 0; max-width: none; }
summary { cursor: pointer; color: var(--pool); font-size: .92rem; padding: .2rem 0; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0; }
pre { background: var(--soft); border-radius: .4rem; padding: .7rem .9rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .88rem; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
.hash { overflow-wrap: anywhere; font-size: .84rem; }
.checks { list-style: none; padding: 0; max-width: 48rem; }
.checks li { padding: .55rem 0 .55rem 9.8rem; position: relative; border-bottom: 1px solid var(--line); }
.checks .mark { position: absolute; left: 0; top: .55rem; font-size: .84rem; font-weight: 650; color: var(--good); }
.checks .idle .mark { color: var(--quiet); }
.checks .serious .mark { color: var(--bad); }
.turn { margin-top: 3rem; max-width: none; border-top: 2px solid var(--ink); padding-top: 1rem; color: var(--quiet);
  break-after: avoid; }
.legend { list-style: none; padding: 0; margin: .6rem 0; display: flex; flex-wrap: wrap; gap: .25rem 1.2rem;
  font-size: .9rem; color: var(--quiet); max-width: none; }
.legend li { display: flex; align-items: center; gap: .45rem; }
.legend svg { width: 28px; height: 16px; flex: none; }
svg text { font-size: 12.5px; fill: var(--ink); font-family: inherit; unicode-bidi: isolate; }
svg .tick, svg .quiet { fill: var(--quiet); font-size: 11.5px; font-variant-numeric: tabular-nums; }
svg .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 5px; stroke-linejoin: round; }
.range { fill: var(--shade); fill-opacity: .45; }
.one { stroke: var(--quiet); stroke-width: 1.5; }
.level { stroke: var(--ink); stroke-width: 2.5; fill: none; }
.up { fill: var(--pool); fill-opacity: .8; }
.down { fill: var(--average); fill-opacity: .8; }
.tip { fill: none; stroke: var(--paper); stroke-width: 1.6; }
.link { stroke: var(--zero); stroke-width: 1; stroke-dasharray: 2 2; }
svg .small { font-size: 11.5px; }
.mini .tick, .mini .quiet { font-size: 13px; }
svg .strong { font-weight: 600; }
svg .figures { font-variant-numeric: tabular-nums; }
.grid { stroke: var(--line); stroke-width: 1; }
.zero { stroke: var(--zero); stroke-width: 1.5; }
.interval { stroke: var(--pool); stroke-width: 2.5; stroke-linecap: round; opacity: .55; }
.point { fill: var(--pool); stroke: var(--paper); stroke-width: 1.2; }
.observed { fill: none; stroke: var(--pool); stroke-width: 2.4; stroke-linejoin: round; }
.average { fill: none; stroke: var(--average); stroke-width: 2; stroke-dasharray: 7 4; }
.model { fill: none; stroke: var(--average); stroke-width: 2; stroke-dasharray: 7 4; }
.diagonal { fill: none; stroke: var(--zero); stroke-width: 1.2; stroke-dasharray: 2 3; }
.band { fill: var(--shade); fill-opacity: .16; }
.band-line { stroke: var(--shade); stroke-opacity: .3; stroke-width: 8; }
.bar { fill: var(--zero); }
.cool, .warm { shape-rendering: crispEdges; }
.cool { fill: var(--shade); }
.warm { fill: var(--warm); }
.dash { stroke: var(--ink); stroke-width: 1; fill: none; }
.frame { fill: none; stroke: var(--line); }
svg .cell { font-size: 11px; font-variant-numeric: tabular-nums; }
svg .inverse { fill: var(--paper); }
.bar-cell { width: 9.5rem; height: 1.75rem; display: block; }
.cards .bar-cell { width: 100%; max-width: 16rem; height: 2.6rem; }
footer { margin-top: 3.5rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--quiet);
  font-size: .88rem; }
@media screen and (max-width: 44rem) {
  body { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.4rem; }
  section { margin-top: 2.4rem; }
  .columns { grid-template-columns: minmax(0, 1fr); }
  .cards { grid-template-columns: minmax(0, 1fr); gap: .6rem; }
  .cards li { display: grid; grid-template-columns: minmax(0, 1fr) auto; column-gap: 1rem; align-items: baseline;
    padding: .7rem .9rem; }
  .cards b { font-size: 1.6rem; grid-column: 2; grid-row: 1; }
  .cards .quiet { grid-column: 1 / -1; }
  th, td { padding-right: .8rem; }
  table { font-size: .86rem; }
  .wide td:first-child, .wide th:first-child { position: sticky; left: 0; background: var(--paper); min-width: 7.5rem; }
  .stack thead { display: none; }
  .stack, .stack tbody, .stack caption { display: block; }
  .stack tr { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .1rem .9rem; padding: .6rem 0;
    border-bottom: 1px solid var(--line); }
  .stack td, .wide .stack td:first-child { display: flex; justify-content: space-between; gap: .4rem; border: 0;
    padding: 0; min-width: 0; position: static; white-space: nowrap; }
  .wide .stack td:first-child { white-space: normal; }
  .stack td::before { content: attr(data-label); color: var(--quiet); text-align: left; font-weight: 400;
    font-size: .8rem; white-space: normal; min-width: 0; }
  .stack td:empty { display: none; }
  .wide .stack td:first-child, .stack td:has(svg) { grid-column: 1 / -1; }
  .stack td:first-child .id { flex: none; max-width: 50%; }
  .stack td:first-child { font-weight: 600; }
  .stack td:first-child::before, .stack td:has(svg)::before { content: none; }
  .stack .bar-cell { width: 100%; }
  figure svg.broad { max-width: 100%; }
  .curves { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.1rem .9rem; }
  .checks li { padding-left: 0; padding-top: 1.8rem; }
}
@media print {
  .wide svg { max-width: 100%; height: auto; }
  @page { margin: 15mm; }
  :root { color-scheme: light; }
  html { font-size: 9.6pt; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  summary { list-style: none; color: var(--ink); font-weight: 600; }
  summary::-webkit-details-marker { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  @supports not selector(::details-content) { summary::after { content: " (on screen)"; font-weight: 400; } }
  dt { break-after: avoid; }
  h2, h3, caption, summary, section > h2 + p, .legend, section > p:has(+ figure), section > p:has(+ .wide)
  { break-after: avoid; }
  thead { display: table-header-group; }
  p, li, dd, .wide { break-inside: avoid; }
  .wide:has(+ .note) { break-after: avoid; }
  .cards li, pre { border: 1px solid var(--line); }
  .cards .own { border-top: 3px solid var(--pool); }
  tr, figure, .cards, .checks li, .columns { break-inside: avoid; }
  .wide { overflow: visible; }
  .curves { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 1rem .8rem; }
  th, td { padding: .35rem .8rem .35rem 0; }
  figure svg.broad { max-width: 100%; }
  section { margin-top: 2.2rem; }
  footer { display: none; }
  a { color: inherit; text-decoration: none; }
}
"""
