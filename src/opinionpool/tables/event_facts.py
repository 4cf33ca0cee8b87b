"""Facts on events (priors, times, groups, topics, texts), and forecasts as known at a time, or at every moment."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, Note
from opinionpool.findings import Finding, Place, fault, finding
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.tables.classes import EventOptions, Matcher
from opinionpool.tables.engine import check_cells
from opinionpool.tables.layout import Layout
from opinionpool.tables.melt import CellReader, Melted
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.roles import TEXT
from opinionpool.tables.statements import Distinctions, LongRows, active_until, fold_rows
from opinionpool.tables.table import BLANK, Table, Words, cell_fault, place
from opinionpool.tables.times import Times, last_moments, midnights, span, span_text, time_text
from opinionpool.tables.units import check_prior, tiny_column
from opinionpool.text import shown


def one_per_key(
    values: npt.NDArray[Any], present: npt.NDArray[np.bool_], keys: Index, count: int
) -> tuple[Index, Index]:
    """Return each key's first row with a value, (count,), and the rows whose value differs from the first of their key.

    `present` marks rows with a value. `keys` are 0 to count - 1, -1 for no key; a key without a value has first row -1.
    Of rows with the same value and key that follow each other, only the first is looked at.

    >>> import numpy as np
    >>> values, keys = np.array([7, 8, 7, 9]), np.array([0, 1, 0, 1])
    >>> one_per_key(values, values > 0, keys, 3)
    (array([ 0,  1, -1]), array([3]))
    """
    new = (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])
    rows = np.append(0, np.flatnonzero(new) + 1)[: len(keys)]
    rows = rows[present[rows] & (keys[rows] >= 0)]
    first = np.full(count, -1)
    first[keys[rows][::-1]] = rows[::-1]
    return first, rows[values[first[keys[rows]]] != values[rows]]


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

    def at(self, row: int) -> str:
        """Return the word in `row` and where the row is, as text for messages."""
        return f"{shown(self.words.values[self.words.codes[row]])} ({place(self.table, row)})"


def joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return `arrays` end to end; a single one as it is, without a copy."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int8), *arrays])


def first_rows(columns: Sequence[EventColumn], values: npt.NDArray[Any], blank: object, events: Sequence[str]) -> Index:
    """Return each event's first row with a value, (events,), -1 for none; raise if two rows of one event differ.

    `values`, (rows of all columns,), are `blank`, NaN or NaT where the cell is blank.
    """
    keys = joined([each.row_events for each in columns])
    present = (values == values) & (values != np.array(blank, dtype=values.dtype))
    first, differing = one_per_key(values, present, keys, len(events))
    if not len(differing):
        return first
    event = int(keys[differing[0]])
    starts = np.cumsum([0, *(len(each.row_events) for each in columns)]).tolist()
    rows = [int(first[event]), int(differing[0])]
    of = [bisect_right(starts, row) - 1 for row in rows]
    one, other = (columns[i].at(row - starts[i]) for i, row in zip(of, rows, strict=True))
    others = [events[i] for i in np.unique(keys[differing]).tolist() if i != event]
    about = {"event": events[event], "column": columns[of[0]].name, "others": others}
    raise fault("two-values", None, (), one=one, other=other, count=len(others) + 1, **about)


def per_event(
    columns: Sequence[EventColumn], values: npt.NDArray[Any], blank: object, events: Sequence[str]
) -> npt.NDArray[Any]:
    """Return each event's value, (events,), `blank` where it has none; arguments and errors as for `first_rows`."""
    first = first_rows(columns, values, blank, events)
    return np.append(values, np.array([blank], dtype=values.dtype))[first]


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
        """Return the time at which each event's answer is wanted: its end or, if earlier, `as_of`; None if all unknown.

        With `ahead` (--horizon), the answer is wanted so long before the end. For unresolved events, it is `as_of`.
        """
        ends = self.ends if ahead is None else self.ends - ahead
        # An open event may close long after it is answered.
        limit = np.where(outcomes == UNRESOLVED, np.datetime64("NaT", "us"), ends)
        ends = limit if as_of is None else np.fmin(ends, as_of)
        return None if np.isnat(ends).all() else ends

    @property
    def settled(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the events whose closing or resolution time is known, (events,); None if no such time is known."""
        known = np.asarray(~np.isnat(self.ends))
        return known if known.any() else None


@dataclass(frozen=True)
class Spans:
    """First and last time of each thing that happens, such as "events close"; spans of a table's parts can be added."""

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


def read_facts(columns: Callable[[str], Sequence[EventColumn]], rows: LongRows, reader: CellReader) -> Facts:
    """Return the facts on all events; `columns(role)` has a role's columns in the tables of forecasts and outcomes."""
    texts, notes = _texts(columns(TEXT), rows.events)
    closes, closing = _ends_of("closes", columns("closes"), rows, reader)
    resolved, resolving = _ends_of("resolved_at", columns("resolved_at"), rows, reader)
    what = [word for word, ended in (("close", closing), ("are resolved", resolving)) if ended]
    notes += [finding("closing-days", what=" and ".join(what))] if what else []
    groups, topics = (_labels(columns(role), rows.events) for role in ("group", "topic"))
    return Facts(closes, resolved, bool(columns("resolved_at")), texts, groups, topics, tuple(notes))


def _ends_of(role: str, columns: Sequence[EventColumn], rows: LongRows, reader: CellReader) -> tuple[Times, bool]:
    """Each event's time of `role` (closes or resolved_at), (events,), and whether dates were read as ends of days."""
    clocked = rows.time is not None and not midnights(rows.time).all()
    found, ended = np.full(len(rows.events), "NaT", dtype="datetime64[us]"), False
    # What a table of outcomes says comes first.
    for each in reversed(columns):
        times = reader.times(each.table, each.column, role)
        days = each.words.expand(np.array([bool(_DAY.search(word)) for word in each.words.values], dtype=bool), False)
        if clocked or not (days | np.isnat(times)).all():
            days &= midnights(times) & ~np.isnat(times)
            ended |= bool(days.any())
            times = np.where(days, last_moments(times), times)
        found = np.where(np.isnat(found), per_event([each], times, "NaT", rows.events), found)
    return found, ended


def _labels(columns: Sequence[EventColumn], events: Sequence[str]) -> npt.NDArray[np.str_] | None:
    """Label of each event, (events,), "" where blank, from the first of `columns`; None if there are none."""
    for each in columns:
        words = np.array([*each.words.values, ""], dtype=np.str_)
        return words.take(per_event([each], each.words.codes, BLANK, events))
    return None


def _texts(columns: Sequence[EventColumn], events: Sequence[str]) -> tuple[tuple[str, ...] | None, list[Note]]:
    """Text of each event, the first if rows differ, and a note on each table with differences; None without texts."""
    found, notes = [""] * len(events), list[Note]()
    for each in columns:
        codes, texts = each.words.codes, [*each.words.values, ""]
        first, differing = one_per_key(codes, codes >= 0, each.row_events, len(events))
        found = [one or texts[code] for one, code in zip(found, np.append(codes, BLANK)[first].tolist(), strict=True)]
        if len(differing):
            notes.append(finding("texts", column=each.name, event=events[each.row_events[differing[0]]]))
    return (tuple(found) if any(found) else None), notes


def prior_of_events(
    layout: Layout, melted: Melted, row_events: Index, options: EventOptions, reader: CellReader
) -> Array | None:
    """Return the prior of each event, (events,) or (events, K), from columns of priors; None if there are none.

    Priors of K classes are in one column for each class, or in one column with a row for each class.
    """
    long_rows, column, written = melted.long_rows, layout.roles.get("prior"), melted.written
    table, size = long_rows.table, len(written)
    labels = {Matcher(written).find(label): i for label, i in layout.priors.items()}
    if column is not None and layout.long and long_rows.classes:
        columns = {column: melted.row_labels}
    elif labels and {*labels} == {*range(size)}:
        columns = {i: np.full(table.rows, label) for label, i in labels.items()}
    elif labels or (column is not None and len(options.classes) > 2):
        raise fault("priors-by-class", Place(table.name), wanted=[f"prior:{label}" for label in written])
    elif column is None:
        return None
    else:
        columns, size = {column: np.zeros(table.rows, dtype=np.intp)}, 1
    values = np.concatenate([_read_priors(table, i, reader) for i in columns])
    # Each class of an event has a prior of its own.
    keys = {
        i: np.where((row_events >= 0) & (of >= 0), row_events * np.intp(size) + of, -1) for i, of in columns.items()
    }
    names = [event for event in long_rows.events for _ in range(size)]
    first = first_rows([EventColumn.of(table, *each) for each in keys.items()], values, np.nan, names)
    if size == 1:
        return np.append(values, np.nan)[first]
    found = np.flatnonzero(first >= 0)
    place, row = np.divmod(first[found], table.rows)
    fields: dict[str, Any] = {"event": found // size, "label": found % size, "value": values[first[found]], "rows": row}
    fields |= {"expert": np.zeros_like(found), "column": np.array([*columns])[place]}
    priors = LongRows(table, long_rows.events, ("the prior column",), long_rows.classes, **fields)
    folded, probabilities, _ = fold_rows(priors, options, reader.half_units)
    prior = np.full((len(long_rows.events), probabilities.shape[1]), np.nan)
    prior[folded.event] = probabilities
    return prior if probabilities.shape[1] > 2 else prior[:, 1]


def _read_priors(table: Table, column: int, reader: CellReader) -> Array:
    """Return a column of prior probabilities, (rows,), NaN where blank; raise if one is 0 or 1."""
    plain = table.numbers([column], reader.rules.missing_words)[0]
    written = reader.written(table, column, plain)
    if written is not None:
        check_prior(table, column, written)
    values = reader.probabilities(table, column, plain)
    if reader.rules.percent and table.names[column] in reader.log.tiny:
        raise tiny_column(table, column, by_name=False)
    certain = (values == 0) | (values == 1)
    if certain.any():
        row = int(certain.argmax())
        raise cell_fault("certain-prior", table, row, column, prior=float(values[row]))
    return values


def in_time(long_rows: LongRows, request: ReadOptions, facts: Facts, by: Distinctions) -> tuple[LongRows, list[Note]]:
    """Return the forecasts made in time, and notes with the numbers of the others.

    Late are forecasts made after the event closed or was resolved, less than --horizon before that, or after --as-of;
    then also those without a time.
    """
    table, made, as_of, horizon = Place(long_rows.table.name), long_rows.time, request.as_of, request.horizon
    asked = ["--time-averaged"] * request.history + ["--horizon"] * (horizon is not None)
    if made is None and (as_of is not None or asked):
        raise by.wanted() if by.names else fault("no-times", table=table.file, option=[*asked, "--as-of"][0])
    if asked and np.isnat(facts.ends).all():
        raise fault("no-closing-times", table=table.file, option=asked[0])
    if made is None:
        return long_rows, []
    late = [
        (made > facts.closes[long_rows.event], finding("after-close", count=1)),
        (made > facts.resolved_at[long_rows.event], finding("after-resolution", count=1)),
    ]
    if as_of is not None:
        later = (made > as_of, finding("as-of", count=1, time=time_text(as_of)))
        late = [(np.isnat(made), finding("no-time", count=1)), later, *late]
    long_rows, notes = _without(long_rows, late)
    if horizon is None or long_rows.time is None:
        return long_rows, notes
    # A time that is unknown is before nothing.
    early = long_rows.time <= (facts.ends - horizon)[long_rows.event]
    if not early.any():
        raise fault("none-so-early", table, span=span_text(horizon))
    few = len(np.unique(long_rows.pair)) - len(np.unique(long_rows.pair[early]))
    notes += [finding("horizon", count=few, span=span_text(horizon))] if few else []
    return long_rows.select(early), notes


def drop_expired(long_rows: LongRows, as_of: np.datetime64 | None, ends: Times) -> tuple[LongRows, list[Note]]:
    """Forecasts that had not expired when their event ended or, if earlier, at `as_of`; and a note on the others."""
    if long_rows.expires is None:
        return long_rows, []
    until = ends if as_of is None else np.fmin(ends, as_of)
    return _without(long_rows, [(long_rows.expires < until[long_rows.event], finding("expired", count=1))])


def _without(long_rows: LongRows, masks: Sequence[tuple[Mask, Finding]]) -> tuple[LongRows, list[Note]]:
    """Return the rows that no mask marks, and each mask's note, with the number of forecasts that it left out."""
    kept, notes = np.ones(len(long_rows.value), dtype=bool), list[Note]()
    for mask, one in masks:
        out = kept & mask
        if out.any():
            count = len(np.unique(long_rows.pair[out])) if long_rows.classes else int(out.sum())
            notes.append(finding(one.code, **{**one.params, "count": count}))
            kept &= ~mask
    return (long_rows if kept.all() else long_rows.select(kept)), notes


def with_silence(forecasts: Forecasts, p: float) -> Forecasts:
    """Return a copy of `forecasts` in which each missing forecast is the probability `p`."""
    if len(forecasts.classes) > 2:
        raise ArgumentError("--silence is for events of two classes: who is silent says nothing of several")
    t, n = forecasts.shape
    check_cells("the table with --silence", t, n, t * n)

    def of_all(values: npt.NDArray[Any], missing: object) -> npt.NDArray[Any]:
        """Values of all T N possible forecasts, (T N,), by event and expert; `missing` where there is no forecast."""
        found = np.full((t, n), missing, dtype=values.dtype)
        found[forecasts.event_index, forecasts.expert_index] = values
        return found.ravel()

    return replace(
        forecasts,
        event_index=np.repeat(np.arange(t), n),
        expert_index=np.tile(np.arange(n), t),
        probabilities=of_all(forecasts.probabilities, p),
        made=None if forecasts.made is None else of_all(forecasts.made, "NaT"),
        notes=(*forecasts.notes, finding("silence", count=t * n - len(forecasts.event_index), p=p)),
    )


# Most probabilities over all intervals between changes.
MOST = 20_000_000


@dataclass(frozen=True, eq=False)
class ActiveForecasts:
    """Forecasts in force in S intervals; the intervals of an event lie between changes of the forecasts on it."""

    long_rows: LongRows  # one number for each expert, interval and class; the events are the intervals
    event: Index  # (S,); the event of each interval
    share: Array  # (S,); length of each interval, divided by the time from the event's first forecast to its end
    begin: Times  # (S,); start of each interval
    middle: Times  # (S,)


def active_rows(long_rows: LongRows, ends: Times) -> ActiveForecasts:
    """Return the forecasts in force in each interval, for the events whose end in `ends` is known."""
    assert long_rows.time is not None
    # A time that is unknown is before nothing.
    rows = long_rows.select(long_rows.time <= ends[long_rows.event])
    if not len(rows.value):
        raise fault("none-in-time", Place(long_rows.table.name))
    until = active_until(rows, ends)
    # A blank ends what stood before it, and is nothing itself.
    given = ~np.isnan(rows.value)
    rows, until = rows.select(given), until[given]
    assert rows.time is not None
    event, starts, stops, low, high = _intervals(rows.event, rows.time.astype(np.int64), until, ends.astype(np.int64))
    counts = high - low
    total = int(counts.sum())
    if total > MOST:
        raise fault("too-many-standing", Place(long_rows.table.name), total=total, most=MOST)
    spread = replace(
        rows.select(np.repeat(np.arange(len(counts)), counts)),
        event=np.arange(total) + np.repeat(low - np.cumsum(counts) + counts, counts),
        events=[str(number) for number in range(len(event))],
        expires=None,
    )
    length = (stops - starts).astype(np.float64)
    whole = np.bincount(event, weights=length, minlength=len(ends))[event]
    share = np.where(whole > 0, length / np.where(whole > 0, whole, 1.0), 1.0 / np.bincount(event)[event])
    begin, middle = (times.astype("datetime64[us]") for times in (starts, starts + (stops - starts) // 2))
    return ActiveForecasts(spread, event, share, begin, middle)


def _intervals(event: Index, begin: Index, until: Index, ends: Index) -> tuple[Index, Index, Index, Index, Index]:
    """Return S intervals between changes, and the first that each of M forecasts stands in and the one after its last.

    `event`, `begin` and `until`: (M,), of the forecasts; `ends`: of the events. Intervals have event, start and stop.
    """
    of, moments = np.tile(event, 2), np.concatenate([begin, until])
    order = np.lexsort((moments, of))
    of, moments = of[order], moments[order]
    opens = np.append(True, of[1:] != of[:-1])[: len(of)]
    new = opens | np.append(True, moments[1:] != moments[:-1])[: len(of)]
    of, starts, opens = of[new], moments[new], opens[new]
    stops = np.where(np.append(opens[1:], True), ends[of], np.minimum(np.append(starts[1:], 0), ends[of]))
    # What changes at the very end lasts no time, unless there was nothing before.
    kept = (starts < stops) | (opens & (starts == stops))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.cumsum(new) - 1
    low, high = np.append(0, np.cumsum(kept))[place].reshape(2, -1)
    return of[kept], starts[kept], stops[kept], low, high
