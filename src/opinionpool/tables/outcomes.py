"""What happened: the outcomes in one or two tables, as positions among the classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.findings import Remedy, fault, finding
from opinionpool.labels import FAMILIES, UNRESOLVED, Options, option_slots
from opinionpool.scales import Scale
from opinionpool.tables.classes import (
    USUAL,
    Asked,
    Matcher,
    NoOutcome,
    bare,
    key,
    none_remedies,
    none_text,
    order_classes,
    two_classes,
)
from opinionpool.tables.event_facts import one_per_key, take
from opinionpool.tables.table import BLANK, Table, Words, cell_fault, place
from opinionpool.tables.units import looks_numeric
from opinionpool.text import listed, quoted, shown, suggestion

_WHOLE = re.compile(r"-?\d+(?:\.\d+)?")
# Among positions of outcomes: the event is void.
_VOIDED = UNRESOLVED - 1
# It is half of each of two classes.
TIED = _VOIDED - 1
# So many events with two outcomes, or one in so many, were mistaken or changed, and are no answers of experts.
_FEW, _SHARE = 2, 10


@dataclass(frozen=True)
class Observed:
    """A column of outcomes, and which event each of its rows is about, -1 for none.

    `starts` are the first rows of runs of rows with the same event and outcome, if such runs are few.
    """

    table: Table
    column: int
    words: Words
    row_events: Index
    starts: Index | None = None

    @classmethod
    def of(cls, table: Table, column: int, events: Words) -> Observed:
        """Return the outcomes in `column`, one a row, in a table whose rows are about `events`."""
        words = table.words(column)
        new = (events.codes[1:] != events.codes[:-1]) | (words.codes[1:] != words.codes[:-1])
        starts = np.flatnonzero(np.append(True, new))
        return cls(table, column, words, events.codes, starts if 2 * len(starts) < table.rows else None)

    @property
    def events(self) -> Index:
        """Event of each run of rows, or of each row if there are no runs."""
        return self.row_events if self.starts is None else self.row_events[self.starts]

    @property
    def rows(self) -> Index:
        """Number of rows in each run of rows; 1 for each row if there are no runs."""
        every = len(self.row_events)
        return np.ones(every, dtype=np.intp) if self.starts is None else np.diff(self.starts, append=every)


@dataclass(frozen=True)
class Settled:
    """Classes in order, each event's outcome as an index among them, and the mask of void events.

    An outcome is -1 if unresolved, and `TIED` if it counts as half of each class.
    """

    classes: tuple[object, ...]
    outcomes: Index
    void: npt.NDArray[np.bool_]
    notes: tuple[Note, ...]


# An outcome somewhere: the column, the word's code in it, and the word.
_Outcome = tuple[Observed, int, str]


def graded(column: Observed, least: str, scales: Iterable[Scale]) -> Observed:
    """Return grades as 1 from `least` on, a number or level of a scale, else 0; -1 and other words are unchanged.

    Raises
    ------
    ArgumentError
        If `least` is neither a number nor a level of a scale.
    """
    order = next((scale for scale in scales if scale.place(least) >= 0), None)

    def place(word: str) -> float:
        if order is not None and order.place(word) >= 0:
            return order.place(word)
        return float(word) if order is None and looks_numeric(word) and word not in {"-1", "-1.0"} else np.nan

    if order is None and not _WHOLE.fullmatch(least):
        raise ArgumentError(f"--at-least is a number, or a level of a scale that --scale names, and not {shown(least)}")
    edge = float(least) if order is None else order.place(least)
    return _rewritten(
        column, [word if np.isnan(place(word)) else str(int(place(word) >= edge)) for word in column.words.values]
    )


def unprefixed(column: Observed) -> Observed:
    """A column without "Resolved" before its words."""
    words = list(map(bare, column.words.values))
    return column if words == [*column.words.values] else _rewritten(column, words)


def in_levels(column: Observed, scale: Scale) -> Observed:
    """Return the column with words for levels, such as A>B, spelled as in `scale`."""
    words = column.words.values
    places = [-1 if looks_numeric(word) else scale.place(word) for word in words]
    return _rewritten(column, [word if i < 0 else scale.levels[i] for word, i in zip(words, places, strict=True)])


def _rewritten(column: Observed, words: Sequence[str]) -> Observed:
    """Return the column with each of its distinct words replaced."""
    return replace(column, words=column.words.rewritten(words))


def settle(
    observed: Sequence[Observed],
    events: Sequence[str],
    written: Sequence[str],
    asked: Asked,
    without: NoOutcome = USUAL,
    classes: tuple[object, ...] | None = None,
    scale: Scale | None = None,
    options: Options | None = None,
) -> Settled:
    """Return the classes and the outcomes of all events.

    `written` are the classes that forecasts were given for, empty where a forecast is one probability; `classes` those
    of the whole table, if known; `options` those of each event, where events do not share their classes.
    """
    without = without if options else coded(without, observed, written, asked, classes or ())
    if options is not None:
        classes = option_slots(options)
    elif classes is None:
        classes = find_classes(observed, written, asked, without, scale)
    shared = classes if options is None else ()
    # A word that the user names as void is no class.
    void_class = next((word for word in sorted(without.own) if Matcher(shared).find(word) is not None), None)
    if void_class is not None:
        raise fault("void-is-class", word=void_class, classes=[str(label) for label in shared])
    tied = _preference(observed, scale) if len(shared) == 2 else None

    def strange(column: Observed, code: int, event: int) -> OpinionPoolError:
        return (
            _no_option(column, code, event, events[event], options[event])
            if options
            else _unknown(column, code, shared)
        )

    encoded = _encode(observed, options or [shared], options is None, without, strange, tied)
    outcomes, void = _outcome_of(encoded.values, observed, events)
    known = Matcher(written)
    usual = {word for word in encoded.met if word.lower() in without.void and known.find(word) is None}
    notes = [finding("void-class", word=word) for word in sorted(usual if options is None else ())]
    return Settled(classes, outcomes, void, (*_notes(shared, outcomes, void, encoded), *notes))


def _no_option(column: Observed, code: int, event: int, name: str, labels: Sequence[object]) -> OpinionPoolError:
    """Return the error for a word that is no option of its event."""
    word = column.words.values[code]
    row = int(np.flatnonzero((column.words.codes == code) & (column.row_events == event))[0])
    about = {"event": name, "options": [str(label) for label in labels], "none": none_text(word)}
    return cell_fault("no-option", column.table, row, column.column, none_remedies(word), 1, **about)


def coded(
    without: NoOutcome,
    observed: Sequence[Observed],
    written: Sequence[str],
    asked: Asked,
    classes: Sequence[object] = (),
) -> NoOutcome:
    """Return `without`, with -1 as missing if all other outcomes are 0 and 1 and -1 is no class."""
    if "-1" in {*written, *asked.classes}:
        return without
    return without.coded({word for column in observed for word in column.words.values} | {*map(str, classes)})


def absent_void_notes(observed: Sequence[Observed], without: NoOutcome) -> list[Note]:
    """Return a note on words that the user declares void and that no event has as outcome; empty without such words."""
    words = {word.lower() for column in observed for word in column.words.values}
    absent = sorted(without.own - words)
    if not observed or not absent:
        return []
    return [finding("void-absent", words=absent)]


def find_classes(
    observed: Sequence[Observed],
    written: Sequence[str],
    asked: Asked,
    without: NoOutcome = USUAL,
    scale: Scale | None = None,
) -> tuple[object, ...]:
    """Return the classes, or the levels of a scale if outcomes are levels; arguments and errors as for `settle`."""
    if len(written) > 1:
        return order_classes(written, asked)
    ties = _preference(observed, scale)
    found = None if scale is None else _levels_seen(_outcomes_among(observed, written, without, ties), scale, asked)
    if found is not None:
        return found
    words = {word.lower() for column in observed for word in column.words.values}
    cells = _outcomes_among(observed, written, without.beside({*words, *asked.classes}), ties)
    _check_binary(cells)
    return two_classes(_spellings(cells), asked.about(written[0]) if written else asked)


def _levels_seen(cells: Sequence[_Outcome], scale: Scale, asked: Asked) -> tuple[object, ...] | None:
    """Return the levels of `scale` as classes, or its two ends if outcomes are only these; None if neither fits."""
    words = {word for *_, word in cells}
    keys, ends = {*map(key, words)}, (scale.levels[0], scale.levels[-1])
    if (
        (words or scale.is_tie("tie"))
        and words <= {*ends}
        and not (asked.classes or asked.positive or any(map(looks_numeric, words)))
    ):
        return ends
    ordered = (
        len(scale.levels) > 2
        and not scale.is_tie("tie")
        and (keys - {*FAMILIES[0]} or asked.classes == scale.levels)
        and all(scale.place(word) >= 0 for word in words)
    )
    return scale.levels if ordered else None


def _preference(observed: Sequence[Observed], scale: Scale | None) -> Scale | None:
    """Return the scale of a preference for A or B, if `scale` or the outcomes are of that kind; else None."""
    words = sorted({word for column in observed for word in column.words.values})
    found = Scale.of_verdicts(words) if scale is None else scale
    return found if found is not None and found.is_tie("tie") else None


def _outcomes_among(
    observed: Sequence[Observed], written: Sequence[str], without: NoOutcome, preference: Scale | None = None
) -> list[_Outcome]:
    """Return the outcomes without ties and words for no outcome, unless such a word is a class in `written`."""
    known = Matcher(written)
    return [
        (column, code, word)
        for column in observed
        for code, word in enumerate(column.words.values)
        if known.find(word) is not None
        or not (word.lower() in without.every or (preference is not None and preference.is_tie(word)))
    ]


def _spellings(cells: Sequence[_Outcome]) -> dict[str, str]:
    """Return the most frequent spelling of each class, by the class's key."""
    rows = {id(column): column.words.counts for column, *_ in cells}
    tallies: dict[str, dict[str, int]] = {}
    for column, code, word in cells:
        tally = tallies.setdefault(key(word), {})
        tally[word] = tally.get(word, 0) + int(rows[id(column)][code])
    return {of: max(sorted(tally), key=tally.__getitem__) for of, tally in tallies.items()}


def _check_binary(cells: Sequence[_Outcome]) -> None:
    """Raise for numbers but 0 and 1 (or 1 and one other integer), and words beside a pair such as yes and no."""
    keys = {key(word) for *_, word in cells}
    if len(keys) == 2 and "1" in keys and "0" not in keys and all(each.removeprefix("-").isdigit() for each in keys):
        return
    able = [family for family in FAMILIES if keys & set(family)]
    family = next((family for family in able if keys <= set(family)), next(iter(able), None))
    if family is None and cells and all(looks_numeric(word) for *_, word in cells):
        raise _no_outcomes(*cells[0][:2])
    for column, code, word in cells:
        if family is not None and key(word) not in family:
            raise _not_an_outcome(column, code, f"neither {family[0]} nor {family[1]}, as others are")
        if family is None and looks_numeric(word):
            raise _not_an_outcome(column, code, "neither 0 nor 1")


def _no_outcomes(column: Observed, code: int) -> OpinionPoolError:
    """Return the error for a column of numbers that has neither 0 nor 1, and so no outcomes."""
    row, count = int(column.words.rows(code)[0]), int((column.words.codes >= 0).sum())
    way, fraction = {"columns": {"outcome": None}}, _if_fraction(column.words.values[code])
    return cell_fault("no-outcomes-there", column.table, row, column.column, [way], count, fraction=fraction)


def _if_fraction(word: str) -> str:
    """Return the remark that a number written as a fraction is no outcome; empty for other words."""
    fraction = looks_numeric(word) and any(mark in word for mark in ".,%/")
    return "; an event that settled at a fraction is neither" if fraction else ""


def _not_an_outcome(column: Observed, code: int, what: str) -> OpinionPoolError:
    word = column.words.values[code]
    row = int(column.words.rows(code)[0])
    count, grade = int(column.words.counts[code]), _grade(column.words.values)
    option = _column_of_options(column)
    if option is not None:
        what += (
            f"; all outcomes are among the words of column {shown(option)}: if that holds what each forecast is about"
        )
        what += f", say --column class={quoted(option)}"
        return cell_fault(
            "no-outcome", column.table, row, column.column, [{"columns": {"class": option}}], count, what=what
        )
    graded = f"; if outcomes are grades, say from which one on an event happened: --at-least {grade}" if grade else ""
    ways = [*([{"at_least": grade}] if grade else []), *none_remedies(word)]
    what = f"{what}{_if_fraction(word)}{graded}; {none_text(word)}"
    return cell_fault("no-outcome", column.table, row, column.column, ways, count, what=what)


def _column_of_options(column: Observed) -> str | None:
    """Return another column with all outcomes among its words, as these may be its classes; None if there is none."""
    words, table = {*column.words.values}, column.table
    others = (i for i in range(len(table.names)) if i != column.column and len(words) > 2)
    return next((table.names[i] for i in others if words <= {*table.words(i).values}), None)


def _grade(words: Sequence[str]) -> str:
    """Return the first grade of the upper half, if three or more words are integers from 0 to 10; else ""."""
    numbers = {int(word) for word in words if word.isdigit() and int(word) <= 10}
    return str((min(numbers) + max(numbers)) // 2 + 1) if len(numbers) > 2 else ""


class _Encoded(NamedTuple):
    """Outcomes of the rows of all columns as positions among options, with the words that were met."""

    values: Index
    met: set[str]  # words that are options
    unsettled: set[str]  # words that say there is none
    respelled: int  # rows that have an option in other letters


def _encode(
    observed: Sequence[Observed],
    options: Sequence[Sequence[object]],
    shared: bool,
    without: NoOutcome,
    strange: Callable[[Observed, int, int], OpinionPoolError],
    preference: Scale | None = None,
) -> _Encoded:
    """Return outcomes as positions among the options of their event, ties of a preference as `TIED`.

    `strange` makes the error for a word that is neither an option nor a word for no outcome.
    """
    matchers: dict[int, Matcher] = {}
    values, met, unsettled, respelled = [], set(), set(), 0
    for column in observed:
        words = column.words
        pair, pairs, counts = _pairs(column, shared)
        found = np.full(len(pairs) + 1, UNRESOLVED)
        for i, (event, code) in enumerate(pairs):
            word, labels = words.values[code], options[event]
            position = matchers.setdefault(event, Matcher(labels)).find(word)
            if position is not None:
                found[i] = position
                met.add(word)
                respelled += counts[i] if word != str(labels[position]) and not looks_numeric(word) else 0
            elif word.lower() in without.void:
                found[i] = _VOIDED
            elif preference is not None and preference.is_tie(word):
                found[i] = TIED
            elif word.lower() in without.every or not labels:
                unsettled.add(word)
            else:
                raise strange(column, code, event)
        values.append(found.take(pair))
    return _Encoded(_concat(values), met, unsettled, respelled + sum(column.words.trimmed for column in observed))


def _pairs(column: Observed, shared: bool) -> tuple[Index, list[tuple[int, int]], list[int]]:
    """Return the position of each run in a list of (event, word), -1 if blank, the list, and rows of each pair."""
    words, codes, events = column.words, column.words.codes, column.row_events
    if column.starts is not None:
        codes, events = codes[column.starts], events[column.starts]
    if shared:
        return codes, [(0, code) for code in range(len(words.values))], words.counts.tolist()
    there = (codes >= 0) & (events >= 0)
    keys = events[there].astype(np.intp) * max(len(words.values), 1) + codes[there]
    keys, inverse = np.unique(keys, return_inverse=True)
    pair = np.full(len(codes), BLANK)
    pair[there] = inverse
    pairs = list(zip(*(part.tolist() for part in np.divmod(keys, max(len(words.values), 1))), strict=True))
    return pair, pairs, np.bincount(inverse, column.rows[there], len(keys)).astype(int).tolist()


def _concat(columns: Sequence[Index]) -> Index:
    """Return the concatenation of columns."""
    return columns[0] if len(columns) == 1 else np.concatenate([np.empty(0, dtype=np.intp), *columns])


def _outcome_of(
    values: Index, observed: Sequence[Observed], events: Sequence[str]
) -> tuple[Index, npt.NDArray[np.bool_]]:
    """Return the outcome of each event, `UNRESOLVED` without one, and the mask of void events."""
    row_events = _concat([column.events for column in observed])
    first, clash = one_per_key(values, values != UNRESOLVED, row_events, len(events))
    if clash is not None:
        known = (values != UNRESOLVED) & (row_events >= 0)
        rows = _concat([column.rows for column in observed])
        differing, one = _clashing(values[known], row_events[known], rows[known])
        raise _two_outcomes(observed, clash, events, [events[i] for i in differing.tolist()], one)
    outcomes = take(values, first, UNRESOLVED)
    return np.where(outcomes == _VOIDED, UNRESOLVED, outcomes), outcomes == _VOIDED


def _clashing(values: Index, keys: Index, rows: Index) -> tuple[Index, int]:
    """Return the events with several outcomes, and the number of events with one outcome on several rows."""
    several = np.flatnonzero(np.bincount(keys, rows) > 1)
    pairs = np.unique(np.stack([keys, values], axis=1), axis=0)
    differing, outcomes = np.unique(pairs[:, 0], return_counts=True)
    differing = differing[outcomes > 1]
    return differing, len(several) - len(differing)


def _notes(
    classes: tuple[object, ...],
    outcomes: Index,
    void: npt.NDArray[np.bool_],
    encoded: _Encoded,
) -> list[Note]:
    """Return the notes on outcomes; `classes` is empty where events have options of their own."""
    notes: list[Note] = []
    words = sorted(encoded.unsettled)
    if len(classes) == 2:
        notes.append(finding("positive", one=str(classes[1]), other=str(classes[0])))
    if void.any():
        notes.append(finding("void", count=int(void.sum())))
    if (outcomes == TIED).any():
        notes.append(finding("ties", count=int((outcomes == TIED).sum())))
    count = int((outcomes[~void] == UNRESOLVED).sum())
    if count:
        marked = f" (blank, or marked {listed(words)})" if words else ""
        notes.append(finding("unresolved", count=count, total=int((~void).sum()), marked=marked))
    if encoded.respelled:
        names = listed(classes) if classes else "options of their events"
        notes.append(finding("outcome-spelling", count=encoded.respelled, names=names))
    return notes


def _unknown(column: Observed, code: int, classes: tuple[object, ...]) -> OpinionPoolError:
    word, rows = column.words.values[code], column.words.rows(code)
    places = place(column.table, *rows[:3].tolist()) + (", ..." if len(rows) > 3 else "")
    labels = {str(label).casefold() for label in classes}
    if labels.isdisjoint(each.strip().casefold() for each in column.words.values):
        about = {"word": word, "places": places, "classes": classes, "count": len(rows)}
        return fault("no-class-of-all", None, (), **about)
    meant = suggestion(word, [str(label) for label in classes], "these are")
    about = {"word": word, "places": places, "none": none_text(word), "meant": meant, "count": len(rows)}
    return fault("no-class", None, map(Remedy, none_remedies(word)), **about)


def _two_outcomes(
    observed: Sequence[Observed], clash: tuple[int, int], events: Sequence[str], differing: Sequence[str], one: int
) -> OpinionPoolError:
    """Return the error for an event with two outcomes; `one` events have one outcome on several rows."""
    places: list[str] = []
    event = ""
    for row in clash:
        local = row
        for column in observed:
            if local < len(column.rows):
                break
            local -= len(column.rows)
        local = local if column.starts is None else int(column.starts[local])
        places.append(f"{shown(column.words.values[column.words.codes[local]])} ({place(column.table, local)})")
        event = events[column.row_events[local]]
    both = {"event": event, "first": places[0], "second": places[1]}
    name, rows = observed[0].table.names[observed[0].column], observed[0].row_events
    if 2 * len(set(rows.tolist())) > len(rows):
        # A row is an event, but for a few.
        return fault("two-outcomes-of-name", None, (), **both)
    if len(differing) < one and len(differing) <= max(_FEW, one // _SHARE):
        # Answers of experts would differ on more of them.
        so = [name for name in differing if name != event]
        also = f", and so {'has' if len(so) == 1 else 'have'} {listed(so)}" if so else ""
        return fault("two-outcomes-of-few", None, (), also=also, same=one, count=len(differing), **both)
    return fault("two-outcomes", None, [Remedy({"columns": {"outcome": None}})], name=name, **both)
