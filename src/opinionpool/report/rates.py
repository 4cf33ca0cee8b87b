"""Shares of events that happen, by group: a view for ``rate``, and a section of the report."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from opinionpool.analysis.rates import ASSUMPTION, Rates, rates, rival_key
from opinionpool.errors import OpinionPoolError
from opinionpool.learning.fitted import FittedPanel
from opinionpool.report.answers import plain
from opinionpool.report.blocks import Section, long_table
from opinionpool.report.charts import interval_bar
from opinionpool.report.html import sentence
from opinionpool.report.listing import Column, records
from opinionpool.report.numbers import finite, percent, points, whole

if TYPE_CHECKING:
    from opinionpool.report.findings import Findings

# All pairs of so many groups are compared; the report shows so many rows.
PAIRS, MOST = 6, 50


def rate_columns(found: Rates) -> list[Column]:
    """Shares by group, or by group and class, beside other estimates."""
    words = {"group": "group", "class": "class", "rate": "happens", "low": f"{found.level:.0%} from", "high": "to"}
    words |= {"events": "events", "resolved": "resolved"} | {rival_key(name): name for name in found.rivals_}
    spare = {"events": 1, "resolved": 1} | {rival_key(name): 6 - i for i, name in enumerate(found.rivals_)}
    columns = []
    for key, values in found._table().items():
        text, count = key in ("group", "class"), key in ("events", "resolved")
        shown = [plain(each) if text else finite(each) for each in values]
        show = str if text else whole if count else percent
        columns.append(Column(key, shown, words.get(key), show, spare=spare.get(key, 0)))
    return columns


def difference_columns(found: Rates) -> list[Column]:
    """Differences between all pairs of some groups; none of more than a few, or of more than two classes."""
    if not 2 <= len(found.groups_) <= PAIRS or len(found.classes) > 2:
        return []
    pairs = list(combinations(found.groups_, 2))
    each = [found.difference(b, a) for a, b in pairs]
    return [
        Column("group", [b for _, b in pairs], "group"),
        Column("than", [a for a, _ in pairs], "than"),
        Column("difference", [d.difference for d in each], "happens more", points),
        Column("low", [d.low for d in each], f"{found.level:.0%} from", points),
        Column("high", [d.high for d in each], "to", points),
        Column("above", [d.above for d in each], "P(more)", _bounded),
    ]


def _bounded(p: float) -> str:
    """A probability between 0.1% and 99.9%, beyond which it rests on the model more than on data."""
    return percent(min(max(p, 0.001), 0.999))


def rate_facts(found: Rates, labels: str) -> dict[str, object]:
    """Facts for JSON: options of the estimate, differences between groups, and the share of all events."""
    every = None if found.total_ is None else dict(zip(("rate", "low", "high"), found.total_, strict=False))
    differences = list(records(difference_columns(found)))
    facts = {"labels": labels, "level": found.level, "by_outcomes": found.by_outcomes_}
    return facts | {"differences": differences, "all": every}


def rate_lines(found: Rates) -> list[str]:
    """Lines for people beside the table: the share over all events, and the assumption."""
    lines = []
    if found.total_ is not None and len(found.groups_) > 1:
        rate, low, high, _ = found.total_
        between = f"{percent(low)} to {percent(high)}"
        lines = [f"of all {whole(int(found.events_.sum()))} events {percent(rate)} happen ({between})"]
    return [*lines, f"assumed: {assumed(found)}"]


def assumed(found: Rates) -> str:
    """The assumption behind the base rates as text, and whether resolved events contradict it."""
    against = "; resolved events speak against it, so base rates rest on these" if found.by_outcomes_ > 0.5 else ""
    return f"{ASSUMPTION}{against}"


def rates_section(f: Findings) -> Section | None:
    """Section on shares by topic, or else by group; None without labels, open events or a posterior."""
    by = "topic" if f.forecasts.topics is not None else "group"
    labels = f.forecasts.topics if by == "topic" else f.forecasts.groups
    state = f.state
    if labels is None or not isinstance(state, FittedPanel) or state.posterior is None or not f.open_rows:
        return None
    try:
        found = rates(state, f.forecasts, by, prior=f.prior)
    except OpinionPoolError:
        return None
    columns = [column for column in rate_columns(found) if column.spare < 2]
    table = {column.key: column.values for column in columns}
    bars = zip(table["rate"], table["low"], table["high"], strict=True)
    columns.insert(list(table).index("events"), Column("picture", [interval_bar(*each) for each in bars], "0% to 100%"))
    order = np.argsort(-np.asarray(table["events"]), kind="stable").tolist()
    lead = (
        f"Which share of the events of each {by} happens, with {found.level:.0%} intervals: resolved events are "
        f"counted, and open ones by what forecasts say, with a base rate of the {by}'s own."
    )
    says = [note.text for note in found.notes] or [assumed(found)]
    shown = [column.take(order) for column in columns]
    return Section("rates", f"Rates by {by}", [lead, *map(sentence, says), *long_table(shown, by, MOST, MOST)])
