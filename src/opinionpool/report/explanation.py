"""An explanation as a view: what each forecast adds to an answer, the rest of the sum, and both in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from opinionpool.analysis.explanation import Explanation, by_effect, of_class
from opinionpool.arrays import Array
from opinionpool.logodds import logit
from opinionpool.report.answers import plain
from opinionpool.report.listing import Column, printable
from opinionpool.report.numbers import brief, decimal, percent, signed


class _Field(NamedTuple):
    """One quantity of each forecast in an explanation: its key, the attribute, and its format in tables."""

    key: str
    attribute: str
    title: str
    show: Callable[[Any], str]
    spare: int
    log_odds: bool  # whether the pool must add up log-odds for it


_FIELDS = (
    _Field("level", "given_levels", "level", str, 0, False),
    _Field("probability", "probabilities", "says", percent, 0, False),
    _Field("age", "ages", "days old", decimal, 3, False),
    _Field("bias", "bias", "offset", signed, 2, True),
    _Field("contrast", "contrast", "contrast", signed, 1, True),
    _Field("weight", "weights", "weight", decimal, 0, False),
    _Field("adds", "contributions", "adds", signed, 0, False),
    _Field("without", "without", "without", percent, 0, False),
)
# Numbers of an expert that are the same for all classes.
_ONE = {"age", "weight"}


def _fields(why: Explanation) -> list[_Field]:
    """The fields that this explanation has values for."""
    there = [each for each in _FIELDS if getattr(why, each.attribute) is not None]
    adding = [each for each in there if why.scale == "log-odds" or not each.log_odds]
    return [each for each in adding if each.key != "bias" or why.pool == "gaussian"]


def _number(x: float) -> float | None:
    return None if np.isnan(x) else float(x)


def forecast_rows(why: Explanation, at: int) -> list[dict[str, Any]]:
    """Records of the forecasts and of their contributions to the probability of a class, by the size of the effect."""
    binary = why.probability.ndim == 0

    def value(field: _Field, i: int) -> float | str | None:
        values = getattr(why, field.attribute)[i]
        if isinstance(values, str):
            return values or None
        if field.key in _ONE:
            return _number(values)
        if field.key in {"probability", "without"}:
            return of_class(values, at)
        if binary:
            return float(values) if at else -float(values)
        return float(values[at])

    fields = _fields(why)
    return [
        {"part": "expert", "name": why.experts[i]} | {field.key: value(field, i) for field in fields}
        for i in by_effect(why)
    ]


def forecast_columns(why: Explanation, at: int, titles: dict[str, str], most: int | None = None) -> list[Column]:
    """Columns of `forecast_rows` for pages: the keys in `titles`, with probabilities in whole per cent."""
    rows = forecast_rows(why, at)[:most]
    shows = {field.key: field.show for field in _fields(why)} | {"probability": brief, "without": brief}
    return [
        Column(key, [row[key] for row in rows], title, str if key == "name" else shows[key])
        for key, title in titles.items()
        if key == "name" or key in shows
    ]


def _sum_rows(why: Explanation, at: int | None) -> list[dict[str, Any]]:
    """The parts of the sum for a class: prior, intercept, forecasts, topic, base rate, pooled."""

    def row(part: str, adds: Array, probability: Array | None = None, name: str = "") -> dict[str, Any]:
        def of(values: Array) -> float:
            return float(values if at is None else values[at])

        shown = {} if probability is None else {"probability": of(probability)}
        return {"part": part, "name": name or part, "adds": of(adds)} | shown

    rows = []
    if why.scale == "log-odds" or not why.experts:
        rows.append(row("prior", why.start, why.prior))
    if np.any(why.intercept != 0):
        rows.append(row("intercept", why.intercept))
    rows += forecast_rows(why, 1 if at is None else at)
    if why.topic_shift is not None:
        rows.append(row("topic", why.topic_shift, name=f"topic {why.topic}"))
    if np.any(why.shift != 0):
        rows.append(row("base rate", why.shift))
    if why.members_shift is not None:
        rows.append(row("members", why.members_shift, name=f"average and single experts ({why.members_share:.0%})"))
    return [*rows, row("pooled", why.total, why.probability)]


def explanation_columns(why: Explanation) -> list[Column]:
    """The sum, one part in a row, for each class where there are more than two."""
    several = why.probability.ndim == 1
    sums = [_sum_rows(why, at) for at in (range(len(why.classes)) if several else (None,))]
    rows = [row for each in sums for row in each]

    def column(key: str) -> list[Any]:
        return [row.get(key) for row in rows]

    experts = [row["name"] if row["part"] == "expert" else None for row in rows]
    columns = [Column("part", column("part"), "", table=column("name")), Column("expert", experts, None)]
    for field in _fields(why):
        title = "share" if field.key == "weight" and why.scale != "log-odds" else field.title
        columns.append(Column(field.key, column(field.key), title, field.show, spare=field.spare))
    if several:
        labels = [plain(label) for label, each in zip(why.classes, sums, strict=True) for _ in each]
        shown = [
            plain(label) if i == 0 else None
            for label, each in zip(why.classes, sums, strict=True)
            for i in range(len(each))
        ]
        columns.insert(0, Column("class", labels, "class", table=shown))
    return columns


def explanation_records(why: Explanation) -> Iterator[dict[str, object]]:
    """The experts as records for JSON, in the order of the table."""
    for i in by_effect(why):
        record: dict[str, object] = {"expert": why.experts[i]}
        for field in _FIELDS:
            values = getattr(why, field.attribute)
            if values is None and field.key in {"age", "level"}:
                continue
            one = None if values is None else values[i]
            if isinstance(one, str):
                record[field.key] = one or None
                continue
            record[field.key] = _number(one) if one is not None and field.key in _ONE else by_class(why, one)
        yield record


def explanation_facts(why: Explanation) -> dict[str, object]:
    """Facts on an answer beside its forecasts, for JSON: probability, interval, prior, intercept and shifts."""
    low, high = why.interval or (None, None)
    parts = {
        "probability": why.probability, "prior_probability": why.prior, "start": why.start, "intercept": why.intercept,
        "topic_shift": why.topic_shift, "shift": why.shift,
        "members_shift": why.members_shift, "total": why.total,
    }  # fmt: skip
    facts = {"event": why.event, "scale": why.scale, "low": low, "high": high, "level": why.level, "topic": why.topic}
    facts |= {"members_share": why.members_share}
    return facts | {key: by_class(why, value) for key, value in parts.items()}


def by_class(why: Explanation, value: Array | None) -> object:
    """One number, or a number for each class; None where there is none."""
    if value is None or np.ndim(value) == 0:
        return None if value is None else float(value)
    return {str(label): float(x) for label, x in zip(why.classes, value, strict=True)}


def most_moved(why: Explanation, at: int | None = None) -> tuple[int, int] | None:
    """Indices of the expert and class with the largest change in log-odds without the expert; None if no change."""
    if not why.experts:
        return None
    moved = np.abs(logit(why.without.reshape(len(why.experts), -1)) - logit(np.atleast_1d(why.probability)))
    if at is not None and moved.shape[1] > 1:
        moved = np.where(np.arange(moved.shape[1]) == at, moved, 0.0)
    i, where = (int(x) for x in np.unravel_index(moved.argmax(), moved.shape))
    return (i, where) if moved[i, where] > 0 else None


def explanation_lines(why: Explanation) -> list[str]:
    """Sentences with the answer and its most influential expert."""
    name = "the answer" if why.event is None else printable(why.event)
    plain_event = why.probability.ndim == 0 and why.classes[1] in (1, True, "1")
    labels = ["" if plain_event else f"{printable(str(label))} " for label in why.classes]
    labels = labels if why.probability.ndim else labels[1:]
    answer = np.atleast_1d(why.probability).tolist()
    text = ", ".join(f"{label}{percent(p)}" for label, p in zip(labels, answer, strict=True))
    if why.interval is not None:
        low, high = map(percent, why.interval)
        text += f" ({why.level:.0%} credible interval {low} to {high})"
    most = most_moved(why)
    if most is None:
        return [f"{name}: {text}"]
    without = why.without.reshape(len(why.experts), -1)[most]
    changed = f"{printable(why.experts[most[0]])} matters most: without it, {labels[most[1]]}{percent(float(without))}"
    return [f"{name}: {text}", changed]
