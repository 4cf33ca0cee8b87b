"""Events in blocks that stay in the cache, and the log-odds of binary forecasts in a buffer of that size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array, log_ratios

Floats: TypeAlias = npt.NDArray[Any]

# Numbers in a block, 512 KB of float64: temporaries stay in the cache.
BLOCK = 1 << 16
# Blocks in a piece of work for a thread.
PIECE = 32
# Up to so many numbers, two plain loops are faster than the one of `np.clip`, which takes longer to begin.
SMALL = 1 << 12


class Bounds(NamedTuple):
    """The log-odds of a probability at the floor of either class."""

    low: float
    high: float

    @classmethod
    def of(cls, prior: Array, floor: float) -> Bounds:
        """Bounds for a prior of shape (2,)."""
        low, high = log_ratios(np.array([0.0, 1.0]), prior, floor)[:, 0].tolist()
        return cls(low, high)


def floored_log_odds(q: Floats, bounds: Bounds, out: Floats) -> Floats:
    """Log-odds of probabilities, within bounds, in `out`, of the same shape and with its precision.

    NaN where q is NaN or is no probability.

    >>> q = np.array([0.5, 0.0, 1.5])
    >>> floored_log_odds(q, Bounds(-9.0, 9.0), np.empty(3))
    array([ 0., -9., nan])
    """
    kind = out.dtype
    with np.errstate(divide="ignore", invalid="ignore"):
        np.subtract(1.0, q, out=out, dtype=kind)
        np.divide(q, out, out=out, dtype=kind)
        np.log(out, out=out)
    return within(out, bounds.low, bounds.high)


def within(values: Floats, low: float, high: float) -> Floats:
    """The values, in place, moved to the ends of a range where they lie outside."""
    if values.size > SMALL:
        return np.clip(values, low, high, out=values)
    np.maximum(values, low, out=values)
    return np.minimum(values, high, out=values)


def pieces(events: int, experts: int) -> Iterator[slice]:
    """Slices of events, `PIECE` blocks each."""
    size = PIECE * rows_of_block(experts)
    for start in range(0, events, size):
        yield slice(start, min(start + size, events))


def blocks_of(piece: slice, experts: int) -> Iterator[slice]:
    """The blocks of a piece."""
    size = rows_of_block(experts)
    for start in range(piece.start, piece.stop, size):
        yield slice(start, min(start + size, piece.stop))


def blocks(events: int, numbers: int) -> Iterator[slice]:
    """The blocks of all events, with so many numbers each.

    >>> list(blocks(5, 1 << 15))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return blocks_of(slice(0, events), numbers)


def rows_of_block(experts: int) -> int:
    """Events in a block."""
    return max(1, BLOCK // max(experts, 1))
