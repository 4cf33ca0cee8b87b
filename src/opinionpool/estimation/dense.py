"""Moments of arrays in blocks, without a copy of the forecasts: one logarithm and one product a forecast.

Forecasts over K classes are K - 1 levels, log-ratios in coordinates in which inner products are plain; of two classes
there is one, the log-odds. Events on which the same experts are missing are added up together, as long as there are not
so many different sets of experts that rows would be smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array, Floats, Index, Mask, group_patterns
from opinionpool.blocks import Bounds, blocks, blocks_of, floored_log_odds, in_order, pieces, rows_of_block
from opinionpool.estimation.moments import Moments, PatternMoments
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import SUM_TOLERANCE, check_probabilities, class_floors, metric, raise_to_floors

# Events whose outcomes are looked at together.
EVENTS = 1 << 16
# Up to so many experts a product with a copy is faster than the symmetric one.
FEW = 10
# The least share of a sum of squares that may lie about the means: below, too many digits are lost.
SAFE = {np.dtype(np.float64): 1e-3, np.dtype(np.float32): 0.05}
# A mean of log-odds so close to 0 costs no digits.
NEAR = 0.5
# Events for each set of experts, on average, below which rows are faster; and numbers in all moments together.
REPEATED, MOST_MOMENTS = 16, 1 << 22


@dataclass(frozen=True, eq=False)
class DenseOutcomes:
    """What happened: positions of classes, -1 where not resolved; or as it came, numbers 0 and 1 and NaN."""

    y: Floats  # (T,)
    counts: Array  # (K + 1,); events by outcome, and unresolved ones

    @classmethod
    def of(cls, y: Floats) -> DenseOutcomes | None:
        """Outcomes of binary events as they came; None if these are other labels."""
        if y.dtype.kind not in "biuf":
            return None
        counts = np.zeros(3)
        for start in range(0, len(y), EVENTS):
            part = y[start : start + EVENTS]
            counts[0] += np.count_nonzero(part == 0)
            counts[1] += np.count_nonzero(part == 1)
            counts[2] += np.count_nonzero(part != part) if y.dtype.kind == "f" else 0
        return cls(y, counts) if counts.sum() == len(y) else None

    @classmethod
    def of_codes(cls, codes: Index, classes: int) -> DenseOutcomes:
        """Outcomes as positions of K classes."""
        counts = np.bincount(np.where(codes < 0, classes, codes), minlength=classes + 1)
        return cls(codes, counts.astype(np.float64))

    @property
    def classes(self) -> int:
        """K."""
        return len(self.counts) - 1

    def codes(self, rows: slice | Index) -> Index:
        """Of some events the position of what happened, or -1."""
        part = self.y[rows]
        if self.y.dtype.kind == "f":
            return np.where(np.isnan(part), UNRESOLVED, part).astype(np.intp)
        return part.astype(np.intp)


class _NotHereError(Exception):
    """What is there goes another way, or is no probability."""


class _Levels(Protocol):
    """Levels of forecasts by N experts, block by block."""

    ratios: Array  # (K - 1, K - 1); from levels to log-ratios
    origin: float  # what was subtracted from levels
    kind: np.dtype[Any]

    def buffer(self, events: int) -> Floats:
        """Memory for a block of so many events."""

    def read(self, rows: slice, buffer: Floats) -> Floats:
        """The levels of some events, (K - 1, T, N), NaN where missing."""

    def missing(self, rows: slice) -> Mask:
        """Which forecasts are not there, (T, N)."""


class _LogOdds:
    """The level of binary forecasts."""

    def __init__(self, q: Floats, prior: Array, floor: float, kind: np.dtype[Any]) -> None:
        self.q, self.bounds, self.kind, self.ratios, self.origin = q, Bounds.of(prior, floor), kind, np.eye(1), 0.0
        if kind == np.float32:
            # Single precision needs an origin near the panel's mean.
            few = q[:: len(q) // 64 + 1]
            some = floored_log_odds(few, self.bounds, np.empty(few.shape))
            some = some[~np.isnan(some)]
            origin = float(np.median(some)) if some.size else 0.0
            self.origin = origin if abs(origin) > NEAR else 0.0

    def buffer(self, events: int) -> Floats:
        return np.empty((events, self.q.shape[1]), self.kind)

    def read(self, rows: slice, buffer: Floats) -> Floats:
        ratios = floored_log_odds(self.q[rows], self.bounds, buffer[: rows.stop - rows.start])
        if self.origin:
            ratios -= self.kind.type(self.origin)
        return ratios[None]

    def missing(self, rows: slice) -> Mask:
        return np.asarray(np.isnan(self.q[rows]))


class _ClassLevels:
    """The levels of forecasts over K > 2 classes, (T, N, K)."""

    origin = 0.0
    kind: np.dtype[Any] = np.dtype(np.float64)

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
        if least < self.floors.max() * (1.0 + 2.0 * SUM_TOLERANCE):
            np.copyto(logs, flat)
            low = np.unique(np.flatnonzero(flat.ravel() < self.floors.max() * (1.0 + 2.0 * SUM_TOLERANCE)) // k)
            own = logs[low]
            logs[low] = raise_to_floors(own / own.sum(axis=1, keepdims=True), self.floors)
            np.log(logs, out=logs)
        else:
            np.log(flat, out=logs)
        return np.asarray(self.whitening @ logs.T).reshape(k - 1, t, n)

    def missing(self, rows: slice) -> Mask:
        # Some classes only are no forecast, and are refused elsewhere.
        return np.asarray(np.isnan(self.q[rows]).all(axis=2))


@dataclass(eq=False)
class _Sums:
    """Weight, sums of levels and their cross-products about an origin; by outcome, and of unresolved events."""

    weight: Array  # (K + 1,)
    total: Array  # (K - 1, K + 1, N)
    cross: Array  # (2, N, N)

    @classmethod
    def none(cls, n: int, classes: int) -> _Sums:
        return cls(np.zeros(classes + 1), np.zeros((classes - 1, classes + 1, n)), np.zeros((2, n, n)))

    def include(self, other: _Sums) -> None:
        self.weight += other.weight
        self.total += other.total
        self.cross += other.cross

    def of_columns(self, columns: Index) -> _Sums:
        """The same for some of the experts."""
        return _Sums(self.weight, self.total[..., columns], self.cross[:, columns[:, None], columns])

    def scatter(self) -> Array:
        """Cross-products about the means, (2, N, N)."""
        mean = self.total / np.where(self.weight > 0, self.weight, 1.0)[:, None]
        between = [
            np.einsum("dgn,dgm->nm", self.total[:, part], mean[:, part]) for part in (slice(-1), slice(-1, None))
        ]
        return np.asarray(self.cross - np.stack(between), dtype=np.float64)

    def moments(self, origin: float, ratios: Array) -> PatternMoments:
        """The moments, with means as log-ratios."""
        mean = self.total / np.where(self.weight > 0, self.weight, 1.0)[:, None]
        mean = np.where(self.weight[:, None, None] > 0, np.einsum("dgn,de->gne", mean, ratios) + origin, 0.0)
        return PatternMoments(self.weight, mean, self.scatter())


@dataclass(eq=False)
class _Patterns:
    """Sums for each set of experts who answered together, by which of the N answered."""

    most: int  # how many sets there may be
    found: dict[bytes, _Sums] = field(default_factory=dict)

    def of(self, present: Mask, classes: int) -> _Sums:
        """The sums of a set, which may be new."""
        key = present.tobytes()
        if key not in self.found:
            if len(self.found) == self.most:
                raise _NotHereError
            self.found[key] = _Sums.none(len(present), classes)
        return self.found[key]

    def include(self, other: _Patterns, classes: int) -> None:
        """Add what another piece has."""
        for key, sums in other.found.items():
            self.of(np.frombuffer(key, dtype=bool), classes).include(sums)

    def moments(self, levels: _Levels) -> dict[tuple[int, ...], PatternMoments] | None:
        """Moments about the means, or None if too small a share of a sum of squares lies about them."""
        n = len(next(iter(self.found), b""))
        sums = {}
        for key, each in self.found.items():
            columns = np.flatnonzero(np.frombuffer(key, dtype=bool))
            if len(columns):
                sums[tuple(columns.tolist())] = each if len(columns) == n else each.of_columns(columns)
        within, about_origin = np.zeros((2, n)), np.zeros((2, n))
        for experts, each in sums.items():
            within[:, experts] += np.einsum("gii->gi", each.scatter())
            about_origin[:, experts] += np.einsum("gii->gi", each.cross)
        if (within < SAFE[levels.kind] * about_origin).any():
            return None
        return {experts: each.moments(levels.origin, levels.ratios) for experts, each in sums.items()}


def dense_moments(
    q: Floats,
    outcomes: DenseOutcomes,
    prior: Array,
    floor: float,
    experts: tuple[str, ...],
    threads: int | None = None,
) -> Moments | None:
    """Moments of log-ratios; None if there are too many different sets of experts who answered, or sums are off 1.

    Parameters
    ----------
    q : ndarray of float64 or float32, shape (T, N); (T, N, K) for K > 2 classes
        NaN where missing. float32 is worked on as it is, which changes weights by less than 1e-5.
    outcomes : DenseOutcomes
    prior : ndarray, shape (K,)
        Sets only the floors: moments hold log-ratios as they are.
    floor : float
    experts : tuple of str
        N names.
    threads : int, optional
        As many as there are processors if not given, and one for few forecasts; without influence on the result.

    Raises
    ------
    ProbabilityError
        Names the first value outside [0, 1] and its position.

    Examples
    --------
    >>> outcomes = DenseOutcomes.of(np.array([1, 0, 1, 0]))
    >>> q = np.array([[0.6], [0.5], [0.7], [0.4]])
    >>> moments = dense_moments(q, outcomes, np.array([0.5, 0.5]), 1e-4, ("ann",))
    >>> moments.patterns[0,].mean[:2, 0, 0].round(4)
    array([-0.2027,  0.6264])
    """
    classes, n = outcomes.classes, len(experts)
    most = max(1, min(len(q) // max(n, REPEATED), MOST_MOMENTS // (n * n)))
    try:
        for levels in _levels(q, prior, floor):
            patterns = _summed(levels, outcomes, (len(q), n), most, threads).moments(levels)
            if patterns is not None:
                return Moments(experts, classes, outcomes.counts, MappingProxyType(patterns))
    except _NotHereError:
        # What is missing goes another way, and what is wrong is reported here.
        check_probabilities(q)
        return None
    return _added_up(q, outcomes, prior, floor, experts)


def _levels(q: Floats, prior: Array, floor: float) -> Iterator[_Levels]:
    """Ways to read the forecasts, the fastest first."""
    if q.ndim == 3:
        yield _ClassLevels(q, prior, floor)
        return
    for kind in dict.fromkeys((q.dtype, np.dtype(np.float64))):
        yield _LogOdds(q, prior, floor, kind)


def _summed(
    levels: _Levels, outcomes: DenseOutcomes, shape: tuple[int, int], most: int, threads: int | None
) -> _Patterns:
    """Sums of levels of T events and N experts."""

    def sums(piece: slice) -> _Patterns:
        return _sums(levels, outcomes, piece, shape[1], most)

    numbers = shape[1] * (outcomes.classes if outcomes.classes > 2 else 1)
    work = [*pieces(shape[0], numbers)]
    if len(work) == 1:
        return sums(work[0])
    total = _Patterns(most)
    for part in in_order(sums, work, threads):
        total.include(part, outcomes.classes)
    return total


def _sums(levels: _Levels, outcomes: DenseOutcomes, piece: slice, n: int, most: int) -> _Patterns:
    """Sums over a piece of the events."""
    k = outcomes.classes
    numbers = n * (k if k > 2 else 1)
    buffer = levels.buffer(min(rows_of_block(numbers), piece.stop - piece.start))
    total, everyone = _Patterns(most), np.ones(n, dtype=bool)
    for rows in blocks_of(piece, numbers):
        block, happened = levels.read(rows, buffer), outcomes.y[rows]
        member = np.empty((k, len(happened)), levels.kind)
        for outcome in range(k):
            np.equal(happened, outcome, out=member[outcome])
        resolved = None if member.sum() == len(happened) else np.asarray(member.any(axis=0))
        if _include(total.of(everyone, k), block, member, resolved):
            continue
        absent = np.isnan(block[0])
        if not np.array_equal(absent, levels.missing(rows)):
            raise _NotHereError
        # Those who are missing add nothing.
        np.copyto(block, 0.0, where=absent)
        for pattern, some in _alike(absent):
            resolved_ones = None if resolved is None else resolved[some]
            _include(total.of(~pattern, k), block[:, some], member[:, some], resolved_ones)
    return total


def _alike(absent: Mask) -> Iterator[tuple[Mask, slice | Index]]:
    """Distinct rows, and the events that have each."""
    first = np.asarray(absent[0])
    if (absent == first).all():
        yield first, slice(None)
        return
    patterns, which = group_patterns(absent)
    for i, pattern in enumerate(patterns):
        yield pattern, np.flatnonzero(which == i)


def _include(sums: _Sums, block: Floats, member: Floats, resolved: Mask | None) -> bool:
    """Add levels (K - 1, T, N) of events to sums; False, and nothing is added, if some are no numbers."""
    closed = block if resolved is None else block[:, resolved]
    known = member if resolved is None else member[:, resolved]
    total = known @ closed
    left = None if resolved is None else block[:, ~resolved]
    open_total = 0.0 if left is None else left.sum(axis=1)
    if not (np.isfinite(total).all() and np.isfinite(open_total).all()):
        return False
    sums.weight[:-1] += known.sum(axis=1)
    sums.total[:, :-1] += total
    sums.cross[0] += _products(closed)
    if left is not None:
        sums.weight[-1] += left.shape[1]
        sums.total[:, -1] += open_total
        sums.cross[1] += _products(left)
    return True


def _products(block: Floats) -> Floats:
    """Cross-products over events and levels, (N, N)."""
    flat = block.reshape(-1, block.shape[2])
    return np.asarray(flat.T @ (flat.copy() if flat.shape[1] <= FEW else flat))


def _added_up(q: Floats, outcomes: DenseOutcomes, prior: Array, floor: float, experts: tuple[str, ...]) -> Moments:
    """Moments of blocks about their own means, merged in order."""
    moments = Moments.empty(experts, outcomes.classes)
    for rows in blocks(len(q), q[0].size):
        block = np.asarray(q[rows], dtype=np.float64)
        ratios = logodds.log_ratios(block, prior, floor)
        moments = moments.merge(Moments.empty(experts, outcomes.classes).add(ratios, outcomes.codes(rows)))
    return moments
