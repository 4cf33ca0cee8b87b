"""What the columns of a table hold, as far as that tells what they are: looked at in some rows, not in all of many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.tables.cells import MISSING, is_text, written_numbers
from opinionpool.tables.frames import BLANK, Numbers, Table, Words
from opinionpool.tables.times import are_times

# Cells that are looked at, and from how many places of a large table.
CELLS, LOOKS = 1 << 18, 9
# Rows that stand together, for what columns have to do with each other.
ROWS = 1 << 15
# How far probabilities over classes may be off 1 by rounding.
_OFF = 0.02
# A day with its year, as a cell begins.
_DATE = re.compile(r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4})(?!\d)", re.ASCII)


class Contents:
    """The columns of a table, looked at once, when somebody asks.

    Parameters
    ----------
    table : Table
    missing : frozenset of str
        Words for "no answer", in lower case.
    """

    def __init__(self, table: Table, missing: frozenset[str] = MISSING) -> None:
        self.table, self._missing = table, missing
        rows = min(table.rows, max(1, CELLS // max(len(table.names), 1)))
        self._parts, self._head = [table], table
        if rows < table.rows:
            each = max(1, rows // LOOKS)
            firsts = np.unique(np.linspace(0, table.rows - each, LOOKS).astype(int)).tolist()
            self._head, *self._parts = table.looks([(0, min(rows, ROWS)), *((first, each) for first in firsts)])
        elif rows > ROWS:
            self._head = table.rows_from(0, ROWS)
        self._values: dict[int, Array] = {}

    @cached_property
    def _plain(self) -> list[list[Numbers | None]]:
        """All columns as plain numbers, None for those that are not, in each part that is looked at."""
        columns = range(len(self.table.names))
        return [part.numbers(columns, self._missing) for part in self._parts]

    def kind(self, column: int) -> str:
        """``"numbers"``, readable or not, ``"words"``, or nothing: ``""``."""
        kinds = {self._kind(part, plain[column], column) for part, plain in zip(self._parts, self._plain, strict=True)}
        return next((kind for kind in ("numbers", "words") if kind in kinds), "")

    @staticmethod
    def _kind(part: Table, plain: Numbers | None, column: int) -> str:
        if plain is not None:
            return "" if np.isnan(plain.values).all() else "numbers"
        words = part.words(column)
        return "words" if is_text(words) else "numbers" if words.values else ""

    def values(self, column: int) -> Array:
        """The numbers of a column in the rows that are looked at, NaN where there is none."""
        if column not in self._values:
            parts = [
                plain[column].values  # type: ignore[union-attr]
                if plain[column] is not None
                else written_numbers(part.words(column))
                for part, plain in zip(self._parts, self._plain, strict=True)
            ]
            self._values[column] = np.concatenate(parts)
        return self._values[column]

    def known(self, column: int) -> Array:
        """The numbers that are there."""
        values = self.values(column)
        return values[~np.isnan(values)]

    def unit(self, column: int) -> str:
        """``"binary"``, ``"fractions"`` or ``"percentages"`` by the range of a column's numbers, ``""`` for others."""
        known = self.known(column) if self.kind(column) == "numbers" else np.empty(0)
        if not len(known) or known.min() < 0 or known.max() > 100:
            return ""
        if known.max() > 1:
            return "percentages"
        return "binary" if np.isin(known, (0, 1)).all() else "fractions"

    def marked(self, column: int) -> bool:
        """Whether numbers of a column have per cent signs."""
        return any(word.endswith("%") for word in self._head.words(column).values[:50])

    def dates(self, column: int) -> bool:
        """Whether a column holds days with their year, and nothing else."""
        words = [word for word in self._head.words(column).values[:50] if word.lower() not in self._missing]
        return bool(words) and all(map(_DATE.match, words))

    def times(self, column: int) -> bool:
        """Whether a column holds days with their year, some with a time of day, and nothing else."""
        words = [word for word in self._head.words(column).values[:50] if word.lower() not in self._missing]
        return are_times(words)

    def is_index(self, column: int) -> bool:
        """Whether a column numbers the rows, one after the other."""
        values = self._head_numbers(column)
        return len(values) > 1 and bool((np.diff(values) == 1).all())

    def numbers_rows(self, column: int) -> bool:
        """Whether a column holds whole numbers, none of them twice."""
        values = self._head_numbers(column)
        return len(values) > 1 and bool((values == np.round(values)).all()) and len(np.unique(values)) == len(values)

    def _head_numbers(self, column: int) -> Array:
        return self.known(column) if self.kind(column) == "numbers" else np.empty(0)

    def words(self, column: int) -> Words:
        """The first rows of a column, as text; what stands for no value is blank."""
        words = self._head.words(column)
        absent = np.array([word.lower() in self._missing for word in words.values] + [True], dtype=bool)
        return Words(np.where(absent[words.codes], BLANK, words.codes), words.values)

    def present(self, column: int) -> float:
        """The share of rows that have something in a column."""
        codes = self.words(column).codes
        return float((codes != BLANK).mean()) if len(codes) else 0.0

    def distinct(self, column: int) -> int:
        """How many different words the first rows of a column hold."""
        codes = self.words(column).codes
        return len(np.unique(codes[codes != BLANK]))

    def key(self, columns: Sequence[int]) -> Index:
        """A number for each combination of what columns hold, (rows,), the same where it is; -1 where one is blank."""
        key, absent = np.zeros(self._head.rows, dtype=np.intp), np.zeros(self._head.rows, dtype=bool)
        for column in columns:
            codes = self.words(column).codes
            absent |= codes == BLANK
            _, key = np.unique(key * (codes.max(initial=0) + 2) + codes + 1, return_inverse=True)
        return np.where(absent, BLANK, key)

    def repeats(self, columns: Sequence[int], among: npt.NDArray[np.bool_] | None = None) -> bool:
        """Whether several rows hold the same in all these columns."""
        key = self.key(columns)
        key = key[(key != BLANK) & (True if among is None else among)]
        return len(np.unique(key)) < len(key)

    def varies_within(self, column: int, columns: Sequence[int]) -> bool:
        """Whether a column holds different things in rows that hold the same in others."""
        key, codes = self.key(columns), self.words(column).codes
        there = (key != BLANK) & (codes != BLANK)
        return len(np.unique(np.stack([key[there], codes[there]]), axis=1).T) > len(np.unique(key[there]))

    def sums_to_one(self, column: int, columns: Sequence[int]) -> bool:
        """Whether a column adds up to 1, or 100, over rows that hold the same in others, of which there are several."""
        key, values = self.key(columns), written_or_plain(self._head, column, self._missing)
        there = (key != BLANK) & ~np.isnan(values)
        counts = np.bincount(key[there])
        sums: Array = np.asarray(np.bincount(key[there], values[there]), dtype=np.float64)
        several = counts > 1
        return bool(several.any()) and _near_one(sums[counts > 0])

    def rows_sum_to_one(self, columns: Sequence[int]) -> bool:
        """Whether the numbers in each row add up to 1, or 100, over these columns."""
        sums = np.sum([self.values(column) for column in columns], axis=0)
        known = sums[~np.isnan(sums)]
        return len(known) > 0 and _near_one(np.asarray(known, dtype=np.float64))


def _near_one(sums: Array) -> bool:
    """Whether nearly all sums are 1, or nearly all 100; a few may be at fault."""
    return any(float((np.abs(sums / total - 1.0) <= _OFF).mean()) >= 0.9 for total in (1.0, 100.0))


def written_or_plain(table: Table, column: int, missing: frozenset[str]) -> Array:
    """The numbers of a column, NaN where there is none."""
    plain = table.numbers([column], missing)[0]
    return written_numbers(table.words(column)) if plain is None else plain.values
