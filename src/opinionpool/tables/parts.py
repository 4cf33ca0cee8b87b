"""Tables too large for memory, read in parts of a bounded number of rows, which do not split events.

The reading engine keeps the table on disk. What is decided for a whole table (its layout, experts and classes, how
numbers are written) is decided first; then each part is read as a small table would be, by the same code, and several
at once by as many threads as there are processors.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opinionpool.arrays import Index
from opinionpool.blocks import in_order
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import added_up, fault, finding
from opinionpool.forecasts import Forecasts
from opinionpool.tables.engine import SPACE, Progress, is_large
from opinionpool.tables.event_facts import EventColumn
from opinionpool.tables.layout import Layout
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.outcomes import as_asked, settle
from opinionpool.tables.parse import TableReader
from opinionpool.tables.read import open_tables
from opinionpool.tables.remarks import ForecastCounts
from opinionpool.tables.table import BLANK, Table, Words, place

# Number of events that would fill the memory; most events in a byte of text; first bytes that are looked at.
MANY, EVENT, HEAD = 2_000_000, 1 / 8, 1 << 16
# Approximate number of forecasts of a part; most runs of rows with one event whose hashes are compared in memory.
CELLS, RUNS = 1 << 17, 1 << 23


def wants_parts(source: object, options: ReadOptions) -> bool:
    """Whether `source` is a large file, or begins with so many events that all of them would fill the memory."""
    if is_large(source) or not isinstance(source, str | os.PathLike) or source == "-" or not os.path.isfile(source):
        return is_large(source)
    size = os.path.getsize(source)
    with open(source, "rb") as file:
        head = file.read(HEAD).rpartition(b"\n")[0]
    if size * EVENT < MANY or b"\0" in head:
        return False
    try:
        with open_tables(io.BytesIO(head), None, options) as (table, _):
            layout = TableReader(table, None, options).layout
            events = len(table.words(layout.roles["event"]).values) if "event" in layout.roles else table.rows
    except OpinionPoolError:
        return False
    return events * size > MANY * len(head)


@dataclass(eq=False)
class Parts:
    """Forecasts of a table, as a whole or in parts (runs of rows); they can be read any number of times."""

    table: Table
    request: ReadOptions
    only: Forecasts | None = None  # all forecasts, of a table that is read as a whole
    spans: Sequence[tuple[int, int]] = ()  # first row and number of rows of each part
    shared: Mapping[str, Any] = field(default_factory=dict)  # profile, layout and classes, with which parts are read
    known: Mapping[int, Sequence[str]] = field(default_factory=dict)  # distinct words of the table in some columns
    more: tuple[Note, ...] = ()  # on the whole, beside those that the forecasts of a part have
    counts: ForecastCounts | None = None  # of the parts read so far
    read: list[Note] = field(default_factory=list)  # notes on the parts read so far

    def forecasts(self, threads: int | None = None) -> Iterator[Forecasts]:
        """Yield the forecasts of each part, in the order of the parts."""
        if self.only is not None:
            yield self.only
            return
        percent: dict[int, tuple[bool, int]] = {}  # whether a column is in per cent, and a row that says so
        self.counts, self.read = None, []
        for (first, _), reader in zip(self.spans, in_order(self._read, self.spans, threads), strict=True):
            for column, own in reader.cell_reader.percent.items():
                before, where = percent.setdefault(column, (own, first))
                if before != own:
                    both = {"one": place(self.table, where), "other": place(self.table, first)}
                    raise fault("units-of-parts", None, (), name=self.table.names[column], **both)
            self.counts = reader.counts if self.counts is None else self.counts + reader.counts
            self.read += reader.forecasts.notes
            yield reader.forecasts
        # Whether all numbers of an expert are fractions shows when all have been read.
        self._counted()

    def _counted(self) -> list[Note]:
        return [] if self.counts is None else self.counts.notes(self.request.rules)

    def notes(self, events: int, cells: int) -> tuple[Note, ...]:
        """Notes on the parts read; `events` and `cells` are the numbers of events and forecasts in them."""
        if self.only is not None:
            return self.only.notes
        return (*added_up(self.read, unresolved=events, normalised=cells), *self._counted(), *self.more)

    def _read(self, span: tuple[int, int]) -> TableReader:
        part = self.table.rows_from(*span, self.known)
        reader = TableReader(part, None, self.request, **self.shared)
        try:
            reader.forecasts, reader.counts  # noqa: B018 - both are kept
        finally:
            part.connection.close()
        return reader


@contextmanager
def open_parts(
    source: object, outcomes: object, request: ReadOptions, progress: Progress | None = None, divided: bool = True
) -> Iterator[Parts]:
    """Context with the forecasts of a table, which is read in parts if `divided`, else as a whole.

    A table with a table of outcomes or a class column, or with an option that needs all rows, is read as a whole too.
    """
    divided &= outcomes is None
    with ExitStack() as stack:
        table, other = stack.enter_context(open_tables(source, outcomes, request, progress, on_disk=divided))
        reader = TableReader(table, other, request)
        if divided and _is_divisible(reader.request, reader.layout):
            yield _divided(reader)
            return
        parts = Parts(table, request, reader.forecasts)
        del reader
        stack.close()
        yield parts


def _is_divisible(request: ReadOptions, layout: Layout) -> bool:
    """Whether each event of a table can be read without the rows of other events."""
    whole = request.options == "event" or request.merge_names or request.silence is not None or layout.verdicts
    return not whole and {"class", "verdict"}.isdisjoint(layout.roles) and layout.long != layout.wide


def _divided(reader: TableReader) -> Parts:
    """Return the parts of the table of `reader`, and what is decided for all of them: classes, experts, dates."""
    table, layout, roles = reader.table, reader.layout, reader.layout.roles
    request = _with_dates(table, reader.request, layout)
    words = {role: _tally(table, roles[role]) for role in ("expert", "outcome") if role in roles}
    known = {roles["expert"]: words["expert"].values} if "expert" in words else {}
    observed = [words["outcome"]] if "outcome" in words else []
    columns = [EventColumn(table, roles["outcome"], of, np.full(len(of.codes), BLANK)) for of in observed]
    written = [*dict.fromkeys(label for _, label in layout.cells if label is not None)]
    settled = settle(as_asked(columns, request), [], written, request, in_order=not layout.long)
    more = [note for note in settled.notes if note.code == "void-absent"]
    rows = max(1, CELLS // max(len(layout.forecasts), 1))
    starts, grouped = [*range(0, table.rows, rows)], True
    if "event" in roles:
        starts, grouped = _starts(table, roles["event"], rows)
    if not grouped:
        table, more = _sorted(table, roles["event"]), [*more, finding("sorted")]
        starts, _ = _starts(table, roles["event"], rows)
    spans = [(start, end - start) for start, end in zip(starts, [*starts[1:], table.rows], strict=True)]
    shared = {"profile": reader.profile, "layout": layout, "classes": settled.classes}
    return Parts(table, request, None, spans, shared, known, tuple(more))


def _with_dates(table: Table, request: ReadOptions, layout: Layout) -> ReadOptions:
    """Return the options with the order of day and month (`dates`) that the whole table shows: parts might differ."""
    columns = [layout.roles[role] for role in ("time", "closes", "resolved_at", "expires") if role in layout.roles]
    for column in columns if request.dates is None else ():
        cell = f"trim({table.text(column)})"
        number = f"max(TRY_CAST(regexp_extract({cell}, '^(\\d{{1,2}})[-/.](\\d{{1,2}})[-/.]', %d) AS INTEGER))"
        first, second = table.connection.execute(f"SELECT {number % 1}, {number % 2} FROM t").fetchone() or (None, None)
        if first is not None and second is not None and max(first, second) > 12:
            return replace(request, dates="dmy" if first > 12 else "mdy")
    return request


@dataclass(frozen=True, eq=False)
class _Tally(Words):
    """Distinct words of a column of a large table, each with its first row and its number of rows."""

    firsts: Index = field(default_factory=lambda: np.empty(0, np.intp))
    tallies: Index = field(default_factory=lambda: np.empty(0, np.intp))

    def rows(self, code: int) -> Index:
        """Position of the first row with the word of the given `code`, (1,)."""
        return self.firsts[super().rows(code)[:1]]

    @property
    def counts(self) -> Index:
        """Number of rows with each word, (words,)."""
        return np.bincount(self.codes, self.tallies, len(self.values)).astype(np.intp)


def _tally(table: Table, column: int) -> _Tally:
    query = f"SELECT {table.text(column)} AS c, count(*) AS n, min(rowid) AS r FROM t GROUP BY 1 ORDER BY 3"
    found: dict[str, list[int]] = {}
    for cell, count, first in table.connection.execute(query).fetchall():
        if word := (cell or "").strip():
            found.setdefault(word, [first, 0])[1] += count
    return _Tally(np.arange(len(found)), [*found], 0, *np.array([*found.values()], np.intp).reshape(-1, 2).T)


def _starts(table: Table, column: int, rows: int) -> tuple[list[int], bool]:
    """First rows of parts of about `rows` rows, which split no run of rows with one event; whether each event has one.

    `column` holds the events.
    """
    cells = f"SELECT rowid AS r, {_event_hash(table, column)} AS event FROM t"
    runs = f"(SELECT * FROM (SELECT *, event IS DISTINCT FROM lag(event) OVER () AS new FROM ({cells})) WHERE new)"
    query = f"SELECT min(r), count(*) FROM {runs} GROUP BY r // {rows} ORDER BY 1"
    starts, counts = zip(*table.connection.execute(query).fetchall(), strict=True)
    if sum(counts) > RUNS:
        found = table.connection.execute(f"SELECT count(DISTINCT event) FROM {runs}").fetchone()
        return list(starts), found == (sum(counts),)
    # Sorting numbers takes less time and memory than a table of them.
    events = np.sort(table.connection.execute(f"SELECT event FROM {runs}").fetchnumpy()["event"])
    return list(starts), bool((events[1:] != events[:-1]).all())


def _event_hash(table: Table, column: int) -> str:
    """SQL expression for a hash of each row's event; cells are trimmed only if the column has white space."""
    if column < len(table.types) and table.is_text(column):
        cell = f"c{column}"
        ends = f"SELECT min(ascii({cell})), min(ascii({cell}[-1])) FROM t"
        first, last = table.connection.execute(ends).fetchone() or (None, None)
        # Neither white space, nor an apostrophe before what a spreadsheet takes for a formula.
        if first is not None and first > ord("'") and last > ord(" "):
            return f"hash({cell})"
    return f"hash(trim({table.text(column)}, {SPACE}))"


def _sorted(table: Table, column: int) -> Table:
    """Return the table with each event's rows together, events in the order of their first rows."""
    name = f"trim({table.text(column)}, {SPACE})"
    return table.rearranged(
        f"JOIN (SELECT {name} AS event, min(rowid) AS first FROM t GROUP BY 1) AS g "
        f"ON {name} IS NOT DISTINCT FROM g.event ORDER BY g.first, t.rowid"
    )
