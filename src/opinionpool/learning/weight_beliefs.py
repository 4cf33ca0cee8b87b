"""Beliefs about weights from beliefs about features, by Theorem 3.1 of the paper to first order (model.md, 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array
from opinionpool.learning.constants import BIASES, CORRELATION_PROBABILITIES, CORRELATIONS, LEVEL, SLOPE_SD
from opinionpool.learning.prior import Believed

# Below this share of the largest, an eigenvalue of a covariance is rounding.
ROUNDING = 1e-11


class WeightBeliefs(NamedTuple):
    """Prior means and standard deviations of the weights of N experts, and of the intercept."""

    mean: Array  # (N,)
    slope_spread: float  # standard deviation of the sum of the weights as they move in proportion
    # standard deviations of the intercept in log-odds, for each of `BIASES`; 0 if there is no intercept
    intercept_spreads: tuple[float, ...]
    # Function of the standard deviation of weights about their mean without beliefs; returns that with beliefs, (N,).
    deviation: Callable[[float], Array]


def weight_beliefs(
    believed: Believed, rho: float, d: int = 1, slope: float = SLOPE_SD, *, options: bool = False
) -> WeightBeliefs:
    """Return the prior of weights and intercept that follows from beliefs about experts, at the correlation `rho` < 1.

    d = K - 1; the sum of the weights has the relative standard deviation `slope`. If each event has `options` of its
    own, it counts as one binary event, and no expert has a bias.
    """
    open_ = _WeightPrior(believed, rho, believed.weights(rho), 1 if options else d, slope)
    intercept = tuple(0.0 if options else open_.intercept_spread(bias) for bias in BIASES)
    return WeightBeliefs(open_.mean, open_.together(), intercept, open_.deviation)


@dataclass(frozen=True, eq=False)
class _WeightPrior:
    """Prior of the experts' weights that follows from beliefs about the experts, if their correlation is `rho`."""

    believed: Believed
    rho: float  # correlation of the experts
    mean: Array  # (N,); prior mean of the weights
    free: int  # K - 1, or 1 if events have options of their own
    slope: float  # relative standard deviation of the sum of the weights

    @property
    def noise(self) -> float:
        """Mean over the experts of σ²/μ², the squared ratio of spread to contrast."""
        return float((2.0 / self.believed.accuracy.value).mean())

    def error_covariances(self, noise: float, squared: float) -> Array:
        """Covariances (2, 2) of errors of log calibration, accuracy by an event; `noise` is σ²R/μ², `squared` 2R²."""
        # K - 1 rows of the regression tell of variances, and all of them together of μ by its signature.
        noise, squared = noise * (self.free + 1) / (2 * self.free), squared / self.free
        both = 2.0 * noise + squared
        return np.array([[noise + squared, both], [both, 4.0 * noise + squared]])

    def intercept_spread(self, bias: float) -> float:
        """Standard deviation of Σ weight · bias, the intercept, if all biases share an error with sd `bias`."""
        n, spread = len(self.mean), self.believed.parts(self.rho).spread
        per_event = float((spread**2).mean()) * (1.0 + (n - 1) * self.rho) / n
        each = bias / np.sqrt(1.0 + bias**2 * self.believed.bias.worth / per_event)
        return float(np.abs(self.mean @ each))

    @property
    def worths(self) -> tuple[float, float, float]:
        """Events that beliefs about all experts' calibration, accuracy and correlation count as."""
        panel_beliefs = self.believed
        return (
            float(panel_beliefs.calibration.worth.min()),
            float(panel_beliefs.accuracy.worth.min()),
            panel_beliefs.correlation_worth,
        )

    def of_correlation(self) -> tuple[float, float, float]:
        """Prior variance of experts' correlation; its error's variance by one event; covariance with other errors.

        The prior variance is 0 without a belief about the correlation, as answers are then averaged over
        `CORRELATIONS`.
        """
        n, rho = len(self.mean), self.rho
        if self.believed.correlation is None or n == 1:
            return 0.0, 1.0, 0.0
        level = (1.0 - rho) * (1.0 + (n - 1) * rho)
        centre = float(np.dot(CORRELATION_PROBABILITIES, CORRELATIONS))
        assumed = float(np.dot(CORRELATION_PROBABILITIES, (np.array(CORRELATIONS) - centre) ** 2))
        return assumed, 2.0 * level**2 / (n * (n - 1)) / self.free, -2.0 * rho * level / n / self.free

    def together(self) -> float:
        """Prior standard deviation of the sum of the weights, if all experts are alike."""
        n, rho = len(self.mean), self.rho
        shared, squared = self.noise * (1.0 + (n - 1) * rho) / n, 2.0 * (1.0 + (n - 1) * rho**2) / n
        assumed, single, beside = self.of_correlation()
        per_event = np.full((3, 3), beside)
        per_event[:2, :2] = self.error_covariances(shared, squared)
        per_event[2, 2] = single
        left = _conditioned(np.diag([self.slope**2, LEVEL**2, assumed]), np.array(self.worths), per_event)
        change = np.array([1.0, 0.0, -(n - 1) / (1.0 + (n - 1) * rho)])
        return float(self.mean.sum() * np.sqrt(change @ left @ change))

    def slopes(self) -> tuple[float, float]:
        """Differences in weight between experts who differ by 1 in log calibration, and by 1 in log accuracy."""
        n, rho, kappa = len(self.mean), self.rho, float(self.believed.calibration.value.mean())
        level = 1.0 + (n - 1) * rho
        return kappa / level, kappa * rho * n / (2.0 * (1.0 - rho) * level)

    def deviation(self, deviation: float) -> Array:
        """Standard deviation of each weight about the believed weight, (N,); `deviation` is that without beliefs."""
        change, rho = np.array(self.slopes()), self.rho
        per_event = self.error_covariances(self.noise * (1.0 - rho), 2.0 * (1.0 - rho**2))
        prior = deviation**2 / (change @ change) * np.eye(2)
        worths = list(zip(self.believed.calibration.worth.tolist(), self.believed.accuracy.worth.tolist(), strict=True))
        left = {each: change @ _conditioned(prior, np.array(each), per_event) @ change for each in set(worths)}
        return np.sqrt([left[each] for each in worths])


def _conditioned(covariance: Array, worth: Array, per_event: Array) -> Array:
    """Posterior covariance after `worth` observations of each quantity, whose errors have covariance `per_event`."""
    if not worth.any():
        return covariance
    left, before = covariance.copy(), 0.0
    for level in np.unique(worth[worth > 0]).tolist():
        # Events on which all of so much worth are seen, beyond those on which the others are seen too.
        those = np.flatnonzero(worth >= level)
        seen = left[np.ix_(those, those)] + per_event[np.ix_(those, those)] / (level - before)
        size = np.sqrt(np.diag(seen))
        known = left[:, those] / size
        left -= known @ np.linalg.pinv(seen / np.outer(size, size), rcond=ROUNDING, hermitian=True) @ known.T
        before = level
    return np.asarray(np.where(np.abs(left) > ROUNDING * np.abs(covariance).max(), left, 0.0))
