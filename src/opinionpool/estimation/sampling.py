"""A bounded sample of events for what needs rows, the same however they came: at once, in parts or in a stream of them.

Of each outcome as many events as there is room for, those whose numbers in the file have the least priorities, weighted
so that outcomes are as frequent as they were. Events of the outcome that the sample has most of count as one each, so
that no posterior is narrower than the sample allows. On 20,000 events, N experts are weighed about N / 40,000 nats
worse than on any number of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts

_WORD = (1 << 64) - 1


def priorities(keys: npt.NDArray[np.uint64], log_weight: npt.ArrayLike) -> Array:
    """Logarithms of exponential times with rates `weight`: the least of them are a sample without replacement.

    The inclusion probability grows with the weight; all weights times a constant change nothing (Cohen and Kaplan 2007,
    bottom-k sketches).
    """
    u = ((keys >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(np.log(-np.log(u)) - log_weight)


def mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Keys that look drawn at random, the same for the same number (splitmix64)."""
    with np.errstate(over="ignore"):
        z = keys * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def row_keys(first: int, count: int, seed: int) -> npt.NDArray[np.uint64]:
    """The same for rows first, first + 1, ... that have no ids."""
    with np.errstate(over="ignore"):
        start = np.uint64((first + 1 + 0x632BE59BD9B4E019 * (seed + 1)) & _WORD)
        return mixed(start + np.arange(count, dtype=np.uint64))


# Resolved events that are learned from, and forecasts in them.
EVENTS, FORECASTS = 20_000, 1_000_000
# Of unresolved events so many times fewer are looked at: they tell who repeats whom, and little else.
FEWER = 5

Keys = npt.NDArray[np.uint64]


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
    shrunken = np.bincount(outcomes[outcomes >= 0], minlength=len(counts))
    each = counts / np.maximum(shrunken, 1)
    return np.asarray(np.append(each / each[shrunken > 0].min(initial=np.inf), 1.0)[outcomes])


def bounded_sample(forecasts: Forecasts, weight: Array) -> tuple[Index, Array] | None:
    """Index of the events to learn from and how often each counts; None if all are, as where they have weights."""
    k = len(forecasts.classes)
    room = rooms(len(forecasts.experts), k)
    group = np.where(forecasts.resolved, forecasts.outcomes, k)
    counts = np.bincount(group, minlength=k + 1)
    if forecasts.options is not None or (counts[:k] <= room[:k]).all() or (weight != weight[0]).any():
        return None
    kept = np.flatnonzero(least(row_keys(0, len(group), 0), group, room)[0])
    return kept, stands_for(forecasts.outcomes[kept], counts[:k].astype(np.float64))


def sample_note(used: int, resolved: int) -> Note:
    """The note on a sample."""
    text = f"{used:,} of {resolved:,} resolved events were used to learn whom to believe; the prior is from all of them"
    return Note("sample", text, used)


def spread_evenly(size: Array, weight: Array, count: int) -> tuple[npt.NDArray[np.intp], Array]:
    """Index of events that stand for all, in order, and how many of `count` equal parts each stands for.

    Which events they are does not depend on the order and the frequencies in which these came.

    Parameters
    ----------
    size : ndarray, shape (T,)
        How telling each is.
    weight : ndarray, shape (T,)
        Frequencies.
    count : int
        How many there may be; they are drawn at equal steps of the sum of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> spread_evenly(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 2)
    (array([0, 1]), array([1., 1.]))
    """
    order = np.argsort(size, kind="stable")
    behind = np.cumsum(weight[order])
    places = (np.arange(count) + 0.5) / count * behind[-1]
    drawn = np.bincount(order[np.searchsorted(behind, places)], minlength=len(order))
    kept = np.flatnonzero(drawn)
    return kept, drawn[kept].astype(np.float64)
