"""Results by topic and by group of events: effects learned, scores of pools, and shares of events that happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from opinionpool.analysis.rates import ASSUMPTION, Rates, rates, rival_key
from opinionpool.errors import OpinionPoolError
from opinionpool.learning.fitted import FittedPanel
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.report.answers import plain
from opinionpool.report.blocks import Block, Section, long_table, sentence
from opinionpool.report.charts import interval_bar
from opinionpool.report.listing import (
    Column,
    decimal,
    finite,
    hundredths,
    percent,
    points,
    records,
    signed,
    whole,
    with_limits,
)
from opinionpool.scoring.compare import AVERAGE, DEFAULT, Comparison

if TYPE_CHECKING:
    from opinionpool.report.findings import ReportData


# Names in reports of the pools that every report has.
NAMES = {AVERAGE: "simple average", DEFAULT: "the pool"}
# Largest number of rows in tables of the report.
MOST = 50


def topic_columns(state: Fitted) -> list[Column]:
    """Columns with each topic's intercept and slope, the most unusual topics first; empty if topics are not learned."""
    effects = getattr(state, "topics", None)
    if effects is None:
        return []
    table = effects._table()
    size = np.abs(effects.intercept).max(axis=1) + np.abs(effects.slope)
    order = np.argsort(-size, kind="stable").tolist()
    labels = [str(label) for label in state.classes]
    columns = [
        Column("topic", table["topic"], "topic"),
        Column("resolved", table["resolved"], "counts as", "{:.1f}".format),
    ]
    for key in [key for key in table if key.startswith("intercept") and not key.endswith(("_low", "_high"))]:
        label = "" if len(labels) == 2 else f":{labels[int(key.rpartition('_')[2])]}"
        column = Column(f"intercept{label}", table[key], f"intercept{label}", signed)
        columns += with_limits(column, table[f"{key}_low"], table[f"{key}_high"], hundredths, 2)
    column = Column("slope", table["slope"], "slope", decimal)
    columns += with_limits(column, table["slope_low"], table["slope_high"], hundredths, 1)
    return [column.take(order) for column in columns]


def score_columns(found: Comparison) -> list[Column]:
    """Return columns with each pool's mean score by topic; empty if fewer than two topics have scored events."""
    if found.topics is None:
        return []
    scored = ~np.isnan(found.scores[AVERAGE])
    names, member = np.unique(found.topics, return_inverse=True)
    count = np.bincount(member[scored], minlength=len(names))
    kept = np.flatnonzero((count > 0) & (names != ""))
    if len(kept) < 2:
        return []
    ordered = np.append(kept[np.argsort(-count[kept], kind="stable")], np.flatnonzero((count > 0) & (names == "")))
    columns = [
        Column("topic", [label or "(no topic)" for label in names[ordered].tolist()], "topic"),
        Column("events", count[ordered].tolist(), "events", whole),
    ]
    for place, pool in enumerate(found.pools):
        total = np.bincount(member[scored], found.scores[pool.pool][scored], len(names))
        mean = (total[ordered] / count[ordered]).tolist()
        columns.append(Column(pool.pool, mean, pool.pool, decimal, spare=0 if pool.pool == AVERAGE else place))
    return columns


def topic_facts(columns: list[Column]) -> dict[str, object]:
    """Return the columns of topic effects as facts for JSON."""
    rows: Iterator[dict[str, object]] = records(columns)
    return {"topics": list(rows)} if columns else {}


def topics_section(f: ReportData) -> Section | None:
    """Return the section on pools' scores by topic; None if scores or topics are missing."""
    return _section(
        "topics", "Topics",
        (
            "Scores on events that the pools had not learned from, by topic.",
            [replace(each, title=NAMES.get(each.key, each.title)) for each in score_columns(f.comparison)]
            if isinstance(f.comparison, Comparison)
            else [],
        ),
    )  # fmt: skip


def topic_effects_section(f: ReportData) -> Section | None:
    """Return the section on intercepts and slopes of topics, for statisticians; None without topic effects."""
    lead = (
        "How far the answers on each topic differ from what is common to all: the intercept is added to the pooled "
        "log-odds, and the slope multiplies how far they are from the prior. Both are drawn towards the common "
        "values, 0 and 1, as far as outcomes do not speak against that. Intervals hold 90%, each by itself."
    )
    return _section("topic-effects", "Topics in detail", (lead, topic_columns(f.state)))


def _section(anchor: str, title: str, *tables: tuple[str, Sequence[Column]]) -> Section | None:
    parts: list[Block] = []
    for lead, columns in tables:
        parts += [lead, *long_table(columns, "topic", MOST, MOST, "")] if columns else []
    return Section(anchor, title, parts) if parts else None


# Largest number of groups of which all pairs are compared.
PAIRS = 6


def rate_columns(found: Rates) -> list[Column]:
    """Columns with a row for each group (and class): its share of events that happen, by the pool and other methods."""
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


def rate_differences(found: Rates) -> list[Column]:
    """Return columns with the differences of two groups' shares; empty if there are many groups, or K > 2."""
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
    """Return a probability as text, at most "> 99.9%" and at least "< 0.1%": more digits depend on the model only."""
    return "> 99.9%" if p > 0.999 else "< 0.1%" if p < 0.001 else percent(p)


def rate_facts(found: Rates, labels: str) -> dict[str, object]:
    """Facts for JSON on groups' shares: options (`labels`, level), differences of groups, share of all events."""
    every = None if found.total_ is None else dict(zip(("rate", "low", "high"), found.total_, strict=False))
    differences = list(records(rate_differences(found)))
    facts = {"labels": labels, "level": found.level, "by_outcomes": found.by_outcomes_}
    return facts | {"differences": differences, "all": every}


def rate_lines(found: Rates) -> list[str]:
    """Return lines for people on the shares by group: the share of all events, and what is assumed."""
    lines = []
    if found.total_ is not None and len(found.groups_) > 1:
        rate, low, high, _ = found.total_
        between = f"{percent(low)} to {percent(high)}"
        lines = [f"of all {whole(int(found.events_.sum()))} events {percent(rate)} happen ({between})"]
    return [*lines, f"assumed: {assumed(found)}"]


def assumed(found: Rates) -> str:
    """Return as text what the base rates assume, and whether resolved events contradict the assumption."""
    against = "; resolved events speak against it, so base rates rest on these" if found.by_outcomes_ > 0.5 else ""
    return f"{ASSUMPTION}{against}"


def rates_section(f: ReportData) -> Section | None:
    """Return the section on shares of events that happen, by topic or group; None without these or open events."""
    by = "topic" if f.forecasts.topics is not None else "group"
    labels = f.forecasts.topics if by == "topic" else f.forecasts.groups
    state = f.state
    if labels is None or not isinstance(state, FittedPanel) or state.posterior is None or not f.open_rows:
        return None
    try:
        found = rates(state, f.forecasts, by, prior=f.fit.prior)
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
