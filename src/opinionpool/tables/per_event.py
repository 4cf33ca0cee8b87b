"""Facts of events that stand on several rows: one value each, or an error that names the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index
from opinionpool.findings import fault
from opinionpool.tables.table import Table, place
from opinionpool.text import shown


def one_per_key(
    values: npt.NDArray[Any], present: npt.NDArray[np.bool_], keys: Index, count: int
) -> tuple[Index, tuple[int, int] | None]:
    """For each key the first row with a value, and two rows that differ.

    Keys are in 0 .. count - 1, or -1 for rows about none; first is -1 where no row has a value.

    >>> import numpy as np
    >>> values, keys = np.array([7, 8, 7, 9]), np.array([0, 1, 0, 1])
    >>> one_per_key(values, values > 0, keys, 3)
    (array([ 0,  1, -1]), (1, 3))
    """
    # Rows that follow each other with the same are looked at once.
    new = (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])
    rows = np.append(0, np.flatnonzero(new) + 1) if len(keys) else np.empty(0, dtype=np.intp)
    rows = rows[present[rows] & (keys[rows] >= 0)]
    first = np.full(count, -1)
    first[keys[rows][::-1]] = rows[::-1]
    differing = rows[values[first[keys[rows]]] != values[rows]]
    if not len(differing):
        return first, None
    return first, (int(first[keys[differing[0]]]), int(differing[0]))


def take(values: npt.NDArray[Any], rows: Index, blank: object) -> npt.NDArray[Any]:
    """The values of some rows, `blank` where a row is -1."""
    found = np.full(len(rows), np.array(blank, dtype=values.dtype))
    there = rows >= 0
    found[there] = values[rows[there]]
    return found


def event_values(
    table: Table,
    column: int,
    values: npt.NDArray[Any],
    blank: object,
    row_events: Index,
    events: Sequence[str],
) -> npt.NDArray[Any]:
    """A column that has one value per event, (events,).

    Values are `blank`, NaN or NaT where the cell is.
    """
    present = (values == values) & (values != np.array(blank, dtype=values.dtype))
    first, clash = one_per_key(values, present, row_events, len(events))
    if clash is not None:
        words = table.words(column)
        one, two = (f"{shown(words.values[words.codes[row]])} ({place(table, row)})" for row in clash)
        event, header = events[row_events[clash[1]]], table.names[column]
        raise fault("two-values", event=event, column=header, one=one, other=two)
    return take(values, first, blank)
