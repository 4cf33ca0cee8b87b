"""The different words of a column of many rows, and which of them stands in each, found by the engine.

Where rows with one word stand together, the engine gives the words at which such stretches begin. Elsewhere it gives
the words once each, and for every row a hash of its cell; where each hash is that of one word, it says which.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index

if TYPE_CHECKING:
    import duckdb

# Cells that stand together, on average, from which on words are looked up once for all of them.
_TOGETHER = 4
# Words up to which each has a place of its own in a table of this size; cells up to which they are looked up by halves.
_FEW, _SLOTS, _CELLS = 512, 1 << 16, 1 << 18
_BLOCK = 1 << 16
# Rows at the beginning that show whether cells stand together.
_HEAD = 1 << 12


class Different(NamedTuple):
    """The different cells of a column as text, in order of first appearance, and their hashes."""

    cells: list[str | None]
    hashes: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, cell: str, text: str, some: str = "") -> Different:
        """Those of some rows; parameters as for `spellings`."""
        found = connection.execute(
            f"SELECT {text} AS w, min(rowid) AS first, hash({cell}) AS h FROM t{some} GROUP BY {cell} ORDER BY first"
        ).fetchnumpy()
        return cls(found["w"].tolist(), np.asarray(found["h"]))


class Stretches(NamedTuple):
    """The different cells of a column, in order of first appearance, and which of them each stretch of rows holds."""

    cells: list[str | None]
    place: Index  # (stretches,); position among the cells
    lengths: Index  # (stretches,); how many rows each has


def stretches(connection: duckdb.DuckDBPyConnection, cell: str, text: str, rows: int) -> Stretches | None:
    """Stretches of rows with one cell, where they are few in a table of so many rows; parameters as for `spellings`."""
    cells = f"SELECT {text} AS w, {cell} AS c, rowid AS r FROM t"
    both = "SELECT *, lag(c) OVER () AS b, lag(r) OVER () AS q FROM"
    new = "WHERE c IS DISTINCT FROM b OR q IS DISTINCT FROM r - 1"
    head = connection.execute(f"SELECT count(*) FROM ({both} ({cells} LIMIT {_HEAD})) {new}").fetchone()
    if head is None or head[0] * _TOGETHER > min(rows, _HEAD):
        return None
    most = rows // _TOGETHER
    found = connection.execute(f"SELECT w, r, q FROM ({both} ({cells})) {new} LIMIT {most + 1}").fetchnumpy()
    starts, previous = np.asarray(found["r"], dtype=np.intp), np.ma.asarray(found["q"])
    # Rows must have come in their order, each after the one before it.
    if len(starts) > most or starts[0] != 0 or not np.array_equal(previous[1:], starts[1:] - 1):
        return None
    lengths = np.diff(starts, append=rows)
    words: list[str | None] = found["w"].tolist()
    if len(set(words)) == len(words):
        return Stretches(words, np.arange(len(words)), lengths)
    place = {word: i for i, word in enumerate(dict.fromkeys(words))}
    return Stretches([*place], np.fromiter(map(place.__getitem__, words), np.intp, len(words)), lengths)


def spellings(
    connection: duckdb.DuckDBPyConnection,
    cell: str,
    text: str,
    rows: str = "",
    known: Different | None = None,
    hashes: npt.NDArray[np.uint64] | None = None,
) -> tuple[list[str | None], Index]:
    """The different cells of a column, in order of first appearance, and the position of each row's among them.

    Parameters
    ----------
    connection : DuckDBPyConnection
        With a table t.
    cell : str
        What to select for the column as it is.
    text : str
        The same as text; cells that are alike have the same text.
    rows : str
        Which rows, as a condition.
    known : Different, optional
        Those of the whole column, if these are some of its rows.
    hashes : ndarray of uint64, optional
        Of the cells, if they are known.
    """
    some = f" WHERE {rows}" if rows else ""
    different = Different.of(connection, cell, text, some) if known is None else known
    shift = _shift(different.hashes) if hashes is None and known is None else None
    if shift is not None:
        slot = f"CAST((hash({cell}) >> {shift}) & {_SLOTS - 1} AS USMALLINT)"
        slots = connection.execute(f"SELECT {slot} AS s FROM t{some}").fetchnumpy()["s"]
        return different.cells, _looked_up(np.asarray(slots), different.hashes, shift)
    if hashes is None:
        hashes = np.asarray(connection.execute(f"SELECT hash({cell}) AS h FROM t{some}").fetchnumpy()["h"])
    place = positions(hashes, different.hashes)
    if known is None:
        return different.cells, _by_word(connection, cell, some) if place is None else place
    if place is None:
        return spellings(connection, cell, text, rows, hashes=hashes)
    there = np.bincount(place, minlength=len(different.cells)) > 0
    if there.all():
        return different.cells, place
    return list(compress(different.cells, there)), (np.cumsum(there) - 1)[place]


def positions(hashes: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> Index | None:
    """Where each hash stands among keys, each of which is there; None where keys are the same, or it would take long.

    >>> positions(np.array([7, 7, 5, 7], np.uint64), np.array([7, 5], np.uint64))
    array([0, 0, 1, 0])
    """
    order = np.argsort(keys)
    ordered = keys[order]
    if (ordered[1:] == ordered[:-1]).any():
        return None
    new = hashes[1:] != hashes[:-1]
    if (np.count_nonzero(new) + 1) * _TOGETHER <= len(hashes):
        starts = np.append(0, np.flatnonzero(new) + 1)
        found = order[np.searchsorted(ordered, hashes[starts])]
        return np.asarray(np.repeat(found, np.diff(np.append(starts, len(hashes)))))
    shift = _shift(keys)
    if shift is not None:
        return _looked_up(_slots(hashes, shift), keys, shift)
    return order[np.searchsorted(ordered, hashes)] if len(hashes) <= _CELLS else None


def _shift(keys: npt.NDArray[np.uint64]) -> int | None:
    """How far to shift a few hashes so that each has a slot of its own; None if they are many, or no shift does it."""
    able = (shift for shift in range(0, 48, 3) if len(np.unique(_slots(keys, shift))) == len(keys))
    return next(able, None) if len(keys) <= _FEW else None


def _slots(hashes: npt.NDArray[np.uint64], shift: int) -> npt.NDArray[np.uint16]:
    return ((hashes >> np.uint64(shift)) & np.uint64(_SLOTS - 1)).astype(np.uint16)


def _looked_up(slots: npt.NDArray[np.uint16], keys: npt.NDArray[np.uint64], shift: int) -> Index:
    """Where the hash of each slot stands among keys, in blocks that stay in the cache."""
    table = np.zeros(_SLOTS, dtype=np.intp)
    table[_slots(keys, shift)] = np.arange(len(keys))
    found = np.empty(len(slots), dtype=np.intp)
    for start in range(0, len(slots), _BLOCK):
        block = slice(start, start + _BLOCK)
        np.take(table, slots[block], out=found[block], mode="clip")
    return found


def _by_word(connection: duckdb.DuckDBPyConnection, cell: str, some: str) -> Index:
    """The same by an enumeration of the words."""
    text = f"CAST({cell} AS VARCHAR)"
    words = f"SELECT w FROM (SELECT {text} AS w, min(rowid) AS first FROM t{some} GROUP BY {cell}) ORDER BY first"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE different AS {words}")
    connection.execute(
        "DROP TYPE IF EXISTS word; CREATE TYPE word AS ENUM (SELECT w FROM different WHERE w IS NOT NULL)"
    )
    codes = connection.execute(f"SELECT enum_code(CAST({text} AS word)) AS c FROM t{some}").fetchnumpy()["c"]
    blank = connection.execute("SELECT min(rowid) FROM different WHERE w IS NULL").fetchone()
    found = np.ma.filled(codes.astype(np.intp), -1)
    if blank is None or blank[0] is None:
        return np.asarray(found)
    # Words behind the blank are counted without it.
    return np.asarray(np.where(found < 0, blank[0], found + (found >= blank[0])))
