"""Long tables in which each event has options of its own, and what a forecast over them must be.

Forecasting sites have questions with two to fifty options, named for the question. That events differ in their
classes can also mean that somebody left out a class, or the classes with probability 0. So it is taken for granted only
where no class occurs in two different sets; else the user says it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from opinionpool.classes import Asked, key
from opinionpool.columns import Index, place
from opinionpool.errors import ArgumentError, CellError, LayoutError, Note
from opinionpool.logodds import SUM_TOLERANCE, Array
from opinionpool.melting import Melted
from opinionpool.optionsets import Options
from opinionpool.statements import EXACT, Statements, normalised_note, off_sum
from opinionpool.wording import counted, listed, shown

CHOICES = ("event", "shared")


@dataclass(frozen=True)
class EventOptions:
    """The options of T events, each in order of first appearance.

    Attributes
    ----------
    labels : sequence of str
        L labels of all events.
    keys : ndarray of int, shape (P,)
        Pairs of event and label that occur, as event * L + label, increasing.
    slots : ndarray of int, shape (P,)
        The position of each among its event's options.
    sizes : ndarray of int, shape (T,)
        How many options each event has.
    """

    labels: Sequence[str]
    keys: Index
    slots: Index
    sizes: Index

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

    def slot(self, said: Statements) -> Index:
        """The position of what each statement is about, (M,)."""
        return self.slots[np.searchsorted(self.keys, said.event * len(self.labels) + said.label)]

    @property
    def note(self) -> Note:
        """What people are told."""
        sets = list(dict.fromkeys(frozenset(labels) for labels in self.of_events if labels))
        used = self.sizes[self.sizes > 0]
        least, most = int(used.min()), int(used.max())
        many = f"{least}" if least == most else f"{least} to {most}"
        text = (
            f"each event has options of its own, {many} of them, {len(sets):,} different sets: what is learned about "
            "the experts holds for all options alike"
        )
        return Note("options", text, len(sets))


def find_options(melted: Melted, long: bool, rule: str | None, asked: Asked) -> EventOptions | None:
    """Options by event, or None where all events share the classes.

    Parameters
    ----------
    melted : Melted
    long : bool
        Whether the table has a row per forecast.
    rule : {None, "event", "shared"}
        What the user said.
    asked : Asked

    Raises
    ------
    ArgumentError
        If the rule is none of these, or does not go with what else was asked for.
    LayoutError
        If the table cannot hold such forecasts, or an event has a single option.
    CellError
        If events differ in their classes, and it is not clear what that means.
    """
    if rule not in {None, *CHOICES}:
        raise ArgumentError(f"options can be 'event' or 'shared', and not {rule!r}")
    said = melted.said
    if rule == "event" and not (long and melted.stated):
        raise LayoutError(
            f"{said.table.name}: --options event is for a table with a row for each forecast and option, and a column "
            "that names the option, class"
        )
    if rule == "shared" or not (long and said.classes) or (asked.classes and rule is None):
        return None
    found = EventOptions.of(said.classes, *_pairs(melted), len(said.events))
    heard = np.unique(said.event)
    if (found.sizes[heard] == len(said.classes)).all():
        return None
    if rule is None and not _clear(found):
        raise _unclear(said, found)
    if asked.positive is not None or asked.classes:
        raise ArgumentError("--positive and classes are for classes that all events share, and these have their own")
    single = heard[found.sizes[heard] < 2]
    if len(single):
        event = int(single[0])
        raise LayoutError(
            f"{said.table.name}: event {shown(said.events[event])} has one option only, "
            f"{shown(found.of_events[event][0])}; its other options need rows too. Where forecasts are one "
            "probability, that something happens, say --column class="
        )
    return found


def _pairs(melted: Melted) -> tuple[Index, Index]:
    """Event and label of all forecasts; of events without any, those that rows name."""
    said = melted.said
    silent = np.ones(len(said.events), dtype=bool)
    silent[said.event] = False
    rows = np.flatnonzero((melted.row_events >= 0) & (melted.row_labels >= 0))
    rows = rows[silent[melted.row_events[rows]]]
    event = np.concatenate([said.event, melted.row_events[rows]])
    return event, np.concatenate([said.label, melted.row_labels[rows]])


def _clear(found: EventOptions) -> bool:
    """Whether no class is in two different sets, however it is written."""
    sets = {frozenset(labels) for labels in found.of_events if labels}
    words = [key(str(label)) for labels in sets for label in labels]
    return len(words) == len(set(words))


def _unclear(said: Statements, found: EventOptions) -> CellError:
    """The error that asks what it means that events differ in their classes."""
    _, start, count = np.unique(said.pair, return_index=True, return_counts=True)
    first = int(start[(count < len(said.classes)).argmax()])
    own = said.label[said.pair == said.pair[first]]
    lacking = next(name for i, name in enumerate(said.classes) if i not in own)
    options = found.of_events
    event = int(said.event[first])
    other = next(i for i, labels in enumerate(options) if labels and set(labels) != set(options[event]))
    examples = " and ".join(f"{shown(said.events[i])} ({listed(options[i], 4)})" for i in (event, other))
    return CellError(
        f"the forecast by {said.who(first)} has no probability for class {shown(lacking)} "
        f"({place(said.table, int(said.row[first]))}), as others have. If that was left out, it needs a row, of 0 "
        f"too; if each event has options of its own, as {examples}, say --options event"
    )


def fold_options(
    said: Statements, found: EventOptions, half_units: Callable[[Statements], Array]
) -> tuple[Statements, Array, list[Note]]:
    """Forecasts over the options of their events, one row each; as `opinionpool.statements.fold_classes`.

    Returns
    -------
    first : Statements
        One statement per forecast.
    probabilities : ndarray, shape (forecasts, K)
        Rows that sum to 1, with 0 in the positions that an event leaves free.
    notes : list of Note

    Raises
    ------
    CellError
        If a forecast lacks an option that others on its event have, or its probabilities do not add up to 1.
    """
    said = said.select(np.argsort(said.key, kind="stable"))
    _, starts, counts = np.unique(said.pair, return_index=True, return_counts=True)
    short = counts != found.sizes[said.event[starts]]
    if short.any():
        raise _lacking(said, found, int(starts[short.argmax()]))
    row = np.repeat(np.arange(len(starts)), counts)
    table = np.zeros((len(starts), max(2, int(found.sizes.max(initial=2)))))
    table[row, found.slot(said)] = said.value
    total = table.sum(axis=1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        cells = np.flatnonzero(off[row])
        slack = np.zeros(len(starts))
        np.add.at(slack, row[cells], half_units(said.select(cells)))
        beyond = off & ((np.abs(total - 1.0) > slack + 1e-9) | (total <= 0))
        if beyond.any():
            raise off_sum(said, int(starts[beyond.argmax()]), float(total[beyond.argmax()]))
    uneven = np.abs(total - 1.0) > EXACT
    table = np.where(uneven[:, None], table / np.where(total > 0, total, 1.0)[:, None], table)
    return said.select(starts), table, normalised_note(total, uneven)


def _lacking(said: Statements, found: EventOptions, start: int) -> CellError:
    event = int(said.event[start])
    present = {said.classes[code] for code in said.label[said.pair == said.pair[start]]}
    lacking = next(label for label in found.of_events[event] if label not in present)
    return CellError(
        f"the forecast by {said.who(start)} has no probability for option {shown(lacking)}, as others on that event "
        f"have ({place(said.table, int(said.row[start]))}); a forecast must give one for each of the event's "
        f"{counted(int(found.sizes[event]), 'option')}, 0 too"
    )
