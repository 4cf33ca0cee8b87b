"""Work on blocks of events that fit into the cache, and on threads; log-odds of forecasts in a block."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from opinionpool.arrays import Array, Floats
from opinionpool.logodds import log_ratios

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# Numbers in a block, 512 KB of float64: temporaries stay in the cache.
BLOCK = 1 << 16
# Blocks in a piece of work for a thread.
PIECE = 32
# Up to so many numbers, two plain loops are faster than the one of `np.clip`, which takes longer to begin.
SMALL = 1 << 12


class Bounds(NamedTuple):
    """Smallest and largest log-odds that a forecast of two classes may have; those beyond are set to these."""

    low: float | Array
    high: float | Array

    @classmethod
    def of(cls, prior: Array, floor: float) -> Bounds:
        """Return the bounds from the classes' `prior` (2,) and the lowest probability `floor` that counts."""
        low, high = log_ratios(np.array([0.0, 1.0]), prior, floor)[:, 0].tolist()
        return cls(low, high)


def floored_log_odds(q: Floats, bounds: Bounds, out: Floats) -> Floats:
    """Write log-odds of probabilities `q`, within `bounds`, into `out`, which has the shape of `q`, and return `out`.

    Log-odds are NaN where `q` is NaN or outside [0, 1].

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


def within(values: Floats, low: float | Array, high: float | Array) -> Floats:
    """Return `values`, changed in place to lie between `low` and `high`."""
    if values.size > SMALL:
        return np.clip(values, low, high, out=values)
    np.maximum(values, low, out=values)
    return np.minimum(values, high, out=values)


def blocks(events: int | slice, numbers: int, least: int = 1) -> Iterator[slice]:
    """Yield consecutive slices of `events`, a number or slice, each of about `BLOCK` numbers, `numbers` for each event.

    All but the last have at least `least` events.

    >>> list(blocks(5, 1 << 15))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    first, last = (0, events) if isinstance(events, int) else (events.start, events.stop)
    size = max(least, rows_of_block(numbers))
    return (slice(start, min(start + size, last)) for start in range(first, last, size))


def pieces(events: int, experts: int) -> Iterator[slice]:
    """Yield slices of `events`, one for each task of a thread; a slice has `PIECE` blocks (see `rows_of_block`)."""
    return blocks(events, experts, PIECE * rows_of_block(experts))


def rows_of_block(experts: int) -> int:
    """Return the number of events in a block if an event has a number for each of `experts` experts."""
    return max(1, BLOCK // max(experts, 1))


Piece = TypeVar("Piece")
Result = TypeVar("Result")


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], threads: int | None = None) -> Iterator[Result]:
    """Yield the results of `work` for each piece, in order; `threads` threads have at most two pieces each at a time.

    >>> list(in_order(lambda x: x * x, range(4), threads=2))
    [0, 1, 4, 9]
    """
    threads = processors() if threads is None else threads
    with _controller().limit(limits=1, user_api="blas"):
        if threads == 1:
            yield from map(work, pieces)
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for piece in pieces:
                    waiting.append(pool.submit(work, piece))
                    if len(waiting) == 2 * threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


@cache
def _controller() -> ThreadpoolController:
    """Return the controller that limits BLAS to 1 thread while work runs on threads; cached, as it is slow to make."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
