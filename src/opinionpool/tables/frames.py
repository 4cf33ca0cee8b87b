"""Data frames, Arrow tables, dicts of columns and NumPy arrays as tables. The one place that knows narwhals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, has_boolean, unmasked
from opinionpool.errors import CellError, Note, Remedy, TableError
from opinionpool.tables.roles import BETWEEN
from opinionpool.text import shown

BLANK = -1


@dataclass(frozen=True, eq=False)
class Words:
    """A column of text.

    Attributes
    ----------
    coded : ndarray of int, shape (rows,) or (stretches,)
        Position of each row's cell in `values`, -1 where it is blank; or of each stretch of rows with one cell.
    values : list of str
        The distinct cells in order of first appearance, white space around them trimmed.
    trimmed : int
        Cells that had such white space.
    lengths : ndarray of int, shape (stretches,), optional
        How many rows each stretch has, where rows are given as such.
    """

    coded: Index
    values: list[str]
    trimmed: int = 0
    lengths: Index | None = None

    @cached_property
    def codes(self) -> Index:
        """Position of each row's cell in `values`, -1 where it is blank, (rows,)."""
        return self.coded if self.lengths is None else np.repeat(self.coded, self.lengths)

    @cached_property
    def blank(self) -> bool:
        """Whether some cell is blank."""
        return bool(self.coded.min(initial=0) == BLANK)

    @cached_property
    def starts(self) -> Index | None:
        """The first row of each stretch, None where there are none."""
        return None if self.lengths is None else np.cumsum(self.lengths) - self.lengths

    def rows(self, code: int) -> Index:
        """The rows that hold one of the words."""
        return np.flatnonzero(self.codes == code)

    @cached_property
    def counts(self) -> Index:
        """How many rows hold each word."""
        return np.bincount(self.coded + 1, self.lengths, len(self.values) + 1)[1:].astype(np.intp)

    def texts(self) -> list[str | None]:
        """The cells, None where blank."""
        words = [*self.values, None]
        return [words[code] for code in self.codes.tolist()]

    def among(self, values: Sequence[str]) -> Words:
        """The same cells, coded as positions among more words."""
        position = {word: i for i, word in enumerate(values)}
        found = np.array([*(position[word] for word in self.values), BLANK], dtype=np.intp)
        return Words(found[self.codes], list(values), self.trimmed)

    def expand(self, values: npt.NDArray[Any], blank: object, rows: Index | None = None) -> npt.NDArray[Any]:
        """One value per word to one per row, or to one for some rows, `blank` where the cell is."""
        codes = self.codes if rows is None else self.codes_at(rows)
        return np.append(values, np.array([blank], dtype=values.dtype)).take(codes)

    def codes_at(self, rows: Index) -> Index:
        """The codes of some rows."""
        if self.starts is None:
            return self.coded[rows]
        return self.coded[np.searchsorted(self.starts, rows, side="right") - 1]


class Numbers(NamedTuple):
    """A column of plain numbers.

    Attributes
    ----------
    values : ndarray of float64, shape (rows,)
        Finite; NaN where blank, or where a word stands for no answer.
    words : int
        How many such words there are.
    """

    values: Array
    words: int = 0


class Table(Protocol):
    """A file or data frame, column by column; columns are named by position."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """How it was read."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' headers, trimmed; "" where there is none."""

    @property
    def rows(self) -> int:
        """Number of rows below the header."""

    @property
    def first(self) -> int:
        """Rows that stand before these, if these are a part."""

    def numbers(self, columns: Sequence[int], missing: frozenset[str]) -> list[Numbers | None]:
        """Columns as plain numbers; None for a column with a cell that is neither that nor among `missing`."""

    def words(self, column: int) -> Words:
        """A column as text."""

    def is_text(self, column: int) -> bool:
        """Whether the cells of a column are text, whatever they look like, and not numbers of some type."""

    def iso_times(self, column: int) -> npt.NDArray[np.datetime64] | None:
        """A column as times in UTC, if each cell is blank or a date or time in UTC, year first; else None."""

    def place(self, rows: Sequence[int]) -> str:
        """Where rows stand, for people: ``"forecasts.csv, line 7"``."""

    def rows_from(self, first: int, rows: int) -> Table:
        """Some of the rows."""

    def looks(self, spans: Sequence[tuple[int, int]]) -> Sequence[Table]:
        """Some rows, the first and how many, for many questions about few rows."""

    def with_key(self, columns: Sequence[int]) -> Table:
        """The table with one more column: several columns together."""


def place(table: Table, *rows: int) -> str:
    """Where rows stand: ``"forecasts.csv, line 7"``."""
    return table.place(rows)


def encode(cells: Iterable[str | None]) -> Words:
    """Cells as coded words.

    >>> encode(["b", None, "a ", "b", ""])
    Words(coded=array([ 0, -1,  1,  0, -1]), values=['b', 'a'], trimmed=1, lengths=None)
    """
    cells = list(cells)
    spellings = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    return tidied(list(spellings), np.fromiter(map(spellings.__getitem__, cells), np.intp, len(cells)))


def tidied(spellings: Sequence[str | None], spelled: Index, lengths: Index | None = None) -> Words:
    """Coded words from different spellings, in order of first appearance, and the spelling of each row.

    Or the spelling of each stretch of rows with one, where these have some lengths.
    """
    if None not in spellings:
        found = cast("list[str]", [*spellings])
        if "" not in found and list(map(str.strip, found)) == found:
            return Words(spelled, found, 0, lengths)
    words: dict[str, int] = {}
    codes = np.full(len(spellings) + 1, BLANK)
    untidy = np.zeros(len(spellings) + 1, dtype=bool)
    for i, cell in enumerate(spellings):
        word = "" if cell is None else cell.strip()
        if word:
            codes[i] = words.setdefault(word, len(words))
            untidy[i] = word != cell
    trimmed = 0
    if untidy.any():
        trimmed = int(untidy[spelled].sum() if lengths is None else lengths[untidy[spelled]].sum())
    return Words(codes.take(spelled), list(words), trimmed, lengths)


def cell_error(
    table: Table, row: int, column: int, problem: str, *, remedies: Sequence[Remedy] = (), count: int = 1
) -> CellError:
    """The error for one cell, with its place and column, and how many like it there are."""
    more = f" (and {count - 1:,} more like it)" if count > 1 else ""
    message = f"{place(table, row)}, column {shown(table.names[column])}: {problem}{more}"
    return CellError(message, remedies=remedies, count=count)


class FrameTable:
    """Columns in memory; see `opinionpool.tables.frames.Table`.

    Parameters
    ----------
    columns : iterable of (name, values)
        Values are one-dimensional, of any type; None, NaN, NaT and the like are blank.
    """

    name = "the table"
    notes: tuple[Note, ...] = ()
    first = 0

    def __init__(self, columns: Iterable[tuple[object, Any]]) -> None:
        pairs = list(columns)
        self.names = tuple(_label(name) for name, _ in pairs)
        self._columns = [_array(values) for _, values in pairs]
        lengths = {len(column) for column in self._columns}
        if len(lengths) > 1:
            raise TableError(f"the columns of a table must be of one length, and they have {sorted(lengths)} rows")
        self._seen: dict[int, Words] = {}
        self.rows = lengths.pop() if lengths else 0
        if self.rows == 0:
            raise TableError("the table has no rows")
        self._places: Sequence[int] = range(self.rows)

    def numbers(self, columns: Sequence[int], missing: frozenset[str]) -> list[Numbers | None]:  # noqa: ARG002
        """Columns as plain numbers; None for a column that is of another type, or has an infinite number."""
        found: list[Numbers | None] = []
        for i in columns:
            column = self._columns[i]
            values = column.astype(np.float64) if column.dtype.kind in "iuf" else np.array([np.inf])
            found.append(None if np.isinf(values).any() else Numbers(values))
        return found

    def words(self, column: int) -> Words:
        """A column as text."""
        if column not in self._seen:
            self._seen[column] = self._encode(column)
        return self._seen[column]

    def _encode(self, column: int) -> Words:
        values = self._columns[column]
        if values.dtype.kind == "f":
            return encode([None if text == "nan" else text.removesuffix(".0") for text in values.astype(str).tolist()])
        if values.dtype.kind == "M":
            return encode([None if text == "NaT" else text for text in values.astype(str).tolist()])
        return encode([_text(cell) for cell in values.tolist()])

    def is_text(self, column: int) -> bool:
        """Whether the cells of a column are text, whatever they look like, and not numbers of some type."""
        return bool(self._columns[column].dtype.kind == "O")

    def iso_times(self, column: int) -> npt.NDArray[np.datetime64] | None:
        """A column of times as such; None for one of anything else."""
        values = self._columns[column]
        return values.astype("datetime64[us]") if values.dtype.kind == "M" else None

    def place(self, rows: Sequence[int]) -> str:
        """The positions of rows, from 0 as in the frame."""
        return f"{self.name}, row{'s' if len(rows) > 1 else ''} {', '.join(str(self._places[row]) for row in rows)}"

    def rows_from(self, first: int, rows: int) -> FrameTable:
        """Some of the rows."""
        return self.at_rows(np.arange(first, first + rows))

    def looks(self, spans: Sequence[tuple[int, int]]) -> list[FrameTable]:
        """Some rows, the first and how many."""
        return [self.rows_from(first, rows) for first, rows in spans]

    def at_rows(self, rows: Index) -> FrameTable:
        """Some of the rows, by their positions."""
        if not len(rows):
            raise TableError("no row of the table meets --where")
        found = FrameTable((name, column[rows]) for name, column in zip(self.names, self._columns, strict=True))
        found._places = [self._places[row] for row in rows.tolist()]
        return found

    def with_key(self, columns: Sequence[int]) -> FrameTable:
        """The table with one more column: several columns together."""
        parts = [self.words(column).texts() for column in columns]
        key = [None if None in cells else BETWEEN.join(map(str, cells)) for cells in zip(*parts, strict=True)]
        name = BETWEEN.join(self.names[column] for column in columns)
        found = FrameTable([*zip(self.names, self._columns, strict=True), (name, key)])
        found._places, found.notes = self._places, self.notes
        return found


def read_frame(source: object) -> FrameTable:
    """A table from anything with columns.

    Parameters
    ----------
    source : data frame, Arrow table, mapping of columns, or array
        A pandas index that has a name, or holds something else than positions, counts as the first columns. A
        two-dimensional array has a row per event and a column per expert.

    Raises
    ------
    TableError
        If it is none of these.
    """
    if isinstance(source, Mapping):
        return FrameTable(source.items())
    if isinstance(source, np.ndarray):
        return _from_array(source)
    return FrameTable(_from_frame(source))


def _from_array(array: np.ndarray[Any, Any]) -> FrameTable:
    if array.dtype.names:
        return FrameTable((name, array[name]) for name in array.dtype.names)
    if array.ndim != 2:
        raise TableError(
            f"an array of forecasts is events x experts, and this one has shape {array.shape}; "
            "Forecasts.from_array takes events x experts x classes"
        )
    return FrameTable((f"expert_{i + 1}", array[:, i]) for i in range(array.shape[1]))


def _from_frame(source: object) -> Iterable[tuple[object, Any]]:
    import narwhals as nw

    try:
        frame: Any = nw.from_native(_with_index(source), pass_through=True)
    except nw.exceptions.DuplicateError:
        raise TableError("two columns of the table have the same name; every column needs its own") from None
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        raise TableError(
            "forecasts are read from a path, a binary file object, a data frame, an Arrow table, a dict of columns or "
            f"an array, and not from {type(source).__name__}"
        )
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
    """A pandas frame whose index, if it says something, is among its columns."""
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
    """A column's name as text; a name of several levels is joined, as in ``expert:class``."""
    return ":".join(str(part) for part in name if str(part)) if isinstance(name, tuple) else str(name).strip()


def _array(values: Iterable[object]) -> np.ndarray[Any, Any]:
    """One column as an array: numeric, or of objects."""
    values = unmasked(values, None)
    array: np.ndarray[Any, Any] = np.asarray(values)
    if array.ndim != 1:
        raise TableError(f"a column of a table has one dimension, and one has shape {array.shape}")
    # An array of True beside numbers has 1 for it.
    if array.dtype.kind in "iufM" and not has_boolean(values):
        return array
    objects = np.empty(len(array), dtype=object)
    objects[:] = list(values)
    return objects


def _text(cell: object) -> str | None:
    """One cell as text, None where there is nothing."""
    if isinstance(cell, str):
        return cell
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"} or cell != cell:
        return None
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell).removesuffix(".0") if isinstance(cell, float) else str(cell)
