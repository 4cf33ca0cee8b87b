"""Rows of one class or option each, folded to a row per forecast; and events that have options of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.labels import Options
from opinionpool.logodds import SUM_TOLERANCE
from opinionpool.tables.classes import Asked, key
from opinionpool.tables.layout import Layout
from opinionpool.tables.melt import Melted
from opinionpool.tables.statements import EXACT, LongRows
from opinionpool.text import listed, shown

# Sums that are so far from 1 may be meant to be 1.
_NEARLY = 0.1
# Below it --normalise would make up most of a forecast.
_LEAST = 0.5


def class_lacking(long_rows: LongRows, start: int, labels: Sequence[object] | None = None) -> str:
    """Return the first of `labels` (default: all classes) without a probability in the forecast of row `start`."""
    present = {long_rows.classes[code] for code in long_rows.label[long_rows.pair == long_rows.pair[start]]}
    return next(str(label) for label in labels or long_rows.classes if label not in present)


def fold_rows(
    long_rows: LongRows,
    order: Sequence[int],
    options: EventOptions | None,
    half_units: Callable[[LongRows], Array],
    drop_incomplete: bool = False,
    normalise: bool = False,
) -> tuple[LongRows, Array, list[Note]]:
    """Return one row for each forecast of several classes or options, its probabilities, and notes.

    `order` are the positions of the classes in `long_rows.classes`, if events have no options of their own;
    `half_units` gives half a unit of the last digit written in each row, by which sums may be off.
    """
    long_rows = long_rows.select(np.argsort(long_rows.key, kind="stable"))
    _, starts, counts = np.unique(long_rows.pair, return_index=True, return_counts=True)
    short = counts != (len(order) if options is None else options.sizes[long_rows.event[starts]])
    dropped: list[Note] = []
    if short.any():
        if not drop_incomplete:
            raise _lacking(long_rows, options, int(starts[short.argmax()]), int(short.sum()))
        long_rows, starts, counts, dropped = _without_incomplete(long_rows, counts, short)
    table = np.zeros((len(counts), len(order) if options is None else max(2, int(options.sizes.max(initial=2)))))
    slots = np.argsort(order)[long_rows.label] if options is None else options.slot(long_rows)
    table[np.repeat(np.arange(len(counts)), counts), slots] = long_rows.value
    total = table.sum(axis=1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        slack = np.zeros(len(starts))
        cells = np.flatnonzero(np.repeat(off, counts))
        np.add.at(slack, np.repeat(np.flatnonzero(off), counts[off]), half_units(long_rows.select(cells)))
        beyond = off & ((np.abs(total - 1.0) > slack + 1e-9) | (total <= 0))
        if normalise:
            beyond &= total < _LEAST
        if beyond.any():
            raise _off_sum(long_rows, int(starts[beyond.argmax()]), float(total[beyond.argmax()]), total[beyond])
    uneven = np.abs(total - 1.0) > EXACT
    if uneven.any():
        table = np.where(uneven[:, None], table / np.where(total > 0, total, 1.0)[:, None], table)
    return long_rows.select(starts), table, [*dropped, *_normalised_note(total, uneven, normalise)]


def _lacking(long_rows: LongRows, options: EventOptions | None, start: int, count: int) -> OpinionPoolError:
    """Return the error for the first of `count` incomplete forecasts, at row `start`, with a class that it lacks."""
    labels = long_rows.classes if options is None else options.of_events[long_rows.event[start]]
    about = {"lacking": class_lacking(long_rows, start, labels), "size": len(labels), **long_rows.about(start)}
    about |= {"count": count}
    ways = [Remedy({"drop_incomplete": True})]
    return fault("class-lacks", None, ways, **about) if options is None else fault("option-lacks", None, ways, **about)


def _without_incomplete(
    long_rows: LongRows, counts: Index, short: npt.NDArray[np.bool_]
) -> tuple[LongRows, Index, Index, list[Note]]:
    """Return the rows without forecasts that lack a class, the first row and length of each forecast, and a note."""
    long_rows = long_rows.select(np.repeat(~short, counts))
    counts = counts[~short]
    count = int(short.sum())
    return long_rows, np.cumsum(counts) - counts, counts, [finding("incomplete", count=count)]


def _normalised_note(total: Array, uneven: npt.NDArray[np.bool_], asked: bool) -> list[Note]:
    """Return the note on forecasts that were divided by their sum; empty if there are none."""
    if not uneven.any():
        return []
    count, worst = int(uneven.sum()), float(np.abs(total - 1).max())
    why = "" if asked else " by rounding"
    return [finding("normalised", count=count, total=len(total), why=why, worst=worst)]


def _off_sum(long_rows: LongRows, start: int, total: float, totals: Array) -> OpinionPoolError:
    """Return the error for forecasts that do not add up to 1; --normalise is a remedy if all of them nearly do."""
    way = "--normalise divides such forecasts by their sum, if no class is lacking"
    if total < _LEAST:
        way = f"that is too little for --normalise, which takes sums of {_LEAST:g} and above"
    nearly = bool((np.abs(totals - 1.0) <= _NEARLY).all())
    ways = [Remedy({"normalise": True})] if nearly else []
    return fault("off-sum", None, ways, total=total, way=way, count=len(totals), **long_rows.about(start))


CHOICES = ("event", "shared")


@dataclass(frozen=True)
class EventOptions:
    """The options of T events, each in order of first appearance."""

    labels: Sequence[str]  # L labels of all events
    keys: Index  # (P,); pairs of event and label that occur, as event * L + label, increasing
    slots: Index  # (P,); the position of each among its event's options
    sizes: Index  # (T,); how many options each event has

    @classmethod
    def of(cls, labels: Sequence[str], event: Index, label: Index, events: int) -> EventOptions:
        """Return the options of each event, from the event and label of each row in the order of the table."""
        keys, first = np.unique(event * len(labels) + label, return_index=True)
        owner = keys // max(len(labels), 1)
        sizes = np.bincount(owner, minlength=events)
        order = np.lexsort((first, owner))
        slots = np.empty(len(keys), dtype=np.intp)
        slots[order] = np.arange(len(keys)) - (np.cumsum(sizes) - sizes)[owner[order]]
        return cls(labels, keys, slots, sizes)

    @property
    def of_events(self) -> Options:
        """Labels of each event, in order of first appearance."""
        owner = self.keys // max(len(self.labels), 1)
        order = np.lexsort((self.slots, owner))
        words = [self.labels[code] for code in (self.keys[order] % max(len(self.labels), 1)).tolist()]
        ends = np.cumsum(self.sizes).tolist()
        return tuple(tuple(words[end - size : end]) for end, size in zip(ends, self.sizes.tolist(), strict=True))

    def slot(self, long_rows: LongRows) -> Index:
        """Return the position of each row's option among the options of its event, (M,)."""
        return self.slots[np.searchsorted(self.keys, long_rows.event * len(self.labels) + long_rows.label)]

    @property
    def note(self) -> Note:
        """Note on the number of options that events have, and on the number of distinct sets of options."""
        sets = list(dict.fromkeys(frozenset(labels) for labels in self.of_events if labels))
        used = self.sizes[self.sizes > 0]
        least, most = int(used.min()), int(used.max())
        many = f"{least}" if least == most else f"{least} to {most}"
        return finding("options", many=many, count=len(sets))


def find_options(
    melted: Melted, layout: Layout, rule: str | None, asked: Asked, counting: LongRows
) -> EventOptions | None:
    """Return the options of each event, None if all events share their classes.

    Options are from the forecasts that may count, `counting`; of events without any, from all rows.
    """
    if rule not in {None, *CHOICES}:
        raise ArgumentError(f"options can be 'event' or 'shared', and not {rule!r}")
    long_rows = melted.long_rows
    if rule == "event" and not (layout.long and melted.written):
        raise fault("no-option-column", Place(long_rows.table.name))
    if rule == "shared" or not (layout.long and long_rows.classes) or (asked.classes and rule is None):
        return None
    found = EventOptions.of(long_rows.classes, *_pairs(melted, counting), len(long_rows.events))
    answered = np.unique(long_rows.event)
    if (found.sizes[answered] == len(long_rows.classes)).all():
        return None
    if rule is None and not _clear(found):
        raise _unclear(long_rows, found)
    if asked.positive is not None or asked.classes:
        raise ArgumentError("--positive and classes are for classes that all events share, and these have their own")
    single = answered[found.sizes[answered] < 2]
    if len(single):
        every = len(single) == len(answered)
        topic = long_rows.table.names[layout.roles["class"]] if every and "class" in layout.roles else None
        raise _one_option(long_rows, found, int(single[0]), topic)
    return found


def _one_option(long_rows: LongRows, found: EventOptions, event: int, topic: str | None) -> OpinionPoolError:
    """Return the error for an event with one option; `topic` is the class column if all events have only one."""
    about = {"event": long_rows.events[event], "option": found.of_events[event][0]}
    if topic is None:
        return fault("one-option", Place(long_rows.table.name), (), **about)
    ways = [Remedy({"columns": {"topic": topic}}), Remedy({"columns": {"class": None}})]
    return fault("one-option-each", Place(long_rows.table.name), ways, topic=topic, **about)


def _pairs(melted: Melted, counting: LongRows) -> tuple[Index, Index]:
    """Return event and label of each forecast in `counting`, and of the rows of events without such forecasts."""
    given = counting.select(~np.isnan(counting.value))
    unanswered = np.ones(len(given.events), dtype=bool)
    unanswered[given.event] = False
    rows = np.flatnonzero((melted.row_events >= 0) & (melted.row_labels >= 0))
    rows = rows[unanswered[melted.row_events[rows]]]
    event = np.concatenate([given.event, melted.row_events[rows]])
    return event, np.concatenate([given.label, melted.row_labels[rows]])


def _clear(found: EventOptions) -> bool:
    """Whether no class, in any spelling, is in two different sets of options."""
    sets = {frozenset(labels) for labels in found.of_events if labels}
    words = [key(str(label)) for labels in sets for label in labels]
    return len(words) == len(set(words))


def _unclear(long_rows: LongRows, found: EventOptions) -> OpinionPoolError:
    """Return the error that asks whether events have options of their own, or forecasts lack classes."""
    options = found.of_events
    _, start, count = np.unique(long_rows.pair, return_index=True, return_counts=True)
    short = start[count < len(long_rows.classes)]
    event = (
        int(long_rows.event[short[0]])
        if len(short)
        else int(np.where(found.sizes, found.sizes, len(long_rows.classes)).argmin())
    )
    other = next(i for i, labels in enumerate(options) if labels and set(labels) != set(options[event]))
    examples = " and ".join(f"{shown(long_rows.events[i])} ({listed(options[i], 4)})" for i in (event, other))
    if not len(short):
        # Every forecast has as many rows as there are classes: one of them lacks its class or its probability.
        ways = [Remedy({"options": rule}) for rule in CHOICES]
        return fault("classes-differ", Place(long_rows.table.name), ways, examples=examples)
    first = int(short[0])
    ways = [Remedy({"options": "event"}), Remedy({"options": "shared", "drop_incomplete": True})]
    lacking = class_lacking(long_rows, first)
    return fault("class-or-option", None, ways, lacking=lacking, examples=examples, **long_rows.about(first))
