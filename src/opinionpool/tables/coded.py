"""The different words of a column of many rows, and which of them stands in each, found by the engine.

Where rows with one word stand together, the engine gives the words at which such stretches begin. Elsewhere it gives
the words once each, and for every row a hash of its cell; where each hash is that of one word, it says which.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index

if TYPE_CHECKING:
    import duckdb

# Cells that stand together, on average, from which on words are looked up once for all of them.
_TOGETHER = 4
# Words up to which each has a place of its own in a small table; cells up to which they are looked up by halves.
_FEW, _CELLS = 512, 1 << 18
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
    """Stretches of rows with one cell, where they are few in a table of so many rows; parameters as for `spellings`.

    Neighbours are compared by their hashes, of 64 bits, and cells made text where stretches begin.
    """
    head = _beginnings(connection, cell, None, f"t LIMIT {_HEAD}", _HEAD)
    if len(head["h"]) * _TOGETHER > min(rows, _HEAD):
        return None
    # Where none comes again, their words are needed, and else those of a few.
    differ = len(_numbered(np.asarray(head["h"]))[0]) == len(head["h"])
    most = rows // _TOGETHER
    found = _beginnings(connection, cell, text if differ else None, "t", most + 1)
    starts = np.asarray(found["r"], dtype=np.intp)
    # Rows must have come in their order.
    if len(starts) > most or starts[0] != 0 or (starts[1:] <= starts[:-1]).any():
        return None
    first, place = _numbered(np.asarray(found["h"]))
    if not differ and len(first) > _FEW:
        found = _beginnings(connection, cell, text, "t", most + 1)
    words = found["w"][first] if "w" in found else _words_at(connection, text, starts[first])
    return Stretches(words.tolist(), place, np.diff(starts, append=rows))


def _beginnings(
    connection: duckdb.DuckDBPyConnection, cell: str, text: str | None, source: str, most: int
) -> dict[str, npt.NDArray[Any]]:
    """Where stretches of rows with one cell begin: their hashes, rows and text."""
    cells = f"SELECT *, hash({cell}) AS h, rowid AS r FROM {source}"
    word = "" if text is None else f", {text} AS w"
    query = f"SELECT h, r{word} FROM (SELECT *, lag(h) OVER () AS b FROM ({cells})) WHERE h IS DISTINCT FROM b"
    found: dict[str, npt.NDArray[Any]] = connection.execute(f"{query} LIMIT {most}").fetchnumpy()
    return found


def _words_at(connection: duckdb.DuckDBPyConnection, text: str, rows: Index) -> npt.NDArray[Any]:
    """The text of the cells in a few rows."""
    which = ", ".join(map(str, rows.tolist()))
    found = dict(connection.execute(f"SELECT rowid, {text} FROM t WHERE rowid IN ({which})").fetchall())
    return np.array([found[row] for row in rows.tolist()], dtype=object)


def _numbered(hashes: npt.NDArray[np.uint64]) -> tuple[Index, Index]:
    """Where each different one stands first, in this order, and which of them each is.

    >>> _numbered(np.array([7, 5, 7], np.uint64))
    (array([0, 1]), array([0, 1, 0]))
    """
    ordered = np.sort(hashes)
    keys = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    each = np.arange(len(hashes))
    if len(keys) == len(hashes):
        return each, each
    place = positions(hashes, keys)
    if place is None:
        place = np.searchsorted(keys, hashes)
    first = np.empty(len(keys), dtype=np.intp)
    first[place[::-1]] = each[::-1]
    order = np.argsort(first)
    return first[order], np.argsort(order)[place]


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
    digits = _digits(different.hashes) if hashes is None and known is None else None
    if digits is not None:
        slots = connection.execute(f"SELECT {digits.query(cell)} AS s FROM t{some}").fetchnumpy()["s"]
        return different.cells, digits.looked_up(np.asarray(slots), different.hashes)
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
    digits = _digits(keys)
    if digits is not None:
        return digits.looked_up(digits.of(hashes), keys)
    return order[np.searchsorted(ordered, hashes)] if len(hashes) <= _CELLS else None


class _Digits(NamedTuple):
    """Some of the binary digits of hashes, which tell a few words from each other."""

    behind: int  # how many are behind them
    bits: int  # how many they are, 8 or 16

    def of(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Those of some hashes."""
        return (hashes >> np.uint64(self.behind)).astype(np.uint8 if self.bits == 8 else np.uint16)

    def query(self, cell: str) -> str:
        """Those of the hash of a cell, for the engine."""
        kind = "UTINYINT" if self.bits == 8 else "USMALLINT"
        return f"CAST((hash({cell}) >> {self.behind}) & {(1 << self.bits) - 1} AS {kind})"

    def looked_up(self, slots: npt.NDArray[np.unsignedinteger[Any]], keys: npt.NDArray[np.uint64]) -> Index:
        """Where the hashes with these digits stand among keys, in blocks that stay in the cache."""
        table = np.zeros(1 << self.bits, dtype=np.intp)
        table[self.of(keys)] = np.arange(len(keys))
        found = np.empty(len(slots), dtype=np.intp)
        for start in range(0, len(slots), _BLOCK):
            block = slice(start, start + _BLOCK)
            np.take(table, slots[block], out=found[block], mode="clip")
        return found


def _digits(keys: npt.NDArray[np.uint64]) -> _Digits | None:
    """The fewest that tell a few hashes from each other; None if they are many, or none do."""
    if len(keys) > _FEW:
        return None
    able = (_Digits(behind, bits) for bits in (8, 16) for behind in range(0, 48, 3))
    return next((digits for digits in able if len(set(digits.of(keys).tolist())) == len(keys)), None)


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
