"""A table in the engine (DuckDB): its columns as numbers, words or times, and the places of its rows in the file.

Whether from text, Parquet, JSON, a spreadsheet or a data frame, a table is columns c0, c1, ... of a relation t.
Frames, Arrow tables, dicts of columns and arrays become tables here, in the one place that knows narwhals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, has_boolean, unmasked
from opinionpool.blocks import blocks
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault
from opinionpool.tables.engine import SPACE, FileSource, connect, literal, readable
from opinionpool.tables.files import lines_of
from opinionpool.tables.roles import BETWEEN
from opinionpool.text import APOSTROPHE, without_apostrophe

if TYPE_CHECKING:
    import duckdb


BLANK = -1
# Number of rows from which on the engine finds the distinct words of a column.
_MANY = 20_000
# Number of cells up to which all columns are fetched at once.
_FEW = 1 << 18
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
        return np.append(values, np.array([blank], dtype=values.dtype)).take(codes)


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
        own = [i for i in columns if i < len(self.types)]
        found: dict[int, Numbers | None] = {}
        if self._is_small:
            found = {i: _plain(self.words(i), missing) for i in own if self.is_text(i)}
        able = [i for i in own if i not in found and (self.is_text(i) or self._is_number(i))]
        texts = [i for i in able if self.is_text(i)]
        values = self.select(", ".join(f"TRY_CAST(c{i} AS DOUBLE) AS c{i}" for i in able)) if able else {}
        # The engine reads 1_000 as a number, too.
        counts = ", ".join(f"count(c{i}) AS n{i}, count_if(contains(c{i}, '_')) AS u{i}" for i in texts)
        cells = self.select(counts) if texts else {}
        for i in able:
            column = np.ma.asarray(values[f"c{i}"])
            known, words = column.compressed(), 0
            odd = not np.isfinite(known).all() if i in texts else np.isinf(known).any()
            if i in texts:
                words = int(cells[f"n{i}"][0]) - len(known)
                odd |= bool(cells[f"u{i}"][0]) or (words > 0 and not self._other_words(i) <= missing)
            found[i] = None if odd else Numbers(np.asarray(column.filled(np.nan)), words)
        return [found.get(i) for i in columns]

    def _other_words(self, column: int) -> set[str]:
        """Distinct cells of a text column that are no numbers, in lower case, at most 1000."""
        cell = f"c{column}"
        other = f"SELECT DISTINCT lower(trim({cell})) AS w FROM t WHERE TRY_CAST({cell} AS DOUBLE) IS NULL"
        some = f" AND {self._which}" if self.part else ""
        rows = self.connection.execute(f"{other} AND {cell} IS NOT NULL{some} LIMIT 1000").fetchall()
        return {row[0] for row in rows}

    @property
    def _is_small(self) -> bool:
        """Whether the table is so small that all its columns are fetched in one query."""
        return self.rows < _MANY and self.rows * len(self.types) <= _FEW

    def _is_number(self, column: int) -> bool:
        kind = self.types[column].removeprefix("U")
        return kind.startswith(_NUMERIC) and "[" not in kind

    def words(self, column: int) -> Words:
        """Return the column at position `column` as text; whole numbers have no decimal point, as ids need it."""
        if column not in self.seen:
            if self._is_small:
                self._fetch_all()
            if column not in self.seen:
                words = self._found(column)
                self.seen[column] = words if column not in self.known else words.among(self.known[column])
        return self.seen[column]

    def _fetch_all(self) -> None:
        """Fetch all columns as words in one query, and keep them in `seen`."""
        own = range(len(self.types))
        with readable(self.source):
            rows = self.connection.execute(self._query(", ".join(map(self._cell, own)))).fetchall()
        for i, cells in zip(own, zip(*rows, strict=True), strict=True):
            words = encode(_as_meant(list(cells)) if self._is_csv(i) else cells)
            self.seen.setdefault(i, words if i not in self.known else words.among(self.known[i]))

    def _found(self, column: int) -> Words:
        """Return the column as words; in a table of many rows, equal cells are recognised by their hashes."""
        cell = self._cell(column)
        place = None
        if self.rows >= _MANY:
            rows = self._query(f"{cell} AS c, rowid AS r")
            with readable(self.source):
                distinct = self.connection.execute(
                    f"SELECT c, hash(c) AS h, min(r) AS r FROM ({rows}) GROUP BY c ORDER BY r"
                ).fetchnumpy()
            cells = distinct["c"].tolist()
            place = np.arange(self.rows, dtype=code_type(cells))
            if len(cells) < self.rows:
                hashes = self.select(f"hash({cell}) AS h")["h"]
                place = _positions(np.asarray(hashes), np.asarray(distinct["h"]))
        if place is None:
            # A table of few rows, or two cells with one hash.
            cells = self.select(f"{cell} AS c")["c"].tolist()
            return encode(_as_meant(cells) if self._is_csv(column) else cells)
        return tidied(_as_meant(cells) if self._is_csv(column) else cells, place)

    def select(self, what: str) -> dict[str, npt.NDArray[Any]]:
        """Return the columns that the SQL select list `what` computes for the table's rows, by name."""
        with readable(self.source):
            found: dict[str, npt.NDArray[Any]] = self.connection.execute(self._query(what)).fetchnumpy()
        return found

    def _query(self, what: str) -> str:
        return f"SELECT {what} FROM t WHERE {self._which}" if self.part else f"SELECT {what} FROM t"

    @property
    def _which(self) -> str:
        """SQL condition that selects the rows of this part; "" if the table is whole."""
        return f"rowid >= {self.first} AND rowid < {self.first + self.rows}" if self.part else ""

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
        rows = np.asarray(self.select("place")["place"]) if self.moved else self.first + np.arange(self.rows)
        names = [os.path.basename(source.name).partition(".")[0] for source, _ in self.pieces]
        if len(set(names)) < len(names):
            names = [source.name for source, _ in self.pieces]
        return Words(np.searchsorted([start for _, start in self.pieces], rows, side="right") - 1, names)

    def place(self, rows: Sequence[int]) -> Place:
        """Return where `rows` are, for messages: lines of a text file, or row numbers of another."""
        at = self.first + np.asarray(rows, dtype=np.intp)
        if self.moved:
            numbers = ", ".join(map(str, at.tolist()))
            query = f"SELECT rowid, place FROM t WHERE rowid IN ({numbers})"
            of = dict(self.connection.execute(query).fetchall())
            at = np.array([of[row] for row in at.tolist()])
        pieces, found = self.pieces or ((self.source, 0),), []
        piece = np.searchsorted([start for _, start in pieces], at, side="right") - 1
        for number in np.unique(piece).tolist():
            source, start = pieces[number]
            own = (at[piece == number] - start).tolist()
            # Each row of a spreadsheet is a line of its copy, and rows of a frame are numbered from 0.
            lines = source.format in {"csv", "json"}
            unit = "line" if lines and not source.sheet else "row"
            own = lines_of(source, own) if lines else [row + (source.format != "frame") for row in own]
            found.append(Place(source.name, tuple(own), unit))
        return replace(found[0], others=tuple(found[1:]))


def place(table: Table, *rows: int) -> str:
    """Return where `rows` are, as text: ``"forecasts.csv, line 7"``."""
    return str(table.place(rows))


def _positions(hashes: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> Index | None:
    """Return the position of each of `hashes` in `keys`, which has all of them; None if two keys are equal.

    >>> _positions(np.array([7, 7, 5, 7], np.uint64), np.array([7, 5], np.uint64))
    array([0, 0, 1, 0], dtype=int8)
    """
    # Rows with one word often follow each other, and are looked up once.
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    order = np.argsort(keys).astype(code_type(keys))
    ordered = keys[order]
    if (ordered[1:] == ordered[:-1]).any():
        return None
    if np.array_equal(hashes[starts], keys):
        # The words stand together, in the order of the keys.
        found = np.arange(len(keys), dtype=code_type(keys))
    else:
        found = order[np.searchsorted(ordered, hashes[starts])]
    return found if len(starts) == len(hashes) else np.repeat(found, np.diff(starts, append=len(hashes)))


def _as_meant(cells: list[str | None]) -> list[str | None]:
    """Return `cells` without the apostrophe that keeps spreadsheets from taking a cell for a formula."""
    if "'" not in "".join(filter(None, cells)):
        return cells
    return [cell if cell is None else without_apostrophe(cell) for cell in cells]


def _plain(words: Words, missing: frozenset[str]) -> Numbers | None:
    """Column of words as numbers; None if a word is neither a finite number nor in `missing`."""
    values, other = np.full(len(words.values), np.nan), 0
    for i, word in enumerate(words.values):
        if word.lower() in missing:
            other += int(words.counts[i])
        elif _NUMBER.fullmatch(word):
            values[i] = float(word)
        else:
            return None
    return Numbers(words.expand(values, np.nan), other) if np.isfinite(values[~np.isnan(values)]).all() else None


def encode(cells: Iterable[str | None]) -> Words:
    """Return `cells` as their distinct words, and for each cell the position of its word, -1 where blank.

    >>> encode(["b", None, "a ", "b", ""])
    Words(codes=array([ 0, -1,  1,  0, -1], dtype=int8), values=['b', 'a'], trimmed=1)
    """
    cells = list(cells)
    distinct = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    return tidied(list(distinct), np.fromiter(map(distinct.__getitem__, cells), code_type(distinct), len(cells)))


def tidied(cells: list[str | None], place: Index) -> Words:
    """Return a column as words, trimmed; `cells` are its distinct cells, `place` has each row's position among them."""
    if None not in cells and "" not in cells and list(map(str.strip, cast("Sequence[str]", cells))) == cells:
        return Words(place, cast("list[str]", cells))
    words: dict[str, int] = {}
    codes = np.full(len(cells) + 1, BLANK, dtype=code_type(cells))
    untidy = np.zeros(len(cells) + 1, dtype=bool)
    for i, cell in enumerate(cells):
        word = "" if cell is None else cell.strip()
        if word:
            codes[i] = words.setdefault(word, len(words))
            untidy[i] = word != cell
    trimmed = int(untidy[place].sum()) if untidy.any() else 0
    return Words(codes.take(place), list(words), trimmed)


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
    return table_of(_from_array(source) if isinstance(source, np.ndarray) else _from_frame(source))


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
    connection = connect("", None, False)
    with readable(source):
        connection.register("w", {f"c{i}": array for i, array in enumerate(arrays)})
        connection.execute(f"CREATE TABLE t ({', '.join(f'c{i} {kind}' for i, kind in enumerate(types))})")
        connection.execute("INSERT INTO t SELECT * FROM w")
        connection.unregister("w")
    return Table(source, connection, names, types, rows)


def _from_array(array: np.ndarray[Any, Any]) -> Iterable[tuple[object, Any]]:
    if array.dtype.names:
        return ((name, array[name]) for name in array.dtype.names)
    if array.ndim != 2:
        raise fault("array-of-shape", shape=str(array.shape))
    return ((f"expert_{i + 1}", array[:, i]) for i in range(array.shape[1]))


def _from_frame(source: object) -> Iterable[tuple[object, Any]]:
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
        if not series.dtype.is_numeric():
            yield name, series.to_list()
        elif series.dtype == nw.Float32:
            yield name, series.to_numpy().astype(np.float32)
        elif series.dtype.is_integer():
            # Through float64, ids of many digits would lose the last ones.
            yield name, series.to_list() if series.is_null().any() else series.to_numpy()
        else:
            yield name, series.cast(nw.Float64).to_numpy()


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
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"} or cell != cell:
        return None
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell).removesuffix(".0") if isinstance(cell, float) else str(cell)
