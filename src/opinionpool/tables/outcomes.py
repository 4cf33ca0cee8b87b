"""Outcomes of events in one or two tables, as positions among the classes; and the join with a table of outcomes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index, Mask
from opinionpool.errors import ArgumentError, LayoutError, Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.labels import FAMILIES, UNRESOLVED, Options, option_slots
from opinionpool.scales import Scale
from opinionpool.tables.classes import (
    USUAL,
    ClassOptions,
    EventOptions,
    Matcher,
    NoOutcome,
    bare,
    key,
    none_remedies,
    order_classes,
    two_classes,
)
from opinionpool.tables.event_facts import EventColumn, Facts, per_event
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
# Code of a void event among positions of outcomes.
_VOIDED = UNRESOLVED - 1
# Code of a tie: the outcome counts as half of each of two classes.
TIED = _VOIDED - 1


@dataclass(frozen=True)
class Settled:
    """Classes in order, each event's outcome as a position among them, (events,), and the mask of void events.

    An outcome is -1 if unresolved, and `TIED` if it counts as half of each class.
    """

    classes: tuple[object, ...]
    outcomes: Index
    void: npt.NDArray[np.bool_]
    notes: tuple[Note, ...]


# Word of an outcome: its column, its code there, and the word.
_Outcome = tuple[EventColumn, int, str]


def as_asked(observed: Sequence[EventColumn], request: ReadOptions) -> list[EventColumn]:
    """Return columns of outcomes without "Resolved", grades as 0 or 1 (--at-least), levels as the scale spells them."""
    scales, scale = request.rules.scales, request.rules.scale

    def level(word: str) -> str:
        i = -1 if scale is None or looks_numeric(word) else scale.place(word)
        return word if scale is None or i < 0 else scale.levels[i]

    asked = level if request.at_least is None else _graded(request.at_least, scales.values())
    return [each.rewritten(lambda word: asked(bare(word))) for each in observed]


def _graded(least: str, scales: Iterable[Scale]) -> Callable[[str], str]:
    """Return a function from grade to "1" if it is `least` (number or level) or more, else "0"; -1 and words stay.

    Raises an `ArgumentError` if `least` is neither a number nor a level of a scale.
    """
    order = next((scale for scale in scales if scale.place(least) >= 0), None)
    if order is None and not _WHOLE.fullmatch(least):
        raise ArgumentError(f"--at-least is a number, or a level of a scale that --scale names, and not {shown(least)}")

    def place(word: str) -> float:
        if order is not None and order.place(word) >= 0:
            return order.place(word)
        return float(word) if order is None and looks_numeric(word) and word not in {"-1", "-1.0"} else np.nan

    edge = float(least) if order is None else order.place(least)
    return lambda word: word if np.isnan(place(word)) else str(int(place(word) >= edge))


def settle(
    observed: Sequence[EventColumn],
    events: Sequence[str],
    written: Sequence[str],
    asked: ClassOptions,
    without: NoOutcome = USUAL,
    classes: tuple[object, ...] | None = None,
    scale: Scale | None = None,
    options: Options | None = None,
) -> Settled:
    """Return the classes, and each event's outcome, from the columns of outcomes `observed`.

    `written` are the classes that forecasts were given for, empty where a forecast is one probability; `asked` what the
    user says of classes; `without` the words for no outcome; `classes` those of the whole table, if known; `options`
    those of each event, where events do not share their classes.
    """
    words, whole = {word for column in observed for word in column.words.values}, classes is None
    if not options:
        without = without.coded(words | {*map(str, classes or ())}, {*written, *asked.classes})
    if options is not None:
        classes = option_slots(options)
    elif classes is None:
        classes = _find_classes(observed, written, asked, without, scale)
    shared = classes if options is None else ()
    # A word that the user names as void is no class.
    void_class = next((word for word in sorted(without.own) if Matcher(shared).find(word) is not None), None)
    if void_class is not None:
        raise fault("void-is-class", word=void_class, classes=[str(label) for label in shared])
    tied = _preference(words, scale) if len(shared) == 2 else None

    encoded = _encode(observed, events, shared, options, without, tied)
    outcomes = np.full(len(events), UNRESOLVED)
    if observed:
        outcomes = per_event(observed, encoded.values, UNRESOLVED, events).astype(np.intp)
    void = outcomes == _VOIDED
    outcomes[void] = UNRESOLVED
    known = Matcher(written)
    usual = {word for word in encoded.met if word.lower() in without.void and known.find(word) is None}
    notes = [finding("void-class", word=word) for word in sorted(usual if options is None else ())]
    absent = sorted(without.own - {*map(str.lower, words)}) if whole and observed else []
    notes += [finding("void-absent", words=absent)] if absent else []
    return Settled(classes, outcomes, void, (*_notes(shared, outcomes, void, encoded), *notes))


def _find_classes(
    observed: Sequence[EventColumn],
    written: Sequence[str],
    asked: ClassOptions,
    without: NoOutcome,
    scale: Scale | None,
) -> tuple[object, ...]:
    """Return the classes: those `written`, else levels of `scale`, else two by the outcomes; see `settle`."""
    if len(written) > 1:
        return order_classes(written, asked)
    words = {word for column in observed for word in column.words.values}
    ties = _preference(words, scale)
    found = None if scale is None else _levels_seen(_outcomes_among(observed, written, without, ties), scale, asked)
    if found is not None:
        return found
    cells = _outcomes_among(observed, written, without.beside({*words, *asked.classes}), ties)
    _check_binary(cells)
    return two_classes(_spellings(cells), asked.about(written[0]) if written else asked)


def _levels_seen(cells: Sequence[_Outcome], scale: Scale, asked: ClassOptions) -> tuple[object, ...] | None:
    """Return the classes if outcomes are levels of `scale`: all, or the two ends if only these occur; else None."""
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


def _preference(words: Iterable[str], scale: Scale | None) -> Scale | None:
    """Return the scale of a preference between A and B, if `scale` or outcomes `words` are one; else None."""
    found = Scale.of_verdicts(sorted(words)) if scale is None else scale
    return found if found is not None and found.is_tie("tie") else None


def _outcomes_among(
    observed: Sequence[EventColumn], written: Sequence[str], without: NoOutcome, preference: Scale | None = None
) -> list[_Outcome]:
    """Distinct words of outcomes, without ties and "no outcome"; a word that names a class in `written` stays."""
    known = Matcher(written)
    return [
        (column, code, word)
        for column in observed
        for code, word in enumerate(column.words.values)
        if known.find(word) is not None
        or not (word.lower() in without.every or (preference is not None and preference.is_tie(word)))
    ]


def _spellings(cells: Sequence[_Outcome]) -> dict[str, str]:
    """Return the most frequent spelling of each class among outcomes, by its `key`."""
    tallies: dict[str, Counter[str]] = {}
    for column, code, word in cells:
        tallies.setdefault(key(word), Counter())[word] += int(column.words.counts[code])
    return {of: max(sorted(tally), key=tally.__getitem__) for of, tally in tallies.items()}


def _check_binary(cells: Sequence[_Outcome]) -> None:
    """Raise an error if outcomes are numbers but not two codes such as 0 and 1, or mix yes or no with other words."""
    keys = {key(word) for *_, word in cells}
    if len(keys) == 2 and "1" in keys and "0" not in keys and all(each.removeprefix("-").isdigit() for each in keys):
        return
    able = [family for family in FAMILIES if keys & set(family)]
    family = next((family for family in able if keys <= set(family)), next(iter(able), None))
    if family is None and cells and all(looks_numeric(word) for *_, word in cells):
        column, code, word = cells[0]
        way, count = {"columns": {"outcome": None}}, int((column.words.codes >= 0).sum())
        raise cell_fault("no-outcomes-there", *column.first(code), [way], count, fraction=_if_fraction(word))
    for column, code, word in cells:
        if family is not None and key(word) not in family:
            raise _not_an_outcome(column, code, f"neither {family[0]} nor {family[1]}, as others are")
        if family is None and looks_numeric(word):
            raise _not_an_outcome(column, code, "neither 0 nor 1")


def _if_fraction(word: str) -> str:
    """Remark for messages that an outcome written as a fraction is no class; "" for other words."""
    fraction = looks_numeric(word) and any(mark in word for mark in ".,%/")
    return "; an event that settled at a fraction is neither" if fraction else ""


def _not_an_outcome(column: EventColumn, code: int, what: str) -> OpinionPoolError:
    """Return the error for the word `code`, which is no outcome; `what` says what it is, as "neither 0 nor 1"."""
    word, count, grade = column.words.values[code], int(column.words.counts[code]), _grade(column.words.values)
    option = _column_of_options(column)
    ways: list[Mapping[str, object]] = [*([{"at_least": grade}] if grade else []), *none_remedies(word)]
    ways = ways if option is None else [{"columns": {"class": option}}]
    return cell_fault("no-outcome", *column.first(code), ways, count, what=what + _if_fraction(word))


def _column_of_options(column: EventColumn) -> str | None:
    """Return the name of another column that has all words of `column` and may hold the classes, or None."""
    words, table = {*column.words.values}, column.table
    others = (i for i in range(len(table.names)) if i != column.column and len(words) > 2)
    return next((table.names[i] for i in others if words <= {*table.words(i).values}), None)


def _grade(words: Sequence[str]) -> str:
    """Return the grade to propose as the least for yes: the first above the middle of integers up to 10; else ""."""
    numbers = {int(word) for word in words if word.isdigit() and int(word) <= 10}
    return str((min(numbers) + max(numbers)) // 2 + 1) if len(numbers) > 2 else ""


class _Encoded(NamedTuple):
    """Each row's outcome as a position among classes or options; the words of options and of "no outcome" there."""

    values: Index
    met: set[str]  # words that are options
    unsettled: set[str]  # words for no outcome
    respelled: int  # number of rows with an option in another spelling


def _encode(
    observed: Sequence[EventColumn],
    events: Sequence[str],
    shared: tuple[object, ...],
    options: Options | None,
    without: NoOutcome,
    preference: Scale | None,
) -> _Encoded:
    """Return the outcome in each row as a position among the `shared` classes or, if given, its event's `options`.

    Raises an error for a word that is neither an option nor a word for no outcome.
    """
    matchers: dict[int, Matcher] = {}
    values, met, unsettled, respelled = [], set(), set(), 0
    for column in observed:
        words = column.words
        pair, pairs, counts = _pairs(column, options is None)
        found = np.full(len(pairs) + 1, UNRESOLVED, dtype=np.int16)
        for i, (event, code) in enumerate(pairs):
            word, labels = words.values[code], shared if options is None else options[event]
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
                # If no outcome is a class, the names differ, and no word stands for something else.
                unmatched = options is None and all(matchers[event].find(each) is None for each in words.values)
                of = "classes" if options is None else f"options of event {shown(events[event])}"
                rows = words.rows(code) if options is None else np.flatnonzero(pair == i)
                where = replace(column.table.place(rows[:3].tolist()), column=column.name, value=word)
                about = {"of": of, "options": [*map(str, labels)], "meant": meant(word, [*map(str, labels)])}
                ways = [] if unmatched else map(Remedy, none_remedies(word))
                raise fault("no-class", where, ways, count=counts[i], **about)
        values.append(found[pair])
    return _Encoded(
        np.concatenate([np.empty(0, np.int16), *values]),
        met,
        unsettled,
        respelled + sum(column.words.trimmed for column in observed),
    )


def _pairs(column: EventColumn, shared: bool) -> tuple[Index, list[tuple[int, int]], list[int]]:
    """Return each row's place (-1: blank) in a list of pairs (event, word's code), the list, and rows per pair."""
    codes, events, size = column.words.codes, column.row_events, max(len(column.words.values), 1)
    if shared:
        # A word means the same for all events, so every pair has event 0.
        return codes, [(0, code) for code in range(len(column.words.values))], column.words.counts.tolist()
    there = (codes >= 0) & (events >= 0)
    keys, inverse = np.unique(events[there].astype(np.intp) * size + codes[there], return_inverse=True)
    pair = np.full(len(codes), BLANK)
    pair[there] = inverse
    return pair, [divmod(key, size) for key in keys.tolist()], np.bincount(inverse, minlength=len(keys)).tolist()


def _notes(
    classes: tuple[object, ...],
    outcomes: Index,
    void: npt.NDArray[np.bool_],
    encoded: _Encoded,
) -> list[Note]:
    """Notes on outcomes: void, tied, unresolved, respelt; `classes` is empty if events have their own options."""
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
    found = [
        finding("void", count=int(void.sum())),
        finding("as-of-void", count=int((settled.void & later).sum())),
        finding("as-of-void-no-date", count=int((settled.void & open_yet).sum())),
        finding("as-of-outcomes", count=int((known & later).sum())),
        finding("as-of-no-date", count=int((known & hidden & facts.dated).sum())),
        finding("as-of-closes", count=int((known & hidden & (not facts.dated)).sum())),
    ]
    notes = [note for note in settled.notes if note.code != "void"] + [note for note in found if note.count]
    if not facts.dated:
        notes.append(finding("as-of-undated", other="other " if found[-1].count else ""))
    return np.where(later | hidden, UNRESOLVED, settled.outcomes), void, notes


def find_options(
    melted: Melted, row_events: Index, layout: Layout, rule: str | None, asked: ClassOptions, counting: LongRows
) -> EventOptions | None:
    """Return the options (answers to choose from) of each event; None if all events share their classes.

    Options come from the forecasts in `counting`, those that may count; of events without any, from all rows. `rule` is
    what the user says: "event" for own options, "shared" for shared classes, or None.
    """
    long_rows = melted.long_rows
    if rule == "event" and not (layout.long and melted.written):
        raise fault("no-option-column", Place(long_rows.table.name))
    if rule == "shared" or not (layout.long and long_rows.classes) or (asked.classes and rule is None):
        return None
    found = EventOptions.of(
        long_rows.classes, *_options_met(melted.row_labels, row_events, counting), len(long_rows.events)
    )
    answered = np.unique(long_rows.event)
    if (found.sizes[answered] == len(long_rows.classes)).all():
        return None
    if rule is None and not _clear(found):
        raise _unclear(long_rows, found)
    if asked.positive is not None or asked.classes:
        raise ArgumentError("--positive and classes are for classes that all events share, and these have their own")
    single = answered[found.sizes[answered] < 2]
    if len(single):
        event, ways = int(single[0]), list[Remedy]()
        if len(single) == len(answered) and "class" in layout.roles:
            topic = long_rows.table.names[layout.roles["class"]]
            ways = [Remedy({"columns": {"topic": topic}}), Remedy({"columns": {"class": None}})]
        about = {"event": long_rows.events[event], "option": found.of_events[event][0]}
        raise fault("one-option", Place(long_rows.table.name), ways, **about)
    return found


def _options_met(labels: Index, row_events: Index, counting: LongRows) -> tuple[Index, Index]:
    """Event and class label, (P,) each, of forecasts in `counting`; for events without any, of rows of the table."""
    given = counting.select(~np.isnan(counting.value))
    unanswered = np.ones(len(given.events), dtype=bool)
    unanswered[given.event] = False
    rows = np.flatnonzero((row_events >= 0) & (labels >= 0))
    rows = rows[unanswered[row_events[rows]]]
    return np.concatenate([given.event, row_events[rows]]), np.concatenate([given.label, labels[rows]])


def _clear(found: EventOptions) -> bool:
    """Whether lists of options that differ share no class, in any spelling: then events have options of their own."""
    sets = {frozenset(labels) for labels in found.of_events if labels}
    words = [key(str(label)) for labels in sets for label in labels]
    return len(words) == len(set(words))


def _unclear(long_rows: LongRows, found: EventOptions) -> OpinionPoolError:
    """Return the error that asks whether events have options of their own, or forecasts lack some classes."""
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
    shared: dict[str, object] = {"options": "shared"}
    lacks = ""
    if len(short):
        about, lacking = long_rows.about(int(short[0])), class_lacking(long_rows, int(short[0]))
        lacks = f": the forecast by {about['who']} has no probability for class {shown(lacking)} ({about['where']})"
        shared["drop_incomplete"] = True
    ways = [Remedy({"options": "event"}), Remedy(shared)]
    return fault("classes-differ", Place(long_rows.table.name), ways, examples=examples, lacks=lacks)


_ROLES = ("event", "outcome", "closes", "resolved_at", TEXT)


@dataclass(frozen=True)
class Joined:
    """Columns of a table of outcomes, each row with the event of the table of forecasts that it is about."""

    columns: Mapping[
        str, EventColumn
    ]  # by role: event, outcome, closes, resolved_at and text, as far as there are such
    notes: list[Note]  # on events in one of the tables only, and on unused columns


def join_outcomes(table: Table, columns: Columns, events: Sequence[str], forecasts: str, header: str | None) -> Joined:
    """Return the columns of a table of outcomes, each row with the one of `events` that it is about.

    `columns` are those that the user named, by role; `forecasts` is the name of the table of forecasts, for errors,
    and `header` the header of its column of events, if it has one.
    """
    roles = _roles(table, columns, () if header is None else (header,))
    words = table.words(roles["event"])
    position = {event: i for i, event in enumerate(events)}
    matched = np.array([position.get(word, BLANK) for word in words.values], dtype=np.intp)
    strangers = [word for word, at in zip(words.values, matched, strict=True) if at == BLANK]
    there = set(words.values)
    lacking = [event for event in events if event not in there]
    if len(lacking) == len(events):
        about = {"table": table.name, "forecasts": forecasts, "hint": _hint(words.values, events)}
        raise fault("no-common-event", None, (), ids=words.values[:3], events=events[:3], **about)
    used = ", ".join(f"{role} {shown(table.names[column])}" for role, column in roles.items())
    how = "".join(f" ({note.text})" for note in table.notes)
    notes = [finding("outcomes-layout", table=table.name, how=how, used=used), *_unused(table, roles)]
    if strangers:
        notes.append(finding("outcomes-unmatched", table=table.name, count=len(strangers), names=strangers))
    if lacking:
        notes.append(finding("outcomes-lacking", table=table.name, count=len(lacking), names=lacking))
    of_rows = words.expand(matched, BLANK)
    return Joined({role: EventColumn.of(table, i, of_rows) for role, i in roles.items()}, notes)


def beside(table: Table, request: ReadOptions, names: Sequence[str]) -> Beside:
    """Return what a table of outcomes has that helps to read forecasts: headers and, if found, events and outcomes."""
    try:
        roles = _roles(table, request.keys, names)
    except LayoutError:
        return Beside(set(table.names))
    happened = {word.lower() for word in table.words(roles["outcome"]).values}
    return Beside(set(table.names), set(table.words(roles["event"]).values), happened - request.no_outcome.every)


def _unused(table: Table, roles: Mapping[str, int]) -> list[Note]:
    """Return a note that lists the columns of `table` without a role, or [] if every column has a role."""
    left = [i for i in range(len(table.names)) if i not in roles.values() and table.names[i]]
    if not left:
        return []
    times = [] if "resolved_at" in roles else [table.names[i] for i in left if are_times(table.words(i).values[:50])]
    names = [table.names[i] for i in left]
    return [unused_note(names, times, "resolved_at", "outcomes were known", f" of {table.name}")]


def _roles(table: Table, columns: Columns, names: Sequence[str] = ()) -> dict[str, int]:
    """Position of the column of each role in a table of outcomes; `names` are the headers of the forecasts' table."""
    # That there are no times holds for both tables; that there are no outcomes, for the other one.
    given = {
        role: name
        for role, name in columns.items()
        if role in _ROLES
        and (role == TEXT or name in table.names or (name is None and role in {"closes", "resolved_at"}))
    }
    roles = {role: table.names.index(str(name)) for role, name in given.items() if name in table.names}
    profile = Profile(table)
    for role in _ROLES:
        if role not in given:
            found = _candidates(profile, role, {*roles.values()}, names)
            if len(found) > 1:
                names = [table.names[place] for place in found]
                ways = [Remedy({"columns": {role: name}}) for name in names]
                raise fault("several-columns", Place(table.name), ways, names=names, role=role)
            roles |= {role: found[0]} if found else {}
    for role in ("event", "outcome"):
        free = [place for place in range(len(table.names)) if place not in roles.values()]
        if role not in roles and len(table.names) == 2 and free:
            roles[role] = free[0]
        elif role not in roles:
            raise fault("no-such-column", Place(table.name), names=table.names, role=role)
    return roles


def _candidates(profile: Profile, role: str, taken: Collection[int], names: Sequence[str]) -> list[int]:
    """Return positions of the columns whose headers allow `role`, without copies of the first such column."""
    words = ("outcome", "class", "verdict") if role == "outcome" else (role,)
    for word in words:
        found = [c for c in profile.columns if word in c.roles and c.place not in taken]
        found = [c for c in found if c.named(word)] or found
        ids = [c for c in found if c.is_id]
        if role == "event":
            # What both tables call the same comes before what either may be called.
            found = [c for c in found if c.name in names] or (ids if len(ids) == 1 else found)
        if found:
            return profile.own(found, word)
    shared = [place for place, name in enumerate(profile.table.names) if name in names and place not in taken]
    return shared if role == "event" and len(shared) == 1 else []


def _hint(there: Sequence[str], here: Sequence[str]) -> str:
    plain = {event.lstrip("0").lower() for event in here}
    if any(word.lstrip("0").lower() in plain for word in there):
        return "; some would match without regard to case and leading zeros"
    return ""
