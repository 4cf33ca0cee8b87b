"""Statistics of arrays of forecasts, in blocks: one logarithm and one product per forecast, and no copy.

Forecasts over K classes are K - 1 levels, log-ratios in coordinates in which inner products are plain; of two classes
there is one, the log-odds. Events on which the same experts are missing are added up together, as long as there are not
so many different sets of experts that rows would be smaller.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Floats, Index, Mask, each_pattern
from opinionpool.blocks import Bounds, blocks, floored_log_odds, in_order, pieces, rows_of_block
from opinionpool.estimation.statistics import RawSums, Statistics, enough_digits
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import SUM_TOLERANCE, check_probabilities, class_floors, metric, raise_to_floors

# Positions of classes, in integers of any size.
Codes: TypeAlias = npt.NDArray[np.integer[Any]]
# A mean of log-odds so close to 0 costs no digits.
NEAR = 0.5
# Events for each set of experts, on average, below which rows are faster; and numbers in all moments together.
REPEATED, MOST_MOMENTS = 16, 1 << 22


class _NotHereError(Exception):
    """Error for input that needs another method, or is no probability."""


class _LogOdds:
    """Reader of binary forecasts (T, N) in blocks, as log-odds clipped at the floor, less `origin`."""

    def __init__(self, q: Floats, prior: Array, floor: float) -> None:
        self.q, self.bounds, self.ratios = q, Bounds.of(prior, floor), np.eye(1)
        few = q[:: len(q) // 64 + 1]
        some = floored_log_odds(few, self.bounds, np.empty(few.shape))
        known = some[~np.isnan(some)]
        origin = float(np.median(known)) if known.size else 0.0
        self.origin = origin if abs(origin) > NEAR else 0.0

    def buffer(self, events: int) -> Floats:
        """Memory for a block of a number of events."""
        return np.empty((events, self.q.shape[1]))

    def read(self, rows: slice, buffer: Floats) -> Floats:
        """Clipped log-odds of the events `rows` less `origin`, (1, T, N), NaN where missing."""
        ratios = floored_log_odds(self.q[rows], self.bounds, buffer[: rows.stop - rows.start])
        if self.origin:
            ratios -= self.origin
        return ratios[None]

    def missing(self, rows: slice) -> Mask:
        """Mask of missing forecasts, (T, N)."""
        return np.asarray(np.isnan(self.q[rows]))


class _ClassLevels:
    """Reader of forecasts over K > 2 classes, (T, N, K), as whitened levels, which `ratios` maps to log-ratios."""

    origin = 0.0

    def __init__(self, q: Floats, prior: Array, floor: float) -> None:
        k = q.shape[2]
        root = np.linalg.cholesky(metric(k))
        # From log-probabilities; what they have in common, such as their normalisation, drops out.
        self.whitening = np.ascontiguousarray((np.concatenate([-np.ones((1, k - 1)), np.eye(k - 1)]) @ root).T)
        self.q, self.floors, self.ratios = q, class_floors(floor, prior, 100.0), np.asarray(np.linalg.inv(root))

    def buffer(self, events: int) -> Floats:
        return np.empty((events * self.q.shape[1], self.q.shape[2]))

    def read(self, rows: slice, buffer: Floats) -> Floats:
        t, n, k = self.q[rows].shape
        flat, logs = self.q[rows].reshape(t * n, k), buffer[: t * n]
        least, most = float(np.fmin.reduce(flat, axis=None)), float(np.fmax.reduce(flat, axis=None))
        off = np.abs(flat @ np.ones(k) - 1.0) > SUM_TOLERANCE
        if least < 0 or most > 1 or off.any():
            raise _NotHereError
        np.copyto(logs, flat)
        bound = self.floors.max() * (1.0 + 2.0 * SUM_TOLERANCE)
        if least < bound:
            low = np.unique(np.flatnonzero(flat.ravel() < bound) // k)
            logs[low] = raise_to_floors(flat[low] / flat[low].sum(axis=1, keepdims=True), self.floors)
        np.log(logs, out=logs)
        return np.asarray(self.whitening @ logs.T).reshape(k - 1, t, n)

    def missing(self, rows: slice) -> Mask:
        # Some classes only are no forecast, and are refused elsewhere.
        return np.asarray(np.isnan(self.q[rows]).all(axis=2))


_Levels: TypeAlias = _LogOdds | _ClassLevels


def dense_statistics(
    q: Floats, outcomes: Codes, prior: Array, floor: float, experts: tuple[str, ...], threads: int | None = None
) -> Statistics | None:
    """Statistics of the log-ratios of forecasts `q`, (T, N) or (T, N, K); None if unsuitable.

    That is where too many different sets of experts answered, or sums are off 1. Outcomes are positions of classes, -1
    where unresolved, of any integers; the prior, (K,), sets only the floors.
    A ProbabilityError names the first value outside [0, 1]. The number of threads has no influence on the result.

    >>> q, outcomes = np.array([[0.6], [0.5], [0.7], [0.4]]), np.array([1, 0, 1, 0])
    >>> found = dense_statistics(q, outcomes, np.array([0.5, 0.5]), 1e-4, ("ann",))
    >>> found.patterns[0,].mean[:2, 0, 0].round(4)
    array([-0.2027,  0.6264])
    """
    n, groups = len(experts), np.append(np.arange(len(prior)), UNRESOLVED)
    try:
        levels = _LogOdds(q, prior, floor) if q.ndim == 2 else _ClassLevels(q, prior, floor)
        sums = _summed(levels, outcomes, groups, n, threads)
        if enough_digits(sums, n):
            moments = {columns: each.moments(levels.origin, levels.ratios) for columns, each in sums.items()}
            counts = [np.count_nonzero(outcomes == group) for group in groups]
            return Statistics(experts, len(prior), np.array(counts, dtype=np.float64), moments)
    except _NotHereError:
        # What is missing goes another way, and what is wrong is reported here.
        check_probabilities(q)
        return None
    found = Statistics.empty(experts, len(prior))
    for rows in blocks(len(q), q[0].size):
        ratios = logodds.log_ratios(np.asarray(q[rows], dtype=np.float64), prior, floor)
        found = found.add(ratios, outcomes[rows].astype(np.intp))
    return found


def _include(sums: dict[bytes, RawSums], key: bytes, more: RawSums, most: int) -> None:
    """Add `more` to the `sums` by pattern (mask of the experts who answered, as bytes), of which there are `most`."""
    if key in sums:
        sums[key].include(more)
    elif len(sums) < most:
        sums[key] = more
    else:
        raise _NotHereError


def _summed(
    levels: _Levels, outcomes: Codes, groups: Index, n: int, threads: int | None
) -> dict[tuple[int, ...], RawSums]:
    """Sums of levels by pattern, a tuple of the positions of the experts who answered together."""
    t, numbers = len(outcomes), n * (1 if isinstance(levels, _LogOdds) else len(groups) - 1)
    most, total = max(1, min(t // max(n, REPEATED), MOST_MOMENTS // n**2)), dict[bytes, RawSums]()
    work = list(pieces(t, numbers))
    found = partial(_sums, levels, outcomes, groups, n, numbers, most)
    for part in in_order(found, work, threads) if len(work) > 1 else map(found, work):
        for key, sums in part.items():
            _include(total, key, sums, most)
    columns = {key: np.flatnonzero(np.frombuffer(key, dtype=bool)) for key in total}
    return {tuple(c.tolist()): total[key].among(c) for key, c in columns.items() if len(c)}


def _sums(
    levels: _Levels, outcomes: Codes, groups: Index, n: int, numbers: int, most: int, piece: slice
) -> dict[bytes, RawSums]:
    """Sums of levels over the events in `piece`, by pattern."""
    buffer = levels.buffer(min(rows_of_block(numbers), piece.stop - piece.start))
    total, everyone = dict[bytes, RawSums](), np.ones(n, dtype=bool).tobytes()
    for rows in blocks(piece, numbers):
        block, member = levels.read(rows, buffer), (outcomes[rows] == groups[:, None]).astype(np.float64)
        sums = RawSums.of(block, member, None)
        if np.isfinite(sums.total).all():
            _include(total, everyone, sums, most)
            continue
        absent = np.isnan(block[0])
        if not np.array_equal(absent, levels.missing(rows)):
            raise _NotHereError
        # Those who are missing add nothing.
        np.copyto(block, 0.0, where=absent)
        for some, columns in each_pattern(~absent):
            its = slice(None) if len(some) == len(absent) else some
            key = np.isin(np.arange(n), columns).tobytes()
            _include(total, key, RawSums.of(block[:, its], member[:, its], None), most)
    return total
