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
_STEPS, _MORE = 50, 6
# Where the cost would fall by less than the first, whole steps lead to the mode, and the same factor serves for all of
# them: the first leaves about the square, and each of the others a thousandth of the error, until the second.
_NEAR, _TOLERANCE = 1e-5, 1e-24


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

    def reduction(self, design: Array) -> Array:
        """R (T, P), by which events reduce what is open: the covariance of the coefficients is I − RᵀR."""
        return _divided(self.lower, self.root[:, None] * design)


def _solved(lower: Array, values: Array) -> Array:
    """(L Lᵀ)⁻¹ of values."""
    return _divided(lower, _divided(lower, values), transposed=True)


def _divided(lower: Array, values: Array, *, transposed: bool = False) -> Array:
    """L⁻¹ or L⁻ᵀ of values."""
    if len(lower) <= SMALL:
        return np.asarray(np.linalg.solve(lower.T if transposed else lower, values), dtype=np.float64)
    # Loaded where it saves more than loading it takes.
    from scipy.linalg import solve_triangular

    found = solve_triangular(lower, values, trans=int(transposed), lower=True, check_finite=False)
    return np.asarray(found, dtype=np.float64)


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
    amounts = ratios = np.zeros(len(products))
    value = costs(ratios)
    if start is not None:
        # Log-odds that need not be those of any amounts, but lead to some.
        value = costs(start)
        amounts = _step(_factor(products, value), products, value.curvature * start - value.slope)
        ratios = products @ amounts
        value = costs(ratios)
    cost = value.total + float(amounts @ ratios) / 2.0
    for _ in range(_STEPS):
        factor = _factor(products, value)
        step = _step(factor, products, -value.slope - amounts)
        moved = products @ step
        decrease = -float((value.slope + amounts) @ moved)
        if decrease < _NEAR:
            return _ended(factor, products, costs, amounts, step)
        length = 1.0
        while True:
            trial, reached = amounts + length * step, ratios + length * moved
            value = costs(reached)
            tried = value.total + float(trial @ reached) / 2.0
            if tried <= cost - 1e-4 * length * decrease or length < 1e-6:
                break
            length /= 2.0
        amounts, ratios, cost = trial, reached, tried
    return amounts


def _ended(
    factor: _Factor, products: Array, costs: Callable[[Array], EventCosts], amounts: Array, step: Array
) -> Array:
    """The mode, from near it."""
    for _ in range(_MORE):
        amounts = amounts + step
        ratios = products @ amounts
        residual = -costs(ratios).slope - amounts
        step = _step(factor, products, residual)
        if float(residual @ (products @ step)) < _TOLERANCE:
            break
    return amounts + step


class _Factor(NamedTuple):
    """W^½ and the Cholesky factor of I + W^½ DDᵀ W^½, for curvatures W."""

    root: Array
    lower: Array


def _factor(products: Array, value: EventCosts) -> _Factor:
    root = np.sqrt(value.curvature)
    system = root[:, None] * products
    system *= root
    system.flat[:: len(root) + 1] += 1.0
    return _Factor(root, np.asarray(np.linalg.cholesky(system), dtype=np.float64))


def _step(factor: _Factor, products: Array, residual: Array) -> Array:
    """(I + W DDᵀ)⁻¹ of a residual (T,)."""
    root, lower = factor
    return np.asarray(residual - root * _solved(lower, root * (products @ residual)))


def judged(products: Array, costs: Callable[[Array], EventCosts], amounts: Array) -> DualMode:
    """What these amounts (T,), which may be those of another mode, are worth by the costs of log-odds."""
    ratios = products @ amounts
    value = costs(ratios)
    root, lower = _factor(products, value)
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
