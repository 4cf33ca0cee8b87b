"""A file inside the engine as a table: its columns as numbers, words and times, and where its rows stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import Note
from opinionpool.tables.coded import Different, spellings, stretches
from opinionpool.tables.engine import (
    SPACE,
    engine,
    literal,
    readable,
)
from opinionpool.tables.faults import lines_of
from opinionpool.tables.frames import Numbers, Words, encode, tidied
from opinionpool.tables.roles import BETWEEN
from opinionpool.tables.sources import FileSource
from opinionpool.text import APOSTROPHE, without_apostrophe

if TYPE_CHECKING:
    import duckdb

# Rows from which on the engine finds the words of a column, and reads times of this form.
_MANY = 20_000
_ISO = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?Z?)?"
_WHOLE = ("VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMERIC = (*_WHOLE, "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True)
class FileTable:
    """A file inside the engine, or some rows of it that follow each other; see `opinionpool.tables.frames.Table`."""

    source: FileSource
    connection: duckdb.DuckDBPyConnection
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int
    first: int = 0  # rows before these
    part: bool = False  # whether there are others
    copied: bool = True  # whether the engine has the rows in a table of its own, and does not read the file again
    moved: bool = False  # whether rows are not those of the file in its order, their places in it kept beside them
    keys: tuple[tuple[int, ...], ...] = ()  # columns beyond those of the file: each is several of them together
    # files that hold the rows, and where in the table each begins, if there are several
    pieces: tuple[tuple[FileSource, int], ...] = ()
    # all the words of some columns, of which a part has some
    known: Mapping[int, Sequence[str]] = field(default_factory=dict)
    different: Mapping[int, Different] = field(default_factory=dict)
    hashes: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    seen: dict[int, Words] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file, as the user called it."""
        return self.source.name

    @property
    def notes(self) -> tuple[Note, ...]:
        """How the file was read."""
        return self.source.notes

    def numbers(self, columns: Sequence[int], missing: frozenset[str]) -> list[Numbers | None]:
        """Columns as plain numbers; None for a column with a cell that is neither that nor among `missing`."""
        found: dict[int, Numbers | None] = {}
        own = [i for i in columns if i < len(self.types)]
        able = [i for i in own if self.types[i].removeprefix("U").startswith(_NUMERIC) and "[" not in self.types[i]]
        words = f"[{', '.join(map(literal, sorted(missing)))}]"
        # The time to plan a query grows with the square of what it selects.
        for start in range(0, len(able), 32):
            some = able[start : start + 32]
            if self.rows > _MANY:
                found |= self._only_numbers([i for i in some if self.is_text(i)])
                some = [i for i in some if i not in found]
            if not some:
                continue
            query = ", ".join(f"{_number(i, words if self.is_text(i) else None)} AS c{i}" for i in some)
            fetched = self.select(query)
            for i in some:
                found[i] = _distinguished(np.ma.filled(fetched[f"c{i}"], np.nan))
        return [found.get(i) for i in columns]

    def _only_numbers(self, columns: Sequence[int]) -> dict[int, Numbers | None]:
        """Columns of text that hold finite numbers, blanks and nothing else, which is quick to tell."""
        if not columns:
            return {}
        cell = "CASE WHEN contains(c{0}, '_') THEN NULL ELSE c{0} END"
        blanks = self.select(", ".join(f"count(*) - count(c{i}) AS c{i}" for i in columns))
        fetched = self.select(", ".join(f"TRY_CAST({cell.format(i)} AS DOUBLE) AS c{i}" for i in columns))
        found: dict[int, Numbers | None] = {}
        for i in columns:
            values = np.ma.asarray(fetched[f"c{i}"])
            # A blank cell is no number, so those that are none are the blank ones if they are as many.
            if np.ma.getmaskarray(values).sum() == blanks[f"c{i}"][0] and np.isfinite(values.compressed()).all():
                found[i] = Numbers(np.asarray(values.filled(np.nan)))
        return found

    def words(self, column: int) -> Words:
        """A column as text; whole numbers without a decimal point, so that ids look as they did."""
        if column not in self.seen:
            self.seen[column] = self._fetch(column)
        return self.seen[column]

    def _fetch(self, column: int) -> Words:
        if self.rows > _MANY:
            words = self._found(column)
        else:
            words = encode(self.select(f"{self.text(column)} AS c")["c"].tolist())
        return words if column not in self.known else words.among(self.known[column])

    def _found(self, column: int) -> Words:
        """A column of many rows as text."""
        lengths = None
        with readable(self.source):
            together = None if self.part else stretches(self.connection, *self._cells(column), self.rows)
            if together is not None:
                found, place, lengths = together
            else:
                hashes = self._hashes(column) if self.different else None
                found, place = spellings(
                    self.connection, *self._cells(column), self._which, self.different.get(column), hashes
                )
        csv = self.source.format == "csv" and column < len(self.types)
        if csv and "'" in {word[:1] for word in found if word}:
            # The engine sees them all as they stand: cheaper for each word than for each cell.
            bare = [None if word is None else without_apostrophe(word) for word in found]
            found = list(dict.fromkeys(bare))
            number = {word: i for i, word in enumerate(found)}
            place = np.array([number[word] for word in bare], dtype=np.intp)[place]
        return tidied(found, place, lengths)

    def _cells(self, column: int) -> tuple[str, str]:
        """What to select for the cells of a column, and for their text; of CSV, as it stands."""
        own = column < len(self.types)
        # Different numbers with a fraction may be one text.
        cell = f"c{column}" if own and self.types[column].removeprefix("U").startswith(_WHOLE) else self.text(column)
        return cell, cell if self.source.format == "csv" and own else self.text(column)

    def _hashes(self, column: int) -> npt.NDArray[np.uint64]:
        """Of the cells of a column of a part; those of others come with them, which takes no longer."""
        if column not in self.hashes:
            wanted = {column, *self.different}
            query = ", ".join(f"hash({self._cells(each)[0]}) AS h{each}" for each in wanted)
            found = self.select(query)
            self.hashes.update({each: np.asarray(found[f"h{each}"]) for each in wanted})
        return self.hashes.pop(column)

    def with_different(self, columns: Sequence[int]) -> FileTable:
        """The table with what its parts need not find again: the different cells of some columns."""
        found = {column: Different.of(self.connection, *self._cells(column)) for column in columns}
        return replace(self, different=found)

    def iso_times(self, column: int) -> npt.NDArray[np.datetime64] | None:
        """A column as times in UTC, if each cell is blank or a date or time in UTC, year first; else None."""
        if column >= len(self.types) or self.types[column] != "VARCHAR" or self.rows < _MANY:
            return None
        cell = f"trim(c{column})"
        few = self.select(f"approx_count_distinct(c{column}) AS n")["n"][0] < self.rows / 8
        if few:
            # Each different word is read once then.
            return None
        able = self.select(f"bool_and({cell} = '' OR regexp_full_match({cell}, '{_ISO}')) AS able")["able"]
        if not np.ma.filled(able, True)[0]:
            return None
        try:
            times = self._select(f"CAST(nullif(rtrim({cell}, 'Z'), '') AS TIMESTAMP) AS c")["c"]
        except engine().Error:
            return None
        return np.asarray(np.ma.filled(times, np.datetime64("NaT")), dtype="datetime64[us]")

    def select(self, what: str) -> dict[str, npt.NDArray[Any]]:
        """Columns that are computed from those of these rows.

        Raises
        ------
        TableError
            If the file turns out to be damaged.
        """
        with readable(self.source):
            return self._select(what)

    def _select(self, what: str) -> dict[str, npt.NDArray[Any]]:
        some = f" WHERE {self._which}" if self.part else ""
        found: dict[str, npt.NDArray[Any]] = self.connection.execute(f"SELECT {what} FROM t{some}").fetchnumpy()
        return found

    @property
    def _which(self) -> str:
        """Which rows these are, as a condition; empty for all."""
        return f"rowid >= {self.first} AND rowid < {self.first + self.rows}" if self.part else ""

    def text(self, column: int) -> str:
        """What to select for a column as text."""
        if column >= len(self.types):
            parts = [f"trim({self.text(part)}, {SPACE})" for part in self.keys[column - len(self.types)]]
            blank = " OR ".join(f"coalesce({part}, '') = ''" for part in parts)
            return f"CASE WHEN {blank} THEN NULL ELSE concat_ws({literal(BETWEEN)}, {', '.join(parts)}) END"
        cell = f"c{column}"
        if self.source.format == "csv":
            formula = f"{cell}[1] = '''' AND regexp_matches({cell}, '{APOSTROPHE}')"
            cell = f"CASE WHEN {formula} THEN {cell}[2:] ELSE {cell} END"
        elif self.types[column] in {"DOUBLE", "FLOAT"}:
            cell = f"CASE WHEN isnan({cell}) THEN NULL ELSE regexp_replace({cell}::VARCHAR, '\\.0$', '') END"
        return f"CAST({cell} AS VARCHAR)"

    def changed(self, query: str, parameters: object = None) -> None:
        """Put what a query makes of the rows in their place."""
        self.connection.execute(f"CREATE TABLE s AS {query}", parameters)
        self.connection.execute(f"DROP {'TABLE' if self.copied else 'VIEW'} t; ALTER TABLE s RENAME TO t")

    def rows_from(self, first: int, rows: int, known: Mapping[int, Sequence[str]] | None = None) -> FileTable:
        """Some rows of the whole, to be used in a thread of its own."""
        return replace(
            self, connection=self.connection.cursor(), rows=rows, first=first, part=True, known=known or {}, seen={},
            hashes={},
        )  # fmt: skip

    def looks(self, spans: Sequence[tuple[int, int]]) -> list[FileTable]:
        """Some rows of the whole, the first and how many, for many questions about few rows: they are read once."""
        parts = [self.rows_from(first, rows) for first, rows in spans]
        if self.copied:
            return parts
        # Before the file, the name means a table that only this cursor has.
        cursor = self.connection.cursor()
        which = " OR ".join(f"({part._which})" for part in parts)
        with readable(self.source):
            cursor.execute(f"CREATE TEMP TABLE t AS SELECT * FROM memory.main.t WHERE {which}")
        return [replace(part, connection=cursor) for part in parts]

    def with_key(self, columns: Sequence[int]) -> FileTable:
        """The table with one more column: several columns together."""
        name = BETWEEN.join(self.names[column] for column in columns)
        return replace(self, names=(*self.names, name), keys=(*self.keys, tuple(columns)), seen={})

    def is_text(self, column: int) -> bool:
        """Whether the cells of a column are text, whatever they look like, and not numbers of some type."""
        return column >= len(self.types) or self.types[column] == "VARCHAR"

    def place(self, rows: Sequence[int]) -> str:
        """Where rows stand, for people: the lines of a text file, the rows of another."""
        rows = [self.first + int(row) for row in rows]
        if self.moved:
            places = ", ".join(map(str, rows))
            query = f"SELECT rowid, place FROM t WHERE rowid IN ({places})"
            place = dict(self.connection.execute(query).fetchall())
            rows = [place[row] for row in rows]
        found = []
        starts = [start for _, start in self.pieces]
        for number, (source, start) in enumerate(self.pieces or ((self.source, 0),)):
            end = starts[number + 1] if number + 1 < len(starts) else None
            own = [row - start for row in rows if row >= start and (end is None or row < end)]
            if own:
                # Each row of a spreadsheet is a line of its copy.
                lines = source.format in {"csv", "json"}
                unit = "line" if lines and not source.sheet else "row"
                numbers = lines_of(source, own) if lines else [row + 1 for row in own]
                found.append(f"{source.name}, {unit}{'s' if len(own) > 1 else ''} {', '.join(map(str, numbers))}")
        return "; ".join(found)


def _number(column: int, missing: str | None) -> str:
    """SQL for a column of numbers; in text, -inf for a word that stands for no answer, inf for what is no number."""
    cell = f"c{column}"
    if missing is None:
        return f"CAST({cell} AS DOUBLE)"
    # The engine reads 1_000 as a number, too. It makes a join of a long IN, which may give rows in another order.
    value = f"CASE WHEN contains({cell}, '_') THEN NULL ELSE TRY_CAST({cell} AS DOUBLE) END"
    missing_case = f"WHEN list_contains({missing}, lower(trim({cell}))) THEN '-inf'"
    other = f"CASE WHEN {cell} IS NULL THEN 'nan' {missing_case} ELSE 'inf' END"
    return f"CASE WHEN isfinite({value}) OR isnan({value}) THEN {value} ELSE CAST({other} AS DOUBLE) END"


def _distinguished(values: Array) -> Numbers | None:
    if not np.isinf(values).any():
        return Numbers(values)
    if np.isposinf(values).any():
        return None
    words = np.isneginf(values)
    return Numbers(np.where(words, np.nan, values), int(words.sum()))
