"""The report's section on topics: what was learned about each, and how good the pool is there."""

from __future__ import annotations

from collections.abc import Sequence

from opinionpool.report.findings import Findings, Missing
from opinionpool.report.html import Html, joined, markup, name, section, table
from opinionpool.report.listing import Column
from opinionpool.report.topics import score_columns, topic_columns, weight_columns

# Rows that the tables have at most.
MOST = 50


def topics_section(f: Findings) -> Html | None:
    """None where events have no topics, or nothing was learned about them."""
    learned = topic_columns(f.state)
    scores = [] if isinstance(f.comparison, Missing) else score_columns(f.comparison)
    if not learned and not scores:
        return None
    parts: list[str] = []
    if learned:
        parts.append(
            markup(
                "<p>How far the answers on each topic differ from what is common to all: the intercept is added to the "
                "pooled log-odds, and the slope multiplies how far they are from the prior. Both are drawn towards the "
                "common values, 0 and 1, as far as outcomes do not speak against that. Intervals hold 90%, each by "
                "itself.</p>"
            )
        )
        parts.append(_table(learned))
    weights = weight_columns(f.state)
    if weights:
        parts.append(
            markup(
                "<p>The weight of each expert on each topic, if everybody gives a forecast. Weights are drawn towards "
                "what they are on all topics, the second column.</p>"
            )
        )
        parts.append(_table(weights))
    if scores:
        parts.append(markup("<p>Scores on events that the pools had not learned from, by topic.</p>"))
        parts.append(_table(scores))
    return section("topics", "Topics", *parts)


def _table(columns: Sequence[Column]) -> Html:
    shown = [column for column in columns if column.title is not None]
    rows = list(zip(*(column.values for column in shown), strict=True))
    cells = [[_cell(column, value) for column, value in zip(shown, row, strict=True)] for row in rows[:MOST]]
    numbers = [column.numeric for column in shown]
    found = table([column.title or "" for column in shown], cells, numbers=numbers)
    left = len(rows) - MOST
    return found if left <= 0 else joined([found, markup('<p class="note">{} more.</p>', str(left))])


def _cell(column: Column, value: object) -> str:
    if value is None:
        return ""
    return column.show(value) if column.numeric else name(str(value))
