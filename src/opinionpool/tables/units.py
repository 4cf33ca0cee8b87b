"""Percentages beside fractions in one table: whose numbers are which, and how that is settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import CellError, Note, Remedy
from opinionpool.tables.cells import NumberRules
from opinionpool.tables.table import Table, Words, cell_error
from opinionpool.text import listed, quoted, shown

# So many numbers of exactly 1, and none above, are no percentages where those of others are.
_ONES = 3


def units_of_rows(experts: Sequence[str], codes: Index, rules: NumberRules) -> npt.NDArray[np.int8] | None:
    """Whether the number in each row is a percentage, 1, or a fraction, 0, by its expert, -1 where nobody says it.

    None if that is so in all rows; codes of experts are -1 for nobody.
    """
    if not set(experts) & set(rules.units):
        return None
    of = [int(rules.units[name] == "percent") if name in rules.units else -1 for name in experts]
    return np.append(np.array(of, dtype=np.int8), np.int8(-1))[codes]


class Written:
    """How many numbers of each expert or column lie above 1, and how many within 0 and 1, before units are known."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._first: dict[str, tuple[int, int]] = {}  # the cell of the first number above 1
        self._above: dict[str, int] = {}
        self._inside: dict[str, int] = {}
        self._beyond: set[str] = set()

    def add(self, name: str, values: Array, column: int, rows: Index | None = None) -> None:
        """Take in numbers of a column, NaN where there is none, in some rows, or in all."""
        known = values[~np.isnan(values)]
        above = np.flatnonzero((values > 1.000001) & (values <= 100))
        if len(above):
            self._first.setdefault(name, (int(above[0] if rows is None else rows[above].min()), column))
        self._above[name] = self._above.get(name, 0) + len(above)
        self._inside[name] = self._inside.get(name, 0) + int(((known > 0) & (known < 1)).sum())
        if ((known < 0) | (known > 100)).any():
            self._beyond.add(name)

    def check(self, *, columns: bool) -> None:
        """Refuse percentages of some beside fractions of others.

        Parameters
        ----------
        columns : bool
            Whether each expert has a column, which may hold no forecasts at all.

        Raises
        ------
        CellError
            Names both, and the ways out.
        """
        large = [name for name, count in self._above.items() if count > self._inside[name] and name not in self._beyond]
        small = [name for name, count in self._inside.items() if count and not self._above[name]]
        small = [name for name in small if name not in self._beyond]
        if not large or not small:
            return
        few = large if len(large) <= len(small) else small
        remedies: list[Remedy] = [{"units": dict.fromkeys(large, "percent")}]
        if few is small:
            remedies = [{"percent": True, "units": dict.fromkeys(small, "fraction")}]
        unit = f"--unit {_one(large)}=percent" if few is large else f"--percent --unit {_one(small)}=fraction"
        way = f"say {unit} if those are percentages and these fractions"
        if columns and few is large:
            way += f", or --exclude {_one(large)} if that is no expert"
            remedies.append({"exclude": tuple(large)})
        row, column = self._first[large[0]]
        words = self._table.words(column)
        cell = words.values[words.codes[row]]
        problem = (
            f"{cell} is not between 0 and 1; all numbers of {listed(small, 4)} are, and those of {listed(large, 4)} "
            f"are not: {way}"
        )
        raise cell_error(self._table, row, column, problem, remedies=remedies)


def check_experts(table: Table, column: int, written: Array, experts: Words, rules: NumberRules) -> None:
    """Refuse percentages by some experts beside fractions by others in one column, (rows,) as it is written.

    Raises
    ------
    CellError
        Names both, and the ways out.
    """
    if not (written > 1).any():
        return
    found = Written(table)
    order = np.argsort(experts.codes, kind="stable")
    bounds = np.searchsorted(experts.codes[order], np.arange(len(experts.values) + 1))
    for i, name in enumerate(experts.values):
        if name not in rules.units:
            rows = order[bounds[i] : bounds[i + 1]]
            found.add(name, written[rows], column, rows)
    found.check(columns=False)


def check_percent(
    experts: Sequence[str], above: Index, inside: Index, ones: Index, every: Index, rules: NumberRules
) -> None:
    """Refuse numbers of an expert that, read as percentages, are all up to 1%, where those of others are not.

    Parameters
    ----------
    experts : sequence of str
    above, inside, ones, every : ndarray of int, shape (experts,)
        How many numbers are above 1%, within 0 and 1%, exactly 1%, and how many there are.
    rules : NumberRules

    Raises
    ------
    CellError
        Names them, and the ways out.
    """
    if not rules.percent or not (above > 0).any():
        return
    tiny = (every > 0) & (above == 0) & ((inside > 0) | (ones >= _ONES))
    odd = [experts[i] for i in np.flatnonzero(tiny).tolist() if experts[i] not in rules.units]
    if not odd:
        return
    fractions: Mapping[str, str] = dict.fromkeys(odd, "fraction")
    raise CellError(
        f"with --percent, no number of {listed(odd, 4)} is above 1%, and those of others are: say --unit "
        f"{_one(odd)}=fraction if 0.5 means 50% there, --unit {_one(odd)}=percent if it means 0.5%",
        remedies=[{"units": fractions}, {"units": dict.fromkeys(odd, "percent")}],
        count=len(odd),
    )


def small_percent_notes(experts: Sequence[str], above: Index, inside: Index, rules: NumberRules) -> list[Note]:
    """A note on experts no more of whose percentages are above 1% than between 0 and 1%; arguments as above."""
    if not rules.percent:
        return []
    mixed = np.flatnonzero((above > 0) & (inside >= above)).tolist()
    names = [experts[i] for i in mixed if experts[i] not in rules.units]
    if not names:
        return []
    text = f"numbers below 1 of {listed(names, 4)} count as less than 1%, 0.5 as 0.5%: write 50 if 50% is meant"
    return [Note("small-percentages", text, len(names))]


def check_prior(table: Table, column: int, written: Array) -> None:
    """Refuse priors that are percentages beside forecasts that have been read as they are; NaN where there is none."""
    known = written[~np.isnan(written)]
    if not ((known > 1) & (known <= 100)).sum() > ((known > 0) & (known < 1)).sum() or known.max() > 100:
        return
    name = table.names[column]
    raise CellError(
        f"{table.name}: column {shown(name)} goes beyond 1: say --unit {quoted(name)}=percent if it holds percentages",
        remedies=[{"units": {name: "percent"}}],
        count=int((known > 1).sum()),
    )


def tiny_prior(table: Table, column: int) -> CellError:
    """The error for priors of 1% at most, with --percent."""
    name = table.names[column]
    return CellError(
        f"{table.name}: with --percent, no number in column {shown(name)} is above 1%: say --unit "
        f"{quoted(name)}=fraction if 0.5 means 50% there, --unit {quoted(name)}=percent if it means 0.5%",
        remedies=[{"units": {name: unit}} for unit in ("fraction", "percent")],
    )


def _one(names: Sequence[str]) -> str:
    return quoted(names[0]) if len(names) == 1 else "NAME"
