"""A bounded sample of events for what needs rows, the same however they came: at once, in parts or in a stream of them.

Of each outcome as many events as there is room for, those whose numbers in the file have the least priorities, weighted
so that outcomes are as frequent as they were. Events of the outcome that the sample has most of count as one each, so
that nobody is surer than the sample allows. On 20,000 events, N experts are weighed about N / 40,000 nats worse than
on any number of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import Array
from opinionpool.records import row_keys

__all__ = ["EVENTS", "FORECASTS", "bounded_sample", "least", "rooms", "sample_note", "stands_for"]

# Resolved events that are learned from, and forecasts in them.
EVENTS, FORECASTS = 20_000, 1_000_000
# Of unresolved events so many times fewer are looked at: they tell who repeats whom, and little else.
FEWER = 5

Keys = npt.NDArray[np.uint64]
Index = npt.NDArray[np.intp]


def rooms(experts: int, classes: int) -> Index:
    """How many events of each outcome there is room for, and last of unresolved ones, (K + 1,)."""
    room = max(1, min(EVENTS, FORECASTS // experts) // classes)
    return np.array([*[room] * classes, max(1, room // FEWER)], dtype=np.intp)


def least(keys: Keys, group: Index, room: Index) -> tuple[npt.NDArray[np.bool_], Keys]:
    """Which events are kept, and for each group the least key that found no room.

    >>> kept, beyond = least(np.array([5, 3, 9], dtype=np.uint64), np.array([0, 0, 0]), np.array([2]))
    >>> kept.tolist(), beyond.tolist()
    ([True, True, False], [9])
    """
    kept = np.ones(len(keys), dtype=bool)
    beyond = np.full(len(room), np.iinfo(np.uint64).max, dtype=np.uint64)
    for g, size in enumerate(room.tolist()):
        mine = np.flatnonzero(group == g)
        if len(mine) > size:
            out = mine[np.argpartition(keys[mine], size)[size:]]
            kept[out] = False
            beyond[g] = keys[out].min()
    return kept, beyond


def stands_for(outcomes: Index, counts: Array) -> Array:
    """How often each event of a sample counts, (T,); 1 where not resolved.

    Parameters
    ----------
    outcomes : ndarray of int, shape (T,)
        Of the sample, -1 where not resolved.
    counts : ndarray, shape (K,)
        All resolved events by outcome.
    """
    held = np.bincount(outcomes[outcomes >= 0], minlength=len(counts))
    each = counts / np.maximum(held, 1)
    return np.asarray(np.append(each / each[held > 0].min(initial=np.inf), 1.0)[outcomes])


def bounded_sample(forecasts: Forecasts, weight: Array) -> tuple[Index, Array] | None:
    """Positions of the events to learn from and how often each counts; None if all are, as where they have weights."""
    k = len(forecasts.classes)
    room = rooms(len(forecasts.experts), k)
    group = np.where(forecasts.resolved, forecasts.outcomes, k)
    counts = np.bincount(group, minlength=k + 1)
    if forecasts.options is not None or (counts[:k] <= room[:k]).all() or (weight != weight[0]).any():
        return None
    kept = np.flatnonzero(least(row_keys(0, len(group), 0), group, room)[0])
    return kept, stands_for(forecasts.outcomes[kept], counts[:k].astype(np.float64))


def sample_note(used: int, resolved: int) -> Note:
    """What is to be said of a sample."""
    text = f"{used:,} of {resolved:,} resolved events were used to learn whom to believe; the prior is from all of them"
    return Note("sample", text, used)
