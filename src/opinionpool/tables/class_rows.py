"""Rows of one class each, folded to a row per forecast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import CellError, Note
from opinionpool.logodds import SUM_TOLERANCE
from opinionpool.tables.frames import place
from opinionpool.tables.statements import EXACT, LongRows
from opinionpool.text import shown


def fold_classes(
    long_rows: LongRows, order: Sequence[int], half_units: Callable[[LongRows], Array], drop_incomplete: bool = False
) -> tuple[LongRows, Array, list[Note]]:
    """Forecasts of K classes, one row each.

    Parameters
    ----------
    long_rows : LongRows
        One number for each expert, event and class.
    order : sequence of int
        Index of the classes in the order wanted.
    half_units : callable
        Half a unit of the last written digit of statements, for the tolerance of sums.
    drop_incomplete : bool
        Whether forecasts that lack a class are left out.

    Returns
    -------
    first : LongRows
        One statement per forecast.
    probabilities : ndarray, shape (forecasts, K)
        Rows that sum to 1.
    notes : list of Note

    Raises
    ------
    CellError
        If a forecast lacks a class, or its probabilities do not add up to 1.
    """
    size = len(long_rows.classes)
    long_rows = long_rows.select(np.argsort(long_rows.key, kind="stable"))
    _, starts, counts = np.unique(long_rows.pair, return_index=True, return_counts=True)
    dropped: list[Note] = []
    short = counts != size
    if short.any():
        if not drop_incomplete:
            raise _lacking(long_rows, int(starts[short.argmax()]), int(short.sum()))
        long_rows, starts, _, dropped = without_incomplete(long_rows, counts, short)
    table = long_rows.value.reshape(-1, size)
    total = table.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
    if len(off):
        cells = (off[:, None] * size + np.arange(size)).ravel()
        slack = half_units(long_rows.select(cells)).reshape(-1, size).sum(axis=1)
        beyond = (np.abs(total[off] - 1) > slack + 1e-9) | (total[off] <= 0)
        if beyond.any():
            raise off_sum(long_rows, int(off[beyond.argmax()]) * size, float(total[off[beyond.argmax()]]))
    uneven = np.abs(total - 1) > EXACT
    if uneven.any():
        table = np.where(uneven[:, None], table / total[:, None], table)
    return (
        long_rows.select(starts),
        np.ascontiguousarray(table[:, list(order)]),
        [*dropped, *normalised_note(total, uneven)],
    )


def without_incomplete(
    long_rows: LongRows, counts: Index, short: npt.NDArray[np.bool_]
) -> tuple[LongRows, Index, Index, list[Note]]:
    """Rows in the order of their keys, without forecasts that lack a class; where each begins, and how long it is."""
    long_rows = long_rows.select(np.repeat(~short, counts))
    counts = counts[~short]
    count = int(short.sum())
    template = "{count:forecast} left out that lack a class or option which others on the event have"
    return long_rows, np.cumsum(counts) - counts, counts, [Note.of("incomplete", template, count)]


def normalised_note(total: Array, uneven: npt.NDArray[np.bool_]) -> list[Note]:
    """What to say of forecasts whose sums were off by rounding, if there are any."""
    if not uneven.any():
        return []
    count, worst = int(uneven.sum()), float(np.abs(total - 1).max())
    template = "{count} of {total:forecast} did not add up to 1 by rounding ({worst:.2g} at most): normalised"
    return [Note.of("normalised", template, count, len(total), worst)]


def _lacking(long_rows: LongRows, start: int, count: int) -> CellError:
    present = long_rows.label[long_rows.pair == long_rows.pair[start]]
    lacking = next(name for i, name in enumerate(long_rows.classes) if i not in present)
    return CellError(
        f"the forecast by {long_rows.who(start)} has no probability for class {shown(lacking)} "
        f"({place(long_rows.table, int(long_rows.row[start]))}); a forecast must give one for each of "
        f"{len(long_rows.classes)} classes; --drop-incomplete leaves out those that do not",
        remedies=[{"drop_incomplete": True}],
        count=count,
    )


def off_sum(long_rows: LongRows, start: int, total: float) -> CellError:
    """The error for a forecast whose probabilities do not add up to 1."""
    return CellError(
        f"the probabilities by {long_rows.who(start)} add up to {total:.6g} over the classes, and not to 1 "
        f"({place(long_rows.table, int(long_rows.row[start]))})"
    )
