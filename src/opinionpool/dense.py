"""Moments of complete binary forecasts in an array of events x experts, read once, in blocks that stay in the cache.

Log-odds, floors, sums and cross-products of a block are made in one small buffer, so that no array as large as the
forecasts exists beside them. Blocks form pieces of a fixed size, pieces are done by several threads and added up in
order: the result does not depend on how many threads there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.blockwise import Bounds, Floats, blocks, blocks_of, floored_log_odds, pieces, rows_of_block
from opinionpool.forecasts import UNRESOLVED
from opinionpool.logodds import Array, check_probabilities
from opinionpool.moments import Moments, PatternMoments
from opinionpool.threads import in_order

__all__ = ["BinaryOutcomes", "dense_moments"]

# Events whose outcomes are looked at together.
EVENTS = 1 << 16
# Up to so many experts a product with a copy is faster than the symmetric one.
FEW = 10
# The least share of a sum of squares that may lie about the means: below, too many digits are lost.
SAFE = {np.dtype(np.float64): 1e-3, np.dtype(np.float32): 0.05}
# A mean of log-odds so close to 0 costs no digits.
NEAR = 0.5


@dataclass(frozen=True, eq=False)
class BinaryOutcomes:
    """What happened, kept as it came: numbers 0 and 1, or booleans; NaN where not resolved.

    Attributes
    ----------
    y : ndarray, shape (T,)
    counts : ndarray, shape (3,)
        Events with outcome 0, with outcome 1, and unresolved ones.
    """

    y: Floats
    counts: Array

    @classmethod
    def of(cls, y: Floats) -> BinaryOutcomes | None:
        """None if these are other labels."""
        if y.dtype.kind not in "biuf":
            return None
        counts = np.zeros(3)
        for start in range(0, len(y), EVENTS):
            part = y[start : start + EVENTS]
            counts[0] += np.count_nonzero(part == 0)
            counts[1] += np.count_nonzero(part == 1)
            counts[2] += np.count_nonzero(part != part) if y.dtype.kind == "f" else 0
        return cls(y, counts) if counts.sum() == len(y) else None

    def codes(self, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Of some events 0, 1 or -1."""
        part = self.y[rows]
        if self.y.dtype.kind == "f":
            return np.where(np.isnan(part), UNRESOLVED, part).astype(np.intp)
        return part.astype(np.intp)


class _GapError(Exception):
    """A forecast is missing, or is no probability."""


@dataclass(eq=False)
class _Sums:
    """Weight, sums and cross-products about an origin; of outcome 0, outcome 1 and unresolved events."""

    weight: Array
    total: Array
    cross: Array

    @classmethod
    def none(cls, n: int) -> _Sums:
        return cls(np.zeros(3), np.zeros((3, n)), np.zeros((2, n, n)))

    def include(self, other: _Sums) -> None:
        self.weight += other.weight
        self.total += other.total
        self.cross += other.cross

    def about_means(self, origin: float, least: float) -> PatternMoments | None:
        """Moments about the means, or None if less than this share of a sum of squares lies about them."""
        mean = self.total / np.where(self.weight > 0, self.weight, 1.0)[:, None]
        between = np.stack([self.total[:2].T @ mean[:2], self.total[2:].T @ mean[2:]])
        scatter = self.cross - between
        if (np.einsum("gii->gi", scatter) < least * np.einsum("gii->gi", self.cross)).any():
            return None
        mean = np.where(self.weight[:, None] > 0, mean + origin, 0.0)
        return PatternMoments(self.weight, mean[:, :, None], scatter)


def dense_moments(
    q: Floats,
    outcomes: BinaryOutcomes,
    prior: Array,
    floor: float,
    experts: tuple[str, ...],
    threads: int | None = None,
) -> Moments | None:
    """Moments of log-odds; None if a forecast is missing.

    Parameters
    ----------
    q : ndarray of float64 or float32, shape (T, N)
        float32 is worked on as it is, which changes weights by less than 1e-5.
    outcomes : BinaryOutcomes
    prior : ndarray, shape (2,)
        Sets the floors alone: moments hold log-odds as they are.
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
    >>> outcomes = BinaryOutcomes.of(np.array([1, 0, 1, 0]))
    >>> q = np.array([[0.6], [0.5], [0.7], [0.4]])
    >>> moments = dense_moments(q, outcomes, np.array([0.5, 0.5]), 1e-4, ("ann",))
    >>> moments.patterns[0,].mean[:2, 0, 0].round(4)
    array([-0.2027,  0.6264])
    """
    bounds = Bounds.of(prior, floor)
    try:
        for kind in dict.fromkeys((q.dtype, np.dtype(np.float64))):
            total, origin = _summed(q, outcomes, bounds, kind, threads)
            part = total.about_means(origin, SAFE[kind])
            if part is not None:
                patterns = MappingProxyType({tuple(range(len(experts))): part})
                return Moments(experts, 2, outcomes.counts, patterns)
    except _GapError:
        # What is missing goes another way, and what is wrong is said here.
        check_probabilities(q)
        return None
    return _added_up(q, outcomes, prior, floor, experts)


def _summed(
    q: Floats, outcomes: BinaryOutcomes, bounds: Bounds, kind: np.dtype[Any], threads: int | None
) -> tuple[_Sums, float]:
    """Sums of log-odds less an origin, and the origin: about the panel's mean, where single precision needs it."""
    n, origin = q.shape[1], 0.0
    if kind == np.float32:
        few = q[:: len(q) // 64 + 1]
        origin = float(np.median(floored_log_odds(few, bounds, np.empty(few.shape))))
        origin = origin if abs(origin) > NEAR else 0.0

    def sums(piece: slice) -> _Sums:
        return _sums(q, outcomes, piece, bounds, kind, origin)

    work = [*pieces(len(q), n)]
    if len(work) == 1:
        return sums(work[0]), origin
    total = _Sums.none(n)
    for part in in_order(sums, work, threads):
        total.include(part)
    return total, origin


def _sums(
    q: Floats, outcomes: BinaryOutcomes, piece: slice, bounds: Bounds, kind: np.dtype[Any], origin: float
) -> _Sums:
    """Sums over a piece of the events."""
    n = q.shape[1]
    buffer = np.empty((min(rows_of_block(n), piece.stop - piece.start), n), kind)
    total = _Sums.none(n)
    for rows in blocks_of(piece, n):
        ratios = floored_log_odds(q[rows], bounds, buffer[: rows.stop - rows.start])
        if origin:
            ratios -= kind.type(origin)
        happened = outcomes.y[rows]
        member = np.empty((2, len(happened)), kind)
        for outcome in (0, 1):
            np.equal(happened, outcome, out=member[outcome])
        counts = member.sum(axis=1)
        left = len(happened) - counts.sum()
        if left:
            resolved = (member[0] + member[1]).astype(bool)
            _include(total, ratios[~resolved], np.ones((1, int(left)), kind), 1, slice(2, 3))
            ratios, member = ratios[resolved], member[:, resolved]
        _include(total, ratios, member, 0, slice(0, 2))
        total.weight += [*counts, left]
    if not np.isfinite(total.total).all():
        raise _GapError
    return total


def _include(total: _Sums, ratios: Floats, member: Floats, which: int, groups: slice) -> None:
    total.total[groups] += member @ ratios
    total.cross[which] += ratios.T @ (ratios.copy() if ratios.shape[1] <= FEW else ratios)


def _added_up(q: Floats, outcomes: BinaryOutcomes, prior: Array, floor: float, experts: tuple[str, ...]) -> Moments:
    """Moments of blocks about their own means, merged in order."""
    moments = Moments.empty(experts)
    for rows in blocks(len(q), len(experts)):
        ratios = logodds.log_ratios(np.asarray(q[rows], dtype=np.float64), prior, floor)
        moments = moments.merge(Moments.empty(experts).add(ratios, outcomes.codes(rows)))
    return moments
