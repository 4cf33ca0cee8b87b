"""Data frames, Arrow tables, dicts of columns and NumPy arrays as tables. The one place that knows narwhals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import numpy as np

from opinionpool.arrays import has_boolean, unmasked
from opinionpool.findings import fault
from opinionpool.tables.engine import connect, readable
from opinionpool.tables.sources import FileSource
from opinionpool.tables.table import Table

_TYPES = {"i": "BIGINT", "u": "UBIGINT", "f": "DOUBLE"}


def read_frame(source: object) -> Table:
    """A table from anything with columns."""
    if isinstance(source, Mapping):
        return table_of(source.items())
    return table_of(_from_array(source) if isinstance(source, np.ndarray) else _from_frame(source))


def table_of(columns: Iterable[tuple[object, Any]]) -> Table:
    """A table of named columns, of any type and one length; None, NaN, NaT and the like are blank."""
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
    """One cell as text, None where there is nothing."""
    if isinstance(cell, str):
        return str(cell)
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"} or cell != cell:
        return None
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell).removesuffix(".0") if isinstance(cell, float) else str(cell)
