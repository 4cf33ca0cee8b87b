"""The prior of intercept and weights: a mixture of normals (docs/model.md, section 10).

A node is one assumption on how experts depend, how much accuracy goes with agreement, and how much weights differ:

    w = s v + τ (I − v v'/v'v) ζ,   ζ ~ N(0, I),   a ~ N(0, (β s₀)²)    (10.3)

β is one of `BIASES`, v are the weights of a believed panel (Theorem 3.1) that add up to 1, s their sum, and s₀ its
prior mean. ln s has a heavy-tailed prior; that is written as a mixture too, of normals about values `Sums.value`, so
that sums between these are possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation.regression import intercept_root
from opinionpool.learning.constants import (
    BIAS_PROBABILITIES,
    DEPENDENCE,
    DIFFUSE_PROBABILITY,
    DIFFUSE_SD,
    SLOPE_SD,
    WEIGHT_SD,
    WEIGHT_SD_PROBABILITIES,
    Dependent,
)
from opinionpool.learning.prior import Believed
from opinionpool.learning.weight_beliefs import WeightBeliefs, weight_beliefs
from opinionpool.model.correlation import CommonCorrelation, Dependence
from opinionpool.model.features import Parts, believed_dependence

# Values of the sum of the weights; how wide the normal about each is, in distances between them; how they are spread.
SUMS, OVERLAP, SINH = 11, 0.6, 1.5
# Standard deviations of the prior of ln s that the values reach to.
REACH = 3.0
# A standard deviation of ln s below which its value is known.
KNOWN = 1e-6


class Sums(NamedTuple):
    """Prior of the sum of the experts' weights: a mixture of J normals, each with a prior of the intercept."""

    value: Array  # (J,)
    sd: Array  # (J,)
    probability: Array  # (J,)
    intercept: Array  # (J,); standard deviations of the intercept

    @classmethod
    def of(
        cls,
        mean: float,
        centres: Array,
        probability: Array,
        spreads: tuple[tuple[float, float], ...],
        intercepts: tuple[tuple[float, float], ...],
    ) -> Sums:
        """Return the prior with the mean `mean` that is a mixture of log-normals about `centres`.

        `centres` have probabilities `probability`; `spreads` are pairs (standard deviation of the logarithm,
        probability), `intercepts` pairs (standard deviation of the intercept, probability).
        """
        widest, centre = max(sd for sd, _ in spreads), np.log(centres)
        low, high = centre.min() - REACH * widest, centre.max() + REACH * widest
        if high - low < KNOWN:
            return cls.known(mean, intercepts)
        at = np.linspace(-1.0, 1.0, SUMS)
        x = (low + high) / 2.0 + (high - low) / 2.0 * np.sinh(SINH * at) / np.sinh(SINH)
        width = np.gradient(x)
        density = np.zeros(SUMS)
        for own, share in zip(centre.tolist(), probability.tolist(), strict=True):
            for sd, part in spreads:
                # No narrower than the distance of values.
                wide = np.maximum(sd, OVERLAP * width)
                density += share * part * np.exp(-0.5 * ((x - own + sd**2 / 2.0) / wide) ** 2) / wide
        share = density * width / (density @ width)
        value = np.exp(x) * mean / float(share @ np.exp(x))
        return cls(value, OVERLAP * width * value, share, np.zeros(SUMS)).with_intercepts(intercepts)

    @classmethod
    def known(cls, value: float, intercepts: tuple[tuple[float, float], ...]) -> Sums:
        """Return the prior if the sum of the weights is known to be `value`."""
        return cls(np.array([value]), np.zeros(1), np.ones(1), np.zeros(1)).with_intercepts(intercepts)

    @property
    def certain(self) -> bool:
        """True if the sum of the weights is known."""
        return bool(np.ptp(self.value) == 0)

    def with_intercepts(self, intercepts: tuple[tuple[float, float], ...]) -> Sums:
        """Return a copy with each normal repeated for each (standard deviation, probability) in `intercepts`."""
        sd, share = zip(*intercepts, strict=True)
        m, j = len(sd), len(self.value)
        probability = np.outer(share, self.probability).ravel()
        return Sums(np.tile(self.value, m), np.tile(self.sd, m), probability, np.repeat(np.array(sd), j))


@dataclass(frozen=True, eq=False)
class Nodes:
    """Prior of the experts' weights: B alternatives (nodes) of direction and spread, each with J normals of the sum."""

    probability: Array  # (B,)
    direction: Array  # (B, N); v, mean weights given a sum of 1
    weight_sd: Array  # (B,); τ, standard deviation of the weights given their sum, or 0 if `own` is given
    sums: Sums  # prior of the sum of the weights
    dependence: tuple[Dependent, ...]  # assumption about dependence at each node
    relative_sd: Array  # (B,); τ in units of s₀/√N
    free: int = 1  # coefficients of the intercept, K - 1
    own: Array | None = None  # (B, N, N); roots of covariances of the weights where worths of beliefs differ
    # (K - 1,); further uncertainty of the intercept, in its standard deviations: how much of a common bias is an error
    common: Array | None = None

    @property
    def mean(self) -> Array:
        """Prior mean of the experts' weights, (N,)."""
        return np.asarray(float(self.sums.probability @ self.sums.value) * (self.probability @ self.direction))

    @property
    def intercept(self) -> Array:
        """Root of the covariance of an intercept whose standard deviation is 1, (K - 1, K - 1)."""
        root = intercept_root(1.0, self.free)
        if self.common is not None:
            root[:] = np.linalg.cholesky(root @ root.T + np.outer(self.common, self.common))
        return root

    @property
    def intercept_sd(self) -> float:
        """Prior standard deviation of the intercept."""
        return float(np.sqrt(self.sums.probability @ self.sums.intercept**2))

    def along(self, basis: Array | None) -> Nodes:
        """Return the prior of the weights' coordinates along `basis` (N, R); itself if `basis` is None."""
        return self if basis is None else replace(self, direction=self.direction @ basis)

    @property
    def deviations(self) -> Array:
        """Covariance of the experts' weights in each alternative prior, given their sum s, (B, N, N)."""
        if self.own is not None:
            return np.asarray(self.own @ np.swapaxes(self.own, 1, 2))
        h, tau = self.across()
        return tau[:, None, None] ** 2 * (np.eye(h.shape[1]) - h[:, :, None] * h[:, None, :])

    def across(self) -> tuple[Array, Array]:
        """Direction h (B, N) and scale τ (B,) of the covariance τ² (I − hh') of weights given their sum, by prior."""
        v = self.direction
        return v / np.sqrt(np.einsum("bi,bi->b", v, v))[:, None], self.weight_sd

    def spread(self) -> Array:
        """Covariance of the experts' weights given their sum, averaged over the alternative priors, (N, N)."""
        if self.own is not None:
            wide = np.moveaxis(self.own * np.sqrt(self.probability)[:, None, None], 0, 1).reshape(self.own.shape[1], -1)
            return np.asarray(wide @ wide.T)
        h, tau = self.across()
        share = self.probability * tau**2
        return np.asarray(share.sum() * np.eye(h.shape[1]) - (h.T * share) @ h)

    @cached_property
    def moments(self) -> tuple[Array, Array, Array]:
        """Prior mean of the experts' weights, (N,); standard deviations along principal axes, (N,); axes (N, N)."""
        sums, v, mean = self.sums, self.direction, self.mean
        second = float(sums.probability @ (sums.value**2 + sums.sd**2))
        covariance = second * (v.T * self.probability) @ v - np.outer(mean, mean) + self.spread()
        distinct = np.unique(v, axis=0).T
        n, r = distinct.shape
        if r >= n or self.own is not None:
            size, vector = np.linalg.eigh(covariance)
        else:
            # Beyond the directions' span all variances are the same.
            vector, size = np.linalg.qr(distinct, mode="complete")[0], np.full(n, self.probability @ self.weight_sd**2)
            size[:r], turn = np.linalg.eigh(vector[:, :r].T @ covariance @ vector[:, :r])
            vector[:, :r] = vector[:, :r] @ turn
        return mean, np.sqrt(np.maximum(size, 1e-12 * max(size.max(), 1e-12))), vector


def prior_nodes(believed: Believed, d: int, *, options: bool) -> Nodes:
    """Prior of N experts' weights from beliefs about the experts; d = K - 1, `options` if classes differ by event."""
    n = len(believed)
    correlations, prior = (np.array(each) for each in believed.correlations)
    assumed = [weight_beliefs(believed, believed.rho, d, sd, options=options) for sd in (SLOPE_SD, DIFFUSE_SD)]
    total = float(assumed[0].mean.sum())
    narrow, wide = (each.slope_spread / total for each in assumed)
    centres = np.array([_sum_of(believed, rho) for rho in correlations.tolist()])
    least = 0.0 if believed.agreement is None or believed.correlation else believed.agreement.least
    middle = _sum_of(believed, max(believed.rho, least))
    spreads = ((narrow, 1.0 - DIFFUSE_PROBABILITY), (wide, DIFFUSE_PROBABILITY))
    sums = Sums.of(middle, centres, prior, spreads, _intercepts(assumed[0], middle / total))
    kinds = _dependences(believed)
    sds, share = _weight_sds(n)
    unit = middle / np.sqrt(n)
    tau = np.array([assumed[0].deviation(each * unit) for each in sds])
    direction = np.array([_direction(believed, kind) for kind in kinds])
    b, c, own = len(kinds), len(sds), None
    if not believed.alike and np.ptp(tau, axis=1).max() > 0:
        v = direction[0]
        own = (np.eye(n) - np.outer(v, v) / (v @ v)) * tau[:, None, :]
    return Nodes(
        probability=np.outer([kind.probability for kind in kinds], share).ravel(),
        direction=np.repeat(direction, c, axis=0),
        weight_sd=np.tile(tau[:, 0], b),
        sums=sums,
        dependence=tuple(kind for kind in kinds for _ in sds),
        relative_sd=np.tile(sds, b),
        free=d,
        own=own,
    )


def _intercepts(beliefs: WeightBeliefs, factor: float) -> tuple[tuple[float, float], ...]:
    """Return priors of the intercept as pairs: standard deviation (times `factor`), probability."""
    pairs = zip(beliefs.intercept_spreads, BIAS_PROBABILITIES, strict=True)
    return tuple((sd * factor, share) for sd, share in pairs)


def _weight_sds(n: int) -> tuple[Array, Array]:
    """Return a grid of standard deviations of `n` experts' weights, relative to the mean weight, and probabilities."""
    if n == 1:
        return np.zeros(1), np.ones(1)
    return np.array(WEIGHT_SD), np.array(WEIGHT_SD_PROBABILITIES)


def _sum_of(believed: Believed, rho: float) -> float:
    """Return the sum of the believed weights if errors have the correlation `rho`, whatever agreement implies."""
    n = len(believed)
    if not believed.alike:
        return float(believed.weights(rho).sum())
    return float(believed.calibration.value.mean()) * n / (1.0 + (n - 1) * rho)


def _dependences(believed: Believed) -> tuple[Dependent, ...]:
    """Return alternative assumptions on how experts' errors correlate, with probabilities."""
    if believed.agreement is None:
        return (Dependent("nested", believed.rho, 0.0, 1.0),)
    if believed.correlation is None:
        return DEPENDENCE
    # The correlation is believed; how good a guide agreement is, is not.
    same: dict[tuple[str, float, str], float] = {}
    for kind in DEPENDENCE:
        which = kind.kind, kind.exponent, kind.guide
        same[which] = same.get(which, 0.0) + kind.probability
    return tuple(Dependent(name, believed.rho, e, p, guide) for (name, e, guide), p in same.items())


def _direction(believed: Believed, dependent: Dependent) -> Array:
    """Return the weights that follow from one assumption on correlation and accuracy, (N,), at least 0, with sum 1."""
    accuracy, kappa, rho = believed.accuracy_by(dependent), believed.calibration.value, dependent.correlation
    nested = dependent.kind == "nested"
    among: Dependence = believed_dependence(rho, accuracy) if nested else CommonCorrelation(len(accuracy), rho)
    parts = Parts(accuracy / kappa, np.sqrt(2.0 * accuracy) / kappa, among)
    weights = parts.weights_for(np.ones((1, len(accuracy)), dtype=bool))[0]
    weights = np.maximum(weights, 0.0)
    return np.asarray(weights / weights.sum())
