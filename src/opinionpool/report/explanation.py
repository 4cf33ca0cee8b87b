"""An explanation by column for tables and CSV, as records for JSON, and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opinionpool.analysis.explanation import Explanation
from opinionpool.analysis.steps import by_effect
from opinionpool.arrays import Array
from opinionpool.report.answers import plain, signed
from opinionpool.report.listing import Column, decimal, percent, printable


def explanation_columns(why: Explanation) -> list[Column]:
    """The sum, one part in a row: prior, intercept, each expert by what it adds, base rate, pooled."""
    several, k = why.probability.ndim == 1, len(why.classes)
    rows = [_Rows(why, c) for c in range(k)] if several else [_Rows(why, None)]

    def column(name: str) -> list[Any]:
        return [value for each in rows for value in getattr(each, name)]

    parts, names = column("part"), column("name")
    columns = [
        Column("part", parts, "", table=names),
        Column("expert", [name if part == "expert" else None for name, part in zip(names, parts, strict=True)], None),
        Column("probability", column("forecast"), "says", percent),
    ]
    if several:
        size = len(rows[0].part)
        labels = [plain(label) for label in why.classes]
        shown = [label if i == 0 else None for label in labels for i in range(size)]
        columns.insert(0, Column("class", [label for label in labels for _ in range(size)], "class", table=shown))
    if why.ages is not None:
        columns.append(Column("age", column("age"), "days old", decimal, spare=3))
    if why.pool == "gaussian":
        columns.append(Column("bias", column("bias"), "offset", signed, spare=2))
    if why.scale == "log-odds":
        columns.append(Column("contrast", column("contrast"), "contrast", signed, spare=1))
    if why.weights is not None:
        columns.append(Column("weight", column("weight"), "weight" if why.scale == "log-odds" else "share", decimal))
    return [
        *columns,
        Column("adds", column("adds"), "adds", signed),
        Column("without", column("without"), "without", percent),
    ]


class _Rows:
    """The rows about one class, or about the event when there are two."""

    def __init__(self, why: Explanation, c: int | None) -> None:
        at: Callable[[Array], Array] = (lambda values: values) if c is None else (lambda values: values[..., c])
        order = by_effect(why)
        before: list[tuple[str, str, float | None, float]] = []
        if why.scale == "log-odds" or len(why.experts) == 0:
            before.append(("prior", "prior", float(at(why.prior)), float(at(why.start))))
        if np.any(why.intercept != 0):
            before.append(("intercept", "intercept", None, float(at(why.intercept))))
        after: list[tuple[str, str, float | None, float]] = []
        if why.topic_shift is not None:
            after.append(("topic", f"topic {why.topic}", None, float(at(why.topic_shift))))
        if np.any(why.shift != 0):
            after.append(("base rate", "base rate", None, float(at(why.shift))))
        after.append(("pooled", "pooled", float(at(why.probability)), float(at(why.total))))
        n = len(order)

        def each(values: Array | None) -> list[float | None]:
            inner = [None] * n if values is None else values[order].tolist()
            return [None] * len(before) + inner + [None] * len(after)

        self.part = [part for part, *_ in before] + ["expert"] * n + [part for part, *_ in after]
        self.name = [name for _, name, *_ in before] + [why.experts[i] for i in order] + [name for _, name, *_ in after]
        forecast, adds = at(why.probabilities)[order].tolist(), at(why.contributions)[order].tolist()
        self.forecast = [p for _, _, p, _ in before] + forecast + [p for _, _, p, _ in after]
        ages = None if why.ages is None else why.ages
        self.age = [None if x is None or np.isnan(x) else x for x in each(ages)]
        self.bias, self.contrast = each(at(why.bias)), each(at(why.contrast))
        self.weight, self.without = each(why.weights), each(at(why.without))
        self.adds = [x for *_, x in before] + adds + [x for *_, x in after]


def explanation_records(why: Explanation) -> Iterator[dict[str, object]]:
    """The experts as records for JSON, in the order of the table."""
    for i in by_effect(why):
        yield {
            "expert": why.experts[i],
            "probability": by_class(why, why.probabilities[i]),
            **({} if why.ages is None else {"age": float(why.ages[i]) if why.ages[i] == why.ages[i] else None}),
            "bias": by_class(why, why.bias[i]),
            "contrast": by_class(why, why.contrast[i]),
            "weight": None if why.weights is None else float(why.weights[i]),
            "adds": by_class(why, why.contributions[i]),
            "without": by_class(why, why.without[i]),
        }


def explanation_facts(why: Explanation) -> dict[str, object]:
    """The other parts for JSON."""
    low, high = why.interval or (None, None)
    return {
        "event": why.event,
        "scale": why.scale,
        "probability": by_class(why, why.probability),
        "low": low,
        "high": high,
        "level": why.level,
        "prior_probability": by_class(why, why.prior),
        "start": by_class(why, why.start),
        "intercept": by_class(why, why.intercept),
        "topic": why.topic,
        "topic_shift": None if why.topic_shift is None else by_class(why, why.topic_shift),
        "shift": by_class(why, why.shift),
        "total": by_class(why, why.total),
    }


def by_class(why: Explanation, value: Array) -> float | dict[str, float]:
    """One number, or a number for each class."""
    if np.ndim(value) == 0:
        return float(value)
    return {str(label): float(x) for label, x in zip(why.classes, value, strict=True)}


def explanation_lines(why: Explanation) -> list[str]:
    """The answer, and whose absence would change it most."""
    name = "the answer" if why.event is None else printable(why.event)
    plain_event = why.probability.ndim == 0 and why.classes[1] in (1, True, "1")
    labels = ["" if plain_event else f"{printable(str(label))} " for label in why.classes]
    labels = labels if why.probability.ndim else labels[1:]
    answer = np.atleast_1d(why.probability)
    text = ", ".join(f"{label}{percent(p)}" for label, p in zip(labels, answer.tolist(), strict=True))
    if why.interval is not None:
        low, high = map(percent, why.interval)
        text += f" ({why.level:.0%} credible interval {low} to {high})"
    lines = [f"{name}: {text}"]
    if why.experts:
        without = why.without.reshape(len(why.experts), -1)
        moved = np.abs(_ratios(without) - _ratios(answer))
        i, c = (int(x) for x in np.unravel_index(moved.argmax(), moved.shape))
        if moved[i, c] > 0:
            lines.append(
                f"{printable(why.experts[i])} matters most: without it, {labels[c]}{percent(float(without[i, c]))}"
            )
    return lines


def _ratios(p: Array) -> Array:
    """Log-odds of each class against the others."""
    return np.asarray(np.log(p) - np.log1p(-p))
