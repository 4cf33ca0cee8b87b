"""What forecasts show before any outcome of how fast they go stale: old ones beside newer ones.

If a forecast of age t has kept the share 2^(−t/h) of what was known when it was made, a contrast C is a blurred copy of
one, C′, that was made d days later on the same event: given C′, whatever the outcome, it is normal with mean r f C′ and
variance v ((1 − r) + r f (1 − r f)), f = 2^(−d/h). v is the variance of contrasts, and r which share of it two of them
have in common when they are made together. What they do not share makes them differ at any distance, decay the more the
longer it was. There are two such pairs:

* revisions, an expert's forecast and the one before it. That some experts moved need not mean that others had missed
  something: perhaps there was no news for them.
* agreement, a forecast and the newest one by somebody else. Those whose forecasts are old may know less, or other
  things.

So either is relevant with a probability only, and outcomes soon count for more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.earlier import Earlier
from opinionpool.forecasts import Forecasts
from opinionpool.learning.prior import CORRELATION
from opinionpool.model.contrasts import contrasts

# How probable it is that revisions, and agreement, are relevant; by simulation (benchmarks/recency.py). At ½, revisions
# of experts who move whenever there is news, and have missed nothing when they do not, cost more than .003. At ¾,
# agreement costs several times as much where experts know different things, so that an old forecast is no copy.
REVISIONS, AGREEMENT = 1.0 / 3.0, 0.5
# What contrasts have in common when they are made together, averaged.
SHARED = (0.98, 0.9, 0.75, 0.5, 0.25)
# Forecasts are written to about so many log-odds; and how far contrasts are looked at, in the metric of log-ratios.
WRITTEN, LIMIT = 0.05, 4.0


def limited(contrast: Array) -> Array:
    """Contrasts (M, K - 1), none longer than `LIMIT`; a length treats all classes alike."""
    length = np.sqrt(logodds.inner_products(contrast, contrast))
    return np.asarray(contrast * np.minimum(1.0, LIMIT / np.maximum(length, LIMIT))[:, None])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Old contrasts beside newer ones on the same events.

    Attributes
    ----------
    old, new : ndarray, shape (P, K - 1)
    days : ndarray, shape (P,)
        How much later the newer one was made, above 0.
    weight : ndarray, shape (P,)
        For how many events each counts: those on one are of experts who depend on each other.
    """

    old: Array
    new: Array
    days: Array
    weight: Array

    @classmethod
    def of(cls, event: Index, old: Array, new: Array, days: Array, count: Array, weight: Array) -> Pairs:
        """Those that count, `count` times each (P,), on events of some weights (T,)."""
        kept = np.flatnonzero((days > 0) & (count * weight[event] > 0))
        # In an order of their own, so that sums are the same to the last bit whatever order events have.
        kept = kept[np.lexsort((*new[kept].T, *old[kept].T, days[kept]))]
        event, count = event[kept], count[kept]
        n = np.maximum(np.bincount(event, count, len(weight))[event], 1.0)
        counts = weight[event] * count / (1.0 + (n - 1.0) * CORRELATION)
        return cls(old[kept], new[kept], days[kept], np.asarray(counts))

    @property
    def worth(self) -> float:
        """How many events they are worth."""
        return float(self.weight.sum())

    def evidence(self, half_lives: Array) -> Array:
        """The logarithm of how probable the older ones are at each half-life, (C,), up to a constant."""
        if not len(self.days):
            return np.zeros(len(half_lives))
        different, place = np.unique(half_lives, return_inverse=True)
        found = np.array([[self._likelihood(float(h), shared) for shared in SHARED] for h in different])
        return np.asarray(np.logaddexp.reduce(found, axis=1)[place])

    def _likelihood(self, half_life: float, shared: float) -> float:
        """At the variance that suits them best."""
        f = shared * 0.5 ** (self.days / half_life)
        spread = (1.0 - shared) + f * (1.0 - f)
        off, d = self.old - f[:, None] * self.new, float(self.old.shape[1])
        variance = self.weight @ (logodds.inner_products(off, off) / spread) / (self.worth * d)
        spreads = float(self.weight @ np.log(spread))
        return -0.5 * d * (spreads + self.worth * float(np.log(variance + WRITTEN**2)))


def revisions(
    forecasts: Forecasts, reference: Array, contrast: Array, count: Array, weight: Array, floor: float
) -> Pairs:
    """Forecasts that took the place of earlier ones by the same experts, beside these.

    Parameters
    ----------
    forecasts : Forecasts
        With times.
    reference : ndarray, shape (T, K)
        Each event's prior.
    contrast : ndarray, shape (M, K - 1)
        The forecasts beyond it.
    count : ndarray, shape (M,)
        For how many each counts.
    weight : ndarray, shape (T,)
        Frequencies.
    """
    assert forecasts.made is not None
    every = forecasts.earlier or Earlier.none(forecasts.probabilities)
    moved = np.flatnonzero(every.known)
    event, earlier = forecasts.event_index[moved], every.select(moved)
    old = contrasts(earlier.probabilities, reference[event], floor)
    # A time that is unknown is no later.
    days = np.asarray((forecasts.made[moved] - earlier.made) / np.timedelta64(1, "D"))
    return Pairs.of(event, limited(old), limited(contrast[moved]), days, count[moved], weight)


def agreement(event: Index, source: Index, contrast: Array, age: Array, count: Array, weight: Array) -> Pairs:
    """Forecasts beside the newest on the same event, by others; those of one moment are averaged.

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
    key = event * (source.max(initial=0) + 1) + source
    others = np.where(np.isin(key, key[first]), 0.0, count)
    return Pairs.of(event, contrast, mean[event], age - newest[event], others, weight)


def informed(believed: Array, evidence: Array, relevant: float) -> Array:
    """What is believed of half-lives (C,) once there is evidence that is relevant with some probability."""
    posterior = believed * np.exp(evidence - evidence.max())
    return np.asarray((1.0 - relevant) * believed + relevant * posterior / posterior.sum())
