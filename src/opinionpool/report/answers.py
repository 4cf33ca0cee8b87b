"""What ``pool`` and ``experts`` answer: values by column for tables and CSV, and records for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import POOL_FLOOR, all_classes, public_log_odds, public_probabilities
from opinionpool.model.full_panel import FullPanel
from opinionpool.pools.fit import in_sample, sample_size
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import event_priors
from opinionpool.report.listing import Column, decimal, finite, hundredths, percent, printable, signed, whole
from opinionpool.tables.times import midnights
from opinionpool.text import counted


@dataclass(frozen=True, eq=False)
class Pooled:
    """A pool's answers about the events it was fitted with."""

    forecasts: Forecasts
    pool: str  # its name
    state: Fitted  # what the fit learned
    probabilities: Array  # (T,), or (T, K) when K > 2
    # (T,); where the event's outcome has had a part in the answer: the pool has learned from it, or its prior has
    in_sample: npt.NDArray[np.bool_]
    # (T,) each, or (T, K) when K > 2; limits of the 90% credible interval of each probability
    interval: tuple[Array, Array] | None = None

    def select(self, rows: Sequence[int]) -> Pooled:
        """The answers about some events, in this order."""
        interval = None if self.interval is None else (self.interval[0][rows], self.interval[1][rows])
        return replace(
            self,
            forecasts=self.forecasts.select_events(rows),
            probabilities=self.probabilities[rows],
            in_sample=self.in_sample[rows],
            interval=interval,
        )

    def ends(self) -> tuple[list[float | None], list[float | None]]:
        """Both ends of the interval of each binary event, None where there is none."""
        if self.interval is None:
            return [None] * len(self.in_sample), [None] * len(self.in_sample)
        known = _learned_from(self.forecasts, self.state).tolist()
        low, high = ([p if k else None for p, k in zip(end.tolist(), known, strict=True)] for end in self.interval)
        return low, high

    def class_ends(self) -> tuple[list[list[float | None]], list[list[float | None]]]:
        """Both ends of the interval of each of an event's classes or options, None where there is none."""
        low, high = self.interval or (np.full(self.probabilities.shape, np.nan),) * 2
        if low.ndim == 1:
            low, high = np.stack([1.0 - high, low], axis=1), np.stack([1.0 - low, high], axis=1)
        known = _learned_from(self.forecasts, self.state) & (self.interval is not None)
        sizes = self.forecasts.sizes.tolist()

        def own(end: Array) -> list[list[float | None]]:
            rows = zip(end.tolist(), known.tolist(), sizes, strict=True)
            return [row[:size] if shown else [None] * size for row, shown, size in rows]

        return own(low), own(high)


def pool_events(
    forecasts: Forecasts, pool: str, state: Fitted, prior: float | Array | None, base_rate: float | Array | None
) -> Pooled:
    """The answers for every event, resolved or not, in input order."""
    each = event_priors(forecasts, prior)
    own = None if each is None else public_probabilities(each)
    probabilities = state.pool_forecasts(forecasts, own, base_rate)
    interval = state.forecast_intervals(forecasts, own, base_rate)
    learned_from = in_sample(forecasts.ended, forecasts, pool, state, prior if each is None else each)
    return Pooled(forecasts, pool, state, probabilities, learned_from, interval)


def _learned_from(forecasts: Forecasts, state: Fitted) -> npt.NDArray[np.bool_]:
    """Mask of events with a forecast by an informative expert, (T,)."""
    if state.panel is None:
        return np.asarray(forecasts.crowd > 0)
    counted = state.panel.informative[forecasts.expert_index]
    return np.asarray(np.bincount(forecasts.event_index, weights=counted, minlength=len(forecasts.events)) > 0)


def plain(label: object) -> object:
    """A class label as JSON can hold it."""
    return label if isinstance(label, str | bool | int) else str(label)


def happened(forecasts: Forecasts) -> list[object]:
    """Outcome labels of all events, None where not resolved, (T,)."""
    return [None if label is None else plain(label) for label in forecasts.happened]


def about(forecasts: Forecasts) -> str | None:
    """Label of the class that binary probabilities are of; None if it is 1 or True, or if events are not binary."""
    if len(forecasts.classes) > 2 or forecasts.options is not None or forecasts.classes[1] in (1, True, "1"):
        return None
    return printable(str(forecasts.classes[1]))


def closing_times(forecasts: Forecasts) -> list[str | None]:
    """When each event closes, in UTC, as days where all are midnights; None where unknown."""
    if forecasts.closes is None:
        return [None] * len(forecasts.events)
    days = bool(midnights(forecasts.closes).all())
    times = forecasts.closes.astype("datetime64[D]" if days else "datetime64[s]").tolist()
    return [None if time is None else time.isoformat() + ("" if days else "Z") for time in times]


def _closes_column(pooled: Pooled, times: Sequence[str | None], only_open: bool) -> list[Column]:
    """Column with closing times, empty if the file has none; shown in tables of open events only."""
    if pooled.forecasts.closes is None:
        return []
    return [Column("closes", times, "closes" if only_open else None, plain_time, spare=2)]


def plain_time(text: str) -> str:
    """A time without T, Z and zero seconds, as tables show it."""
    return text.removesuffix(":00Z").replace("T", " ").removesuffix("Z")


def event_columns(pooled: Pooled, *, only_open: bool = False) -> list[Column]:
    """The answers by column: a row per event, or per event and class where they are more than two or its own."""
    forecasts = pooled.forecasts
    if len(forecasts.classes) > 2 or forecasts.options is not None:
        return _class_columns(pooled, only_open)
    event = about(forecasts)
    title = "probability" if event is None else f"P({event})"
    between = []
    if pooled.interval is not None:
        low, high = pooled.ends()
        between = [Column("low", low, "90% from", percent), Column("high", high, "to", percent)]
    return [
        Column("event", forecasts.events, "event"),
        Column("probability", pooled.probabilities.tolist(), title, percent),
        *between,
        Column("experts", forecasts.crowd.tolist(), "experts", whole, spare=1),
        *_closes_column(pooled, closing_times(forecasts), only_open),
        Column("outcome", happened(forecasts), None if only_open else "outcome"),
        Column("in_sample", pooled.in_sample.tolist(), None),
        Column("status", _status(forecasts), None),
        Column("remark", _remarks(pooled), "", machine=False),
    ]


def _status(forecasts: Forecasts) -> list[str]:
    """Whether each event is open or resolved."""
    return ["resolved" if known else "open" for known in forecasts.ended.tolist()]


def void_columns(columns: Sequence[Column], void: Mapping[str, int]) -> list[Column]:
    """Rows of void events, which have no probability, in the columns of others; `void` is how many forecast each."""
    n = len(void)
    own: dict[str, Sequence[object]] = {"event": [*void], "experts": [*void.values()], "in_sample": [False] * n}
    own["status"] = ["void"] * n
    return [replace(each, values=own.get(each.key, [None] * n), table=None) for each in columns]


def void_records(void: Mapping[str, int]) -> Iterator[dict[str, object]]:
    """Records of void events for JSON; `void` is the number of forecasts on each event."""
    for event, crowd in void.items():
        yield {"event": event, "experts": crowd, "outcome": None, "in_sample": False, "status": "void"}


def _class_columns(pooled: Pooled, only_open: bool) -> list[Column]:
    """Columns with a row per event and class; a table shows the event once and marks the class that happened."""
    forecasts = pooled.forecasts
    crowd, events, sizes = forecasts.crowd.tolist(), forecasts.events, forecasts.sizes.tolist()
    remarks = []
    for remark, outcome, k in zip(_remarks(pooled), forecasts.outcomes.tolist(), sizes, strict=True):
        shown = [[remark] if remark and i == 0 else [] for i in range(k)]
        if outcome >= 0:
            shown[outcome].insert(0, "happened")
        remarks += [", ".join(words) for words in shown]
    labels, title = [*map(plain, forecasts.classes)] * len(events), "class"
    if forecasts.options is not None:
        labels, title = [plain(label) for own in forecasts.options for label in own], "option"
    between = []
    if pooled.interval is not None:
        low, high = ([p for own in ends for p in own] for ends in pooled.class_ends())
        between = [Column("low", low, "90% from", percent), Column("high", high, "to", percent)]
    return [
        Column("event", _repeated(events, sizes), "event", table=_once(events, sizes)),
        Column("class", labels, title),
        Column("probability", [p for own in _own(pooled) for p in own], "probability", percent),
        *between,
        Column("experts", _repeated(crowd, sizes), "experts", whole, spare=1, table=_once(crowd, sizes)),
        *_closes_column(pooled, _repeated(closing_times(forecasts), sizes), only_open),
        Column("outcome", _repeated(happened(forecasts), sizes), None),
        Column("in_sample", _repeated(pooled.in_sample.tolist(), sizes), None),
        Column("status", _repeated(_status(forecasts), sizes), None),
        Column("remark", remarks, "", machine=False),
    ]


def _own(pooled: Pooled) -> list[list[float]]:
    """The probabilities of each event's classes or options."""
    p = pooled.probabilities
    table = all_classes(p, len(pooled.forecasts.classes))
    return [row[:k] for row, k in zip(table.tolist(), pooled.forecasts.sizes.tolist(), strict=True)]


def _remarks(pooled: Pooled) -> list[str | None]:
    """Remark on each answer: no forecast, in-sample, or None, (T,)."""
    answered = (pooled.forecasts.crowd > 0).tolist()
    taught = pooled.in_sample.tolist()
    return [
        "no forecast: the prior" if not active else "in-sample" if known else None
        for active, known in zip(answered, taught, strict=True)
    ]


def _repeated(values: Sequence[Any], times: Sequence[int]) -> list[Any]:
    return [value for value, k in zip(values, times, strict=True) for _ in range(k)]


def _once(values: Sequence[Any], times: Sequence[int]) -> list[Any]:
    """List with each value followed by times - 1 None, so that a table shows a repeated value once."""
    return [value if i == 0 else None for value, k in zip(values, times, strict=True) for i in range(k)]


def event_records(pooled: Pooled) -> Iterator[dict[str, object]]:
    """The answers as records for JSON."""
    forecasts = pooled.forecasts
    several = len(forecasts.classes) > 2 or forecasts.options is not None
    sets = [forecasts.classes] * len(forecasts.events) if forecasts.options is None else forecasts.options
    rows = zip(
        forecasts.events,
        sets,
        _own(pooled) if several else pooled.probabilities.tolist(),
        forecasts.crowd.tolist(),
        happened(forecasts),
        pooled.in_sample.tolist(),
        closing_times(forecasts),
        _status(forecasts),
        *(pooled.class_ends() if several else pooled.ends()),
        strict=True,
    )
    timed = forecasts.closes is not None
    for event, labels, p, crowd, outcome, inside, closes, status, low, high in rows:

        def show(values: Any, labels: Sequence[object] = labels) -> object:  # noqa: ANN401 - a number, or one per label
            return dict(zip(map(str, labels), values, strict=True)) if several else values

        forecast = {"probabilities" if several else "probability": show(p)}
        between = {} if pooled.interval is None else {"low": show(low), "high": show(high)}
        when = {"closes": closes} if timed else {}
        yield {
            "event": event,
            **forecast,
            **between,
            "experts": crowd,
            **when,
            "outcome": outcome,
            "in_sample": inside,
            "status": status,
        }


def answer_notes(pooled: Pooled) -> list[Note]:
    """Notes on the answers: how many are in-sample, how many are the prior, how many lie at the bounds."""
    notes = []
    t = len(pooled.forecasts.events)
    taught = int(pooled.in_sample.sum())
    if taught:
        sample = sample_size(pooled.state)
        template = (
            "{count} of {total} answers are in-sample: the pool has learned from these outcomes, so they look better "
            "than answers about new events will"
        )
        if sample is not None:
            template = (
                "{count} of {total} answers are in-sample: the pool knew these outcomes, but has learned from "
                f"{sample:,} events only; answers about those look better than answers about new events will"
            )
        notes.append(Note.of("in-sample", template, taught, t))
    blank = int((pooled.forecasts.crowd == 0).sum())
    if blank:
        notes.append(Note.of("no-forecast", "{count:event} without a forecast got the prior", blank))
    p = pooled.probabilities if pooled.probabilities.ndim > 1 else pooled.probabilities[:, None]
    used = np.arange(p.shape[1]) < pooled.forecasts.sizes[:, None]
    bound = int((((p <= POOL_FLOOR) | (p >= 1.0 - POOL_FLOOR)) & used).any(axis=1).sum())
    if bound:
        template = f"{{count:answer}} at the bound: nothing gets less than {percent(POOL_FLOOR)}"
        notes.append(Note.of("at-floor", template, bound))
    return notes


def expert_notes(state: Fitted) -> list[Note]:
    """Notes on the experts: how many have a weight below 0, and how many a calibration below 0."""
    notes = []
    if state.weights is not None and (state.weights < 0).any():
        below = state.weights < 0
        count, clear = int(below.sum()), not (state.weight_interval()[1][below] >= 0).all()
        text = f"{counted(count, 'weight')} below 0, " + (
            "to correct for shared error: most of what such an expert says is known from more accurate ones, and "
            "subtracting it takes out errors that they share"
            if clear
            else f"but not clearly: {'its interval includes' if count == 1 else 'their intervals include'} 0"
        )
        notes.append(Note("negative-weights", text, count))
    if state.panel is not None and (state.panel.calibration < 0).any():
        count = int((state.panel.calibration < 0).sum())
        text = f"{counted(count, 'expert')} with a calibration below 0: what they call likely happens less often"
        notes.append(Note("contrary", text, count))
    return notes


def expert_columns(forecasts: Forecasts, state: Fitted) -> list[Column]:
    """Columns with each expert's features, weight and counts of forecasts, largest weights first."""
    columns = [Column("expert", forecasts.experts, "expert")]
    weights = state.weights
    if isinstance(state, FittedPanel):
        columns += _feature_columns(state, forecasts)
    if weights is not None:
        columns.append(Column("weight", _finite(weights), "weight", decimal))
        low, high = map(_finite, state.weight_interval())
        if any(end is not None for end in low):
            columns.append(Column("weight_low", low, "from", hundredths))
            columns.append(Column("weight_high", high, "to", hundredths))
    columns += _class_weight_columns(state)
    columns += [
        Column("forecasts", forecasts.counts.tolist(), "forecasts", whole, spare=3),
        Column("resolved", forecasts.resolved_counts.tolist(), "resolved", whole, spare=1),
    ]
    order = range(len(forecasts.experts)) if weights is None else np.argsort(-weights, kind="stable").tolist()
    return [replace(column, values=[column.values[i] for i in order]) for column in columns]


def _feature_columns(state: FittedPanel, forecasts: Forecasts) -> list[Column]:
    """Columns with each expert's bias, calibration, accuracy and AUC; None where values are only assumed."""
    classes = [*map(str, forecasts.classes)]
    features = state.features
    shown = state.structure != "assumed" or state.marginal is not None
    bias = state.panel.bias if state.marginal is None else public_log_odds(state.marginal.bias)
    calibration, accuracy = [
        _finite(x) if shown else [None] * len(x) for x in (features.calibration, features.accuracy)
    ]
    if forecasts.options is not None:
        biases = []  # nobody can be biased towards options that differ from event to event
    elif bias.ndim == 1:
        biases = [Column("bias", _finite(bias) if shown else [None] * len(bias), "bias", signed, spare=2)]
    else:
        biases = [Column(f"bias:{label}", _finite(bias[:, i]), None, signed) for i, label in enumerate(classes)]
    columns = [
        *biases,
        Column("calibration", calibration, "calibration", decimal),
        Column("accuracy", accuracy, "accuracy", decimal, spare=4),
    ]
    if len(classes) == 2 and forecasts.options is None:
        from opinionpool.scoring.reliability import areas

        columns.append(Column("auc", _finite(areas(forecasts)), "AUC", decimal))
    return columns


def _class_weight_columns(state: Fitted) -> list[Column]:
    """Columns with each expert's weight by class, for panels whose weights differ between classes; else empty."""
    if not isinstance(state, FittedPanel) or not isinstance(state.panel, FullPanel):
        return []
    weights = np.where(state.present[:, None], state.panel.class_weights, 0.0)
    return [
        Column(f"weight:{label}", weights[:, i].tolist(), printable(str(label)), decimal, spare=5)
        for i, label in enumerate(state.panel.classes)
    ]


def _finite(values: Array) -> list[float | None]:
    """Numbers, None where there is none."""
    return [finite(value) for value in values.tolist()]


def ordered(pooled: Pooled, rows: Sequence[int], sort: str) -> list[int]:
    """Some events in one of the orders of `opinionpool.report.SORTS`; equal ones stay in the order of the file."""
    chosen, forecasts = np.asarray(rows, dtype=np.intp), pooled.forecasts
    if sort == "file" or (sort == "closes" and forecasts.closes is None) or not len(chosen):
        return [int(t) for t in chosen]
    if sort == "event":
        return sorted(chosen.tolist(), key=lambda t: (forecasts.events[t], t))
    if sort == "closes":
        assert forecasts.closes is not None
        # Unknown times come last.
        return [int(t) for t in chosen[np.argsort(forecasts.closes[chosen], kind="stable")]]
    p = pooled.probabilities[chosen]
    size = p if p.ndim == 1 else p.max(axis=1)
    if sort == "interval" and pooled.interval is not None:
        low, high = (end[chosen] for end in pooled.interval)
        size = (high - low).reshape(len(chosen), -1).max(axis=1)
    if sort == "disagreement":
        bounds = np.searchsorted(forecasts.event_index, [chosen, chosen + 1])
        given = [forecasts.probabilities[a:b] for a, b in bounds.T.tolist()]
        size = np.array([np.ptp(q, axis=0).max() if len(q) else -1.0 for q in given])
    return [int(t) for t in chosen[np.argsort(-size, kind="stable")]]


def open_rows(pooled: Pooled, sort: str) -> list[int]:
    """Positions of open events that somebody forecast, in one of the orders of `opinionpool.report.SORTS`."""
    forecasts = pooled.forecasts
    return ordered(pooled, np.flatnonzero(~forecasts.resolved & (forecasts.crowd > 0)).tolist(), sort)


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
