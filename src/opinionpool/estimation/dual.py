"""The mode of many coefficients given few events, in terms of the events (Rasmussen and Williams 2006, section 3.4).

Under independent standard normal beliefs the most probable coefficients are Dᵀa, for the design D of T events and P
coefficients, so that T numbers are looked for, and all that is needed of D are its inner products DDᵀ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.anchor import Anchor

# Up to so many events a triangle is solved as any matrix is.
SMALL = 200
_STEPS, _PATIENCE, _MORE = 100, 12, 6
# Where the cost would fall by less than the first, whole steps lead to the mode, until it is less than the second.
_NEAR, _TOLERANCE = 1e-5, 1e-24
# Of a step is left, by what it would lower the cost, no more than the first, and near the mode as little as the second;
# where that takes as many conjugate gradients as the third, the next begin with a factor of their own.
_ROUGH, _DIGITS, _MOST = 0.01, 1e-16, 6


@dataclass(frozen=True, eq=False)
class EventCosts:
    """What log-odds (T,) cost: their sum, and slopes and curvatures (T,)."""

    total: float
    slope: Array
    curvature: Array


@dataclass(frozen=True, eq=False)
class DualMode:
    """A mode in terms of T events.

    Attributes
    ----------
    amounts : ndarray, shape (T,)
        a; the coefficients are Dᵀa.
    evidence : float
        Laplace's approximation to the log probability.
    root, lower : ndarray, shape (T,) and (T, T)
        W^½ and the Cholesky factor of I + W^½ DDᵀ W^½, for the curvatures W.
    """

    amounts: Array
    evidence: float
    root: Array
    lower: Array


def _divided(lower: Array, values: Array) -> Array:
    """L⁻¹ of values."""
    if len(lower) <= SMALL:
        return np.asarray(np.linalg.solve(lower, values), dtype=np.float64)
    # Loaded where it saves more than loading it takes.
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(lower, values, lower=True, check_finite=False), dtype=np.float64)


def dual_mode(products: Array, costs: Callable[[Array], EventCosts], start: Array | None = None) -> DualMode:
    """The mode by Newton's method.

    Parameters
    ----------
    products : ndarray, shape (T, T)
        DDᵀ.
    costs : callable
        Of the log-odds Dθ, (T,).
    start : ndarray, shape (T,), optional
        Log-odds to begin with; the answer does not depend on them.

    Examples
    --------
    One event with log-odds θ of cost (θ − 1)²/2, which are also believed to be 0:

    >>> found = dual_mode(np.ones((1, 1)), lambda f: EventCosts(float((f[0] - 1) ** 2 / 2), f - 1, np.ones(1)))
    >>> found.amounts, round(found.evidence, 4)
    (array([0.5]), -0.5966)
    """
    return judged(products, costs, _amounts(products, costs, start))


def _amounts(products: Array, costs: Callable[[Array], EventCosts], start: Array | None) -> Array:
    """What the events contribute at the mode, (T,)."""
    at, factor, ended = _Place.of(costs, np.zeros(len(products)), np.zeros(len(products))), None, 0
    if start is not None:
        # Log-odds that need not be those of any amounts, but lead to some.
        value = costs(start)
        factor = _Factor.of(products, value)
        amounts = factor.solved(products, value.curvature * start - value.slope)
        at = _Place.of(costs, amounts, products @ amounts)
    for number in range(_STEPS):
        before, residual = factor, -at.value.slope - at.amounts
        # Where a factor costs no more than solving by it, or others have not served, each step has its own.
        if factor is None or (not ended and (len(products) <= SMALL or number >= _PATIENCE)):
            factor = _Factor.of(products, at.value)
        step = _step(factor, products, at.value.curvature, residual)
        decrease, stale = float(residual @ step.moved), factor is before
        if decrease <= 0 and stale and not ended:
            # Lost to rounding, as where curvatures differ by orders of magnitude.
            factor = None
            continue
        # What is found slowly says little of how much there is to find.
        if decrease < _NEAR and not (step.slow and stale):
            # Sums round, which matters at the end.
            amounts, ended = at.amounts + step.amounts, ended + 1
            at = _Place.of(costs, amounts, products @ amounts)
            if decrease < _TOLERANCE or ended > _MORE:
                break
        else:
            at = _lower(costs, at, step, decrease)
        factor = None if step.slow else factor
    return at.amounts


class _Place(NamedTuple):
    """Amounts (T,), the log-odds (T,) that they make, what these cost, and that with what the amounts do."""

    amounts: Array
    ratios: Array
    value: EventCosts
    cost: float

    @classmethod
    def of(cls, costs: Callable[[Array], EventCosts], amounts: Array, ratios: Array) -> _Place:
        value = costs(ratios)
        return cls(amounts, ratios, value, value.total + float(amounts @ ratios) / 2.0)


def _lower(costs: Callable[[Array], EventCosts], at: _Place, step: _Step, decrease: float) -> _Place:
    """Where a step leads, or a part of it that lowers the cost."""
    length = 1.0
    while True:
        trial = _Place.of(costs, at.amounts + length * step.amounts, at.ratios + length * step.moved)
        if trial.cost <= at.cost - 1e-4 * length * decrease or length < 1e-6:
            return trial
        length /= 2.0


class _Factor(NamedTuple):
    """W^½ and the Cholesky factor of I + W^½ DDᵀ W^½, for curvatures W."""

    root: Array
    lower: Array

    @classmethod
    def of(cls, products: Array, value: EventCosts) -> _Factor:
        """The factor for the curvatures of some costs."""
        root = np.sqrt(value.curvature)
        system = root[:, None] * products
        system *= root
        system.flat[:: len(root) + 1] += 1.0
        if len(root) <= SMALL:
            return cls(root, np.asarray(np.linalg.cholesky(system), dtype=np.float64))
        from scipy.linalg import cholesky

        upper = cholesky(system.T, lower=False, overwrite_a=True, check_finite=False)
        return cls(root, np.asarray(upper.T, dtype=np.float64))

    def solved(self, products: Array, residual: Array) -> Array:
        """(I + W DDᵀ)⁻¹ of a residual (T,)."""
        return self.solved_from(residual, products @ residual)

    def solved_from(self, residual: Array, moved: Array) -> Array:
        """The same by what the residual is multiplied by DDᵀ, (T,)."""
        return np.asarray(residual - self.root * self._within(self.root * moved))

    def _within(self, values: Array) -> Array:
        """(L Lᵀ)⁻¹ of values (T,)."""
        if len(values) <= SMALL:
            return np.asarray(np.linalg.solve(self.lower.T, np.linalg.solve(self.lower, values)), dtype=np.float64)
        from scipy.linalg.blas import dtrsv

        upper = self.lower.T
        return np.asarray(dtrsv(upper, dtrsv(upper, values, trans=1)), dtype=np.float64)


class _Step(NamedTuple):
    """A step of amounts (T,), how far it moves log-odds (T,), and whether it was not found fast."""

    amounts: Array
    moved: Array
    slow: bool


def _step(factor: _Factor, products: Array, curvature: Array, residual: Array) -> _Step:
    """(I + W DDᵀ)⁻¹ of a residual (T,), about, by conjugate gradients from the factor of other curvatures.

    For the coefficients these are conjugate gradients of I + DᵀWD, of which each takes a small part of the time of a
    factor. Near the mode as many digits are found as the step is short.
    """
    step, moved, left = np.zeros(len(residual)), np.zeros(len(residual)), residual
    direction = reach = step
    before = enough = 0.0
    for number in range(_MOST):
        pulled = products @ left
        if number and float(left @ pulled) <= enough:
            break
        along = factor.solved_from(left, pulled)
        turned = products @ along
        square = float(left @ turned)
        if square <= enough:
            break
        if number:
            along, turned = along + square / before * direction, turned + square / before * reach
        else:
            enough = square * min(max(square, _DIGITS), _ROUGH)
        direction, reach, before = along, turned, square
        met = direction + curvature * reach
        length = square / float(reach @ met)
        step, moved, left = step + length * direction, moved + length * reach, left - length * met
    else:
        return _Step(step, moved, True)
    return _Step(step, moved, False)


def judged(products: Array, costs: Callable[[Array], EventCosts], amounts: Array) -> DualMode:
    """What these amounts (T,), which may be those of another mode, are worth by the costs of log-odds."""
    ratios = products @ amounts
    value = costs(ratios)
    root, lower = _Factor.of(products, value)
    cost = value.total + float(amounts @ ratios) / 2.0
    return DualMode(amounts, -cost - float(np.log(np.diag(lower)).sum()), root, lower)


def binary_mode(
    products: Array,
    outcomes: npt.NDArray[np.intp],
    offset: Array,
    weight: Array,
    start: Array | None = None,
    anchor: Anchor | None = None,
) -> DualMode:
    """The mode of more coefficients than binary events, with the products (T, T) of their design.

    `start` are log-odds beyond the offset, (T,), to begin with.
    """
    sign = np.where(outcomes == 1, 1.0, -1.0)

    def costs(ratios: Array) -> EventCosts:
        # Of what happened, and the probability of what did not, precise where it is small.
        margin = sign * (offset + ratios)
        small = np.exp(-np.abs(margin))
        other = np.where(margin >= 0, small, 1.0) / (1.0 + small)
        loss = np.log1p(small) + np.maximum(-margin, 0.0)
        return EventCosts(float(weight @ loss), -weight * sign * other, weight * other * (1.0 - other))

    if anchor is None:
        return dual_mode(products, costs, start)
    both, push = anchor.own + anchor.common, anchor.common * anchor.distance[:, 0]

    def anchored(ratios: Array) -> EventCosts:
        plain = costs(ratios)
        pulled, slope = float(both @ ratios**2 / 2.0 + push @ ratios), both * ratios + push
        return EventCosts(plain.total + pulled, plain.slope + slope, plain.curvature + both)

    return judged(products, costs, _amounts(products, anchored, start))
