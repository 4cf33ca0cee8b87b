"""Intercept and weights of a log pool: what is believed of them, what a regression found, and what that leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation.newton import Mode
from opinionpool.logodds import whitened


@dataclass(frozen=True, eq=False)
class WeightBeliefs:
    """Means and spreads of the coefficients.

    Attributes
    ----------
    mean : ndarray, shape (N,)
        Of the weights.
    slope_spread : float
        Standard deviation of the sum of the weights as they move in proportion.
    intercept_spread : float
        In log-odds, a class-symmetric spread when K > 2; 0 where there is no intercept.
    deviation : callable
        From how much weights would differ without beliefs to how they do: a number where all do so
        alike, about their mean; else a root of their covariance, (N, N).
    guide : ndarray or None, shape (N,)
        How weights move with how good a guide agreement is, for a standard deviation of what is believed of that.
    """

    mean: Array
    slope_spread: float
    intercept_spread: float
    deviation: Callable[[float], float | Array]
    guide: Array | None = None

    def root(self, deviation: float, d: int, basis: Array | None = None) -> Array:
        """Return the root of the covariance of intercept and weights, (K - 1 + N, P), for d = K - 1.

        With an orthonormal basis (N, M) that holds equal weights, of weights along it only, (K - 1 + M, P): the last of
        the coefficients are then those along `basis_of`.
        """
        n, own, first = len(self.mean), self.deviation(deviation), self.common(d)
        size = n if basis is None else basis.shape[1]
        root = np.zeros((d + size, first + size if moves(own, n) else first))
        root[:d, self.shared : first] = self.intercept_root(d)
        root[d:, : self.shared] = self.together if basis is None else basis.T @ self.together
        if isinstance(own, np.ndarray):
            root[d:, first:] = own if basis is None else np.linalg.qr(own.T @ basis)[1].T
        elif moves(own, n):
            one = np.ones(n) if basis is None else basis.sum(axis=0)
            root[d:, first:] = own * (np.eye(size) - np.outer(one, one) / n)
        return root

    def basis_of(self, deviation: float, basis: Array) -> Array:
        """Return an orthonormal basis of the deviations that move weights along a basis (N, M), (N, M)."""
        own = self.deviation(deviation)
        return np.linalg.qr(own.T @ basis)[0] if isinstance(own, np.ndarray) else basis

    def values(self, theta: Array, deviation: float, d: int) -> Array:
        """Return intercept and weights by standard normal coefficients (P,), (K - 1 + N,)."""
        own, first = self.deviation(deviation), self.common(d)
        weights = self.mean + self.together @ theta[: self.shared]
        if isinstance(own, np.ndarray):
            weights = weights + own @ theta[first:]
        elif moves(own, len(self.mean)):
            weights = weights + own * (theta[first:] - theta[first:].mean())
        return np.concatenate([self.intercept_root(d) @ theta[self.shared : first], weights])

    @cached_property
    def total(self) -> float:
        """Mean of the sum of the weights."""
        return float(self.mean.sum())

    @property
    def shared(self) -> int:
        """How many coefficients move all weights."""
        return 1 if self.guide is None else 2

    def common(self, d: int) -> int:
        """How many coefficients leave weights alike: those, and d = K - 1 of the intercept where there is one."""
        return self.shared + (d if self.intercept_spread > 0 else 0)

    @cached_property
    def together(self) -> Array:
        """How each of these moves them: their sum, and how good a guide agreement is, (N, 1 or 2)."""
        share = self.mean / self.total if self.slope_spread > 0 else np.zeros(len(self.mean))
        columns = [self.slope_spread * share, *(() if self.guide is None else (self.guide,))]
        return np.stack(columns, axis=1)

    def intercept_root(self, d: int) -> Array:
        """Root of the covariance of the intercept, (K - 1, K - 1), or (K - 1, 0) where there is none."""
        return intercept_root(self.intercept_spread, d)[:, : d if self.intercept_spread > 0 else 0]

    def of_intercept(self, intercept: Array) -> Array:
        """The coefficients that make an intercept (K - 1,), where there is one, (K - 1,)."""
        return np.asarray(_unit_inverse(len(intercept)) @ intercept / self.intercept_spread)


def moves(own: float | Array, n: int) -> bool:
    """Whether n weights differ."""
    return isinstance(own, np.ndarray) or (own > 0 and n > 1)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """What a regression found.

    Attributes
    ----------
    values : ndarray, shape (K - 1 + N,)
        Intercept and weights.
    log_marginal_likelihood : float
        Logarithm of the probability of the outcomes under the beliefs.
    mode : Mode
        The standardised coefficients.
    beliefs : WeightBeliefs
    deviation : float
        How much weights were taken to differ.
    """

    values: Array
    log_marginal_likelihood: float
    mode: Mode
    beliefs: WeightBeliefs
    deviation: float

    @cached_property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.values[-len(self.beliefs.mean) :].sum())

    def covariance(self) -> Array:
        """Covariance of intercept and weights given the outcomes, (K - 1 + N, K - 1 + N)."""
        return np.asarray(self.root @ self.mode.covariance @ self.root.T)

    def rows(self) -> Array:
        """The same as the outer product of rows, (P, K - 1 + N)."""
        return np.asarray(covariance_rows(self.mode.covariance) @ self.root.T)

    @property
    def root(self) -> Array:
        """What the standardised coefficients make of intercept and weights, (K - 1 + N, P)."""
        return self.beliefs.root(self.deviation, len(self.values) - len(self.beliefs.mean))


def left_open(answer: Coefficients, alternatives: list[Coefficients], probability: Array) -> Array:
    """What alternatives leave open beyond the covariance of an answer, as rows (R, K - 1 + N): see `Coefficients.rows`.

    They differ from the answer, and may be less certain than it is.
    """
    off = np.sqrt(probability)[:, None] * (np.array([each.values for each in alternatives]) - answer.values)
    more = np.concatenate([np.sqrt(p) * each.rows() for p, each in zip(probability, alternatives, strict=True)])
    return np.concatenate([off, excess(more, answer.rows(), len(answer.values) - len(answer.beliefs.mean))])


def covariance_rows(covariance: Array) -> Array:
    """A covariance (P, P) as the outer product of rows, (P, P)."""
    value, vector = np.linalg.eigh(covariance)
    return np.asarray((vector * np.sqrt(np.maximum(value, 0.0))).T)


def excess(more: Array, less: Array, d: int) -> Array:
    """Rows (R, P) whose products MᵀM are what those of some rows have beyond those of others, wherever they have more.

    That is the positive part of the difference; the first d = K - 1 columns, log-ratios against the first class, are
    whitened for it, so that it does not depend on which class that is.

    Examples
    --------
    >>> found = excess(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[2.0, 0.0], [0.0, 1.0]]), 1)
    >>> (found.T @ found).round(9) + 0.0
    array([[0., 0.],
           [0., 3.]])
    """
    turn = np.eye(more.shape[1])
    turn[:d, :d] = whitened(np.eye(d))
    more, less = more @ turn, less @ turn
    basis = np.linalg.qr(np.concatenate([more, less]).T)[0]
    more, less = more @ basis, less @ basis
    value, vector = np.linalg.eigh(more.T @ more - less.T @ less)
    rows = np.sqrt(np.maximum(value, 0.0))[:, None] * (basis @ vector).T
    return np.asarray(rows if d == 1 else rows @ np.linalg.inv(turn))


# Relative to the largest variance, one this small is rounding.
NOTHING = 1e-13


def covering(one: Array, other: Array) -> Array:
    """A covariance (P, P) by which no combination is less uncertain than by `one` or `other`, in whatever coordinates.

    Where their sum is 1 both are diagonal, and the larger of each is taken.

    Examples
    --------
    >>> covering(np.diag([1.0, 2.0]), np.diag([2.0, 1.0])).round(9)
    array([[2., 0.],
           [0., 2.]])
    """
    total = one + other
    scale = np.sqrt(np.diag(total))
    scale = np.where(scale > 0, scale, 1.0)
    value, vector = np.linalg.eigh(total / np.outer(scale, scale))
    kept = value > NOTHING * value.max(initial=0.0)
    root, vector = np.sqrt(value[kept]), vector[:, kept]
    back = (vector / root).T / scale
    more, turn = np.linalg.eigh(back @ (other - one) @ back.T)
    rows = (scale[:, None] * vector * root) @ turn * np.sqrt(np.maximum(more, 0.0))
    return np.asarray(one + rows @ rows.T)


def intercept_root(spread: float, d: int) -> Array:
    """Root of the covariance of an intercept about 0, (K - 1, K - 1): independent log-probabilities favour no class."""
    return np.asarray(spread * _unit_root(d))


@cache
def _unit_root(d: int) -> Array:
    """The same for a spread of 1."""
    return np.asarray(np.linalg.cholesky((np.eye(d) + 1.0) / 2.0), dtype=np.float64)


@cache
def _unit_inverse(d: int) -> Array:
    """The inverse of that."""
    return np.asarray(np.linalg.inv(_unit_root(d)))
