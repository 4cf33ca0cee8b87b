"""What beliefs about a panel's features leave open about its weights, to first order.

The weights of Theorem 3.1, w = D R⁻¹ g with D = κ/√m and g = √m, change with the logarithms of calibrations and
accuracies, and with the common correlation, by

    ∂w/∂log κ = diag(w),    ∂w/∂log m = ½ (D R⁻¹ diag(g) − diag(w)),    ∂w/∂ρ = −D R⁻¹ (11' − I) R⁻¹ g.

Beforehand, the logarithms of calibrations have a common spread of `SLOPE`, and those of calibrations and accuracies
differ from each other equally much, so much that weights differ by `apart`. A belief worth n is n events on which the
estimates from moments were what is believed, and what is worth less is seen on some of the same events only; their
errors, per event, have the covariances

    log κ: A + 2R²,    log m: 4A + 2R²,    log κ with log m: 2A + 2R²,    ρ: 2((1 − ρ)(1 + (N−1)ρ))²/(N(N−1)),
    ρ with either: −2ρ(1 − ρ)(1 + (N−1)ρ)/N,    where A_ij = R_ij σ_i σ_j/(μ_i μ_j), and R² is taken element by element.

Of K classes, A counts K/(2(K − 1)) times, and the others 1/(K − 1) times.

For equal experts all of it splits into what moves all weights together and what moves them apart. What is said of one
expert by name is worth something about that expert alone: it narrows the expert's own deviations, from what is believed
of it and, in accuracy, from the others, and leaves the others to be learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np

from opinionpool.believed import BIAS, CORRELATION_CHANCES, CORRELATIONS, ROUNDING, SLOPE, Believed
from opinionpool.logodds import Array
from opinionpool.regression import WeightBeliefs

Block = TypeVar("Block", float, Array)
# How far the logarithm of the experts' accuracy is open; weights do not depend on it, errors of calibration do.
LEVEL = 1.0


def weight_beliefs(believed: Believed, rho: float, d: int = 1) -> WeightBeliefs:
    """Beliefs about weights and intercept if the common correlation is about `rho`, which is below 1; d = K - 1."""
    open_ = _Open(believed, rho, believed.weights(rho), d)
    mean, intercept = open_.mean, open_.intercept_spread()
    if believed.alike:
        return WeightBeliefs(mean, open_.together(), intercept, open_.apart_alike)
    return WeightBeliefs(mean, 0.0, intercept, cache(open_.apart))


@dataclass(frozen=True, eq=False)
class _Open:
    """Beliefs about features at one correlation, and the weights that they mean."""

    believed: Believed
    rho: float
    mean: Array
    free: int

    @property
    def noise(self) -> float:
        """σ²/μ² of a typical expert."""
        return float((2.0 / self.believed.accuracy.value).mean())

    def features(self, noise: Block, squared: Block) -> tuple[tuple[Block, Block], tuple[Block, Block]]:
        """Covariance of errors of log κ and log m per event, from A and 2R²."""
        # K - 1 rows of the regression tell of variances, and all of them together of μ by its signature.
        noise, squared = noise * (self.free + 1) / (2 * self.free), squared / self.free
        both = 2.0 * noise + squared
        return (noise + squared, both), (both, 4.0 * noise + squared)

    def intercept_spread(self) -> float:
        """Of Σ w_i b_i, biases being off together."""
        n, spread = len(self.mean), self.believed.parts(self.rho).spread
        per_event = float((spread**2).mean()) * (1.0 + (n - 1) * self.rho) / n
        each = BIAS / np.sqrt(1.0 + BIAS**2 * self.believed.bias.worth / per_event)
        return float(np.abs(self.mean @ each))

    @property
    def worths(self) -> tuple[float, float, float]:
        """Of beliefs about calibration and accuracy of all experts, and about their correlation."""
        held = self.believed
        return float(held.calibration.worth[0]), float(held.accuracy.worth[0]), held.correlation_worth

    def of_correlation(self) -> tuple[float, float, float]:
        """What is open about the correlation by itself, and the errors per event, by itself and with features.

        Nothing is open where nothing was said, as `CORRELATIONS` are then averaged.
        """
        n, rho = len(self.mean), self.rho
        if self.believed.correlation is None or n == 1:
            return 0.0, 1.0, 0.0
        level = (1.0 - rho) * (1.0 + (n - 1) * rho)
        centre = float(np.dot(CORRELATION_CHANCES, CORRELATIONS))
        assumed = float(np.dot(CORRELATION_CHANCES, (np.array(CORRELATIONS) - centre) ** 2))
        return assumed, 2.0 * level**2 / (n * (n - 1)) / self.free, -2.0 * rho * level / n / self.free

    def together(self) -> float:
        """Spread of the sum of equal weights."""
        n, rho = len(self.mean), self.rho
        shared, squared = self.noise * (1.0 + (n - 1) * rho) / n, 2.0 * (1.0 + (n - 1) * rho**2) / n
        assumed, alone, beside = self.of_correlation()
        per_event = np.full((3, 3), beside)
        per_event[:2, :2] = self.features(shared, squared)
        per_event[2, 2] = alone
        left = _conditioned(np.diag([SLOPE**2, LEVEL**2, assumed]), np.array(self.worths), per_event)
        change = np.array([1.0, 0.0, -(n - 1) / (1.0 + (n - 1) * rho)])
        return float(self.mean.sum() * np.sqrt(change @ left @ change))

    def slopes(self) -> tuple[float, float]:
        """How a typical weight changes with log calibration and log accuracy of its expert, beside the others."""
        n, rho, kappa = len(self.mean), self.rho, float(self.believed.calibration.value.mean())
        level = 1.0 + (n - 1) * rho
        return kappa / level, kappa * rho * n / (2.0 * (1.0 - rho) * level)

    def differing(self, apart: float) -> float:
        """Variance of log calibration, and of log accuracy, that makes weights differ by `apart`."""
        by_calibration, by_accuracy = self.slopes()
        return apart**2 / (by_calibration**2 + by_accuracy**2)

    def apart_alike(self, apart: float) -> float:
        """How much equal weights differ once beliefs about all experts are counted, where it would be `apart`."""
        worths, rho = self.worths[:2], self.rho
        if not any(worths):
            return apart
        per_event = self.features(self.noise * (1.0 - rho), 2.0 * (1.0 - rho**2))
        left = _conditioned(self.differing(apart) * np.eye(2), np.array(worths), np.array(per_event))
        change = np.array(self.slopes())
        return float(np.sqrt(change @ left @ change))

    def apart(self, apart: float) -> Array:
        """Root of the covariance of weights, (N, N), where they would differ by `apart` if nothing were said."""
        n, held, variance = len(self.mean), self.believed, self.differing(apart)
        r, differing = held.parts(self.rho).dependence.matrix(), variance * (np.eye(n) - 1.0 / n)
        noise = 2.0 / np.sqrt(np.outer(held.accuracy.value, held.accuracy.value)) * r
        assumed, alone, beside = self.of_correlation()
        prior, per_event = np.zeros((2 * n + 1, 2 * n + 1)), np.full((2 * n + 1, 2 * n + 1), beside)
        prior[:n, :n], prior[n:-1, n:-1], prior[-1, -1] = SLOPE**2 + differing, LEVEL**2 + differing, assumed
        per_event[:-1, :-1] = np.block([list(row) for row in self.features(noise, 2.0 * r**2)])
        per_event[-1, -1] = alone
        # What is said of everybody is what the least is said of anybody.
        said = np.concatenate([held.calibration.worth, held.accuracy.worth, [held.correlation_worth]])
        common = np.repeat([held.calibration.worth.min(), held.accuracy.worth.min(), said[-1]], [n, n, 1])
        left = _conditioned(prior, common, per_event)
        left[n:-1] -= left[n:-1].mean(axis=0)
        left[:, n:-1] -= left[:, n:-1].mean(axis=1, keepdims=True)
        own = 1.0 / np.sqrt(1.0 + np.diag(left) * (said - common) / np.diag(per_event))
        change = np.concatenate([np.diag(self.mean), *self._jacobians()], axis=1) * own
        covariance = change @ left @ change.T
        value, vector = np.linalg.eigh((covariance + covariance.T) / 2.0)
        return np.asarray(vector * np.sqrt(np.where(value > ROUNDING * value[-1], value, 0.0)))

    def _jacobians(self) -> tuple[Array, Array]:
        """∂w/∂log m, (N, N), and ∂w/∂ρ, (N, 1)."""
        n, rho = len(self.mean), self.rho
        size = np.sqrt(self.believed.accuracy.value)
        scale = self.believed.calibration.value / size
        inverse = (np.eye(n) - rho / (1.0 + (n - 1) * rho)) / (1.0 - rho) if n > 1 else np.ones((1, 1))
        by_accuracy = (scale[:, None] * inverse * size - np.diag(self.mean)) / 2.0
        solved = inverse @ size
        return by_accuracy, -(scale * (inverse @ (solved.sum() - solved)))[:, None]


def _conditioned(covariance: Array, worth: Array, per_event: Array) -> Array:
    """What is open about quantities once those of some worth were seen where they are believed to be."""
    left, before = covariance.copy(), 0.0
    for level in np.unique(worth[worth > 0]).tolist():
        # Events on which all of so much worth are seen, beyond those on which the others are seen too.
        said = np.flatnonzero(worth >= level)
        seen = left[np.ix_(said, said)] + per_event[np.ix_(said, said)] / (level - before)
        size = np.sqrt(np.diag(seen))
        known = left[:, said] / size
        left -= known @ np.linalg.pinv(seen / np.outer(size, size), rcond=ROUNDING, hermitian=True) @ known.T
        before = level
    return np.asarray(np.where(np.abs(left) > ROUNDING * np.abs(covariance).max(), left, 0.0))
