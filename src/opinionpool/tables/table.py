"""A table in the engine (DuckDB): its columns as numbers, words or times, and the places of its rows in the file.

Whether from text, Parquet, JSON, a spreadsheet or a data frame, a table is columns c0, c1, ... of a relation t.
Frames, Arrow tables, dicts of columns and arrays become tables here, in the one place that knows narwhals.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, has_boolean, is_blank, unmasked
from opinionpool.blocks import blocks
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault
from opinionpool.tables.engine import SPACE, FileSource, connect, literal, number, readable
from opinionpool.tables.files import lines_of
from opinionpool.tables.roles import BETWEEN
from opinionpool.text import APOSTROPHE, without_apostrophe

if TYPE_CHECKING:
    import duckdb


BLANK = -1
# Number of rows from which on the engine finds the distinct words of a column.
_MANY = 20_000
# Number of cells, at most, that are fetched as words in one query; largest number of 16 bits.
_FEW, _LOW = 1 << 18, (1 << 16) - 1
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMERIC = (*_WHOLE, "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True, eq=False)
class Words:
    """Column of text: its distinct cells ("words"), and for each row the position (code) of its word."""

    codes: Index  # (rows,); the position of each row's cell in `values`, -1 where blank; the smallest integer type
    values: list[str]  # the distinct cells in order of first appearance, trimmed
    trimmed: int = 0  # number of cells that had white space around them

    @cached_property
    def blank(self) -> bool:
        """Whether any cell is blank."""
        return bool(self.codes.min(initial=0) == BLANK)

    def rows(self, code: int) -> Index:
        """Return the positions of the rows that have the word at position `code` in `values`."""
        return np.flatnonzero(self.codes == code)

    @cached_property
    def counts(self) -> Index:
        """Number of rows with each word, (words,)."""
        found = np.zeros(len(self.values) + 1, np.intp)
        for cells in blocks(len(self.codes), 1):
            found += np.bincount(self.codes[cells] + 1, minlength=len(found))
        return found[1:]

    def texts(self) -> list[str | None]:
        """Return the cells, one for each row, as a list, None where blank."""
        words = [*self.values, None]
        return [words[code] for code in self.codes.tolist()]

    def rewritten(self, words: Sequence[str]) -> Words:
        """Return a copy with `words` in place of `values`; words that have become equal are merged."""
        return replace(self, values=list(words)).among(list(dict.fromkeys(words)))

    def among(self, values: Sequence[str]) -> Words:
        """Return a copy whose codes are positions in the list `values`, which has all words and perhaps more."""
        position = {word: i for i, word in enumerate(values)}
        found = np.array([position[word] for word in self.values], dtype=code_type(values))
        return replace(self, codes=self.expand(found, BLANK), values=list(values))

    def expand(self, values: npt.NDArray[Any], blank: object, rows: Index | None = None) -> npt.NDArray[Any]:
        """Return each row's value (or that of `rows`) from `values`, one for each distinct word; `blank` if blank."""
        codes = self.codes if rows is None else self.codes[rows]
        # Unlike `take`, this makes no copy of the codes as wide integers.
        return np.append(values, np.array([blank], dtype=values.dtype))[codes]


def code_type(words: Sized) -> np.dtype[Any]:
    """Smallest integer type that holds -1 and a position in `words`: of one, two or eight bytes."""
    return np.dtype(np.min_scalar_type(-len(words) - 2) if len(words) < 1 << 15 else np.intp)


class Numbers(NamedTuple):
    """Column of numbers, whose other cells are blank or words for no answer, such as n/a."""

    values: Array  # (rows,); finite; NaN where blank, or where a word stands for no answer
    words: int = 0  # number of cells with a word for no answer


@dataclass(frozen=True)
class Table:
    """Table in the engine (DuckDB), or consecutive rows of one; methods take a column's position."""

    source: FileSource
    connection: duckdb.DuckDBPyConnection
    names: tuple[str, ...]  # the columns' headers, trimmed; "" where there is none
    types: tuple[str, ...]
    rows: int
    first: int = 0  # number of rows of the whole table before these rows
    part: bool = False  # whether the whole table has other rows
    copied: bool = True  # whether the engine has a copy of the rows, and does not read the file again
    moved: bool = False  # whether rows were left out or sorted: a column `place` has their positions in the file
    keys: tuple[tuple[int, ...], ...] = ()  # columns added to the file's: each joins several of them to one key
    # files that hold the rows, and where in the table each begins, if there are several
    pieces: tuple[tuple[FileSource, int], ...] = ()
    # distinct words of the whole table in some columns, so that codes mean the same in all parts
    known: Mapping[int, Sequence[str]] = field(default_factory=dict)
    seen: dict[int, Words] = field(default_factory=dict)  # columns that were fetched as words

    @property
    def name(self) -> str:
        """Name of the file, as the user gave it."""
        return self.source.name

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on how the file was read."""
        return self.source.notes

    def numbers(self, columns: Sequence[int], missing: frozenset[str]) -> list[Numbers | None]:
        """Each of `columns` as numbers; None for one with a cell that is no number, not blank and not `missing`."""
        found = {i: _plain(self.seen[i], missing) for i in columns if i in self.seen and self.is_text(i)}
        own = [i for i in columns if i < len(self.types)]
        able = [i for i in own if i not in found and self._may_hold_numbers(i)]
        values = self.select(", ".join(f"{number(f'c{i}')} AS c{i}" for i in able)) if able else {}
        for i in able:
            column = np.asarray(np.ma.filled(values[f"c{i}"], np.nan))
            if self.is_text(i):
                beyond = ~np.isfinite(column)
                others = self._no_numbers(i) if beyond.any() else {}
                column[beyond] = np.nan
                found[i] = Numbers(column, sum(others.values())) if others.keys() <= missing else None
            else:
                found[i] = None if np.isinf(column).any() else Numbers(column)
        return [found.get(i) for i in columns]

    def _may_hold_numbers(self, column: int) -> bool:
        kind = self.types[column].removeprefix("U")
        return kind == "VARCHAR" or (kind.startswith(_NUMERIC) and "[" not in kind)

    def _no_numbers(self, column: int) -> dict[str, int]:
        """Number of each word of a text column that is no finite number, in lower case; at most 1000 words."""
        cell = f"c{column}"
        query = self._query(f"lower(trim({cell})) AS w", f"{cell} IS NOT NULL AND isfinite({number(cell)}) IS NOT TRUE")
        query = f"SELECT w, count(*) FROM ({query}) GROUP BY w LIMIT 1000"
        return dict(self.connection.execute(query).fetchall())

    def words(self, column: int) -> Words:
        """Return the column at position `column` as text; whole numbers have no decimal point, as ids need it."""
        if column not in self.seen:
            found = self._coded(column) if self.rows >= _MANY else None
            for i, words in ({column: found} if found else self._fetched(column)).items():
                self.seen.setdefault(i, words.among(self.known[i]) if i in self.known else words)
        return self.seen[column]

    def _coded(self, column: int) -> Words | None:
        """Column as words, with equal cells recognised by their hashes; None if two different ones have one hash."""
        rows = self._query(f"{self._cell(column)} AS c, rowid AS r")
        groups = "SELECT c, hash(c) AS h, min(r) AS first, max(r) AS last, count(*) AS n"
        with readable(self.source):
            found = self.connection.execute(f"{groups} FROM ({rows}) GROUP BY c ORDER BY first").fetchnumpy()
        cells, count = found["c"].tolist(), np.asarray(found["n"])
        if np.array_equal(found["last"] - found["first"] + 1, count):
            # Rows with one word follow each other.
            place: Index | None = np.arange(len(cells), dtype=code_type(cells)).repeat(count)
        else:
            place = self._places(f"hash({self._cell(column)})", np.asarray(found["h"]))
        return None if place is None else tidied(cells, place, self._is_csv(column))

    def _places(self, hashed: str, keys: npt.NDArray[np.uint64]) -> Index | None:
        """Position of each row's hash (in SQL: `hashed`) in `keys`, which has all; None if two keys are equal."""
        code = code_type(keys)
        for bits in range(0, 64, 16) if len(keys) <= _LOW else ():
            low = keys >> np.uint64(bits) & np.uint64(_LOW)
            if len(np.unique(low)) == len(keys):
                # The keys differ in these few bits, which are positions in a table.
                table = np.zeros(_LOW + 1, dtype=code)
                table[low] = np.arange(len(keys))
                rows = np.asarray(self.select(f"({hashed} >> {bits} & {_LOW})::USMALLINT AS h")["h"])
                return np.asarray(table[rows])
        order = np.argsort(keys)
        ordered = keys[order]
        if (ordered[1:] == ordered[:-1]).any():
            return None
        return order.astype(code).take(np.searchsorted(ordered, np.asarray(self.select(f"{hashed} AS h")["h"])))

    def _fetched(self, column: int) -> dict[int, Words]:
        """Return a column, and those beside it that are fetched in one query, as words."""
        size = max(1, _FEW // max(self.rows, 1))
        first = column // size * size
        columns = range(first, min(first + size, len(self.types))) if column < len(self.types) else [column]
        with readable(self.source):
            rows = self.connection.execute(self._query(", ".join(map(self._cell, columns)))).fetchall()
        cells = zip(columns, zip(*rows, strict=True), strict=True)
        return {i: encode(each, self._is_csv(i)) for i, each in cells}

    def select(self, what: str) -> dict[str, npt.NDArray[Any]]:
        """Return the columns that the SQL select list `what` computes for the table's rows, by name."""
        with readable(self.source):
            found: dict[str, npt.NDArray[Any]] = self.connection.execute(self._query(what)).fetchnumpy()
        return found

    def _query(self, what: str, *conditions: str) -> str:
        conditions = (*conditions, self._which) if self.part else conditions
        return f"SELECT {what} FROM t" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")

    @property
    def _which(self) -> str:
        """SQL condition that selects the rows of this part."""
        return f"rowid >= {self.first} AND rowid < {self.first + self.rows}"

    def _is_csv(self, column: int) -> bool:
        """Whether the column is from CSV, where an apostrophe before a cell says that it is no formula."""
        return self.source.format == "csv" and column < len(self.types)

    def _cell(self, column: int) -> str:
        """SQL for a column as text, in which CSV cells may still begin with the apostrophe before a formula."""
        return f"c{column}" if column < len(self.types) and self.is_text(column) else self.text(column)

    def text(self, column: int) -> str:
        """SQL for a column as text, less an apostrophe before formulas; a composite key has its columns joined."""
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

    def rearranged(self, which: str, parameters: object = None) -> Table:
        """Return the rows of the table that the SQL after ``FROM t`` (`which`) selects, in its order, in place of t."""
        columns = ", ".join(f"t.c{i}" for i in range(len(self.types)))
        place = "t.place" if self.moved else "t.rowid AS place"
        created = self.connection.execute(f"CREATE TABLE s AS SELECT {columns}, {place} FROM t {which}", parameters)
        rows = int((created.fetchone() or (0,))[0])
        self.connection.execute(f"DROP {'TABLE' if self.copied else 'VIEW'} t; ALTER TABLE s RENAME TO t")
        return replace(self, rows=rows, copied=True, moved=True, seen={})

    def rows_from(self, first: int, rows: int, known: Mapping[int, Sequence[str]] | None = None) -> Table:
        """Return the `rows` rows from row `first` as a table with its own connection; `known`: some columns' words."""
        cursor = self.connection.cursor()
        return replace(self, connection=cursor, rows=rows, first=first, part=True, known=known or {}, seen={})

    def looks(self, spans: Sequence[tuple[int, int]]) -> list[Table]:
        """Return tables of the rows in `spans` (first row, number of rows), which are read from the file just once."""
        parts = [self.rows_from(first, rows) for first, rows in spans]
        if self.copied:
            return parts
        # Before the file, the name means a table that only this cursor has.
        cursor = self.connection.cursor()
        which = " OR ".join(f"({part._which})" for part in parts)
        with readable(self.source):
            cursor.execute(f"CREATE TEMP TABLE t AS SELECT * FROM memory.main.t WHERE {which}")
        return [replace(part, connection=cursor) for part in parts]

    def with_key(self, columns: Sequence[int], name: str) -> Table:
        """Return a copy with one more column, called `name`: the key that `columns` form together."""
        return replace(self, names=(*self.names, name), keys=(*self.keys, tuple(columns)), seen={})

    def is_text(self, column: int) -> bool:
        """Return True if the column's type is text, even if its cells look like numbers."""
        return column >= len(self.types) or self.types[column] == "VARCHAR"

    def files(self) -> Words | None:
        """Return the file of each row (its name without folder and extension); None if there is one file only."""
        if len(self.pieces) < 2:
            return None
        names = [os.path.basename(source.name).partition(".")[0] for source, _ in self.pieces]
        if len(set(names)) < len(names):
            names = [source.name for source, _ in self.pieces]
        return Words(self._origins(np.arange(self.rows))[0], names)

    def place(self, rows: Sequence[int]) -> Place:
        """Return where `rows` are, for messages: lines of a text file, or row numbers of another."""
        piece, at = self._origins(np.asarray(rows, dtype=np.intp))
        found = []
        for i in np.unique(piece).tolist():
            source, own = self.pieces[i][0] if self.pieces else self.source, at[piece == i].tolist()
            # Each row of a spreadsheet is a line of its copy, and rows of a frame are numbered from 0.
            lines = source.format in {"csv", "json"}
            own = lines_of(source, own) if lines else [row + (source.format != "frame") for row in own]
            found.append(Place(source.name, tuple(own), "line" if lines and not source.sheet else "row"))
        return replace(found[0], others=tuple(found[1:]))

    def _origins(self, rows: Index) -> tuple[Index, Index]:
        """Position in `pieces` of the file that each of `rows` is from, 0 if there is one file, and its row there."""
        at = np.asarray(self.select("place")["place"])[rows] if self.moved else self.first + rows
        starts = np.array([start for _, start in self.pieces] or [0])
        piece = np.searchsorted(starts, at, side="right") - 1
        return piece, at - starts[piece]


def place(table: Table, *rows: int) -> str:
    """Return where `rows` are, as text: ``"forecasts.csv, line 7"``."""
    return str(table.place(rows))


def _plain(words: Words, missing: frozenset[str]) -> Numbers | None:
    """Column of words as numbers; None if a word is neither a finite number nor in `missing`."""
    values, other = np.full(len(words.values), np.nan), 0
    for i, word in enumerate(words.values):
        if word.lower() in missing:
            other += int(words.counts[i])
        elif _NUMBER.fullmatch(word) and math.isfinite(value := float(word)):
            values[i] = value
        else:
            return None
    return Numbers(words.expand(values, np.nan), other)


def encode(cells: Iterable[str | None], formulas: bool = False) -> Words:
    """Return `cells` as their distinct words, and for each cell the position of its word, -1 where blank.

    `formulas` is as for `tidied`.

    >>> encode(["b", None, "a ", "b", ""])
    Words(codes=array([ 0, -1,  1,  0, -1], dtype=int8), values=['b', 'a'], trimmed=1)
    """
    cells = list(cells)
    distinct = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    place = np.fromiter(map(distinct.__getitem__, cells), code_type(distinct), len(cells))
    return tidied(list(distinct), place, formulas)


def tidied(cells: list[str | None], place: Index, formulas: bool) -> Words:
    """Return a column as trimmed words, from its distinct `cells` and each row's position among them, `place`.

    If `formulas`, an apostrophe before a cell that begins like a formula is left out.
    """
    texts = list(map(str.strip, filter(None, cells)))
    if texts == cells and not (formulas and "'" in "".join(texts)):
        return Words(place, texts)
    words: dict[str, int] = {}
    codes = np.full(len(cells), BLANK, dtype=code_type(cells))
    untidy = np.zeros(len(cells), dtype=bool)
    for i, cell in enumerate(cells):
        meant = "" if cell is None else without_apostrophe(cell) if formulas else cell
        if word := meant.strip():
            codes[i] = words.setdefault(word, len(words))
            untidy[i] = word != meant
    trimmed = int(untidy[place].sum()) if untidy.any() else 0
    return Words(codes[place], list(words), trimmed)


def cell_fault(
    code: str,
    table: Table,
    row: int,
    column: int,
    remedies: Iterable[Mapping[str, object]] = (),
    count: int = 1,
    **params: Any,  # noqa: ANN401 - what the template quotes
) -> OpinionPoolError:
    """Return the error `code` on the cell in `row` and `column`; `count` is the number of such cells."""
    words = table.words(column)
    value = words.values[words.codes[row]] if words.codes[row] != BLANK else None
    where = replace(table.place([row]), column=table.names[column], value=value)
    return fault(code, where, map(Remedy, remedies), count=count, **params)


_TYPES = {"i": "BIGINT", "u": "UBIGINT", "f": "DOUBLE"}


def read_frame(source: object) -> Table:
    """Return a table from a dict of columns, an array or a data frame."""
    if isinstance(source, Mapping):
        return table_of(source.items())
    if not isinstance(source, np.ndarray):
        return table_of(_columns(source))
    if source.dtype.names:
        return table_of((name, source[name]) for name in source.dtype.names)
    if source.ndim != 2:
        raise fault("array-of-shape", shape=str(source.shape))
    return table_of((f"expert_{i}", column) for i, column in enumerate(source.T, 1))


def table_of(columns: Iterable[tuple[object, Any]]) -> Table:
    """Return a table of named columns, of any type and of equal length; None, NaN and NaT are blank."""
    pairs = list(columns)
    names = tuple(_label(name) for name, _ in pairs)
    arrays = [_array(values) for _, values in pairs]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise fault("columns-of-lengths", lengths=str(sorted(lengths)))
    rows = lengths.pop() if lengths else 0
    if rows == 0:
        raise fault("no-rows")
    types = tuple("FLOAT" if array.dtype == np.float32 else _TYPES.get(array.dtype.kind, "VARCHAR") for array in arrays)
    source = FileSource("the table", "", "frame")
    connection = connect()
    with readable(source):
        connection.register("w", {f"c{i}": array for i, array in enumerate(arrays)})
        connection.execute(f"CREATE TABLE t ({', '.join(f'c{i} {kind}' for i, kind in enumerate(types))})")
        connection.execute("INSERT INTO t SELECT * FROM w")
        connection.unregister("w")
    return Table(source, connection, names, types, rows)


def _columns(source: object) -> Iterator[tuple[object, Any]]:
    """Yield name and values of each column of a data frame."""
    import narwhals as nw

    try:
        frame: Any = nw.from_native(_with_index(source), pass_through=True)
    except nw.exceptions.DuplicateError:
        raise fault("same-name") from None
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        raise fault("no-source", kind=type(source).__name__)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    for i, name in enumerate(frame.columns):
        series = frame[:, i]
        whole = series.dtype.is_integer()
        # Through float64, ids of many digits would lose the last ones.
        if not series.dtype.is_numeric() or (whole and series.is_null().any()):
            yield name, series.to_list()
        else:
            values = (series if whole else series.cast(nw.Float64)).to_numpy()
            yield name, values.astype(np.float32) if series.dtype == nw.Float32 else values


def _with_index(source: object) -> object:
    """Return a pandas frame with its index among its columns, unless the index only numbers rows."""
    frame: Any = source
    if not hasattr(frame, "reset_index") or not hasattr(frame.index, "names"):
        return source
    index = frame.index
    if all(name is None for name in index.names):
        # What filtering, sorting or putting frames together left of positions says nothing where it is not even unique.
        if type(index).__name__ == "RangeIndex" or (
            index.nlevels == 1 and index.dtype.kind in "iu" and not index.is_unique
        ):
            return frame.reset_index(drop=True)
        frame = frame.copy(deep=False)
        frame.index = index.set_names([""] * index.nlevels)
    return frame.reset_index()


def _label(name: object) -> str:
    """Column's name as text; a name of several parts (pandas levels) is joined: ``expert:class``."""
    return ":".join(str(part) for part in name if str(part)) if isinstance(name, tuple) else str(name).strip()


def _array(values: Iterable[object]) -> np.ndarray[Any, Any]:
    """Return a column as an array of numbers, or of objects that are texts or None."""
    values = unmasked(values, None)
    try:
        array: np.ndarray[Any, Any] = np.asarray(values)
    except ValueError as error:
        raise fault("column-of-lists") from error
    if array.ndim != 1:
        raise fault("column-of-shape", shape=str(array.shape))
    # An array of True beside numbers has 1 for it.
    if array.dtype.kind in "iuf" and not has_boolean(values):
        kind = array.dtype.newbyteorder("=")
        # The engine knows numbers of 4 and 8 bytes, in the order of the machine.
        return array.astype(kind if kind.itemsize in {1, 2, 4, 8} and kind != np.float16 else np.float64, copy=False)
    cells = values if array.dtype.kind != "M" else [None if cell == "NaT" else cell for cell in array.astype(str)]
    objects = np.empty(len(array), dtype=object)
    objects[:] = [_text(cell) for cell in cells]
    return objects


def _text(cell: object) -> str | None:
    """Return one cell as text, None if it is blank."""
    if isinstance(cell, str):
        return str(cell)
    if is_blank(cell) or cell != cell:
        return None
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell).removesuffix(".0") if isinstance(cell, float) else str(cell)
