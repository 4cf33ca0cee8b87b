"""What happened: the outcomes in one or two tables, as positions among the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opinionpool.cells import MISSING, looks_numeric
from opinionpool.classes import FAMILIES, Asked, Matcher, key, order_classes, two_classes
from opinionpool.columns import Index, Table, Words, cell_error, place
from opinionpool.errors import CellError, Note
from opinionpool.events import one_per_key, take
from opinionpool.forecasts import UNRESOLVED
from opinionpool.optionsets import Options, option_slots
from opinionpool.wording import counted, listed, quoted, shown, suggestion

UNSETTLED = frozenset(
    {"annulled", "annul", "ambiguous", "void", "voided", "cancelled", "canceled", "unresolved", "open", "pending"}
    | {"tbd", "unknown", "undetermined", "?"}
)


@dataclass(frozen=True)
class Observed:
    """A column of outcomes, and which event each of its rows is about, -1 for none."""

    table: Table
    column: int
    words: Words
    row_events: Index


@dataclass(frozen=True)
class Settled:
    """Classes in order, and the position of each event's outcome among them, -1 where not resolved."""

    classes: tuple[object, ...]
    outcomes: Index
    notes: tuple[Note, ...]


# An outcome somewhere: the column, the word's code in it, and the word.
_Said = tuple[Observed, int, str]


def settle(
    observed: Sequence[Observed],
    events: Sequence[str],
    stated: Sequence[str],
    asked: Asked,
    missing: frozenset[str] = MISSING,
    classes: tuple[object, ...] | None = None,
) -> Settled:
    """Classes and outcomes of all events.

    Parameters
    ----------
    observed : sequence of Observed
        Columns of outcomes.
    events : sequence of str
        T ids.
    stated : sequence of str
        The classes that forecasts were given for; empty where a forecast is one probability.
    asked : Asked
    missing : frozenset of str
        Words for "no value", in lower case.
    classes : tuple, optional
        The classes, if they are known.

    Raises
    ------
    LayoutError
        If the classes cannot be told, or their order must be said.
    CellError
        If a cell is not one of the classes, or an event has two outcomes.
    """
    said = _outcomes_among(observed, stated, missing)
    if classes is None:
        classes = find_classes(observed, stated, asked, missing)
    return _encode(observed, said, events, classes)


def find_classes(
    observed: Sequence[Observed], stated: Sequence[str], asked: Asked, missing: frozenset[str] = MISSING
) -> tuple[object, ...]:
    """The classes alone; arguments and errors as for `settle`."""
    if len(stated) > 1:
        return order_classes(stated, asked)
    said = _outcomes_among(observed, stated, missing)
    _check_binary(said)
    return two_classes(_spellings(said), asked.about(stated[0]) if stated else asked)


def _outcomes_among(observed: Sequence[Observed], stated: Sequence[str], missing: frozenset[str]) -> list[_Said]:
    """What happened, without the words for "not resolved"."""
    known = Matcher(stated)
    return [
        (column, code, word)
        for column in observed
        for code, word in enumerate(column.words.values)
        if known.find(word) is not None or word.lower() not in UNSETTLED | missing
    ]


def settle_among(
    observed: Sequence[Observed], events: Sequence[str], options: Options, missing: frozenset[str] = MISSING
) -> Settled:
    """Outcomes of events that have options of their own; arguments as for `settle`.

    Raises
    ------
    CellError
        If an outcome is none of its event's options, or an event has two.
    """
    matchers: dict[int, Matcher] = {}
    values, unsettled, respelled = [np.empty(0, dtype=np.intp)], set(), 0
    for column in observed:
        rows = np.flatnonzero((column.words.codes >= 0) & (column.row_events >= 0))
        found = np.full(len(column.words.codes), UNRESOLVED)
        size = max(len(column.words.values), 1)
        pairs, inverse = np.unique(column.row_events[rows] * size + column.words.codes[rows], return_inverse=True)
        slots = np.full(len(pairs), UNRESOLVED)
        for i, (event, code) in enumerate(zip(*(part.tolist() for part in np.divmod(pairs, size)), strict=True)):
            word, labels = column.words.values[code], options[event]
            slot = matchers.setdefault(event, Matcher(labels)).find(word)
            if slot is not None:
                slots[i] = slot
                respelled += word != labels[slot]
            elif word.lower() in UNSETTLED | missing or not labels:
                unsettled.add(word)
            else:
                row = int(rows[np.flatnonzero(inverse == i)[0]])
                raise cell_error(column.table, row, column.column, _none_of(events[event], word, labels))
        found[rows] = slots[inverse]
        values.append(found)
    flat = np.concatenate(values)
    row_events = np.concatenate([np.empty(0, dtype=np.intp), *(column.row_events for column in observed)])
    first, clash = one_per_key(flat, flat != UNRESOLVED, row_events, len(events))
    if clash is not None:
        raise _two_outcomes(observed, clash, events)
    outcomes = take(flat, first, UNRESOLVED)
    notes = _notes((), outcomes, sorted(unsettled), respelled, "options of their events")
    return Settled(option_slots(options), outcomes, tuple(notes))


def _none_of(event: str, word: str, labels: Sequence[object]) -> str:
    return (
        f"outcome {shown(word)} is none of the options of event {shown(event)}: {listed(labels)}; if the event is not "
        f"resolved, leave it empty or say --missing-value {quoted(word)}"
    )


def distinct_outcomes(observed: Sequence[Observed], missing: frozenset[str] = MISSING) -> list[str]:
    """What happened, in lower case, without the words for "not resolved"."""
    words = {key(word) for column in observed for word in column.words.values}
    return sorted(words - UNSETTLED - missing)


def _spellings(said: Sequence[_Said]) -> dict[str, str]:
    """For each class, by its key, the spelling that is used most."""
    rows = {id(column): column.words.counts for column, *_ in said}
    tallies: dict[str, dict[str, int]] = {}
    for column, code, word in said:
        tally = tallies.setdefault(key(word), {})
        tally[word] = tally.get(word, 0) + int(rows[id(column)][code])
    return {of: max(sorted(tally), key=tally.__getitem__) for of, tally in tallies.items()}


def _check_binary(said: Sequence[_Said]) -> None:
    """Raise for numbers other than 0 and 1, and for words among 0 and 1, yes and no, and the like."""
    keys = {key(word) for *_, word in said}
    family = next((family for family in FAMILIES if keys & set(family)), None)
    for column, code, word in said:
        if family is not None and key(word) not in family:
            raise _not_an_outcome(column, code, f"neither {family[0]} nor {family[1]}, as others are")
        if family is None and looks_numeric(word):
            raise _not_an_outcome(column, code, "neither 0 nor 1")


def _not_an_outcome(column: Observed, code: int, what: str) -> CellError:
    word = column.words.values[code]
    fraction = looks_numeric(word) and any(mark in word for mark in ".,%/")
    why = "; an event that settled at a fraction is neither" if fraction else ""
    way = f"if the event is not resolved, leave it empty or say --missing-value {quoted(word)}"
    row = int(column.words.rows(code)[0])
    return cell_error(column.table, row, column.column, f"outcome {shown(word)} is {what}{why}; {way}")


def _encode(
    observed: Sequence[Observed], said: Sequence[_Said], events: Sequence[str], classes: tuple[object, ...]
) -> Settled:
    """Outcomes as positions in `classes`, with notes."""
    matcher = Matcher(classes)
    of_word = {id(column): np.full(len(column.words.values), UNRESOLVED) for column in observed}
    rows = {id(column): column.words.counts for column in observed}
    respelled = sum(column.words.trimmed for column in observed)
    for column, code, word in said:
        found = matcher.find(word)
        if found is None:
            raise _unknown(column, code, classes)
        of_word[id(column)][code] = found
        if word != str(classes[found]) and not looks_numeric(word):
            respelled += int(rows[id(column)][code])
    blank = np.empty(0, dtype=np.intp)
    values = np.concatenate([blank, *(column.words.expand(of_word[id(column)], UNRESOLVED) for column in observed)])
    row_events = np.concatenate([blank, *(column.row_events for column in observed)])
    first, clash = one_per_key(values, values != UNRESOLVED, row_events, len(events))
    if clash is not None:
        raise _two_outcomes(observed, clash, events)
    outcomes = take(values, first, UNRESOLVED)
    settled = {word for _, _, word in said}
    words = sorted({word for column in observed for word in column.words.values if word not in settled})
    return Settled(classes, outcomes, tuple(_notes(classes, outcomes, words, respelled)))


def _notes(
    classes: tuple[object, ...], outcomes: Index, words: list[str], respelled: int, names: str = ""
) -> list[Note]:
    notes = []
    if len(classes) == 2:
        notes.append(Note("positive", f"probabilities are those of outcome {classes[1]}, not of {classes[0]}"))
    count = int((outcomes == UNRESOLVED).sum())
    if count:
        marked = f" (blank, or marked {listed(words)})" if words else ""
        text = f"{count:,} of {counted(len(outcomes), 'event')} not resolved{marked}"
        notes.append(Note("unresolved", text, count))
    if respelled:
        text = (
            f"{counted(respelled, 'outcome')} with other capitals, or blanks around, read as {names or listed(classes)}"
        )
        notes.append(Note("outcome-spelling", text, respelled))
    return notes


def _unknown(column: Observed, code: int, classes: tuple[object, ...]) -> CellError:
    word, rows = column.words.values[code], column.words.rows(code)
    places = place(column.table, *rows[:3].tolist()) + (", ..." if len(rows) > 3 else "")
    meant = suggestion(word, [str(label) for label in classes], "these are")
    return CellError(
        f"outcome {shown(word)} is not among the classes of the forecasts ({places}); if it means that an "
        f"event is not resolved, say --missing-value {quoted(word)}; {meant}"
    )


def _two_outcomes(observed: Sequence[Observed], clash: tuple[int, int], events: Sequence[str]) -> CellError:
    said, event = [], ""
    for row in clash:
        local = row
        for column in observed:
            if local < len(column.row_events):
                break
            local -= len(column.row_events)
        said.append(f"{shown(column.words.values[column.words.codes[local]])} ({place(column.table, local)})")
        event = events[column.row_events[local]]
    return CellError(f"event {shown(event)} has two outcomes: {said[0]} and {said[1]}")
