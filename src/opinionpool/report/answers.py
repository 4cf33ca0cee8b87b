"""Results of the commands ``pool`` and ``experts``: columns for tables and CSV, and records for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import Note
from opinionpool.findings import finding
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import POOL_FLOOR, all_classes, public_log_odds, public_probabilities
from opinionpool.model.full_panel import FullPanel
from opinionpool.pools.fit import in_sample, sample_size
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import event_priors
from opinionpool.report.listing import (
    Column,
    decimal,
    finite,
    hundredths,
    percent,
    printable,
    records,
    signed,
    whole,
    with_limits,
)
from opinionpool.tables.times import midnights
from opinionpool.text import counted

if TYPE_CHECKING:
    from opinionpool.streams.trained import TrainedPool


@dataclass(frozen=True, eq=False)
class Pooled:
    """Probabilities that a pool gives events, resolved or not, with their credible intervals."""

    forecasts: Forecasts
    pool: str  # name of the pool
    state: Fitted  # what the fit learned
    probabilities: Array  # (T,), or (T, K) when K > 2
    # (T,); whether an event's outcome affected its own answer: the pool, or its prior, was fitted to it
    in_sample: npt.NDArray[np.bool_]
    # (T,) each, or (T, K) when K > 2; limits of the 90% credible interval of each probability
    interval: tuple[Array, Array] | None = None

    def select(self, rows: Sequence[int]) -> Pooled:
        """Return the answers on the events at positions `rows`, in this order."""
        interval = None if self.interval is None else (self.interval[0][rows], self.interval[1][rows])
        return replace(
            self,
            forecasts=self.forecasts.select_events(rows),
            probabilities=self.probabilities[rows],
            in_sample=self.in_sample[rows],
            interval=interval,
        )

    @property
    def several(self) -> bool:
        """Whether an event has several probabilities: there are more than two classes, or options of its own."""
        return len(self.forecasts.classes) > 2 or self.forecasts.options is not None

    def listed(self) -> tuple[Index, Index]:
        """Event and class position of each probability that is listed: of all classes or, if K = 2, of the second."""
        sizes = self.forecasts.sizes
        if not self.several:
            return np.arange(len(sizes)), np.ones(len(sizes), dtype=np.intp)
        rows, places = np.nonzero(np.arange(len(self.forecasts.classes)) < sizes[:, None])
        return rows, places

    def shares(self) -> tuple[Array, Array, Array]:
        """Probabilities of all classes or options, and interval ends, lower and upper, (T, K) each; NaN: unknown."""
        p = all_classes(self.probabilities, len(self.forecasts.classes))
        low, high = self.interval or (np.full(self.probabilities.shape, np.nan),) * 2
        if low.ndim == 1:
            low, high = np.stack([1.0 - high, low], axis=1), np.stack([1.0 - low, high], axis=1)
        known = _learned_from(self.forecasts, self.state)[:, None]
        return p, np.where(known, low, np.nan), np.where(known, high, np.nan)


def pool_events(
    forecasts: Forecasts, pool: str, state: Fitted, prior: float | Array | None, base_rate: float | Array | None
) -> Pooled:
    """Return a pool's probabilities of all events in `forecasts`, resolved or not, and their credible intervals."""
    each = event_priors(forecasts, prior)
    own = prior if each is None else public_probabilities(each)
    probabilities = state.pool_forecasts(forecasts, own, base_rate)
    interval = state.forecast_intervals(forecasts, own, base_rate)
    learned_from = in_sample(forecasts.ended, forecasts, pool, state, prior if each is None else each)
    return Pooled(forecasts, pool, state, probabilities, learned_from, interval)


def _learned_from(forecasts: Forecasts, state: Fitted) -> npt.NDArray[np.bool_]:
    """Return the mask (T,) of events with a forecast by at least one expert who has an influence on the pool."""
    if state.panel is None:
        return np.asarray(forecasts.crowd > 0)
    counted = state.panel.informative[forecasts.expert_index]
    return np.asarray(np.bincount(forecasts.event_index, weights=counted, minlength=len(forecasts.events)) > 0)


def plain(label: object) -> object:
    """Return a class label as a value that JSON has: text, number or truth value; None for no label."""
    return label if label is None or isinstance(label, str | bool | int) else str(label)


def happened(forecasts: Forecasts) -> list[object]:
    """Return the label of each event's outcome, (T,); None for unresolved events."""
    labels = forecasts.happened
    return list(map({label: plain(label) for label in set(labels)}.__getitem__, labels))


def about(forecasts: Forecasts) -> str | None:
    """Return, as text, the class whose probability forecasts give; None if that class is 1 or True, or if K > 2."""
    if len(forecasts.classes) > 2 or forecasts.options is not None or forecasts.classes[1] in (1, True, "1"):
        return None
    return printable(str(forecasts.classes[1]))


def closing_times(forecasts: Forecasts) -> list[str | None]:
    """Return each event's closing time in UTC as text, dates if all times are midnights; None if it is unknown."""
    if forecasts.closes is None:
        return [None] * len(forecasts.events)
    days = bool(midnights(forecasts.closes).all())
    times = forecasts.closes.astype("datetime64[D]" if days else "datetime64[s]").tolist()
    return [None if time is None else time.isoformat() + ("" if days else "Z") for time in times]


def plain_time(text: str) -> str:
    """Return a time without T, Z and zero seconds, and the last second of a day as the date alone."""
    return text.removesuffix("T23:59:59Z").removesuffix(":00Z").replace("T", " ").removesuffix("Z")


def event_columns(pooled: Pooled, *, only_open: bool = False) -> list[Column]:
    """Return columns of events, probabilities and outcomes, a row for each event (for each class of it if K > 2).

    In a table, an event with several rows is named in the first of them, and the class that happened is marked.
    """
    forecasts, several, event = pooled.forecasts, pooled.several, about(pooled.forecasts)
    listed = pooled.listed()
    p, low, high = (share[listed] for share in pooled.shares())
    rows, places = (each.tolist() for each in listed)

    def of_event(
        key: str, values: Sequence[Any], title: str | None, show: Callable[[Any], str] = str, spare: int = 0
    ) -> Column:
        if not several:
            return Column(key, values, title, show, spare=spare)
        every = [values[t] for t in rows]
        first = [value if place == 0 else None for value, place in zip(every, places, strict=True)]
        return Column(key, every, title, show, spare=spare, table=first)

    remark = np.array(["no forecast: the prior", None, "in-sample"], dtype=object)
    remarks = remark[(forecasts.crowd > 0) * (1 + pooled.in_sample)].tolist()
    labels: list[Column] = []
    if several:
        sets = forecasts.options or [forecasts.classes] * len(forecasts.events)
        title = "class" if forecasts.options is None else "option"
        labels = [Column("class", [plain(sets[t][i]) for t, i in zip(rows, places, strict=True)], title)]
        happens = forecasts.outcomes.tolist()
        beside = zip(rows, places, strict=True)
        words = [["happened"] * (happens[t] == i) + [remarks[t] or ""] * (i == 0) for t, i in beside]
        remarks = [", ".join(filter(None, each)) for each in words]
    between = [] if pooled.interval is None else [("low", low, "90% from"), ("high", high, "to")]
    outcome = None if several or only_open else "outcome"
    closes = [] if forecasts.closes is None else [closing_times(forecasts)]
    return [
        of_event("event", forecasts.events, "event"),
        *labels,
        Column("probability", p.tolist(), "probability" if event is None else f"P({event})", percent),
        *(Column(key, _finite(end), title, percent) for key, end, title in between),
        of_event("experts", forecasts.crowd.tolist(), "experts", whole, 1),
        *(of_event("closes", times, "closes" if only_open else None, plain_time, 2) for times in closes),
        of_event("outcome", happened(forecasts), outcome),
        of_event("in_sample", pooled.in_sample.tolist(), None),
        of_event("status", np.array(["open", "resolved"], dtype=object)[forecasts.ended.astype(int)].tolist(), None),
        Column("remark", remarks, "", machine=False),
    ]


def void_columns(columns: Sequence[Column], void: Mapping[str, int]) -> list[Column]:
    """The same columns for void (annulled) events, a row for each; `void` has numbers of forecasts by event."""
    n = len(void)
    own: dict[str, Sequence[object]] = {"event": [*void], "experts": [*void.values()], "in_sample": [False] * n}
    own["status"] = ["void"] * n
    return [replace(each, values=own.get(each.key, [None] * n), table=None) for each in columns]


def void_records(void: Mapping[str, int]) -> Iterator[dict[str, object]]:
    """Yield a record for JSON for each void event; `void` has the number of forecasts on it."""
    for event, crowd in void.items():
        yield {"event": event, "experts": crowd, "outcome": None, "in_sample": False, "status": "void"}


def event_records(pooled: Pooled) -> Iterator[dict[str, object]]:
    """Yield a record for JSON for each event: probability, interval, outcome; by class if there are more than two."""
    columns = event_columns(pooled)
    if not pooled.several:
        yield from records(columns)
        return
    labels = next(column.values for column in columns if column.key == "class")
    chosen = [column for column in columns if column.machine and column.key != "class"]
    end = 0
    for size in pooled.forecasts.sizes.tolist():
        rows = range(end, end := end + size)
        names = [str(labels[i]) for i in rows]
        yield {
            "probabilities" if column.key == "probability" else column.key: (
                dict(zip(names, (column.values[i] for i in rows), strict=True))
                if column.key in {"probability", "low", "high"}
                else column.values[rows[0]]
            )
            for column in chosen
        }


def answer_notes(pooled: Pooled) -> list[Note]:
    """Return notes on how many answers are in-sample, equal the prior, or lie at the lowest or highest probability."""
    notes: list[Note] = []
    t = len(pooled.forecasts.events)
    taught = int(pooled.in_sample.sum())
    if taught:
        sample = sample_size(pooled.state)
        learned = "has learned from these outcomes, so they"
        if sample is not None:
            learned = f"knew these outcomes, but has learned from {sample:,} events only; answers about those"
        notes.append(finding("in-sample", count=taught, total=t, learned=learned))
    blank = int((pooled.forecasts.crowd == 0).sum())
    if blank:
        notes.append(finding("no-forecast", count=blank, gets="got"))
    p = pooled.probabilities if pooled.probabilities.ndim > 1 else pooled.probabilities[:, None]
    used = np.arange(p.shape[1]) < pooled.forecasts.sizes[:, None]
    bound = int((((p <= POOL_FLOOR) | (p >= 1.0 - POOL_FLOOR)) & used).any(axis=1).sum())
    if bound:
        notes.append(finding("at-floor", count=bound, least=percent(POOL_FLOOR)))
    return notes


def unlearned(forecasts: Forecasts, trained: TrainedPool, *, ahead: bool = True) -> list[Note]:
    """Notes on resolved events that a saved pool did not learn and, if `ahead`, on open events that it learned.

    Of the latter, the pool knows the outcome, though `forecasts` do not have it.
    """
    stream, notes = trained.stream, list[Note]()
    known = np.array([stream is not None and stream.knows(event) for event in forecasts.events], dtype=bool)
    early, fresh = known & ~forecasts.resolved, ~known & forecasts.resolved
    if ahead and early.any():
        notes.append(finding("looks-ahead", count=int(early.sum())))
    if fresh.any():
        way = "" if stream is None else "; --save NEW goes on learning"
        notes.append(finding("not-learned", count=int(fresh.sum()), way=way))
    if ahead and getattr(trained.learned, "topics", None) is not None and forecasts.topics is None:
        notes.append(finding("topics-not-used"))
    return notes


def expert_notes(state: Fitted) -> list[Note]:
    """Return notes on how many experts have a negative weight, and how many have a negative calibration."""
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
    """Return columns with each expert's features, weight and numbers of forecasts, by decreasing weight."""
    columns = [Column("expert", forecasts.experts, "expert")]
    weights = state.weights
    if isinstance(state, FittedPanel):
        columns += _feature_columns(state, forecasts)
    if weights is not None:
        low, high = map(_finite, state.weight_interval())
        both = with_limits(Column("weight", _finite(weights), "weight", decimal), low, high, hundredths)
        columns += both if any(end is not None for end in low) else both[:1]
    if isinstance(state, FittedPanel) and isinstance(state.panel, FullPanel):
        own = np.where(state.present[:, None], state.panel.class_weights, 0.0).T.tolist()
        columns += [
            Column(f"weight:{label}", values, printable(str(label)), decimal, spare=5)
            for label, values in zip(state.panel.classes, own, strict=True)
        ]
    columns += [
        Column("forecasts", forecasts.counts.tolist(), "forecasts", whole, spare=3),
        Column("resolved", forecasts.resolved_counts.tolist(), "resolved", whole, spare=1),
    ]
    order = range(len(forecasts.experts)) if weights is None else np.argsort(-weights, kind="stable").tolist()
    return [replace(column, values=[column.values[i] for i in order]) for column in columns]


def _feature_columns(state: FittedPanel, forecasts: Forecasts) -> list[Column]:
    """Return columns of each expert's bias, calibration, accuracy and AUC; None where a value is only assumed."""
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


def _finite(values: Array) -> list[float | None]:
    """Return numbers as a list with None in place of NaN and infinities."""
    return values.tolist() if np.isfinite(values).all() else [finite(value) for value in values.tolist()]


def ordered(pooled: Pooled, rows: Sequence[int], sort: str) -> list[int]:
    """Return the event positions `rows`, sorted by `sort`, one of `report.SORTS`; ties keep their order."""
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
    """Return positions of the open events that have a forecast, sorted by `sort`, one of `report.SORTS`."""
    forecasts = pooled.forecasts
    return ordered(pooled, np.flatnonzero(~forecasts.resolved & (forecasts.crowd > 0)).tolist(), sort)


class Coverage(NamedTuple):
    """How often 90% intervals contained the true probability in simulations of twelve kinds of panel."""

    events: int  # number of resolved events in each simulated panel
    experts: int  # number of experts in each simulated panel
    mean: float  # share of intervals that contained the truth, as a mean over the kinds of panel
    least: float  # the smallest such share of a kind
    most: float  # the largest such share of a kind


@cache
def coverage(events: int, experts: int) -> Coverage:
    """Return the coverage of intervals in the simulations whose numbers of events and experts are nearest to these."""
    text = Path(__file__).with_name("coverage.csv").read_text(encoding="utf-8")
    rows = (line.split(",") for line in text.splitlines()[1:])
    measured = (Coverage(int(t), int(n), *map(float, shares)) for t, n, *shares in rows)
    sizes = max(events, 1), max(experts, 1)
    return min(measured, key=lambda row: sum(abs(math.log(a / b)) for a, b in zip(row, sizes, strict=False)))


def coverage_words(events: int, experts: int) -> str:
    """Return the sentence on how often 90% intervals contain the true probability in simulated panels of this size."""
    row = coverage(events, experts)
    return (
        f"in simulations of twelve kinds of panel with {counted(row.events, 'resolved event')} and "
        f"{counted(row.experts, 'expert')}, such an interval contained the true probability in {100 * row.mean:.0f} of "
        f"100 answers, and in {100 * row.least:.0f} where the method fits the panel least"
    )
