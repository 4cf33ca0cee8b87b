"""Recency: how fast forecasts go stale, and what an old one still says beside those made later.

A forecast of age t, when the event is answered, has kept the share f = 2^(−t/h) of what it knew, h the half-life. Of
experts who know about as much, the old forecast is then a blurred copy of the newer ones: it counts as f of itself and
1 − f of what the others say, each by its own share, and n forecasts are worth no more than the sum of their shares, as
dependent as the experts are. Ages count from the newest forecast on the event, or, where the world is
taken to move on without anybody looking, from when it is answered: then all of them lie nearer to the prior.
Forecasts of duplicates count as one, and experts who always give the same forecast not at all.

No decay, and a few half-lives of either kind, each with a few correlations, are averaged by how well they predict the
outcomes (evidence) with the weights that experts who are alike then have. As contrasts enter linearly, the average is
again a sum of contrasts, and pools stay externally Bayesian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.display import Tabular
from opinionpool.errors import Note
from opinionpool.estimation.coefficients import intercept_root
from opinionpool.estimation.posterior import posterior_mode, posterior_probabilities
from opinionpool.forecasts import Forecasts
from opinionpool.learning.duplicates import CONSTANT, Duplicates
from opinionpool.learning.prior import CALIBRATION, CORRELATION_PROBABILITIES, CORRELATIONS
from opinionpool.logodds import FLOOR
from opinionpool.model.contrasts import contrasts

# Half-lives, in typical ages; no decay is believed with probability `STEADY`, each of the others alike. Chosen by
# simulation (benchmarks/recency.py): where nothing decays this costs .003 at most.
HALF_LIVES = (4.0, 2.0, 1.0, 0.5, 0.25)
STEADY = 0.5
# How far intercept and slope of the pool that values are compared by are open; and how far contrasts are looked at, in
# the metric of log-ratios.
INTERCEPT, SLOPE, LIMIT = 0.4, 0.35, 4.0
# From so many events on, and so many forecasts with an age above 0.
FEWEST = 10
# Sums of weights are that exact.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Recency(Tabular):
    """How fast forecasts go stale.

    Attributes
    ----------
    half_lives : ndarray, shape (C,)
        In days; infinite where nothing decays.
    absolute : ndarray of bool, shape (C,)
        Whether ages count from when the event is answered, and not from its newest forecast.
    correlations : ndarray, shape (R,)
        How dependent the experts may be.
    probabilities : ndarray, shape (C, R)
        Of each half-life with each correlation, given the outcomes.
    experts : tuple of str or None
        Those who were learned from; None if each counts as distinct.
    source : ndarray of int or None, shape (N,)
        The distinct expert behind each of them, as in `opinionpool.learning.duplicates.Duplicates`.

    Examples
    --------
    >>> fast = Recency(np.array([1.0]), np.array([False]), np.array([0.6]), np.array([[1.0]]))
    >>> fast.contrasts(np.array([0, 0]), np.array([[1.0], [-1.0]]), np.array([0.0, 50.0]), 1).round(3).ravel()
    array([0.8, 0.8])
    """

    half_lives: Array
    absolute: npt.NDArray[np.bool_]
    correlations: Array
    probabilities: Array
    experts: tuple[str, ...] | None = None
    source: Index | None = None

    def _table(self) -> dict[str, list[Any]]:
        return {
            "half_life": self.half_lives.tolist(),
            "ages_from": ["answer" if each else "newest forecast" for each in self.absolute.tolist()],
            "probability": self.by_half_life.tolist(),
        }

    @property
    def steady(self) -> float:
        """The probability that nothing decays."""
        return float(self.by_half_life[np.isinf(self.half_lives)].sum())

    @property
    def by_half_life(self) -> Array:
        """The probability of each half-life, (C,)."""
        return np.asarray(self.probabilities.sum(axis=1))

    @property
    def half_life(self) -> float:
        """The geometric mean of the half-lives if forecasts decay, in days."""
        decays = np.isfinite(self.half_lives)
        share = self.by_half_life[decays] / self.by_half_life[decays].sum()
        return float(np.exp(share @ np.log(self.half_lives[decays])))

    def contrasts(self, event: Index, contrast: Array, age: Array, events: int, count: Array | None = None) -> Array:
        """Contrasts as they count beside each other, (M, K - 1).

        Parameters
        ----------
        event : ndarray of int, shape (M,)
        contrast : ndarray, shape (M, K - 1)
            L − L°.
        age : ndarray, shape (M,)
            In days, NaN where unknown; then the forecast counts as the newest.
        events : int
        count : ndarray, shape (M,), optional
            For how many forecasts each counts, 1 unless given; those that count for none stay as they are.
        """
        count = np.ones(len(age)) if count is None else count
        found = np.zeros_like(contrast)
        for half_life, absolute, each in zip(self.half_lives, self.absolute, self.probabilities, strict=True):
            if np.isinf(half_life):
                found += each.sum() * contrast
            else:
                by_age = ByAge.of(event, contrast, age, events, float(half_life), count, absolute=bool(absolute))
                worth = sum(p * by_age.worth(rho) for rho, p in zip(self.correlations, each, strict=True))
                found += by_age.contrasts * np.asarray(worth)[event, None]
        return np.where(count[:, None] > 0, found, contrast)

    def forecasts(self, forecasts: Forecasts, reference: Array, floor: float = FLOOR) -> Forecasts:
        """The forecasts as they count beside each other; without ages, so that nothing is counted twice.

        Parameters
        ----------
        forecasts : Forecasts
        reference : ndarray, shape (T, K)
            Each event's prior.
        floor : float
        """
        if forecasts.made is None:
            return forecasts
        plain = replace(forecasts, made=None, asked=None)
        count = self._counts(forecasts)
        age = counted_ages(forecasts, count)
        if not (age > 0).any():
            return plain
        event = forecasts.event_index
        prior = reference[event]
        contrast = contrasts(forecasts.probabilities, prior, floor)
        moved = self.contrasts(event, contrast, age, len(forecasts.events), count)
        p = logodds.pooled_probabilities(logodds.prior_log_ratios(prior) + moved, prior, logodds.LEAST)
        changed = (moved != contrast).any(axis=1)
        own = logodds.public_probabilities(p)
        same = forecasts.probabilities
        return replace(plain, probabilities=np.where(changed if same.ndim == 1 else changed[:, None], own, same))

    def _counts(self, forecasts: Forecasts) -> Array:
        """For how many each of the M forecasts counts; experts who were not learned from are distinct."""
        distinct = np.arange(len(forecasts.experts))
        if self.experts is None or self.source is None:
            return forecast_counts(forecasts, distinct)
        learned = dict(zip(self.experts, self.source.tolist(), strict=True))
        beyond = len(self.experts) + distinct
        found = [learned.get(name, int(other)) for name, other in zip(forecasts.experts, beyond, strict=True)]
        return forecast_counts(forecasts, np.array(found, dtype=np.intp))

    def note(self) -> Note:
        """How fast forecasts go stale, and how sure that is."""
        text = (
            f"forecasts go stale with probability {1.0 - self.steady:.0%}; if they do, to half of what they knew in "
            f"about {self.half_life:.3g} days"
        )
        return Note("recency", text)


class ByAge(NamedTuple):
    """What remains of forecasts at one half-life."""

    contrasts: Array  # (M, K - 1); each as its own share and that of the others
    number: Array  # (T,); how many forecasts there are
    total: Array  # (T,); the sum of their shares
    left: Array  # (T,); how much of the newest is believed

    @classmethod
    def of(
        cls, event: Index, contrast: Array, age: Array, events: int, half_life: float, count: Array, *, absolute: bool
    ) -> ByAge:
        """Arguments as for `Recency.contrasts`; of what counts for nothing, no age is known."""
        known = ~np.isnan(age)
        newest = np.full(events, np.inf)
        np.minimum.at(newest, event[known], age[known])
        newest[np.isinf(newest)] = 0.0
        share = 0.5 ** ((np.where(known, age, newest[event]) - newest[event]) / half_life)
        total = np.asarray(np.bincount(event, count * share, events), dtype=np.float64)
        number = np.asarray(np.bincount(event, count, events), dtype=np.float64)
        sums = np.stack([np.bincount(event, count * share * c, events) for c in contrast.T], axis=1)
        common = (sums / np.maximum(total, 1.0)[:, None])[event]
        left = 0.5 ** (newest / half_life) if absolute else np.ones(events)
        return cls(share[:, None] * contrast + (1.0 - share[:, None]) * common, number, total, left)

    def worth(self, correlation: float) -> Array:
        """By what contrasts are multiplied, so that weights of all give what those of so many shares would, (T,)."""
        count = np.maximum(self.number, 1.0)
        return self.left * sum_of_weights(np.maximum(self.total, 1.0), correlation) / sum_of_weights(count, correlation)


def forecast_counts(forecasts: Forecasts, source: Index) -> Array:
    """For how many each of the M forecasts counts: duplicates on an event for one together, constant experts for none.

    `source` is the distinct expert behind each expert, those without forecasts each by themselves.
    """
    distinct = np.where(source < CONSTANT, source.max(initial=0) + 1 + np.arange(len(source)), source)
    behind = distinct[forecasts.expert_index]
    if len(np.unique(distinct)) == len(distinct):
        return np.asarray(behind != CONSTANT, dtype=np.float64)
    place = forecasts.event_index * (distinct.max() + 2) + behind + 1
    _, group, size = np.unique(place, return_inverse=True, return_counts=True)
    return np.where(behind == CONSTANT, 0.0, 1.0 / size[group.ravel()])


def counted_ages(forecasts: Forecasts, count: Array) -> Array:
    """How old each forecast is, in days, (M,); NaN where unknown, and where it counts for nothing."""
    assert forecasts.made is not None
    return replace(forecasts, made=np.where(count > 0, forecasts.made, np.datetime64("NaT", "us"))).ages


def weighted_median(values: Array, weight: Array) -> float:
    """The median of values (n,) of which each is there `weight` times, any number above 0.

    >>> weighted_median(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    2.0
    """
    order = np.argsort(values)
    share = np.cumsum(weight[order])
    low, high = np.searchsorted(share / share[-1], (0.5 - ROUNDING, 0.5 + ROUNDING))
    return float(values[order[low]] + values[order[high]]) / 2.0


def sum_of_weights(n: Array, correlation: float) -> Array:
    """Of n experts who are alike (24), for any n from 1 on."""
    return np.asarray(n / (1.0 + (n - 1.0) * correlation))


def learn_recency(forecasts: Forecasts, reference: Array, weight: Array, floor: float = FLOOR) -> Recency | None:
    """How fast forecasts go stale, from resolved events; None where hardly any has an age.

    Parameters
    ----------
    forecasts : Forecasts
    reference : ndarray, shape (T, K)
        Each event's prior.
    weight : ndarray, shape (T,)
        Frequencies.
    """
    if forecasts.made is None or forecasts.options is not None:
        return None
    beyond = contrasts(forecasts.probabilities, reference[forecasts.event_index], floor)
    source = Duplicates.among_cells(forecasts.event_index, forecasts.expert_index, beyond, forecasts.experts).source
    counted = np.bincount(forecasts.event_index, forecast_counts(forecasts, source), len(forecasts.events))
    used = np.flatnonzero(forecasts.resolved & (counted > 0) & (weight > 0))
    some = forecasts.select_events(used)
    count = forecast_counts(some, source)
    age, t = counted_ages(some, count), len(used)
    often = (weight[used][some.event_index] * count)[age > 0]
    if min(often.sum(), weight[used].sum()) < FEWEST * (1.0 - ROUNDING):
        return None
    typical = weighted_median(age[age > 0], often)
    half_lives = np.array([np.inf, *(typical * each for _ in range(2) for each in HALF_LIVES)])
    absolute = np.repeat([False, True], [1 + len(HALF_LIVES), len(HALF_LIVES)])
    believed = np.full(len(half_lives), (1.0 - STEADY) / (len(half_lives) - 1))
    believed[0] = STEADY
    own = reference[used]
    contrast = contrasts(some.probabilities, own[some.event_index], floor)
    # A length that treats all classes alike.
    length = np.sqrt(logodds.inner_products(contrast, contrast))
    contrast = contrast * np.minimum(1.0, LIMIT / np.maximum(length, LIMIT))[:, None]
    offset = logodds.prior_log_ratios(own)

    def evidence(pooled: Array) -> float:
        root = intercept_root(INTERCEPT, pooled.shape[1]).T
        design = np.concatenate([SLOPE * pooled[:, None, :], np.broadcast_to(root, (t, *root.shape))], axis=1)
        return posterior_mode(design, some.outcomes, offset + pooled, weight[used]).evidence

    found = np.empty((len(half_lives), len(CORRELATIONS)))
    for place, (half_life, from_answer) in enumerate(zip(half_lives, absolute, strict=True)):
        by_age = ByAge.of(some.event_index, contrast, age, t, float(half_life), count, absolute=bool(from_answer))
        sums = np.stack([np.bincount(some.event_index, count * c, t) for c in by_age.contrasts.T], axis=1)
        mean = sums / by_age.number[:, None]
        for r, rho in enumerate(CORRELATIONS):
            weights = CALIBRATION * sum_of_weights(by_age.number, rho) * by_age.worth(rho)
            found[place, r] = evidence(weights[:, None] * mean)
    posterior = posterior_probabilities(found.ravel(), np.outer(believed, CORRELATION_PROBABILITIES).ravel())
    return Recency(
        half_lives, absolute, np.array(CORRELATIONS), posterior.reshape(found.shape), forecasts.experts, source
    )
