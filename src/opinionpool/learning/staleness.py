"""What forecasts show before any outcome of how fast they go stale: old ones beside newer ones.

If a forecast of age t has kept the share 2^(−t/h) of what was known when it was made, a contrast C is a blurred copy of
one, C′, that was made d days later on the same event: given C′ it is taken as normal with mean r f C′ and variance
v ((1 − r) + r f (1 − r f)), f = 2^(−d/h). v is the variance of contrasts, and r which share of it two of them have in
common when they are made together. That is exact at r = 1, whatever the outcome. Below, the mean depends on the outcome
too: by f r (1 − r) v/2 to either side where the rest is noise, f (1 − r) v/2 where it is what just one of them knows;
this is left out. What they do not share makes them differ at any distance, decay the more the longer it was.

A pair is a forecast and the newest one by somebody else. Those whose forecasts are old may know less, or other things.
Where it is always the same who are early, that looks like decay, so pairs count by how much the time between the
forecasts of the same experts varies, and are relevant with a probability only; outcomes soon count for more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask
from opinionpool.learning.constants import CORRELATION, FURTHEST, TOGETHER

# How far lags vary is looked at by 2^(−lag/h), for h of so many median lags; at one, agreement counts fully from half
# the variance of exponential lags on, which is 1/12.
SCALES = (4.0, 1.0, 0.25)
VARIED = 1.0 / 24.0
# Sums of weights are that exact.
ROUNDING = 1e-9
# Forecasts are written to about so many log-odds.
WRITTEN = 0.05


def limited(contrast: Array) -> Array:
    """Contrasts (M, K - 1), none longer than `FURTHEST`; a length treats all classes alike."""
    length = np.sqrt(logodds.inner_products(contrast, contrast))
    return np.asarray(contrast * np.minimum(1.0, FURTHEST / np.maximum(length, FURTHEST))[:, None])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of an old contrast and a newer one on one event.

    Attributes
    ----------
    old, new : ndarray, shape (P, K - 1)
    days : ndarray, shape (P,)
        How much later the newer one was made, above 0.
    weight : ndarray, shape (P,)
        For how many events each counts: those on one are of experts who depend on each other.
    varied : float
        How far differences are those of time, and not of who forecast, from 0 to 1.
    """

    old: Array
    new: Array
    days: Array
    weight: Array
    varied: float = 1.0

    @classmethod
    def of(cls, event: Index, old: Array, new: Array, days: Array, count: Array, weight: Array) -> Pairs:
        """Pairs that count, `count` times each (P,), on events of some weights (T,)."""
        kept = np.flatnonzero((days > 0) & (count * weight[event] > 0))
        # In an order of their own, so that sums are the same to the last bit whatever order events have.
        kept = kept[np.lexsort((*new[kept].T, *old[kept].T, days[kept]))]
        event, count = event[kept], count[kept]
        n = np.maximum(np.bincount(event, count, len(weight))[event], 1.0)
        counts = weight[event] * count / (1.0 + (n - 1.0) * CORRELATION)
        return cls(old[kept], new[kept], days[kept], np.asarray(counts))

    @property
    def worth(self) -> float:
        """Number of independent events that the pairs count as."""
        return float(self.weight.sum())

    def evidence(self, half_lives: Array) -> Array:
        """Log marginal likelihood of the older contrasts at each half-life, (C,), up to a constant."""
        if not len(self.days):
            return np.zeros(len(half_lives))
        different, place = np.unique(half_lives, return_inverse=True)
        return np.array([self._likelihood(float(h)) for h in different])[place]

    def _likelihood(self, half_life: float) -> float:
        """Log-likelihood of the older contrasts at a half-life, maximised over their variance."""
        shared = np.array(TOGETHER)[:, None]
        f = shared * 0.5 ** (self.days / half_life)
        spread = (1.0 - shared) + f * (1.0 - f)
        off, d = self.old - f[..., None] * self.new, float(self.old.shape[1])
        variance = (logodds.inner_products(off, off) / spread) @ self.weight / (self.worth * d)
        found = -0.5 * d * (np.log(spread) @ self.weight + self.worth * np.log(variance + WRITTEN**2))
        return float(np.logaddexp.reduce(found))


def agreement(event: Index, source: Index, contrast: Array, age: Array, count: Array, weight: Array) -> Pairs:
    """Pairs of an older forecast and the mean of the newest ones on its event, by other experts.

    Parameters
    ----------
    event, source : ndarray of int, shape (M,)
        The event and the distinct expert behind each forecast.
    contrast : ndarray, shape (M, K - 1)
    age : ndarray, shape (M,)
        In days, NaN where unknown.
    count : ndarray, shape (M,)
        For how many each counts.
    weight : ndarray, shape (T,)
        Frequencies.
    """
    events, contrast = len(weight), limited(contrast)
    newest = np.full(events, np.inf)
    known = ~np.isnan(age)
    np.minimum.at(newest, event[known], age[known])
    first = age == newest[event]
    own = np.where(first, count, 0.0)
    number = np.bincount(event, own, events)
    sums = np.stack([np.bincount(event, own * c, events) for c in contrast.T], axis=1)
    mean = sums / np.maximum(number, np.finfo(np.float64).tiny)[:, None]
    # Copies of the newest agree with it at any age.
    key = _keys(event, source)
    others = np.where(np.isin(key, key[first]), 0.0, count)
    days = age - newest[event]
    pairs = Pairs.of(event, contrast, mean[event], days, others, weight)
    if not len(pairs.days):
        return pairs
    kept = np.flatnonzero((days > 0) & (others * weight[event] > 0))
    pair = _keys(_sets(event, source, own > 0, events)[event[kept]], source[kept])
    return replace(pairs, varied=_varied(pair, days[kept], others[kept] * weight[event[kept]]))


def _keys(first: Index, second: Index) -> Index:
    """A number for each pair of numbers, (n,)."""
    return np.asarray(first * (second.max(initial=0) + 2) + second + 1)


def _sets(event: Index, source: Index, some: Mask, events: int) -> Index:
    """Label of the set of distinct experts of each event, (T,)."""
    _, once = np.unique(np.where(some, _keys(event, source), -1), return_index=True)
    once = once[some[once]]
    # Sums of random integers of 64 bits distinguish sets.
    drawn = np.random.default_rng(0).integers(2**64, size=source.max() + 2, dtype=np.uint64)
    found = np.zeros(events, dtype=np.uint64)
    np.add.at(found, event[once], drawn[source[once] + 1])
    return np.asarray(np.unique(found, return_inverse=True)[1])


def _varied(pair: Index, days: Array, weight: Array) -> float:
    """Relative variance of lags (P,) within pairs of experts, as opposed to between them, from 0 to 1."""
    # In an order of their own, so that sums are the same to the last bit whatever order events have.
    order = np.lexsort((weight, days))
    days, weight, group = days[order], weight[order], np.unique(pair, return_inverse=True)[1][order]
    often = np.bincount(group, weight)
    within = np.sort(np.maximum(often - 1.0, 0.0)).sum() + 1.0
    found, typical = 1.0, weighted_median(days, weight)
    for scale in SCALES:
        left = 0.5 ** (days / (scale * typical))
        mean = (np.bincount(group, weight * left) / often)[group]
        own = float(np.sort(weight * (left - mean) ** 2).sum()) / within
        of_all = float(weight @ (left - np.average(left, weights=weight)) ** 2) / float(weight.sum())
        found = min(found, own / max(of_all, ROUNDING), own / VARIED if scale == 1.0 else 1.0)
    return found


def informed(believed: Array, evidence: Array, relevant: float) -> Array:
    """Probabilities of half-lives (C,) after evidence that is relevant with some probability."""
    posterior = believed * np.exp(evidence - evidence.max())
    return np.asarray((1.0 - relevant) * believed + relevant * posterior / posterior.sum())


def weighted_median(values: Array, weight: Array) -> float:
    """The median of values (n,) of which each is there `weight` times, any number above 0.

    >>> weighted_median(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    2.0
    """
    order = np.argsort(values)
    share = np.cumsum(weight[order])
    low, high = np.searchsorted(share / share[-1], (0.5 - ROUNDING, 0.5 + ROUNDING))
    return float(values[order[low]] + values[order[high]]) / 2.0
