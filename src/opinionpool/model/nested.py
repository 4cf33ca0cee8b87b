"""Nested evidence: what the weaker of two experts knows is a blurred copy of what the stronger one knows.

R_ij = ρ √(min(m_i, m_j) / max(m_i, m_j)), so experts of one accuracy have the correlation ρ, and a weak one has less in
common with a strong one (model.md, section 8). Weights are then never negative, as they can be where one correlation is
assumed of unequal experts. In the logarithm of the accuracy R is the covariance of an Ornstein-Uhlenbeck process seen
with noise, so R⁻¹ is a Kalman filter and smoother along the experts, ordered by accuracy, in linear time and
without an inverse of the kernel, which is singular where experts tie (Durbin & Koopman, *Time Series Analysis by State
Space Methods*, 2nd ed., sections 4.3 and 4.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import PanelError
from opinionpool.model.contrasts import padded_cells
from opinionpool.model.correlation import CONSISTENT, NO_LIMIT, SINGULAR, in_rows

# A variance that is as good as none.
_LEAST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class NestedCorrelation:
    """Correlation of nested evidence: the weaker of two experts knows a blurred copy of what the stronger one knows.

    Equally accurate experts have the correlation `rho`.

    >>> NestedCorrelation(np.array([1.0, 1.0, 0.5]), 0.6).matrix()
    array([[1. , 0.6, 0.3],
           [0.6, 1. , 0.3],
           [0.3, 0.3, 1. ]])
    """

    # (N,); ±√m on any scale: negative for experts whose forecasts point away from the outcome, and whose correlations
    # change sign; 0 for experts without knowledge, who are correlated with nobody
    signal: Array
    # Correlation of two equally accurate experts, from 0 to 1; at 1 only the most accurate of the experts present has a
    # weight, which equally accurate ones divide.
    rho: float

    def __post_init__(self) -> None:
        if not 0 <= self.rho <= 1:
            raise PanelError(f"the correlation of nested evidence must lie between 0 and 1, and it is {self.rho:.15g}")

    @property
    def size(self) -> int:
        """Number of experts, N."""
        return len(self.signal)

    @cached_property
    def _level(self) -> Array:
        """Square root of each expert's accuracy, up to a common factor, (N,)."""
        return np.abs(self.signal)

    @cached_property
    def _sign(self) -> Array:
        """Sign of each expert's signal, (N,): -1 for an expert whose forecasts point away from the outcome."""
        return np.where(self.signal < 0, -1.0, 1.0)

    def shares(self) -> Array:
        """Return R divided by ρ off the diagonal, (N, N): ± √(smaller / larger accuracy of the two experts)."""
        share = _ratio(np.minimum.outer(self._level, self._level), np.maximum.outer(self._level, self._level))
        return np.asarray(share * np.outer(self._sign, self._sign))

    def matrix(self) -> Array:
        """Return the correlation matrix R, (N, N)."""
        return np.asarray(np.where(np.eye(self.size, dtype=bool), 1.0, self.rho * self.shares()))

    def times(self, v: Array) -> Array:
        """Return R v for `v` (..., N), in O(N), by sums over the experts weaker and those stronger than each expert."""
        order, product = np.argsort(self._level, kind="stable"), np.empty(v.shape)
        level, value = self._level[order], (v * self._sign)[..., order]
        product[..., order] = value + self.rho * (_from_weaker(level, value) + _from_stronger(level, value))
        return product * self._sign

    def solve(self, v: Array, present: Mask, experts: Index | None = None, *, strict: bool = True) -> Array:
        """Solve R_SS x = v_S for the experts S present in each row, in linear time; x is (T, m), 0 for others."""
        order, here, level, sign = self._places(present, experts)
        value = np.take_along_axis(in_rows(v, present, experts), order, axis=1).T * sign
        solved = np.zeros(present.shape)
        by_place = sign * self._by_place(level, value, here, strict=strict)
        np.put_along_axis(solved, order, by_place.T, axis=1)
        return solved

    def _places(self, present: Mask, experts: Index | None) -> tuple[Index, Mask, Array, Array]:
        """Columns by rising accuracy, absent last, (T, m); in that order presence, root accuracy and sign, (m, T)."""
        level, sign = (in_rows(x, present, experts) for x in (self._level, self._sign))
        order = np.argsort(np.where(present, level, np.inf), axis=1, kind="stable")
        level, sign = (np.take_along_axis(x, order, axis=1).T.copy() for x in (level, sign))
        return order, sign != 0, level, sign

    def _by_place(self, level: Array, value: Array, here: Mask, *, strict: bool) -> Array:
        """Solve R_SS x = `value` (m, T), experts ordered by rising root accuracy `level`; `here` marks present ones."""
        decay, gap = np.zeros(level.shape), np.ones(level.shape)
        decay[1:], gap[1:] = _steps(level)
        tied = (gap <= (SINGULAR if self.rho == 1.0 else 0.0)) & here
        if self.rho == 1.0:
            # Where nothing blurs, who is nearly as accurate as another says the same.
            gap[tied] = 0.0
        else:
            # Identical to the last digit where inputs are identical.
            tied[1:] &= value[1:] == value[:-1]
        solved = self._smoothed(decay, gap, value, strict=strict)
        if tied.any():
            group, flat = np.cumsum(~tied.T.ravel()) - 1, solved.T.ravel()
            solved = (np.bincount(group, flat) / np.bincount(group))[group].reshape(solved.T.shape).T
        return solved

    def _smoothed(self, decay: Array, gap: Array, value: Array, *, strict: bool) -> Array:
        """Solve R x = `value` (m, T) by a Kalman smoother over experts: signal times `decay`, plus noise `gap`."""
        noise, mean, variance = max(1.0 - self.rho, _LEAST), 0.0, 0.0
        errors, spreads = [], []
        for step, own, seen in zip(*map(_by_row, (decay, gap, value)), strict=True):
            spreads.append(step * step * variance + self.rho * own)
            errors.append(seen - step * mean)
            gain = spreads[-1] / (spreads[-1] + noise)
            mean = step * mean + gain * errors[-1]
            variance = spreads[-1] * (1.0 - gain)
        error, spread = (np.array(x).reshape(value.shape) for x in (errors, spreads))
        # Where nothing is open, as it may be without noise, nothing is gained.
        total = spread + noise
        nothing = total <= _LEAST
        if strict and (np.abs(error[nothing]) > CONSISTENT * np.abs(value).max(initial=0.0)).any():
            raise PanelError(NO_LIMIT)
        scaled, after, solved = np.where(nothing, 0.0, error) / total, 0.0, []
        for own, part, step in zip(*(_by_row(x[::-1]) for x in (scaled, spread / total, decay)), strict=True):
            solved.append(own - part * after)
            after = step * (solved[-1] + after)
        return np.array(solved[::-1]).reshape(value.shape)

    def pairs(self, event: Index, expert: Index, values: Array, events: int) -> tuple[Array, Array]:
        """By event, sums over pairs i, j of forecasts, with r = R_ij/ρ: of r `values`_i · `values`_j, and of r²."""
        products, squares = np.zeros(events), np.zeros(events)
        for rows, cells, present in padded_cells(event, events):
            order, here, level, sign = self._places(present, expert[cells])
            for column in values.T:
                value = sign.T * np.take_along_axis(column[cells], order, axis=1)
                products[rows] += (value * _from_weaker(level.T, value)).sum(axis=1)
            squares[rows] = _from_weaker(level.T**2, here.T.astype(np.float64)).sum(axis=1)
        return products, squares

    def subset(self, positions: Index) -> NestedCorrelation:
        """Return the correlation among the experts at `positions`."""
        return NestedCorrelation(self.signal[positions], self.rho)

    def correlate(self, z: Array) -> Array:
        """Turn standard normals `z` (..., N) into normals with the correlation R, by its Cholesky root in O(N)."""
        order, correlated = np.argsort(self._level, kind="stable"), np.empty(z.shape)
        decay, gap = (np.append(first, x) for first, x in zip((0.0, 1.0), _steps(self._level[order]), strict=True))
        mean, variance = np.zeros(z.shape[:-1]), 0.0
        for i, expert in enumerate(order):
            spread = decay[i] ** 2 * variance + self.rho * gap[i]
            total = spread + (1.0 - self.rho)
            innovation = np.sqrt(total) * z[..., expert]
            correlated[..., expert] = self._sign[expert] * (decay[i] * mean + innovation)
            gain = spread / total if total > 0 else 0.0
            mean, variance = decay[i] * mean + gain * innovation, spread * (1.0 - gain)
        return correlated


def _by_row(values: Array) -> Any:  # noqa: ANN401 - both can be calculated with
    """Return `values` (m, T) to loop over rows: arrays, or if T is 1 a list of floats, which is faster."""
    return values[:, 0].tolist() if values.shape[1] == 1 else values


def _steps(level: Array) -> tuple[Array, Array]:
    """Return √(a/b) and 1 − a/b, (m - 1, ...), for each accuracy b and the one before it, a; `level` is √b, rising."""
    decay = _ratio(level[:-1], level[1:])
    return decay, _ratio(level[1:] - level[:-1], level[1:], 1.0) * (1.0 + decay)


def _ratio(a: Array, b: Array, otherwise: float = 0.0) -> Array:
    """Return `a` / `b`, or `otherwise` where `b` is 0."""
    return np.asarray(np.divide(a, b, out=np.full(b.shape, otherwise), where=b > 0))


def _from_weaker(level: Array, value: Array) -> Array:
    """Return Σ_j<i level_j value_j / level_i along the last axis, on which `level` rises; 0 where level_i is 0."""
    summed = np.zeros(value.shape)
    summed[..., 1:] = np.cumsum(level * value, axis=-1)[..., :-1]
    return _ratio(summed, np.broadcast_to(level, value.shape))


def _from_stronger(level: Array, value: Array) -> Array:
    """Return Σ_j>i level_i value_j / level_j along the last axis, on which `level` rises; 0 for terms with level 0."""
    summed = np.zeros(value.shape)
    each = _ratio(value, np.broadcast_to(level, value.shape))
    summed[..., :-1] = np.cumsum(each[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    return level * summed
