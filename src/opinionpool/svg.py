"""Drawings as SVG inside a page: scales, ticks and axes. Colours are the page's, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from opinionpool.htmlpage import Html, joined, markup, text

__all__ = [
    "Scale",
    "band",
    "dot",
    "drawing",
    "label",
    "line",
    "nice_ticks",
    "number",
    "path",
    "rect",
    "shortened",
    "titled",
]


@dataclass(frozen=True)
class Scale:
    """From values to places in a drawing.

    Attributes
    ----------
    low, high : float
        The range of values.
    start, end : float
        Where they stand.
    shape : callable
        What is linear in place: the value itself, or a function of it.
    """

    low: float
    high: float
    start: float
    end: float
    shape: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """The place of a value, which is kept inside the range."""
        low, high = self.shape(self.low), self.shape(self.high)
        share = (self.shape(min(max(value, self.low), self.high)) - low) / ((high - low) or 1.0)
        return self.start + share * (self.end - self.start)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from `low` to `high`.

    >>> nice_ticks(-0.03, 0.11, 4)
    [0.0, 0.05, 0.1]
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def number(x: float) -> str:
    """A coordinate, short.

    >>> number(12.0), number(0.126), number(-0.001)
    ('12', '0.13', '0')
    """
    return f"{round(x, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def drawing(width: float, height: float, parts: Iterable[Html], says: str, kind: str = "") -> Html:
    """A figure in its own units, which a page scales; `says` is what it shows, for those who cannot see it."""
    label = f' class="{kind}"' if kind else ""
    label += f' width="{number(width)}"' if kind == "broad" else ""
    size = f'viewBox="0 0 {number(width)} {number(height)}"'
    return markup(f'<svg{label} role="img" {size} aria-label="{{}}">{{}}</svg>', says, joined(parts))


def label(x: float, y: float, content: str, *, anchor: str = "start", kind: str = "", turned: bool = False) -> Html:
    """A text."""
    style = f' class="{kind}"' if kind else ""
    turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return markup(f'<text x="{number(x)}" y="{number(y)}"{at}{style}{turn}>{{}}</text>', content)


def shortened(content: str, most: int) -> str:
    """A name that fits in a width of so many Latin letters, its end cut off.

    >>> shortened("logistic_regression", 12)
    'logistic_re…'
    """
    room = most - 1
    for place, character in enumerate(content):
        room -= 2 if east_asian_width(character) in "WF" else 1
        if room < 0 and place + 1 < len(content):
            return content[:place] + "…"
    return content


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    """A straight line."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return Html(f'<line class="{kind}" {ends}/>')


def rect(x: float, y: float, width: float, height: float, kind: str) -> Html:
    """A rectangle."""
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return Html(f'<rect class="{kind}" {size}/>')


def path(points: Sequence[tuple[float, float]], kind: str) -> Html:
    """A line through some points."""
    steps = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return Html(f'<path class="{kind}" d="M{steps}"/>')


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float], kind: str) -> Html:
    """The area between two lines."""
    there, back = list(zip(x, low, strict=True)), list(zip(x, high, strict=True))[::-1]
    steps = "L".join(f"{number(a)} {number(b)}" for a, b in [*there, *back])
    return Html(f'<path class="{kind}" d="M{steps}Z"/>')


def dot(x: float, y: float, kind: str, radius: float = 3.5) -> Html:
    """A point."""
    return Html(f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')


def titled(content: str, part: Html) -> Html:
    """A part that says more where a pointer rests on it."""
    return markup("<g><title>{}</title>{}</g>", text(content), part)
