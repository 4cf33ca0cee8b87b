"""Events that have options of their own: which, and where a row belongs among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.option_sets import Options
from opinionpool.tables.class_rows import class_lacking
from opinionpool.tables.classes import Asked, key
from opinionpool.tables.layout import Layout
from opinionpool.tables.melt import Melted
from opinionpool.tables.statements import LongRows
from opinionpool.text import listed, shown

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
        """Options from pairs of event and label, in the order of the table."""
        keys, first = np.unique(event * len(labels) + label, return_index=True)
        owner = keys // max(len(labels), 1)
        sizes = np.bincount(owner, minlength=events)
        order = np.lexsort((first, owner))
        slots = np.empty(len(keys), dtype=np.intp)
        slots[order] = np.arange(len(keys)) - (np.cumsum(sizes) - sizes)[owner[order]]
        return cls(labels, keys, slots, sizes)

    @property
    def of_events(self) -> Options:
        """The labels of each event."""
        owner = self.keys // max(len(self.labels), 1)
        order = np.lexsort((self.slots, owner))
        words = [self.labels[code] for code in (self.keys[order] % max(len(self.labels), 1)).tolist()]
        ends = np.cumsum(self.sizes).tolist()
        return tuple(tuple(words[end - size : end]) for end, size in zip(ends, self.sizes.tolist(), strict=True))

    def slot(self, long_rows: LongRows) -> Index:
        """The position of what each statement is about, (M,)."""
        return self.slots[np.searchsorted(self.keys, long_rows.event * len(self.labels) + long_rows.label)]

    def expected(self, event: Index) -> Index:
        """How many options each of these events has."""
        return self.sizes[event]

    def table(self, long_rows: LongRows, counts: Index) -> Array:
        """Rows as forecasts over the options of their events, (forecasts, K); 0 in the positions left free."""
        table = np.zeros((len(counts), max(2, int(self.sizes.max(initial=2)))))
        table[np.repeat(np.arange(len(counts)), counts), self.slot(long_rows)] = long_rows.value
        return table

    def lacking(self, long_rows: LongRows, start: int, count: int) -> OpinionPoolError:
        """The error for a forecast that lacks an option, and for how many others."""
        event = int(long_rows.event[start])
        present = {long_rows.classes[code] for code in long_rows.label[long_rows.pair == long_rows.pair[start]]}
        lacking = next(label for label in self.of_events[event] if label not in present)
        about = {"lacking": lacking, "size": int(self.sizes[event]), **long_rows.about(start)}
        return fault("option-lacks", None, [Remedy({"drop_incomplete": True})], count=count, **about)

    @property
    def note(self) -> Note:
        """The note on them."""
        sets = list(dict.fromkeys(frozenset(labels) for labels in self.of_events if labels))
        used = self.sizes[self.sizes > 0]
        least, most = int(used.min()), int(used.max())
        many = f"{least}" if least == most else f"{least} to {most}"
        return finding("options", many=many, count=len(sets))


def find_options(
    melted: Melted, layout: Layout, rule: str | None, asked: Asked, counting: LongRows
) -> EventOptions | None:
    """Options by event, or None where all events share the classes.

    None where all events share the classes; only forecasts that may count, `counting`, give events options.
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
    """The error for an event with a single option; where all have one, the column may say what they are about."""
    about = {"event": long_rows.events[event], "option": found.of_events[event][0]}
    if topic is None:
        return fault("one-option", Place(long_rows.table.name), (), **about)
    ways = [Remedy({"columns": {"topic": topic}}), Remedy({"columns": {"class": None}})]
    return fault("one-option-each", Place(long_rows.table.name), ways, topic=topic, **about)


def _pairs(melted: Melted, counting: LongRows) -> tuple[Index, Index]:
    """Event and label of forecasts; of events without any, those that rows name."""
    given = counting.select(~np.isnan(counting.value))
    unanswered = np.ones(len(given.events), dtype=bool)
    unanswered[given.event] = False
    rows = np.flatnonzero((melted.row_events >= 0) & (melted.row_labels >= 0))
    rows = rows[unanswered[melted.row_events[rows]]]
    event = np.concatenate([given.event, melted.row_events[rows]])
    return event, np.concatenate([given.label, melted.row_labels[rows]])


def _clear(found: EventOptions) -> bool:
    """Whether no class is in two different sets, however it is written."""
    sets = {frozenset(labels) for labels in found.of_events if labels}
    words = [key(str(label)) for labels in sets for label in labels]
    return len(words) == len(set(words))


def _unclear(long_rows: LongRows, found: EventOptions) -> OpinionPoolError:
    """The error that asks what it means that events differ in their classes."""
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
