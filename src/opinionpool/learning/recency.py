"""Recency: how fast forecasts go stale, and what an old one still says beside those made later.

A forecast of age t, when the event is answered, has kept the share f = 2^(−t/h) of what it knew, h the half-life. Of
experts who know about as much, the old forecast is then a blurred copy of the newer ones: it counts as f of itself and
1 − f of what the others say, each by its own share, and n forecasts are worth no more than the sum of their shares, as
dependent as the experts are. Ages count from the newest forecast on the event, or, where the world is
taken to move on without anybody looking, from when it is answered: then all of them lie nearer to the prior.
Duplicates count as one, as old as the first of them, and experts who always give the same forecast not at all.

No decay, and a few half-lives of either kind, each with a few correlations, are averaged by how well they predict the
outcomes (evidence) with the weights that experts who are alike then have; what is believed of them before that is moved
by agreement (`opinionpool.learning.staleness`). As contrasts enter linearly, the average is again a sum
of contrasts, and pools stay externally Bayesian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask
from opinionpool.display import Tabular
from opinionpool.errors import Note
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import Prior, posterior_modes, posterior_probabilities
from opinionpool.estimation.regression import intercept_root
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import (
    AGREEMENT,
    CALIBRATION,
    CORRELATION_PROBABILITIES,
    CORRELATIONS,
    HALF_LIVES,
    INTERCEPT,
    SLOPE,
    STEADY,
)
from opinionpool.learning.duplicates import Duplicates, counted_once
from opinionpool.learning.staleness import ROUNDING, agreement, informed, limited, weighted_median
from opinionpool.logodds import FLOOR
from opinionpool.model.contrasts import contrasts

# From so many events on, and so many forecasts with an age above 0; without outcomes, from pairs worth so many.
FEWEST = 10


@dataclass(frozen=True, eq=False)
class Recency(Tabular):
    """Posterior of the half-life of forecasts.

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
    by_agreement : ndarray or None, shape (C,)
        The probability of each half-life if only known were how far old forecasts agree with the newest by others (as
        far as time does not go with who forecasts); None where none does.

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
    by_agreement: Array | None = None

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
        return self._half_life(self.by_half_life)

    def _half_life(self, probabilities: Array) -> float:
        decays = np.isfinite(self.half_lives)
        total = probabilities[decays].sum()
        if not total > 0:
            return np.inf
        return float(np.exp(probabilities[decays] / total @ np.log(self.half_lives[decays])))

    def contrasts(self, event: Index, contrast: Array, age: Array, events: int, count: Array | None = None) -> Array:
        """Contrasts discounted by age, (M, K - 1), averaged over half-lives and correlations.

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
        """Forecasts discounted by age; without ages, so that nothing is counted twice.

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
        count, age = Counted.of(forecasts, self._source(forecasts))
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

    def _source(self, forecasts: Forecasts) -> Index:
        """Index of the distinct expert behind each expert, (N,); experts who were not learned from are distinct."""
        distinct = np.arange(len(forecasts.experts))
        if self.experts is None or self.source is None:
            return distinct
        learned = dict(zip(self.experts, self.source.tolist(), strict=True))
        beyond = len(self.experts) + distinct
        found = [learned.get(name, int(other)) for name, other in zip(forecasts.experts, beyond, strict=True)]
        return np.array(found, dtype=np.intp)

    def note(self) -> Note:
        """Note on how fast forecasts go stale, with the probability that they do."""
        text = (
            f"forecasts go stale with probability {1.0 - self.steady:.0%}; if they do, to half of what they knew in "
            f"about {self.half_life:.3g} days"
        )
        if self.by_agreement is None:
            return Note("recency", text)
        stale = f"{self.by_agreement[np.isfinite(self.half_lives)].sum():.0%}"
        days = "" if stale == "0%" else f", {self._half_life(self.by_agreement):.3g} days"
        return Note("recency", f"{text} (by agreement only: {stale}{days})")


class ByAge(NamedTuple):
    """Forecasts discounted by age at one half-life."""

    contrasts: Array  # (M, K - 1); each as its own share and that of the others
    number: Array  # (T,); how many forecasts there are
    total: Array  # (T,); the sum of their shares
    left: Array  # (T,); how much of the newest is believed

    @classmethod
    def of(
        cls, event: Index, contrast: Array, age: Array, events: int, half_life: float, count: Array, *, absolute: bool
    ) -> ByAge:
        """Discounted forecasts; arguments as for `Recency.contrasts`, with age NaN where the count is 0."""
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
        """Factor on contrasts: `left` times the sum of weights of `total` over that of `number` experts, (T,)."""
        count = np.maximum(self.number, 1.0)
        return self.left * sum_of_weights(np.maximum(self.total, 1.0), correlation) / sum_of_weights(count, correlation)


class Counted(NamedTuple):
    """Counts and ages of M forecasts."""

    each: Array  # (M,); duplicates on an event count for one together, constant experts for none
    age: Array  # (M,); in days, NaN where unknown, and where they count for nothing

    @classmethod
    def of(cls, forecasts: Forecasts, source: Index) -> Counted:
        """Counts and ages of forecasts with times; `source` is the distinct expert behind each expert.

        Duplicates are as old as the first of them.
        """
        assert forecasts.made is not None
        count, which = counted_once(forecasts.event_index, forecasts.expert_index, source)
        made = np.where(count > 0, forecasts.made, np.datetime64("NaT", "us"))
        first = np.full(len(made), np.datetime64("NaT", "us"))
        np.fmin.at(first, which, made)
        made = first[which]
        return cls(count, replace(forecasts, made=made).ages)


def sum_of_weights(n: Array, correlation: float) -> Array:
    """Sum of the weights of n equal experts (24), for any n from 1 on."""
    return np.asarray(n / (1.0 + (n - 1.0) * correlation))


def learn_recency(forecasts: Forecasts, reference: Array, weight: Array, floor: float = FLOOR) -> Recency | None:
    """Recency by outcomes and agreement; None where both are few, or hardly any forecast has an age.

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
    count, age = Counted.of(forecasts, source)
    beside = agreement(forecasts.event_index, source[forecasts.expert_index], beyond, age, count, weight)
    answered = np.bincount(forecasts.event_index, count, len(forecasts.events)) > 0
    used = forecasts.resolved & answered & (weight > 0)
    typical = _typical_age(forecasts.event_index, age, count, weight * used)
    if typical is None and beside.varied * beside.worth >= FEWEST * (1.0 - ROUNDING):
        typical = _typical_age(forecasts.event_index, age, count, weight)
    if typical is None:
        return None
    half_lives = np.array([np.inf, *(typical * each for _ in range(2) for each in HALF_LIVES)])
    absolute = np.repeat([False, True], [1 + len(HALF_LIVES), len(HALF_LIVES)])
    believed = np.full(len(half_lives), (1.0 - STEADY) / (len(half_lives) - 1))
    believed[0] = STEADY
    seen = beside.evidence(half_lives)
    by_agreement = informed(believed, seen, beside.varied) if beside.worth > 0 else None
    believed = informed(believed, seen, beside.varied * AGREEMENT)
    some = np.flatnonzero(used)
    found = _evidence(forecasts.select_events(some), source, reference[some], weight[some], half_lives, absolute, floor)
    posterior = posterior_probabilities(found.ravel(), np.outer(believed, CORRELATION_PROBABILITIES).ravel())
    probabilities = posterior.reshape(found.shape)
    return Recency(half_lives, absolute, np.array(CORRELATIONS), probabilities, forecasts.experts, source, by_agreement)


def _typical_age(event: Index, age: Array, count: Array, weight: Array) -> float | None:
    """The median of the ages above 0, on events of some weights; None where too few have one."""
    often = weight[event] * count
    aged = (age > 0) & (often > 0)
    if min(often[aged].sum(), weight.sum()) < FEWEST * (1.0 - ROUNDING):
        return None
    return weighted_median(age[aged], often[aged])


def _evidence(
    forecasts: Forecasts,
    source: Index,
    reference: Array,
    weight: Array,
    half_lives: Array,
    absolute: Mask,
    floor: float,
) -> Array:
    """Log marginal likelihood of the outcomes for each half-life and correlation, (C, R)."""
    event, t = forecasts.event_index, len(forecasts.events)
    if not t:
        return np.zeros((len(half_lives), len(CORRELATIONS)))
    count, age = Counted.of(forecasts, source)
    contrast = limited(contrasts(forecasts.probabilities, reference[event], floor))
    d = contrast.shape[1]
    pooled = np.empty((len(half_lives) * len(CORRELATIONS), d, t))
    for place, (half_life, from_answer) in enumerate(zip(half_lives, absolute, strict=True)):
        by_age = ByAge.of(event, contrast, age, t, float(half_life), count, absolute=bool(from_answer))
        sums = np.stack([np.bincount(event, count * c, t) for c in by_age.contrasts.T], axis=1)
        mean = sums / by_age.number[:, None]
        for r, rho in enumerate(CORRELATIONS):
            weights = CALIBRATION * sum_of_weights(by_age.number, rho) * by_age.worth(rho)
            pooled[place * len(CORRELATIONS) + r] = (weights[:, None] * mean).T
    offset = logodds.prior_log_ratios(reference).T + pooled
    design = Design(pooled[:, None], np.ones((1, t)), offset, forecasts.outcomes, weight)
    root = np.zeros((len(pooled), d + 1, d + 1))
    root[:, :d, :d], root[:, d, d] = intercept_root(INTERCEPT, d), SLOPE
    modes = posterior_modes(design, Prior(np.zeros((len(pooled), d + 1)), root))
    found = [mode.log_marginal_likelihood for mode in modes]
    return np.array(found).reshape(len(half_lives), len(CORRELATIONS))
