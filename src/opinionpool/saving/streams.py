"""Saved form of a stream: events as columns, sums, and a ledger of the events in the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array
from opinionpool.errors import SavedPoolError
from opinionpool.estimation.sampling import priorities, row_keys
from opinionpool.estimation.statistics import PatternMoments, Statistics
from opinionpool.names import expert_names
from opinionpool.saving.codec import Kind, Label, demand, shaped, sized
from opinionpool.scales import scale_texts, scales_given
from opinionpool.streams.block import EventBlock, event_key
from opinionpool.streams.ledger import ENTRY, Ledger
from opinionpool.streams.sample import EventSample
from opinionpool.streams.stream import Stream
from opinionpool.streams.totals import Clock, Totals

Whole = npt.NDArray[np.int64]
Texts = tuple[str | None, ...] | None


def _take_events(block: EventBlock) -> Mapping[str, Any]:
    """Return the columns of a block of events for saving, with times and names as texts."""
    found: dict[str, Any] = {}
    for name in _EVENTS:
        column = getattr(block, "probabilities" if name == "said" else name)
        if column is not None and column.dtype.kind == "M":
            column = [None if np.isnat(time) else str(time) for time in column]
            column = column if any(column) else None
        elif column is not None and column.dtype.kind in "Ob":
            column = column.tolist()
        found[name] = column
    return found


def _make_events(**columns: Any) -> EventBlock:  # noqa: ANN401 - as `_EVENTS` says
    """Return a block of events from its saved columns; a SavedPoolError if they do not fit together."""
    for name in ("times", "made", "asked"):
        if columns[name] is not None:
            texts = ["NaT" if text is None else text for text in columns[name]]
            try:
                columns[name] = np.array(texts, dtype="datetime64[us]")
            except ValueError as error:
                raise SavedPoolError(f"{name} should be times: {error}"[:80]) from None
    for name in ("ids", "groups", "topics"):
        columns[name] = None if columns[name] is None else np.array([*columns[name], None], dtype=object)[:-1]
    settled, columns["probabilities"] = columns["settled"], columns.pop("said")
    columns["settled"] = None if settled is None else np.array(settled, dtype=bool)
    block = EventBlock(**columns)
    for each in fields(EventBlock):
        column, size = getattr(block, each.name), len(block if each.metadata["axis"] == "event" else block.experts)
        demand(column is None or len(column) == size, f"there should be {size} {each.name} of events or forecasts")
    right = (block.sizes >= 0).all() and int(block.sizes.sum()) == len(block.experts)
    demand(right, f"sizes should add up to the {len(block.experts)} forecasts that there are")
    return block


def _check_events(block: EventBlock, experts: int, classes: int, *, resolved: bool) -> None:
    """Raise a SavedPoolError for events that streams with so many `experts` and `classes` cannot have."""
    t, shape = len(block), () if classes == 2 else (classes,)
    sized(block, "weights t +, at t", t=t)
    right = not len(block.experts) or (block.experts.min() >= 0 and block.experts.max() < experts)
    demand(right, f"each forecast should be by one of the experts 0 to {experts - 1}")
    cells = np.repeat(np.arange(t), block.sizes) * max(experts, 1) + block.experts
    demand(len(np.unique(cells)) == len(cells), "each expert should have one forecast on an event")
    names = [name for name in block.ids.tolist() if name is not None]
    demand(len(set(names)) == len(names) and (resolved or len(names) == t), "events should have different ids")
    p = block.probabilities
    shaped(p, (len(cells), *shape), "probabilities", least=0.0)
    right = np.abs(p.sum(axis=-1) - 1.0).max(initial=0.0) <= 1e-9 if shape else p.max(initial=0.0) <= 1.0
    demand(right, "forecasts should be probabilities")
    low, high = (0, classes - 1) if resolved else (-1, -1)
    right = not t or (low <= block.outcomes.min() and block.outcomes.max() <= high)
    demand(right, f"outcomes should lie between {low} and {high}")
    if block.priors is not None:
        demand(block.priors.shape == (t, *shape), f"the priors of {t} events have the shape {block.priors.shape}")
        own = block.priors[~np.isnan(block.priors.reshape(t, -1)).any(axis=1)]
        logodds.class_probabilities(own, classes)


class _Pattern(NamedTuple):
    """Saved moments of the events on which one set of experts has forecasts, and the positions of these experts."""

    experts: Whole
    weight: Array
    mean: Array
    scatter: Array


def _take_moments(found: Statistics) -> Mapping[str, Any]:
    """Return the parts of `found` to save: number of events by outcome, and the moments by set of experts present."""
    parts = ((np.array(key, np.int64), part) for key, part in found.patterns.items())
    return {"events": found.totals, "patterns": [_Pattern(key, p.weight, p.mean, p.scatter) for key, p in parts]}


def _statistics(saved: Mapping[str, Any] | None, experts: tuple[str, ...], k: int) -> Statistics | None:
    """Return statistics by experts from their saved form; None stays None."""
    if saved is None:
        return None
    shaped(saved["events"], (k + 1,), "the events by outcome", least=0.0)
    found: dict[tuple[int, ...], PatternMoments] = {}
    for part in saved["patterns"]:
        key = tuple(part.experts.tolist())
        inside = list(key) == sorted(set(key)) and key and key[0] >= 0 and key[-1] < len(experts)
        once = inside and key not in found
        demand(once, "experts who answered together should be given by position, in order and once")
        shaped(part.weight, (k + 1,), "the weights of moments", least=-1e-9)
        sized(part, "mean c n d, scatter 2 n n", c=k + 1, n=part.experts.size, d=k - 1)
        found[key] = PatternMoments(part.weight, part.mean, part.scatter)
    return Statistics(experts, k, saved["events"], found)


def _take_ledger(ledger: Ledger) -> Mapping[str, Any]:
    """Return the columns of a ledger of resolved events for saving."""
    entries = ledger.array()
    return {saved: np.ascontiguousarray(entries[name]) for saved, name in zip(_LEARNED, ENTRY.names or (), strict=True)}


def _make_ledger(**columns: Any) -> Ledger:  # noqa: ANN401 - as `_LEARNED` says
    """Return a ledger of resolved events from its saved columns; a SavedPoolError if they do not fit together."""
    t = len(columns["keys"])
    right = len(np.unique(columns["keys"])) == t and all(len(column) == t for column in columns.values())
    demand(right, "resolved events should have different keys, and a content and an outcome each")
    shaped(columns["weights"], (t,), "the weights", least=0.0)
    shaped(columns["at"], (t,), "the times")
    entries = np.empty(t, ENTRY)
    for name, saved in zip(ENTRY.names or (), _LEARNED, strict=True):
        entries[name] = columns[saved]
    return Ledger().added(entries)


def _take(stream: Stream) -> Mapping[str, Any]:
    state = stream._settled()
    totals, sample, k = state.totals, state.sample, len(state.classes)
    parts = sample.parts or ((np.empty(0), EventBlock.of_events((), k)),)
    return {
        "classes": tuple(label.item() if isinstance(label, np.generic) else label for label in stream.classes),
        **{name: getattr(stream, name) for name in ("half_life", "capacity", "seed", "floor", "pool_floor")},
        "timed": state.clock.timed,
        "clock": state.clock.events,
        **{name: getattr(totals, name) for name in ("prior", "experts", *_TOTALS, "origin")},
        "moments": totals.shared,
        "moments_of_contrasts": totals.own,
        "sample": parts[0][1],
        "priorities": parts[0][0],
        "beyond": sample.beyond,
        "open": EventBlock.of_events(list(state.open.values()), k),
        "resolved": state.ledger,
        "rows": state.rows,
        "scales": scale_texts(stream.scales) or None,
        "levels": scale_texts(stream.levels) or None,
    }


def _make(
    classes: tuple[object, ...],
    prior: Array | None,
    half_life: float | None,
    capacity: int,
    seed: int,
    floor: float,
    pool_floor: float,
    rows: int,
    scales: Mapping[str, Any] | None,
    levels: Mapping[str, Any] | None,
    **parts: Any,  # noqa: ANN401 - as `_FIELDS` says
) -> Stream:
    k = len(classes)
    if prior is not None:
        shaped(prior, (k,), "the prior", least=logodds.LEAST)
    stream = Stream(
        classes,
        prior=None if prior is None else logodds.public_probabilities(prior),
        half_life=half_life, capacity=capacity, seed=seed, floor=floor, pool_floor=pool_floor, scale=levels,
    )  # fmt: skip
    stream.scales = scales_given(scales)
    stream.older = parts["priorities"] is None
    experts = expert_names(parts["experts"], len(parts["experts"]))
    state, _ = stream._state.joined(experts)
    # What is divided by its sum again may differ in its last bit.
    totals = replace(_totals(state.totals, experts, parts), prior=prior)
    sample, opened, ledger = _sample(state.sample, len(experts), parts), parts["open"], parts["resolved"]
    learned = ledger.array()
    right = not len(learned) or (learned["outcome"].min() >= 0 and learned["outcome"].max() < k)
    demand(right, f"outcomes should lie between 0 and {k - 1}")
    latest = max(each.max(initial=-np.inf) for each in (parts["sample"].at, learned["at"]))
    right = half_life is None or latest <= totals.origin
    demand(right, f"an event should not be later than the latest time, {totals.origin:g}")
    _check_events(opened, len(experts), k, resolved=False)
    number = int(totals.number.sum())
    right = 0 <= rows < 1 << 62 and number == len(ledger) + rows
    demand(right, f"{number} events do not fit the {len(ledger)} that are known")
    stream._state = state._replace(
        clock=Clock(half_life, parts["timed"], parts["clock"]),
        totals=totals,
        sample=sample,
        ledger=ledger,
        open={str(event.id): event for event in opened},
        rows=rows,
    )
    if experts:
        stream.sample()
    return stream


def _sample(empty: EventSample, experts: int, parts: Mapping[str, Any]) -> EventSample:
    """Return a sample of events from its saved `parts`; release 0.1 did not save priorities: they come from the ids."""
    block, beyond, priority = parts["sample"], parts["beyond"], parts["priorities"]
    right = beyond.shape == empty.beyond.shape and not np.isnan(beyond).any()
    demand(right, f"the bounds of the sample should be {len(empty.beyond)} numbers")
    _check_events(block, experts, len(beyond), resolved=True)
    if priority is None:
        with np.errstate(over="ignore", divide="ignore"):
            keys = [
                int(row_keys(np.array([name]), empty.seed)[0]) if isinstance(name, int) else event_key(name, empty.seed)
                for name in block.ids.tolist()
            ]
            priority = priorities(np.array(keys, dtype=np.uint64), np.log(block.weights) + empty.pace * block.at)
        ids = [None if isinstance(name, int) else name for name in block.ids.tolist()]
        block = replace(block, ids=np.array([*ids, None], dtype=object)[:-1])
    shaped(priority, (len(block),), "the priorities of the sample")
    found = replace(empty, beyond=beyond).with_part(priority, block).thinned()
    demand(len(found) == len(block), "the sample holds events that have no place in it")
    return found


def _totals(empty: Totals, experts: tuple[str, ...], parts: Mapping[str, Any]) -> Totals:
    n, k = len(experts), len(empty.events)
    for name, size in zip(_TOTALS, (k, k, n, n, k), strict=True):
        shaped(np.asarray(parts[name], dtype=np.float64), (size,), name, least=0.0)
    demand(parts["origin"] < np.inf, f"the latest time should be a number, and is {parts['origin']}")
    shared, own = parts["moments"], parts["moments_of_contrasts"]
    both = (shared is None) == (own is None)
    demand(both, "moments of log-ratios and of contrasts should both be there, or neither")
    return replace(
        empty.over(experts),
        **{name: parts[name] for name in (*_TOTALS, "origin")},
        shared=_statistics(shared, experts, k),
        own=_statistics(own, experts, k),
    )


_TOTALS = ("events", "number", "counts", "cells", "lowest")
_EVENTS: Mapping[str, Any] = {
    "ids": tuple[str | int | None, ...], "sizes": Whole, "experts": Whole, "said": Array, "priors": Array | None,
    "outcomes": Whole, "weights": Array, "at": Array, "times": Texts, "groups": Texts,
    "settled": tuple[bool, ...] | None, "topics": Texts, "made": Texts, "asked": Texts,
}  # fmt: skip
_KEYS = npt.NDArray[np.uint64]
_LEARNED: Mapping[str, Any] = {"keys": _KEYS, "contents": _KEYS, "outcomes": Whole, "weights": Array, "at": Array}
_FIELDS: Mapping[str, Any] = {
    "classes": tuple[Label, ...], "prior": Array | None, "half_life": float | None, "capacity": int, "seed": int,
    "floor": float, "pool_floor": float, "timed": bool | None, "clock": int, "experts": tuple[str, ...],
    "events": Array, "number": Whole, "counts": Array, "cells": Whole, "lowest": Array, "origin": float,
    "moments": Statistics | None, "moments_of_contrasts": Statistics | None, "sample": EventBlock, "beyond": Array,
    "priorities": Array | None, "open": EventBlock, "resolved": Ledger, "rows": int,
    "scales": Mapping[str, Any] | None, "levels": Mapping[str, Any] | None,
}  # fmt: skip

STREAMS = (
    Kind("events", EventBlock, _EVENTS, _take_events, _make_events, tuple(_EVENTS)[10:], ("earlier", "earlier_made")),
    Kind.of("moments-of-pattern", _Pattern),
    Kind("moments", Statistics, {"events": Array, "patterns": tuple[_Pattern, ...]}, _take_moments, dict),
    Kind("events-learned", Ledger, _LEARNED, _take_ledger, _make_ledger),
    Kind(
        "stream",
        Stream,
        _FIELDS,
        _take,
        _make,
        ("priorities", "scales", "levels"),
        ("fingerprint", "next_row", "numbers"),
    ),
)
