"""Facts on events in tables (priors, times, groups, topics, texts), and the join with a table of outcomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import LayoutError, Note
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.tables.classes import EventOptions, Matcher
from opinionpool.tables.layout import Layout, unused_note
from opinionpool.tables.melt import Melted, Reading
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.profile import Profile
from opinionpool.tables.roles import TEXT, Beside, Columns
from opinionpool.tables.statements import LongRows, fold_rows
from opinionpool.tables.table import BLANK, Table, Words, cell_fault, place
from opinionpool.tables.times import Times, are_times, last_moments, midnights, span
from opinionpool.tables.units import check_prior, tiny_column
from opinionpool.text import shown


def one_per_key(
    values: npt.NDArray[Any], present: npt.NDArray[np.bool_], keys: Index, count: int
) -> tuple[Index, tuple[int, int] | None]:
    """Return each key's first row with a value, (count,), and two rows of one key with different values, if there are.

    `present` marks rows with a value. `keys` are 0 to count - 1, -1 for no key; a key without a value has first row -1.

    >>> import numpy as np
    >>> values, keys = np.array([7, 8, 7, 9]), np.array([0, 1, 0, 1])
    >>> one_per_key(values, values > 0, keys, 3)
    (array([ 0,  1, -1]), (1, 3))
    """
    # Rows that follow each other with the same are looked at once.
    new = (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])
    rows = np.append(0, np.flatnonzero(new) + 1) if len(keys) else np.empty(0, dtype=np.intp)
    rows = rows[present[rows] & (keys[rows] >= 0)]
    first = np.full(count, -1)
    first[keys[rows][::-1]] = rows[::-1]
    differing = rows[values[first[keys[rows]]] != values[rows]]
    if not len(differing):
        return first, None
    return first, (int(first[keys[differing[0]]]), int(differing[0]))


def take(values: npt.NDArray[Any], rows: Index, blank: object) -> npt.NDArray[Any]:
    """Return the `values` at the positions `rows`, and `blank` where a position is -1."""
    found = np.full(len(rows), np.array(blank, dtype=values.dtype))
    there = rows >= 0
    found[there] = values[rows[there]]
    return found


@dataclass(frozen=True)
class EventColumn:
    """Column of a table, with the position of the event that each row is about, -1 for none."""

    table: Table
    column: int
    words: Words
    row_events: Index

    @classmethod
    def of(cls, table: Table, column: int, row_events: Index) -> EventColumn:
        """Return the column at position `column` of a table whose rows are about the events at `row_events`."""
        return cls(table, column, table.words(column), row_events)

    @property
    def name(self) -> str:
        """Header of the column."""
        return self.table.names[self.column]

    def rewritten(self, read: Callable[[str], str]) -> EventColumn:
        """Return a copy of the column with `read(word)` in place of each word."""
        words = list(map(read, self.words.values))
        return self if words == self.words.values else replace(self, words=self.words.rewritten(words))

    def first(self, code: int) -> tuple[Table, int, int]:
        """Table, row and column (positions) of the first cell with the word of the given `code`."""
        return self.table, int(self.words.rows(code)[0]), self.column

    def at(self, row: int) -> str:
        """Return the word in `row` and where the row is, as text for messages."""
        return f"{shown(self.words.values[self.words.codes[row]])} ({place(self.table, row)})"


def first_rows(columns: Sequence[EventColumn], values: npt.NDArray[Any], blank: object, events: Sequence[str]) -> Index:
    """Return each event's first row with a value, (events,), -1 for none; raise if two rows of one event differ.

    `values`, (rows of all columns,), are `blank`, NaN or NaT where the cell is blank.
    """
    keys = np.concatenate([each.row_events for each in columns])
    present = (values == values) & (values != np.array(blank, dtype=values.dtype))
    first, clash = one_per_key(values, present, keys, len(events))
    if clash is None:
        return first
    known = present & (keys >= 0)
    pairs = np.unique(np.stack([keys[known], np.unique(values[known], return_inverse=True)[1]]), axis=1)[0]
    others = [events[i] for i in np.flatnonzero(np.bincount(pairs) > 1).tolist() if i != keys[clash[0]]]
    starts = np.cumsum([0, *(len(each.row_events) for each in columns)])
    of = (np.searchsorted(starts, clash, side="right") - 1).tolist()
    one, other = (columns[i].at(row - int(starts[i])) for i, row in zip(of, clash, strict=True))
    about = {"event": events[keys[clash[0]]], "column": columns[of[0]].name, "others": others}
    raise fault("two-values", None, (), one=one, other=other, count=len(others) + 1, **about)


def per_event(
    columns: Sequence[EventColumn], values: npt.NDArray[Any], blank: object, events: Sequence[str]
) -> npt.NDArray[Any]:
    """Return the value of each event, (events,), `blank` where it has none; arguments and errors as `first_rows`."""
    return take(values, first_rows(columns, values, blank, events), blank)


# A time without a clock, and no Unix time.
_DAY = re.compile(r"^(?!\d{9})[^:]+$")


@dataclass(frozen=True)
class Facts:
    """What tables say about events: closing and resolution times, texts, groups and topics."""

    # closes, resolved_at: (events,); NaT where unknown
    closes: Times
    resolved_at: Times
    dated: bool  # whether there is a column of times of resolution
    texts: tuple[str, ...] | None  # (events,); empty where blank
    # groups, topics: (events,); "" where blank
    groups: npt.NDArray[np.str_] | None
    topics: npt.NDArray[np.str_] | None
    notes: tuple[Note, ...]

    @property
    def ends(self) -> Times:
        """End of each event, (events,): its closing or resolution time, the earlier; NaT if neither is known."""
        return np.fmin(self.closes, self.resolved_at)

    def latest(self, long_rows: LongRows) -> Times | None:
        """Time of each event: of its resolution, else closing, else last forecast; None if no time is known."""
        stamps = np.full(len(self.closes), np.iinfo(np.int64).min)
        if long_rows.time is not None:
            np.maximum.at(stamps, long_rows.event, long_rows.time.astype(np.int64))
        # The smallest integer is NaT.
        times = stamps.astype("datetime64[us]")
        for known in (self.closes, self.resolved_at):
            times = np.where(np.isnat(known), times, known)
        return None if np.isnat(times).all() else times

    def asked(self, as_of: np.datetime64 | None, outcomes: Index, ahead: np.timedelta64 | None = None) -> Times | None:
        """Return the time at which each event's answer is wanted: its end or `as_of`, the earlier; None if unknown.

        `ahead` is --horizon: the time is so long before the end. Of open events (outcome < 0), it is `as_of`.
        """
        ends = self.ends if ahead is None else self.ends - ahead
        # An open event may close long after it is answered.
        limit = np.where(outcomes < 0, np.datetime64("NaT", "us"), ends)
        ends = limit if as_of is None else np.fmin(ends, as_of)
        return None if np.isnat(ends).all() else ends

    @property
    def settled(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the events whose closing or resolution time is known, (events,); None if no such time is known."""
        known = np.asarray(~np.isnat(self.ends))
        return known if known.any() else None


@dataclass(frozen=True)
class Spans:
    """First and last time by what happens, such as "events close"; spans of parts of a table can be added."""

    ends: Mapping[str, tuple[str, str]]

    def __str__(self) -> str:
        return "; ".join(
            f"{what} {first}{f' to {last}' * (last != first)}" for what, (first, last) in self.ends.items()
        )

    def __add__(self, other: Spans) -> Spans:
        ends = {what: [*self.ends.get(what, ()), *other.ends.get(what, ())] for what in {**self.ends, **other.ends}}
        return Spans({what: (min(times), max(times)) for what, times in ends.items()})


def time_notes(long_rows: LongRows, facts: Facts) -> list[Note]:
    """Return the note on the first and last times of forecasts, closings and resolutions; empty without times."""
    kinds = [("forecasts made", long_rows.time), ("events close", facts.closes), ("resolved", facts.resolved_at)]
    spans = {what: span(times) for what, times in kinds if times is not None}
    known = Spans({what: ends for what, ends in spans.items() if ends is not None})
    return [finding("times", spans=known)] if known.ends else []


def read_facts(columns: Callable[[str], Sequence[EventColumn]], rows: LongRows, reading: Reading) -> Facts:
    """Return the facts on all events; `columns(role)` has the columns with a role, such as topic, of both tables."""
    texts, notes = _texts(columns(TEXT), rows.events)
    closes, closing = _ends_of("closes", columns("closes"), rows, reading)
    resolved, resolving = _ends_of("resolved_at", columns("resolved_at"), rows, reading)
    what = [word for word, ended in (("close", closing), ("are resolved", resolving)) if ended]
    notes += [finding("closing-days", what=" and ".join(what))] if what else []
    groups, topics = (_labels(columns(role), rows.events) for role in ("group", "topic"))
    return Facts(closes, resolved, bool(columns("resolved_at")), texts, groups, topics, tuple(notes))


def _ends_of(role: str, columns: Sequence[EventColumn], rows: LongRows, reading: Reading) -> tuple[Times, bool]:
    """Each event's time of `role` (closes or resolved_at), (events,), and whether dates were read as ends of days."""
    clocked = rows.time is not None and not midnights(rows.time).all()
    found = np.full(len(rows.events), "NaT", dtype="datetime64[us]")
    ended = False
    # What a table of outcomes says comes first.
    for each in reversed(columns):
        values = reading.column_times(each.table, each.column, role)
        days = each.words.expand(np.array([bool(_DAY.search(word)) for word in each.words.values], dtype=bool), False)
        if clocked or not (days | np.isnat(values)).all():
            days &= midnights(values) & ~np.isnat(values)
            ended |= bool(days.any())
            values = np.where(days, last_moments(values), values)
        values = per_event([each], values, "NaT", rows.events)
        found = np.where(np.isnat(found), values, found)
    return found, ended


def _labels(columns: Sequence[EventColumn], events: Sequence[str]) -> npt.NDArray[np.str_] | None:
    """Label of each event, (events,), "" where blank, from the first of `columns`; None if there are none."""
    for each in columns:
        labels = each.words.expand(np.array([*each.words.values, ""], dtype=np.str_)[:-1], "")
        return per_event([each], labels, "", events)
    return None


def _texts(columns: Sequence[EventColumn], events: Sequence[str]) -> tuple[tuple[str, ...] | None, list[Note]]:
    """Text of each event, the first if rows differ, and a note on each table with differences; None without texts."""
    found, notes = [""] * len(events), list[Note]()
    for each in columns:
        codes, texts = each.words.codes, [*each.words.values, ""]
        first, clash = one_per_key(codes, codes >= 0, each.row_events, len(events))
        own = [texts[code] for code in take(codes, first, BLANK).tolist()]
        found = [one or other for one, other in zip(found, own, strict=True)]
        if clash is not None:
            notes.append(finding("texts", column=each.name, event=events[each.row_events[clash[1]]]))
    return (tuple(found) if any(found) else None), notes


def prior_of_events(
    layout: Layout,
    melted: Melted,
    row_events: Index,
    classes: tuple[object, ...],
    priors: Mapping[int, Array],
    reading: Reading,
    options: EventOptions | None,
) -> Array | None:
    """Return the prior of each event, (events,) or (events, K), from columns of priors; None if there are none.

    Priors of K classes are in one column for each class, or in one column with a row for each class.
    """
    long_rows, column, rows = melted.long_rows, layout.roles.get("prior"), melted.long_rows.table.rows
    matcher, size = Matcher(melted.written), len(melted.written)
    labels = {matcher.find(label): i for label, i in layout.priors.items()}
    if column is not None and layout.long and long_rows.classes:
        parts = [(column, melted.row_labels)]
    elif labels and {*labels} == {*range(size)}:
        parts = [(i, np.full(rows, label)) for label, i in labels.items()]
    elif labels or (column is not None and len(classes) > 2):
        wanted = [f"prior:{label}" for label in melted.written]
        raise fault("priors-by-class", Place(long_rows.table.name), wanted=wanted)
    elif column is None:
        return None
    else:
        parts, size = [(column, np.zeros(rows, dtype=np.intp))], 1
    values, label = (np.concatenate(each) for each in zip(*((priors[i], of) for i, of in parts), strict=True))
    columns = [
        EventColumn.of(long_rows.table, i, np.where((row_events >= 0) & (of >= 0), row_events * np.intp(size) + of, -1))
        for i, of in parts
    ]
    names = long_rows.events if size == 1 else [event for event in long_rows.events for _ in range(size)]
    first = first_rows(columns, values, np.nan, names)
    if size == 1:
        return take(values, first, np.nan)
    cells = first[first >= 0]
    written = replace(
        long_rows,
        experts=("the prior column",),
        event=np.flatnonzero(first >= 0) // size,
        expert=np.zeros(len(cells), dtype=np.intp),
        label=label[cells],
        value=values[cells],
        rows=cells % rows,
        column=np.array([i for i, _ in parts], dtype=np.intp)[cells // rows],
        time=None,
        expires=None,
    )
    options = options or EventOptions.shared(melted.written, classes, len(long_rows.events))
    folded, probabilities, _ = fold_rows(written, options, reading.half_units)
    prior = np.full((len(long_rows.events), probabilities.shape[1]), np.nan)
    prior[folded.event] = probabilities
    return prior if probabilities.shape[1] > 2 else prior[:, 1]


def read_priors(table: Table, column: int, reading: Reading) -> Array:
    """Return a column of prior probabilities, (rows,), NaN where blank; raise if one is 0 or 1."""
    plain = reading.numbers(table, [column])[0]
    written = reading.written(table, column, plain)
    if written is not None:
        check_prior(table, column, written)
    values = reading.probabilities(table, column, plain)
    if reading.rules.percent and table.names[column] in reading.log.tiny:
        raise tiny_column(table, column, by_name=False)
    certain = (values == 0) | (values == 1)
    if certain.any():
        row = int(certain.argmax())
        raise cell_fault("certain-prior", table, row, column, prior=float(values[row]))
    return values


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
    """Return what a table of outcomes says to the choice of columns: headers and, if found, its events and outcomes."""
    try:
        roles = _roles(table, request.keys, names)
    except LayoutError:
        return Beside(set(table.names))
    happened = {word.lower() for word in table.words(roles["outcome"]).values}
    return Beside(set(table.names), set(table.words(roles["event"]).values), happened - request.no_outcome.every)


def _unused(table: Table, roles: Mapping[str, int]) -> list[Note]:
    """Note on columns of `table` without a role, and which of them may be times of resolution; empty if none is."""
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
    """Positions of columns that may play `role`, by header; copies of the first of them are left out."""
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
