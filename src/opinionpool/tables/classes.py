"""The classes of an event as people name them, in a given order; the last of two is what probabilities are about.

0 and 1, no and yes, false and true are understood in any case, and their second is the positive one. Of two other
names, which one the probabilities are about is never guessed: the user says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, CellError, LayoutError, Note
from opinionpool.labels import FAMILIES, Options
from opinionpool.logodds import SUM_TOLERANCE
from opinionpool.tables.class_rows import normalised_note, off_sum, without_incomplete
from opinionpool.tables.frames import place
from opinionpool.tables.melt import Melted
from opinionpool.tables.statements import EXACT, LongRows
from opinionpool.text import counted, listed, quoted, shown


@dataclass(frozen=True)
class Asked:
    """What the user specified about classes."""

    positive: str | None = None  # the class that probabilities are about
    classes: tuple[str, ...] = ()  # all classes in order; empty if not given

    def about(self, written: str) -> Asked:
        """The same, for forecasts that are all about one class."""
        if self.positive is not None and key(self.positive) != key(written):
            raise LayoutError(
                f"all forecasts are about class {shown(written)}, so --positive cannot be {self.positive}"
            )
        return replace(self, positive=written)


def key(word: str) -> str:
    """How classes are compared: without regard to case, and ``"1.0"`` as ``"1"``.

    >>> key("Yes"), key("1.0"), key("007")
    ('yes', '1', '007')
    """
    word = word.strip().lower()
    return word[:-2] if word.endswith(".0") and word[:-2].isdigit() else word


class Matcher:
    """Finds a class by what somebody wrote: exactly, or else in any case where that is unambiguous."""

    def __init__(self, classes: Sequence[object]) -> None:
        self._exact = {str(label): i for i, label in enumerate(classes)}
        self._folded: dict[str, int] = {}
        for i, label in enumerate(classes):
            self._folded[key(str(label))] = i if key(str(label)) not in self._folded else -1

    def find(self, word: str) -> int | None:
        """The position of a class, None if the word is none."""
        position = self._exact.get(word, self._folded.get(key(word), -1))
        return None if position < 0 else position


def order_classes(written: Sequence[str], asked: Asked) -> tuple[object, ...]:
    """K >= 2 classes in the order that was asked for, or sorted; of two, the positive one last.

    Raises
    ------
    LayoutError
        If the user named other classes, or must say which of two is the positive one.

    Examples
    --------
    >>> order_classes(["draw", "home", "away"], Asked())
    ('away', 'draw', 'home')
    >>> order_classes(["yes", "no"], Asked()), order_classes(["1", "0"], Asked())
    (('no', 'yes'), (0, 1))
    """
    ordered = sorted(written, key=_place)
    if asked.classes:
        matcher = Matcher(written)
        found = [matcher.find(label) for label in asked.classes]
        if sorted(-1 if i is None else i for i in found) != list(range(len(written))):
            raise LayoutError(f"the forecasts are about classes {listed(ordered)}, and not {listed(asked.classes)}")
        ordered = [written[i] for i in found if i is not None]
    if len(ordered) > 2:
        if asked.positive is not None:
            raise LayoutError(f"--positive is for two classes, and there are {len(ordered)}: {listed(ordered)}")
        return tuple(ordered)
    return _with_positive(ordered, asked, written[0])


def _place(label: str) -> tuple[float, str]:
    """Numbers in their order, before words in theirs."""
    number = _number(label)
    return (float("inf") if number is None else number), label


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if isfinite(number) else None


def as_listed(asked: Asked, written: Sequence[str], *, long: bool) -> Asked:
    """The classes in the order of the columns, where somebody put them in one: low, medium, high.

    >>> as_listed(Asked(), ["low", "medium", "high"], long=False).classes
    ('low', 'medium', 'high')
    """
    if long or asked.classes or asked.positive is not None or len(written) < 3 or None not in map(_number, written):
        return asked
    return replace(asked, classes=tuple(written))


def two_classes(seen: Mapping[str, str], asked: Asked) -> tuple[object, ...]:
    """The two classes of forecasts that are one probability each.

    Parameters
    ----------
    seen : mapping
        The distinct outcomes, from `key` to the spelling that is used.
    asked : Asked

    Raises
    ------
    LayoutError
        If there are more than two, or the user must say which one the probabilities are about.

    Examples
    --------
    >>> two_classes({"yes": "Yes"}, Asked()), two_classes({}, Asked("rain")), two_classes({}, Asked())
    (('No', 'Yes'), ('not rain', 'rain'), (0, 1))
    """
    known = dict(seen)
    wanted = [*asked.classes, asked.positive] if asked.classes or len(seen) < 2 else []
    for label in wanted:
        if label is not None:
            known.setdefault(key(label), label)
    strange = [label for word, label in known.items() if word not in {key(each) for each in asked.classes}]
    if strange and len(asked.classes) == 2:
        raise LayoutError(
            f"the classes are {listed(asked.classes)}, and {shown(strange[0])} is none of them. If it means that an "
            "event is not resolved, say --missing-value"
        )
    if len(known) > 2 or len(asked.classes) > 2:
        raise LayoutError(
            f"forecasts of one probability need two outcomes, and there are {len(known)}: {listed([*known.values()])}. "
            "If some of these mean that an event is not resolved, say --missing-value; for more than two classes add a "
            "class column, or name it with --column class=NAME, or have columns expert:class"
        )
    family = next((family for family in FAMILIES if set(known) <= set(family)), None)
    if family is not None:
        return _with_positive([known.get(word) or _in_style(word, known) for word in family], asked)
    labels = list(known.values())
    if len(labels) == 1:
        if asked.positive is None:
            raise LayoutError(
                f"every resolved event ended as {shown(labels[0])}: if that is what the probabilities are about, say "
                f"--positive {quoted(labels[0])} (in Python positive={shown(labels[0])}); if they are about something "
                "else, name that with it",
                remedies=[{"positive": labels[0]}],
            )
        labels.append(f"not {labels[0]}")
    return _with_positive(sorted(labels), asked)


def _with_positive(labels: Sequence[str], asked: Asked, first: str | None = None) -> tuple[object, ...]:
    """Two classes, the one that probabilities are about last; forecasts of both are shown as those of the `first`."""
    keys = [key(label) for label in labels]
    family = next((family for family in FAMILIES if set(keys) == set(family)), None)
    if asked.positive is not None:
        positive = key(asked.positive)
    elif asked.classes:
        positive = key(asked.classes[-1])
    elif family:
        positive = family[1]
    elif first is not None:
        positive = key(first)
    else:
        raise LayoutError(
            f"the outcomes are {listed(labels)}: which of them are the probabilities about? "
            f"Say --positive {quoted(labels[0])} or --positive {quoted(labels[1])} "
            f"(in Python positive={shown(labels[0])} or positive={shown(labels[1])})",
            remedies=({"positive": labels[0]}, {"positive": labels[1]}),
        )
    if positive not in keys:
        raise LayoutError(
            f"the outcomes are {listed(labels)}, so the probabilities cannot be about {shown(asked.positive)}"
        )
    pair = (labels[1 - keys.index(positive)], labels[keys.index(positive)])
    return tuple(int(key(label)) for label in pair) if family == FAMILIES[0] else pair


def _in_style(word: str, known: Mapping[str, str]) -> str:
    """A word in the capitals of the other one: the "No" that goes with "Yes"."""
    other = next(iter(known.values()), "")
    return word.upper() if other.isupper() else word.capitalize() if other[:1].isupper() else word


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

    @property
    def note(self) -> Note:
        """The note on them."""
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
        What the user specified.
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
    long_rows = melted.long_rows
    if rule == "event" and not (long and melted.written):
        raise LayoutError(
            f"{long_rows.table.name}: --options event is for a table with a row for each forecast and option, and a "
            "column "
            "that names the option, class"
        )
    if rule == "shared" or not (long and long_rows.classes) or (asked.classes and rule is None):
        return None
    found = EventOptions.of(long_rows.classes, *_pairs(melted), len(long_rows.events))
    answered = np.unique(long_rows.event)
    if (found.sizes[answered] == len(long_rows.classes)).all():
        return None
    if rule is None and not _clear(found):
        raise _unclear(long_rows, found)
    if asked.positive is not None or asked.classes:
        raise ArgumentError("--positive and classes are for classes that all events share, and these have their own")
    single = answered[found.sizes[answered] < 2]
    if len(single):
        event = int(single[0])
        raise LayoutError(
            f"{long_rows.table.name}: event {shown(long_rows.events[event])} has one option only, "
            f"{shown(found.of_events[event][0])}; its other options need rows too. Where forecasts are one "
            "probability, that something happens, say --column class="
        )
    return found


def _pairs(melted: Melted) -> tuple[Index, Index]:
    """Event and label of all forecasts; of events without any, those that rows name."""
    given = melted.long_rows.select(~np.isnan(melted.long_rows.value))
    silent = np.ones(len(given.events), dtype=bool)
    silent[given.event] = False
    rows = np.flatnonzero((melted.row_events >= 0) & (melted.row_labels >= 0))
    rows = rows[silent[melted.row_events[rows]]]
    event = np.concatenate([given.event, melted.row_events[rows]])
    return event, np.concatenate([given.label, melted.row_labels[rows]])


def _clear(found: EventOptions) -> bool:
    """Whether no class is in two different sets, however it is written."""
    sets = {frozenset(labels) for labels in found.of_events if labels}
    words = [key(str(label)) for labels in sets for label in labels]
    return len(words) == len(set(words))


def _unclear(long_rows: LongRows, found: EventOptions) -> CellError:
    """The error that asks what it means that events differ in their classes."""
    _, start, count = np.unique(long_rows.pair, return_index=True, return_counts=True)
    first = int(start[(count < len(long_rows.classes)).argmax()])
    own = long_rows.label[long_rows.pair == long_rows.pair[first]]
    lacking = next(name for i, name in enumerate(long_rows.classes) if i not in own)
    options = found.of_events
    event = int(long_rows.event[first])
    other = next(i for i, labels in enumerate(options) if labels and set(labels) != set(options[event]))
    examples = " and ".join(f"{shown(long_rows.events[i])} ({listed(options[i], 4)})" for i in (event, other))
    return CellError(
        f"the forecast by {long_rows.who(first)} has no probability for class {shown(lacking)} "
        f"({place(long_rows.table, int(long_rows.row[first]))}), as others have. If that was left out, it needs "
        "a row, of 0 "
        f"too; if each event has options of its own, as {examples}, say --options event",
        remedies=[{"options": "event"}, {"options": "shared", "drop_incomplete": True}],
    )


def fold_options(
    long_rows: LongRows,
    found: EventOptions,
    half_units: Callable[[LongRows], Array],
    drop_incomplete: bool = False,
) -> tuple[LongRows, Array, list[Note]]:
    """Forecasts over the options of their events, one row each; as `opinionpool.tables.class_rows.fold_classes`.

    Returns
    -------
    first : LongRows
        One statement per forecast.
    probabilities : ndarray, shape (forecasts, K)
        Rows that sum to 1, with 0 in the positions that an event leaves free.
    notes : list of Note

    Raises
    ------
    CellError
        If a forecast lacks an option that others on its event have, or its probabilities do not add up to 1.
    """
    long_rows = long_rows.select(np.argsort(long_rows.key, kind="stable"))
    _, starts, counts = np.unique(long_rows.pair, return_index=True, return_counts=True)
    short = counts != found.sizes[long_rows.event[starts]]
    dropped: list[Note] = []
    if short.any():
        if not drop_incomplete:
            raise _lacking(long_rows, found, int(starts[short.argmax()]), int(short.sum()))
        long_rows, starts, counts, dropped = without_incomplete(long_rows, counts, short)
    row = np.repeat(np.arange(len(starts)), counts)
    table = np.zeros((len(starts), max(2, int(found.sizes.max(initial=2)))))
    table[row, found.slot(long_rows)] = long_rows.value
    total = table.sum(axis=1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        cells = np.flatnonzero(off[row])
        slack = np.zeros(len(starts))
        np.add.at(slack, row[cells], half_units(long_rows.select(cells)))
        beyond = off & ((np.abs(total - 1.0) > slack + 1e-9) | (total <= 0))
        if beyond.any():
            raise off_sum(long_rows, int(starts[beyond.argmax()]), float(total[beyond.argmax()]))
    uneven = np.abs(total - 1.0) > EXACT
    table = np.where(uneven[:, None], table / np.where(total > 0, total, 1.0)[:, None], table)
    return long_rows.select(starts), table, [*dropped, *normalised_note(total, uneven)]


def _lacking(long_rows: LongRows, found: EventOptions, start: int, count: int) -> CellError:
    event = int(long_rows.event[start])
    present = {long_rows.classes[code] for code in long_rows.label[long_rows.pair == long_rows.pair[start]]}
    lacking = next(label for label in found.of_events[event] if label not in present)
    return CellError(
        f"the forecast by {long_rows.who(start)} has no probability for option {shown(lacking)}, as others on "
        "that event "
        f"have ({place(long_rows.table, int(long_rows.row[start]))}); a forecast must give one for each of the event's "
        f"{counted(int(found.sizes[event]), 'option')}, 0 too; if it was added later, --drop-incomplete leaves out "
        "forecasts that lack one",
        remedies=[{"drop_incomplete": True}],
        count=count,
    )
