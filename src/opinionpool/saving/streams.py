"""A stream as it is saved: its events by column, its sums, and which events they are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array
from opinionpool.earlier import Earlier
from opinionpool.errors import SavedPoolError
from opinionpool.estimation.sampling import row_keys
from opinionpool.estimation.statistics import PatternMoments, Statistics
from opinionpool.names import expert_names
from opinionpool.saving.codec import Kind, Label, shaped
from opinionpool.streams.events import Record, event_key
from opinionpool.streams.ledger import ENTRY, Ledger
from opinionpool.streams.moments import Tally
from opinionpool.streams.numbering import Numbering
from opinionpool.streams.stream import Stream

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Events:
    """Events by column; `sizes` says how many of the forecasts are on each."""

    ids: tuple[str | int, ...]
    sizes: Whole
    experts: Whole
    probabilities: Array
    priors: Array | None
    outcomes: Whole
    weights: Array
    at: Array
    times: tuple[str | None, ...] | None
    groups: tuple[str | None, ...] | None
    settled: tuple[bool, ...] | None = None
    topics: tuple[str | None, ...] | None = None
    made: tuple[str | None, ...] | None = None  # of each forecast
    asked: tuple[str | None, ...] | None = None
    # earlier, earlier_made: of each forecast, as in `opinionpool.earlier.Earlier`
    earlier: Array | None = None
    earlier_made: tuple[str | None, ...] | None = None

    @classmethod
    def of(cls, records: Sequence[Record], classes: int) -> _Events:
        shape = () if classes == 2 else (classes,)
        blank = np.full(shape, np.nan)
        own = any(record.prior is not None for record in records)
        earlier = Earlier.joined([(record.earlier, record.probabilities) for record in records])
        timed, grouped = (any(getattr(r, name) is not None for r in records) for name in ("time", "group"))
        return cls(
            ids=tuple(record.event for record in records),
            sizes=np.array([len(record.experts) for record in records], dtype=np.int64),
            experts=np.concatenate([np.empty(0, np.int64), *(record.experts for record in records)]),
            probabilities=np.concatenate([np.empty((0, *shape)), *(record.probabilities for record in records)]),
            priors=np.array([blank if r.prior is None else r.prior for r in records]) if own else None,
            outcomes=np.array([record.outcome for record in records], dtype=np.int64),
            weights=np.array([record.weight for record in records], dtype=np.float64),
            at=np.array([record.at for record in records], dtype=np.float64),
            times=tuple(None if r.time is None else str(r.time) for r in records) if timed else None,
            groups=tuple(r.group for r in records) if grouped else None,
            settled=tuple(r.settled for r in records) if any(r.settled for r in records) else None,
            topics=tuple(r.topic for r in records) if any(r.topic for r in records) else None,
            made=_texts([each for r in records for each in r.times_made()]),
            asked=_texts([r.asked for r in records]),
            earlier=None if earlier is None else earlier.probabilities,
            earlier_made=None if earlier is None else _texts(earlier.made),
        )

    def records(self, seed: int) -> list[Record]:
        ends = np.concatenate([[0], np.cumsum(self.sizes)]).tolist()
        rows = []
        for i, event in enumerate(self.ids):
            cells = slice(ends[i], ends[i + 1])
            key = event_key(event, seed) if isinstance(event, str) else int(row_keys(np.array([event]), seed)[0])
            prior = None if self.priors is None else self.priors[i]
            time = None if self.times is None else self.times[i]
            rows.append(
                Record(
                    event, key, self.experts[cells].astype(np.intp), self.probabilities[cells],
                    None if prior is None or np.isnan(prior).any() else np.asarray(prior),
                    int(self.outcomes[i]), float(self.weights[i]), float(self.at[i]),
                    None if time is None else _moment(time), None if self.groups is None else self.groups[i],
                    self.settled is not None and self.settled[i],
                    None if self.topics is None else self.topics[i],
                    None if self.made is None else _moments(self.made[cells]),
                    None if self.asked is None else _maybe_moment(self.asked[i]),
                    self._earlier(cells),
                )
            )  # fmt: skip
        return rows

    def _earlier(self, cells: slice) -> Earlier | None:
        if self.earlier is None or self.earlier_made is None:
            return None
        return Earlier(self.earlier[cells], _moments(self.earlier_made[cells])).or_none()

    def check(self, experts: int, classes: int, *, resolved: bool) -> None:
        t, shape = len(self.ids), () if classes == 2 else (classes,)
        for what, column in (("outcomes", self.outcomes), ("sizes", self.sizes), ("at", self.at)):
            shaped(np.asarray(column, dtype=np.float64), (t,), what)
        shaped(self.weights, (t,), "weights", least=0.0)
        cells = int(self.sizes.sum())
        if (self.sizes < 0).any() or (self.sizes > experts).any() or self.experts.shape != (cells,):
            raise SavedPoolError(f"sizes should add up to the {len(self.experts)} forecasts that there are")
        if len(self.experts) and not (self.experts.min() >= 0 and self.experts.max() < experts):
            raise SavedPoolError(f"each forecast should be by one of the experts 0 to {experts - 1}")
        event = np.repeat(np.arange(t), self.sizes)
        if len(np.unique(event * max(experts, 1) + self.experts)) < cells:
            raise SavedPoolError("each expert should have one forecast on an event")
        if len(set(map(str, self.ids))) < t or any(isinstance(i, int) and not 0 <= i < 1 << 62 for i in self.ids):
            raise SavedPoolError("events should have different ids")
        _check_probabilities(self.probabilities, (cells, *shape))
        low = 0 if resolved else -1
        high = classes - 1 if resolved else -1
        if t and not (low <= self.outcomes.min() and self.outcomes.max() <= high):
            raise SavedPoolError(f"outcomes should lie between {low} and {high}")
        for size, texts in (
            *((t, each) for each in (self.times, self.groups, self.settled, self.topics, self.asked)),
            (cells, self.made),
            (cells, self.earlier_made),
        ):
            if texts is not None and len(texts) != size:
                raise SavedPoolError(f"{size} events or forecasts do not fit {len(texts)} times, groups or topics")
        self._check_earlier((cells, *shape))
        if self.priors is not None:
            if self.priors.shape != (t, *shape):
                raise SavedPoolError(f"the priors of {t} events have the shape {self.priors.shape}")
            logodds.class_probabilities(self.priors[~np.isnan(self.priors.reshape(t, -1)).any(axis=1)], classes)

    def _check_earlier(self, shape: tuple[int, ...]) -> None:
        if (self.earlier is None) != (self.earlier_made is None):
            raise SavedPoolError("earlier forecasts and when they were made should both be there, or neither")
        if self.earlier is not None and self.earlier_made is not None:
            known = np.array([made is not None for made in self.earlier_made], dtype=bool)
            if self.earlier.shape != shape:
                raise SavedPoolError(f"earlier forecasts should have the shape {shape}, and have {self.earlier.shape}")
            _check_probabilities(self.earlier[known], (int(known.sum()), *shape[1:]))


def _check_probabilities(values: Array, shape: tuple[int, ...]) -> None:
    shaped(values, shape, "probabilities", least=0.0)
    off = np.abs(values.sum(axis=-1) - 1.0).max(initial=0.0) if shape[1:] else values.max(initial=0.0) - 1.0
    if off > (1e-9 if shape[1:] else 0.0):
        raise SavedPoolError("forecasts should be probabilities")


def _texts(times: Iterable[np.datetime64 | None]) -> tuple[str | None, ...] | None:
    """Times as text, None for those that are unknown; None if all are."""
    found = tuple(None if time is None or np.isnat(time) else str(time) for time in times)
    return found if any(found) else None


def _moments(texts: Sequence[str | None]) -> npt.NDArray[np.datetime64]:
    return np.array([np.datetime64("NaT", "us") if text is None else _moment(text) for text in texts], "datetime64[us]")


def _maybe_moment(text: str | None) -> np.datetime64 | None:
    return None if text is None else _moment(text)


def _moment(text: str) -> np.datetime64:
    try:
        return np.datetime64(text)
    except ValueError:
        raise SavedPoolError(f"{text[:40]!r} is not a time") from None


@dataclass(frozen=True, eq=False)
class _Pattern:
    """`PatternMoments` of the experts at some positions."""

    experts: Whole
    weight: Array
    mean: Array
    scatter: Array


@dataclass(frozen=True, eq=False)
class _Sums:
    """`Statistics`."""

    events: Array
    patterns: tuple[_Pattern, ...]

    @classmethod
    def of(cls, found: Statistics | None) -> _Sums | None:
        if found is None:
            return None
        parts = found.patterns.items()
        return cls(
            found.totals, tuple(_Pattern(np.array(key, np.int64), p.weight, p.mean, p.scatter) for key, p in parts)
        )

    def statistics(self, experts: tuple[str, ...], k: int) -> Statistics:
        shaped(self.events, (k + 1,), "the events by outcome", least=0.0)
        found: dict[tuple[int, ...], PatternMoments] = {}
        for part in self.patterns:
            key, n = tuple(part.experts.tolist()), part.experts.size
            inside = list(key) == sorted(set(key)) and key and key[0] >= 0 and key[-1] < len(experts)
            if not inside or key in found:
                raise SavedPoolError("experts who answered together should be given by position, in order and once")
            shaped(part.weight, (k + 1,), "the weights of moments", least=-1e-9)
            shaped(part.mean, (k + 1, n, k - 1), "the means of moments")
            shaped(part.scatter, (2, n, n), "the cross-products of moments")
            found[key] = PatternMoments(part.weight, part.mean, part.scatter)
        return Statistics(experts, k, self.events, found)


@dataclass(frozen=True, eq=False)
class _Learned:
    """`Ledger`, by column."""

    keys: npt.NDArray[np.uint64]
    contents: npt.NDArray[np.uint64]
    outcomes: Whole
    weights: Array
    at: Array

    @classmethod
    def of(cls, ledger: Ledger) -> _Learned:
        entries = ledger.array()
        return cls(
            entries["key"], entries["content"], entries["outcome"].astype(np.int64), entries["weight"], entries["at"]
        )

    def ledger(self, k: int) -> Ledger:
        t = len(self.keys)
        entries = np.empty(t, ENTRY)
        if len(np.unique(self.keys)) < t or {len(self.contents), len(self.outcomes)} != {t}:
            raise SavedPoolError("resolved events should have different keys, and a content and an outcome each")
        if t and not (self.outcomes.min() >= 0 and self.outcomes.max() < k):
            raise SavedPoolError(f"outcomes should lie between 0 and {k - 1}")
        shaped(self.weights, (t,), "the weights", least=0.0)
        shaped(self.at, (t,), "the times")
        for name, column in (
            ("key", self.keys), ("content", self.contents), ("outcome", self.outcomes), ("weight", self.weights),
            ("at", self.at),
        ):  # fmt: skip
            entries[name] = column
        return Ledger(entries)


def _take(stream: Stream) -> Mapping[str, Any]:
    # Added up here, so that the stream goes on as what is read again does, to the last bit; and then as it is now,
    # whatever other threads do with it meanwhile.
    with stream._lock:
        stream._state.recover()
        stream._state.flush()
        state = stream.copy()._state
    tally, reservoir = state.tally, state.reservoir
    return {
        "classes": tuple(label.item() if isinstance(label, np.generic) else label for label in stream.classes),
        "prior": tally.prior,
        "half_life": stream.half_life,
        "capacity": stream.capacity,
        "seed": stream.seed,
        "floor": stream.floor,
        "pool_floor": stream.pool_floor,
        "timed": state.clock.timed,
        "clock": state.clock.count,
        "experts": tuple(tally.experts),
        "events": tally.events,
        "number": tally.number,
        "counts": tally.counts,
        "cells": tally.cells,
        "lowest": tally.lowest,
        "origin": tally.origin,
        "moments": _Sums.of(tally.shared),
        "moments_of_contrasts": _Sums.of(tally.own),
        "sample": _Events.of(list(reservoir.records()), len(stream.classes)),
        "beyond": reservoir.beyond,
        "open": _Events.of(list(state.open.values()), len(stream.classes)),
        "resolved": _Learned.of(state.ledger),
        "rows": state.rows,
        "next_row": state.numbering.stop,
        "numbers": state.numbering,
        "fingerprint": f"{state.fingerprint:064x}",
    }


def _make(
    classes: tuple[object, ...],
    prior: Array | None,
    half_life: float | None,
    capacity: int,
    seed: int,
    floor: float,
    pool_floor: float,
    **parts: Any,  # noqa: ANN401 - as `_FIELDS` says
) -> Stream:
    k = len(classes)
    if prior is not None:
        shaped(prior, (k,), "the prior", least=logodds.LEAST)
    stream = Stream(
        classes,
        prior=None if prior is None else logodds.public_probabilities(prior),
        half_life=half_life, capacity=capacity, seed=seed, floor=floor, pool_floor=pool_floor,
    )  # fmt: skip
    state, experts = stream._state, expert_names(parts["experts"], len(parts["experts"]))
    state.clock.timed, state.clock.count = parts["timed"], parts["clock"]
    # What is divided by its sum again may differ in its last bit.
    state.tally.prior = prior
    state.join(experts)
    _fill_tally(state.tally, experts, parts)
    beyond = parts["beyond"]
    if beyond.shape != (k,) or np.isnan(beyond).any():
        raise SavedPoolError(f"the bounds of the sample should be {k} numbers")
    parts["sample"].check(len(experts), k, resolved=True)
    latest = max((parts[name].at.max(initial=-np.inf) for name in ("sample", "resolved")), default=-np.inf)
    if half_life is not None and latest > state.tally.origin:
        raise SavedPoolError(f"an event should not be later than the latest time, {state.tally.origin:g}")
    state.reservoir.beyond = beyond
    for record in parts["sample"].records(seed):
        state.reservoir.put(record)
    if len(state.reservoir) != len(parts["sample"].ids):
        raise SavedPoolError("the sample holds events that have no place in it")
    parts["open"].check(len(experts), k, resolved=False)
    state.open = {record.key: record for record in parts["open"].records(seed)}
    state.ledger = parts["resolved"].ledger(k)
    state.ledger.journal = state.journal
    state.rows, stop = parts["rows"], parts["next_row"]
    # Rows without a number are those of events with an id that were summed up elsewhere.
    if not (0 <= state.rows < 1 << 62 and 0 <= stop < 1 << 62):
        raise SavedPoolError(f"there cannot be {state.rows} rows, the next one with the number {stop}")
    state.numbering = _numbering(parts["numbers"], stop)
    if int(state.tally.number.sum()) != len(state.ledger) + state.rows:
        raise SavedPoolError(
            f"{int(state.tally.number.sum())} events do not fit the {len(state.ledger)} that are known"
        )
    try:
        state.fingerprint = int(parts["fingerprint"], 16)
    except ValueError:
        raise SavedPoolError("the fingerprint should be 64 hexadecimal digits") from None
    return stream


def _numbering(numbers: Numbering | None, stop: int) -> Numbering:
    """The numbers of rows; of older files, which do not say them, all of those before the next one."""
    if numbers is None:
        return Numbering(((0, stop),)) if stop else Numbering()
    flat = [number for span in numbers.spans for number in span]
    if any(len(span) != 2 for span in numbers.spans) or flat != sorted(set(flat)) or flat[-1:] != [stop] * bool(flat):
        raise SavedPoolError(f"the numbers of rows should be increasing spans that end at {stop}")
    return numbers


def _fill_tally(tally: Tally, experts: tuple[str, ...], parts: Mapping[str, Any]) -> None:
    n, k = len(experts), tally.classes
    for name, size in (("events", k), ("number", k), ("counts", n), ("cells", n), ("lowest", k)):
        shaped(np.asarray(parts[name], dtype=np.float64), (size,), name, least=0.0)
        setattr(tally, name, parts[name])
    origin = parts["origin"]
    if np.isnan(origin) or origin == np.inf:
        raise SavedPoolError(f"the latest time should be a number, and is {origin}")
    tally.origin = origin
    sums, contrasts = parts["moments"], parts["moments_of_contrasts"]
    if (sums is None) != (contrasts is None):
        raise SavedPoolError("moments of log-ratios and of contrasts should both be there, or neither")
    tally.shared = None if sums is None else sums.statistics(experts, k)
    tally.own = None if contrasts is None else contrasts.statistics(experts, k)


def _nothing(_: object) -> None:
    """What is checked depends on the stream."""


_FIELDS: Mapping[str, Any] = {
    "classes": tuple[Label, ...],
    "prior": Array | None,
    "half_life": float | None,
    "capacity": int,
    "seed": int,
    "floor": float,
    "pool_floor": float,
    "timed": bool | None,
    "clock": int,
    "experts": tuple[str, ...],
    "events": Array,
    "number": Whole,
    "counts": Array,
    "cells": Whole,
    "lowest": Array,
    "origin": float,
    "moments": _Sums | None,
    "moments_of_contrasts": _Sums | None,
    "sample": _Events,
    "beyond": Array,
    "open": _Events,
    "resolved": _Learned,
    "rows": int,
    "next_row": int,
    "numbers": Numbering | None,
    "fingerprint": str,
}

STREAMS = (
    Kind.of("row-numbers", Numbering, _nothing, spans=tuple[tuple[int, ...], ...]),
    replace(
        Kind.of("events", _Events, _nothing, {"probabilities": "said"}),
        optional=("settled", "topics", "made", "asked", "earlier", "earlier_made"),
    ),
    Kind.of("moments-of-pattern", _Pattern, _nothing),
    Kind.of("moments", _Sums, _nothing),
    Kind.of("events-learned", _Learned, _nothing),
    Kind("stream", Stream, _FIELDS, _take, _make, optional=("numbers",)),
)
