"""Topics by column: what was learned about each, and how pools do on the events of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

import numpy as np

from opinionpool.pools.fitted_pool import Fitted
from opinionpool.report.answers import hundredths, records, signed
from opinionpool.report.listing import Column, decimal, whole, write_table
from opinionpool.scoring.comparison import AVERAGE, Comparison


def tenths(number: float) -> str:
    """Of independent events, which need not be a whole number.

    >>> tenths(4.69122467712162), tenths(8.0)
    ('4.7', '8.0')
    """
    return f"{number:.1f}"


def topic_columns(state: Fitted) -> list[Column]:
    """What a pool has learned about each topic, those that differ most first; none if it has learned nothing."""
    effects = getattr(state, "topics", None)
    if effects is None:
        return []
    table = effects._table()
    size = np.abs(effects.intercept).max(axis=1) + np.abs(effects.slope)
    order = np.argsort(-size, kind="stable").tolist()
    labels = [str(label) for label in state.classes]
    columns = [Column("topic", table["topic"], "topic"), Column("resolved", table["resolved"], "counts as", tenths)]
    for name in [name for name in table if name.startswith("intercept") and not name.endswith(("_low", "_high"))]:
        label = "" if len(labels) == 2 else f":{labels[int(name.rpartition('_')[2])]}"
        columns += [
            Column(f"intercept{label}", table[name], f"intercept{label}", signed),
            Column(f"intercept_low{label}", table[f"{name}_low"], "from", hundredths, spare=2),
            Column(f"intercept_high{label}", table[f"{name}_high"], "to", hundredths, spare=2),
        ]
    columns += [
        Column("slope", table["slope"], "slope", decimal),
        Column("slope_low", table["slope_low"], "from", hundredths, spare=1),
        Column("slope_high", table["slope_high"], "to", hundredths, spare=1),
    ]
    return [Column(c.key, [c.values[i] for i in order], c.title, c.show, spare=c.spare) for c in columns]


def weight_columns(state: Fitted) -> list[Column]:
    """The weight of each expert on each topic if everybody gives a forecast, the largest first.

    Topics are ordered by how many of their events are resolved. None if outcomes do not speak for weights that differ.
    """
    effects, weights = getattr(state, "topics", None), state.weights
    if effects is None or weights is None or effects.weights is None or not effects.weights_shown:
        return []
    experts = np.flatnonzero(weights)
    experts = experts[np.argsort(-weights[experts], kind="stable")]
    columns = [
        Column("expert", [state.experts[i] for i in experts], "expert"),
        Column("weight", weights[experts].tolist(), "weight", decimal),
    ]
    for place, g in enumerate(np.argsort(-effects.events, kind="stable").tolist()):
        own = (weights + effects.weights[g])[experts].tolist()
        columns.append(Column(effects.topics[g], own, effects.topics[g], decimal, spare=place))
    return columns


def score_columns(found: Comparison) -> list[Column]:
    """How the pools do on the events of each topic; none where events have no topics."""
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
        Column("topic", [name or "(no topic)" for name in names[ordered].tolist()], "topic"),
        Column("events", count[ordered].tolist(), "events", whole),
    ]
    for place, pool in enumerate(found.pools):
        total = np.bincount(member[scored], found.scores[pool.pool][scored], len(names))
        mean = (total[ordered] / count[ordered]).tolist()
        columns.append(Column(pool.pool, mean, pool.pool, decimal, spare=0 if pool.pool == AVERAGE else place))
    return columns


def write_below(columns: list[Column], out: TextIO) -> None:
    """A further table for people, if there is one."""
    if columns:
        out.write("\n")
        write_table(columns, out)


def topic_facts(columns: list[Column], weights: Sequence[Column] = ()) -> dict[str, object]:
    """The same for JSON, and experts' weights by topic."""
    rows: Iterator[dict[str, object]] = records(columns)
    facts: dict[str, object] = {"topics": list(rows)} if columns else {}
    if weights:
        facts["topic_weights"] = [
            {"topic": column.key, "weights": dict(zip(weights[0].values, column.values, strict=True))}
            for column in weights[2:]
        ]
    return facts
