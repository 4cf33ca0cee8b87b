"""The likelihood of outcomes whose log-ratios are a matrix of coefficients times the features of each event.

A design of its own for each coefficient and class would be as large as that matrix for every event. The Hessian is Σ_t
f_t f_tᵀ ⊗ W_t, with W_t the covariance of the classes: as many products of the features as W_t has different entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.blocks import BLOCK
from opinionpool.estimation.blockwise import Value
from opinionpool.estimation.posterior import Mode, newton_mode

# Sums of fewer products are slow, however much memory more of them take.
_ROWS = 64


@dataclass(frozen=True, eq=False)
class FeatureLikelihood:
    """Outcomes of T events whose log-ratios are offset + features · coefficients · turn.

    Attributes
    ----------
    features : ndarray, shape (T, F)
    turn : ndarray, shape (K - 1, K - 1)
        From the coordinates of the coefficients, which are (F, K - 1) and passed flat, to log-ratios.
    outcomes : ndarray of int, shape (T,)
    offset : ndarray, shape (T, K - 1)
    weight : ndarray, shape (T,)
        Frequencies.
    """

    features: Array
    turn: Array
    outcomes: Index
    offset: Array
    weight: Array

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        return int(self.features.shape[1]) * len(self.turn)

    @property
    def events(self) -> float:
        """The sum of the frequencies."""
        return float(self.weight.sum())

    def ratios(self, coefficients: Array) -> Array:
        """Log-ratios, (T, K - 1)."""
        return np.asarray(self.offset + self.features @ (coefficients.reshape(-1, len(self.turn)) @ self.turn))

    def value(self, coefficients: Array) -> Value:
        """Loss, gradient and Hessian per event."""
        logs = log_probabilities(self.ratios(coefficients))
        loss = -self.weight @ np.take_along_axis(logs, self.outcomes[:, None], axis=1)[:, 0]
        surprise, curvature = self.slopes(logs)
        gradient, events = (self.features.T @ surprise).ravel(), self.events or 1.0
        return Value(float(loss) / events, gradient / events, self.hessian(curvature) / events)

    def slopes(self, logs: Array) -> tuple[Array, Array]:
        """Derivatives of each event's loss by what its features make of the coefficients, at log-probabilities (T, K).

        Returns
        -------
        surprise : ndarray, shape (T, K - 1)
        curvature : ndarray, shape (T, K (K - 1) / 2)
            The upper triangle of each matrix, row by row.
        """
        answer, weight = np.exp(logs[:, 1:]), self.weight[:, None]
        surprise = answer - (self.outcomes[:, None] == np.arange(1, answer.shape[1] + 1))
        first, second, _ = _pairs(len(self.turn))
        mean = answer @ self.turn.T
        curvature = answer @ (self.turn[first] * self.turn[second]).T - mean[:, first] * mean[:, second]
        return (weight * surprise) @ self.turn.T, weight * curvature

    def square(self, curvature: Array) -> Array:
        """Matrices (t, K - 1, K - 1) of upper triangles."""
        return np.asarray(curvature[:, _pairs(len(self.turn))[2]])

    def hessian(self, curvature: Array) -> Array:
        """The Hessian of all events, (P, P), by the upper triangles of each one's: Σ_t f_t f_tᵀ ⊗ W_t."""
        (t, f), pairs = self.features.shape, curvature.shape[1]
        place, found = _pairs(len(self.turn))[2], np.zeros((f, pairs * f))
        step = max(_ROWS, BLOCK // (pairs * f))
        for start in range(0, t, step):
            rows = slice(start, start + step)
            some = self.features[rows]
            found += some.T @ (curvature[rows, :, None] * some[:, None, :]).reshape(len(some), -1)
        by_pair = found.reshape(f, pairs, f)[:, place]
        return np.ascontiguousarray(by_pair.transpose(0, 1, 3, 2)).reshape(self.size, self.size)


@cache
def _pairs(d: int) -> tuple[Index, Index, Index]:
    """Rows and columns of the upper triangle of (d, d), and where in it each entry of the square is, (d, d)."""
    first, second = np.triu_indices(d)
    place = np.empty((d, d), dtype=np.intp)
    place[first, second] = place[second, first] = np.arange(len(first))
    return first, second, place


def log_probabilities(ratios: Array) -> Array:
    """Log-probabilities (T, K) of log-ratios (T, K - 1)."""
    full = np.zeros((ratios.shape[1] + 1, len(ratios)))
    full[1:] = ratios.T
    full -= full.max(axis=0)
    full -= np.log(np.exp(full).sum(axis=0))
    return full.T


def feature_mode(likelihood: FeatureLikelihood, start: Array) -> Mode:
    """The mode of standard normal coefficients, (P,); the answer does not depend on where to start."""
    t, f = likelihood.features.shape
    if f <= t:
        return newton_mode(likelihood, start, None)
    # Coefficients that no event sees stay at 0: solve among the others.
    basis = np.linalg.qr(likelihood.features.T)[0]
    whole = np.kron(basis, np.eye(len(likelihood.turn)))
    found = newton_mode(replace(likelihood, features=likelihood.features @ basis), start @ whole, None)
    return Mode(whole @ found.coefficients, found.evidence, found.precision, whole)
