"""Nested evidence: what the weaker of two experts knows is a blurred copy of what the stronger one knows.

R_ij = ρ √(min(m_i, m_j) / max(m_i, m_j)), so experts of one accuracy have the correlation ρ, and a weak one has less in
common with a strong one (model.md, section 8). Weights are then never negative, as they can be where one correlation is
assumed of unequal experts. In the logarithm of the accuracy R is the covariance of an Ornstein-Uhlenbeck process seen
with noise, so everything is a Kalman filter and smoother along the experts, ordered by accuracy, in linear time and
without an inverse of the kernel, which is singular where experts tie (Durbin & Koopman, *Time Series Analysis by State
Space Methods*, 2nd ed., sections 4.3 and 4.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import PanelError
from opinionpool.model.correlation import CONSISTENT, NO_LIMIT, SINGULAR

# A variance that is as good as none.
_LEAST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class NestedCorrelation:
    """The correlation of experts whose evidence is nested.

    Attributes
    ----------
    signal : ndarray, shape (N,)
        ±√m on any scale: negative for experts who point the other way, whose correlation with others then changes its
        sign; 0 for those who know nothing, who are correlated with nobody.
    rho : float
        Correlation of two experts who are equally accurate, from 0 to 1. At 1 the most accurate of those present says
        all, and those who tie share.

    Examples
    --------
    >>> NestedCorrelation(np.array([1.0, 1.0, 0.5]), 0.6).matrix()
    array([[1. , 0.6, 0.3],
           [0.6, 1. , 0.3],
           [0.3, 0.3, 1. ]])
    """

    signal: Array
    rho: float

    def __post_init__(self) -> None:
        if not 0 <= self.rho <= 1:
            raise PanelError(f"the correlation of nested evidence must lie between 0 and 1, and it is {self.rho:.15g}")

    @property
    def size(self) -> int:
        """N."""
        return len(self.signal)

    @cached_property
    def _level(self) -> Array:
        return np.abs(self.signal)

    @cached_property
    def _order(self) -> Index:
        return np.argsort(self._level, kind="stable")

    @cached_property
    def _sign(self) -> Array:
        return np.where(self.signal < 0, -1.0, 1.0)

    def shares(self) -> Array:
        """What R is off the diagonal, relative to ρ, (N, N): ± √(min / max of the accuracies)."""
        low = np.minimum.outer(self._level, self._level)
        high = np.maximum.outer(self._level, self._level)
        share = np.divide(low, high, out=np.zeros_like(low), where=high > 0)
        return np.asarray(share * np.outer(self._sign, self._sign))

    def matrix(self) -> Array:
        """The correlation matrix R, (N, N)."""
        return np.asarray(np.where(np.eye(self.size, dtype=bool), 1.0, self.rho * self.shares()))

    def solve(self, v: Array) -> Array:
        """R⁻¹ v, in O(N)."""
        if self.rho == 1.0:
            return self.solve_cells(np.zeros(self.size, dtype=np.intp), np.arange(self.size), v, 1)
        if self.size == 0:
            return np.empty(0)
        level, value = self._level[self._order], (v * self._sign)[self._order]
        solved = _solved(*_decay(level), value, self.rho)
        tied = np.concatenate([[False], (level[1:] == level[:-1]) & (value[1:] == value[:-1])])
        if tied.any():
            group = np.cumsum(~tied) - 1
            solved = (np.bincount(group, solved) / np.bincount(group))[group]
        given = np.empty(self.size)
        given[self._order] = solved
        return np.asarray(given * self._sign)

    def solve_present(self, v: Array, present: Mask) -> Array:
        """R_SS⁻¹ v_S row by row, in time linear in the experts present."""
        if len(present) == 1:
            solved, only = np.zeros(present.shape), np.flatnonzero(present[0])
            solved[0, only] = (self if len(only) == self.size else self.subset(only)).solve(v[only])
            return solved
        solved = np.zeros(present.shape)
        row, expert = np.nonzero(present)
        solved[row, expert] = self.solve_cells(row, expert, v[expert], len(present))
        return solved

    def solve_cells(self, event: Index, expert: Index, v: Array, events: int) -> Array:
        """R_SS⁻¹ v_S for the experts S of each event, by forecast, (M,)."""
        cells = _Cells.of(event, self._level[expert], events)
        level = cells.arranged(self._level[expert])
        value = cells.arranged(v * self._sign[expert])
        solved = self._smoothed(cells, level, value)
        tied = cells.tied(level, SINGULAR if self.rho == 1.0 else 0.0)
        if self.rho < 1.0:
            # Identical to the last digit where inputs are identical.
            tied &= value == value[cells.before]
        if tied.any():
            solved = cells.shared(solved, tied)
        return np.asarray(cells.as_given(solved) * self._sign[expert])

    def pairs(self, event: Index, expert: Index, values: Array, events: int) -> tuple[Array, Array]:
        """For each event, over the pairs of forecasts on it: R_ij / ρ times values_i · values_j, and its square.

        Parameters
        ----------
        event, expert : ndarray of int, shape (M,)
        values : ndarray, shape (M, d)
        events : int

        Returns
        -------
        products, squares : ndarray, shape (T,)
        """
        cells = _Cells.of(event, self._level[expert], events)
        level, value = cells.arranged(self._level[expert]), values[cells.order] * self._sign[expert][cells.order, None]
        decay = _decay_between(level[cells.before], level)[0]
        products, squares = np.zeros(events), np.zeros(events)
        below, number = np.zeros((events, values.shape[1])), np.zeros(events)
        for step in cells.steps[1:]:
            # What those before have in common with this one.
            own, before, fall = cells.those(step), cells.before[step], decay[step]
            below[own] = fall[:, None] * (below[own] + value[before])
            number[own] = fall**2 * (number[own] + 1.0)
            products[own] += (below[own] * value[step]).sum(axis=1)
            squares[own] += number[own]
        return products, squares

    def expected(self, values: Array, present: Mask) -> Array:
        """Values (T, N) where present, and what is expected of the others given these, R R_SS⁻¹ v_S, in O(TN)."""
        t, n = present.shape
        event, expert = np.nonzero(present)
        solved = np.zeros((n, t))
        solved[expert, event] = self.solve_cells(event, expert, values[event, expert], t) * self._sign[expert]
        solved = solved[self._order]
        found, decay = np.zeros((n, t)), _decay(self._level[self._order])[0].tolist()
        below, above = np.zeros(t), np.zeros(t)
        for i in range(1, n):
            below = decay[i - 1] * (below + solved[i - 1])
            found[i] = below
        for i in range(n - 2, -1, -1):
            above = decay[i] * (above + solved[i + 1])
            found[i] += above
        by_expert = np.empty((n, t))
        by_expert[self._order] = found
        return np.where(present, values, by_expert.T * (self.rho * self._sign))

    def times(self, v: Array) -> Array:
        """R v, in O(N)."""
        order, decay = self._order, _decay(self._level[self._order])[0].tolist()
        value = (v * self._sign)[order].tolist()
        below, above = [0.0] * self.size, [0.0] * self.size
        for i in range(1, self.size):
            below[i] = decay[i - 1] * (below[i - 1] + value[i - 1])
        for i in range(self.size - 2, -1, -1):
            above[i] = decay[i] * (above[i + 1] + value[i + 1])
        product = np.empty(self.size)
        product[order] = np.array(value) + self.rho * (np.array(below) + np.array(above))
        return np.asarray(product * self._sign)

    def subset(self, positions: Index) -> NestedCorrelation:
        """The same dependence among fewer experts."""
        return NestedCorrelation(self.signal[positions], self.rho)

    def correlate(self, z: Array) -> Array:
        """Independent standard normals (..., N) to correlated ones, in O(N) each, by the Cholesky root of R."""
        decay, gap = _decay(self._level[self._order])
        correlated = np.empty(z.shape)
        mean, variance = np.zeros(z.shape[:-1]), self.rho
        for i, expert in enumerate(self._order):
            if i > 0:
                mean, variance = decay[i - 1] * mean, decay[i - 1] ** 2 * variance + self.rho * gap[i - 1]
            total = variance + (1.0 - self.rho)
            innovation = np.sqrt(total) * z[..., expert]
            correlated[..., expert] = self._sign[expert] * (mean + innovation)
            gain = variance / total if total > 0 else 0.0
            mean, variance = mean + gain * innovation, variance * (1.0 - gain)
        return correlated

    def _smoothed(self, cells: _Cells, level: Array, value: Array) -> Array:
        """R_SS⁻¹ v_S, as the cells are arranged."""
        noise, m = 1.0 - self.rho, len(value)
        decay, gap = np.zeros(m), np.ones(m)
        later = cells.before >= 0
        decay[later], gap[later] = _decay_between(level[cells.before[later]], level[later])
        if noise == 0:
            # Where nothing blurs, who is nearly as accurate as another says the same.
            gap[gap <= SINGULAR] = 0.0
        # Where nothing is open, as it may be without noise, nothing is gained.
        noise = max(noise, _LEAST)
        fall, new = decay**2, self.rho * gap
        mean, variance = np.zeros(cells.events), np.full(cells.events, self.rho)
        error, spread = np.empty(m), np.empty(m)
        for step in cells.steps:
            own = cells.those(step)
            expected = decay[step] * mean[own]
            open_ = np.multiply(fall[step], variance[own], out=spread[step])
            open_ += new[step]
            part = open_ / (open_ + noise)
            missed = np.subtract(value[step], expected, out=error[step])
            mean[own] = expected + part * missed
            variance[own] = open_ * (1.0 - part)
        total = spread + noise
        nothing = total <= _LEAST
        if (np.abs(error[nothing]) > CONSISTENT * np.abs(value).max(initial=0.0)).any():
            raise PanelError(NO_LIMIT)
        error[nothing] = 0.0
        scaled, gain = error / total, spread / total
        solved, after = np.empty(m), np.zeros(cells.events)
        for step in reversed(cells.steps):
            own = cells.those(step)
            solved[step] = scaled[step] - gain[step] * after[own]
            after[own] = decay[step] * (solved[step] + after[own])
        return solved


def _solved(decay: Array, gap: Array, value: Array, rho: float) -> Array:
    """R⁻¹ v of experts in order: as `NestedCorrelation._smoothed`, in numbers, which is faster for one event."""
    noise, mean, variance = 1.0 - rho, 0.0, rho
    falls, gaps = [0.0, *decay.tolist()], [1.0, *gap.tolist()]
    scaled, gains = [], []
    for fall, new, v in zip(falls, gaps, value.tolist(), strict=True):
        mean, variance = fall * mean, fall * fall * variance + rho * new
        total = variance + noise
        gain = variance / total
        error = v - mean
        scaled.append(error / total)
        gains.append(gain)
        mean, variance = mean + gain * error, variance * (1.0 - gain)
    after, solved = 0.0, np.empty(len(scaled))
    for i in range(len(scaled) - 1, -1, -1):
        solved[i] = own = scaled[i] - gains[i] * after
        after = falls[i] * (own + after)
    return solved


def _decay_between(low: Array, high: Array) -> tuple[Array, Array]:
    """√(m / m') of experts and of those next in accuracy, and 1 − m/m' to its last digit."""
    decay = np.divide(low, high, out=np.zeros_like(high), where=high > 0)
    gap = np.divide(high - low, high, out=np.ones_like(high), where=high > 0) * (1.0 + decay)
    return decay, gap


def _decay(level: Array) -> tuple[Array, Array]:
    return _decay_between(level[:-1], level[1:])


@dataclass(frozen=True, eq=False)
class _Cells:
    """Forecasts, arranged by their place among those on the same event, weak experts first.

    Attributes
    ----------
    order : ndarray of int, shape (M,)
        From how they are arranged to how they were given.
    event : ndarray of int, shape (M,)
        As arranged, like all that follow.
    before : ndarray of int, shape (M,)
        The forecast before on the same event, -1 for the first.
    steps : list of slice
        All the first ones, all the second ones, and so on.
    events : int
    """

    order: Index
    event: Index
    before: Index
    steps: list[slice]
    events: int

    @classmethod
    def of(cls, event: Index, level: Array, events: int) -> _Cells:
        by_event = np.lexsort((level, event))
        number = np.bincount(event, minlength=events)
        first = np.cumsum(number) - number
        place = np.arange(len(event)) - np.repeat(first, number)
        # Few numbers are sorted faster in few bits.
        short = place.astype(np.uint16) if number.max(initial=0) < 1 << 16 else place
        by_place = np.argsort(short, kind="stable")
        where = np.empty(len(event), dtype=np.intp)
        where[by_place] = np.arange(len(event))
        before = np.full(len(event), -1, dtype=np.intp)
        later = by_place[place[by_place] > 0]
        before[where[later]] = where[later - 1]
        ends = np.concatenate([[0], np.cumsum(np.bincount(place))]).tolist()
        order = by_event[by_place]
        return cls(order, event[order], before, [slice(a, b) for a, b in pairwise(ends)], events)

    def those(self, step: slice) -> Index | slice:
        """The events of a step; all are not copied."""
        return slice(None) if step.stop - step.start == self.events else self.event[step]

    def arranged(self, values: Array) -> Array:
        """Values as given, arranged."""
        return values[self.order]

    def as_given(self, values: Array) -> Array:
        """Arranged values, as given."""
        given = np.empty_like(values)
        given[self.order] = values
        return given

    def tied(self, level: Array, least: float) -> Mask:
        """Forecasts of experts as accurate as that before on the same event, to a relative gap of `least`, (M,)."""
        return np.asarray((self.before >= 0) & (_decay_between(level[self.before], level)[1] <= least))

    def shared(self, values: Array, tied: Mask) -> Array:
        """The same, those who tie on an event sharing the sum of theirs."""
        by_event = np.argsort(self.event, kind="stable")
        group = np.cumsum(~tied[by_event]) - 1
        shared = np.empty_like(values)
        shared[by_event] = (np.bincount(group, values[by_event]) / np.bincount(group))[group]
        return shared
