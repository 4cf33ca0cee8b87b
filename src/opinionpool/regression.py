"""A log pool around equal weights as a regression on outcomes, its coefficients normal beforehand.

L* = L° + Σ w_i u_i + a, where u_i are the experts' contrasts as far as they are believed, and the weights are
w_i = slope/N + d_i with Σ d_i = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array
from opinionpool.mode import Mode, posterior_mode


@dataclass(frozen=True)
class WeightBeliefs:
    """Means and standard deviations of the coefficients.

    Attributes
    ----------
    slope : float
        Mean of the sum of the weights.
    slope_spread : float
    intercept_spread : float
        In log-odds, a class-symmetric spread when K > 2.
    """

    slope: float
    slope_spread: float
    intercept_spread: float


@dataclass(frozen=True, eq=False)
class Coefficients:
    """What a regression found.

    Attributes
    ----------
    slope : float
        Sum of the weights.
    intercept : ndarray, shape (K - 1,)
    apart : ndarray, shape (N,)
        Differences of the weights from equal ones.
    evidence : float
        Log probability of the outcomes under the beliefs.
    mode : Mode
        The standardised coefficients.
    root : ndarray, shape (K - 1, K - 1)
        What makes the intercept of its coefficients.
    slope_spread, apart_spread : float
        What slope and differences are multiples of.
    """

    slope: float
    intercept: Array
    apart: Array
    evidence: float
    mode: Mode
    root: Array
    slope_spread: float
    apart_spread: float

    @property
    def values(self) -> Array:
        """Intercept and weights, (K - 1 + N,)."""
        n = len(self.apart)
        return np.concatenate([self.intercept, self.slope / n + self.apart])

    def covariance(self) -> Array:
        """Covariance of intercept and weights given the outcomes, (K - 1 + N, K - 1 + N)."""
        n, d, p = len(self.apart), len(self.root), len(self.mode.coefficients)
        standard = np.zeros((d + n, p))
        standard[:d, 1 : 1 + d] = self.root
        standard[d:, 0] = self.slope_spread / n
        if p > 1 + d:
            standard[d:, 1 + d :] = self.apart_spread * (np.eye(n) - 1.0 / n)
        return np.asarray(standard @ self.mode.covariance @ standard.T)


@dataclass(frozen=True, eq=False)
class Regression:
    """Outcomes of T events and what N experts contribute to them.

    Attributes
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        u, none missing.
    offset : ndarray, shape (T, K - 1)
        L°.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    beliefs : WeightBeliefs
    """

    contrasts: Array
    offset: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    beliefs: WeightBeliefs

    def fit(self, apart: float, start: Coefficients | None = None) -> Coefficients:
        """The most probable coefficients if weights differ from each other by about `apart`."""
        t, n, d = self.contrasts.shape
        held = self.beliefs
        level = self.contrasts.mean(axis=1)
        root = intercept_root(held.intercept_spread, d)
        columns = [held.slope_spread * level[:, None, :], np.broadcast_to(root.T, (t, d, d))]
        several = apart > 0 and n > 1
        if several:
            columns.append(apart * (self.contrasts - level[:, None, :]))
        first = None
        if start is not None and len(start.mode.coefficients) == 1 + d + (n if several else 0):
            first = start.mode.coefficients
        mode = posterior_mode(
            np.concatenate(columns, axis=1), self.outcomes, self.offset + held.slope * level, self.weight, first
        )
        theta = mode.coefficients
        found = apart * theta[1 + d :] if several else np.zeros(n)
        return Coefficients(
            held.slope + held.slope_spread * float(theta[0]),
            root @ theta[1 : 1 + d],
            found - found.mean(),
            mode.evidence,
            mode,
            root,
            held.slope_spread,
            apart,
        )


def intercept_root(spread: float, d: int) -> Array:
    """Root of the covariance of an intercept about 0, (K - 1, K - 1): independent log-probabilities favour no class."""
    return np.asarray(spread * np.linalg.cholesky((np.eye(d) + 1.0) / 2.0), dtype=np.float64)


def harmonic_mean(values: npt.ArrayLike, chance: npt.ArrayLike) -> float:
    """The mean that leans to the small ones among positive values of given probabilities."""
    return float(1.0 / (np.asarray(chance) @ (1.0 / np.asarray(values, dtype=np.float64))))


def chances(evidence: list[float], prior: tuple[float, ...]) -> Array:
    """Posterior probabilities of alternatives from their log evidence and prior probabilities."""
    score = np.array(evidence) + np.log(prior)
    chance = np.exp(score - score.max())
    return np.asarray(chance / chance.sum())
