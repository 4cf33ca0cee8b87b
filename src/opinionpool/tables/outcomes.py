"""Outcomes of events in one or two tables, as positions among options; and the join with a table of outcomes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Index, Mask
from opinionpool.errors import ArgumentError, LayoutError, Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.labels import FAMILIES, UNRESOLVED
from opinionpool.scales import Scale
from opinionpool.tables.classes import (
    ClassOptions,
    EventOptions,
    Matcher,
    bare,
    key,
    none_remedies,
    order_classes,
    two_classes,
)
from opinionpool.tables.event_facts import EventColumn, Facts, joined, per_event
from opinionpool.tables.layout import Layout, unused_note
from opinionpool.tables.melt import Melted
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.profile import Profile
from opinionpool.tables.roles import TEXT, Beside, Columns
from opinionpool.tables.statements import LongRows, class_lacking
from opinionpool.tables.table import BLANK, Table, cell_fault
from opinionpool.tables.times import are_times
from opinionpool.tables.units import looks_numeric
from opinionpool.text import listed, meant, shown

_WHOLE = re.compile(r"-?\d+(?:\.\d+)?")
# Codes among positions of outcomes: of a void event, and of a tie, which counts as half of each of two classes.
_VOIDED, TIED = UNRESOLVED - 1, UNRESOLVED - 2


@dataclass(frozen=True)
class Settled:
    """Options of events, each event's outcome as a position among them, (events,), and the mask of void events.

    An outcome is -1 if unresolved, and `TIED` if it counts as half of each class.
    """

    options: EventOptions
    outcomes: Index
    void: Mask
    notes: tuple[Note, ...]

    @property
    def classes(self) -> tuple[object, ...]:
        """Names of the K positions of outcomes: the classes in order, or "option 1" and so on."""
        return self.options.classes


def as_asked(observed: Sequence[EventColumn], request: ReadOptions) -> list[EventColumn]:
    """Return columns of outcomes without "Resolved", grades as 0 or 1 (--at-least), levels as the scale spells them.

    Raises an `ArgumentError` if the least grade is neither a number nor a level of a scale.
    """
    least, scale = request.at_least, request.rules.scale
    if least is not None:
        scale = next((each for each in request.rules.scales.values() if each.place(least) >= 0), None)

    def grade(word: str) -> float:
        """Return the grade that `word` is, NaN if it is none."""
        if scale is not None:
            return scale.place(word) if scale.place(word) >= 0 else np.nan
        return float(word) if _WHOLE.fullmatch(word) and float(word) != -1.0 else np.nan

    if least is not None and np.isnan(grade(least)):
        raise ArgumentError(f"--at-least is a number, or a level of a scale that --scale names, and not {shown(least)}")

    def read(cell: str) -> str:
        word = bare(cell)
        if np.isnan(grade(word)):
            return word
        if least is not None:
            return str(int(grade(word) >= grade(least)))
        return word if scale is None or looks_numeric(word) else scale.levels[int(grade(word))]

    return [each.rewritten(read) for each in observed]


class _Cell(NamedTuple):
    """Distinct word in a column of outcomes, for one event, or for all (-1) where events share their classes."""

    column: EventColumn
    event: int
    code: int  # position of the word in the column's list
    word: str
    rows: int  # number of rows that have it


def _cells(column: EventColumn, shared: bool) -> tuple[Index, list[_Cell]]:
    """Return the position of each row's cell in a list of distinct cells, (rows,), -1 if blank, and the list."""
    codes, events, size = column.words.codes, column.row_events, max(len(column.words.values), 1)
    place, keys, counts = codes, np.arange(len(column.words.values)) - size, column.words.counts
    if not shared:
        there = np.flatnonzero((codes >= 0) & (events >= 0))
        pairs = events[there].astype(np.intp) * size + codes[there]
        keys, of, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        place = np.full(len(codes), BLANK)
        place[there] = of
    found = zip(*(each.tolist() for each in (*np.divmod(keys, size), counts)), strict=True)
    return place, [_Cell(column, event, code, column.words.values[code], count) for event, code, count in found]


def settle(
    observed: Sequence[EventColumn],
    events: Sequence[str],
    written: Sequence[str],
    request: ReadOptions,
    classes: tuple[object, ...] | None = None,
    own: EventOptions | None = None,
    in_order: bool = False,
) -> Settled:
    """Return the options of events, and each event's outcome, from the columns of outcomes `observed`.

    `written` are the classes that forecasts were given for, empty where a forecast is one probability; words among them
    stay `in_order` if asked. `classes` are those of the whole table, if known, and `own` the options of each event,
    where events do not share their classes.
    """
    columns = [_cells(column, own is None) for column in observed]
    cells = [cell for _, some in columns for cell in some]
    words, known, void, whole = {cell.word for cell in cells}, Matcher(written), request.no_outcome, classes is None
    named = [] if own else [*written, *map(str, classes or request.asked.classes)]
    meaning = _meanings(words, named, request, own is None)
    if own is None and classes is None:
        able = [cell for cell in cells if cell.word not in meaning or known.find(cell.word) is not None]
        classes = _find_classes(able, written, request, in_order)
    options = EventOptions.shared(written, classes or (), len(events)) if own is None else own
    for word in sorted(void.own):
        # A word that the user names as void is no class.
        if Matcher(options.common).find(word) is not None:
            raise fault("void-is-class", word=word, classes=[*map(str, options.common)])
    codes = [[_code(cell, events, options, meaning) for cell in some] for _, some in columns]
    rows = [np.array([*of, UNRESOLVED], np.int16)[place] for of, (place, _) in zip(codes, columns, strict=True)]
    found = per_event(observed, joined(rows), UNRESOLVED, events).astype(np.intp)
    read = [*zip(cells, chain.from_iterable(codes), strict=True)]
    notes = _notes(found, options, read, sum(column.words.trimmed for column in observed))
    usual = {cell.word for cell, code in read if code >= 0 and cell.word.lower() in void.void and own is None}
    notes += [finding("void-class", word=word) for word in sorted(usual) if known.find(word) is None]
    absent = sorted(void.own - {word.lower() for word in words}) if observed and whole else []
    notes += [finding("void-absent", words=absent)] if absent else []
    return Settled(options, np.where(found == _VOIDED, UNRESOLVED, found), found == _VOIDED, tuple(notes))


def _meanings(words: Collection[str], classes: Sequence[str], request: ReadOptions, shared: bool) -> dict[str, int]:
    """Return the code of each of `words` that stands for no outcome or a tie, unless it names an option of its event.

    `classes` are those known before outcomes are read, if events share them (`shared`).
    """
    none, preference = request.no_outcome, None
    if shared:
        none = none.beside(words, classes)
        preference = request.rules.scale or Scale.of_verdicts(sorted({*words, *classes}))
    found = {word: UNRESOLVED for word in words if word.lower() in none.every}
    if preference is not None and len({*map(key, classes)}) <= 2:
        found |= {word: TIED for word in words if preference.is_tie(word)}
    return found | {word: _VOIDED for word in words if word.lower() in none.void}


def _find_classes(
    cells: Sequence[_Cell], written: Sequence[str], request: ReadOptions, in_order: bool
) -> tuple[object, ...]:
    """Return the classes: those `written`, else levels of the scale, else two by the outcomes; see `settle`."""
    asked, scale = request.asked, request.rules.scale
    if len(written) > 1:
        return order_classes(written, asked, written[0], in_order)
    levels = None if scale is None else _levels_seen({cell.word for cell in cells}, scale, asked)
    if levels is not None:
        return levels
    if not asked.classes:
        _check_binary(cells)
    for label in written:
        if asked.positive is not None and key(asked.positive) != key(label):
            raise fault("positive-of-one", written=label, positive=asked.positive)
        asked = replace(asked, positive=label)
    tallies: dict[str, Counter[str]] = {}
    for cell in cells:
        tallies.setdefault(key(cell.word), Counter())[cell.word] += cell.rows
    # The most frequent spelling of each.
    seen = {of: max(sorted(tally), key=tally.__getitem__) for of, tally in tallies.items()}
    return order_classes(two_classes(seen, asked), asked)


def _levels_seen(words: set[str], scale: Scale, asked: ClassOptions) -> tuple[object, ...] | None:
    """Return the classes if outcomes are levels of `scale`: all, or the two ends if only these occur; else None."""
    levels, preference = scale.levels, scale.is_tie("tie")
    ends = (levels[0], levels[-1])
    named = asked.classes or asked.positive or any(map(looks_numeric, words))
    if (words or preference) and words <= {*ends} and not named:
        return ends
    fitting = asked.classes == levels if asked.classes else bool({*map(key, words)} - {"0", "1"})
    ordered = fitting and len(levels) > 2 and not preference and all(scale.place(word) >= 0 for word in words)
    return levels if ordered else None


def _check_binary(cells: Sequence[_Cell]) -> None:
    """Raise an error if outcomes are numbers but not two codes such as 0 and 1, or mix yes or no with other words."""
    keys = {key(cell.word) for cell in cells}
    if len(keys) == 2 and "1" in keys and "0" not in keys and all(each.removeprefix("-").isdigit() for each in keys):
        return
    able = [family for family in FAMILIES if keys & {*family}]
    family = next((family for family in able if keys <= {*family}), next(iter(able), None))
    odd = [cell for cell in cells if (key(cell.word) not in family if family else looks_numeric(cell.word))]
    if not odd:
        return
    column, _, code, word, count = odd[0]
    where = column.table, int(column.words.rows(code)[0]), column.column
    what = "neither 0 nor 1" if family is None else f"neither {family[0]} nor {family[1]}, as others are"
    fraction = looks_numeric(word) and any(mark in word for mark in ".,%/")
    settled = "; an event that settled at a fraction is neither" if fraction else ""
    if len(odd) == len(cells):
        way, count = {"columns": {"outcome": None}}, int((column.words.codes >= 0).sum())
        raise cell_fault("no-outcomes-there", *where, [way], count, fraction=settled)
    ways: list[Mapping[str, object]] = [*_grades(column.words.values), *none_remedies(word)]
    raise cell_fault("no-outcome", *where, _of_options(column) or ways, count, what=what + settled)


def _of_options(column: EventColumn) -> Sequence[Mapping[str, object]]:
    """Return the option that another column, which has all words of `column`, holds the classes; [] if none has."""
    words, table = {*column.words.values}, column.table
    others = (i for i in range(len(table.names)) if i != column.column and len(words) > 2)
    return [{"columns": {"class": table.names[i]}} for i in others if words <= {*table.words(i).values}][:1]


def _grades(words: Sequence[str]) -> list[Mapping[str, object]]:
    """Return the option on the least grade for yes, the first above the middle; [] unless three integers up to 10."""
    numbers = {int(word) for word in words if word.isdigit() and int(word) <= 10}
    return [{"at_least": str((min(numbers) + max(numbers)) // 2 + 1)}] if len(numbers) > 2 else []


def _code(cell: _Cell, events: Sequence[str], options: EventOptions, meaning: Mapping[str, int]) -> int:
    """Return an outcome's position among its event's `options`, else its code in `meaning`, else raise an error."""
    column, event, code, word, count = cell
    labels = options.labels_of(event)
    matcher = Matcher(labels)
    position = matcher.find(word)
    if position is not None or word in meaning or not labels:
        return meaning.get(word, UNRESOLVED) if position is None else position
    # If no outcome is a class, the names differ, and no word stands for something else.
    shared, rows = event == BLANK, column.words.rows(code)
    unmatched = shared and all(matcher.find(each) is None for each in column.words.values)
    of = "classes" if shared else f"options of event {shown(events[event])}"
    rows = rows if shared else rows[column.row_events[rows] == event]
    where = replace(column.table.place(rows[:3].tolist()), column=column.name, value=word)
    names, ways = [*map(str, labels)], [] if unmatched else map(Remedy, none_remedies(word))
    raise fault("no-class", where, ways, count=count, of=of, options=names, meant=meant(word, names))


def _notes(found: Index, options: EventOptions, read: Sequence[tuple[_Cell, int]], trimmed: int) -> list[Note]:
    """Return notes on events' outcomes as codes, (events,): void, tied, unresolved, respelt; `trimmed` are blanks."""
    void, ties, blank = (int((found == code).sum()) for code in (_VOIDED, TIED, UNRESOLVED))
    words = sorted({cell.word for cell, code in read if code == UNRESOLVED})
    marked = f" (blank, or marked {listed(words)})" if words else ""
    respelt = [cell for cell, code in read if code >= 0 and cell.word != str(options.labels_of(cell.event)[code])]
    respelled = trimmed + sum(cell.rows for cell in respelt if not looks_numeric(cell.word))
    names = listed(options.common) if options.common else "options of their events"
    notes = [
        finding("void", count=void),
        finding("ties", count=ties),
        finding("unresolved", count=blank, total=len(found) - void, marked=marked),
        finding("outcome-spelling", count=respelled, names=names),
    ]
    pair = [*map(str, options.common)] if len(options.common) == 2 else []
    about = [finding("positive", one=pair[1], other=pair[0])] if pair else []
    return [*about, *(note for note in notes if note.count)]


def known_by(cutoff: np.datetime64 | None, settled: Settled, facts: Facts) -> tuple[Index, Mask, list[Note]]:
    """Return each event's outcome and whether it is void (annulled), (events,), both as known at `cutoff`; and notes.

    An outcome is known if it was resolved by `cutoff`; in a table without times of resolution, if its event does not
    close later. An event annulled at an unknown time counts as open until it closes.
    """
    if cutoff is None:
        return settled.outcomes, settled.void, list(settled.notes)
    known, later = settled.outcomes != UNRESOLVED, facts.resolved_at > cutoff
    hidden = np.isnat(facts.resolved_at) if facts.dated else facts.closes > cutoff
    open_yet = hidden & ~(facts.closes <= cutoff)
    void = settled.void & ~later & ~open_yet
    counts = {
        "void": void,
        "as-of-void": settled.void & later,
        "as-of-void-no-date": settled.void & open_yet,
        "as-of-outcomes": known & later,
        "as-of-no-date" if facts.dated else "as-of-closes": known & hidden,
    }
    notes = [note for note in settled.notes if note.code != "void"]
    notes += [finding(code, count=int(events.sum())) for code, events in counts.items() if events.any()]
    if not facts.dated:
        notes.append(finding("as-of-undated", other="other " if (known & hidden).any() else ""))
    return np.where(later | hidden, UNRESOLVED, settled.outcomes), void, notes


def find_options(
    melted: Melted, row_events: Index, layout: Layout, request: ReadOptions, counting: LongRows
) -> EventOptions | None:
    """Return the options (answers to choose from) of each event; None if all events share their classes.

    Options come from the forecasts in `counting`, those that may count; of events without any, from all rows.
    """
    long_rows, rule, asked = melted.long_rows, request.options, request.asked
    if rule == "event" and not (layout.long and melted.written):
        raise fault("no-option-column", Place(long_rows.table.name))
    if rule == "shared" or not (layout.long and long_rows.classes) or (asked.classes and rule is None):
        return None
    given = counting.select(~np.isnan(counting.value))
    rows = np.flatnonzero((row_events >= 0) & (melted.row_labels >= 0))
    rows = rows[(np.bincount(given.event, minlength=len(given.events)) == 0)[row_events[rows]]]
    event = np.concatenate([given.event, row_events[rows]])
    label = np.concatenate([given.label, melted.row_labels[rows]])
    found = EventOptions.of(long_rows.classes, event, label, len(long_rows.events))
    answered = np.unique(long_rows.event)
    if (found.sizes[answered] == len(long_rows.classes)).all():
        return None
    if rule is None:
        sets = {frozenset(labels) for labels in found.of_events if labels}
        words = [key(str(label)) for labels in sets for label in labels]
        # Events have options of their own if sets that differ share no class, in any spelling.
        if len(words) > len({*words}):
            raise _unclear(long_rows, found)
    if asked.positive is not None or asked.classes:
        raise ArgumentError("--positive and classes are for classes that all events share, and these have their own")
    single = answered[found.sizes[answered] < 2]
    if len(single):
        first, ways = int(single[0]), list[Remedy]()
        if len(single) == len(answered) and "class" in layout.roles:
            topic = long_rows.table.names[layout.roles["class"]]
            ways = [Remedy({"columns": {"topic": topic}}), Remedy({"columns": {"class": None}})]
        about = {"event": long_rows.events[first], "option": found.of_events[first][0]}
        raise fault("one-option", Place(long_rows.table.name), ways, **about)
    return found


def _unclear(long_rows: LongRows, found: EventOptions) -> OpinionPoolError:
    """Return the error that asks whether events have options of their own, or forecasts lack some classes."""
    options, size = found.of_events, len(long_rows.classes)
    _, start, count = np.unique(long_rows.pair, return_index=True, return_counts=True)
    short = start[count < size]
    event, lacks, more = int(np.where(found.sizes, found.sizes, size).argmin()), "", {}
    if len(short):
        about, lacking = long_rows.about(int(short[0])), class_lacking(long_rows, int(short[0]))
        lacks = f": the forecast by {about['who']} has no probability for class {shown(lacking)} ({about['where']})"
        event, more = int(long_rows.event[short[0]]), {"drop_incomplete": True}
    other = next(i for i, labels in enumerate(options) if labels and {*labels} != {*options[event]})
    examples = " and ".join(f"{shown(long_rows.events[i])} ({listed(options[i], 4)})" for i in (event, other))
    ways = [Remedy({"options": "event"}), Remedy({"options": "shared", **more})]
    return fault("classes-differ", Place(long_rows.table.name), ways, examples=examples, lacks=lacks)


_ROLES = ("event", "outcome", "closes", "resolved_at", TEXT)


def join_outcomes(
    table: Table, columns: Columns, events: Sequence[str], forecasts: str, names: Sequence[str]
) -> tuple[Mapping[str, EventColumn], list[Note]]:
    """Return columns of a table of outcomes, by role, each row with the one of `events` that it is about, and notes.

    Roles are event and outcome, and closes, resolved_at and text if there are such columns. `columns` are those that
    the user named, by role; `forecasts` is the name of the table of forecasts, for errors, and `names` has the header
    of its column of events, if there is one. Notes are on events in one of the tables only, and on unused columns.
    """
    roles = _roles(table, columns, names)
    words, position = table.words(roles["event"]), {event: i for i, event in enumerate(events)}
    matched = np.array([position.get(word, BLANK) for word in words.values], dtype=np.intp)
    there = {*words.values}
    strangers, lacking = (
        [name for name in one if name not in other] for one, other in ((words.values, position), (events, there))
    )
    if len(lacking) == len(events):
        plain = {event.lstrip("0").lower() for event in events}
        alike = any(word.lstrip("0").lower() in plain for word in there)
        hint = "; some would match without regard to case and leading zeros" if alike else ""
        about = {"table": table.name, "forecasts": forecasts, "hint": hint}
        raise fault("no-common-event", None, (), ids=words.values[:3], events=events[:3], **about)
    used = ", ".join(f"{role} {shown(table.names[column])}" for role, column in roles.items())
    how = "".join(f" ({note.text})" for note in table.notes)
    notes: list[Note] = [finding("outcomes-layout", table=table.name, how=how, used=used)]
    if left := [i for i, name in enumerate(table.names) if name and i not in roles.values()]:
        able = [] if "resolved_at" in roles else [i for i in left if are_times(table.words(i).values[:50])]
        unused, times = ([table.names[i] for i in places] for places in (left, able))
        notes.append(unused_note(unused, times, "resolved_at", "outcomes were known", f" of {table.name}"))
    for code, some in (("outcomes-unmatched", strangers), ("outcomes-lacking", lacking)):
        notes += [finding(code, table=table.name, count=len(some), names=some)] if some else []
    of_rows = words.expand(matched, BLANK)
    return {role: EventColumn.of(table, i, of_rows) for role, i in roles.items()}, notes


def beside(table: Table, request: ReadOptions, names: Sequence[str]) -> Beside:
    """Return what a table of outcomes has that helps to read forecasts: headers and, if found, events and outcomes."""
    try:
        roles = _roles(table, request.keys, names)
    except LayoutError:
        return Beside({*table.names})
    happened = {word.lower() for word in table.words(roles["outcome"]).values}
    return Beside({*table.names}, {*table.words(roles["event"]).values}, happened - request.no_outcome.every)


def _roles(table: Table, columns: Columns, names: Sequence[str] = ()) -> dict[str, int]:
    """Position of the column of each role in a table of outcomes; `names` are the headers of the forecasts' table."""
    asked = {role: columns[role] for role in _ROLES if role in columns}
    roles = {role: table.names.index(str(name)) for role, name in asked.items() if name in table.names}
    # That there are no times holds for both tables; that there are no outcomes, for the other one.
    none = {role for role, name in asked.items() if role == TEXT or (name is None and role in _ROLES[2:])}
    profile = Profile(table)
    for role in _ROLES:
        found = [] if role in roles or role in none else _candidates(profile, role, {*roles.values()}, names)
        if len(found) > 1:
            able = [table.names[place] for place in found]
            ways = [Remedy({"columns": {role: name}}) for name in able]
            raise fault("several-columns", Place(table.name), ways, names=able, role=role)
        roles |= {role: found[0]} if found else {}
    for role in ("event", "outcome"):
        free = [place for place in range(len(table.names)) if place not in roles.values()]
        if role not in roles and (len(table.names) != 2 or not free):
            raise fault("no-such-column", Place(table.name), names=table.names, role=role)
        roles |= {} if role in roles else {role: free[0]}
    return roles


def _candidates(profile: Profile, role: str, taken: Collection[int], names: Sequence[str]) -> list[int]:
    """Return positions of the columns whose headers allow `role`, without copies of the first such column."""
    for word in ("outcome", "class", "verdict") if role == "outcome" else (role,):
        found = [c for c in profile.columns if word in c.roles and c.place not in taken]
        if role == "event":
            # What both tables call the same comes before what either may be called.
            ranks = [(not c.named(role), c.name not in names, not c.is_id) for c in found]
            found = [c for c, rank in zip(found, ranks, strict=True) if rank == min(ranks)]
        if found:
            return profile.own(found, word)
    shared = [place for place, name in enumerate(profile.table.names) if name in names and place not in taken]
    return shared if role == "event" and len(shared) == 1 else []
