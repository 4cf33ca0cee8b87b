"""What the reader of forecasts asks of a table, wherever the table comes from.

A column is asked for as plain numbers first. When some cell is not one, its cells come as coded words: the
distinct trimmed texts and, for each row, which one it is, so that text is parsed once per distinct word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.errors import CellError, Note
from opinionpool.logodds import Array
from opinionpool.wording import shown

Index: TypeAlias = npt.NDArray[np.intp]

BLANK = -1


@dataclass(frozen=True, eq=False)
class Words:
    """A column of text.

    Attributes
    ----------
    codes : ndarray of int, shape (rows,)
        Position of each row's cell in `values`, -1 where it is blank.
    values : list of str
        The distinct cells in order of first appearance, white space around them trimmed.
    trimmed : int
        Cells that had such white space.
    """

    codes: Index
    values: list[str]
    trimmed: int = 0

    def rows(self, code: int) -> Index:
        """The rows that hold one of the words."""
        return np.flatnonzero(self.codes == code)

    @property
    def counts(self) -> Index:
        """How many rows hold each word."""
        return np.bincount(self.codes + 1, minlength=len(self.values) + 1)[1:]

    def among(self, values: Sequence[str]) -> Words:
        """The same cells, coded as positions among more words."""
        position = {word: i for i, word in enumerate(values)}
        found = np.array([*(position[word] for word in self.values), BLANK], dtype=np.intp)
        return Words(found[self.codes], list(values), self.trimmed)

    def expand(self, values: npt.NDArray[Any], blank: object) -> npt.NDArray[Any]:
        """One value per word to one per row, `blank` where the cell is."""
        return np.append(values, np.array([blank], dtype=values.dtype))[self.codes]


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

    def locate(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        """Where rows stand, for people: ``("line", [7])``."""


def place(table: Table, *rows: int) -> str:
    """Where rows stand: ``"forecasts.csv, line 7"``."""
    unit, numbers = table.locate(rows)
    return f"{table.name}, {unit}{'s' if len(rows) > 1 else ''} {', '.join(map(str, numbers))}"


def encode(cells: Iterable[str | None]) -> Words:
    """Cells as coded words.

    >>> encode(["b", None, "a ", "b", ""])
    Words(codes=array([ 0, -1,  1,  0, -1]), values=['b', 'a'], trimmed=1)
    """
    cells = list(cells)
    spellings = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    words: dict[str, int] = {}
    codes = np.full(len(spellings), BLANK)
    untidy = np.zeros(len(spellings), dtype=bool)
    for i, cell in enumerate(spellings):
        word = "" if cell is None else cell.strip()
        if word:
            codes[i] = words.setdefault(word, len(words))
            untidy[i] = word != cell
    spelled = np.fromiter(map(spellings.__getitem__, cells), np.intp, len(cells))
    return Words(codes[spelled], list(words), int(untidy[spelled].sum()))


def cell_error(table: Table, row: int, column: int, problem: str) -> CellError:
    """The error for one cell, with its place and column."""
    return CellError(f"{place(table, row)}, column {shown(table.names[column])}: {problem}")
