"""Mean differences of scores with simultaneous intervals that are valid for few and for skewed differences.

Differences of log scores are skewed: mostly small gains, and now and then a large loss, which a small sample may not
contain. Student's interval is then too narrow. Here each limit is Student's for the sample plus imagined events that
contradict a difference in the limit's direction: one as far from the mean as the farthest observed on that side, and as
many more as there are fewer than five such events in the sample. `benchmarks/claims.py` measures error rates and power.

Events that share a group or a date are one cluster, and intervals are never narrower than for independent events. Their
width follows from the distribution of the largest studentised difference (White 2000, "A reality check for data
snooping", Econometrica 68; Chernozhukov, Chetverikov & Kato 2013, Annals of Statistics 41), so they
stay valid for the largest difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index

# Of intervals for all differences at once.
LEVEL = 0.95
# Fewer clusters than these say nothing about how far a difference may be off.
FEWEST_CLUSTERS = 10
# A claim is weighed as if so many clusters spoke against it, and one more than did.
AGAINST = 5
# These lie on the far side of the mean by this share of the farthest that was seen, by so many standard deviations, and
# by twice the mean, at least.
FARTHEST, DEVIATIONS = 0.8, 2.0
# A verdict from fewer clusters than `FIRM`, or whose interval ends nearer to 0 than `MARGIN` times its width over √n,
# changes in half of all cases if two outcomes do; others in a tenth. Simulated: tests/scoring/test_intervals.py.
FIRM, MARGIN = 100, 2.0
# What differs by less does not differ.
ROUNDING = 1e-9
# Draws from which the largest of all deviations is read off. More differences than these are taken as independent.
DRAWS, MOST_DRAWN = 20_000, 200


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums and counts of M scores by cluster of dependent events, for means and standard errors; G clusters."""

    # total, count: (G, M); sum of values, and number of events with a value
    total: Array
    count: Array

    @classmethod
    def of(cls, values: Array, clusters: Index) -> ClusterSums:
        """Sums by cluster of `values` (T, M), NaN where missing; `clusters` (T,) numbers each event's cluster."""
        labels, member = np.unique(clusters, return_inverse=True)
        size = len(labels)
        present = ~np.isnan(values)
        filled = np.where(present, values, 0.0)
        total, count = np.zeros((2, size, values.shape[1]))
        for i in range(values.shape[1]):
            total[:, i] = np.bincount(member, weights=filled[:, i], minlength=size)
            count[:, i] = np.bincount(member, weights=present[:, i], minlength=size)
        return cls(total, count)

    @cached_property
    def mean(self) -> Array:
        """Mean of each score over events, (M,); NaN if no event has the score."""
        count = self.count.sum(axis=0)
        return np.asarray(np.where(count > 0, self.total.sum(axis=0) / np.maximum(count, 1.0), np.nan))

    @cached_property
    def clusters(self) -> Array:
        """Number of clusters in which an event has the score, for each score, (M,)."""
        return np.asarray((self.count > 0).sum(axis=0))

    @cached_property
    def influence(self) -> Array:
        """Each cluster's sum of deviations from a score's mean, over the number of events, (G, M); the sum is 0."""
        residual = self.total - np.where(np.isnan(self.mean), 0.0, self.mean) * self.count
        return np.asarray(residual / np.maximum(self.count.sum(axis=0), 1.0))

    @property
    def error(self) -> Array:
        """Standard error of each mean, (M,), if clusters are independent; NaN with fewer than two clusters."""
        size = self.clusters
        variance = (self.influence**2).sum(axis=0) * size / np.maximum(size - 1, 1)
        return np.asarray(np.where(size > 1, np.sqrt(variance), np.nan))


@dataclass(frozen=True)
class Difference:
    """Mean difference of two normalised log scores, above 0 if the first is better.

    Attributes
    ----------
    mean : float
    low, high : float
        Limits of the confidence interval of the mean; NaN if there are too few independent events.
    """

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Return "better", "worse", "the same" (on every event), "unclear" or "too few events"."""
        if np.isnan(self.low):
            return "too few events"
        if self.low > 0:
            return "better"
        if self.high < 0:
            return "worse"
        return "the same" if self.high - self.low < 1e-12 else "unclear"

    def is_firm(self, clusters: int) -> bool:
        """Return True unless the verdict "better" or "worse", from so many clusters, may change with two outcomes."""
        nearest, width = max(self.low, -self.high), self.high - self.low
        return not nearest > 0 or (clusters >= FIRM and nearest * clusters**0.5 >= MARGIN * width)


def difference_intervals(
    values: Array, clusters: Index, *, level: float = 0.95, each: bool = False, seed: int = 0
) -> list[Difference]:
    """Means of M score differences `values` (T, M), NaN where missing, with intervals: simultaneous unless `each`."""
    mean, low, high = _intervals(ClusterSums.of(values, clusters), level, each, seed)
    if len(np.unique(clusters)) < len(clusters):
        # By chance clusters may look more alike than independent events, but they never tell more.
        _, least, most = _intervals(ClusterSums.of(values, np.arange(len(values))), level, each, seed)
        low, high = np.minimum(low, least), np.maximum(high, most)
    return [Difference(*row) for row in zip(mean.tolist(), low.tolist(), high.tolist(), strict=True)]


def _intervals(sums: ClusterSums, level: float, each: bool, seed: int) -> tuple[Array, Array, Array]:
    """Means of scores, and lower and upper limits, (M,) each: NaN for too few clusters, the mean if all are equal."""
    mean, error = sums.mean, sums.error
    enough = sums.clusters >= FEWEST_CLUSTERS
    mean = np.where((error <= ROUNDING) & (np.abs(mean) <= ROUNDING), 0.0, mean)
    moving = enough & ((error > ROUNDING) | (mean != 0.0))
    low, high = np.where(enough, mean, np.nan), np.where(enough, mean, np.nan)
    tail = (1.0 - level) / 2.0 if each else _tail(sums.influence[:, moving & (error > ROUNDING)], level, seed)
    for i in np.flatnonzero(moving):
        present = sums.count[:, i] > 0
        value = mean[i] + sums.influence[present, i] * present.sum()
        sign = np.sign(np.where(np.abs(sums.total[present, i]) > ROUNDING, sums.total[present, i], 0.0))
        low[i] = _low(value, int((sign < 0).sum()), tail)
        high[i] = -_low(-value, int((sign > 0).sum()), tail)
    return mean, low, high


def _low(values: Array, against: int, tail: float) -> float:
    """Lower confidence limit of the mean of `values`, missed with probability `tail`; `against` values are below 0."""
    from scipy.special import stdtrit

    size, mean, spread = len(values), float(values.mean()), float(values.std(ddof=1))
    further = 1 + max(AGAINST - against, 0)
    away = max(FARTHEST * (mean - float(values.min())), DEVIATIONS * spread, 2.0 * mean)
    total = size + further
    squares = (size - 1) * spread**2 + further * away**2 * size / total
    error = np.sqrt(squares / (total - 1) / total)
    return float(mean - further * away / total + stdtrit(size - 1.0, tail) * error)


def _tail(influence: Array, level: float, seed: int) -> float:
    """Tail probability on each side of intervals that simultaneously cover all means with probability `level`."""
    from scipy.special import ndtr

    number = influence.shape[1]
    if number <= 1:
        return (1.0 - level) / 2.0
    if number > MOST_DRAWN:
        return float(-np.expm1(np.log(level) / number)) / 2.0
    # In an order of their own, so that it does not matter in which they were given.
    scaled = influence / np.sqrt(np.square(influence).sum(axis=0))
    scaled = scaled[:, np.lexsort((scaled.min(axis=0), scaled.max(axis=0)))]
    # Copies of a difference are perfectly correlated.
    root = np.linalg.cholesky(scaled.T @ scaled + 1e-9 * np.eye(number))
    drawn: npt.NDArray[np.float64] = np.random.default_rng(seed).normal(size=(DRAWS, number)) @ root.T
    return min(float(ndtr(-np.quantile(np.abs(drawn).max(axis=1), level))), (1.0 - level) / 2.0)
