"""Recency: how fast forecasts go stale, and how much an old forecast counts beside newer ones.

A forecast of age t, when the event is answered, has kept the share f = 2^(−t/h) of what it knew, h the half-life. It
counts as f of itself and 1 − f of what the others say, each by its own share, and n forecasts are worth no more than
the sum of their shares, as dependent as the experts are. Ages count from the newest forecast on the event, or from when
it is answered: then all of them lie nearer to the prior. Duplicates count as one, as old as the first of them.

No decay, and a few half-lives of either kind, each with a few correlations, are averaged by how well they predict the
outcomes with the weights of experts who are alike.
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
from opinionpool.learning.agreement import limited
from opinionpool.learning.constants import (
    CORRELATION_PROBABILITIES,
    CORRELATIONS,
    HALF_LIVES,
    INTERCEPT,
    LEAST_AGE,
    SLOPE,
    STEADY,
)
from opinionpool.learning.duplicates import Duplicates, counted_once
from opinionpool.learning.prior import believed_slope
from opinionpool.logodds import FLOOR
from opinionpool.model.contrasts import contrasts

# Sums of weights are that exact.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Recency(Tabular):
    """Posterior of the half-life of forecasts: the age at which half of a forecast's information is left.

    Examples
    --------
    >>> fast = Recency(np.array([1.0]), np.array([False]), np.array([0.6]), np.array([[1.0]]))
    >>> fast.contrasts(np.array([0, 0]), np.array([[1.0], [-1.0]]), np.array([0.0, 50.0]), 1).round(3).ravel()
    array([0.8, 0.8])
    """

    half_lives: Array  # (C,); in days, infinite where nothing decays
    # (C,); whether ages count from when the event is answered, and not from its newest forecast
    absolute: npt.NDArray[np.bool_]
    correlations: Array  # (R,); how dependent the experts may be
    probabilities: Array  # (C, R); of each half-life with each correlation, given the outcomes
    experts: tuple[str, ...] | None = None  # experts in the fit; None if every expert counts as distinct
    source: Index | None = None  # (N,); the distinct expert behind each expert in the fit, as in `Duplicates`

    def _table(self) -> dict[str, list[Any]]:
        return {
            "half_life": self.half_lives.tolist(),
            "ages_from": ["answer" if each else "newest forecast" for each in self.absolute.tolist()],
            "probability": self.by_half_life.tolist(),
        }

    @property
    def steady(self) -> float:
        """Posterior probability that forecasts do not lose value with age."""
        return float(self.by_half_life[np.isinf(self.half_lives)].sum())

    @property
    def by_half_life(self) -> Array:
        """Posterior probability of each half-life, (C,)."""
        return np.asarray(self.probabilities.sum(axis=1))

    @property
    def half_life(self) -> float:
        """Geometric mean of the half-lives in days, if forecasts lose value with age."""
        decays = np.isfinite(self.half_lives)
        probabilities = self.by_half_life[decays]
        if not probabilities.any():
            return np.inf
        return float(np.exp(probabilities / probabilities.sum() @ np.log(self.half_lives[decays])))

    def contrasts(self, event: Index, contrast: Array, age: Array, events: int, count: Array | None = None) -> Array:
        """Log-ratios less the prior's, `contrast` (M, K - 1), discounted by `age` (M,) in days (NaN: as the newest).

        They are averaged over the posterior of half-lives and correlations; with a `count` (M,) of 0 they are
        unchanged.
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
        """Return a copy of the forecasts discounted by age, without times; `reference` (T, K) are events' priors."""
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
        """Number of each expert, (N,), which duplicates share; experts who were not learned from have their own."""
        distinct = np.arange(len(forecasts.experts))
        if self.experts is None or self.source is None:
            return distinct
        learned = dict(zip(self.experts, self.source.tolist(), strict=True))
        beyond = len(self.experts) + distinct
        found = [learned.get(name, int(other)) for name, other in zip(forecasts.experts, beyond, strict=True)]
        return np.array(found, dtype=np.intp)

    def note(self) -> Note:
        """Note for users on how fast forecasts lose value, with the probability that they do."""
        text = (
            f"forecasts go stale with probability {1.0 - self.steady:.0%}; if they do, to half of what they knew in "
            f"about {self.half_life:.3g} days"
        )
        return Note("recency", text)


class ByAge(NamedTuple):
    """Forecasts discounted by their age at one given half-life."""

    contrasts: Array  # (M, K - 1); means of each contrast and its event's, weighted by the share that is still valid
    number: Array  # (T,); number of forecasts
    total: Array  # (T,); sum of the valid shares of forecasts
    left: Array  # (T,); factor on the newest forecast

    @classmethod
    def of(
        cls, event: Index, contrast: Array, age: Array, events: int, half_life: float, count: Array, *, absolute: bool
    ) -> ByAge:
        """Return forecasts discounted at `half_life`; arguments as for `Recency.contrasts`."""
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
        """Factor on discounted log-ratios, (T,), by the forecasts' ages and the `correlation` of the experts."""
        count = np.maximum(self.number, 1.0)
        return self.left * believed_slope(np.maximum(self.total, 1.0), correlation) / believed_slope(count, correlation)


class Counted(NamedTuple):
    """Weight of each of M forecasts (1, a share of 1 for duplicates, 0 for constant experts), and its age."""

    each: Array  # (M,); duplicates on an event count for one together, constant experts for none
    age: Array  # (M,); in days, NaN if unknown or if the forecast counts as 0

    @classmethod
    def of(cls, forecasts: Forecasts, source: Index) -> Counted:
        """Weights and ages of forecasts; duplicates share a number in `source` (N,), and their oldest age."""
        assert forecasts.made is not None
        count, which = counted_once(forecasts.event_index, forecasts.expert_index, source)
        made = np.where(count > 0, forecasts.made, np.datetime64("NaT", "us"))
        first = np.full(len(made), np.datetime64("NaT", "us"))
        np.fmin.at(first, which, made)
        made = first[which]
        return cls(count, replace(forecasts, made=made).ages)


def learn_recency(forecasts: Forecasts, reference: Array, weight: Array, floor: float = FLOOR) -> Recency | None:
    """Posterior of half-lives, given the outcomes (the prior without any); None if no forecast has an age above 0."""
    if forecasts.made is None or forecasts.options is not None:
        return None
    event = forecasts.event_index
    beyond = contrasts(forecasts.probabilities, reference[event], floor)
    source = Duplicates.among_cells(event, forecasts.expert_index, beyond, forecasts.experts).source
    count, age = Counted.of(forecasts, source)
    if not (age > 0).any():
        return None
    typical = max(weighted_median(age[age > 0], count[age > 0]), LEAST_AGE)
    some = np.flatnonzero(forecasts.resolved & (weight > 0) & (np.bincount(event, count, len(weight)) > 0))
    half_lives = np.array([np.inf, *(typical * each for _ in range(2) for each in HALF_LIVES)])
    absolute = np.repeat([False, True], [1 + len(HALF_LIVES), len(HALF_LIVES)])
    believed = np.full(len(half_lives), (1.0 - STEADY) / (len(half_lives) - 1))
    believed[0] = STEADY
    found = _evidence(forecasts.select_events(some), source, reference[some], weight[some], half_lives, absolute, floor)
    posterior = posterior_probabilities(found.ravel(), np.outer(believed, CORRELATION_PROBABILITIES).ravel())
    probabilities = posterior.reshape(found.shape)
    return Recency(half_lives, absolute, np.array(CORRELATIONS), probabilities, forecasts.experts, source)


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
    count, age = Counted.of(forecasts, source)
    contrast = limited(contrasts(forecasts.probabilities, reference[event], floor))
    d = contrast.shape[1]
    pooled = np.empty((len(half_lives) * len(CORRELATIONS), d, t))
    for place, (half_life, from_answer) in enumerate(zip(half_lives, absolute, strict=True)):
        by_age = ByAge.of(event, contrast, age, t, float(half_life), count, absolute=bool(from_answer))
        sums = np.stack([np.bincount(event, count * c, t) for c in by_age.contrasts.T], axis=1)
        mean = sums / by_age.number[:, None]
        for r, rho in enumerate(CORRELATIONS):
            weights = believed_slope(by_age.number, rho) * by_age.worth(rho)
            pooled[place * len(CORRELATIONS) + r] = (weights[:, None] * mean).T
    offset = logodds.prior_log_ratios(reference).T + pooled
    design = Design(pooled[:, None], np.ones((1, t)), offset, forecasts.outcomes, weight)
    root = np.zeros((len(pooled), d + 1, d + 1))
    root[:, :d, :d], root[:, d, d] = intercept_root(INTERCEPT, d), SLOPE
    modes = posterior_modes(design, Prior(np.zeros((len(pooled), d + 1)), root))
    found = [mode.log_marginal_likelihood for mode in modes]
    return np.array(found).reshape(len(half_lives), len(CORRELATIONS))


def weighted_median(values: Array, weight: Array) -> float:
    """Median of `values` (n,), each counted `weight` (n,) times; weights need not be whole numbers.

    >>> weighted_median(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    2.0
    """
    order = np.argsort(values)
    share = np.cumsum(weight[order])
    low, high = np.searchsorted(share / share[-1], (0.5 - ROUNDING, 0.5 + ROUNDING))
    return float(values[order[low]] + values[order[high]]) / 2.0
