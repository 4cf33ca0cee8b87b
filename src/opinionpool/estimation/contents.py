"""Numbers that stand for all that is known of an event but its id: the same wherever and however it comes.

Hashes of 64 bits: sums over its forecasts, of numbers that depend on the probability and on whose it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Floats, Index
from opinionpool.blocks import blocks, rows_of_block
from opinionpool.forecasts import Forecasts

Keys = npt.NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Keys that look drawn at random, the same for the same number (splitmix64)."""
    found = np.asarray(keys * GOLDEN)
    flat = found.reshape(-1)
    # Blocks stay in the cache.
    for rows in blocks(len(flat), 1):
        mix(flat[rows])
    return found


def mix(z: Keys) -> None:
    """What `mixed` does after the first product, in place."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)


def name_keys(names: Iterable[str]) -> Keys:
    """Odd numbers of 64 bits that stand for names."""
    digests = [hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64) | np.uint64(1)


def _places(of: Keys) -> Array:
    """Numbers from 1 to 2 that stand for experts."""
    return 1.0 + (mixed(of) >> np.uint64(12)).astype(np.float64) * 2.0**-52


def _cell_keys(values: Array, places: Array) -> Keys:
    """A number for each probability, 0 where it is missing; `places` broadcast, and distinguish experts."""
    moved = values + places
    # The bits of a square depend on all those of a probability and on whose it is, in a way that sums do not undo.
    found = np.square(moved, out=moved).view(np.uint64)
    found[np.isnan(values)] = 0
    return found


class RowContents:
    """What stands for all forecasts on each event of an array, block by block.

    Parameters
    ----------
    experts : ndarray of uint64, shape (N,)
        What stands for the experts, as from `name_keys`.
    """

    def __init__(self, experts: Keys) -> None:
        self.experts, rows = experts, rows_of_block(len(experts))
        # As long as a block: loops over single rows are slow.
        self._places = np.tile(_places(experts), (rows, 1))
        self._buffer = np.empty((rows, len(experts)))

    def of(self, block: Floats, *, complete: bool) -> Keys:
        """That of the events of a block, (t, N), in which no forecast is missing if it is `complete`."""
        if not complete:
            values = np.asarray(block, dtype=np.float64)
            return np.asarray(_cell_keys(values, self._places[: len(block)]).sum(axis=1))
        moved = np.add(block, self._places[: len(block)], out=self._buffer[: len(block)])
        np.square(moved, out=moved)
        return np.asarray(np.einsum("tn->t", moved.view(np.uint64)))


def row_contents(q: Floats, experts: Keys) -> Keys:
    """What stands for all forecasts on each event of an array, (T,).

    Parameters
    ----------
    q : ndarray, shape (T, N)
    experts : ndarray of uint64, shape (N,)
        What stands for the experts, as from `name_keys`.

    >>> q = np.array([[0.5, 0.2], [0.2, 0.5], [0.5, 0.2], [0.5, np.nan]])
    >>> np.unique(row_contents(q, name_keys(["ann", "bob"])), return_inverse=True)[1].size
    4
    """
    found, contents = np.empty(len(q), dtype=np.uint64), RowContents(experts)
    for rows in blocks(len(q), q.shape[1]):
        block = q[rows]
        found[rows] = contents.of(block, complete=not np.isnan(block).any())
    return found


def some_rows(q: Floats, one_in: int) -> Index:
    """Index of about one in so many rows of an array, the same rows in whatever order they come."""
    contents = row_contents(q, name_keys(map(str, range(q.shape[1]))))
    # A part of a part is not the same part again.
    return np.flatnonzero(mixed(contents ^ np.uint64(len(q))) % np.uint64(one_in) == 0)


def event_contents(forecasts: Forecasts) -> Keys:
    """What stands for all that is known of each event but its id, (T,)."""
    t = len(forecasts.events)
    if t == 0:
        return np.zeros(0, dtype=np.uint64)
    experts, k = name_keys(forecasts.experts), len(forecasts.classes)
    classes = name_keys(map(str, range(k))) if forecasts.options is None else _option_keys(forecasts)
    with np.errstate(over="ignore"):
        found = _sums_of_cells(forecasts, experts, classes)
        if forecasts.prior is not None:
            places = _places(classes[..., : max(1, forecasts.prior[:1].size)])
            found += _cell_keys(forecasts.prior.reshape(t, -1), places).sum(axis=1)
        for column, values_of in (("times", np.int64), ("groups", None), ("topics", None)):
            known = getattr(forecasts, column)
            if known is not None:
                labels, place = np.unique(known, return_inverse=True)
                codes = (
                    name_keys(map(str, labels.tolist())) if values_of is None else labels.astype(values_of).view("u8")
                )
                found = mixed(found ^ codes[place])
    return found


def _sums_of_cells(forecasts: Forecasts, experts: Keys, classes: Keys) -> Keys:
    """The sum of what stands for the forecasts on each event, (T,), some events at a time."""
    values = forecasts.probabilities.reshape(len(forecasts.expert_index), -1)
    several = values.shape[1] > 1
    alike = classes.ndim == 1 or not several
    # Unless classes are those of events, one place for each expert, or expert and class.
    each = _places(experts[:, None] * classes if several else experts[:, None]) if alike else np.empty(0)
    starts, found = forecasts.starts, np.zeros(len(forecasts.events), dtype=np.uint64)
    for events in _together(starts, rows_of_block(values.shape[1])):
        first, stop = starts[events.start], starts[events.stop]
        expert = forecasts.expert_index[first:stop]
        own = forecasts.event_index[first:stop]
        places = each[expert] if alike else _places(experts[expert, None] * classes[own])
        # Rows that were normalised differ in their last digits by the order of the classes.
        given = np.round(values[first:stop], 9) if several else values[first:stop]
        keys = _cell_keys(given, places)
        # Sums of one number each take longer than all the rest.
        keys = keys.sum(axis=1, dtype=np.uint64) if several else keys[:, 0]
        some = forecasts.crowd[events] > 0
        found[events][some] = np.add.reduceat(keys, starts[:-1][events][some] - first)
    return found


def _together(starts: Index, size: int) -> Iterator[slice]:
    """Slices of events with about so many forecasts, in order, without those that are followed by none.

    >>> list(_together(np.array([0, 2, 4, 4, 9, 10, 10]), 4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    edges = np.unique(np.searchsorted(starts, [*range(0, starts[-1], size), starts[-1]])).tolist()
    yield from map(slice, edges[:-1], edges[1:])


def _option_keys(forecasts: Forecasts) -> Keys:
    """What stands for the option in each position, (T, K), 0 where an event has none: their order plays no part."""
    found = np.zeros((len(forecasts.events), len(forecasts.classes)), dtype=np.uint64)
    for row, options in zip(found, forecasts.options or (), strict=True):
        row[: len(options)] = name_keys(map(str, options))
    return found
