"""How often intervals contained the truth in simulations, which is what reports claim of them."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

from opinionpool.text import counted


class Coverage(NamedTuple):
    """Shares of 90% intervals that contained the true probability, measured on twelve kinds of panel."""

    # events, experts: of the panels, of which the events were resolved
    events: int
    experts: int
    mean: float
    # least, most: of one kind of panel
    least: float
    most: float


@cache
def measured() -> tuple[Coverage, ...]:
    """The rows of coverage.csv, which ``benchmarks/coverage.py figures`` measures."""
    text = Path(__file__).with_name("coverage.csv").read_text(encoding="utf-8")
    rows = (line.split(",") for line in text.splitlines()[1:])
    return tuple(Coverage(int(t), int(n), *map(float, shares)) for t, n, *shares in rows)


def coverage(events: int, experts: int) -> Coverage:
    """The row of the numbers of resolved events and experts nearest to these, by their ratios."""

    def distance(row: Coverage) -> float:
        return abs(math.log(row.events / max(events, 1))) + abs(math.log(row.experts / max(experts, 1)))

    return min(measured(), key=distance)


def coverage_words(events: int, experts: int) -> str:
    """How often a 90% interval contained the truth in simulations of panels like this."""
    row = coverage(events, experts)
    return (
        f"in simulations of twelve kinds of panel with {counted(row.events, 'resolved event')} and "
        f"{counted(row.experts, 'expert')}, such an interval contained the true probability in {100 * row.mean:.0f} of "
        f"100 answers, and in {100 * row.least:.0f} where the method fits the panel least"
    )
