"""What experts forecast before the last of their forecasts on an event."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opinionpool.earlier import Earlier
from opinionpool.tables.statements import LongRows, latest_rows

# How far probabilities over classes may be off 1 by rounding.
_OFF = 0.02


def earlier_forecasts(long_rows: LongRows, last: LongRows, order: Sequence[int]) -> Earlier | None:
    """For each of M forecasts that count, the one that its expert made before; None if nobody did, or without times.

    What was withdrawn in between, lacks a class or does not add up to 1 is none.

    `last` are those that count, one row each; `order` is that of classes among those of the rows.
    """
    if long_rows.time is None or last.time is None or not len(last.value):
        return None
    pair = last.pair
    place = np.minimum(np.searchsorted(pair, long_rows.pair), len(pair) - 1)
    before = (pair[place] == long_rows.pair) & (long_rows.time < last.time[place])
    blank = np.isnan(long_rows.value)
    withdrawn = np.full(len(pair), np.datetime64("NaT", "us"))
    np.fmax.at(withdrawn, place[before & blank], long_rows.time[before & blank])
    before &= ~blank & ~(long_rows.time < withdrawn[place])
    if not before.any():
        return None
    rows = latest_rows(long_rows.select(before), None, ())
    assert rows.time is not None
    if not rows.classes:
        return Earlier(rows.value, rows.time).placed(np.searchsorted(pair, rows.pair), len(pair))
    k = len(order)
    _, starts, counts = np.unique(rows.pair, return_index=True, return_counts=True)
    starts = starts[counts == k]
    table = rows.value[starts[:, None] + np.asarray(order)]
    total = table.sum(axis=1)
    proper = np.abs(total - 1.0) <= _OFF
    starts, table = starts[proper], table[proper] / total[proper, None]
    own = Earlier(table if k > 2 else table[:, 1], rows.time[starts])
    return own.placed(np.searchsorted(pair, rows.pair[starts]), len(pair)).or_none()
