"""Mean differences with intervals that hold for all of them at once, by resampling clusters of events.

Events that share a group or a date are drawn together. The intervals are as wide as the largest of all studentised
differences calls for (White 2000, "A reality check for data snooping", Econometrica 68; Westfall & Young 1993), so
that picking out the largest afterwards does no harm; few clusters widen them as Student's t is wider than the normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index

RESAMPLES = 2000
# More clusters than these are bundled at random, which changes no mean and hardly an error.
MOST_CLUSTERS = 4000
# Fewer say nothing about how far a difference may be off.
FEWEST_CLUSTERS = 5
# What differs by less does not differ.
ROUNDING = 1e-9
_BLOCK = 100


@dataclass(frozen=True, eq=False)
class Sums:
    """Values summed over clusters of events.

    Attributes
    ----------
    total, count : ndarray, shape (G, M)
        Of M quantities, in each of G clusters.
    """

    total: Array
    count: Array

    @classmethod
    def of(cls, values: Array, clusters: Index, seed: int = 0) -> Sums:
        """Sums of values (T, M), NaN where there is none, over the clusters (T,) that they belong to."""
        labels, member = np.unique(clusters, return_inverse=True)
        size = len(labels)
        if size > MOST_CLUSTERS:
            bundle = np.random.default_rng(seed).permutation(size) % MOST_CLUSTERS
            member, size = bundle[member], MOST_CLUSTERS
        present = ~np.isnan(values)
        filled = np.where(present, values, 0.0)
        total = [np.bincount(member, weights=column, minlength=size) for column in filled.T]
        count = [np.bincount(member, weights=column, minlength=size) for column in present.T]
        return cls(np.stack(total, axis=1), np.stack(count, axis=1))

    @property
    def mean(self) -> Array:
        """Mean over the events, (M,); NaN without any."""
        count = self.count.sum(axis=0)
        return np.asarray(np.where(count > 0, self.total.sum(axis=0) / np.maximum(count, 1.0), np.nan))

    @property
    def clusters(self) -> Array:
        """How many clusters have a value, (M,)."""
        return np.asarray((self.count > 0).sum(axis=0))

    @property
    def error(self) -> Array:
        """Standard error of the mean when clusters are independent, (M,); NaN with fewer than two."""
        residual = self.total - np.where(np.isnan(self.mean), 0.0, self.mean) * self.count
        size = self.clusters
        variance = (residual**2).sum(axis=0) * size / np.maximum(size - 1, 1)
        return np.asarray(np.where(size > 1, np.sqrt(variance) / np.maximum(self.count.sum(axis=0), 1.0), np.nan))

    def less(self, columns: Index, others: Index) -> Sums:
        """Differences of quantities that have values on the same events, one for each pair of positions."""
        return Sums(self.total[:, columns] - self.total[:, others], self.count[:, columns])


@dataclass(frozen=True, eq=False)
class Intervals:
    """Mean differences, and between which limits all of them lie at once.

    Attributes
    ----------
    mean, low, high : ndarray, shape (M,)
        The limits are NaN where there are too few clusters; equal to the mean where no event differs.
    """

    mean: Array
    low: Array
    high: Array


def simultaneous_intervals(sums: Sums, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> Intervals:
    """Intervals that hold all at once with probability `level`.

    Parameters
    ----------
    sums : Sums
        Of M differences.
    level : float
    resamples : int
        How often the clusters are drawn anew, with replacement.
    seed : int

    Examples
    --------
    >>> values = np.random.default_rng(1).normal(0.3, 1.0, size=(200, 1))
    >>> found = simultaneous_intervals(Sums.of(values, np.arange(200)))
    >>> [round(float(x[0]), 1) for x in (found.mean, found.low, found.high)]
    [0.2, 0.1, 0.4]
    """
    from scipy.special import ndtr, stdtrit

    mean, error, size = sums.mean, sums.error, sums.clusters
    enough = size >= FEWEST_CLUSTERS
    moving = enough & (error > ROUNDING)
    mean = np.where((error <= ROUNDING) & (np.abs(mean) <= ROUNDING), 0.0, mean)
    half = np.where(enough, 0.0, np.nan)
    if moving.any():
        total, count = sums.total[:, moving], sums.count[:, moving]
        largest = _largest(total, count, mean[moving], error[moving], resamples, seed)
        tail = float(ndtr(-np.quantile(largest, level)))
        half[moving] = -stdtrit(size[moving] - 1.0, tail) * error[moving]
    return Intervals(mean, mean - half, mean + half)


def _largest(total: Array, count: Array, mean: Array, error: Array, resamples: int, seed: int) -> Array:
    """The largest studentised deviation of each resample, (resamples,)."""
    rng = np.random.default_rng(seed)
    size = len(total)
    whole = bool((count == 1.0).all())
    found = []
    for start in range(0, resamples, _BLOCK):
        drawn = rng.multinomial(size, np.full(size, 1.0 / size), size=min(_BLOCK, resamples - start)).astype(float)
        number = np.full((len(drawn), 1), float(size)) if whole else drawn @ count
        away = np.abs((drawn @ total) / np.maximum(number, 1.0) - mean) / error
        found.append(np.where(number > 0, away, 0.0).max(axis=1))
    return np.concatenate(found)
